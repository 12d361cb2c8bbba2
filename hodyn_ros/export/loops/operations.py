"""Dynamics, kinematics and matrices of robots with loops, as plans."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.named_frames import find_frame, placed
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_matrices import ProductCode
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import InputError
from hodyn_ros.export import words
from hodyn_ros.export.loops.plan import Plan, about_motion, compiled, inputs_of, leader_of
from hodyn_ros.export.request import ExportRequest


def inverse_dynamics(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan efforts and the motion of the drives."""
    closure, order, loads = robot.structure, request.order, request.loads(robot.tree)
    said = f"inverse dynamics of order {order}"
    looped, kernel = compiled(robot, order, said, partial(EffortCode, order=order, loads=loads))
    first = closure.n_base
    result = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)
    places = {"tau": result[: order + 1, first:], "motion": result[order + 1 : -2, first:]}
    about = [*about_motion(closure, order + 2)]
    if first:
        places = {"base_wrench": result[: order + 1, :6], **places}
        about += words.result_of_base(OPERATIONS["inverse_dynamics"], request)
    about += [
        *words.wrenches(request),
        f"tau: efforts of the driven joints on the link side and their derivatives up to order {order}.",
        f"motion: positions of the driven joints and their derivatives up to order {order + 2}.",
    ]
    return Plan(
        looped,
        kernel,
        {**inputs_of(closure, order + 2), **request.wrench_shapes()},
        places,
        about,
        (int(result[-1, 0]), looped.near_singular_from(order)),
    )


def forward_dynamics(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan accelerations of the coordinates, and of platform or base."""
    closure, order, loads = robot.structure, request.order, request.loads(robot.tree)
    inputs, about = forward_inputs(robot, request)
    said = f"forward dynamics of order {order}"
    looped, kernel = compiled(robot, order, said, partial(AccelerationCode, order=order, loads=loads))
    result = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)[:-1]
    places = {}
    if closure.leader is not None:
        places["base_acceleration"], result = result[:, :6], result[:, 6:]
        about += words.result_of_base(OPERATIONS["forward_dynamics"], request)
    if closure.joints:
        places["acceleration"] = result
        about.append(f"acceleration: of the coordinates, with derivatives up to order {order}.")
    return Plan(
        looped,
        kernel,
        {**inputs, **request.wrench_shapes()},
        places,
        [*about, *words.wrenches(request)],
    )


def forward_inputs(robot: Robot, request: ExportRequest) -> tuple[dict[str, Shape], list[str]]:
    """Return what forward dynamics follows from, and what is said about it."""
    closure, order = robot.structure, request.order
    if idle := LoopedDynamics(closure).independence.idle:
        raise InputError(idle)
    inputs: dict[str, Shape] = {"state": (2, len(closure.joints))}
    about = ["state: positions and velocities of the coordinates."] if closure.joints else []
    if closure.leader is not None:
        inputs |= {"pose": (4, 4), "twist": (1, 6)}
        about += words.twist(leader_of(closure))
    inputs["tau"] = order + 1, len(closure.driven)
    about.append(f"tau: efforts of the driven joints and their derivatives up to order {order}.")
    if closure.base_prescribed:
        inputs["base_wrench"] = order + 1, 6
        about += words.result_of_base(OPERATIONS["inverse_dynamics"], request)
    return inputs, about


def joint_motion(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan the motion of all joints."""
    closure, order = robot.structure, request.order
    said = f"joint motion of order {order}"
    looped, kernel = compiled(robot, max(order - 2, 0), said, partial(LoopCode, order=order - 2))
    rows, n = kernel.result
    about = [*about_motion(closure, order), words.joints("joints", closure.tree.joint_names, order)]
    places = {"joints": np.arange((rows - 1) * n).reshape(-1, n)}
    return Plan(looped, kernel, inputs_of(closure, order), places, about)


def of_motion(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan what follows from the motion of the coordinates alone, by its law."""
    closure, order, operation = robot.structure, request.order, OPERATIONS[what]
    moving = _frames_that_move(robot)
    of = request.of_frames(what, moving)
    if operation.frames == "one":
        body = find_frame(robot.tree, robot.frames, of[0]).body
        if body < 0 or robot.tree.body_names[body] not in moving:
            raise InputError(f"loops hold {of[0]!r} where it is; choose a frame that moves")
    name = operation.in_c or what
    said = f"{name.replace('_', ' ')} of order {order}"
    frames = placed(robot.tree, robot.frames, of)

    def make(*loops: Any) -> ProductCode:
        law: ProductCode = operation.law("loops")(*loops, order, *frames)
        return law

    looped, kernel = compiled(robot, order, said, make)
    assert isinstance(kernel.law, ProductCode)
    rows, columns = kernel.result
    further = kernel.arguments[0][1][0] - 1  # the highest derivative of the motion
    table = np.arange((rows - 1) * columns).reshape(-1, np.prod(kernel.law.shape))
    about = words.result(
        operation,
        request,
        of,
        m=closure.n_coordinates,
        efforts=closure.n_efforts,
        bodies=closure.tree.n_bodies,
    )
    if "m" in operation.shape:
        about.append(_velocities(robot))
    if "efforts" in operation.shape and closure.base_prescribed:
        about.append("Six rows of the body-fixed wrench on the base stand first.")
    places = {name: table}
    if operation.frames == "several":
        table = table.reshape(len(of[0]), -1)
        places = {"frame_poses": table[:, :POSE], **({"frame_twists": table[:, POSE:]} if order else {})}
    return Plan(
        looped, kernel, inputs_of(closure, further), places, [*about_motion(closure, further), *about]
    )


def _velocities(robot: Robot) -> str:
    """Say which velocities matrices take, or give forces of."""
    closure = robot.structure
    parts = ["of the body-fixed twist of the base"] if closure.base_prescribed else []
    parts += ["of the coordinates in q"] if closure.joints else []
    if closure.platform is not None:
        parts.append(f"{' '.join(closure.platform.rows)} of the body-fixed twist of the platform")
    return f"Velocities are those {', then '.join(parts)}."


def _frames_that_move(robot: Robot) -> tuple[str, ...]:
    """Return all bodies but feet, which loops hold where they are."""
    loops = robot.structure.loops
    held = {loop.b.body for loop in loops if loop.kind == "weld" and loop.a.body < 0}
    return tuple(name for body, name in enumerate(robot.tree.body_names) if body not in held)
