"""The fastest motions along random paths of the Panda: how fast they are, and how fast they are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.peers.waypoint_timing import toppra_search
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot, share
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.retime import retime
from hodyn_ros.planning.time_optimal import TimeOptimal, time_optimal
from hodyn_ros.trajectory import ScaledTime, WaypointSpline

PATHS = 100
REFERENCE = Path(__file__).parent / "data" / "time_optimal_reference.json"
_SPREAD = 0.6  # of the range of each joint that waypoints are drawn from
_TRIALS = 200  # of paths for one that stays within the ranges of all joints


def panda() -> Robot:
    """Return the Panda with elastic drives and the limits of its data sheet."""
    return Robot.load(share.find("config", "panda.yaml"))


def random_path(robot: Robot, seed: int, at_rest: bool = True) -> WaypointSpline:
    """Return a spline through 3 to 10 waypoints within the ranges of the joints."""
    rng = np.random.default_rng(seed)
    lower, upper = robot.limits.position_lower, robot.limits.position_upper
    count, spread = int(rng.integers(3, 11)), _SPREAD
    for _ in range(_TRIALS):
        points = 0.5 * (lower + upper) + spread * (upper - lower) * (rng.random((count, len(lower))) - 0.5)
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        times = np.concatenate([[0.0], np.cumsum(steps)])
        path = WaypointSpline(times, points, at_rest=at_rest, order=4 if at_rest else 2)
        positions = path.sample(np.linspace(0.0, path.duration, 2001), 0)[:, 0]
        if (positions > lower).all() and (positions < upper).all():
            return path
        spread *= 0.97  # splines overshoot
    raise ValueError(f"no path is found for seed {seed}")


def measure(stage: Stage) -> Section:
    """Plan random paths with all limits, and with those that toppra knows."""
    title = f"time-optimal motions along {5 if stage.quick else PATHS} random paths of the Panda"
    robot, seeds = panda(), range(5 if stage.quick else PATHS)
    time_optimal(random_path(robot, 0), robot)  # compiles what is compiled once
    used, shares, seconds, found = [], [], [], {}
    for seed, path, plan, lasted in _planned(robot, seeds, stage):
        used.append(check(robot, plan.motion).tightest.usage)
        even = retime(robot, ScaledTime(path, 100.0)).trajectory.duration
        shares.append(plan.duration / even)
        seconds.append(lasted)
        found[seed] = plan.duration
    rows = [
        Row(
            "largest use of a limit, by a dense search",
            "the limit",
            Figure.exact(max(used)),
            must=Bound(1.001),
        ),
        Row("duration, median", "the even speed of `retime`", Figure.exact(median(shares)), must=Bound(0.6)),
        Row(
            "processor time, median",
            "none",
            Figure.exact(median(seconds)),
            must=Bound(0.3),
            aim=Bound(0.1),
            unit="s",
        ),
        Row("processor time, largest", "none", Figure.exact(max(seconds)), must=Bound(2.0), unit="s"),
    ]
    rows += _reference_rows(found)
    return Section(title, [*rows, *_toppra_rows(robot, seeds, stage)])


def _planned(
    robot: Robot, seeds: range, stage: Stage
) -> Iterator[tuple[int, WaypointSpline, TimeOptimal, float]]:
    for i, seed in enumerate(seeds):
        stage.say("time-optimal motions", 0.6 * i / len(seeds))
        path = random_path(robot, seed)
        start = process_time()
        plan = time_optimal(path, robot)
        yield seed, path, plan, process_time() - start


def _reference_rows(found: dict[int, float]) -> list[Row]:
    if not REFERENCE.exists():
        return []
    known = {int(seed): one for seed, one in json.loads(REFERENCE.read_text())["durations"].items()}
    ratios = [found[seed] / known[seed] for seed in found if seed in known]
    if not ratios:
        return []
    against = f"fine collocation, {len(ratios)} paths"
    return [Row("duration, largest", against, Figure.exact(max(ratios)), must=Bound(1.02))]


def _toppra_rows(robot: Robot, seeds: range, stage: Stage) -> list[Row]:
    limits = replace(
        JointLimits.unlimited(robot.n_coordinates), velocity=robot.limits.velocity, effort=robot.limits.effort
    )
    plain = Robot(robot.tree, limits)
    ratios = []
    for i, seed in enumerate(seeds):
        stage.say("time-optimal motions beside toppra", 0.6 + 0.4 * i / len(seeds))
        path = random_path(robot, seed, at_rest=False)
        ratios.append(time_optimal(path, plain).duration / toppra_duration(plain, path))
    work, against = "duration, limits of velocity and torque alone", "toppra, which lets torques jump"
    return [
        Row(f"{work}, largest", against, Figure.exact(max(ratios)), must=Bound(1.02)),
        Row(f"{work}, median", against, Figure.exact(median(ratios))),
    ]


def toppra_duration(robot: Robot, path: WaypointSpline) -> float:
    """Return the duration [s] of the motion that toppra finds, from rest to rest."""
    constraint = import_module("toppra.constraint")

    def torque(q: Array, velocity: Array, acceleration: Array) -> Array:
        return robot.inverse_dynamics(np.stack([q, velocity, acceleration]))[0]

    bounds = [np.stack([-one, one], axis=1) for one in (robot.limits.velocity, robot.limits.effort)]
    limits = [
        constraint.JointVelocityConstraint(bounds[0]),
        constraint.JointTorqueConstraint(
            torque,
            bounds[1],
            np.zeros(path.n_joints),
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        ),
    ]
    search = toppra_search(path, limits)
    _, speeds, _ = search.compute_parameterization(0.0, 0.0)
    grid = search.gridpoints
    return float(np.sum(2.0 * np.diff(grid) / (speeds[:-1] + speeds[1:])))
