"""Paths timed: by `time_optimal` with insensitive ends, and by MoveIt's default way.

Limits of ours are looked at by differences of positions and by Pinocchio, which share nothing with the
planner. What is promised of the processor time is a ratio to the peer's, of the same paths in the same run:
seconds are those of a host, and of what else it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
from typing import TypeVar

import numpy as np
import pinocchio as pin

from benchmarks.elastic_arms import Followed, deflections
from benchmarks.insensitive import ACCELERATION, JERK, limited_panda, slowest_swing, without_mean
from benchmarks.peers import pinocchio_tree
from benchmarks.peers.waypoint_timing import Smoothed, time_optimal_waypoints
from benchmarks.plans import random_path
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

PATHS = 100
_SWUNG = 20  # of them are followed
_TRIES = 2  # of which the faster one counts
_PERIOD = 1e-3  # [s]
_AFTERWARDS = 0.4  # [s]
_WRONG = (-0.2, 0.2)  # shares by which springs are stiffer
_SEEN = 1e-3  # of limits, by which differences may miss them
_WAYS = 3  # of a path: ours; the peer's with springs in its feedforward, and without

_Result = TypeVar("_Result")


def measure(stage: Stage) -> Section:
    """Time paths both ways, and let arms follow them whose springs are softer or stiffer than modelled."""
    robot, seeds = limited_panda(), range(4 if stage.quick else PATHS)
    _ours(robot, random_path(robot, 0, at_rest=False))  # compiles what is compiled once
    usages, seconds, times, lasted, followed, windows = [], [], [], [], [], []
    every = max(1, len(seeds) // _SWUNG)
    for seed in seeds:
        stage.say("paths timed", 0.5 * seed / len(seeds))
        path = random_path(robot, seed, at_rest=False)
        ours, took = _timed(partial(_ours, robot, path))
        (waypoints, theirs), they_took = _timed(partial(_theirs, robot, path))
        seconds.append(took)
        times.append(took / they_took)
        usages.append(usage(robot, ours))
        lasted.append(ours.duration / theirs.duration)
        if seed % every:
            continue
        rows = theirs.sample(instants(theirs.duration))
        jerk = np.gradient(rows[:, 2], _PERIOD, axis=0)[:, None]
        followed += [
            Followed.elastic(robot, ours.sample(instants(ours.duration), 4)),
            Followed.elastic(robot, np.concatenate([rows, jerk, 0.0 * jerk], axis=1)),
            Followed.rigid(robot, rows),
        ]
        windows.append(round(2.0 * np.pi / slowest_swing(robot, waypoints[-1, 0]) / _PERIOD))
    stage.say("arms that follow them", 0.5)
    left = _swings(robot, followed, windows)
    swing = left[:, 0] / left[:, 1:].min(axis=1)
    against = "time-optimal in accelerations, then ruckig"
    return Section(
        f"{len(seeds)} random paths of the elastic Panda timed, springs 20 % softer or stiffer",
        [
            Row(
                "largest use of a limit, by differences and Pinocchio",
                "the limit",
                _one(max(usages)),
                must=Bound(1.0 + _SEEN),
            ),
            Row("duration, largest", against, _one(max(lasted)), must=Bound(1.15)),
            Row("duration, median", against, _one(np.median(lasted))),
            Row(f"swing left, largest of {len(swing)}", against, _one(swing.max()), must=Bound(0.1)),
            Row(f"swing left, median of {len(swing)}", against, _one(np.median(swing))),
            Row("processor time, median", against, _one(np.median(times)), must=Bound(5.0)),
            Row("processor time, largest", against, _one(max(times)), must=Bound(7.0)),
            Row("processor time, median", "none", _one(np.median(seconds)), unit="s"),
            Row("processor time, largest", "none", _one(max(seconds)), unit="s"),
        ],
    )


def _ours(robot: Robot, path: WaypointSpline) -> Trajectory:
    return time_optimal(path, robot, uncertainty=Uncertainty(stiffness=_WRONG[1])).law


def _theirs(robot: Robot, path: WaypointSpline) -> tuple[Array, Smoothed]:
    """Return waypoints (N, 3, n) and the motion through them."""
    step, waypoints = time_optimal_waypoints(path, robot.limits.velocity, ACCELERATION)
    return waypoints, Smoothed(step, waypoints, robot.limits.velocity, ACCELERATION, JERK)


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    """Return what a call returns, and the processor time that it takes at best [s]."""
    took = []
    for _ in range(_TRIES):
        start = process_time()
        result = call()
        took.append(process_time() - start)
    return result, min(took)


def instants(duration: float) -> Array:
    """Return the periods of a control loop (T,) until a motion is over."""
    return np.append(np.arange(0.0, duration, _PERIOD), duration)


def usage(robot: Robot, motion: Trajectory) -> float:
    """Return the largest share of a limit that a motion uses, from its positions and by Pinocchio alone."""
    count = round(motion.duration / _PERIOD)
    step = motion.duration / count
    q = motion.sample(np.arange(-8, count + 9).clip(0, count) * step, 0)[:, 0]
    rates = [q]
    for _ in range(3):
        rates.append(_slope(rates[-1], step))
    limits, train, twin = robot.limits, robot.require_drives(), pinocchio_tree.build(robot.model)
    data = twin.createData()
    torques = np.array([pin.rnea(twin, data, *rows).copy() for rows in zip(*rates[:3])])
    slope = _slope(torques, step)
    bend = _slope(slope, step)
    motor = torques + train.motor_inertia * (rates[2] + bend / train.stiffness)
    shares = [
        *(rate / most for rate, most in zip(rates[1:], (limits.velocity, limits.acceleration, limits.jerk))),
        torques / limits.effort,
        slope / limits.effort_rate,
        (rates[1] + slope / train.stiffness) / limits.velocity,
        motor / limits.effort,
        _slope(motor, step) / limits.effort_rate,
    ]
    middle = 0.5 * (limits.position_upper + limits.position_lower)
    shares.append((q - middle) / (limits.position_upper - middle))
    return max(float(np.abs(one).max()) for one in shares)


def _slope(values: Array, step: float) -> Array:
    """Return derivatives by central differences of fourth order (T, n); at rest beyond both ends."""
    padded = np.pad(values, ((2, 2), (0, 0)), mode="edge")
    return (8.0 * (padded[3:-1] - padded[1:-3]) - (padded[4:] - padded[:-4])) / (12.0 * step)


def _swings(robot: Robot, followed: Sequence[Followed], windows: Sequence[int]) -> Array:
    """Return by how much springs swing after the end of each path, each way (paths, ways) [rad]."""
    errors = np.tile(_WRONG, len(followed))
    bent = deflections(robot, [one for one in followed for _ in _WRONG], errors, _AFTERWARDS)
    each = np.repeat(windows, _WAYS * len(_WRONG))
    found = [np.abs(without_mean(rows, window)).max() for rows, window in zip(bent, each)]
    return np.array(found).reshape(-1, _WAYS, len(_WRONG)).max(axis=2)


def _one(value: float) -> Figure:
    return Figure(float(value), float(value), float(value))
