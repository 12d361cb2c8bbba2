"""Limits of efforts and of their rates, kept and reported."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array


class Guarded(NamedTuple):
    """An effort within its limits, and which of them it met; (n,) each."""

    effort: Array
    saturated: NDArray[np.bool_]  # cut to the limit of the effort
    rate_limited: NDArray[np.bool_]  # held back by the limit of the rate


class EffortGuard:
    """Cuts efforts to `limit` (n,) [N.m] and their steps to `rate_limit` (n,) [N.m/s] times `period` [s].

    Counts how often each joint met a limit. The first effort is taken as it comes, but for `limit`.
    """

    def __init__(self, limit: ArrayLike, rate_limit: ArrayLike, period: float) -> None:
        self.limit = np.atleast_1d(np.asarray(limit, dtype=np.float64))
        self.rate_limit = np.broadcast_to(np.asarray(rate_limit, dtype=np.float64), self.limit.shape)
        for name, values in (("limit", self.limit), ("rate limit", self.rate_limit)):
            if not (values > 0.0).all():
                raise InputError(f"every {name} must be positive, found {values}")
        if not 0.0 < period < np.inf:
            raise InputError(f"the period must be positive and finite, found {period} s")
        self._step = self.rate_limit * period
        self._last: Array | None = None
        self.saturated_count = np.zeros(self.limit.shape, dtype=np.int64)
        self.rate_limited_count = np.zeros(self.limit.shape, dtype=np.int64)

    def __call__(self, effort: Array) -> Guarded:
        """Return the effort within the limits. Raises InputError for one that is not finite."""
        if not np.isfinite(effort).all():
            raise InputError(f"the effort of joint {int(np.argmin(np.isfinite(effort)))} is not finite")
        cut = np.clip(effort, -self.limit, self.limit)
        saturated = cut != effort
        result = cut
        if self._last is not None:
            result = np.clip(cut, self._last - self._step, self._last + self._step)
        held = result != cut
        self._last = result
        self.saturated_count += saturated
        self.rate_limited_count += held
        return Guarded(result, saturated, held)
