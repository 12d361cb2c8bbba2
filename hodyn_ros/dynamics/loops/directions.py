"""Directions in which the motion of a robot with couplings and loops is changed, for partial derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from hodyn_ros.dynamics.loops.grounded import SHIFT, grounded
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.engine.series.dual import Dual
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, ad, hat, inverse
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.loops import ROWS


class Directions:
    """Which direction each coordinate and each of its derivatives is changed in.

    `count` coordinates: the displacement of a prescribed base (6), joints, rows of a platform; `size`: as
    many directions for each of `orders`, and some `more`. `closure` and `moved` are those of the robot at its
    place, of order 0, or where some rows of a floating base are coordinates, of the same on the ground.
    `turns` (6, count): the body-fixed displacements of base or platform by the coordinates.
    """

    def __init__(
        self, looped: LoopedMotion, moved: LoopMotion, given: BaseMotion | None, orders: int, more: int = 0
    ) -> None:
        closure = looped.closure
        part, self.rows = platform_part(closure)  # of the body-fixed displacement
        # rows that leave other components of the motion to follow as the pose has it
        self.drifts = closure.drifts
        self._looped, self._on_joints = looped, self.drifts and closure.tree.floating_base
        if self._on_joints and given is not None:
            closure, place = grounded(closure, moved.place)
            moved = LoopMotion(closure, place, given.pose)
        self.closure, self.moved, self.given = closure, moved, given
        self.first_joint = 6 if closure.base_given else 0
        self._part = part
        self.count = len(closure.joints) + len(self.rows)
        self.size = orders * self.count + more
        self.turns = turns_of(closure)

    def follow_platform(self, velocities: Array) -> None:
        """Take the motion of the platform for given that it has, with `velocities` (k,) of the joints.

        Where rows leave components of it to follow, these may have been given otherwise.
        """
        if not self.drifts or self.given is None:
            return
        chosen = self._looped.independence.rows
        self.moved.extend(embedding.next_rate(chosen, self.moved, velocities, self.given.twists[0]))
        self.given = self.moved.leader_motion
        assert self.given is not None and self.closure.leader is not None
        self.moved = LoopMotion(self.closure, self.moved.place, self.given.pose)
        of_body = self.moved.body_jacobian(self.closure.leader) @ self._distribution()
        self.turns = Ad(inverse(self.given.pose)) @ of_body

    def places(self, wrenches: Sequence[AppliedWrench]) -> LoadPlaces:
        """Return where wrenches act."""
        shift = SHIFT if self._on_joints else 0
        return tuple((body + shift, frame) for body, frame in self._looped.places(wrenches))

    def unit(self, order: int, coordinate: int) -> Array:
        """Return the direction of a coordinate's derivative."""
        unit = np.zeros(self.size)
        unit[order * self.count + coordinate] = 1.0
        return unit

    def joints(self, y: Array) -> list[list[Dual]]:
        """Return the motion of the joints, each number changed in its direction."""
        return [
            [Dual(x, self.unit(k, self.first_joint + j)) for j, x in enumerate(row)]
            for k, row in enumerate(y)
        ]

    def changes(self, rows: Sequence[Sequence[Dual | float]]) -> Array:
        """Return the derivatives (rows, columns, directions) of a table."""
        return np.array(
            [[x.change if isinstance(x, Dual) else np.zeros(self.size) for x in row] for row in rows]
        ).reshape(len(rows), -1, self.size)

    def closed(self) -> tuple[list[Dual], list[float]]:
        """Return positions of the leading joints with their derivatives, an error of zero, and the memory."""
        closure, place = self.closure, self.moved.place
        F = self._distribution()[closure.first :].copy()
        if self.drifts and self.given is not None:  # whose given pose need not be the one it has
            chosen, still = self._looped.independence.rows, np.zeros(len(closure.joints))
            for column in range(self._part.start, self._part.stop):
                twist = Ad(self.given.pose) @ self.turns[:, column]
                F[:, column] = embedding.next_rate(chosen, self.moved, still, twist)
        if closure.base_given and place.base is not None:
            F[:, :6] = F[:, :6] @ Ad(place.base)
        changes = np.zeros((len(closure.leading) + 1, self.size))
        changes[:-1, : self.count] = F
        positions = [float(place.joints[joint]) for joint in closure.leading]
        return [Dual(x, change) for x, change in zip([*positions, 0.0], changes)], positions

    def leader(self, orders: int) -> tuple[list[list[list[Dual]]], FloatingBase | None]:
        """Return pose and `orders` spatial twists of platform or base, and the series of that motion."""
        motion = self.given
        if motion is None:
            return [], None
        turns = np.zeros((4, 4, self.size))
        for coordinate, twist in enumerate(self.turns.T):
            turns[:, :, coordinate] = motion.pose @ _generator(twist)
        pose = [
            [Dual(float(x), change) for x, change in zip(row, changes)]
            for row, changes in zip(motion.pose, turns)
        ]
        base = FloatingBase(pose, (0.0, 0.0, 0.0), "body_fixed")
        for k, twist in enumerate(motion.in_representation("body_fixed").twists[:orders]):
            changes = self.turns @ np.array([self.unit(k + 1, place) for place in range(self.count)])
            moving = [Dual(float(x), change) for x, change in zip(twist, changes)]
            base.extend([x * (1.0 / factorial(k)) for x in moving])
        base.frame = "spatial"
        twists = [[x * float(factorial(k)) for x in base.twist(k)] for k in range(orders)]
        return [pose, twists], base

    def _distribution(self) -> Array:
        return embedding.distribution(self._looped.independence.rows, self.moved, 0)[0]


def platform_part(closure: Closure) -> tuple[slice, list[int]]:
    """Return which coordinates are rows of a platform or base, and which of its body-fixed twist they are."""
    if closure.base_given:
        return slice(0, 6), list(range(6))
    first, platform = len(closure.joints), closure.platform
    rows = [] if platform is None else [ROWS.index(row) for row in platform.rows]
    return slice(first, first + len(rows)), rows


def turns_of(closure: Closure) -> Array:
    """Return the body-fixed displacements (6, coordinates) of platform or base by the coordinates."""
    part, rows = platform_part(closure)
    turns = np.zeros((6, closure.n_coordinates))
    if rows:
        turns[:, part] = closure.directions
    return turns


def displacement_brackets(turns: Array, given: BaseMotion, orders: int) -> Array:
    """Return the matrices of `e -> [w, e]` by order of w: displacements e, of base or platform."""
    brackets: Array = np.linalg.pinv(turns) @ ad(given.twists_in("body_fixed", orders)) @ turns
    return brackets


def _generator(twist: Array) -> Array:
    """Return the matrix (4, 4) of a twist."""
    result = np.zeros((4, 4))
    result[:3, :3], result[:3, 3] = hat(twist[:3]), twist[3:]
    return result
