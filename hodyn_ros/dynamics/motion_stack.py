"""Derivative stacks as calls are given them, and results with the order back in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.formulations.body_jacobians import BodyJacobians, joint_motion
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel

HIGHEST_ORDER = 30


@dataclass(frozen=True, eq=False)
class MotionStack:
    """A checked motion: `q` (..., order + 1 + rates, n), and the base in the representation asked for.

    `loads`: wrenches that are applied along it.
    """

    q: Array
    base: BaseMotion | None
    order: int
    loads: Sequence[AppliedWrench] = ()

    @property
    def by_order(self) -> Array:
        """The motion with the order on axis 0, a batch behind it."""
        return np.moveaxis(self.q, -2, 0)

    def bodies(self, tree: JointTree) -> BodyJacobians:
        """Return the Jacobians of all bodies, in the form of Garofalo et al."""
        return BodyJacobians(tree, joint_motion(tree, self.by_order, self.base))

    @property
    def velocities(self) -> list[Array]:
        """The velocities (..., m) by order up to that of the result, those of a base first."""
        joints = [self.q[..., k + 1, :] for k in range(self.order + 1)]
        if self.base is None:
            return joints
        _, twists = self.base.in_representation("body_fixed").arrays(self.order + 1, self.batch)
        return [np.concatenate([twists[..., k, :], w], axis=-1) for k, w in enumerate(joints)]

    @property
    def frame(self) -> BaseRepresentation:
        """The representation of the twists of the base."""
        return "body_fixed" if self.base is None else self.base.representation

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: () or (N,)."""
        return self.q.shape[:-2]

    def arguments(self) -> list[Array]:
        """Return what kernels take: q and, of a floating base, its pose and twists, then wrenches."""
        base = [] if self.base is None else self.base.arrays(self.q.shape[-2] - 1, self.batch)
        return [self.q, *base, *applied(self.loads, self.order, self.batch)]

    def call(self, kernel: Function, *further: Array) -> Array:
        """Call a kernel with one sample or a batch; `further`: what it takes besides."""
        result: Array = (kernel.batch if self.batch else kernel.function)(*self.arguments(), *further)
        return result


def motion_stack(
    model: TreeModel,
    q: ArrayLike | None,
    base: BaseMotion | None,
    rates: int,
    frame: BaseRepresentation = "body_fixed",
    loads: Sequence[AppliedWrench] = (),
) -> MotionStack:
    """Check a motion whose result of order r needs `rates` derivatives more than r.

    That of the base is put into the representation `frame`. Raises InputError saying what was expected and
    found.
    """
    joints = joint_stack(model, q, rates, "the motion")
    motion = fitting_base(model, base, joints.q.shape[-2] - 1, joints.batch)
    return replace(joints, base=motion and motion.in_representation(frame), loads=loads)


def joint_stack(model: TreeModel, q: ArrayLike | None, rates: int, name: str) -> MotionStack:
    """Check the motion of the joints alone, as in `motion_stack`; `name` says in errors what it is."""
    stack = joint_rows(model.n_joints, q, rates, name)
    check_finite(name, stack)
    return MotionStack(stack, None, stack.shape[-2] - 1 - rates)


def joint_rows(n: int, q: ArrayLike | None, rates: int, name: str = "the motion") -> Array:
    """Return the motion of n joints (..., order + 1 + rates, n), perhaps of a batch, its shape checked."""
    shapes = f"(order + {rates + 1}, {n}) or (N, order + {rates + 1}, {n})"
    stack = real_array(name, q, shapes)
    if stack.ndim not in (2, 3) or stack.shape[-1] != n or stack.shape[-2] <= rates:
        what = ("positions", "velocities", "accelerations")[: rates + 1]
        raise ShapeError(name, f"{shapes}: {', '.join(what)} at least", stack.shape)
    return stack


def whole_order(order: object) -> int:
    """Return an order that is one; InputError for anything else."""
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
        raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
    return int(order)


def check_order(order: int, said: str, shape: tuple[int, ...] = ()) -> None:
    """Reject what would take minutes to compile, and is most likely samples where derivatives belong.

    `said` has {} where an error names the shape.
    """
    if order > HIGHEST_ORDER:
        raise InputError(
            f"{said.format(shape)} {order}, and {HIGHEST_ORDER} is the highest there is; the samples of a "
            "batch stand before the derivatives: (N, order + 3, n)"
        )


def in_place(values: Sequence[Array], batch: tuple[int, ...]) -> Array:
    """Stack values (..., shape) by order to (order, shape), or (N, order, shape) for a batch."""
    return np.ascontiguousarray(np.moveaxis(np.stack(values), 0, len(batch)))


def applied(loads: Sequence[AppliedWrench], order: int, batch: tuple[int, ...]) -> list[Array]:
    """Return applied wrenches (order + 1, 6), once for every sample of a batch."""
    values = [load.up_to(order) for load in loads]
    return [np.tile(value, (*batch, 1, 1)) for value in values] if batch else values


def fitting_base(
    model: TreeModel, base: BaseMotion | None, n_twists: int, batch: tuple[int, ...] = ()
) -> BaseMotion | None:
    """Return the motion of a floating base after checking that it holds `n_twists` twists or more.

    Of a call with a `batch`, it may be one motion for all samples, or one for each.

    Raises InputError for the motion of a fixed base, or a floating one without its motion.
    """
    moving = required_base(model.name, base, "has a floating base" if model.floating_base else "")
    if moving is None:
        return None
    if moving.batch not in ((), batch):
        of = f"those of {batch[0]}" if batch else "that of one sample"
        raise InputError(f"base holds motions of {moving.batch[0]} samples; this needs {of}")
    check_twists(moving, n_twists)
    return moving


def required_base(robot: str, base: BaseMotion | None, moves: str) -> BaseMotion | None:
    """Return the motion of what moves as prescribed, which `moves` says, nothing of a robot on the ground."""
    if base is not None and not isinstance(base, BaseMotion):
        raise InputError(f"base must be a BaseMotion, found {type(base).__name__}")
    if moves and base is None:
        raise InputError(f"robot {robot!r} {moves}; give its motion as base=BaseMotion(...)")
    if base is not None and not moves:
        raise InputError(f"robot {robot!r} has a fixed base; a base motion does not apply")
    return base


def check_twists(base: BaseMotion, needed: int) -> None:
    """Reject the motion of a base without as many twists."""
    if base.orders < needed:
        raise InputError(
            f"this needs {needed} base twists (the twist and its derivatives), found {base.orders}"
        )


def load_places(tree: TreeModel, loads: Sequence[AppliedWrench]) -> Loads:
    """Return where wrenches act: the bodies, and the frames that they are given in."""
    return tuple((tree.body_index(load.body), load.representation) for load in loads)


def too_large(tree: TreeModel, what: str, order: int) -> InputError:
    """Say that code would take too long to compile."""
    return InputError(
        f"robot {tree.name!r} is too large to compile {what} of order {order} in seconds; the call "
        f"robot.{what}(...) computes it"
    )
