"""Time derivatives of functions along a path, from how fast the path is followed.

With a path parameter u, the squared speed `b(u) = (du/dt)^2` and its derivatives by u, y = (b, b', b'', b''',
b''''), a function f(u) has the time derivatives `f^(k) = sum_m P_km(y) d^m f / du^m`, which follow from one
another by `d/dt = sqrt(b) d/du`. Each P_km is a sum of few monomials, times sqrt(b) where k is odd.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.lie.jets import Array

HIGHEST = 5  # derivative by time
SPEEDS = 5  # b and its derivatives that these follow from

# k, m: monomials as (factor, powers of b, b', b'', b''', b'''')
_MONOMIALS: dict[tuple[int, int], list[tuple[float, tuple[float, ...]]]] = {
    (0, 0): [(1.0, (0, 0, 0, 0, 0))],
    (1, 1): [(1.0, (0.5, 0, 0, 0, 0))],
    (2, 1): [(0.5, (0, 1, 0, 0, 0))],
    (2, 2): [(1.0, (1, 0, 0, 0, 0))],
    (3, 1): [(0.5, (0.5, 0, 1, 0, 0))],
    (3, 2): [(1.5, (0.5, 1, 0, 0, 0))],
    (3, 3): [(1.0, (1.5, 0, 0, 0, 0))],
    (4, 1): [(0.5, (1, 0, 0, 1, 0)), (0.25, (0, 1, 1, 0, 0))],
    (4, 2): [(2.0, (1, 0, 1, 0, 0)), (0.75, (0, 2, 0, 0, 0))],
    (4, 3): [(3.0, (1, 1, 0, 0, 0))],
    (4, 4): [(1.0, (2, 0, 0, 0, 0))],
    (5, 1): [(0.5, (1.5, 0, 0, 0, 1)), (0.75, (0.5, 1, 0, 1, 0)), (0.25, (0.5, 0, 2, 0, 0))],
    (5, 2): [(3.75, (0.5, 1, 1, 0, 0)), (2.5, (1.5, 0, 0, 1, 0))],
    (5, 3): [(3.75, (0.5, 2, 0, 0, 0)), (5.0, (1.5, 0, 1, 0, 0))],
    (5, 4): [(5.0, (1.5, 1, 0, 0, 0))],
    (5, 5): [(1.0, (2.5, 0, 0, 0, 0))],
}


def chain_rule(y: Array, order: int) -> Array:
    """Return P (N, order + 1, order + 1), by time and by path derivative, from y (N, 5); b is positive."""
    result = np.zeros((len(y), order + 1, order + 1))
    products = _Products(y)
    for (k, m), monomials in _MONOMIALS.items():
        for factor, powers in monomials if k <= order else ():
            result[:, k, m] += factor * products(powers)
    return result


def chain_rule_gradient(y: Array, order: int) -> Array:
    """Return the derivatives of P by y, (N, 5, order + 1, order + 1)."""
    result = np.zeros((len(y), SPEEDS, order + 1, order + 1))
    products = _Products(y)
    for (k, m), monomials in _MONOMIALS.items():
        for factor, powers in monomials if k <= order else ():
            for i, power in enumerate(powers):
                if power:
                    lower = tuple(p - (j == i) for j, p in enumerate(powers))
                    result[:, i, k, m] += factor * power * products(lower)
    return result


class _Products:
    """Products of powers of b, b', ..., each power computed once."""

    def __init__(self, y: Array) -> None:
        self._columns = np.ascontiguousarray(y.T)
        self._powers: dict[tuple[int, float], Array] = {}

    def __call__(self, powers: tuple[float, ...]) -> Array:
        result: Array | None = None
        for i, power in enumerate(powers):
            if power:
                factor = self._power(i, power)
                result = factor if result is None else result * factor
        return np.ones(self._columns.shape[1]) if result is None else result

    def _power(self, i: int, power: float) -> Array:
        if power == 1:
            return np.asarray(self._columns[i])
        if (i, power) not in self._powers:
            self._powers[i, power] = np.power(self._columns[i], power)
        return self._powers[i, power]
