"""Samples of several quantities over time, thinned to what a picture can show."""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array

_MOST = 20_000  # samples that are kept as they are
_STRETCHES = 2000  # that longer recordings are divided into


class Record:
    """Gathers samples block by block, in order of time.

    Of more than 20 000, the lowest and the highest value of each quantity are kept in each of some 2000
    stretches of time, so that no peak is lost to the eye.
    """

    def __init__(self) -> None:
        self._times: list[Array] = []
        self._values: list[Array] = []
        self._count = 0

    def add(self, times: Array, values: Array) -> None:
        """Add samples (N,) and (N, columns) that come after all others."""
        self._times.append(times)
        self._values.append(values)
        self._count += len(times)
        if self._count > 2 * _MOST:
            self._times, self._values = ([array] for array in self._thinned())
            self._count = len(self._times[0])

    def samples(self) -> tuple[Array, Array]:
        """Return times (N,) and values (N, columns)."""
        if self._count > _MOST:
            return self._thinned()
        return np.concatenate(self._times), np.concatenate(self._values)

    def _thinned(self) -> tuple[Array, Array]:
        """Return two rows for each stretch: the lowest values at its start, the highest at its end."""
        times, values = np.concatenate(self._times), np.concatenate(self._values)
        length = (times[-1] - times[0]) / _STRETCHES
        starts = np.flatnonzero(np.diff(np.floor((times - times[0]) / length), prepend=-1.0))
        ends = np.append(starts[1:], len(times)) - 1
        lowest, highest = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        thinned = np.stack([lowest, highest], axis=1).reshape(-1, values.shape[1])
        return np.stack([times[starts], times[ends]], axis=1).ravel(), thinned
