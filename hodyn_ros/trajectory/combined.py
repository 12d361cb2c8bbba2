"""Motions made of others: at another speed, with joints in another order, several at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import TIME_RESOLUTION, Pieces, Trajectory
from hodyn_ros.trajectory.checks import frozen_array, real_number, unique_names


class _OfMotion(Trajectory):
    """A motion made of another one, which it is like but for what a subclass says."""

    motion: Trajectory

    def _take_over(self, **changed: Any) -> None:
        """Set what all trajectories have, as the motion has it where nothing else is given."""
        motion = self.motion
        kept = {
            "joint_names": motion.joint_names,
            "n_joints": motion.n_joints,
            "duration": motion.duration,
            "smoothness": motion.smoothness,
            "starts_at_rest": motion.starts_at_rest,
            "ends_at_rest": motion.ends_at_rest,
            "_departure": motion._departure,
        }
        self._set(**kept | changed)

    @property
    def breakpoints(self) -> Array | None:
        """Those of the motion."""
        return self.motion.breakpoints

    @property
    def highest_frequency(self) -> float:
        """That of the motion [rad/s]."""
        return self.motion.highest_frequency

    @property
    def polynomial_degree(self) -> int | None:
        """That of the motion."""
        return self.motion.polynomial_degree

    def _smoother(self, order: int) -> str:
        return self.motion._smoother(order)


@dataclass(frozen=True, eq=False)
class ScaledTime(_OfMotion):
    """The motion `q(speed t)`: the same path, each k-th derivative times `speed^k`.

    >>> from hodyn_ros.trajectory import WaypointSpline
    >>> slow = ScaledTime(WaypointSpline([0.0, 1.0], [[0.0], [1.0]]), 0.5)
    >>> slow.duration, slow.sample(1.0, 0)[0].round(6)
    (2.0, array([0.5]))
    """

    motion: Trajectory
    speed: float

    def __post_init__(self) -> None:
        speed = real_number("speed", self.speed, positive=True)
        motion = self.motion
        lasts, departure = motion.duration / speed, motion._departure / speed
        self._take_over(speed=speed, duration=lasts, _departure=departure)

    @property
    def breakpoints(self) -> Array | None:
        """Those of the motion, at this speed."""
        points = self.motion.breakpoints
        return None if points is None else points / self.speed

    @property
    def highest_frequency(self) -> float:
        """That of the motion, at this speed [rad/s]."""
        return self.motion.highest_frequency * self.speed

    @property
    def pieces(self) -> Pieces | None:
        """Those of the motion, passed at this speed."""
        inner, speed = self.motion.pieces, self.speed
        if inner is None:
            return None
        return replace(
            inner,
            derivatives=lambda u, order: inner.derivatives(u, order) * self._powers(order),
            speeds=lambda u: inner.speeds(u) * speed,
            times=lambda u: inner.times(u) / speed,
            places=lambda times: inner.places(times * speed),
        )

    def _derivatives(self, times: Array, order: int) -> Array:
        inside = np.clip(times * self.speed, self.motion._departure, self.motion.duration)
        return self.motion._derivatives(inside, order) * self._powers(order)

    def _powers(self, order: int) -> Array:
        return np.asarray(self.speed ** np.arange(order + 1.0))[:, None, None]


@dataclass(frozen=True, eq=False)
class Rearranged(_OfMotion):
    """A motion whose column j is column `places[j]` of the result; the other columns stand still.

    `still` (columns,): where each column stands [rad or m]; what it holds for columns that move is not used.

    >>> from hodyn_ros.trajectory import Cosines
    >>> Rearranged(Cosines([2.0, 3.0], [1.0, 1.0]), [2, 0], [0.0, 0.5, 0.0]).sample(0.0, 2)
    array([[ 3. ,  0.5,  2. ],
           [-0. ,  0. , -0. ],
           [-3. ,  0. , -2. ]])
    """

    motion: Trajectory
    places: Sequence[int]
    still: ArrayLike
    joint_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        motion, still = self.motion, frozen_array("standing", self.still, ("columns",))
        places, n = tuple(self.places), len(still)
        if len(places) != motion.n_joints or len(set(places) & set(range(n))) != motion.n_joints:
            raise InputError(
                f"places must hold {motion.n_joints} different columns out of {n}, found {list(places)}"
            )
        names = unique_names(self.joint_names, n)
        self._take_over(places=places, still=still, joint_names=names, n_joints=n)

    @property
    def pieces(self) -> Pieces | None:
        """Those of the motion."""
        inner = self.motion.pieces
        if inner is None:
            return None
        return replace(inner, derivatives=lambda u, order: self._placed(inner.derivatives(u, order)))

    def _derivatives(self, times: Array, order: int) -> Array:
        return self._placed(self.motion._derivatives(times, order))

    def _placed(self, moved: Array) -> Array:
        """Return derivatives (order + 1, N, columns) from those of the motion."""
        values = np.zeros((*moved.shape[:2], self.n_joints))
        values[0] = self.still
        values[..., self.places] = moved
        return values


@dataclass(frozen=True, eq=False)
class SideBySide(Trajectory):
    """Several motions at once, their joints one after the other; a motion that ends earlier ends at rest.

    >>> from hodyn_ros.trajectory import Cosines, WaypointSpline
    >>> both = SideBySide([WaypointSpline([0.0, 1.0], [[0.0], [2.0]]), Cosines([3.0], [1.0])])
    >>> both.sample(0.0, 2)
    array([[ 0.,  3.],
           [ 0., -0.],
           [ 0., -3.]])
    """

    parts: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise InputError("at least one motion is needed")
        duration = max(part.duration for part in parts)
        for part in parts:
            if part.duration < duration - TIME_RESOLUTION and not part.ends_at_rest:
                raise InputError(
                    f"one motion ends at {part.duration:g} s, not at rest, and another at {duration:g} s; "
                    "let them end together, or the first one at rest"
                )
        self._set(
            parts=parts,
            joint_names=_names(parts),
            n_joints=sum(part.n_joints for part in parts),
            duration=duration,
            smoothness=min(part.smoothness for part in parts),
            starts_at_rest=all(part.starts_at_rest for part in parts),
            ends_at_rest=all(part.ends_at_rest for part in parts),
        )

    @property
    def breakpoints(self) -> Array | None:
        """Those of all motions, and the ends of those that end earlier."""
        points: list[Array] = []
        for part in self.parts:
            if part.breakpoints is None:
                return None
            points.append(part.breakpoints)
        ends = [part.duration for part in self.parts if math.isfinite(part.duration)]
        return np.unique(np.concatenate([*points, ends]))

    @property
    def highest_frequency(self) -> float:
        """The highest of all motions [rad/s]."""
        return max(part.highest_frequency for part in self.parts)

    @property
    def polynomial_degree(self) -> int | None:
        """The highest of all motions, where all are polynomials of time."""
        degrees = [part.polynomial_degree for part in self.parts]
        known = [degree for degree in degrees if degree is not None]
        return max(known) if len(known) == len(degrees) else None

    def _derivatives(self, times: Array, order: int) -> Array:
        return np.concatenate([part._held_derivatives(times, order) for part in self.parts], axis=2)

    def _smoother(self, order: int) -> str:
        return min(self.parts, key=lambda part: part.smoothness)._smoother(order)


def _names(parts: Iterable[Trajectory]) -> tuple[str, ...] | None:
    """Return the names of all joints, or None where some have none; raise InputError for one given twice."""
    names: list[str] = []
    for part in parts:
        if part.joint_names is None:
            return None
        for name in part.joint_names:
            if name in names:
                raise InputError(f"joint {name!r} is moved twice")
            names.append(name)
    return tuple(names)
