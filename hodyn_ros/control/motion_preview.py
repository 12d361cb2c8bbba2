"""A desired motion that comes sample by sample, for a controller that looks ahead."""

from __future__ import annotations

from bisect import bisect_left
from math import factorial

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

_KEPT = 1.0  # [s] of samples
_REACH = 0.02  # [s] that a sample is carried on by its derivatives, either way


class MotionPreview:
    """The samples of the last second, carried on by their derivatives to the instants between them.

    Whoever follows it some time later than the samples are meant knows all that comes within that time.
    """

    def __init__(self, n_joints: int) -> None:
        self.n_joints = n_joints
        self._times: list[float] = []
        self._samples: list[Array] = []

    def add(self, time: float, sample: Array) -> None:
        """Take a sample (orders, n) at a time [s] after all before."""
        self._times.append(time)
        self._samples.append(sample)
        if time - self._times[0] > 2.0 * _KEPT:  # seldom, as it moves all others
            first = bisect_left(self._times, time - _KEPT)
            del self._times[:first], self._samples[:first]

    def sample(self, t: float, order: int) -> Array:
        """Return positions and derivatives (order + 1, n) at a time [s]; InputError where none is near."""
        place = bisect_left(self._times, t)
        near = range(max(place - 1, 0), min(place + 1, len(self._times)))
        nearest = min(near, key=lambda k: abs(self._times[k] - t), default=None)
        if nearest is None or abs(t - self._times[nearest]) > _REACH:
            raise InputError(f"no sample of the desired motion lies within {_REACH:g} s of {t:.6g} s")
        h, rows = t - self._times[nearest], self._samples[nearest]
        powers = np.array([h**k / factorial(k) for k in range(len(rows))])
        return np.array([powers[: len(rows) - k] @ rows[k:] for k in range(order + 1)])
