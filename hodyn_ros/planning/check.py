"""Whether a robot can do a motion: every limit with its margin, the joint and the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.planning.along import DemandAlong
from hodyn_ros.planning.limit_set import ROUNDING, Column, LimitSet
from hodyn_ros.planning.peaks import TOLERANCE
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion


@dataclass(frozen=True)
class Finding:
    """How one limit fares where it is used most."""

    column: Column
    time: float  # [s]
    value: float
    margin: float  # to the limit, negative beyond it, in the unit of the column
    usage: float  # share of the limit
    error: float  # by which the largest usage may be above this one, as estimated

    @property
    def violated(self) -> bool:
        """Whether the limit is exceeded by more than rounding."""
        return self.usage > 1.0 + ROUNDING


@dataclass(frozen=True, eq=False)
class Report:
    """All findings of a motion, and samples along it: more where more happens, fewer of a long motion."""

    findings: tuple[Finding, ...]
    times: Array  # (N,) [s]
    values: Array  # (N, columns)
    usage: Array  # (N, columns)
    evaluations: int  # instants that were looked at
    tolerance: float  # of the search, a share of the limits

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The limits that are exceeded, the worst first."""
        violated = [finding for finding in self.findings if finding.violated]
        return tuple(sorted(violated, key=lambda finding: -finding.usage))

    @property
    def tightest(self) -> Finding:
        """The limit that is used most."""
        return max(self.findings, key=lambda finding: finding.usage)

    @property
    def error(self) -> float:
        """The largest share of a limit by which a usage may be above what was found, as estimated."""
        return max(finding.error for finding in self.findings)


def check(
    robot: Robot,
    motion: Trajectory | RobotMotion,
    duration: float | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[float], None] | None = None,
    enough: float = np.inf,
) -> Report:
    """Compare a motion of joints, of a platform, or of a floating base with its joints, with all limits.

    `duration` [s], by default to the end. `tolerance`: every quantity is known everywhere to this share of
    its limit, and its peak much better; how, and what of it is certain, is said in `peaks`. Where a quantity
    is `enough` times its limit, nothing more is looked for: others may be larger then. Raises InputError
    where the motion does not fit the robot or is too rough for a limit to make sense: the torque rate of a
    motion whose torque jumps is infinite.
    """
    demand = LimitSet(robot)
    along = DemandAlong(demand, RobotMotion.of(motion), duration)
    record = Record()
    peaks = along.peaks(tolerance=tolerance, progress=progress, visit=record.add, enough=enough)
    values = demand.absolute(peaks.values)
    findings = tuple(
        Finding(column, float(time), float(value), float(margin), float(usage), float(error))
        for column, time, value, margin, usage, error in zip(
            demand.columns,
            peaks.times,
            values,
            demand.margins(values),
            demand.usage(peaks.sizes),
            peaks.errors,
            strict=True,
        )
    )
    times, relative = record.samples()
    usage = demand.usage(along.sizes(relative))
    return Report(findings, times, demand.absolute(relative), usage, peaks.evaluations, tolerance)


_MOST = 20_000  # samples that are kept as they are
_STRETCHES = 2000  # that longer recordings are divided into


class Record:
    """Gathers samples block by block, in order of time.

    Of more than 20 000, the lowest and the highest value of each quantity are kept in each of some 2000
    stretches of time, so that no peak is lost to the eye.
    """

    def __init__(self) -> None:
        self._times: list[Array] = []
        self._values: list[Array] = []
        self._count = 0

    def add(self, times: Array, values: Array) -> None:
        """Add samples (N,) and (N, columns) that come after all others."""
        self._times.append(times)
        self._values.append(values)
        self._count += len(times)
        if self._count > 2 * _MOST:
            self._times, self._values = ([array] for array in self._thinned())
            self._count = len(self._times[0])

    def samples(self) -> tuple[Array, Array]:
        """Return times (N,) and values (N, columns)."""
        if self._count > _MOST:
            return self._thinned()
        return np.concatenate(self._times), np.concatenate(self._values)

    def _thinned(self) -> tuple[Array, Array]:
        """Return two rows for each stretch: the lowest values at its start, the highest at its end."""
        times, values = np.concatenate(self._times), np.concatenate(self._values)
        length = (times[-1] - times[0]) / _STRETCHES
        starts = np.flatnonzero(np.diff(np.floor((times - times[0]) / length), prepend=-1.0))
        ends = np.append(starts[1:], len(times)) - 1
        lowest, highest = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        thinned = np.stack([lowest, highest], axis=1).reshape(-1, values.shape[1])
        return np.stack([times[starts], times[ends]], axis=1).ravel(), thinned
