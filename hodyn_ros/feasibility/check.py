"""Whether a robot can do a motion: every limit with its margin, the joint and the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feasibility.demand import Column, Demand
from hodyn_ros.feasibility.peaks import DEFAULT_SAMPLES, PeakFinder
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion

# A limit that is met to rounding holds.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """How one limit fares where it is used most."""

    column: Column
    time: float  # [s]
    value: float
    margin: float  # to the limit, negative beyond it, in the unit of the column
    usage: float  # share of the limit

    @property
    def violated(self) -> bool:
        """Whether the limit is exceeded by more than rounding."""
        return self.usage > 1.0 + ROUNDING


@dataclass(frozen=True, eq=False)
class Report:
    """All findings of a motion, and the samples that they come from."""

    findings: tuple[Finding, ...]
    times: Array  # (N,) [s]
    values: Array  # (N, columns)
    usage: Array  # (N, columns)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The limits that are exceeded, the worst first."""
        found = [finding for finding in self.findings if finding.violated]
        return tuple(sorted(found, key=lambda finding: -finding.usage))

    @property
    def tightest(self) -> Finding:
        """The limit that is used most."""
        return max(self.findings, key=lambda finding: finding.usage)


def check(
    robot: Robot | ParallelRobot,
    motion: Trajectory | RobotMotion,
    duration: float | None = None,
    samples: int = DEFAULT_SAMPLES,
    progress: Callable[[float], None] | None = None,
) -> Report:
    """Hold a motion of the joints, of a platform, or of a floating base with its joints against all limits.

    `duration` [s], by default to the end; `samples` of the grid, between which peaks are searched. Raises
    InputError where the motion does not fit the robot or is too rough for a limit to make sense: the torque
    rate of a motion whose torque jumps is infinite.
    """
    demand = Demand(robot)
    finder = PeakFinder(demand, RobotMotion.of(motion), duration, samples)
    values = finder.values(progress=progress)
    peaks = finder.peaks(values=values)
    margins = demand.margins(peaks.values[None])[0]
    findings = tuple(
        Finding(column, float(time), float(value), float(margin), float(usage))
        for column, time, value, margin, usage in zip(
            demand.columns, peaks.times, peaks.values, margins, peaks.usage, strict=True
        )
    )
    return Report(findings, finder.times, values, demand.usage(values))
