"""What a motion demands of a robot at any speed, and the peaks of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_evaluator import SampleError
from hodyn_ros.planning.motion_peaks import MotionPeaks
from hodyn_ros.planning.peaks import TOLERANCE, Peaks, RoughError, Samples, find_peaks
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion

# What one polynomial may have to follow at first: a turn of the fastest oscillation [rad], and of all joints
# together [rad or m].
_PHASE = 3.0
_TRAVEL = 3.0
_UNKNOWN = 256  # stretches of a motion that does not know its breakpoints
_POINTS = 9  # of a stretch, for its travel
_MOST_AT_FIRST = 512  # parts of a stretch, however far its joints go; more where the search asks for it
_MOST = 1e7  # stretches of a motion
_BLOCK = 4096  # stretches at a time
_NEAR = 64  # ulps between breakpoints that are the same one


class DemandAlong:
    """The demand of a motion from 0 to its end, or to `duration` [s], in the time of the motion as given.

    `edges` (M,) [s] are the instants between which peaks are looked for: the breakpoints of the motion, and
    so many between them that in no stretch its fastest oscillation turns by more than 3 rad, nor its joints
    by more than that in sum. Raises InputError for a motion that does not fit the robot, is too rough for
    its limits, or does not last as long.
    """

    def __init__(self, demand: LimitSet, motion: RobotMotion, duration: float | None = None) -> None:
        self.demand = demand
        self.motion = demand.fitted(motion)
        trajectory = self.motion.trajectory
        end = trajectory.duration if duration is None else float(duration)
        if not 0.0 < end < np.inf:
            raise InputError(f"the motion lasts {end:g} s; give a positive and finite duration")
        if end > trajectory.duration:
            raise InputError(f"the motion lasts {trajectory.duration:g} s, less than the {end:g} s requested")
        self.edges = _edges(trajectory, end)
        self._exact = MotionPeaks(demand, self.motion, end)

    def relative(self, times: Array, speed: float = 1.0) -> Samples:
        """Return what is demanded at times (N,) of the motion as given, relative to limits, at a speed."""
        # in the order of time: joints of parallel robots are found from those of the sample before
        order = np.argsort(times, kind="stable")
        columns = self.motion.trajectory.sample(times[order], self.demand.order)
        powers = np.power(speed, np.arange(self.demand.order + 1.0))[:, None]
        try:
            samples = self.demand.relative(self.motion.of_columns(columns * powers, representation="spatial"))
        except SampleError as error:
            time = times[order[error.sample]]
            raise InputError(f"at {time:.6g} s of the motion: {error}") from error
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        # in the time of the motion as given, which passes by faster
        integrals = None if samples.integrals is None else samples.integrals[back] * speed
        return Samples(samples.values[back], integrals)

    def sizes(self, relative: Array) -> Array:
        """Return what counts of relative quantities: the magnitude, or the value where there is one bound."""
        return np.where(self.demand.one_sided, relative, np.abs(relative))

    def peaks(
        self,
        speed: float = 1.0,
        tolerance: float = TOLERANCE,
        progress: Callable[[float], None] | None = None,
        visit: Callable[[Array, Array], None] | None = None,
        enough: float = np.inf,
    ) -> Peaks:
        """Return the peaks of the relative quantities; `tolerance` to `enough` as in `peaks.find_peaks`.

        What is motion alone, made of polynomials, has exact peaks, which are not searched.
        """
        if self._exact.known.all() and visit is None:
            return self._exact.joined(None, speed)
        searched = self._searched(speed, tolerance, progress, visit, enough=enough)
        return self._exact.joined(searched, speed)

    def position_peaks(self) -> Peaks:
        """Return the peaks of positions, the same at any speed; nothing is said of other columns."""
        exact = MotionPeaks(self.demand, self.motion, self.edges[-1], ~self.demand.timed)
        known = self.demand.timed | exact.known
        return exact.joined(None if known.all() else self._searched(passed_over=known), 1.0)

    def _searched(
        self,
        speed: float = 1.0,
        tolerance: float = TOLERANCE,
        progress: Callable[[float], None] | None = None,
        visit: Callable[[Array, Array], None] | None = None,
        passed_over: NDArray[np.bool_] | None = None,
        enough: float = np.inf,
    ) -> Peaks:
        """Return the peaks of all columns but some (columns,), by default those that are known."""
        try:
            return find_peaks(
                lambda times: self.relative(times, speed),
                self.edges,
                tolerance,
                self.demand.one_sided,
                progress,
                visit,
                self._exact.known if passed_over is None else passed_over,
                enough=enough,
            )
        except RoughError as error:
            column = self.demand.columns[error.column]
            raise InputError(
                f"the {column.quantity} of {column.joint} is too rough near {error.time:.6g} s to find its "
                f"peak: it is known to {100.0 * error.error:.2g} % of its limit only"
            ) from error


def _edges(trajectory: Trajectory, end: float) -> Array:
    points = trajectory.breakpoints
    inside = np.linspace(0.0, end, _UNKNOWN + 1) if points is None else points
    inside = np.concatenate([[0.0], inside[(inside > 0.0) & (inside < end)]])
    apart = np.diff(inside, append=end) > _NEAR * np.spacing(end)
    return divided(trajectory, np.append(inside[apart], end))


def divided(trajectory: Trajectory, edges: Array) -> Array:
    """Return edges, with so many between them that one polynomial may follow what happens in a stretch."""
    edges = _divided(edges, np.diff(edges) * trajectory.highest_frequency / _PHASE)
    travel = [_travel(trajectory, edges[i : i + _BLOCK + 1]) for i in range(0, len(edges) - 1, _BLOCK)]
    return _divided(edges, np.minimum(np.concatenate(travel) / _TRAVEL, _MOST_AT_FIRST))


def _travel(trajectory: Trajectory, edges: Array) -> Array:
    """Return how far all joints go between edges (N,) in sum [rad or m], (N - 1,)."""
    times = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.0, 1.0, _POINTS)
    positions = trajectory.sample(np.minimum(times, edges[-1]).ravel(), 0)[:, 0]
    steps = np.abs(np.diff(positions.reshape(*times.shape, -1), axis=1))
    return np.asarray(steps.sum(axis=(1, 2)))


def _divided(edges: Array, parts: Array) -> Array:
    """Return edges with each stretch divided evenly into as many parts, rounded up."""
    if not parts.sum() < _MOST:
        raise InputError(
            f"the motion oscillates too often to be looked at as a whole: some {parts.sum():.2g} times; give "
            "a shorter duration"
        )
    counts = np.maximum(np.ceil(parts), 1.0).astype(np.intp)
    starts = np.repeat(edges[:-1], counts)
    within = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.repeat(np.diff(edges) / counts, counts)
    return np.append(starts + within * steps, edges[-1])
