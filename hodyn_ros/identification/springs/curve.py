"""How a spring bends under its load, beyond a line: hardening, a table, backlash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import minimize_scalar

from hodyn_ros.actuation.springs.hardening_spring import cubic_root
from hodyn_ros.actuation.springs.tabulated_spring import TabulatedSpring
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

_NARROW = 0.01  # of the largest load, within which a backlash is passed
_SMEARED = 0.25  # periods of the bandwidth over which a smooth motion passes it
_BOTH_WAYS = 0.02  # share of the time that a load pulls either way, at least, to show a backlash
_KNOTS = 5  # between the ends of the loads of a table
_PAIRS = 15  # that a table has
_FURTHER = 0.5  # of the range of loads, by which a table goes on straight at either end


@dataclass(frozen=True, eq=False)
class Curve:
    """Deflection over load, in addition to `load / K` with the stiffness K without load.

    `hardness` h [1/(N·m)^2] is that of a hardening spring, K3 / K^3: its deflection is u / K with
    `u + h u^3 = load`. `table` (2, m) holds loads [N·m] and deflections [rad]. `gap` [rad] is the backlash,
    passed within `width` [N·m].
    """

    hardness: float = 0.0
    table: Array | None = None
    gap: float = 0.0
    width: float = 1.0

    def beyond(self, load: Array, compliance: float) -> Array:
        """Return the deflection (N,) [rad] that is not `compliance * load`, with loads (N,)."""
        result = compliance * (hardened(load, self.hardness) - load)
        if self.table is not None:
            result = np.interp(load, *self.table) - compliance * load
        return np.asarray(result + 0.5 * self.gap * np.tanh(load / self.width))

    def cubic_stiffness(self, stiffness: float) -> float:
        """Return K3 [N·m/rad^3] of a hardening spring with the stiffness K without load."""
        return self.hardness * stiffness**3


def hardened(load: Array, hardness: float) -> Array:
    """Return u with `u + hardness u^3 = load`."""
    return np.asarray(cubic_root(load, 1.0, hardness)) if hardness else load


def hardness_of(load: Array, regressors: Array, values: Array) -> float:
    """Return the hardness with which `c u(load) + others @ x` is nearest to values (N,), c and x free."""
    largest = float(np.abs(load).max())

    def left(log: float) -> float:
        columns = np.column_stack([hardened(load, 10.0**log / largest**2), regressors])
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        fit = np.linalg.lstsq(columns / size, values, rcond=None)[0]
        return float(np.sum((values - columns / size @ fit) ** 2))

    tried = np.linspace(-3.0, 3.0, 13)
    best = float(tried[int(np.argmin([left(each) for each in tried]))])
    minimum = minimize_scalar(left, bounds=(best - 0.5, best + 0.5), method="bounded")
    return float(10.0**minimum.x / largest**2)


def backlash_width(load: Array, rate: Array, bandwidth: float) -> float:
    """Return the load [N·m] within which a backlash is passed, 0 where it always pulls one way.

    `rate` [N·m/s] is that of the load, `bandwidth` [Hz] that of the motion, which smears steps.
    """
    smeared = _SMEARED * float(np.sqrt(np.mean(rate**2))) / bandwidth
    width = max(_NARROW * float(np.abs(load).max()), smeared)
    shares = np.mean(load > width), np.mean(load < -width)
    return width if min(shares) > _BOTH_WAYS else 0.0


def table_columns(load: Array) -> tuple[Array, Array]:
    """Return columns (N, k) of a spline over the load, less a constant, and its knots."""
    low, high = float(load.min()), float(load.max())
    knots = np.r_[[low] * 3, np.linspace(low, high, _KNOTS + 2), [high] * 3]
    return BSpline.design_matrix(load, knots, 3).toarray()[:, 1:], knots


def spring_table(knots: Array, coefficients: Array) -> Array | None:
    """Return loads and deflections (2, m) of a fitted spline, straight on beyond what was recorded.

    Without deflection where there is no load. None where it is not that of a spring: where it falls.
    """
    spline = BSpline(knots, np.r_[0.0, coefficients], 3)
    low, high = knots[0], knots[-1]
    inside = np.linspace(low, high, _PAIRS)
    further = _FURTHER * (high - low)
    slopes = spline([low, high], nu=1)
    loads = np.r_[low - further, low - 0.5 * further, inside, high + 0.5 * further, high + further]
    middle = spline(np.clip(loads, low, high))
    bent = middle + slopes[0] * np.minimum(loads - low, 0.0) + slopes[1] * np.maximum(loads - high, 0.0)
    bent = bent - np.interp(0.0, loads, bent)
    try:
        TabulatedSpring(loads.tolist(), bent.tolist())
    except InputError:
        return None
    return np.stack([loads, bent])
