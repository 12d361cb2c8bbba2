"""Code that gives wrong numbers is not timed."""

from __future__ import annotations

import numpy as np

from benchmarks.stopwatch import Array

_TOLERANCE = 1e-9


class WrongNumbersError(RuntimeError):
    """Two contenders do not agree on the result."""


def check(what: str, found: Array, right: Array, scale: Array | None = None) -> None:
    """Refuse results (orders, ...) that differ by more than 1e-9 of the largest number of their order.

    `scale` (orders,): the size of the numbers that a result is the difference of, where that is larger.
    """
    size = np.abs(right).max(axis=1)
    if scale is not None:
        size = np.maximum(size, scale)
    error = float((np.abs(found - right).max(axis=1) / size).max())
    if not error < _TOLERANCE:
        raise WrongNumbersError(f"{what} is off by {error:.1e} (relative); it is not timed")
