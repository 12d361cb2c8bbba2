"""The time of a motion against real time, where somebody slows it down, stops it or turns it back.

It is a uniform spline of degree 5, so it has four continuous derivatives whatever is asked for and when: of
its control points only those are changed that the present does not need. Their differences are rates, and the
rate of the clock is never outside of what these are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.lie import jets
from hodyn_ros.planning.streams.uniform_spline import DEGREE, evaluate

STEP = 0.01  # [s] between two control points
_LAG = 2  # control point i is nearest to the spline at knot i - 2
_KEPT = 40  # control points of the past


@dataclass(frozen=True, eq=False)
class PathClock:
    """The time s(t) [s] of a motion that lasts `duration` [s], t [s] being zero when it begins.

    Before 0 and behind `duration` the time of the motion stands: motions rest there. Behind its control
    points the clock goes on at `rate`, in seconds of the motion by second; negative: back.
    """

    duration: float
    rate: float
    first: int  # number of the first control point
    controls: Array  # (c,)

    @classmethod
    def running(cls, duration: float, rate: float = 1.0) -> PathClock:
        """Return a clock that runs evenly, from 0 at the time 0."""
        first = -_KEPT
        even = np.arange(first, DEGREE + 1, dtype=np.float64) - _LAG
        return cls(duration, rate, first, np.asarray(rate * STEP * even, dtype=np.float64))

    def changed(self, now: float, rate: float, lasts: float, wait: float = 0.0) -> PathClock:
        """Return the clock that goes on for `wait` [s], and then goes over to another rate in `lasts` [s]."""
        frozen = int(np.floor(now / STEP)) + DEGREE
        waits = int(np.ceil(wait / STEP))
        count = waits + int(np.ceil(lasts / STEP)) + 1
        place = float(self._free(np.array([now]), 0)[0, 0])
        kept = np.arange(frozen - _KEPT, frozen + 1)
        if not 0.0 < place < self.duration:  # it stands at an end: there it goes on
            past, before = np.full(len(kept), np.clip(place, 0.0, self.duration)), np.zeros(count)
        else:
            past = self._controls(kept)
            before = np.diff(self._controls(np.arange(frozen, frozen + count + 1))) / STEP
        u = np.maximum(np.arange(1, count + 1) - waits, 0) / (count - waits)
        share = u**4 * (35.0 - 84.0 * u + 70.0 * u**2 - 20.0 * u**3)
        rates = before + share * (rate - before)
        return PathClock(
            self.duration, rate, int(kept[0]), np.concatenate([past, past[-1] + STEP * np.cumsum(rates)])
        )

    def at(self, times: Array, order: int) -> Array:
        """Return s and its derivatives (order + 1, N) at times (N,)."""
        result = self._free(times, order)
        stands = (result[0] < 0.0) | (result[0] > self.duration)
        result[0] = np.clip(result[0], 0.0, self.duration)
        result[1:, stands] = 0.0
        return result

    def along(self, path: Array, scaling: Array) -> Array:
        """Return derivatives (N, order + 1, n) by time from those by s of the motion, (N, order + 1, n)."""
        taylor = jets.to_taylor(np.moveaxis(path, 1, 0))
        composed = jets.compose(taylor, jets.to_taylor(scaling[:, :, None]))
        return np.ascontiguousarray(np.moveaxis(jets.to_derivatives(composed), 0, 1))

    @property
    def steady(self) -> float:
        """From when on [s] the rate does not change any more."""
        return (self.first + len(self.controls) - 1) * STEP

    @property
    def ends(self) -> float:
        """When [s] the motion has come to its end; infinite where it does not."""
        low, high = self.steady - len(self.controls) * STEP, self.steady
        reached = float(self._free(np.array([high]), 0)[0, 0])
        if reached < self.duration:
            return high + (self.duration - reached) / self.rate if self.rate > 0.0 else np.inf
        while high - low > 1e-9 * max(1.0, abs(high)):
            middle = 0.5 * (low + high)
            beyond = self._free(np.array([middle]), 0)[0, 0] >= self.duration
            low, high = (low, middle) if beyond else (middle, high)
        return high

    def _free(self, times: Array, order: int) -> Array:
        """Return s and its derivatives as if the motion had no ends."""
        places = times / STEP
        spans = np.floor(places).astype(int)
        first, last = int(spans.min()), int(spans.max())
        controls = self._controls(np.arange(first, last + DEGREE + 1))[:, None]
        return np.ascontiguousarray(evaluate(controls, spans - first, places - spans, STEP, order)[:, :, 0].T)

    def _controls(self, number: NDArray[np.intp]) -> Array:
        """Return control points by number; behind the last one they go on at the rate."""
        place = number - self.first
        beyond = np.maximum(place - (len(self.controls) - 1), 0)
        return self.controls[np.clip(place, 0, len(self.controls) - 1)] + self.rate * STEP * beyond
