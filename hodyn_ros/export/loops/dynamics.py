"""Inverse and forward dynamics with loops, as plans."""

from __future__ import annotations

import numpy as np

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.loops.loop_kernel import LoopAccelerations, LoopKernel, TooLong, compiles
from hodyn_ros.errors import InputError
from hodyn_ros.export import words
from hodyn_ros.export.loops.plan import Plan, about_motion, check_compiled, closure_of, inputs_of, leader_of
from hodyn_ros.export.request import Request


def inverse_dynamics(robot: Robot, request: Request, what: str) -> Plan:
    """Plan efforts and the motion of the drives."""
    closure, order = closure_of(robot), request.order
    check_compiled(robot, compiles(closure, order), f"inverse dynamics of order {order}")
    looped = LoopedDynamics(closure)
    kernel = LoopKernel(closure, looped.independence.given, order, request.loads(robot.tree))
    first = 6 if closure.base_given else 0
    found = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)
    places = {"tau": found[kernel.efforts, first:], "motion": found[kernel.drives, first:]}
    about = [*about_motion(closure, order + 2)]
    if first:
        places = {"base_wrench": found[kernel.efforts, :6], **places}
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
        (int(found[-1, 0]), looped.near_singular_from(order)),
    )


def forward_dynamics(robot: Robot, request: Request, what: str) -> Plan:
    """Plan accelerations of the coordinates, and of platform or base."""
    closure, order = closure_of(robot), request.order
    looped = LoopedDynamics(closure)
    inputs, about = forward_inputs(robot, looped, request)
    what = f"forward dynamics of order {order}"
    try:
        kernel = LoopAccelerations(closure, looped.independence.given, order, request.loads(robot.tree))
    except TooLong:
        check_compiled(robot, False, what)
        raise
    found = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)[:-1]
    places = {}
    if closure.leader is not None:
        places["base_acceleration"], found = found[:, :6], found[:, 6:]
        about += words.result_of_base(OPERATIONS["forward_dynamics"], request)
    if closure.joints:
        places["acceleration"] = found
        about.append(f"acceleration: of the coordinates, with derivatives up to order {order}.")
    return Plan(
        looped,
        kernel,
        {**inputs, **request.wrench_shapes()},
        places,
        [*about, *words.wrenches(request)],
    )


def forward_inputs(
    robot: Robot, looped: LoopedDynamics, request: Request
) -> tuple[dict[str, Shape], list[str]]:
    """Return what forward dynamics follows from, and what is said about it."""
    closure, order = looped.closure, request.order
    if looped.independence.idle:
        raise InputError(looped.independence.idle)
    check_compiled(robot, compiles(closure, order), f"forward dynamics of order {order}")
    inputs: dict[str, Shape] = {"state": (2, len(closure.joints))}
    about = ["state: positions and velocities of the coordinates."] if closure.joints else []
    if closure.leader is not None:
        inputs |= {"pose": (4, 4), "twist": (1, 6)}
        about += words.twist(leader_of(closure))
    inputs["tau"] = order + 1, len(closure.driven)
    about.append(f"tau: efforts of the driven joints and their derivatives up to order {order}.")
    if closure.base_given:
        inputs["base_wrench"] = order + 1, 6
        about += words.result_of_base(OPERATIONS["inverse_dynamics"], request)
    return inputs, about
