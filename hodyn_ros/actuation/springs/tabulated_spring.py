"""A series elastic drive whose spring was measured: deflections over torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.actuation.springs.series_spring import SeriesSpring, reverted
from hodyn_ros.actuation.transmission import Scalar, require, set_frozen, worst
from hodyn_ros.codegen.tracer import Traced
from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import Array, compose

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

_DEGREE = 5
_STEPS = 3  # of Newton's method, from a chord of the spline along which its slope changes little
_CHANGE = 0.1  # share by which it may


@dataclass(frozen=True, eq=False)
class TabulatedSpring(SeriesSpring):
    """The deflection as a spline of degree 5 through measured pairs (torque, deflection), both increasing.

    Its derivatives are continuous up to the fourth, which the torque derivatives of an elastic joint up to
    order 2 need. At least six pairs; torques beyond the table are rejected, and so is a table that the spline
    follows with a slope that is not positive everywhere.
    """

    torques: Sequence[float]  # [N.m], increasing
    deflections: Sequence[float]  # [rad], increasing
    _chords: Array = field(init=False, repr=False)  # (9, c) of `_chords_of`

    def __post_init__(self) -> None:
        from scipy.interpolate import PPoly, make_interp_spline  # takes a moment

        torques, deflections = (np.array(row, dtype=np.float64) for row in (self.torques, self.deflections))
        if torques.ndim != 1 or torques.shape != deflections.shape or len(torques) <= _DEGREE:
            raise InputError(
                f"a spring table needs at least {_DEGREE + 1} torques and as many deflections, found "
                f"{torques.size} and {deflections.size}"
            )
        for name, row in (("torques", torques), ("deflections", deflections)):
            if not np.isfinite(row).all() or not (np.diff(row) > 0.0).all():
                raise InputError(f"the {name} of a spring table must increase from value to value")
        spline = make_interp_spline(torques, deflections, k=_DEGREE)
        slope = spline.derivative()
        extrema = PPoly.from_spline(slope.derivative()).roots(extrapolate=False)
        places = np.concatenate([torques, extrema[np.isfinite(extrema)]])
        lowest = int(np.argmin(slope(places)))
        if not slope(places[lowest]) > 0.0:
            raise InputError(
                f"the spline through the spring table falls at {places[lowest]:g} N·m; give more even or "
                "smoother figures there"
            )
        set_frozen(self, torques=tuple(torques), deflections=tuple(deflections))
        set_frozen(self, _chords=_chords_of(spline, torques))

    def torque_at(self, deflection: Array) -> Array:
        """Return the jet of the torque at which the table shows a deflection."""
        start, slope = self._torque_at(deflection[0])
        return reverted(self._along, deflection, start, slope)

    def deflection_under(self, torque: Array) -> Array:
        """Return the jet of the deflection; InputError for a torque beyond the table."""
        x, low, high = torque[0], self.torques[0], self.torques[-1]
        for margin in (x - low, high - x):
            require(
                margin,
                lambda: f"a torque of {worst(x)} N·m lies beyond the spring table, {low:g} to {high:g} N·m",
            )
        return self._along(torque)

    def _along(self, torque: Array) -> Array:
        """Return the jet of the deflection under a torque within the table."""
        x = torque[0]
        begin, *coefficients = _looked_up(x, self._chords[1], [self._chords[1], *self._chords[3:]])
        distance = x - begin
        outer = []
        for k in range(len(torque)):
            value = np.zeros_like(x) if k > _DEGREE else coefficients[_DEGREE] * comb(_DEGREE, k)
            for m in range(_DEGREE - 1, k - 1, -1):
                value = value * distance + comb(m, k) * coefficients[m]
            outer.append(value)
        return compose(np.stack(outer), torque)

    def _torque_at(self, deflection: Scalar) -> tuple[Scalar, Scalar]:
        """Return the torque at a deflection, and the slope of the table there [rad/(N.m)]."""
        low, high = self.deflections[0], self.deflections[-1]
        for margin in (deflection - low, high - deflection):
            require(
                margin,
                lambda: (
                    f"a deflection of {worst(deflection)} rad lies beyond the spring table, {low:g} to "
                    f"{high:g} rad"
                ),
            )
        begin, first, chord, *coefficients = _looked_up(deflection, self._chords[0], list(self._chords))
        x = (deflection - begin) * chord
        for _ in range(_STEPS):
            value, slope = _polynomial(coefficients, x)
            x = x - (value - deflection) / slope
        return first + x, _polynomial(coefficients, x)[1]


def _chords_of(spline: BSpline, torques: Array) -> Array:
    """Return chords of a rising spline so short that Newton's method ends from them (9, m).

    Deflection and torque at their starts, torque over deflection along them, Taylor coefficients from there.
    """
    slope = spline.derivative()
    places = torques
    while True:
        inside = slope(places[:-1] + np.linspace(0.0, 1.0, 9)[:, None] * np.diff(places))
        bent = inside.max(axis=0) > (1.0 + _CHANGE) * inside.min(axis=0)
        if not bent.any():
            break
        places = np.sort(np.concatenate([places, (0.5 * (places[:-1] + places[1:]))[bent]]))
    starts, values = places[:-1], spline(places)
    coefficients = [spline(starts, nu=k) / factorial(k) for k in range(_DEGREE + 1)]
    return np.array([values[:-1], starts, np.diff(places) / np.diff(values), *coefficients])


def _polynomial(coefficients: Sequence[Scalar], x: Scalar) -> tuple[Scalar, Scalar]:
    """Return value and derivative at x."""
    value, slope = coefficients[-1], 0.0
    for coefficient in coefficients[-2::-1]:
        slope = slope * x + value
        value = value * x + coefficient
    return value, slope


def _looked_up(x: Scalar, starts: Array, rows: Sequence[Array]) -> Sequence[Scalar]:
    """Return from each of `rows` (m,) the number of the interval that x lies in; `starts` (m,) of these."""
    if isinstance(x, Traced):
        return x.looked_up(starts.tolist(), [row.tolist() for row in rows])
    piece = np.maximum(np.searchsorted(starts, x, side="right") - 1, 0)
    return [row[piece] for row in rows]
