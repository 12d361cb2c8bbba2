"""Samples of a motion at a fixed rate, computed ahead by the block."""

from __future__ import annotations

import math

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, OverflowingError
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

# Samples computed at a time. One sample costs nearly as much as twenty, as most of the time goes into calls.
BLOCK = 20

_LOOKS, _LOOKED_AT = 1000, 1000.0  # how often one looks for what is not finite, and until when [s]


class Sampler:
    """The samples of a motion at the times k / rate, k = 0, 1, ...; cheap when asked for in that order.

    `rate` [Hz], `order` the highest derivative. Samples beyond the end repeat the end.
    """

    def __init__(self, motion: RobotMotion, rate: float, order: int) -> None:
        if not 0.0 < rate < np.inf:
            raise InputError(f"the rate must be positive and finite, found {rate} Hz")
        self.motion = motion
        self.rate = float(rate)
        self.order = order
        self._first = 0
        self._block: MotionSample | None = None

    @property
    def duration(self) -> float:
        """Duration of the motion [s]; infinite where there is no end."""
        return self.motion.trajectory.duration

    @property
    def count(self) -> float:
        """Number of samples from the start to the end, both included; infinite where there is no end."""
        if math.isinf(self.duration):
            return math.inf
        return math.ceil(round(self.duration * self.rate, 6)) + 1

    def check(self) -> None:
        """Raise InputError unless samples all along the motion are finite; it cannot look at all of them."""
        end = min(self.duration, _LOOKED_AT)
        self._finite(np.linspace(0.0, end, _LOOKS))

    def __getitem__(self, k: int) -> MotionSample:
        """Return the sample at k / rate; read its arrays, do not write to them.

        Raises InputError where the block that it is in is not finite.
        """
        if self._block is None or not 0 <= k - self._first < BLOCK:
            times = np.arange(k, k + BLOCK) / self.rate
            self._block = self._finite(np.minimum(times, self.duration))
            self._first = k
        return self._block.one(k - self._first)

    def before(self, k: int) -> MotionSample:
        """Return the last sample before the k-th that is known to be finite: of the block before."""
        return self._block.one(min(k - self._first, BLOCK) - 1) if self._block is not None and k else self[0]

    def _finite(self, times: Array) -> MotionSample:
        """Return the samples at some times; InputError where one of them is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            columns = self.motion.trajectory.sample(times, self.order)
        samples = self._of_finite(columns)
        if samples is None:
            time = next(t for t, one in zip(times, columns) if self._of_finite(one) is None)
            raise InputError(f"the motion is not finite at {time:g} s; its numbers are too large")
        return samples

    def _of_finite(self, columns: Array) -> MotionSample | None:
        try:
            return self.motion.of_columns(columns) if np.isfinite(columns).all() else None
        except OverflowingError:
            return None
