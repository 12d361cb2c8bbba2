"""A path with a time law of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie import jets
from hodyn_ros.trajectory.base import Pieces, Trajectory
from hodyn_ros.trajectory.checks import frozen_array
from hodyn_ros.trajectory.easing import EasedStart, EasedStop

if TYPE_CHECKING:
    from scipy.interpolate import BSpline, PPoly

DEGREE = 5
_EASE_ORDER = 4  # of rest: no higher, as a speed that is finite leaves it slower than need be
_PARTS = 8  # of a stretch between knots, in the table of times
_NEWTON = 50  # steps at most; a few are enough
_CLOSE = 1e-8  # of a part of the table


@dataclass(frozen=True, eq=False)
class TimedPath(Trajectory):
    """The motion `q(u(t))` along a path q(u) whose parameter runs with the squared speed `(du/dt)^2 = b(u)`.

    `knots` (m,), increasing, from the start to the end of the path; `squared_speeds` (m + 4,): the
    coefficients of b as a spline of degree 5 with these knots, those at the ends six times. So b has four
    continuous derivatives, and u(t) has five. b is positive, also where the path itself rests at an end.
    Source: Verscheure et al., IEEE TAC 54(10), 2009, for b(u); de Boor, A Practical Guide to Splines
    (Springer 2001), chapter IX.

    >>> from hodyn_ros.trajectory import WaypointSpline
    >>> path = WaypointSpline([0.0, 1.0], [[0.0], [1.0]])
    >>> TimedPath(path, [0.0, 1.0], np.full(6, 4.0)).sample(0.25, 1).round(6).ravel()
    array([0.5     , 4.921875])
    """

    path: Trajectory
    knots: ArrayLike
    squared_speeds: ArrayLike
    _speed: PPoly = field(init=False, repr=False)
    _places: Array = field(init=False, repr=False)  # of the table, along the path
    _times: Array = field(init=False, repr=False)  # when they are passed

    def __post_init__(self) -> None:
        from scipy.interpolate import BSpline

        path = self.path
        knots = frozen_array("knots", self.knots, ("m",))
        if len(knots) < 2 or not (np.diff(knots) > 0.0).all():
            raise InputError("knots must be at least two, and increase")
        for name, knot, end in (("first", knots[0], path._departure), ("last", knots[-1], path.duration)):
            if not abs(knot - end) <= 1e-9 * max(1.0, abs(end)):
                raise InputError(f"the {name} knot is {knot:g}, but the path has its end at {end:g}")
        coefficients = frozen_array("squared_speeds", self.squared_speeds, (len(knots) + DEGREE - 1,))
        padded = np.concatenate([np.full(DEGREE, knots[0]), knots, np.full(DEGREE, knots[-1])])
        self._set(
            knots=knots,
            squared_speeds=coefficients,
            joint_names=path.joint_names,
            n_joints=path.n_joints,
            smoothness=min(path.smoothness, DEGREE),
            starts_at_rest=path.starts_at_rest,
            ends_at_rest=path.ends_at_rest,
        )
        spline = BSpline(padded, coefficients.copy(), DEGREE)
        lowest, place = lowest_value(spline)
        if not lowest > 0.0:
            raise InputError(f"the squared speed must be positive, but is {lowest:g} near {place:g}")
        self._set(_speed=_polynomials(spline))
        parts = knots[:-1, None] + np.diff(knots)[:, None] * np.arange(_PARTS) / _PARTS
        places = np.append(parts.ravel(), knots[-1])
        times = np.concatenate([[0.0], np.cumsum(self._elapsed(places[:-1], places[1:]))])
        self._set(_places=places, _times=times, duration=float(times[-1]))

    @property
    def breakpoints(self) -> Array | None:
        """When the knots and the breakpoints of the path are passed."""
        points = self.path.breakpoints
        if points is None:
            return None
        knots = np.asarray(self.knots)
        return self.times_at(np.union1d(np.clip(points, knots[0], knots[-1]), knots))

    @property
    def highest_frequency(self) -> float:
        """That of the path, where it is passed fastest [rad/s]."""
        return self.path.highest_frequency * float(np.sqrt(self._speed(self._places).max()))

    @property
    def pieces(self) -> Pieces | None:
        """Those of the path, cut at the knots of the speed."""
        path = self.path.pieces
        if path is None or path.speed_degree:
            return None
        knots = np.asarray(self.knots)
        inside = path.edges[(path.edges > knots[0]) & (path.edges < knots[-1])]
        return Pieces(
            np.union1d(inside, knots),
            path.degree,
            self.derivatives_at,
            lambda u: np.sqrt(self._speed(u)),
            self.times_at,
            self.places_at,
            DEGREE,
        )

    def squared_speeds_at(self, places: ArrayLike) -> Array:
        """Return `(du/dt)^2` (N,) at parameters u (N,)."""
        return np.asarray(self._speed(np.asarray(places, dtype=np.float64)))

    def times_at(self, places: ArrayLike) -> Array:
        """Return when the path is at parameters u (N,) [s]."""
        u = np.asarray(places, dtype=np.float64)
        before = np.clip(np.searchsorted(self._places, u, side="right") - 1, 0, len(self._places) - 2)
        return np.asarray(self._times[before] + self._elapsed(self._places[before], u))

    def places_at(self, times: ArrayLike) -> Array:
        """Return the path parameter u (N,) at times (N,) [s]."""
        t = np.clip(np.asarray(times, dtype=np.float64), 0.0, self.duration)
        before = np.clip(np.searchsorted(self._times, t, side="right") - 1, 0, len(self._times) - 2)
        start, lasts = self._places[before], np.diff(self._times)[before]
        lowest, highest = start, self._places[before + 1]
        u = start + (highest - start) * (t - self._times[before]) / lasts
        for _ in range(_NEWTON):
            missed = self._times[before] + self._elapsed(start, u) - t
            step = missed * np.sqrt(self._speed(u))
            u = np.clip(u - step, lowest, highest)
            if (np.abs(step) <= _CLOSE * (highest - lowest)).all():  # the next step would be its square
                break
        return np.asarray(u)

    def _elapsed(self, begin: Array, end: Array) -> Array:
        """Return how long it takes from places (N,) to places (N,) between the same two knots [s]."""
        at = begin[:, None] + (end - begin)[:, None] * _GAUSS
        return np.asarray((end - begin) * (self._speed(at) ** -0.5 @ _WEIGHTS))

    def _derivatives(self, times: Array, order: int) -> Array:
        return self.derivatives_at(self.places_at(times), order)

    def derivatives_at(self, u: Array, order: int) -> Array:
        """Return the time derivatives (order + 1, N, n) where the path is at parameters u (N,)."""
        law = np.zeros((order + 1, len(u)))
        law[0] = u
        if order:
            law[1] = np.sqrt(self._speed(u))
        if order > 1:  # the Taylor coefficients of u by time, from u'' = b'(u) / 2
            slope = np.zeros((order - 1, len(u)))
            for k in range(min(order - 1, DEGREE)):
                slope[k] = 0.5 * self._speed(u, nu=k + 1)
            slope = jets.to_taylor(slope)
            for k in range(2, order + 1):
                law[k] = jets.compose(slope[: k - 1], law[: k - 1])[k - 2] / (k * (k - 1))
        path = self.path._held_derivatives(u, order)
        return jets.to_derivatives(jets.compose(jets.to_taylor(path), law[:, :, None]))

    def _smoother(self, order: int) -> str:
        if order > DEGREE:
            return f"a TimedPath can be continuous up to derivative {DEGREE}"
        return self.path._smoother(order)


def _polynomials(spline: BSpline) -> PPoly:
    """Return the polynomials of a spline, which take a tenth of its time."""
    from scipy.interpolate import PPoly

    inner = slice(spline.k, -spline.k)  # of the knots, the first and the last one once
    every = PPoly.from_spline(spline)
    return PPoly(every.c[:, inner].copy(), every.x[inner].copy())


def lowest_value(spline: BSpline) -> tuple[float, float]:
    """Return a lower bound of a spline, exact where it is not positive, and near which place that is.

    Between two knots a spline is nowhere lower than the lowest of its coefficients there (de Boor, chapter
    IX); only where one of these is not positive, the polynomial itself is looked at.
    """
    knots, coefficients, degree = spline.t, spline.c, spline.k
    if (coefficients > 0.0).all():
        return float(coefficients.min()), float(knots[int(coefficients.argmin())])
    lowest, place = np.inf, np.nan
    for i in range(degree, len(coefficients)):
        half, middle = 0.5 * (knots[i + 1] - knots[i]), 0.5 * (knots[i] + knots[i + 1])
        around = coefficients[i - degree : i + 1]
        if (around > 0.0).all() or not half > 0.0:
            values, places = np.atleast_1d(around.min()), np.atleast_1d(middle)
        else:
            taylor = [spline(middle, nu=k) * half**k / factorial(k) for k in range(degree + 1)]
            polynomial = np.polynomial.Polynomial(taylor)
            roots = polynomial.deriv().roots()
            at = np.concatenate([[-1.0, 1.0], np.clip(roots.real, -1.0, 1.0)])
            values, places = polynomial(at), middle + half * at
        if not values.min() >= lowest:
            lowest, place = float(values.min()), float(places[int(values.argmin())])
    return lowest, place


def eased_path(path: Trajectory, ease: Sequence[float]) -> Trajectory:
    """Return a path that starts from and stops to rest over the first and the last `ease` (2,) of it.

    Where that is 0 it stays as it is. A time law with finite speed then brings the joints from rest to rest
    with four continuous derivatives.
    """
    start, stop = ease
    if start > 0.0:
        path = EasedStart(path, start, order=_EASE_ORDER)
    if stop > 0.0:
        path = EasedStop(path, stop, order=_EASE_ORDER)
    return path


def timed(
    path: Trajectory, knots: ArrayLike, squared_speeds: ArrayLike, ease: Sequence[float] = (0.0, 0.0)
) -> TimedPath:
    """Return the motion that a trajectory file with a `timing` describes."""
    return TimedPath(eased_path(path, ease), knots, squared_speeds)


_GAUSS, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_GAUSS, _WEIGHTS = 0.5 * (_GAUSS + 1.0), 0.5 * _WEIGHTS
