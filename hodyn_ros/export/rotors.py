"""The feedforward of a robot whose rotors turn with the bodies that carry them, as one function of C."""

from __future__ import annotations

from random import Random

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.engine.codegen.kernel import Stack, traced
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import ALL_FINITE, FAILED, OK, Cases, CFunction, finite_conditions
from hodyn_ros.export.motors import BOTH
from hodyn_ros.export.request import Request
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length


def rotor_feedforward(robot: Robot, request: Request, tables: Tables) -> CFunction:
    """Write torques of the links, and positions and efforts of the motors, from the motion of the links.

    Raises InputError where damped springs would have to remember, or numbers are too many.
    """
    rotors, order, n = RotorCoupling(robot), request.order, robot.n_joints
    if request.period is not None and rotors.train.damped.any():
        raise InputError(
            f"robot {robot.name!r} has damped springs and rotors that turn with the bodies that carry them: "
            "its springs do not remember; leave out the period"
        )
    highest = int(rotors.needed_orders(order).max()) + 2
    count = order - 1 if rotors.train.elastic.any() else order + 1
    results = {"tau": (order + 1, n), "position": (order + 1, n), "effort": (count, n)}

    def trace(q: Stack) -> Stack:
        return [row for part in rotors.traced_feedforward(q, order) for row in part]

    graph, outputs, _ = traced(trace, [(highest + 1, n)])
    operations = checked_length(graph, outputs, f"the feedforward of order {order}")
    code = StraightLine(graph, ["q"], [*outputs, *graph.conditions], tables)
    places = [f"{name}[{i}]" for name, (rows, _) in results.items() for i in range(rows * n)]
    stores = [f"  {place} = {code.text(value)};" for place, value in zip(places, outputs)]
    lines, macro = list(code.lines), request.prefix.upper()
    fails = bool(graph.conditions)
    if fails:
        conditions = [f"{code.text(margin)} >= 0.0" for margin in graph.conditions]
        conditions += finite_conditions({"q": (highest + 1, n)})
        lines += [f"  if (!({' && '.join(conditions)})) {{", f"    return {macro}_FAILED;", "  }"]
        stores.append(f"  return {macro}_OK;")
    return CFunction(
        request.prefix,
        BOTH,
        {"q": (highest + 1, n)},
        results,
        [
            words.motion(highest),
            f"tau: joint torques (forces) on the link side and their derivatives up to order {order}.",
            f"position: of the motors, reflected to the link side, with derivatives up to order {order}.",
            f"effort: of the motors, reflected to the link side, with derivatives up to order {count - 1}.",
            "Rotors turn with the bodies that carry them, in torques and efforts.",
            *(["Fails where a spring would have to give what it cannot: beyond its table."] if fails else []),
        ],
        [*lines, *stores],
        _cases(robot, rotors, order, highest, fails),
        fails=fails,
        operations=operations,
        helpers=ALL_FINITE if fails else {},
    )


def _cases(robot: Robot, rotors: RotorCoupling, order: int, highest: int, fails: bool) -> Cases:
    """Choose motions that get slower with the order, as torques hold high powers of it."""
    random, slower = Random(1), 0.5 ** np.arange(highest + 1)[:, None]
    chosen = [slower * motions.joint_motion(robot, highest + 1, random) for _ in range(motions.COUNT)]
    found = [rotors.feedforward(q, order) for q in chosen]
    results = {
        "tau": np.array([torques for torques, _ in found]),
        "position": np.array([motors.position for _, motors in found]),
        "effort": np.array([motors.effort for _, motors in found]),
    }
    if not fails:
        return Cases({"q": np.array(chosen)}, results)
    inputs = {"q": np.array([np.full_like(chosen[0], np.inf), *chosen])}
    results = {name: np.concatenate([np.zeros_like(x[:1]), x]) for name, x in results.items()}
    return Cases(inputs, results, (FAILED, *[OK] * len(chosen)), failing=1)
