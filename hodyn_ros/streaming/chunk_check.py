"""Chunks of a policy, checked before they are followed.

A policy that works gives points that lead on evenly, chunk after chunk. What comes between (a dropped frame,
a server that hangs, joints in another order, a prediction far off) looks otherwise: points that bend more
sharply than any recorded ones, numbers that come again bit for bit, holes between stamps. The check names
what it is, so that such a chunk is not followed, and the one before it is.
"""

from __future__ import annotations

from enum import Enum
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.streams.target_path import TargetPath
from hodyn_ros.streaming.chunk_bounds import ChunkBounds, longest_repeat

_HOLE = 1.5  # times the spacing: more than that between two stamps is a hole
_GAPS = 12  # points that may be missing, for a step to be called a gap and not a jump
_WITNESSES = 3  # chunks that say the same, for a jump to be believed
_COMPARED = 8  # points of two chunks that are compared where both have some


class ChunkFault(str, Enum):
    """What is wrong with a chunk; the value is its name in counters."""

    NUMBERS = "numbers"
    TIMES = "times"
    GAP = "gap"
    REPEAT = "repeat"
    SWAP = "swap"
    JUMP = "jump"


class ChunkError(InputError):
    """A chunk is not to be followed."""

    def __init__(self, fault: ChunkFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class ChunkCheck:
    """Checks the chunks of a stream for `joint_names`, each with its place and against those before it.

    A chunk that has passed is what the next one is compared with; one that has not changes nothing.
    """

    def __init__(self, joint_names: tuple[str, ...], bounds: ChunkBounds) -> None:
        if len(bounds.bend) != len(joint_names):
            raise InputError(f"bounds of {len(bounds.bend)} joints do not fit the {len(joint_names)} joints")
        self.bounds = bounds
        self.faults: dict[ChunkFault, int] = dict.fromkeys(ChunkFault, 0)  # how often each was found
        self._names = joint_names
        self._pairs = np.array(list(combinations(range(len(joint_names)), 2)), dtype=int).reshape(-1, 2)
        self._last: TargetPath | None = None
        self._doubted: list[TargetPath] = []  # chunks far from the one before them

    def restart(self, position: ArrayLike, now: float) -> None:
        """Forget what came; the next chunk is compared with where the robot stands (n,) [rad or m]."""
        place = np.array(position, dtype=np.float64)
        self._last, self._doubted = TargetPath(np.array([now]), place[None]), []

    def __call__(self, times: Array, positions: Array) -> None:
        """Check points at `times` (N,) [s] that want `positions` (N, n); ChunkError for a fault."""
        try:
            self._require_sound(times, positions)
        except ChunkError as error:
            self.faults[error.fault] += 1
            raise
        self._last, self._doubted = TargetPath(times, positions), []

    def _require_sound(self, times: Array, positions: Array) -> None:
        if not (np.isfinite(positions).all() and np.isfinite(times).all()):
            point, joint = (int(i[0]) for i in np.nonzero(~np.isfinite(positions * times[:, None])))
            raise ChunkError(
                ChunkFault.NUMBERS, f"point {point} of joint {self._names[joint]!r} is not finite"
            )
        self._require_stamps(times)
        self._require_no_repeat(positions)
        if self._last is not None:
            self._require_continued(TargetPath(times, positions))
        self._require_even(positions)

    def _require_stamps(self, times: Array) -> None:
        steps = np.diff(times)
        if (steps <= 0.0).any():
            raise ChunkError(
                ChunkFault.TIMES,
                f"point {int(np.argmax(steps <= 0.0)) + 1} is not after the one before; times must increase",
            )
        hole = _HOLE * self.bounds.spacing
        if (steps > hole).any():
            point = int(np.argmax(steps > hole))
            raise ChunkError(
                ChunkFault.GAP,
                f"{steps[point]:.3g} s lie between points {point} and {point + 1}, and "
                f"{self.bounds.spacing:g} s between others",
            )

    def _require_no_repeat(self, positions: Array) -> None:
        begin, length = longest_repeat(positions)
        if length > self.bounds.repeats:
            raise ChunkError(
                ChunkFault.REPEAT,
                f"points {begin} to {begin + length - 1} are the same, bit for bit, while others move",
            )
        last = self._last
        moves = len(positions) > 1 and bool((positions != positions[0]).any())
        if moves and last is not None and np.array_equal(last.points, positions):
            raise ChunkError(
                ChunkFault.REPEAT, "it is the chunk before it, bit for bit; look whether the policy hangs"
            )

    def _require_continued(self, new: TargetPath) -> None:
        """Hold a chunk against the one before it, where both have points."""
        last = self._last
        assert last is not None
        if new.times[0] < last.times[0]:
            raise ChunkError(
                ChunkFault.SWAP, f"it begins {last.times[0] - new.times[0]:.3g} s before the chunk before it"
            )
        late = len(last.times) > 1 and new.times[0] > last.end + _HOLE * self.bounds.spacing
        if late and not self._confirmed(new):  # else the policy has paused
            raise ChunkError(
                ChunkFault.GAP,
                f"it begins {new.times[0] - last.end:.3g} s after the end of the last one; one is missing, "
                f"and the {_WITNESSES}rd that goes on from there is followed",
            )
        common = new.times[: max(int(np.searchsorted(new.times, last.end, side="right")), 1)][:_COMPARED]
        before, wanted = last.at(common).mean(axis=0), new.points[: len(common)].mean(axis=0)
        off = np.abs(wanted - before)
        if (off > self.bounds.seam).sum() >= 2 and (
            pair := self._exchanged(before, wanted, self.bounds.seam)
        ):
            raise ChunkError(ChunkFault.SWAP, f"joints {pair} are exchanged against the chunk before it")
        joint = int(np.argmax(off))
        if off[joint] > self.bounds.jump and not self._confirmed(new):
            raise ChunkError(
                ChunkFault.JUMP,
                f"joint {self._names[joint]!r} is wanted {off[joint]:.3g} rad (or m) from where the chunk "
                f"before it has it, and 'jump' is {self.bounds.jump:g}; the {_WITNESSES}rd that says so is "
                "followed",
            )

    def _confirmed(self, new: TargetPath) -> bool:
        """Whether chunks before this one have already led where it does."""
        agree = [
            each
            for each in self._doubted
            if np.abs(each.one(float(new.times[0])) - new.points[0]).max() <= self.bounds.jump
        ]
        self._doubted = [*agree, new]
        return len(self._doubted) >= _WITNESSES

    def _exchanged(self, expected: Array, wanted: Array, bounds: ArrayLike) -> str | None:
        """Return which two joints make `wanted` (n,) what is expected, within bounds (n,), once exchanged."""
        first, second = self._pairs.T
        off = np.abs(wanted[:, None] - expected) / bounds  # (n, n) of each joint from where each is expected
        crossed = np.maximum(off[first, second], off[second, first])
        straight = np.minimum(off[first, first], off[second, second])
        exchanged = (crossed <= 1.0) & (straight > 1.0)
        if not exchanged.any():
            return None
        pair = int(np.argmin(np.where(exchanged, crossed - straight, np.inf)))
        return f"{self._names[first[pair]]!r} and {self._names[second[pair]]!r}"

    # within a chunk

    def _bent(self, positions: Array) -> Array:
        """Return by which share of its bound each joint bends at each inner point: (N - 2, n)."""
        bends = positions[2:] - 2.0 * positions[1:-1] + positions[:-2]
        return np.asarray(np.abs(bends) / self.bounds.bend)

    def _require_even(self, positions: Array) -> None:
        if len(positions) < 3:
            return
        bent = self._bent(positions)
        most = bent.max(axis=1)
        if not (most > 1.0).any():
            return
        sharp = np.flatnonzero(most > 1.0) + 1
        point, joint = int(sharp[0]), int(np.argmax(bent[sharp[0] - 1]))
        raise self._named(positions, sharp) or ChunkError(
            ChunkFault.JUMP,
            f"joint {self._names[joint]!r} bends {most[point - 1]:.3g} times more sharply at point {point} "
            "than sound chunks do",
        )

    def _named(self, positions: Array, sharp: NDArray[np.intp]) -> ChunkError | None:
        """Return what sharp bends at points are, if it is more than a jump."""
        for i, j in combinations(sorted({int(each) for each in sharp}), 2):
            other = positions.copy()
            other[[i, j]] = positions[[j, i]]
            if self._bent(other).max() <= 1.0:
                return ChunkError(ChunkFault.SWAP, f"points {i} and {j} are exchanged")
        for point in sharp:
            straight = 2.0 * positions[point] - positions[point - 1]
            if point < len(positions) - 1 and (
                pair := self._exchanged(straight, positions[point + 1], self.bounds.bend)
            ):
                return ChunkError(ChunkFault.SWAP, f"joints {pair} are exchanged from point {point + 1} on")
            if 2 <= point + 1 < len(positions) - 1 and (missing := self._missing(positions, int(point))):
                return ChunkError(
                    ChunkFault.GAP,
                    f"{missing} points seem to be missing between points {point} and {point + 1}",
                )
        return None

    def _missing(self, positions: Array, point: int) -> int:
        """Return how many points make the step behind a point like those around it; 0 where none do."""
        before, step, after = np.diff(positions[point - 1 : point + 3], axis=0)
        for count in range(2, _GAPS + 2):
            even = 0.5 * count * (before + after)  # of joints that do not hurry
            if (np.abs(step - even) <= 0.5 * count * self.bounds.bend).all():
                return count - 1
        return 0
