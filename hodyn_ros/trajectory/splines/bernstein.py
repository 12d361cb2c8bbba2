"""Derivatives of piecewise polynomials in Bernstein form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.array import Array

if TYPE_CHECKING:
    from scipy.interpolate import BPoly


def derivatives(polynomial: BPoly, times: Array, order: int) -> Array:
    """Return the derivatives 0 ... order of a piecewise polynomial at times (N,): (order+1, N, ...).

    SciPy rejects the derivatives above the degree, which are zero.

    >>> from scipy.interpolate import BPoly
    >>> derivatives(BPoly([[0.0], [3.0]], [0.0, 1.0]), np.array([0.5]), 3)[:, 0]
    array([1.5, 3. , 0. , 0. ])
    """
    result = np.zeros((order + 1, len(times), *polynomial.c.shape[2:]))
    degree = len(polynomial.c) - 1
    for k in range(min(order, degree) + 1):
        result[k] = polynomial(times, nu=k)
    return result
