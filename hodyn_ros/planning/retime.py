"""A motion slowed down just enough that a robot can do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.planning.along import DemandAlong
from hodyn_ros.planning.limit_set import Column, LimitSet
from hodyn_ros.planning.peaks import TOLERANCE, Peaks
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.combined import ScaledTime
from hodyn_ros.trajectory.robot_motion import RobotMotion

SLOWEST = 1e-3
_STEPS = 96  # of the scan, down to the slowest
_PRECISION = 1e-13  # of the speed
# A dip of the use between two speeds is looked into where it is this close to the limit.
_NEAR = 1.2
# What is used of a limit that holds the speed: less than all by a little more than peaks are known to.
_GOAL = 1.0 - 4e-10
_PATIENCE = 8  # rounds before rounding is taken for the reason that there is no end
_ROUNDS = 30


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
    robot: Robot,
    motion: Trajectory | RobotMotion,
    duration: float | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[float], None] | None = None,
) -> Retimed:
    """Find the largest speed s <= 1 at which the motion `q(s t)` keeps all limits of the robot.

    Uniform scaling of time; torque-rate limits as Mueller (2020), section I, asks for. Because of gravity a
    slower motion may need more torque than a faster one, so speeds are scanned from 1 down to a thousandth,
    dips between them searched, and the boundary found. At first only the instants of the peaks at full speed
    have to keep the limits; the peaks at the speed found join them, until none is above its limit: the
    exchange method of Hettich and Kortanek, SIAM Review 35(3), 1993. There, a limit is touched. Peaks are
    found as by `check`, with its `tolerance`. Raises InfeasibleError naming the limit that no speed keeps.
    """
    demand = LimitSet(robot)
    along = DemandAlong(demand, RobotMotion.of(motion), duration)
    peaks = along.peaks(tolerance=tolerance)
    _require_positions(demand, peaks)
    if _timed(demand, peaks.sizes).max() <= 1.0:
        return _result(along, 1.0, peaks)
    instants, speed, goal = _Instants(along, peaks.times), 1.0, _GOAL
    for count in range(_ROUNDS):
        if progress is not None:
            progress(count / (count + 2.0))
        slower = _slower(instants.usage, speed, goal)
        if slower is None:
            raise _infeasible(along.peaks(SLOWEST, tolerance), demand)
        speed = slower
        peaks = along.peaks(speed, tolerance)
        worst = float(_timed(demand, peaks.sizes).max())
        if worst <= 1.0:
            break
        instants = instants.joined(peaks.times)
        if count >= _PATIENCE:
            goal -= 2.0 * (worst - goal)
    else:
        raise InputError(f"the speed is not found: at {speed:.9f} still {100.0 * worst:.7g} % are used")
    if progress is not None:
        progress(1.0)
    return _result(along, speed, peaks)


class _Instants:
    """Some instants of a motion, and what is used of limits there at any speed."""

    def __init__(self, along: DemandAlong, times: Array) -> None:
        self._along = along
        self._times = np.unique(times)

    def joined(self, times: Array) -> _Instants:
        return _Instants(self._along, np.concatenate([self._times, times]))

    def usage(self, speed: float) -> float:
        sizes = self._along.sizes(self._along.relative(self._times, speed).values)
        return float(_timed(self._along.demand, sizes).max())


def _slower(usage: Callable[[float], float], fastest: float, goal: float) -> float | None:
    """Return the largest speed below `fastest` at which `usage` meets the goal; None where there is none."""
    from scipy.optimize import minimize_scalar

    speeds, used = [fastest], [usage(fastest)]
    while speeds[-1] > SLOWEST:
        speeds.append(max(SLOWEST, speeds[-1] * SLOWEST ** (1.0 / _STEPS)))
        used.append(usage(speeds[-1]))
        if used[-1] <= goal:
            return _boundary(usage, speeds[-1], speeds[-2], goal)
        if len(used) > 2 and used[-2] <= min(used[-3], used[-1]) and used[-2] < _NEAR:
            bounds = speeds[-1], speeds[-3]
            dip = minimize_scalar(usage, bounds=bounds, method="bounded", options={"xatol": 1e-6})
            if dip.fun <= goal:
                return _boundary(usage, float(dip.x), speeds[-3], goal)
    return None


def _boundary(usage: Callable[[float], float], slower: float, faster: float, goal: float) -> float:
    """Return the speed between two at which the goal is just met."""
    from scipy.optimize import brentq

    if usage(faster) <= goal:
        return faster
    return float(
        brentq(lambda speed: usage(speed) - goal, slower, faster, xtol=_PRECISION * slower, rtol=1e-14)
    )


def _timed(demand: LimitSet, sizes: Array) -> Array:
    """Return the use of limits that the speed has to do with, zero for positions, which may touch theirs."""
    return np.where(demand.timed, demand.usage(sizes), 0.0)


def _require_positions(demand: LimitSet, peaks: Peaks) -> None:
    worst = demand.position_beyond(peaks.sizes)
    if worst is not None:
        column = demand.columns[worst]
        raise InfeasibleError(
            f"no speed keeps the position limit of joint {column.joint!r}: it goes to "
            f"{demand.absolute(peaks.values)[worst]:.9g} {column.unit}, allowed are {column.lower:g} to "
            f"{column.upper:g}"
        )


def _infeasible(peaks: Peaks, demand: LimitSet) -> InfeasibleError:
    most = int(np.argmax(_timed(demand, peaks.sizes)))
    column = demand.columns[most]
    return InfeasibleError(
        f"no speed keeps all limits: even at {SLOWEST:g} of its speed the motion needs a "
        f"{column.quantity} of {demand.absolute(peaks.values)[most]:.6g} {column.unit} at joint "
        f"{column.joint!r}, allowed are {column.upper:g}; change its path"
    )


def _result(along: DemandAlong, speed: float, peaks: Peaks) -> Retimed:
    demand, motion = along.demand, along.motion
    usage = _timed(demand, peaks.sizes) if demand.timed.any() else demand.usage(peaks.sizes)
    worst = int(np.argmax(usage))
    if speed != 1.0:
        motion = replace(motion, trajectory=ScaledTime(motion.trajectory, speed))
    return Retimed(
        motion, speed, float(usage[worst]), demand.columns[worst], float(peaks.times[worst]) / speed
    )
