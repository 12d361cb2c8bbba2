"""Poses, twists and joint screws of all bodies, with their time derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics.motion_stack import fitting_base, joint_stack
from hodyn_ros.dynamics.named_frames import find_frame, supporting_bodies
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.formulations.body_fixed import BodyFixedMotion
from hodyn_ros.formulations.hybrid import HybridMotion
from hodyn_ros.formulations.spatial import SpatialMotion
from hodyn_ros.lie.motion import BaseMotion, Stack, pose_derivatives
from hodyn_ros.lie.representations import Representation, check_representation, convert_screws
from hodyn_ros.lie.se3 import Ad, Array, inverse, matvec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

_MOTIONS: dict[Representation, Callable[..., Any]] = {
    "spatial": SpatialMotion,
    "body_fixed": BodyFixedMotion,
    "hybrid": HybridMotion,
}


@dataclass(frozen=True, eq=False)
class Kinematics:
    """The motion of all bodies of a robot up to some order, in one representation of twists.

    Axes are (derivative order, body or joint, component); a batch of N samples adds a leading axis to every
    array. Bodies and joints come in the order of `model.body_names` and `model.joint_names`. Representations:
    "spatial" (world axes, at the world origin), "body_fixed" (body axes, body origin), "hybrid" (world axes,
    body origin).
    """

    model: TreeModel
    poses: Array  # (bodies, 4, 4) in the world [m]
    twists: Array  # (order, bodies, 6): (omega; v) [rad/s, m/s] and its derivatives
    screws: Array  # (order + 1, joints, 6) joint screws, of the body each joint moves, and their derivatives
    representation: Representation
    frames: Mapping[str, Frame] = field(default_factory=dict)  # besides the bodies

    def __post_init__(self) -> None:
        for array in (self.poses, self.twists, self.screws):
            array.setflags(write=False)

    def __getattr__(self, name: str) -> Array:
        """Take an array that is asked for the first time from what the engine has computed."""
        unpack = _UNPACKED.get(name)
        if unpack is None or "table" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        array: Array = unpack(self.model, self.__dict__["table"])
        self.__dict__[name] = array
        return array

    @property
    def order(self) -> int:
        """Number of time derivatives of the poses."""
        return int(self.twists.shape[-3])

    @finite_result
    def in_representation(self, representation: Representation) -> Kinematics:
        """Return the same motion in another representation, converted with all derivatives."""
        check_representation(representation)
        if representation == self.representation:
            return self
        source, twists = self.representation, _order_first(self.twists)
        moved = slice(self.model.first_jointed_body, None)
        screws = convert_screws(
            _order_first(self.screws),
            self.poses[..., moved, :, :],
            twists[..., moved, :],
            source,
            representation,
        )
        return replace(
            self,
            twists=_order_behind(convert_screws(twists, self.poses, twists, source, representation)),
            screws=_order_behind(screws),
            representation=representation,
        )

    @finite_result
    def pose_of(self, name: str | int) -> Array:
        """Return the pose (4, 4) of a body or of a named frame in the world [m]; InputError if unknown."""
        body, offset = find_frame(self.model, self.frames, name)
        if body < 0:
            return np.array(np.broadcast_to(offset, (*self.poses.shape[:-3], 4, 4)))
        pose: Array = self.poses[..., body, :, :] @ offset
        return pose

    @finite_result
    def twists_of(self, name: str | int) -> Array:
        """Return the twist of a body or of a named frame with its derivatives (order, 6).

        Body-fixed and hybrid twists of a named frame are about its own origin, body-fixed ones in its axes.
        Raises InputError for an unknown name.
        """
        result = self._twists_of(find_frame(self.model, self.frames, name))
        return result if result.ndim == 2 else np.moveaxis(result, 0, -2)

    @finite_result
    def pose_derivatives_of(self, name: str | int) -> Array:
        """Return the pose of a body or named frame with its time derivatives (order + 1, 4, 4).

        `C^(k)` of the homogeneous matrix, [1/s^k] and [m/s^k]; Ali et al., eq. 20. InputError if unknown.
        """
        pose, twists = self.pose_of(name), self._twists_of(find_frame(self.model, self.frames, name))
        spatial = convert_screws(twists, pose, twists, self.representation, "spatial")
        return np.moveaxis(pose_derivatives(pose, spatial), 0, -3)

    @finite_result
    def jacobian_of(self, name: str | int) -> Array:
        """Return the Jacobian of a body or of a named frame with its derivatives (order + 1, 6, joints).

        It takes joint velocities to the twist, as in `twists_of`, of the frame relative to the robot's base.
        Raises InputError for an unknown name.
        """
        frame = find_frame(self.model, self.frames, name)
        path = [j for j in supporting_bodies(self.model, frame.body) if j >= self.model.first_jointed_body]
        joints = [self.model.joint_of(j) for j in path]
        result = np.zeros((*self.screws.shape[:-2], 6, self.model.n_joints))
        if not joints:
            return result
        spatial = self.in_representation("spatial")
        columns = _order_first(spatial.screws[..., joints, :])
        if self.representation != "spatial":
            many = columns.shape[1:-1]
            pose = np.broadcast_to(self.pose_of(name)[..., None, :, :], (*many, 4, 4))
            twists = spatial._twists_of(frame)[..., None, :]
            twists = np.broadcast_to(twists, (len(twists), *many, 6))
            columns = convert_screws(columns, pose, twists, "spatial", self.representation)
        result[..., joints] = _order_behind(columns).swapaxes(-1, -2)
        return result

    def _twists_of(self, frame: Frame) -> Array:
        """Return the twists (order, ..., 6) of a frame, the order on axis 0."""
        twists = _order_first(self.twists)
        if frame.body < 0:
            return np.zeros((*twists.shape[:-2], 6))
        twists = twists[..., frame.body, :]
        if self.representation == "spatial" or np.array_equal(frame.pose, np.eye(4)):
            return twists
        pose = self.poses[..., frame.body, :, :]
        own = convert_screws(twists, pose, twists, self.representation, "body_fixed")
        own = matvec(Ad(inverse(frame.pose)), own)
        return convert_screws(own, pose @ frame.pose, own, "body_fixed", self.representation)


@finite_result
def forward_kinematics(
    model: TreeModel,
    q: ArrayLike,
    base: BaseMotion | None = None,
    representation: Representation = "spatial",
    frames: Mapping[str, Frame] | None = None,
) -> Kinematics:
    """Compute poses, twists and joint screws of all bodies with their derivatives, in readable form.

    `q` (order + 1, joints) positions and derivatives [rad or m, /s^k], or a batch (N, order + 1, joints);
    `base` the motion of a floating base with `order` twists. Each representation has a recursion of its own.
    Mueller (2020), Algorithm 1; Ali et al., Algorithm 1. Raises InputError saying what was expected.
    """
    stack, moving = checked_motion(model, q, base, representation)
    if moving is not None and moving.batch:
        each = [
            forward_kinematics(
                model, one, BaseMotion(*own, representation=moving.representation), representation, frames
            )
            for one, *own in zip(stack, moving.pose, moving.twists)
        ]
        return replace(
            each[0],
            poses=np.array([one.poses for one in each]),
            twists=np.array([one.twists for one in each]),
            screws=np.array([one.screws for one in each]),
        )
    order = stack.shape[-2] - 1
    by_order = np.moveaxis(stack, -2, 0)
    batch = by_order.shape[1:-1]
    motion = _MOTIONS[representation](model, by_order, moving)
    return Kinematics(
        model=model,
        poses=np.stack([np.broadcast_to(pose, (*batch, 4, 4)) for pose in motion.poses], axis=-3),
        twists=_stacked(motion.twists, order, batch),
        screws=_stacked(motion.screws[model.first_jointed_body :], order + 1, batch),
        representation=representation,
        frames={} if frames is None else frames,
    )


def checked_motion(
    model: TreeModel, q: ArrayLike | None, base: BaseMotion | None, representation: Representation
) -> tuple[Array, BaseMotion | None]:
    """Check what forward kinematics is given; returns the stack, and the motion of a floating base."""
    check_representation(representation)
    stack = joint_stack(model, q, 0, "the motion").q
    return stack, fitting_base(model, base, stack.shape[-2] - 1, stack.shape[:-2])


def unpacked(
    model: TreeModel, table: Array, representation: Representation, frames: Mapping[str, Frame]
) -> Kinematics:
    """Return what `frame_motion` of the engine has computed of all bodies, (..., bodies, N)."""
    table.setflags(write=False)
    result = object.__new__(Kinematics)  # without its constructor: arrays are unpacked when asked for
    result.__dict__.update(model=model, table=table, representation=representation, frames=frames)
    return result


def _poses(model: TreeModel, table: Array) -> Array:
    return table[..., :POSE].reshape(*table.shape[:-1], 4, 4)


def _twists(model: TreeModel, table: Array) -> Array:
    order = _order_of(table)
    return table[..., POSE : POSE + 6 * order].reshape(*table.shape[:-1], order, 6).swapaxes(-2, -3)


def _screws(model: TreeModel, table: Array) -> Array:
    order = _order_of(table)
    moved = table[..., model.first_jointed_body :, POSE + 6 * order :]
    return moved.reshape(*moved.shape[:-1], order + 1, 6).swapaxes(-2, -3)


def _order_of(table: Array) -> int:
    """Return the order of a table: rows are a pose, as many twists, and one screw more."""
    return int(table.shape[-1] - POSE - 6) // 12


_UNPACKED = {"poses": _poses, "twists": _twists, "screws": _screws}


def _order_first(stack: Array) -> Array:
    """Return a stack (..., orders, bodies, 6) with the orders on axis 0."""
    return stack if stack.ndim == 3 else np.moveaxis(stack, -3, 0)


def _order_behind(stack: Array) -> Array:
    """Return a stack with the orders on axis 0 as (..., orders, bodies, 6)."""
    return stack if stack.ndim == 3 else np.moveaxis(stack, 0, -3)


def _stacked(items: Sequence[Stack], orders: int, batch: tuple[int, ...]) -> Array:
    """Stack vectors `items[j][r]` (..., 6) to an array (..., orders, items, 6)."""
    result = np.zeros((*batch, orders, len(items), 6))
    for j, item in enumerate(items):
        for r in range(orders):
            result[..., r, j, :] = item[r]
    return result
