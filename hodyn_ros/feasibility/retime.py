"""A motion slowed down just enough that a robot can do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feasibility.check import ROUNDING
from hodyn_ros.feasibility.demand import Column, Demand
from hodyn_ros.feasibility.peaks import DEFAULT_SAMPLES, PeakFinder
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.scaled import ScaledTime

SLOWEST = 1e-3
_SCAN = 97
_PRECISION = 1e-12  # of the speed
# A dip of the use between two speeds is looked into where it is this close to the limit.
_NEAR = 1.2


class InfeasibleError(InputError):
    """No speed keeps all limits."""


@dataclass(frozen=True, eq=False)
class Retimed:
    """The motion at the largest speed that keeps all limits."""

    motion: RobotMotion
    speed: float  # 1 where nothing had to be changed
    usage: float  # of the limit that holds the speed, at that speed
    column: Column  # that limit
    time: float  # [s] of the new motion, where it is met

    @property
    def trajectory(self) -> Trajectory:
        """The columns of the motion; for a robot on the ground, its joints."""
        return self.motion.trajectory

    @property
    def stretch(self) -> float:
        """How many times longer the motion lasts."""
        return 1.0 / self.speed


def retime(
    robot: Robot | ParallelRobot,
    motion: Trajectory | RobotMotion,
    duration: float | None = None,
    samples: int = DEFAULT_SAMPLES,
    progress: Callable[[float], None] | None = None,
) -> Retimed:
    """Find the largest speed s <= 1 at which the motion `q(s t)` keeps all limits of the robot.

    Uniform scaling of time; torque-rate limits as Mueller (2020), section I, asks for. Because of gravity a
    slower motion may need more torque than a faster one, so speeds are scanned from 1 down to a thousandth,
    dips between them searched, and the boundary found by bisection: there, a limit is touched. Raises
    InfeasibleError naming the limit that no speed keeps.
    """
    demand = Demand(robot)
    finder = PeakFinder(demand, RobotMotion.of(motion), duration, samples)
    first = finder.peaks()
    fixed = np.where(demand.timed, 0.0, first.usage)
    if fixed.max() > 1.0 + ROUNDING:
        column = demand.columns[int(np.argmax(fixed))]
        raise InfeasibleError(
            f"no speed keeps the position limit of joint {column.joint!r}: it goes to "
            f"{first.values[int(np.argmax(fixed))]:g} {column.unit}, allowed are {column.lower:g} to "
            f"{column.upper:g}"
        )
    if _worst(demand, first.usage) <= 1.0:
        return _result(finder, 1.0)
    speeds = np.geomspace(1.0, SLOWEST, _SCAN)
    worst = [_worst(demand, first.usage)]
    low, high = 0.0, 1.0
    for i in range(1, _SCAN):
        worst.append(_worst(demand, finder.grid_usage(speeds[i])))
        if worst[-1] <= 1.0 and _usage(finder, speeds[i]) <= 1.0:
            low, high = float(speeds[i]), float(speeds[i - 1])
            break
        dips = i >= 2 and worst[-2] <= min(worst[-3], worst[-1]) and worst[-2] < _NEAR
        if dips:
            found = _dip(finder, float(speeds[i]), float(speeds[i - 2]))
            if found is not None:
                low, high = found, float(speeds[i - 2])
                break
        if progress is not None:
            progress(i / _SCAN)
    if low == 0.0:
        peaks = finder.peaks(SLOWEST)
        most = int(np.argmax(_timed(demand, peaks.usage)))
        column = demand.columns[most]
        raise InfeasibleError(
            f"no speed keeps all limits: even at {SLOWEST:g} of its speed the motion needs a "
            f"{column.quantity} of {peaks.values[most]:.6g} {column.unit} at joint {column.joint!r}, "
            f"allowed are {column.upper:g}; change its path"
        )
    while high - low > _PRECISION * high:
        middle = 0.5 * (low + high)
        if _usage(finder, middle) <= 1.0:
            low = middle
        else:
            high = middle
    return _result(finder, low)


def _usage(finder: PeakFinder, speed: float) -> float:
    return _worst(finder.demand, finder.peaks(speed).usage)


def _worst(demand: Demand, usage: Array) -> float:
    return float(_timed(demand, usage).max())


def _timed(demand: Demand, usage: Array) -> Array:
    """Return the use of limits that the speed has to do with, zero for positions, which may touch theirs."""
    return np.where(demand.timed, usage, 0.0)


def _dip(finder: PeakFinder, slower: float, faster: float) -> float | None:
    """Return a speed in a range at which all limits hold, or None where the lowest use is too high."""
    found = minimize_scalar(
        lambda speed: _usage(finder, speed),
        bounds=(slower, faster),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(found.x) if found.fun <= 1.0 else None


def _result(finder: PeakFinder, speed: float) -> Retimed:
    peaks = finder.peaks(speed)
    demand = finder.demand
    usage = _timed(demand, peaks.usage) if demand.timed.any() else peaks.usage
    worst = int(np.argmax(usage))
    motion = finder.motion
    if speed != 1.0:
        motion = replace(motion, trajectory=ScaledTime(motion.trajectory, speed))
    column = demand.columns[worst]
    return Retimed(motion, speed, float(usage[worst]), column, float(peaks.times[worst]) / speed)
