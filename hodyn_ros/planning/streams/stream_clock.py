"""The clock of a stream: at which of its own times a motion is, from its present rate to the last point.

The rate of the clock goes smoothly to the wished one, stays there, and goes to zero such that the clock
stands at the last point that is known. Whatever the rates are, the motion stays on the path of the points.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.planning.streams.stream_config import PointsError, Trouble


class ClockState(NamedTuple):
    """Where a clock is."""

    time: float  # of the stream [s]
    rate: float  # 1: as fast as real time
    slope: float = 0.0  # of the rate [1/s]


def readings(now: ClockState, end: float, rate: float, ramp: float, stop: float, step: float) -> Array:
    """Return the readings (N,) [s] of a clock after 1, 2, ... steps [s], until it stands at `end` [s].

    From its state it goes to `rate` in `ramp` [s], and from there to zero in `stop` [s]; where the way is too
    short for that, it gets less fast, or stops faster.
    """
    way = max(end - now.time, 0.0)
    # a Hermite polynomial of the rate: its integral is ramp (before + after) / 2 + ramp^2 slope / 12
    turned = ramp * now.rate / 2.0 + ramp * ramp * now.slope / 12.0
    if turned >= way:  # too short for that polynomial
        now = now._replace(slope=0.0)
        turned = ramp * now.rate / 2.0
    highest = min(rate, 2.0 * (way - turned) / (ramp + stop))
    if highest <= 0.0:
        ramp, highest, stop = _shorter(now, way, stop)
        cruise = 0.0
    else:
        left = way - turned - highest * (ramp + stop) / 2.0
        cruise = left / highest if highest == rate else 0.0
    duration = ramp + cruise + stop
    times = step * np.arange(1, int(np.ceil(duration / step - 1e-9)) + 1)
    first = _ramped(np.minimum(times, ramp), ramp, now.rate, highest, now.slope)
    between = highest * np.minimum(np.maximum(times - ramp, 0.0), cruise)
    last = _ramped(np.minimum(np.maximum(times - ramp - cruise, 0.0), stop), stop, highest, 0.0, 0.0)
    result = np.minimum(now.time + first + between + last, now.time + way)
    if len(result):
        result[-1] = now.time + way
    return np.maximum(np.maximum.accumulate(result), now.time)


def _shorter(now: ClockState, way: float, stop: float) -> tuple[float, float, float]:
    """Return a stop from the present rate in one ramp, that is as long as the way allows."""
    if now.rate <= 0.0:
        return stop, 0.0, 0.0
    return max(2.0 * way / now.rate, 1e-9), 0.0, 0.0


def _ramped(times: Array, duration: float, before: float, after: float, slope: float) -> Array:
    """Return the integral (N,) of a rate that goes from one value and slope to another one without slope."""
    if duration <= 0.0:
        return np.zeros_like(times)
    u = times / duration
    blended = u**3 - 0.5 * u**4  # of 3 u^2 - 2 u^3
    sloped = u**2 / 2.0 - 2.0 * u**3 / 3.0 + u**4 / 4.0  # of u (1 - u)^2
    return np.asarray(
        duration * (before * (u - blended) + after * blended) + duration * duration * slope * sloped
    )


_MESSAGES = 250  # that show at which rate stamps advance
_OFF, _JITTER = 0.1, 0.25  # share [of the time], and how much more [s], by which they may advance otherwise
_AGREE = 3  # messages that must say so, for time to go back


class Arrivals:
    """Compares stamps with arrivals. Where stamps cannot be meant, points count as of their arrival."""

    def __init__(self, delay: float) -> None:
        """Take how late [s] points may be."""
        self._delay = delay
        self._seen: deque[tuple[float, float]] = deque(maxlen=_MESSAGES)  # arrivals and stamps
        self._back: list[float] = []  # stamps that lie before the last one

    def shift(self, times: Array, now: float) -> tuple[float, PointsError | None]:
        """Return what to add to times (N,) [s] of points that have come now, and what is wrong with them.

        Raises PointsError for stamps that lie before the last one, until three have agreed.
        """
        first, last = float(times[0]), float(times[-1])
        self._require_advance(first)
        self._seen.append((now, first))
        arrived, stamped = self._seen[-1][0] - self._seen[0][0], self._seen[-1][1] - self._seen[0][1]
        if abs(stamped - arrived) > _OFF * arrived + _JITTER:
            return now - first, PointsError(
                Trouble.TIMES,
                f"its stamps advance {stamped:.3g} s in {arrived:.3g} s; points count as of their arrival",
            )
        if now - last > self._delay:
            return now - first, PointsError(
                Trouble.LATE,
                f"its last point is {now - last:.3g} s late, and 'delay' is {self._delay:g} s; points count "
                "as of their arrival. Let both run by the same clock",
            )
        return 0.0, None

    def _require_advance(self, stamp: float) -> None:
        if not self._seen or stamp > self._seen[-1][1]:
            self._back = []
            return
        self._back = [each for each in self._back if each < stamp]
        self._back.append(stamp)
        if len(self._back) < _AGREE:
            raise PointsError(
                Trouble.TIMES,
                f"it is for {self._seen[-1][1] - stamp:.3g} s before the last one; send points in order. The "
                f"{_AGREE}rd that goes on from there is followed",
            )
        self._back = []
        self._seen.clear()
