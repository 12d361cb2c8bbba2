"""A series elastic drive whose spring was measured: deflections over torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.actuation.conditions import Scalar, require, worst
from hodyn_ros.actuation.series_solution import reverted
from hodyn_ros.actuation.transmission import Loads, Transmission, set_frozen
from hodyn_ros.engine.codegen.tracer import Traced
from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import Array, compose

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

_DEGREE = 5
_BISECTIONS = 80


@dataclass(frozen=True, eq=False)
class TabulatedSpring(Transmission):
    """The deflection as a spline of degree 5 through measured pairs (torque, deflection), both increasing.

    Its derivatives are continuous up to the fourth, which the torque derivatives of an elastic joint up to
    order 2 need. At least six pairs; torques beyond the table are refused, and so is a table that the spline
    follows with a slope that is not positive everywhere.
    """

    torques: Sequence[float]  # [N.m], increasing
    deflections: Sequence[float]  # [rad], increasing
    _spline: BSpline = field(init=False, repr=False)
    _starts: Array = field(init=False, repr=False)  # (m,) of its pieces [N.m]
    _pieces: Array = field(init=False, repr=False)  # (6, m) their Taylor coefficients there

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
        pieces = PPoly.from_spline(spline)
        real = np.flatnonzero(np.diff(pieces.x) > 0.0)
        set_frozen(self, torques=tuple(torques), deflections=tuple(deflections), _spline=spline)
        set_frozen(self, _starts=pieces.x[real], _pieces=pieces.c[::-1, real])

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q + delta(Q)`."""
        theta: Array = (q[: len(torque)] + self._deflection_under(torque))[None]
        return theta

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torque at which the table shows this deflection."""
        delta = self.deflection(q, theta)
        start = self._torque_at(delta[0])
        slope = np.asarray(self._spline(start, nu=1))
        torque = reverted(self._deflection_under, delta, start, slope)
        return Loads(torque, torque[None])

    def _deflection_under(self, torque: Array) -> Array:
        x, low, high = torque[0], self.torques[0], self.torques[-1]
        for margin in (x - low, high - x):
            require(
                margin,
                lambda: f"a torque of {worst(x)} N·m lies beyond the spring table, {low:g} to {high:g} N·m",
            )
        begin, *coefficients = _looked_up(x, self._starts, [self._starts, *self._pieces])
        distance = x - begin
        outer = []
        for k in range(len(torque)):
            value = np.zeros_like(x) if k > _DEGREE else coefficients[_DEGREE] * comb(_DEGREE, k)
            for m in range(_DEGREE - 1, k - 1, -1):
                value = value * distance + comb(m, k) * coefficients[m]
            outer.append(value)
        return compose(np.stack(outer), torque)

    def _torque_at(self, deflection: Array) -> Array:
        low, high = self.deflections[0], self.deflections[-1]
        if ((deflection < low) | (deflection > high)).any():
            worst = np.ravel(deflection)[int(np.argmax(np.abs(np.ravel(deflection))))]
            raise InputError(
                f"a deflection of {worst:g} rad lies beyond the spring table, {low:g} to {high:g} rad"
            )
        left = np.full(np.shape(deflection), self.torques[0])
        right = np.full(np.shape(deflection), self.torques[-1])
        for _ in range(_BISECTIONS):
            middle = 0.5 * (left + right)
            above = self._spline(middle) > deflection
            left, right = np.where(above, left, middle), np.where(above, middle, right)
        return 0.5 * (left + right)


def _looked_up(x: Scalar, starts: Array, rows: Sequence[Array]) -> Sequence[Scalar]:
    """Return from each of `rows` (m,) the number of the interval that x lies in; `starts` (m,) of these."""
    if isinstance(x, Traced):
        return x.looked_up(starts.tolist(), [row.tolist() for row in rows])
    piece = np.maximum(np.searchsorted(starts, x, side="right") - 1, 0)
    return [row[piece] for row in rows]
