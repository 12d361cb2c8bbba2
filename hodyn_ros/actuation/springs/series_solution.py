"""Equations for a function of time, solved as power series order by order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.array import Array


def reverted(function: Callable[[Array], Array], target: Array, start: Array, slope: Array) -> Array:
    """Return the jet x with `f(x(t), t) = target(t)`.

    `function` maps jets of x to jets of f(x(t), t), `target` (K+1, ...), `start` (...) the value of x at the
    instant, `slope` (...) the partial derivative of f there. The k-th coefficient enters the k-th coefficient
    of f only by the slope, so each order is one division; Griewank & Walther, section 13.3.
    """
    jet = np.zeros(np.broadcast_shapes(target.shape, (1, *np.shape(start))), dtype=target.dtype)
    jet[0] = start
    inverse = 1.0 / slope
    for k in range(1, len(target)):
        jet[k] = (target[k] - function(jet[: k + 1])[k]) * inverse
    return jet
