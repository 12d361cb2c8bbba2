"""Inverse kinematics of robots with couplings and loops: coordinates that move frames as given."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.kinematics.carriers import FrameMotion
from hodyn_ros.dynamics.kinematics.inverse_problem import (
    Redundancy,
    Targets,
    check_method,
    read_motion,
    read_weights,
)
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array, exp, matvec
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

Frames = TypeVar("Frames", bound=FrameMotion)

_ZERO = 1e-12  # of a column of a Jacobian, relative to the largest: what a coordinate does not move
_STILL = np.zeros((0, 6))
_FEW_STEPS = 4  # beyond them a search for frames takes a shorter step where loops do not close
_BESIDE = 0.05  # [rad], and of the robot's size: where else that is looked at


def solve_frames(
    looped: LoopedMatrices,
    targets: Targets,
    seed: ArrayLike | None,
    redundancy: Redundancy,
    base: BaseMotion | None,
) -> tuple[Array, BaseMotion | None]:
    """Return the motion (order + 1, k) of the joints that are coordinates, and that of a platform.

    `base`: the motion of a prescribed base, with spatial twists. Newton's method starts at `seed` (k,), by
    default at the last success, and follows the loops; derivatives come order by order. The rest as of
    `hodyn_ros.dynamics.kinematics.inverse_problem.read_problem`, weights (coordinates,) those of the rows of
    a platform last.
    """
    closure, order = looped.closure, targets.order
    k = len(closure.joints)
    count = closure.n_coordinates - (6 if closure.base_given else 0)
    independent, weights = redundancy.independent or {}, redundancy.weights
    motions = {coordinate_named(looped, name): values for name, values in independent.items()}
    names = closure.tree.joint_names
    rates = np.zeros((order, count))
    known = looped.known
    y = known.y.copy() if seed is None else finite_array("the seed", seed, (k,)).copy()
    for place, values in motions.items():
        motion = read_motion(names[closure.joints[place]], values, order)
        y[place], rates[:, place] = motion[0], motion[1:]
    pose = known.pose if base is None else base.pose
    frames = [find_frame(closure.tree, looped.frames, name) for name in targets.names]
    w = np.ones(count) if weights is None else read_weights(weights, count)

    start = LoopedFrames(looped, known, y, pose, frames, base, ", ".join(map(str, targets.names)))
    moving = moving_coordinates(start)
    movable = [i for i in moving if i not in motions]
    idle = next((name for name in motions if name not in moving), None)
    if idle is not None:
        label = names[closure.joints[idle]]
        raise InputError(f"joint {label!r} does not move {start.name!r}, so it cannot be independent")
    check_method(redundancy.method, targets, len(moving), len(motions))
    result = targets.followed(start, rates, movable, w)
    moved = result.moved
    closure.check_curves(moved.place.joints, order)
    looped.check_margin(moved, conditions(closure, moved, looped.independence.rows)[0])
    platform = moved.leader_motion if closure.platform is not None else None
    q = np.array([result.y, *(rate[:k] for rate in result.rates)])
    looped.remember(moved, result.y, base if platform is None else platform)
    return q, platform


def coordinate_named(looped: LoopedMotion, name: str | int) -> int:
    """Return the place of a joint, by name or index among the coordinates."""
    closure = looped.closure
    names = [closure.tree.joint_names[joint] for joint in closure.joints]
    if isinstance(name, str) and name in names:
        return names.index(name)
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and 0 <= name < len(names):
        return int(name)
    raise InputError(
        f"independent names {name!r}; the joints of {closure.tree.name!r} that are coordinates are {names}"
    )


def moving_coordinates(start: LoopedFrames) -> list[int]:
    """Return the coordinates that move some of the frames; InputError where none does."""
    sizes = np.abs(start.jacobians[0]).max(axis=0, initial=0.0)
    step = _BESIDE * np.random.default_rng(0).uniform(0.5, 1.0, len(sizes))
    with suppress(HodynError):  # some may do so elsewhere alone, as at a dead point
        near = start.beside(step * start.sizes)
        sizes = np.maximum(sizes, np.abs(near.jacobians[0]).max(axis=0))
    moving = np.flatnonzero(sizes > _ZERO * max(float(sizes.max(initial=0.0)), _ZERO))
    if not len(moving):
        raise InputError(f"no coordinate moves {start.name!r}; choose a body or frame that one does")
    return [int(i) for i in moving]


def _sizes(closure: Closure) -> Array:
    """Return what coordinates but a prescribed base are measured in: one radian, or the robot's size."""
    rows = () if closure.platform is None else closure.platform.rows
    of_rows = [1.0 if row.startswith("r") else closure.size for row in rows]
    return np.array([*closure.joint_sizes[list(closure.joints)], *of_rows])


class LoopedFrames:
    """A `FrameMotion` of a robot with couplings and loops.

    Its coordinates are joints, then rows of a platform, components of its body-fixed twist. The joints (k,)
    at `y`; `pose` is that given of platform or base, and `base` the motion of a prescribed one.
    """

    natural = 1.0  # where a body stops although its coordinate moves, as at a dead point

    def __init__(
        self,
        looped: LoopedMotion,
        known: Known,
        y: Array,
        pose: Array | None,
        frames: Sequence[Frame],
        base: BaseMotion | None,
        name: str,
        most_steps: int = MOST_STEPS,
    ) -> None:
        self._looped, self._frames, self._base, self.name = looped, frames, base, name
        closure = looped.closure
        self.y, self.moved = y, looped.reach(known, y, pose, most_steps)
        if closure.platform is not None:  # some of whose pose may follow
            pose = self.moved.body_pose(closure.platform.body)
            self.moved = LoopMotion(closure, self.moved.place, pose)
        self._known = Known(self.moved.place, y, pose)
        self.position = y if pose is None else np.concatenate([y, pose.ravel()])
        self.poses = [self._pose(frame) for frame in frames]
        self.rates: list[Array] = []
        self.jacobians: list[Array] = []
        self.unit = closure.size
        self.sizes = _sizes(closure)
        of_tree = embedding.distribution(looped.independence.rows, self.moved, 0)[0]
        of_tree = of_tree[:, -len(self.sizes) :] * self.sizes / closure.scale[:, None]
        self.gain = max(1.0, float(np.linalg.norm(of_tree, axis=0).max(initial=0.0)))
        self._extend_jacobians()

    def beside(self, change: Array) -> LoopedFrames:
        """Return the frames where coordinates differ by a change, the loops followed on their way there."""
        closure, k = self._looped.closure, len(self.y)
        pose = self._known.pose
        if pose is not None and closure.platform is not None:
            pose = pose @ exp(closure.directions @ change[k:])
        y = self.y + change[:k]
        frames = self._looped, self._known, y, pose, self._frames, self._base, self.name
        return LoopedFrames(*frames, most_steps=_FEW_STEPS)

    def extend(self, rates: Array) -> None:
        """Go one order higher with the next derivative (coordinates,) of the motion."""
        self.moved.extend(self._rate(rates))
        self.rates.append(rates)
        self._extend_jacobians()

    def bias(self) -> Array:
        """Return the next derivative (6 F,) of the twists if that of the rates were zero."""
        r = len(self.rates)
        velocities = [*self.moved.rates, self._rate(np.zeros(self.jacobians[0].shape[1]))]
        parts = []
        for f, frame in enumerate(self._frames):
            twist = product_derivative(self._of_body(frame, r), velocities, r, matvec)
            twists = self._twists(frame)
            parts.append(self._in_hybrid([*twists[:r], twist], f, twists)[r])
        return np.concatenate(parts)

    def _rate(self, rates: Array) -> Array:
        """Return the next derivative of the velocities of the tree from that of the coordinates."""
        known = rates
        if self._base is not None:
            known = np.concatenate([self._base.twists[len(self.rates)], rates])
        return embedding.rate_of(self._looped.independence.rows, self.moved, known)

    def _extend_jacobians(self) -> None:
        r, first = len(self.rates), 0 if self._base is None else 6
        F = embedding.distribution(self._looped.independence.rows, self.moved, r)
        parts = []
        for f, frame in enumerate(self._frames):
            of_body = self._of_body(frame, r)
            columns = [product_derivative(of_body, F, k, np.matmul)[:, first:].T for k in range(r + 1)]
            parts.append(self._in_hybrid(columns, f, self._twists(frame))[r].T)
        self.jacobians.append(np.concatenate(parts))

    def _of_body(self, frame: Frame, order: int) -> list[Array]:
        """Return the spatial Jacobians (6, m) of a body by order."""
        return [self.moved.body_jacobian(frame.body, k) for k in range(order + 1)]

    def _pose(self, frame: Frame) -> Array:
        result: Array = frame.pose if frame.body < 0 else self.moved.body_pose(frame.body) @ frame.pose
        return result

    def _twists(self, frame: Frame) -> list[Array]:
        return [] if frame.body < 0 else self.moved.twists_of(frame.body)

    def _in_hybrid(self, spatial: Sequence[Array], f: int, twists: Sequence[Array]) -> Array:
        return convert_screws(list(spatial), self.poses[f], list(twists), "spatial", "hybrid")
