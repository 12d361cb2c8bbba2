"""Timing contenders in turn, many rounds, so that what disturbs the machine disturbs all of them alike.

The clock is the processor time of the thread: on a machine shared with other work, time spent waiting for a
processor says nothing about the code. What uses several threads is timed by the clock on the wall.

Where in memory code comes to lie is a matter of luck, and costs large straight-line code up to two fifths of
its speed in some places. So each contender that can be loaded several times is, and the rounds go through its
copies.
"""

from __future__ import annotations

import gc
import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLOCK = time.thread_time
_SLOT = 1e-3  # seconds that a contender runs in a round: long beside the clock, short beside a disturbance


@dataclass(frozen=True, eq=False)
class Contender:
    """A piece of work by name; each of `runs(calls)` does it that many times and returns the seconds it took.

    The runs are copies of the same work, taken in turn.
    """

    name: str
    runs: Sequence[Callable[[int], float]]


@dataclass(frozen=True)
class Figure:
    """The median of many rounds with the range that four rounds in five fall into."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Array) -> Figure:
        """Summarise one value per round."""
        low, median, high = np.percentile(values, [10.0, 50.0, 90.0])
        return cls(float(median), float(low), float(high))

    @classmethod
    def exact(cls, value: float) -> Figure:
        """Take a value that no rounds scatter about."""
        return cls(value, value, value)


class Times:
    """Seconds per call of every contender in every round."""

    def __init__(self, seconds: dict[str, Array]) -> None:
        self._seconds = seconds

    def rounds(self, name: str) -> Array:
        """Return seconds per call, one number a round."""
        return self._seconds[name]

    def seconds(self, name: str) -> Figure:
        """Return how long one call takes [s]."""
        return Figure.of(self._seconds[name])

    def ratio(self, name: str, peer: str) -> Figure:
        """Return the time of one contender over that of another, round by round."""
        return Figure.of(self._seconds[name] / self._seconds[peer])

    def speedup(self, name: str, peer: str) -> Figure:
        """Return how many times faster than another a contender is, round by round."""
        return self.ratio(peer, name)

    def difference(self, name: str, peer: str) -> Figure:
        """Return by how much one contender takes longer than another, round by round [s]."""
        return Figure.of(self._seconds[name] - self._seconds[peer])

    def fastest(self, names: Sequence[str]) -> str:
        """Return the contender with the least median time."""
        return min(names, key=lambda name: self.seconds(name).median)


def python_call(name: str, call: str, *copies: dict[str, Any]) -> Contender:
    """Return a contender that executes a Python expression, as `timeit` does; `copies` are its variables."""
    return Contender(name, [timeit.Timer(call, timer=CLOCK, globals=dict(names)).timeit for names in copies])


def race(
    contenders: Sequence[Contender], rounds: int, progress: Callable[[float], None] | None = None
) -> Times:
    """Run the contenders in turn, each for about a millisecond at least, in that many rounds.

    The order is drawn anew in every round. `progress` is called with the part done.
    """
    calls = {contender.name: _calls(contender) for contender in contenders}
    seconds = {contender.name: np.empty(rounds) for contender in contenders}
    order = np.random.default_rng(1)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(rounds):
            for j in order.permutation(len(contenders)):
                name, runs = contenders[j].name, contenders[j].runs
                seconds[name][i] = runs[i % len(runs)](calls[name]) / calls[name]
            if progress is not None:
                progress((i + 1) / rounds)
    finally:
        if collecting:
            gc.enable()
    return Times(seconds)


def _calls(contender: Contender) -> int:
    """Return how many calls fill a slot; warms the contender up on the way."""
    for run in contender.runs[1:]:
        run(1)
    calls = 1
    while True:
        seconds = min(contender.runs[0](calls) for _ in range(2))  # a first call may do more than the others
        if seconds >= 0.5 * _SLOT:
            return max(1, round(calls * _SLOT / seconds))
        calls *= 4
