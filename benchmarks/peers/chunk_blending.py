"""Motions from chunks that are continuous to the acceleration, as published ways make them.

`RailMotion`: after VLA-RAIL (arXiv 2512.24673): each chunk is fitted by polynomials, and a spline of degree 5
leads from the motion under way to the new polynomials, equal to both in position, velocity and acceleration.
`LipoMotion`: after LiPo (arXiv 2506.05165): the motion under way and the new chunk are mixed linearly where
both have points, and the points are moved, each within bounds, until the sum of squares of their jerks is
least; a cubic spline passes through them. Both written after the papers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Polynomial
from scipy.interpolate import BPoly, CubicSpline
from scipy.optimize import lsq_linear

from benchmarks.stopwatch import Array

_DEGREE = 5
_BLEND = 0.2  # [s]
_MOVED, _MOVED_IN_BLEND = 0.005, 0.02  # [rad] by which LiPo may move points

Columns = Callable[[float], Array]  # position, velocity, acceleration (3, n) at a time [s]


class RailMotion:
    """Follows chunks after VLA-RAIL; stands at `home` (n,) first."""

    def __init__(self, home: Array) -> None:
        still = np.stack([home, np.zeros_like(home), np.zeros_like(home)])
        self._now: Columns = lambda _: still

    def take(self, times: Array, positions: Array, now: float) -> None:
        """Go over to a new chunk from `now` [s] on."""
        begin, end = float(times[0]), float(times[-1])
        fits = [Polynomial.fit(times, column, _DEGREE, domain=[begin, end]) for column in positions.T]
        rates = [[fit.deriv(k) if k else fit for fit in fits] for k in range(3)]

        def chunk(t: float) -> Array:
            held = min(t, end)
            found = np.array([[one(held) for one in row] for row in rates])
            found[1:] *= t <= end
            return found

        until = now + _BLEND
        bridge = BPoly.from_derivatives([now, until], [self._now(now), chunk(until)])
        slopes = [bridge.derivative(k) if k else bridge for k in range(3)]
        self._now = lambda t: np.array([one(t) for one in slopes]) if t < until else chunk(t)

    def at(self, t: float) -> Array:
        """Return position, velocity and acceleration (3, n) at a time [s]."""
        return self._now(t)


class LipoMotion:
    """Follows chunks after LiPo; stands at `home` (n,) first."""

    def __init__(self, home: Array) -> None:
        self._home = home
        self._spline: CubicSpline | None = None

    def take(self, times: Array, positions: Array, now: float) -> None:
        """Go over to a new chunk from `now` [s] on."""
        step = float(times[1] - times[0])
        frozen = 3  # points that are passed, so that the new spline goes on as the last one does
        grid = now + step * np.arange(-frozen, int((times[-1] - now) / step) + 1)
        wanted = np.stack([np.interp(grid, times, column) for column in positions.T], axis=1)
        before = np.array([self.at(t)[0] for t in grid])
        share = np.clip((grid - now) / _BLEND, 0.0, 1.0)[:, None]
        reference = (1.0 - share) * before + share * wanted
        third = np.diff(np.eye(len(grid)), 3, axis=0)
        most = np.where(share[frozen + 1 :, 0] < 1.0, _MOVED_IN_BLEND, _MOVED)
        moved = reference.copy()
        for joint, column in enumerate(reference.T):
            found = lsq_linear(third[:, frozen + 1 :], -third @ column, (-most, most), tol=1e-6)
            moved[frozen + 1 :, joint] += found.x
        # equal to the last one in position, velocity and acceleration: the spline begins at `now`
        here, kept = self.at(now), moved[frozen:]
        spline = CubicSpline(grid[frozen:], kept, bc_type=((1, here[1]), (1, np.zeros_like(here[1]))))
        self._spline, self._end = spline, float(grid[-1])

    def at(self, t: float) -> Array:
        """Return position, velocity and acceleration (3, n) at a time [s]."""
        if self._spline is None:
            return np.stack([self._home, *np.zeros((2, len(self._home)))])
        found = np.array([self._spline(min(t, self._end), nu=k) for k in range(3)])
        found[1:] *= t <= self._end
        return found
