"""A joint trajectory with the efforts that it takes, for a controller that adds them to its feedback."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.planning.check import Finding, check
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.easing import EasedStop
from hodyn_ros.trajectory.robot_motion import MotionSample
from hodyn_ros.trajectory.splines.blended import BlendedLines
from hodyn_ros.trajectory.splines.densify import DenseMotion, Waypoints, densify
from hodyn_ros.trajectory.splines.spline import WaypointSpline
from hodyn_ros.trajectory.splines.start import PresentState, start_from

Side = Literal["link", "motor"]


class EffortTrajectory(NamedTuple):
    """A dense motion with its efforts."""

    dense: DenseMotion
    motion: Array  # (N, 3, n) positions, velocities, accelerations at `dense.times`
    efforts: Array  # (N, n) [N·m or N]
    # (n,) by how much a straight line between two instants misses the effort at most [N·m or N]
    between: Array
    violations: tuple[Finding, ...]  # limits that are exceeded, the worst first


_ORDERS = 4, 3, 2  # of splines, the smoothest first; all are continuous up to snap
_SAME = 1e-6  # [rad or m] between positions that are one: rounding would have no spline through them
_NEARLY = 1e-5, 1e-4, 1e-3  # of the longest step: what is nearer is one where a spline swings otherwise
_ABSURD = 1e3  # times a limit: what is beyond may be so rough that its peaks take half a minute


class EffortPoints(NamedTuple):
    """Points of a motion with their efforts."""

    times: Array  # (N,) [s] of the motion's own time
    motion: Array  # (N, 3, n) positions, velocities, accelerations
    efforts: Array  # (N, n) [N·m or N]


class EffortFilter:
    """Makes effort trajectories of waypoints, for a robot whose drives act on the joints that move it.

    `side`: efforts of the links (what the joints have to transmit), or of the motors, which also accelerate
    their rotors and load their springs. Instants are at most `period` [s] apart. `ease` [s] is explained at
    `densify`, `start_tolerance` [rad or m] at `start_from`. Raises InputError for a robot that cannot have
    such efforts.
    """

    def __init__(
        self,
        robot: Robot,
        side: Side = "link",
        period: float = 0.01,
        ease: float = 0.1,
        start_tolerance: float = 0.0,
    ) -> None:
        name = robot.name
        if side not in get_args(Side):
            raise InputError(f"efforts are those of the 'link' or of the 'motor', found {side!r}")
        if robot.moves_base:
            what = "a floating base" if robot.platform is None else f"the platform {robot.platform!r}"
            raise InputError(f"robot {name!r} has {what}, which a joint trajectory does not move")
        if set(robot.driven_joints) != set(robot.joint_names):
            raise InputError(
                f"robot {name!r} moves by joints {list(robot.joint_names)} and is driven at "
                f"{list(robot.driven_joints)}, and a joint trajectory holds one effort per joint; name the "
                "driven joints as `coordinates`"
            )
        if not 0.0 < period < math.inf:
            raise InputError(f"the period must be positive and finite, found {period} s")
        drives = robot.drive_train
        if side == "motor" and drives is None:
            raise InputError(f"robot {name!r} has no drives in its file; use efforts of the link side")
        if side == "motor" and drives is not None and drives.n_motors != robot.n_coordinates:
            raise InputError(
                f"robot {name!r} has {drives.n_motors} motors for {robot.n_coordinates} joints, and a joint "
                "trajectory holds one effort per joint"
            )
        self.robot = robot
        self.side = side
        self.period = period
        self.ease = ease
        self.start_tolerance = start_tolerance
        self._has_limits = _has_limits(robot)
        self._evaluator = MotionEvaluator(robot)
        self._places = [robot.driven_joints.index(joint) for joint in robot.joint_names]

    def __call__(self, waypoints: Waypoints, present: PresentState | None = None) -> EffortTrajectory:
        """Return the effort trajectory through waypoints; raises InputError for bad ones."""
        if present is None:
            present = PresentState.unknown(self.robot.n_coordinates)
        started = start_from(waypoints, present, self.robot.joint_names, self.start_tolerance)
        dense = densify(started, self.period, self.ease)
        times = dense.times
        # the instants, and between each two of them the middle
        doubled = np.empty(2 * len(times) - 1)
        doubled[::2] = times
        doubled[1::2] = 0.5 * (times[:-1] + times[1:])
        motion = dense.motion.sample(doubled, 4)
        efforts = self._efforts(motion)
        missed = np.abs(efforts[1::2] - 0.5 * (efforts[:-1:2] + efforts[2::2])).max(axis=0)
        violations: tuple[Finding, ...] = ()
        if self._has_limits:
            violations = check(self.robot, dense.motion, enough=_ABSURD).violations
        return EffortTrajectory(dense, motion[::2, :3], efforts[::2], missed, violations)

    def fastest(
        self,
        positions: Array,
        blend: float = 0.0,
        shares: Mapping[str, float] | None = None,
        stiffness_error: float = 0.0,
        progress: Callable[[float], None] | None = None,
    ) -> EffortPoints:
        """Return the fastest motion from rest to rest through positions (m, n) that keeps all limits.

        As a spline, or with a `blend` along straight lines with rounded corners (`BlendedLines`); `shares` of
        limits by quantity, and what may be wrong of the springs, as in `time_optimal`. Positions within 1e-6
        (rad or m) of the one before are left out, and where steps are too uneven for a spline those within a
        thousandth of the longest step. `progress` is told which share of the search is done, first 0 and last
        1, and ends it by raising. Raises InputError for fewer than two, and for points between which a spline
        goes further off the straight way than the longest step; InfeasibleError.
        """
        tell = progress or (lambda _: None)
        tell(0.0)
        path = self._path(positions, blend)
        uncertainty = Uncertainty(stiffness_error) if stiffness_error else None
        law = time_optimal(path, self.robot, shares, uncertainty=uncertainty, progress=tell).law
        tell(1.0)
        count = max(1, math.ceil(law.duration / self.period - 1e-6))
        times = np.linspace(0.0, law.duration, count + 1)
        rows = law.sample(times, 4)
        return EffortPoints(times, rows[:, :3], self._efforts(rows))

    def _path(self, positions: Array, blend: float) -> Trajectory:
        """Return the path through positions (m, n), or those that are far enough from the one before."""
        longest, names = np.abs(np.diff(positions, axis=0)).max(initial=0.0), self.robot.joint_names
        if blend:
            points = _apart(positions, _SAME)
            return BlendedLines(_places(points), points, blend=blend, joint_names=names)
        for order, share in product(_ORDERS, (0.0, *_NEARLY)):
            points = _apart(positions, max(_SAME, share * longest))
            # at rest at its ends it would leave points that are dense; time_optimal eases it instead
            rests = len(points) <= order
            if rests and order < _ORDERS[0]:  # its snap would jump there
                continue
            try:
                path = WaypointSpline(_places(points), points, order=order, at_rest=rests, joint_names=names)
            except InputError as error:
                refused = error
                continue
            if not (said := path.said_to_swing()):
                return path
            refused = InputError(f"{said}; give a blend, or space points more evenly")
        raise refused

    def stop(self, motion: Trajectory, since: float, begin: float, duration: float) -> EffortPoints:
        """Return a motion from its time `since` on, brought to rest on its own path.

        It goes on unchanged until `begin`, then slows down, and rests `duration` later [s], continuous up to
        snap. Raises InputError where it is over before it could rest so.
        """
        stopped = EasedStop(motion, duration, begin + 0.5 * duration)
        count = max(1, math.ceil((stopped.duration - since) / self.period - 1e-6))
        times = np.linspace(since, stopped.duration, count + 1)
        rows = stopped.sample(times, 4)
        return EffortPoints(times, rows[:, :3], self._efforts(rows))

    def hold(self, positions: Array) -> Array:
        """Return the efforts (n,) of a robot that stands at positions (n,)."""
        standing = np.zeros((1, 5, self.robot.n_coordinates))
        standing[0, 0] = positions
        return self._efforts(standing)[0]

    def _efforts(self, motion: Array) -> Array:
        """Return efforts (N, n) of a motion (N, 5, n); InputError where the robot cannot move so."""
        link = self.side == "link"
        drives, torques = self._evaluator.evaluate(MotionSample(motion[:, :3] if link else motion))
        if not link:
            torques = self.robot.require_drives().feedforward(drives, torques).effort
        return np.ascontiguousarray(torques[:, 0, self._places])


def _apart(positions: Array, least: float) -> Array:
    """Return the positions of a path that are more than `least` from the one before; both ends stay."""

    def same(one: Array, other: Array) -> bool:
        return bool(np.abs(one - other).max() <= least)

    kept = list(positions[:1])
    for point in positions[1:]:
        if not same(point, kept[-1]):
            kept.append(point)
    while len(kept) > 1 and same(kept[-1], positions[-1]):
        kept.pop()
    if not kept or same(kept[-1], positions[-1]):
        raise InputError("a path needs two different points at least")
    return np.stack([*kept, positions[-1]])


def _places(points: Array) -> Array:
    """Return how far it is to each point of a path, in the space of the joints."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def _has_limits(robot: Robot) -> bool:
    try:
        LimitSet(robot)
    except InputError:  # on the ground, so it has none
        return False
    return True
