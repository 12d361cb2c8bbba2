"""The fastest speed along a path that keeps limits at stations, by a primal-dual interior point method.

    minimise  T(c) = sum_k w_k b(u_k)^(-1/2)   so that   -1 <= r_ij(c) <= 1,

where b is a spline with coefficients c, r_ij the relative quantity j at station i. Every iterate keeps all
limits; where the first one does not, limits are widened there, and narrowed after each step. T is convex; of
the quantities the slopes alone are used, so that each step solves a band matrix of six diagonals, and the
cost grows evenly with stations and coefficients. Source: Boyd & Vandenberghe, Convex Optimization (Cambridge
2004), section 11.7; Waechter & Biegler, Math. Programming 106(1), 2006, for the safeguards where r is not
convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.speed_spline import DEGREE, Stations

_MOST = 200  # steps
_TO_WALL = 0.99  # of the way to the nearest limit, at most
_CENTRED = 0.2  # of the barrier: a smaller gain of a step means that the barrier may fall
_FALL = 0.4  # of the barrier
_INSIDE = 1.0 - 1e-5  # of a limit: where more of it is used it has to be widened
_WIDENED = 1.05  # of what is used of a limit that is exceeded
_NARROWED = 0.5  # of what is left of a limit that is too wide
_TIGHT = 1e-7  # of a limit: no more is gained
_SPREAD = 1e3  # of multipliers about those of the barrier


@dataclass(frozen=True, eq=False)
class Problem:
    """Stations of a path with what is needed there, and the instants that the duration is summed over."""

    usage: PathUsage
    path: PathDynamics
    stations: Stations
    clock: Stations
    weights: Array  # (instants of the clock,)
    fixed: tuple[int, ...] = (0, 0)  # coefficients at the start and the end that are given
    target: float = 1.0  # share of the limits that may be used

    def duration(self, coefficients: Array) -> tuple[float, Array]:
        """Return T, infinite unless b is positive everywhere, and b at the instants of the clock."""
        b = self.clock.speeds(coefficients)[:, 0]
        if not (b > 0.0).all() or not self.clock.positive(coefficients):
            return np.inf, b
        return float(self.weights @ b**-0.5), b


class Optimum(NamedTuple):
    """Where the search ended."""

    coefficients: Array
    duration: float
    # (stations, columns): by how many seconds T falls for each share by which this limit rises
    multipliers: Array
    gap: float  # by which T may be above the least that the spline allows, as estimated [s]
    steps: int


class UnreachedError(InputError):
    """No speed is found that keeps a limit."""

    def __init__(self, station: int, column: int, usage: float) -> None:
        super().__init__(f"no speed is found that keeps limit {column}: {100.0 * usage:.4g} % are used")
        self.station = station
        self.column = column
        self.usage = usage


class _Point:
    """Coefficients with all that is known there."""

    def __init__(self, problem: Problem, coefficients: Array, bounds: Array | None = None) -> None:
        self.coefficients = coefficients
        self.duration, self.b = problem.duration(coefficients)
        self.inside = False
        if np.isfinite(self.duration):
            y = problem.stations.speeds(coefficients)
            if (y[:, 0] > 0.0).all():
                self.relative, self.slopes = problem.usage.with_gradient(problem.path, y)
                sizes = np.abs(self.relative)
                beyond = sizes >= _INSIDE * problem.target
                self.bounds = np.where(beyond, _WIDENED * sizes, problem.target) if bounds is None else bounds
                self.up, self.down = self.bounds - self.relative, self.bounds + self.relative
                self.inside = bool((self.up > 0.0).all() and (self.down > 0.0).all())

    def narrowed(self, target: float) -> bool:
        """Narrow the limits that are wider than the target; return whether there were any."""
        wide = self.bounds > target
        if not wide.any():
            return False
        sizes = np.abs(self.relative)
        nearer = sizes + _NARROWED * (self.bounds - sizes)
        self.bounds = np.where(wide, np.maximum(target, nearer), self.bounds)
        self.up, self.down = self.bounds - self.relative, self.bounds + self.relative
        return True

    def tight(self, target: float) -> bool:
        """Return whether a limit that is wider than the target cannot be narrowed any more."""
        left = np.minimum(self.up, self.down)[self.bounds > target]
        return bool(left.size and left.min() < _TIGHT)

    def merit(self, barrier: float) -> float:
        return self.duration - barrier * float(np.log(self.up * self.down).sum())


def solve(
    problem: Problem,
    start: Array,
    accuracy: float,
    gap: float = 1.0,
    progress: Callable[[float], None] | None = None,
) -> Optimum:
    """Return the optimum, from coefficients with a positive speed, to a share of T by the estimated gap.

    `gap`: a share of T that the start is thought to be away from the optimum. Raises InputError, or
    UnreachedError.
    """
    point = _Point(problem, start)
    if not point.inside:
        raise InputError("the search for the fastest motion has to start from a positive speed")
    count = 2 * point.relative.size
    barrier = gap * point.duration / count
    upper, lower = barrier / point.up, barrier / point.down
    first = np.log(gap / accuracy)
    steps = 0
    while steps < _MOST:
        steps += 1
        change, gain = _step(problem, point, barrier, upper, lower)
        moved = (point.slopes.swapaxes(1, 2) @ problem.stations.speeds(change)[:, :, None])[:, :, 0]
        rises = barrier / point.up - upper + upper / point.up * moved
        falls = barrier / point.down - lower - lower / point.down * moved
        dual = min(_longest(upper, rises), _longest(lower, falls))
        taken = _line_search(problem, point, change, gain, barrier, moved)
        if taken is None:
            break
        point = taken
        upper = _near(upper + dual * rises, barrier / point.up)
        lower = _near(lower + dual * falls, barrier / point.down)
        missing = float((upper * point.up).sum() + (lower * point.down).sum())
        if progress is not None:
            progress(float(np.clip(1.0 - np.log(missing / point.duration / accuracy) / first, 0.0, 1.0)))
        if point.narrowed(problem.target):
            if point.tight(problem.target):
                break
            continue
        if gain < accuracy * point.duration and missing < accuracy * point.duration:
            break
        if gain < _CENTRED * barrier * count / 20.0:
            barrier = max(_FALL * barrier, 0.5 * accuracy * point.duration / count)
    missing = float((upper * point.up).sum() + (lower * point.down).sum())
    if (point.bounds > problem.target).any():
        row, column = np.unravel_index(int(np.argmax(point.bounds)), point.bounds.shape)
        raise UnreachedError(int(row), int(column), float(abs(point.relative[row, column])))
    return Optimum(point.coefficients, point.duration, upper + lower, missing, steps)


def _step(problem: Problem, point: _Point, barrier: float, upper: Array, lower: Array) -> tuple[Array, float]:
    """Return Newton's step of the barrier problem, and by how much its merit falls to first order."""
    from scipy.linalg import solveh_banded

    slopes = point.slopes
    clock = -0.5 * problem.weights * point.b**-1.5
    bends = -1.5 * clock / point.b
    push = barrier / point.up - barrier / point.down
    stiffness = upper / point.up + lower / point.down
    gradient = problem.clock.gradient(clock[:, None])
    gradient += problem.stations.gradient((slopes @ push[:, :, None])[:, :, 0])
    bands = problem.clock.curvature(bends[:, None, None])
    bands += problem.stations.curvature((slopes * stiffness[:, None, :]) @ slopes.swapaxes(1, 2))
    free = slice(problem.fixed[0], len(gradient) - problem.fixed[1])
    bands, downhill = bands[:, free], -gradient[free]
    scale = 1.0 / np.sqrt(bands[-1])
    for k in range(DEGREE + 1):
        bands[DEGREE - k, k:] *= scale[k:] * scale[: len(scale) - k]
    bands[-1] += 1e-12
    change = np.zeros_like(gradient)
    change[free] = scale * solveh_banded(bands, scale * downhill, check_finite=False)
    return change, float(downhill @ change[free])


def _line_search(
    problem: Problem, point: _Point, change: Array, gain: float, barrier: float, moved: Array
) -> _Point | None:
    """Return a point along a step that keeps all limits and is better; None where rounding hides it."""
    merit = point.merit(barrier)
    share = min(_longest(point.up, -moved), _longest(point.down, moved))
    for _ in range(30):
        trial = _Point(problem, point.coefficients + share * change, point.bounds)
        if trial.inside and trial.merit(barrier) <= merit - 1e-4 * share * gain + 1e-12 * abs(merit):
            return trial
        share *= 0.5
    return None


def _longest(values: Array, changes: Array) -> float:
    """Return the largest share of changes, at most 1, that leaves positive values positive."""
    worst = float((-changes / values).max())
    return min(1.0, _TO_WALL / worst) if worst > 0.0 else 1.0


def _near(multipliers: Array, central: Array) -> Array:
    return np.clip(multipliers, central / _SPREAD, central * _SPREAD)
