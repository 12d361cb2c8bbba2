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
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.speed_spline import DEGREE, Stations

_MOST = 200  # steps
_TO_WALL = 0.99  # of the way to the nearest limit, at most
_CENTRED = 0.03  # of the gap: a smaller gain of a step means that the barrier may fall
_FALL = 0.3  # of the barrier
_INSIDE = 1.0 - 1e-5  # of a limit: where more of it is used it has to be widened
_WIDENED = 1.05  # of what is used of a limit that is exceeded
_ENOUGH = 0.5  # of the room that a wide limit leaves: with as much, it need not be wide
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
                if bounds is None:
                    sizes = np.abs(self.relative)
                    beyond = sizes >= _INSIDE * problem.target
                    bounds = np.where(beyond, _WIDENED * sizes, problem.target)
                self.bounds = bounds
                self._look()

    def _look(self) -> None:
        """Find the slack (2, stations, columns) to the upper and to the lower bounds."""
        self.slack = np.stack([self.bounds - self.relative, self.bounds + self.relative])
        self.inside = bool(self.slack.min() > 0.0)

    @cached_property
    def inverse(self) -> Array:
        """1 / slack."""
        return np.reciprocal(self.slack)

    @cached_property
    def _logarithms(self) -> float:
        return float(np.log(self.slack[0] * self.slack[1]).sum())

    def narrow(self, target: float) -> None:
        """Narrow the limits that are wider than the target, where the target itself leaves enough room."""
        room = target - np.abs(self.relative)
        ready = (self.bounds > target) & (room > _ENOUGH * self.slack.min(axis=0))
        self.bounds = np.where(ready, target, self.bounds)
        self._look()

    def merit(self, barrier: float) -> float:
        return self.duration - barrier * self._logarithms


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
    count = point.slack.size
    barrier = gap * point.duration / count
    multipliers = barrier * point.inverse
    first = np.log(gap / accuracy)
    steps = 0
    while steps < _MOST:
        steps += 1
        excess = point.bounds - problem.target
        wide = bool(excess.any())
        step = _Step(problem, point, barrier, multipliers, excess if wide else None)
        taken = _line_search(problem, point, step, barrier)
        if taken is None:
            break
        point = taken
        multipliers += _longest(step.rises / multipliers) * step.rises
        least = barrier / _SPREAD * point.inverse
        np.clip(multipliers, least, _SPREAD**2 * least, out=multipliers)
        missing = _sum_of_products(multipliers, point.slack)
        if progress is not None:
            progress(float(np.clip(1.0 - np.log(missing / point.duration / accuracy) / first, 0.0, 1.0)))
        if wide:
            if point.slack[:, point.bounds > problem.target].min(initial=np.inf) < _TIGHT:
                break
            continue
        if step.gain < accuracy * point.duration and missing < accuracy * point.duration:
            break
        if step.gain < _CENTRED * barrier * count:
            barrier = max(_FALL * barrier, 0.5 * accuracy * point.duration / count)
    missing = _sum_of_products(multipliers, point.slack)
    if (point.bounds > problem.target).any():
        row, column = np.unravel_index(int(np.argmax(point.bounds)), point.bounds.shape)
        raise UnreachedError(int(row), int(column), float(abs(point.relative[row, column])))
    return Optimum(point.coefficients, point.duration, multipliers.sum(axis=0), missing, steps)


class _Step:
    """Newton's step of the barrier problem.

    Attributes:
        change: Of the coefficients.
        gain: By how much the merit falls to first order.
        slack: By how much the slack (2, stations, columns) changes to first order.
        rises: Of the multipliers, alike.
    """

    def __init__(
        self, problem: Problem, point: _Point, barrier: float, multipliers: Array, excess: Array | None
    ) -> None:
        slopes = point.slopes
        clock = -0.5 * problem.weights * point.b**-1.5
        bends = -1.5 * clock / point.b
        central = barrier * point.inverse
        stiffness = multipliers * point.inverse
        push = central if excess is None else central + stiffness * excess
        push, both = push[0] - push[1], stiffness[0] + stiffness[1]
        gradient = problem.clock.gradient(clock[:, None])
        gradient += problem.stations.gradient((slopes @ push[:, :, None])[:, :, 0])
        bands = problem.clock.curvature(bends[:, None, None])
        bands += problem.stations.curvature((slopes * both[:, None, :]) @ slopes.swapaxes(1, 2))
        free = slice(problem.fixed[0], len(gradient) - problem.fixed[1])
        self.change = np.zeros_like(gradient)
        self.change[free] = _solution(bands[:, free], -gradient[free])
        self.gain = -float(gradient @ self.change)
        self.excess = excess
        moved = (problem.stations.speeds(self.change)[:, None] @ slopes)[:, 0]
        self.slack = np.stack([-moved, moved])
        if excess is not None:
            self.slack -= excess
        central -= multipliers
        stiffness *= self.slack
        self.rises = central - stiffness


def _solution(bands: Array, right: Array) -> Array:
    """Return x of A x = right, from the upper bands (6, n) of a positive matrix A."""
    from scipy.linalg.lapack import dpbsv

    scale = 1.0 / np.sqrt(bands[-1])
    bands = bands * scale
    for k in range(DEGREE + 1):
        bands[DEGREE - k, k:] *= scale[: len(scale) - k]
    bands[-1] += 1e-12
    _, x, info = dpbsv(bands, scale * right)
    if info:
        raise InputError("the search for the fastest motion meets numbers that are none")
    return np.asarray(scale * x)


def _line_search(problem: Problem, point: _Point, step: _Step, barrier: float) -> _Point | None:
    """Return a point along a step that keeps all limits and is better; None where rounding hides it.

    While limits are wider than they shall be, it is better for their being narrower.
    """
    merit = point.merit(barrier)
    share = _longest(step.slack * point.inverse)
    for _ in range(30):
        bounds = point.bounds if step.excess is None else point.bounds - share * step.excess
        trial = _Point(problem, point.coefficients + share * step.change, bounds)
        if trial.inside:
            if step.excess is not None:
                trial.narrow(problem.target)
                return trial
            if trial.merit(barrier) <= merit - 1e-4 * share * step.gain + 1e-12 * abs(merit):
                return trial
        share *= 0.5
    return None


def _longest(changes: Array) -> float:
    """Return the largest share, at most 1, of relative changes that leaves positive values positive."""
    worst = -float(changes.min())
    return min(1.0, _TO_WALL / worst) if worst > 0.0 else 1.0


def _sum_of_products(a: Array, b: Array) -> float:
    """Return the sum of products; not by BLAS, which wakes other threads for as many as these."""
    return float(np.einsum("kij,kij->", a, b))
