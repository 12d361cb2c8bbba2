"""What sound chunks of a policy do at most, from recorded actions or from the limits of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError

_NOISES = 10.0  # deviations of single points: four of `p[k-1] - 2 p[k] + p[k+1]`, whose own are sqrt(6) times


@dataclass(frozen=True, eq=False)
class ChunkBounds:
    """Bounds (n,) of sound chunks, whose points are `spacing` [s] apart. Read m for rad where a joint slides.

    Attributes:
        spacing: Time between two points [s].
        bend: Largest `|p[k-1] - 2 p[k] + p[k+1]|` of points in a row (n,) [rad].
        seam: By how much a chunk mostly disagrees at most with the one before, at the same time [rad].
        jump: Beyond which a chunk is no change of mind any more, until a third one agrees [rad].
        repeats: How many points in a row may be the same, bit for bit, while all others move; one where the
            policy computes with real numbers, more where its actions are steps of a grid.
    """

    spacing: float
    bend: Array
    seam: float = 0.05
    jump: float = 0.5
    repeats: int = 1

    def __post_init__(self) -> None:
        bend = np.array(self.bend, dtype=np.float64)
        if bend.ndim != 1 or not (np.isfinite(bend) & (bend > 0.0)).all():
            raise InputError(f"bend must hold a positive number for each joint, found {bend}")
        for name in ("spacing", "seam", "jump"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise InputError(f"{name} must be positive and finite, found {getattr(self, name)}")
        if self.repeats < 1:
            raise InputError(f"repeats must be 1 or more, found {self.repeats}")
        object.__setattr__(self, "bend", bend)

    @classmethod
    def of_actions(
        cls,
        episodes: Sequence[ArrayLike],
        spacing: float,
        *,
        margin: float = 2.0,
        seam: float = 0.05,
        jump: float = 0.5,
    ) -> ChunkBounds:
        """Return what recorded actions, or sound chunks, (N, n) each, show: `margin` times the most of them.

        A few thousand points are enough. Raises InputError where none of them has three points.
        """
        recorded = [np.asarray(each, dtype=np.float64) for each in episodes]
        recorded = [each for each in recorded if each.ndim == 2 and len(each) >= 3]
        if not recorded or not all(np.isfinite(each).all() for each in recorded):
            raise InputError("give episodes as arrays (3 points or more, joints) of finite numbers")
        bend = np.max([np.abs(np.diff(each, 2, axis=0)).max(axis=0) for each in recorded], axis=0)
        steps = np.max([np.abs(np.diff(each, axis=0)).max(axis=0) for each in recorded], axis=0)
        least = 1e-3 * max(float(steps.max()), 1e-6)  # of a joint that has never moved
        repeats = max(longest_repeat(each)[1] for each in recorded)
        return cls(spacing, np.maximum(margin * bend, least), seam, jump, repeats)

    @classmethod
    def of_robot(
        cls, robot: Robot, spacing: float, *, noise: float = 1e-3, seam: float = 0.05, jump: float = 0.5
    ) -> ChunkBounds:
        """Return what the limits of a robot leave, where nothing is recorded: these bounds see less.

        `noise` [rad] is the standard deviation of single points. A joint without a limit of its acceleration
        may turn round at its highest speed from one point to the next. InputError for one with neither.
        """
        limits = robot.limits
        bend = np.minimum(limits.acceleration * spacing**2, 2.0 * limits.velocity * spacing)
        if not np.isfinite(bend).all():
            joint = robot.driven_joints[int(np.argmin(np.isfinite(bend)))]
            raise InputError(
                f"joint {joint!r} of robot {robot.name!r} has a limit neither of its velocity nor of its "
                "acceleration; state one, or take the bounds from recorded actions"
            )
        return cls(spacing, bend + _NOISES * noise, seam, jump)


def longest_repeat(points: Array) -> tuple[int, int]:
    """Return where the longest row of equal points (N, n) begins, and its length; one is none.

    What stands at the beginning or the end, as padded chunks do, does not count.
    """
    moved = np.append(True, (points[1:] != points[:-1]).any(axis=1))
    starts = np.flatnonzero(moved)
    inner = starts[1:-1]
    if not len(inner):
        return 0, 1
    lengths = np.diff(starts)[1:]
    longest = int(np.argmax(lengths))
    return int(inner[longest]), int(lengths[longest])
