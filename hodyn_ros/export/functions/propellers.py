"""Thrusts and tilts of the propellers of a flying base as C."""

from __future__ import annotations

from random import Random

import numpy as np

from hodyn_ros.actuation.propellers import Propellers
from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import Cases, CFunction
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables, TracedLines
from hodyn_ros.lie.motion import BaseMotion, wrenches_to_world
from hodyn_ros.lie.se3 import Array

THRUSTS = "propeller_thrusts"


def propeller_function(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write what `Propellers.motion` computes of a wrench on the base in the world frame.

    InputError for a robot without propellers.
    """
    propellers = robot.propellers
    if propellers is None:
        raise InputError(
            f"robot {robot.name!r} has no propellers, which {what} is of; its file may name them"
        )
    order, n = request.order, len(propellers.names)
    trace, arguments = propellers.program(order + 1, "spatial")
    inputs = dict(zip(("base_wrench", "pose", "twists"), [shape for _, shape in arguments]))
    reached = (0.0,) * 6 if propellers.reaches_all else None  # what is left is rounding then

    def rows(*stacks: Stack) -> Stack:
        return [[*row[: 2 * n], *(reached or row[2 * n :])] for row in trace(*stacks)]

    code = TracedLines(rows, inputs, f"{what} of robot {robot.name!r} at order {order}", tables)
    places = np.arange(len(code.outputs)).reshape(code.shape)
    names = {"thrusts": slice(0, n), "tilts": slice(n, 2 * n)}
    about = [
        *words.result_of_base(OPERATIONS["inverse_dynamics"], request),
        *words.base(max(order - 1, 0)),
        f"thrusts: of the propellers {', '.join(propellers.names)} [N], and their derivatives up to order "
        f"{order}.",
        "tilts: angles of the servos that tilt them [rad], likewise; zero of propellers that are fixed. "
        "Where one that tilts has no thrust its direction is open, and derivatives are not finite.",
    ]
    if not propellers.reaches_all:
        names["left"] = slice(2 * n, 2 * n + 6)
        about.append(
            "left: what propellers cannot give of the wrench, in the axes of the base at its origin."
        )
    stores = code.stores({name: places[:-1, part] for name, part in names.items()})
    for i, propeller in enumerate(propellers.propellers):
        if propeller.tilts:
            axial, lateral = code.text(places[-1, i]), code.text(places[-1, n + i])
            stores[(order + 1) * n + i] = f"  tilts[{i}] = atan2({lateral}, {axial});"
    return CFunction(
        request.prefix,
        what,
        inputs,
        {name: (order + 1, part.stop - part.start) for name, part in names.items()},
        about,
        [*code.lines, *stores],
        _cases(propellers, order, tuple(names)),
        operations=code.operations,
    )


def _cases(propellers: Propellers, order: int, results: tuple[str, ...]) -> Cases:
    random, calls, result = Random(1), [], []
    for _ in range(motions.COUNT):
        base = BaseMotion(motions.pose(random), motions.numbers(random, max(order, 1), 6))
        wrench = _wrench(propellers, base, order, random)
        calls.append((wrench, base.pose, base.twists))
        result.append(propellers.motion(wrench, base))
    inputs = {name: np.array(values) for name, values in zip(("base_wrench", "pose", "twists"), zip(*calls))}
    return Cases(inputs, {name: np.array([getattr(one, name) for one in result]) for name in results})


def _wrench(propellers: Propellers, base: BaseMotion, order: int, random: Random) -> Array:
    """Return a wrench in the world frame for which all propellers push."""
    n = len(propellers.names)
    in_body = motions.numbers(random, order + 1, 6, 0.5)
    in_body[0] += propellers.wrench(
        5.0 + motions.numbers(random, 1, n)[0], motions.numbers(random, 1, n, 0.5)[0]
    )
    return wrenches_to_world(base.pose, base.in_representation("body_fixed").twists, in_body)
