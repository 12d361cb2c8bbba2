"""The product rule of any order, on stacks of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

from hodyn_ros.lie.se3 import Array, matvec


def product_derivative(a: Any, b: Any, order: int, multiply: Callable[[Any, Any], Any] = matvec) -> Array:
    """Return the derivative of a product, `(a b)^(r) = sum_l C(r, l) a^(r-l) b^(l)` with r = `order`.

    `a[k]`, `b[k]` are the k-th derivatives of the factors; Kumar & Mueller (2021), eq. 2.

    >>> from operator import mul
    >>> product_derivative([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 2, mul)
    38.0
    """
    result = multiply(a[order], b[0])
    for k in range(1, order + 1):
        result = result + comb(order, k) * multiply(a[order - k], b[k])
    return result


def product_derivatives(
    a: Any, b: Any, count: int, multiply: Callable[[Any, Any], Any] = matvec
) -> list[Array]:
    """Return a product and its derivatives, `count` of them, as `product_derivative` does each."""
    return [product_derivative(a, b, order, multiply) for order in range(count)]


def solved(
    solve: Callable[[Any], Array], matrices: Any, values: Any, multiply: Callable[[Any, Any], Any] = matvec
) -> list[Array]:
    """Return x with `A x = b`, and its derivatives, from those of b: as many as `values`.

    `A x^(r) = b^(r) - sum_(k>0) C(r, k) A^(k) x^(r-k)`; `solve` takes A to the other side.
    """
    result: list[Array] = []
    for r, value in enumerate(values):
        for k in range(1, r + 1):
            value = value - comb(r, k) * multiply(matrices[k], result[r - k])
        result.append(solve(value))
    return result
