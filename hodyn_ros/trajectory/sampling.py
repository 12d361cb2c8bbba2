"""Samples of a motion at a fixed rate, computed ahead by the block."""

from __future__ import annotations

import math

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

# Samples computed at a time. One sample costs nearly as much as twenty, as most of the time goes into calls.
_BLOCK = 20


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

    def __getitem__(self, k: int) -> MotionSample:
        """Return the sample at k / rate; read its arrays, do not write to them."""
        if self._block is None or not 0 <= k - self._first < _BLOCK:
            times = np.arange(k, k + _BLOCK) / self.rate
            self._block = self.motion.sample(np.minimum(times, self.duration), self.order)
            self._first = k
        return self._block.one(k - self._first)
