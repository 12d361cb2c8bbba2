"""Kinematics, matrices and regressor of robots with loops, as plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_kernel import (
    LoopKernel,
    LoopProduct,
    TooLong,
    compiles,
)
from hodyn_ros.engine.loops.loop_matrices import Matrix
from hodyn_ros.engine.loops.loop_products import FrameJacobian, FrameMotion, Product
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import InputError
from hodyn_ros.export import words
from hodyn_ros.export.loops.plan import Plan, about_motion, check_compiled, closure_of, inputs_of
from hodyn_ros.export.request import Request


def joint_motion(robot: Robot, request: Request) -> Plan:
    """Plan the motion of all joints."""
    closure, order = closure_of(robot), request.order
    check_compiled(robot, compiles(closure, max(order - 2, 0), "joints"), f"joint motion of order {order}")
    looped = LoopedDynamics(closure)
    kernel = LoopKernel(closure, looped.independence.given, order, (), "joints")
    rows, n = kernel.result
    about = [*about_motion(closure, order), words.joints("joints", closure.tree.joint_names, order)]
    places = {"joints": np.arange((rows - 1) * n).reshape(-1, n)}
    return Plan(looped, kernel, inputs_of(closure, order), places, about)


def forward_kinematics(robot: Robot, request: Request) -> Plan:
    """Plan poses and twists of frames, by default of all that move."""
    order, tree = request.order, robot.tree
    names = request.frames or _frames_that_move(robot)
    motion = FrameMotion([find_frame(tree, robot.frames, name) for name in names], request.representation)
    plan = _product(robot, request, "forward_kinematics", motion, words.frame_motion(names, request))
    found = plan.places.pop("forward_kinematics").reshape(len(names), -1)
    plan.places["frame_poses"] = found[:, :POSE]
    if order:
        plan.places["frame_twists"] = found[:, POSE:]
    return plan


def jacobian(robot: Robot, request: Request) -> Plan:
    """Plan the Jacobian of one frame, by default of the last that moves."""
    moving = _frames_that_move(robot)
    names = request.frames or moving[-1:]
    if len(names) != 1:
        raise InputError(f"a Jacobian is of one frame; found {list(names)}")
    frame = find_frame(robot.tree, robot.frames, names[0])
    if frame.body < 0 or robot.tree.body_names[frame.body] not in moving:
        raise InputError(f"loops hold {names[0]!r} where it is; choose a frame that moves")
    about = words.jacobian(names[0], closure_of(robot).n_coordinates, request)
    return _product(
        robot, request, "jacobian", FrameJacobian(frame, request.representation), [about, *_velocities(robot)]
    )


def com(robot: Robot, request: Request) -> Plan:
    """Plan the center of mass."""
    return _product(robot, request, "com", "com", [words.com(request.order)])


def matrix(what: Matrix) -> Callable[[Robot, Request], Plan]:
    """Return what plans a matrix, or the gravity."""

    def plan(robot: Robot, request: Request) -> Plan:
        about = words.by_order(what, closure_of(robot).n_coordinates, request.order)
        return _product(robot, request, what.split("_")[0], what, [about, *_velocities(robot)])

    return plan


def regressor(robot: Robot, request: Request) -> Plan:
    """Plan the regressor of the efforts."""
    closure = closure_of(robot)
    about = [words.regressor(closure.n_efforts, closure.tree.n_bodies, request.order)]
    if closure.base_given:
        about.append("Six rows of the body-fixed wrench on the base stand first.")
    return _product(robot, request, "regressor", "regressor", about)


def _product(robot: Robot, request: Request, name: str, what: Product, about: Sequence[str]) -> Plan:
    """Plan what follows from the motion of the coordinates alone, whose one result has a name."""
    closure, order = closure_of(robot), request.order
    said = f"{name.replace('_', ' ')} of order {order}"
    check_compiled(robot, compiles(closure, order), said)
    looped = LoopedDynamics(closure)
    try:
        kernel = LoopProduct(closure, looped.independence.given, order, what)
    except TooLong:
        check_compiled(robot, False, said)
        raise
    rows, columns = kernel.result
    further = kernel.arguments[0][1][0] - 1  # the highest derivative of the motion
    return Plan(
        looped,
        kernel,
        inputs_of(closure, further),
        {name: np.arange((rows - 1) * columns).reshape(-1, np.prod(kernel.shape))},
        [*about_motion(closure, further), *about],
    )


def _velocities(robot: Robot) -> list[str]:
    """Say which velocities matrices take, or give forces of."""
    closure = closure_of(robot)
    parts = ["of the body-fixed twist of the base"] if closure.base_given else []
    parts += ["of the coordinates in q"] if closure.joints else []
    if closure.platform is not None:
        parts.append(f"{' '.join(closure.platform.rows)} of the body-fixed twist of the platform")
    return [f"Velocities are those {', then '.join(parts)}."]


def _frames_that_move(robot: Robot) -> tuple[str, ...]:
    """Return all bodies but feet, which loops hold where they are."""
    loops = closure_of(robot).loops
    held = {loop.b.body for loop in loops if loop.kind == "weld" and loop.a.body < 0}
    return tuple(name for body, name in enumerate(robot.tree.body_names) if body not in held)
