"""The squared speed along a path as a spline, and the sums over stations that its coefficients see."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.planning.time_optimal.chain_rule import SPEEDS
from hodyn_ros.trajectory.timed import lowest_value

DEGREE = 5
_FIRST, _SECOND = np.triu_indices(DEGREE + 1)  # of two functions that do not vanish at an instant


class Stations:
    """Instants u (N,) of a path, increasing, and the spline functions that do not vanish there."""

    def __init__(self, knots: Array, u: Array) -> None:
        """Take all `knots` of the spline, those at the ends six times."""
        self.u, self.knots = u, knots
        self.count = len(knots) - DEGREE - 1
        inner = knots[DEGREE : self.count + 1]
        span = np.clip(np.searchsorted(inner, u, side="right") - 1, 0, len(inner) - 2)
        self.basis = _basis(knots, u, span + DEGREE)  # (N, 5 derivatives, 6 functions)
        self._set_span(span)

    def joined(self, other: Stations, order: NDArray[np.intp]) -> Stations:
        """Return the same with the instants of another, in an order of both that is theirs along the path."""
        u, basis = np.concatenate([self.u, other.u]), np.concatenate([self.basis, other.basis])
        return self._with(u[order], basis[order], np.concatenate([self._span, other._span])[order])

    def chosen(self, which: NDArray[np.intp]) -> Stations:
        """Return some of the instants, in order."""
        return self._with(self.u[which], self.basis[which], self._span[which])

    def _with(self, u: Array, basis: Array, span: NDArray[np.intp]) -> Stations:
        other = Stations.__new__(Stations)
        other.knots, other.count = self.knots, self.count
        other.u, other.basis = u, basis
        other._set_span(span)
        return other

    def _set_span(self, span: NDArray[np.intp]) -> None:
        self._span = span
        self._starts = np.flatnonzero(np.diff(span, prepend=-1))
        self._columns = span[:, None] + np.arange(DEGREE + 1)

    def positive(self, coefficients: Array) -> bool:
        """Return whether b is positive all along the path."""
        if (coefficients > 0.0).all():  # b lies in their hull
            return True
        from scipy.interpolate import BSpline

        return lowest_value(BSpline(self.knots, coefficients, DEGREE))[0] > 0.0

    def speeds(self, coefficients: Array) -> Array:
        """Return b and its derivatives by u, (N, 5)."""
        return (self.basis @ coefficients[self._columns][:, :, None])[:, :, 0]

    def gradient(self, weights: Array) -> Array:
        """Return the derivatives by the coefficients of a sum, from those by y (N, 5), or b (N, 1)."""
        terms = (weights[:, None, :] @ self.basis[:, : weights.shape[1]])[:, 0]
        sums = np.bincount(self._columns.ravel(), terms.ravel(), self.count)
        return np.asarray(sums, dtype=np.float64)

    def curvature(self, weights: Array) -> Array:
        """Return the second derivatives of a sum, from those by y (N, 5, 5): upper bands (6, count).

        From those by b alone (N, 1, 1) in less time.
        """
        if weights.shape[1] == 1:
            terms = self._squares * weights[:, 0]
        else:
            basis = self.basis[:, : weights.shape[1]]
            terms = (basis.swapaxes(1, 2) @ (weights @ basis))[:, _FIRST, _SECOND]
        sums = np.add.reduceat(terms, self._starts, axis=0)
        bands = np.bincount(self._in_bands.ravel(), sums.ravel(), (DEGREE + 1) * self.count)
        return np.asarray(bands, dtype=np.float64).reshape(DEGREE + 1, self.count)

    @cached_property
    def _squares(self) -> Array:
        """The products (N, 21) of any two functions."""
        return self.basis[:, 0, _FIRST] * self.basis[:, 0, _SECOND]

    @cached_property
    def _in_bands(self) -> NDArray[np.intp]:
        """Where products of functions stand in upper bands, by span with instants (spans, 21)."""
        return (DEGREE + _FIRST - _SECOND) * self.count + self._span[self._starts, None] + _SECOND


def _basis(knots: Array, u: Array, interval: NDArray[np.intp]) -> Array:
    from scipy.interpolate import BSpline

    count = len(knots) - DEGREE - 1
    result = np.empty((len(u), SPEEDS, DEGREE + 1))
    at = (interval - DEGREE)[:, None] + np.arange(DEGREE + 1)
    # no more than six neighbours differ from zero anywhere: as many columns tell them apart
    every = BSpline(knots, np.eye(DEGREE + 1)[np.arange(count) % (DEGREE + 1)], DEGREE)
    for k in range(SPEEDS):
        result[:, k] = np.take_along_axis(every(u, nu=k), at % (DEGREE + 1), axis=1)
    return result
