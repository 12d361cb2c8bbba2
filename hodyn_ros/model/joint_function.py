"""How one joint follows another along a curve: polynomials, and splines through tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError

DEGREES = (3, 5, 7, 9, 11, 13, 15)
SLACK = 1e-12  # share of its range by which a position may leave a table through rounding


@dataclass(frozen=True, eq=False)
class JointFunction:
    """A piecewise polynomial `q = f(x)` of the position x of another joint [rad or m].

    Piece i holds from `breaks[i]` to `breaks[i + 1]`, and its `coefficients` (pieces, degree + 1) are the
    Taylor coefficients of f, lowest first, about `centers[i]`. A polynomial is one piece without ends.
    """

    breaks: Array  # (pieces + 1,) increasing
    centers: Array  # (pieces,)
    coefficients: Array
    smoothness: int | None = None  # the highest derivative that is continuous; None: every one
    periodic: bool = False  # whether f repeats itself beyond its ends

    @classmethod
    def of_polynomial(cls, coefficients: Sequence[float]) -> JointFunction:
        """Return the polynomial with these coefficients, the constant first."""
        about_zero = np.array([coefficients], dtype=np.float64)
        if about_zero.ndim != 2 or not about_zero.size or not np.isfinite(about_zero).all():
            raise ModelError(
                f"its polynomial must be a list of numbers, the constant first; found {coefficients}"
            )
        return cls(np.array([-np.inf, np.inf]), np.zeros(1), about_zero)

    @classmethod
    def of_table(
        cls, at: Sequence[float], values: Sequence[float], degree: int, periodic: bool
    ) -> JointFunction:
        """Return the spline of odd degree through the points of a table.

        All derivatives below `degree` are continuous; at its ends the spline is one polynomial over as many
        intervals as its knots allow ("not a knot"), or continues at the other end where it is periodic.
        Raises ModelError saying what the table lacks.
        """
        from scipy.interpolate import make_interp_spline  # takes a moment

        x, y = np.array(at, dtype=np.float64), np.array(values, dtype=np.float64)
        if x.ndim != 1 or x.shape != y.shape:
            raise ModelError(f"its table holds {x.size} positions and {y.size} values; give as many of both")
        if not np.isfinite([x, y]).all() or (np.diff(x) <= 0.0).any():
            raise ModelError("the positions of its table must increase, and all figures be finite")
        if degree not in DEGREES:
            raise ModelError(f"the degree of its spline must be one of {list(DEGREES)}, found {degree!r}")
        if len(x) <= degree:
            raise ModelError(
                f"a spline of degree {degree} needs {degree + 1} points or more, found {len(x)}; measure "
                "more, or take a lower `degree`"
            )
        if periodic and y[0] != y[-1]:
            raise ModelError(f"its table is periodic, but begins with {y[0]:g} and ends with {y[-1]:g}")
        spline = make_interp_spline(x, y, k=int(degree), bc_type="periodic" if periodic else None)
        breaks = np.unique(spline.t[(spline.t >= x[0]) & (spline.t <= x[-1])])
        # derivatives by de Boor's algorithm: PPoly.from_spline fails above degree 5; within the pieces, as a
        # periodic spline may take a break for a point of the piece before
        centers = 0.5 * (breaks[:-1] + breaks[1:])
        pieces = [spline(centers, nu=k) / factorial(k) for k in range(int(degree) + 1)]
        return cls(breaks, centers, np.stack(pieces, axis=1), int(degree) - 1, bool(periodic))

    def taylor(self, x: float, count: int) -> Array:
        """Return the Taylor coefficients (count,) of f at x; beyond its ends f goes on straight."""
        low, high = self.breaks[0], self.breaks[-1]
        if self.periodic:
            x = low + (x - low) % (high - low)
        inside = min(max(x, low), high)
        piece = int(np.searchsorted(self.breaks[1:-1], inside, side="right"))
        about = self.coefficients[piece].copy()
        for k in range(len(about) - 1):  # Horner's scheme, repeated, moves the center to x
            for m in range(len(about) - 2, k - 1, -1):
                about[m] += (inside - self.centers[piece]) * about[m + 1]
        result = np.zeros(count)
        result[: len(about)] = about[:count]
        if not self.holds(x):
            slope = about[1] if len(about) > 1 else 0.0
            result[0] += slope * (x - inside)
            result[2:] = 0.0
        return result

    def holds(self, x: float) -> bool:
        """Say whether a position is in the range of the table."""
        low, high = float(self.breaks[0]), float(self.breaks[-1])
        slack = SLACK * (high - low) if np.isfinite(high - low) else 0.0
        return self.periodic or low - slack <= x <= high + slack
