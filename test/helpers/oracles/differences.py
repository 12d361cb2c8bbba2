"""Derivatives by differences at 60 digits: as good as exact, without knowing the function."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles import mp_dynamics as mp


def derivative(function: Callable[[Any], Any], digits: int = 60) -> NDArray[np.float64]:
    """Return df(h)/dh at h = 0 of a function of one number, by a central difference."""
    with mp.digits(digits):
        step = mp.mpfr(10) ** (-digits // 3)
        return mp.to_float((function(step) - function(-step)) / (2 * step))


def second_derivative(function: Callable[[Any], Any], digits: int = 60) -> NDArray[np.float64]:
    """Return the second derivative at h = 0 likewise."""
    with mp.digits(digits):
        step = mp.mpfr(10) ** (-digits // 4)
        there, here, back = (function(s) for s in (step, 0 * step, -step))
        return mp.to_float((there - 2 * here + back) / (step * step))
