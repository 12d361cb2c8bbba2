"""The exact peaks of positions, velocities, accelerations and jerks of a motion made of polynomials.

With the polynomials P_k of `trajectory.pieces`, a derivative `q^(k)` is extreme where `q^(k+1)` vanishes,
that is at the real roots of P_(k+1), or at the ends of a piece. P_(k+1) is interpolated at as many Chebyshev
points as its degree asks for, which gives it to rounding; its roots are eigenvalues of its colleague matrix
(Good, Quarterly J. Math. 12(1), 1961; Trefethen, Approximation Theory and Approximation Practice, SIAM 2013,
chapter 18). The sum of the magnitudes of its coefficients bounds a polynomial: where P_k cannot be higher
than a value that is known, no root is looked for. Nothing is estimated.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.peaks import Peaks
from hodyn_ros.trajectory.base import Pieces
from hodyn_ros.trajectory.robot_motion import RobotMotion


class MotionPeaks:
    """Peaks, up to a time `end` [s], of those columns of a demand that the motion alone says.

    Attributes:
        known: Which columns (columns,) these are; none where the motion is not made of polynomials.
    """

    def __init__(
        self, demand: LimitSet, motion: RobotMotion, end: float, some: NDArray[np.bool_] | None = None
    ) -> None:
        """Look at `some` of the columns (columns,), by default at all."""
        self._demand, self._motion, self._end = demand, motion, end
        own = [
            _coordinate(demand, column) if some is None or some[column] else None
            for column in range(len(demand.columns))
        ]
        self.known: NDArray[np.bool_] = np.array([number is not None for number in own], dtype=bool)
        orders = [place.derivative for place, number in zip(demand.places, own) if number is not None]
        numbers = [number for number in own if number is not None]
        self._orders = np.array(orders, dtype=np.intp)
        self._joints = len(motion.coordinates) + np.array(numbers, dtype=np.intp)
        if not has_extrema(motion.trajectory.pieces, self._orders.max(initial=0)):
            self.known[:] = False

    @cached_property
    def _extrema(self) -> Extrema:
        pieces = self._motion.trajectory.pieces
        assert pieces is not None
        return find_extrema(pieces, int(self._orders.max()), self._end)

    def joined(self, searched: Peaks | None, speed: float) -> Peaks:
        """Return peaks at a speed; `searched` are those of the columns that are not known.

        Times are those of the motion as given; nothing is said of columns that were not looked for.
        """
        if searched is None:
            nothing = np.zeros(len(self.known))
            searched = Peaks(nothing, nothing, nothing, nothing, 0)
        if not self.known.any():
            return searched
        extrema, at = self._extrema, (self._orders, self._joints)
        values = np.stack([extrema.highest[at], extrema.lowest[at]]) * speed**self._orders
        centre, span = self._demand.scale[:, self.known]
        relative = (values - centre) / span
        sizes = np.where(self._demand.one_sided[self.known], relative, np.abs(relative))
        higher = np.argmax(sizes, axis=0)[None]
        times = np.stack([extrema.highest_times[at], extrema.lowest_times[at]])

        def joined(of_search: Array, both: Array) -> Array:
            result = of_search.copy()
            result[self.known] = np.take_along_axis(both, higher, axis=0)[0]
            return result

        return Peaks(
            joined(searched.sizes, sizes),
            joined(searched.times, times),
            joined(searched.values, relative),
            joined(searched.errors, np.zeros_like(sizes)),
            searched.evaluations + extrema.evaluations,
        )


def _coordinate(demand: LimitSet, column: int) -> int | None:
    """Return the coordinate of the robot that a quantity is a derivative of; None where it is of none."""
    subject, place = demand.subject, demand.places[column]
    if place.stack == "coordinates":
        return place.number
    name = subject.joint_names[place.number] if place.stack == "motion" else None
    return subject.robot.joint_names.index(name) if name in subject.robot.joint_names else None


HIGHEST_DEGREE = 120  # of a polynomial whose roots are looked for
_BLOCK = 512  # pieces at a time
_NEAR = 64  # ulps between edges that are the same one
_GAP = 8  # ulps between an edge, where a derivative may jump, and its sides
_HIGHER = 1e-12  # of a value, by which a bound has to be above it
_ROUNDING = 4.0 * np.finfo(np.float64).eps  # of coefficients, beside the largest
_BESIDE = 1e-2  # of the interval: roots that rounding may have moved there; each is evaluated


class Extrema(NamedTuple):
    """The highest and the lowest values of derivatives, one row each, and the times when they are reached."""

    highest: Array  # (orders, n)
    highest_times: Array  # (orders, n) [s]
    lowest: Array  # (orders, n)
    lowest_times: Array  # (orders, n) [s]
    evaluations: int


def find_extrema(pieces: Pieces, order: int, end: float) -> Extrema:
    """Return the extrema of the derivatives 0 to `order` up to the time `end` [s].

    They are values of the motion itself, at either side of an edge where a derivative jumps.
    """
    search = _Search(pieces, order, end)
    for first in range(0, len(search.edges) - 1, _BLOCK):
        search.block(search.edges[first : first + _BLOCK + 1])
    return search.extrema()


def has_extrema(pieces: Pieces | None, order: int) -> bool:
    """Return whether `find_extrema` can be asked for derivatives up to `order`."""
    return pieces is not None and _degree(pieces, order) <= HIGHEST_DEGREE


def _degree(pieces: Pieces, order: int) -> int:
    return max(pieces.degree_of(k) for k in range(order + 2))


class _Search:
    """What is known of the extrema so far; first the negative of what is lowest, then what is highest."""

    def __init__(self, pieces: Pieces, order: int, end: float) -> None:
        self._pieces, self._order = pieces, order
        last = pieces.places(np.array([end]))[0]
        inside = pieces.edges[pieces.edges < last]
        self.edges = np.append(inside[np.diff(inside, append=last) > _NEAR * np.spacing(abs(last))], last)
        self._tick = np.spacing(end)
        count = _degree(pieces, order) + 1
        self._nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        self._to_series = np.linalg.inv(chebyshev.chebvander(self._nodes, count - 1))
        self._sizes = np.array(-np.inf)  # (2, orders, n), once their number shows
        self._places = np.array(0.0)
        self._evaluations = 0

    def extrema(self) -> Extrema:
        times = self._pieces.times(self._places.ravel()).reshape(self._places.shape)
        return Extrema(self._sizes[1], times[1], -self._sizes[0], times[0], self._evaluations)

    def block(self, edges: Array) -> None:
        """Look into the pieces between edges (M,)."""
        begin, end = edges[:-1], edges[1:]
        gap = _GAP * np.maximum(np.spacing(np.abs(edges)), self._pieces.speeds(edges) * self._tick)
        self._evaluate(np.concatenate([begin + gap[:-1], end - gap[1:]]))
        half, middle = 0.5 * (end - begin), 0.5 * (begin + end)
        u = middle[:, None] + half[:, None] * self._nodes
        derivatives = self._evaluate(u.ravel()).reshape(self._order + 2, *u.shape, -1)
        speeds = self._pieces.speeds(u.ravel()).reshape(u.shape)
        derivatives[1::2] /= speeds[:, :, None]
        series = np.moveaxis(self._to_series @ derivatives, 2, -1)  # (orders + 1, pieces, n, coefficients)
        fastest = np.sqrt(np.abs(speeds**2 @ self._to_series.T).sum(axis=1))
        for k in range(self._order + 1):
            pieces, columns = np.nonzero(self._may_be_higher(k, series[k], fastest[:, None] ** (k % 2)))
            which, places = _real_roots(series[k + 1, pieces, columns])
            if len(which):
                which = pieces[which]
                self._evaluate(middle[which] + half[which] * places)

    def _may_be_higher(self, k: int, series: Array, factor: Array) -> NDArray[np.bool_]:
        """Return in which pieces (pieces, n) a derivative may be beyond what is known."""
        middle, deviations = series[..., 0], np.abs(series[..., 1:]).sum(axis=-1)
        bounds = factor * (np.stack([-middle, middle]) + deviations)
        known = self._sizes[:, k, None]
        return np.asarray((bounds > known + _HIGHER * np.abs(known)).any(axis=0))

    def _evaluate(self, u: Array) -> Array:
        """Return derivatives (orders + 1, N, n) at places (N,), and remember those that are extreme."""
        derivatives = self._pieces.derivatives(u, self._order + 1)
        self._evaluations += len(u)
        both = np.stack([-derivatives[:-1], derivatives[:-1]])
        at = np.argmax(both, axis=2)
        sizes = np.take_along_axis(both, at[:, :, None], axis=2)[:, :, 0]
        better = sizes > self._sizes
        self._sizes, self._places = (
            np.where(better, sizes, self._sizes),
            np.where(better, u[at], self._places),
        )
        return derivatives


def _real_roots(series: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the real roots in [-1, 1] of polynomials (N, coefficients): of which (R,), and where (R,)."""
    sizes = np.abs(series)
    counts = sizes > _ROUNDING * sizes.max(axis=1, keepdims=True)
    degrees = np.where(counts.any(axis=1), series.shape[1] - 1 - np.argmax(counts[:, ::-1], axis=1), 0)
    rows: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)]
    places: list[Array] = [np.zeros(0)]
    for degree in np.unique(degrees[degrees > 0]):
        some = np.flatnonzero(degrees == degree)
        roots = np.linalg.eigvals(_colleagues(series[some, : degree + 1]))
        near = (np.abs(roots.imag) <= _BESIDE) & (np.abs(roots.real) <= 1.0 + _BESIDE)
        rows.append(np.repeat(some, near.sum(axis=1)))
        places.append(np.clip(roots.real[near], -1.0, 1.0))
    return np.concatenate(rows), np.concatenate(places)


def _colleagues(series: Array) -> Array:
    """Return the matrices (N, degree, degree) whose eigenvalues are the roots of polynomials."""
    degree = series.shape[1] - 1
    if degree == 1:
        return np.asarray(-series[:, :1, None] / series[:, 1:, None])
    monic = np.zeros(degree + 1)
    monic[-1] = 1.0
    scale = np.full(degree, np.sqrt(0.5))  # of `chebcompanion`, which makes the rest symmetric
    scale[0] = 1.0
    matrices = np.repeat(chebyshev.chebcompanion(monic)[None], len(series), axis=0)
    matrices[:, :, -1] -= 0.5 * series[:, :-1] / series[:, -1:] * (scale / scale[-1])
    return matrices[:, ::-1, ::-1]
