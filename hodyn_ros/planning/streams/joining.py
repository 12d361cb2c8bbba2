"""How a motion goes over to another one: continuous to its acceleration, or from where a plan has led."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array


def within(controls: Array, step: float, bounds: Array) -> NDArray[np.bool_]:
    """Return which joints keep bounds (3, n) by their control points (N, n), `step` [s] apart."""
    kept, differences = np.ones(controls.shape[1], dtype=bool), controls
    for order, bound in enumerate(bounds, start=1):
        differences = np.diff(differences, axis=0)
        kept &= (np.abs(differences) <= bound * step**order).all(axis=0)
    return kept


def joining(off: Array, times: Array, join: float) -> Array:
    """Return how what is off (3, n), with derivatives, goes to zero in `join` [s]: (N, 3, n) at N times."""
    u = np.minimum(times / join, 1.0)[:, None]
    p, v, a = off[0], off[1] * join, off[2] * join * join
    coefficients = np.stack(
        [p, v, a / 2.0, -10 * p - 6 * v - 1.5 * a, 15 * p + 8 * v + 1.5 * a, -6 * p - 3 * v - 0.5 * a]
    )
    return _polynomials(coefficients, u, join)


def fading(off: Array, times: Array, join: float) -> Array:
    """Return what is off (N, 3, n) at times (N,), with a weight that goes from one to zero in `join` [s]."""
    u = np.minimum(times / join, 1.0)[:, None]
    coefficients = np.array([1.0, 0.0, 0.0, 0.0, -35.0, 84.0, -70.0, 20.0])[:, None]
    weight = np.moveaxis(_polynomials(coefficients, u, join), 1, 0)  # with its derivatives
    p, v, a = np.moveaxis(off, 1, 0)
    w, w1, w2 = weight
    return np.stack([w * p, w1 * p + w * v, w2 * p + 2.0 * w1 * v + w * a], axis=1)


def _polynomials(coefficients: Array, u: Array, duration: float) -> Array:
    """Return polynomials (powers, n) at u (N, 1), 0 to 1, with two derivatives by time: (N, 3, n)."""
    found = []
    for _ in range(3):
        found.append(np.asarray(u ** np.arange(len(coefficients)) @ coefficients))
        coefficients = coefficients[1:] * np.arange(1, len(coefficients))[:, None] / duration
    return np.stack(found, axis=1)
