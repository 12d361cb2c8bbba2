"""The phi functions of exponential integration, which solve linear equations driven by polynomials exactly.

`phi_k(-z) = integral from 0 to 1 of exp(-z (1 - s)) s^(k-1) / (k-1)! ds`, `phi_0(-z) = exp(-z)`; Hochbruck &
Ostermann, Exponential integrators, Acta Numerica 19 (2010), eqs. 2.10 and 2.11.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from hodyn_ros.array import Array

# Gauss' quadrature with so many points is exact to rounding for z up to the bound; beyond it, the recurrence
# phi_{k+1} = (1/k! - phi_k) / z loses no digits that matter.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_BOUND = 30.0


def phi_functions(z: float, count: int) -> Array:
    """Return `phi_0(-z) ... phi_{count-1}(-z)` (count,) for z >= 0.

    >>> phi_functions(1.0, 2).round(6)
    array([0.367879, 0.632121])
    """
    result = np.empty(count)
    result[0] = np.exp(-z)
    if z <= _BOUND:
        s = 0.5 * (_NODES + 1.0)
        decay = 0.5 * _WEIGHTS * np.exp(-z * (1.0 - s))
        for k in range(1, count):
            result[k] = decay @ s ** (k - 1) / factorial(k - 1)
        return result
    for k in range(1, count):
        result[k] = (1.0 / factorial(k - 1) - result[k - 1]) / z
    return result
