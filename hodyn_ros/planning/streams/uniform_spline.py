"""Uniform B-splines of degree 5: whatever their control points are, position to snap are continuous.

With control points c_i and knots `spacing` apart, span k uses c_k ... c_{k+5}; the k-th derivative has the
differences of order k as control points, divided by spacing^k, and stays in their hull.
Source: de Boor, A Practical Guide to Splines (Springer 2001), chapters IX to XI.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import ShapeError
from hodyn_ros.trajectory.base import Trajectory

DEGREE = 5
LAG = 2  # control point i is nearest to the spline at knot i - 2
# the powers 0 to 5 of the place in a span, 0 to 1, that each control point counts with; de Boor's recursion
_POWERS = np.array(
    [
        [1.0, 26.0, 66.0, 26.0, 1.0, 0.0],
        [-5.0, -50.0, 0.0, 50.0, 5.0, 0.0],
        [10.0, 20.0, -60.0, 20.0, 10.0, 0.0],
        [-10.0, 20.0, 0.0, -20.0, 10.0, 0.0],
        [5.0, -20.0, 30.0, -20.0, 5.0, 0.0],
        [-1.0, 5.0, -10.0, 10.0, -5.0, 1.0],
    ]
) / factorial(DEGREE)
_ON_POINTS = _POWERS[0, :DEGREE]  # the basis at the knots


def weights(places: ArrayLike, spacing: float, order: int) -> Array:
    """Return the weights (N, order + 1, 6) of the control points at places (N,) in a span, 0 to 1."""
    u = np.asarray(places, dtype=np.float64)
    result = np.zeros((len(u), order + 1, DEGREE + 1))
    for k in range(min(order, DEGREE) + 1):
        for power in range(k, DEGREE + 1):
            slope = factorial(power) / factorial(power - k) / spacing**k
            result[:, k] += slope * u[:, None] ** (power - k) * _POWERS[power]
    return result


def evaluate(controls: Array, spans: ArrayLike, places: ArrayLike, spacing: float, order: int) -> Array:
    """Return derivatives (N, order + 1, n) of a spline at places (N,), 0 to 1, in spans (N,).

    `controls` (c, n) with c >= 6; spans before the first and behind the last one hold their control points.
    """
    number = np.asarray(spans)[:, None] + np.arange(DEGREE + 1)
    near = controls[np.clip(number, 0, len(controls) - 1)]
    origin = near[:, :1]  # differences to it keep their digits
    result = weights(places, spacing, order) @ (near - origin)
    result[:, 0] += origin[:, 0]
    return result


def evaluate_needed(
    controls: Callable[[NDArray[np.intp]], Array], times: ArrayLike, spacing: float, order: int
) -> Array:
    """Return derivatives (N, order + 1, n) at times (N,) of a spline whose control points come by number."""
    places = np.asarray(times, dtype=np.float64) / spacing
    spans = np.floor(places).astype(int)
    first, last = int(spans.min()), int(spans.max())
    needed = controls(np.arange(first, last + DEGREE + 1))
    return evaluate(needed, spans - first, places - spans, spacing, order)


class PlannedMotion(NamedTuple):
    """A plan as it is followed: a spline by the time of a clock, that no later plan changes."""

    controls: Array  # (c, n); what lies before the first and behind the last one stands
    first: int  # span that the first ones belong to
    spacing: float  # [s]

    def sample(self, times: ArrayLike, order: int) -> Array:
        """Return positions and derivatives (N, order + 1, n) at N instants [s]."""
        places = np.asarray(times, dtype=np.float64) / self.spacing
        spans = np.floor(places).astype(int)
        return evaluate(self.controls, spans - self.first, places - spans, self.spacing, order)


@lru_cache
def interpolating_filter(lookahead: int) -> Array:
    """Return the weights (2 lookahead + 1,), lookahead >= 2, of points that make control points for them.

    The inverse of the basis at the knots, cut to `lookahead` on both sides such that what is missed is least
    in the sum of squares, and that polynomials up to degree 5 are passed exactly.

    >>> interpolating_filter(2).round(6)
    array([ 0.054167, -0.466667,  1.825   , -0.466667,  0.054167])
    """
    count = 2 * lookahead + 1
    product = np.zeros((count + 4, count))
    for i in range(count):
        product[i : i + 5, i] = _ON_POINTS
    wanted = np.zeros(count + 4)
    wanted[lookahead + 2] = 1.0
    places = np.linspace(-1.0, 1.0, count + 4)
    moments = np.stack([places**power for power in (0, 2, 4)])
    kept = moments @ product
    system = np.block([[product.T @ product, kept.T], [kept, np.zeros((3, 3))]])
    weights = np.linalg.solve(system, np.concatenate([product.T @ wanted, moments @ wanted]))[:count]
    return np.asarray(0.5 * (weights + weights[::-1]))


class UniformSpline(Trajectory):
    """A motion from control points (c, n), `spacing` [s] apart; it starts and ends at rest if they stand.

    It lasts over all spans that have six control points.
    """

    smoothness = DEGREE - 1

    def __init__(
        self, controls: ArrayLike, spacing: float, joint_names: tuple[str, ...] | None = None
    ) -> None:
        self._controls = np.array(controls, dtype=np.float64)
        if self._controls.ndim != 2 or len(self._controls) <= DEGREE:
            raise ShapeError("control points", "(6 or more, joints)", self._controls.shape)
        self._spacing = float(spacing)
        self._spans = len(self._controls) - DEGREE
        self.n_joints, self.joint_names = self._controls.shape[1], joint_names
        self.duration = self._spans * self._spacing
        first, last = self._controls[:DEGREE], self._controls[-DEGREE:]
        self.starts_at_rest = bool((first == first[0]).all())
        self.ends_at_rest = bool((last == last[0]).all())

    @property
    def breakpoints(self) -> Array:
        """The knots, where derivative 5 jumps."""
        return np.asarray(self._spacing * np.arange(self._spans + 1), dtype=np.float64)

    def _derivatives(self, times: Array, order: int) -> Array:
        spans = np.clip(np.floor(times / self._spacing), 0, self._spans - 1).astype(int)
        places = times / self._spacing - spans
        return np.moveaxis(evaluate(self._controls, spans, places, self._spacing, order), 1, 0)

    def _smoother(self, order: int) -> str:
        return f"splines of degree {DEGREE} are as smooth as this"
