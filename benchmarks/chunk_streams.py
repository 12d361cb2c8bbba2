"""Streams of chunks as policies send them, sound ones and ones with a fault; from seeds."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

from benchmarks.stopwatch import Array

SPACING = 0.02  # [s] between two points of a chunk
PERIOD = 0.1  # [s] between two chunks
POINTS = 50
_NOISE = 2e-4  # [rad] of single points
_SEAM = 0.01  # [rad] by which chunks disagree, at most
_WIDTH = 0.35  # [rad] of the motion


class Fault(str, Enum):
    """What may be wrong with one chunk of a stream."""

    JUMP = "jump"
    REPEAT = "repeat"
    GAP = "gap"
    SWAP = "swap"
    NAN = "NaN"


class Chunk(NamedTuple):
    """Points of a policy, and when they come."""

    arrival: float  # [s]
    times: Array  # (N,) [s]
    positions: Array  # (N, n) [rad]


class Policy:
    """A motion about `home` (n,) from the time 0 on; each chunk is a little off it in its own way."""

    def __init__(self, home: Array, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        n, waves = len(home), 4
        self.home = home
        self._frequencies = self._random.uniform(0.1, 0.9, (waves, n))
        self._phases = self._random.uniform(0.0, 2.0 * np.pi, (waves, n))
        self._sizes = _WIDTH / waves * self._random.uniform(0.3, 1.0, (waves, n)) / (0.5 + self._frequencies)

    def means(self, times: Array) -> Array:
        """Return where the policy wants the arm to be (N, n) [rad]; it rises from rest within two seconds."""
        t = np.asarray(times)[:, None, None]
        u = np.clip(t[:, :, 0] / 2.0, 0.0, 1.0)
        rise = u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        waves = self._sizes * np.sin(2.0 * np.pi * self._frequencies * t + self._phases)
        return np.asarray(self.home + rise * waves.sum(axis=1))

    def chunk(self, begin: float, late: float = 0.0) -> Chunk:
        """Return the points from a time [s] on, with an offset of their own."""
        times = np.asarray(begin + SPACING * np.arange(POINTS), dtype=np.float64)
        off = self._random.uniform(-_SEAM, _SEAM, len(self.home))
        noise = _NOISE * self._random.normal(size=(POINTS, len(self.home)))
        return Chunk(begin + late, times, self.means(times) + off + noise)

    def stream(self, begin: float, count: int) -> list[Chunk]:
        """Return chunks every 0.1 s: every fifth up to 0.25 s late, one of twenty never, all in order."""
        chunks: list[Chunk] = []
        for k in range(count):
            late = self._random.uniform(0.0, 0.25) if self._random.random() < 0.2 else 0.0
            chunk = self.chunk(begin + PERIOD * k, late)
            if k >= 2 and self._random.random() < 0.05:
                continue
            before = chunks[-1].arrival if chunks else 0.0
            chunks.append(chunk._replace(arrival=max(chunk.arrival, before)))
        return chunks


def with_fault(chunks: list[Chunk], fault: Fault, seed: int) -> tuple[list[Chunk], int]:
    """Return a stream with one fault, and the number of the chunk that has it.

    As lerobot#4241 does, faults are 2 to 6 times what the motion does: its largest step for a jump, two to
    six points that are the same, missing or apart for the others. They come where the arm moves at a tenth
    of its highest speed at least: a point that is missing from rest is none.
    """
    random = np.random.default_rng([seed, list(Fault).index(fault)])
    steps = np.concatenate([np.diff(each.positions, axis=0) for each in chunks])
    largest = np.abs(steps).max(axis=0)
    which = int(random.integers(len(chunks) // 2, len(chunks)))
    chunk, before = chunks[which], chunks[which - 1]
    times, points = chunk.times.copy(), chunk.positions.copy()
    many, n = int(random.integers(2, 7)), points.shape[1]
    speed = np.abs(np.diff(points, axis=0)).max(axis=1)
    moves = np.flatnonzero(speed > 0.1 * largest.max())
    moves = moves[(moves > 3) & (moves < POINTS - 12)]
    place = int(random.choice(moves))
    kind = int(random.integers(3))
    if fault is Fault.NAN:
        points[place, random.integers(n)] = random.choice([np.nan, np.inf, -np.inf])
    elif fault is Fault.JUMP:
        joint = int(random.integers(n))
        far = random.choice([-1.0, 1.0]) * many * largest[joint]
        if kind == 0:  # one point
            points[place, joint] += far
        elif kind == 1:  # all from there on
            points[place:, joint] += far
        else:  # the whole chunk, by more than any change of mind
            points[:, joint] += random.choice([-1.0, 1.0]) * random.uniform(0.6, 1.5)
    elif fault is Fault.REPEAT:
        if kind == 0:  # the policy hangs: the last chunk comes again
            points = before.positions.copy()
        else:  # a frame that was held
            points[place + 1 : place + many] = points[place]
            if kind == 1:  # and what follows comes later
                points[place + many :] = chunk.positions[place + 1 : POINTS - many + 1]
    elif fault is Fault.GAP:
        if kind == 0:  # the stamps show it
            keep = np.delete(np.arange(POINTS), np.arange(place, place + many))
            times, points = times[keep], points[keep]
        elif kind == 1:  # they do not
            keep = np.delete(np.arange(POINTS), np.arange(place, place + many))
            times, points = times[: len(keep)], points[keep]
        else:  # all that was known has ended long ago
            late = before.times[-1] + random.uniform(0.1, 1.0) - times[0]
            times = times + late
            chunks = chunks[:which]
            chunk = Chunk(float(times[0]), times, points)
    elif kind == 0:  # the order of two points
        other = int(random.choice(moves[np.abs(moves - place) >= 2]))
        points[[place, other]] = points[[other, place]]
    elif kind == 1:  # that of two chunks
        at = max(which, 1)
        swapped = [*chunks[: at - 1], chunks[at], chunks[at - 1], *chunks[at + 1 :]]
        return swapped, at
    else:  # that of two joints, which are somewhere else than each other
        apart = np.abs(points[:8].mean(axis=0)[:, None] - points[:8].mean(axis=0))
        first, second = random.choice(np.argwhere(apart > 0.15))
        points[:, [first, second]] = points[:, [second, first]]
    return [*chunks[:which], Chunk(chunk.arrival, times, points), *chunks[which + 1 :]], which
