"""Dynamics, kinematics and matrices of robots with loops, as plans."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

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
from hodyn_ros.export.loops.plan import Plan, compiled, said
from hodyn_ros.export.request import ExportRequest


def inverse_dynamics(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan efforts and the motion of the drives."""
    order, loads, first = request.order, request.loads(robot.tree), robot.structure.n_base
    make = partial(EffortCode, order=order, loads=loads)
    looped, kernel = compiled(robot, order, f"inverse dynamics of order {order}", make)
    result = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)
    efforts, drives = result[: order + 1], result[order + 1 : -2, first:]
    says = [
        f"tau: efforts of the driven joints on the link side and their derivatives up to order {order}.",
        f"motion: positions of the driven joints and their derivatives up to order {order + 2}.",
    ]
    places = {"tau": efforts[:, first:], "motion": drives}
    if first:
        places = {"base_wrench": efforts[:, :6], **places}
        says = [*words.result_of_base(OPERATIONS[what], request), *says]
    near = int(result[-1, 0]), looped.near_singular_from(order)
    return Plan(robot, request, looped, kernel, places, says, near)


def forward_dynamics(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan accelerations of the coordinates, and of platform or base."""
    order, loads = request.order, request.loads(robot.tree)
    make = partial(AccelerationCode, order=order, loads=loads)
    looped, kernel = compiled(robot, order, f"forward dynamics of order {order}", make, moves_mass=True)
    result = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)[:-1]
    places, says = {}, []
    if robot.moves_base:
        places["base_acceleration"], result = result[:, :6], result[:, 6:]
        says += words.result_of_base(OPERATIONS[what], request)
    if robot.joint_names:
        places["acceleration"] = result
        says.append(f"acceleration: of the coordinates, with derivatives up to order {order}.")
    return Plan(robot, request, looped, kernel, places, says)


def joint_motion(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan the motion of all joints."""
    order, make = request.order, partial(LoopCode, order=request.order - 2)
    looped, kernel = compiled(robot, max(order - 2, 0), f"joint motion of order {order}", make)
    rows, n = kernel.result
    says = [words.joints("joints", robot.tree.joint_names, order)]
    return Plan(robot, request, looped, kernel, {"joints": np.arange((rows - 1) * n).reshape(-1, n)}, says)


def of_motion(robot: Robot, request: ExportRequest, what: str) -> Plan:
    """Plan what follows from the motion of the coordinates alone, by its law."""
    order, operation = request.order, OPERATIONS[what]
    moving = _frames_that_move(robot)
    of = request.of_frames(what, moving)
    if operation.frames == "one":
        body = find_frame(robot.tree, robot.frames, of[0]).body
        if body < 0 or robot.tree.body_names[body] not in moving:
            raise InputError(f"loops hold {of[0]!r} where it is; choose a frame that moves")
    name = operation.in_c or what
    frames = placed(robot.tree, robot.frames, of)

    def make(*loops: Any) -> ProductCode:
        law: ProductCode = operation.law("loops")(*loops, order, *frames)
        return law

    looped, kernel = compiled(robot, order, f"{name.replace('_', ' ')} of order {order}", make)
    assert isinstance(kernel.law, ProductCode)
    rows, columns = kernel.result
    table = np.arange((rows - 1) * columns).reshape(-1, np.prod(kernel.law.shape))
    says = said(robot, request, what, of)
    if "m" in operation.shape:
        says.append(_velocities(robot))
    if "efforts" in operation.shape and robot.structure.base_prescribed:
        says.append("Six rows of the body-fixed wrench on the base stand first.")
    places = {name: table}
    if operation.frames == "several":
        table = table.reshape(len(of[0]), -1)
        places = {"frame_poses": table[:, :POSE], **({"frame_twists": table[:, POSE:]} if order else {})}
    return Plan(robot, request, looped, kernel, places, says)


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
