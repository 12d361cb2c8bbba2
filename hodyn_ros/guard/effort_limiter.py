"""Limits of efforts and of their steps, kept and reported."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import InputError
from hodyn_ros.guard.transitions import within
from hodyn_ros.lie.se3 import Array

MILLISECOND = 1e-3  # [s]
FULL_WITHIN = 0.05  # [s] in which an effort may come to its limit where nothing says how fast it may change


class Limited(NamedTuple):
    """An effort within its limits, and which of them it met; (n,) each."""

    effort: Array
    saturated: NDArray[np.bool_]  # cut to the limit of the effort
    rate_limited: NDArray[np.bool_]  # its step was cut


class EffortLimiter:
    """Cuts efforts to `limit` (n,) [N.m] and their steps to `rate_limit` (n,) [N.m/s] times the time between.

    Within a millisecond or more a step up to `step` [N.m] is let through whatever the rate. The first effort
    is taken as it comes, but for `limit`.
    """

    def __init__(self, limit: ArrayLike, rate_limit: ArrayLike, step: float = 0.0) -> None:
        self.limit = np.atleast_1d(np.asarray(limit, dtype=np.float64))
        self.rate_limit = np.broadcast_to(np.asarray(rate_limit, dtype=np.float64), self.limit.shape)
        for name, values in (("limit", self.limit), ("rate limit", self.rate_limit)):
            if not (values > 0.0).all():
                raise InputError(f"every {name} must be positive, found {values}")
        if not step >= 0.0:
            raise InputError(f"the step must not be negative, found {step}")
        self._unlimited = np.isinf(self.rate_limit)
        self._finite_rate = np.where(self._unlimited, 0.0, self.rate_limit)
        self._step = step
        self.last: Array | None = None  # the last effort, (n,)

    def __call__(self, effort: Array, elapsed: float) -> Limited:
        """Return the effort within the limits, `elapsed` [s] after the last one.

        Raises InputError for one that is not finite.
        """
        if np.count_nonzero(np.isfinite(effort)) < len(effort):
            raise InputError(f"the effort of joint {int(np.argmin(np.isfinite(effort)))} is not finite")
        result = cut = within(effort, self.limit)
        if self.last is not None:
            step = self._reach(max(elapsed, 0.0))
            result = np.minimum(np.maximum(cut, self.last - step), self.last + step)
        self.last = result
        return Limited(result, cut != effort, result != cut)

    def _reach(self, elapsed: float) -> Array:
        step = np.maximum(self._finite_rate * elapsed, self._step * min(elapsed / MILLISECOND, 1.0))
        return np.where(self._unlimited, np.inf, step)
