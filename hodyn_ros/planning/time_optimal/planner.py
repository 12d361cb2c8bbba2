"""The fastest motion along a path that keeps all limits of a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.limit_set import Column, LimitSet
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.time_optimal.frame_speed import FrameSpeed as FrameSpeed
from hodyn_ros.planning.time_optimal.frame_speed import pace_of
from hodyn_ros.planning.time_optimal.geometry import require_path
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.planning.time_optimal.interior_point import Optimum
from hodyn_ros.planning.time_optimal.speed_search import GIVEN, Ends, SpeedSearch
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.checks import frozen_array
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.timed import TimedPath, eased_path

PIECES = 120  # of the speed, where nothing else is asked for
_EASE = 0.05  # of a path, for a start from rest
_GOAL = 1.0 - 2e-5  # of the limits that the even speed uses


@dataclass(frozen=True, eq=False)
class Binding:
    """How one limit shapes the fastest motion."""

    column: Column
    usage: float  # at most
    place: float  # where, as a parameter of the path
    time: float  # when [s]
    gain: float  # by how many seconds the motion is shorter for each share by which the limit rises [s]


@dataclass(frozen=True, eq=False)
class TimeOptimal:
    """The fastest motion along a path."""

    motion: RobotMotion
    law: TimedPath  # the trajectory of the motion
    ease: tuple[float, float]  # of the path, for its start from rest and its stop to rest
    even_duration: float  # of the motion that keeps all limits with its path parameter running evenly [s]
    bindings: tuple[Binding, ...]
    places: Array  # (N,) along the path
    usage: Array  # (N, bindings) of the limits there
    even_usage: Array  # (N, bindings) of the motion with an even parameter
    steps: int  # of the search
    slowed: float  # speed that the whole was slowed to, to keep what happens between stations

    @property
    def duration(self) -> float:
        """How long the motion lasts [s]."""
        return self.law.duration

    @property
    def timing(self) -> dict[str, list[float]]:
        """What a trajectory file says of it under `timing`, beside the path."""
        speeds = np.asarray(self.law.squared_speeds).tolist()
        timing = {"knots": np.asarray(self.law.knots).tolist(), "squared_speeds": speeds}
        return {"ease": list(self.ease), **timing} if any(self.ease) else timing


def time_optimal(
    path: Trajectory | RobotMotion,
    robot: Robot,
    limits: Mapping[str, float] | JointLimits | None = None,
    *,
    start: Sequence[float] | None = None,
    end: Sequence[float] | None = None,
    uncertainty: Uncertainty | None = None,
    speed: FrameSpeed | None = None,
    pieces: int = PIECES,
    progress: Callable[[float], None] | None = None,
) -> TimeOptimal:
    """Find the fastest motion along a path that keeps all limits of a robot.

    `path`: any motion of the joints, of a platform, or of a floating base with its joints; only where it
    leads counts, not how fast. `limits`: shares of the robot's own limits by quantity, as `{"velocity":
    0.5}`, or others in place of those of its joints. `start` and `end` (4,): the first four time derivatives
    of the path parameter there, where the motion does not come from rest or to rest; (1, 0, 0, 0) where it
    goes on from the path at its own pace. It is continuous up to its snap, as the path has to be, and its
    speed a spline of as many `pieces`. `speed`: a limit of a frame beside. With an `uncertainty`, torques
    bend so gently that springs which are not as modelled hardly swing. Raises InputError for a path with a
    kink, InfeasibleError where no speed keeps the limits: naming the joint whose range the path leaves, or
    whose limit gravity alone exceeds.
    """
    if robot.propellers is not None and robot.propellers.tilts:
        raise InputError(
            f"robot {robot.name!r} has propellers that tilt, whose thrusts are not linear in what a plan "
            "chooses; retime the motion instead"
        )
    if isinstance(limits, JointLimits):
        attributes = robot.frames, robot.closure, robot.coordinate_limits, robot.propellers
        robot, limits = Robot(robot.tree, limits, robot.drive_train, *attributes), None
    fitted = MotionEvaluator(robot).fitted(_plain(RobotMotion.of(path)))
    bends = None if uncertainty is None else uncertainty.torque_accelerations(robot, fitted)
    demand = LimitSet(robot, limits, torque_accelerations=bends)
    require_path(fitted, demand)
    ends = tuple(_under_way(fitted.trajectory, *one) for one in (("start", start), ("end", end)))
    ease, fitted = _eased(fitted, ends)
    search = SpeedSearch(demand, demand.fitted(fitted), pieces, ends, pace_of(speed, fitted.trajectory, ease))
    optimum = search.optimum(progress)
    law, slowed, peaks = search.kept(optimum.coefficients)
    even = search.even_speed(_GOAL)
    coefficients = np.asarray(law.squared_speeds)
    after, before = (search.sizes(some) for some in (coefficients, np.full_like(coefficients, even)))
    return TimeOptimal(
        replace(search.motion, trajectory=law),
        law,
        ease,
        float(search.knots[-1] - search.knots[0]) / even**0.5,
        _bindings(search, optimum, peaks),
        search.u,
        after,
        before,
        optimum.steps,
        slowed,
    )


def _under_way(path: Trajectory, where: str, rates: Sequence[float] | None) -> Array | None:
    """Return b and its first three derivatives by u (4,) from time derivatives of u; None at rest."""
    if rates is None:
        return None
    u = frozen_array(where, rates, (GIVEN,))
    if u[0] <= 0.0:
        raise InputError(
            f"du/dt must be positive at the {where}, found {u[0]:g}; leave out `{where}` to rest"
        )
    if path.starts_at_rest if where == "start" else path.ends_at_rest:
        raise InputError(
            f"the path itself rests at its {where}, so nothing moves over it; leave out `{where}`"
        )
    # the derivatives 2, 3, 4 of u are b1 / 2, b2 sqrt(b) / 2, b3 b / 2 + b2 b1 / 4
    b, first, second = u[0] ** 2, 2.0 * u[1], 2.0 * u[2] / u[0]
    return np.array([b, first, second, 2.0 * (u[3] - 0.25 * first * second) / b])


def _eased(motion: RobotMotion, ends: Ends) -> tuple[tuple[float, float], RobotMotion]:
    """Return a path that rests at its ends, and how much of it that takes."""
    path = motion.trajectory
    width = _EASE * (path.duration - path._departure)
    rests = (path.starts_at_rest, path.ends_at_rest)
    start, stop = (0.0 if still or speeds is not None else width for still, speeds in zip(rests, ends))
    return (start, stop), replace(motion, trajectory=eased_path(path, (start, stop)))


def _plain(motion: RobotMotion) -> RobotMotion:
    """Return a motion without the time law that it has."""
    trajectory = motion.trajectory
    while isinstance(trajectory, TimedPath):
        trajectory = trajectory.path
    return replace(motion, trajectory=trajectory)


def _bindings(search: SpeedSearch, optimum: Optimum, peaks: Array) -> tuple[Binding, ...]:
    gains = optimum.multipliers.sum(axis=0)
    return tuple(
        Binding(column, float(usage), float(place), float(time), float(gain))
        for column, gain, place, time, usage in zip(search.columns, gains, *peaks, strict=True)
    )
