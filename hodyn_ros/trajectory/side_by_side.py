"""Several motions at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import TIME_RESOLUTION, Trajectory


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
