"""The largest use of every limit along a motion, on a fine grid and between its points."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.feasibility.demand import Demand
from hodyn_ros.feasibility.subject import SampleError
from hodyn_ros.jets import Array
from hodyn_ros.trajectory.robot_motion import RobotMotion

DEFAULT_SAMPLES = 2001
_BLOCK = 500  # samples computed at a time
_ZOOM = 17  # points in a bracket, which shrinks by 8 each time
_ROUNDS = 5
_CANDIDATES = 3  # highest local maxima of each column that are looked into


class Peaks(NamedTuple):
    """Where each limit is used most."""

    usage: Array  # (columns,) largest share that is used
    times: Array  # (columns,) [s] in the motion at its own speed
    values: Array  # (columns,) there

    @property
    def worst(self) -> int:
        """The column whose limit is used most."""
        return int(np.argmax(self.usage))


class PeakFinder:
    """Evaluates a motion at any speed; its samples at the grid are computed once.

    The grid has `samples` instants from 0 to the end, or to `duration` [s]. Between them, the highest
    local maxima of each column are searched by ever finer grids, to a 30000th of the step.
    """

    def __init__(
        self,
        demand: Demand,
        motion: RobotMotion,
        duration: float | None = None,
        samples: int = DEFAULT_SAMPLES,
    ) -> None:
        demand.require(motion)
        trajectory = motion.trajectory
        if samples < 3:
            raise InputError(f"at least three samples are needed, found {samples}")
        end = trajectory.duration if duration is None else float(duration)
        if not 0.0 < end < np.inf:
            raise InputError(f"the motion lasts {end:g} s; give a positive and finite duration")
        if end > trajectory.duration:
            raise InputError(f"the motion lasts {trajectory.duration:g} s, less than the {end:g} s asked for")
        self.demand = demand
        self.motion = motion
        self.times = np.linspace(0.0, end, samples)
        self._columns = trajectory.sample(self.times, demand.order)

    def values(self, speed: float = 1.0, progress: Callable[[float], None] | None = None) -> Array:
        """Return the quantities (N, columns) at the grid when the motion runs at a speed."""
        blocks = []
        count = len(self.times)
        for begin in range(0, count, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            blocks.append(self._evaluated(self.times[block], self._columns[block], speed))
            if progress is not None:
                progress(min(1.0, (begin + _BLOCK) / count))
        return np.concatenate(blocks)

    def grid_usage(self, speed: float) -> Array:
        """Return the largest use (columns,) at the grid."""
        return np.asarray(self.demand.usage(self.values(speed)).max(axis=0))

    def peaks(self, speed: float = 1.0, values: Array | None = None) -> Peaks:
        """Return the largest use of every limit, on the grid and between its points."""
        table = self.values(speed) if values is None else values
        usage = self.demand.usage(table)
        columns, centres = self._candidates(usage)
        step = self.times[1] - self.times[0]
        best_time, best_usage = self.times[centres], usage[centres, columns]
        best_value = table[centres, columns]
        for _ in range(_ROUNDS):
            offsets = np.linspace(-step, step, _ZOOM)
            around = np.clip(best_time[:, None] + offsets, 0.0, self.times[-1])
            # in the order of time: joints of parallel robots are found from those of the sample before
            instants, places = np.unique(around, return_inverse=True)
            sampled = self.motion.trajectory.sample(instants, self.demand.order)
            found = self._evaluated(instants, sampled, speed)[places.ravel()]
            shares = self.demand.usage(found)
            rows = np.arange(around.size).reshape(around.shape)
            shares = shares[rows, columns[:, None]]
            highest = np.argmax(shares, axis=1)
            picked = np.arange(len(columns)), highest
            better = shares[picked] > best_usage
            best_usage = np.where(better, shares[picked], best_usage)
            best_value = np.where(better, found[rows[picked], columns], best_value)
            best_time = np.where(better, around[picked], best_time)
            step *= 2.0 / (_ZOOM - 1)
        count = usage.shape[1]
        winners = np.array(
            [np.flatnonzero(columns == c)[np.argmax(best_usage[columns == c])] for c in range(count)]
        )
        return Peaks(best_usage[winners], best_time[winners], best_value[winners])

    def _candidates(self, usage: Array) -> tuple[Array, Array]:
        padded = np.pad(usage, ((1, 1), (0, 0)), constant_values=-np.inf)
        is_peak = (usage >= padded[:-2]) & (usage >= padded[2:])
        columns, rows = [], []
        for c in range(usage.shape[1]):
            peaks = np.flatnonzero(is_peak[:, c])
            order = np.argsort(usage[peaks, c])[::-1][:_CANDIDATES]
            rows.extend(peaks[order].tolist())
            columns.extend([c] * len(order))
        return np.array(columns), np.array(rows)

    def _evaluated(self, times: Array, columns: Array, speed: float) -> Array:
        """Return the quantities for samples of the trajectory (N, order + 1, columns) at another speed."""
        powers = np.power(speed, np.arange(self.demand.order + 1.0))[:, None]
        try:
            return self.demand.values(self.motion.of_columns(columns * powers))
        except SampleError as error:
            raise InputError(f"at {times[error.sample]:.6g} s of the motion: {error}") from error
