"""Compiled calls of robots with loops that are more than a law: `hodyn_ros.dynamics.operations` names them.

Each takes the robot's dynamics and an order, those of frames these and a representation besides, and returns
a call of arrays that can write its result into one, `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hodyn_ros.checks import check_result, into
from hodyn_ros.dynamics.kinematics.carriers import last_body
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, drive_rows
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array


def inverse_dynamics(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f([q (order + 3, n),] [pose, twists])` of efforts (order + 1, efforts)."""
    return looped.compile(order)


def drive_state(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return likewise of efforts, and the motion of the drives below them (2 order + 4, efforts)."""
    return looped.compile(order, drives=True)


def joint_motion(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f([q (order + 1, n),] [pose, twists])` of the motion of all joints."""
    return looped.compile_joint_motion(order)


def motion_from_drives(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f(drives (order + 1, driven), [pose, twists])` of the motion of platform and coordinates."""
    return looped.compile_move_drives(order)


def forward_dynamics(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f(state, [pose, twist,] efforts, [base wrench])` of accelerations."""
    return into(looped.forward_call(order))


def inverse_kinematics(
    looped: LoopedDynamics, order: int, names: Sequence[str | int], representation: Representation
) -> Callable[..., Array]:
    """Return `f(seed, poses, twists)` of the motion of the coordinates."""
    closure = looped.closure
    if closure.platform is not None:
        raise InputError(
            f"there is no compiled inverse kinematics of robot {closure.tree.name!r}, which a platform moves"
        )
    moved = names or [last_body(closure.tree)]
    return into(looped.compiled_frames.compiled(order, moved, representation))


def inverse_dynamics_derivatives(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f(q, [pose, twists])` of the partial derivatives of inverse dynamics."""
    quick = looped.quick_partials("efforts", order)

    def compute(*arguments: Array) -> Array:
        whole = quick(*arguments)
        if whole is None:
            check_motion(looped, order + 3, arguments)
            motion = coordinate_motion(looped.closure, arguments[0], base_among(arguments), 2)
            whole = looped.inverse_dynamics_partials(*motion)
            check_result(whole)
        return np.ascontiguousarray(whole.reshape(-1, whole.shape[-1]))

    return into(compute)


def forward_dynamics_derivatives(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f(state, [pose, twist,] torques, [base wrench])` of those of forward dynamics."""
    closure = looped.closure
    n_given = closure.n_given
    count = 2 + n_given + closure.base_given
    quick = looped.quick_partials("accelerations", order)

    def compute(*arguments: Any) -> Array:
        if len(arguments) != count:
            raise InputError(f"expected {count} arguments, found {len(arguments)}")
        if (found := quick(*arguments)) is not None:
            return found.reshape(-1, found.shape[-1])
        state, *rest = arguments
        base = BaseMotion(rest.pop(0), rest.pop(0)) if n_given else None
        y, given = coordinate_motion(closure, state, base, 1)
        efforts = drive_rows(closure, rest[0], rest[1] if closure.base_given else None)
        if len(y) != 2 or len(efforts) != order + 1:
            raise InputError(f"expected a state of 2 rows and efforts of {order + 1}")
        whole = looped.forward_dynamics_partials(y, efforts, given)
        check_result(whole)
        return whole.reshape(-1, whole.shape[-1])

    return into(compute)


def check_motion(looped: LoopedDynamics, rows: int, arguments: Sequence[Array]) -> None:
    """Reject what is no motion of so many rows, with that of platform or base."""
    closure = looped.closure
    n_given = closure.n_given
    shape = rows, len(closure.joints)
    if len(arguments) != 1 + n_given or np.shape(arguments[0]) != shape:
        besides = ", pose and twists of base or platform" * bool(n_given)
        raise InputError(f"expected a motion of shape {shape}{besides}")


def base_among(arguments: Sequence[Array]) -> BaseMotion | None:
    """Return the motion of base or platform that follows that of the coordinates."""
    if len(arguments) == 1:
        return None
    _, pose, twists = arguments
    return BaseMotion(pose, twists if len(twists) else np.zeros((1, 6)))
