"""Equations for a function of time, solved as power series: Newton for the value, then order by order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array

_ITERATIONS = 60


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]], target: Array, start: Array, what: str
) -> Array:
    """Return x with f(x) = target for odd increasing functions f whose slope does not fall with abs(x).

    `function` returns f and its slope. From `start` beyond the root Newton's method then falls monotonically
    towards it. Raises InputError naming `what` where it does not arrive.
    """
    x = np.array(start, dtype=np.float64)
    for _ in range(_ITERATIONS):
        value, slope = function(x)
        step = (value - target) / slope
        x = x - step
        if (np.abs(step) <= 4e-16 * np.abs(x)).all():
            return x
    if (np.abs(step) <= 1e-13 * np.abs(x)).all():
        return x
    raise InputError(f"no {what} was found for a torque of {np.abs(target).max():g} N·m")


def reverted(function: Callable[[Array], Array], target: Array, start: Array, slope: Array) -> Array:
    """Return the jet x with `f(x(t), t) = target(t)`.

    `function` maps jets of x to jets of f(x(t), t), `target` (K+1, ...), `start` (...) the value of x at the
    instant, `slope` (...) the partial derivative of f there. The k-th coefficient enters the k-th coefficient
    of f only by the slope, so each order is one division; Griewank & Walther, section 13.3.
    """
    jet = np.zeros(np.broadcast_shapes(target.shape, (1, *np.shape(start))))
    jet[0] = start
    for k in range(1, len(target)):
        jet[k] = (target[k] - function(jet[: k + 1])[k]) / slope
    return jet
