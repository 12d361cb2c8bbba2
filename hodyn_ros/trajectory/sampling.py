"""Samples of a trajectory at a fixed rate, computed ahead by the block."""

from __future__ import annotations

import math

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.trajectory.base import Trajectory

# Samples computed at a time. One sample costs nearly as much as twenty, as most of the time goes into calls.
_BLOCK = 20


class Sampler:
    """The samples of a trajectory at the times k / rate, k = 0, 1, ...; cheap when asked for in that order.

    `rate` [Hz], `order` the highest derivative. Samples beyond the end repeat the end.
    """

    def __init__(self, trajectory: Trajectory, rate: float, order: int) -> None:
        if not 0.0 < rate < np.inf:
            raise InputError(f"the rate must be positive and finite, found {rate} Hz")
        self.trajectory = trajectory
        self.rate = float(rate)
        self.order = order
        self._first = 0
        self._block: Array = np.empty((0, order + 1, trajectory.n_joints))

    @property
    def count(self) -> float:
        """Number of samples from the start to the end, both included; infinite where there is no end."""
        duration = self.trajectory.duration
        return math.ceil(round(duration * self.rate, 6)) + 1 if math.isfinite(duration) else duration

    def __getitem__(self, k: int) -> Array:
        """Return the derivatives (order + 1, n) at k / rate; read them, do not write to them."""
        if not 0 <= k - self._first < len(self._block):
            self._first = k
            times = np.arange(k, k + _BLOCK) / self.rate
            self._block = self.trajectory.sample(np.minimum(times, self.trajectory.duration), self.order)
        return self._block[k - self._first]
