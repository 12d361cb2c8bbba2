"""Time derivatives of functions along a path, from how fast the path is followed.

With a path parameter u, the squared speed `b(u) = (du/dt)^2` and its derivatives by u, y = (b, b', b'', b''',
b''''), a function f(u) has the time derivatives `f^(k) = sum_m P_km(y) d^m f / du^m`, which follow from one
another by `d/dt = sqrt(b) d/du`. Each P_km is a sum of few monomials, times sqrt(b) where k is odd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.array import Array

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
    for (k, m), value in chain_rule_entries(list(y.T), order).items():
        result[:, k, m] = value
    return result


def chain_rule_entries(y: Sequence[Any], order: int) -> dict[tuple[int, int], Any]:
    """Return the entries (k, m) of P that are not zero, from five scalars or arrays."""
    products, result = _Products(y), {}
    for place, monomials in _MONOMIALS.items():
        if place[0] <= order:
            result[place] = sum(products(powers, factor) for factor, powers in monomials)
    return result


def chain_rule_slopes(y: Sequence[Any], order: int) -> dict[tuple[int, int, int], Any]:
    """Return the derivatives (i, k, m) of P by y_i that are not zero, from five scalars or arrays."""
    products, result = _Products(y), {}
    for (k, m), monomials in _MONOMIALS.items():
        for i in range(SPEEDS) if k <= order else ():
            terms = [
                products(tuple(p - (j == i) for j, p in enumerate(powers)), factor * powers[i])
                for factor, powers in monomials
                if powers[i]
            ]
            if terms:
                result[i, k, m] = sum(terms)
    return result


class _Products:
    """Products of powers of b, b', ..., each power computed once; those of b are halves, from -1/2 on."""

    def __init__(self, y: Sequence[Any]) -> None:
        self._y = y
        self._powers: dict[tuple[int, float], Any] = {}

    def __call__(self, powers: tuple[float, ...], factor: float) -> Any:
        result: Any = factor
        for i, power in enumerate(powers):
            if power:
                result = result * self._power(i, power)
        return result

    def _power(self, i: int, power: float) -> Any:
        if (i, power) not in self._powers:
            if power == 0.5:
                value = np.sqrt(self._y[i])
            elif power < 0.0:
                value = 1.0 / self._power(i, -power)
            else:
                value = self._y[i] if power == 1 else self._y[i] * self._power(i, power - 1)
            self._powers[i, power] = value
        return self._powers[i, power]
