"""Feedback gains from the poles that an error is to have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError


def gains_from_poles(poles: Sequence[complex], degree: int) -> Array:
    """Return `k` (degree,) so that `e^(degree) + sum_i k_i e^(i) = 0` has these poles.

    `poles` (degree,) [1/s], with negative real parts, complex ones with their conjugates. They are the roots
    of the polynomial whose coefficients are the gains.

    >>> gains_from_poles([-1.0, -2.0], 2)
    array([2., 3.])
    """
    values = np.asarray(poles, dtype=np.complex128).ravel()
    if len(values) != degree:
        raise InputError(f"{degree} poles are needed, one for each derivative fed back, found {len(values)}")
    if not np.isfinite(values).all() or not (values.real < 0.0).all():
        raise InputError(f"all poles must be finite with negative real parts, found {list(values)}")
    coefficients = np.poly(values)
    size = np.abs(coefficients)
    if (np.abs(np.imag(coefficients)) > 1e-9 * size).any():
        raise InputError(f"complex poles must come with their conjugates, found {list(values)}")
    return np.ascontiguousarray(np.real(coefficients)[:0:-1])


def butterworth_poles(degree: int, bandwidth: float) -> Array:
    """Return poles (degree,) evenly on a half circle of radius `bandwidth` [rad/s]: quick, hardly swinging.

    >>> butterworth_poles(2, 10.0).round(3)
    array([-7.071+7.071j, -7.071-7.071j])
    """
    angles = np.pi * (2.0 * np.arange(1, degree + 1) + degree - 1.0) / (2.0 * degree)
    poles = bandwidth * np.exp(1j * angles)
    real = np.abs(poles.imag) < 1e-12 * bandwidth
    result: Array = np.where(real, poles.real, poles)
    return result
