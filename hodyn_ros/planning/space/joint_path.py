"""The path of the joints that leads a frame along a path in space, as a spline that planners time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.pose_solver import Task
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.planning.space.frame_path import FramePath
from hodyn_ros.planning.streams.stream_coordinates import StreamCoordinates
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.robot_motion import RobotMotion

_ORDER = 4  # of the inverse kinematics: the joints are continuous up to their snap
_STEP = 0.01  # [m] between two nodes at first
_LEAST = 24  # nodes
_MOST = 4000
_NEAR = 15.0  # condition number from which on a stretch is named
_TOLERANCE = 1e-6  # [m and rad] that the frame may be off its path between nodes


class NearSingular(NamedTuple):
    """A stretch of a path that is near a singular pose of the robot."""

    begin: float  # along the path [m]
    end: float
    condition: float  # the largest condition number of the Jacobian
    joint: str  # the one that moves most for a way of the frame
    rate: float  # by how much there [rad/m, or m/m]

    def __str__(self) -> str:
        return (
            f"from {self.begin:.3g} to {self.end:.3g} m the path is near a singular pose (condition number "
            f"{self.condition:.3g}): joint {self.joint!r} moves by {self.rate:.3g} rad (or m) for each m"
        )


class JointPath(NamedTuple):
    """A path of joints by the way u of a frame, and what it is like."""

    motion: RobotMotion  # a spline of joints, or of the pose of a platform, by u [m]
    deviation: tuple[float, float]  # by how much the frame is off its path between nodes, at most [m, rad]
    near: tuple[NearSingular, ...]


def start_pose(robot: Robot, frame: str, start: ArrayLike) -> Array:
    """Return the pose (4, 4) of a frame where joints (n,) start; of a platform that is moved its home."""
    if robot.moves_base:
        _require_platform(robot, frame)
        return np.array(robot.home[1])
    q = np.array(start, dtype=np.float64)
    return np.array(robot.forward_kinematics(q[None]).pose_of(frame))


def joint_path(
    robot: Robot,
    path: FramePath,
    frame: str,
    seed: ArrayLike,
    *,
    task: Task = "pose",
    weights: ArrayLike | None = None,
) -> JointPath:
    """Lead a frame or body of a robot along a path by its joints, from the posture `seed` (n,) on.

    By inverse kinematics of order 4 at nodes along the path, each from what the derivatives of the one before
    expect; with more joints than needed those of least velocity, weighted by `weights` (n,). `task`:
    "position" leaves the orientation free. Of a robot with loops the result is that of the joints that are
    coordinates; of one that is moved by its platform that of its pose, and `frame` is the platform. Raises
    InputError that says where on the path a pose is out of reach or singular, and what would help.
    """
    if robot.moves_base:
        return _platform_path(robot, path, frame)
    count = max(_LEAST, int(np.ceil(path.length / _STEP)))
    while True:
        places = _nodes(path, count)
        nodes = _solved(robot, path, frame, places, seed, task, weights)
        spline = WaypointSpline(
            places,
            nodes[:, 0],
            nodes[:, 1],
            nodes[:, 2],
            joint_names=robot.joint_names,
            at_rest=False,
        )
        deviation = _deviation(robot, path, frame, spline, places, task)
        if max(deviation) <= _TOLERANCE:
            break
        count *= 2
        if count > _MOST:
            raise InputError(
                f"the joints do not lead {frame!r} nearer than {deviation[0]:.3g} m and {deviation[1]:.3g} "
                "rad to its path; round its corners more"
            )
    return JointPath(
        RobotMotion.of_joints(spline), deviation, _near_singular(robot, frame, spline, places, task)
    )


def _platform_path(robot: Robot, path: FramePath, frame: str) -> JointPath:
    """Return the pose of a platform along a path, in its coordinates from home."""
    _require_platform(robot, frame)
    coordinates = StreamCoordinates.of(robot)
    count = max(_LEAST, int(np.ceil(path.length / _STEP)))
    origin = np.array(robot.home[1])
    while True:
        places = _nodes(path, count)
        nodes = np.unwrap([coordinates.of_pose(pose) for pose in path.at(places, 0)[0]], axis=0)
        spline = WaypointSpline(places, nodes, at_rest=False)
        motion = RobotMotion.of_base(spline, coordinates.names, origin)
        middle = 0.5 * (places[1:] + places[:-1])
        reached, wanted = motion.sample(middle, 0).pose, path.at(middle, 0)[0]
        assert reached is not None
        deviation = _apart(reached, wanted)
        if max(deviation) <= _TOLERANCE or count > _MOST:
            return JointPath(motion, deviation, ())
        count *= 2


def _require_platform(robot: Robot, frame: str) -> None:
    if robot.platform is None or robot.n_coordinates:
        raise InputError(
            f"robot {robot.name!r} has a floating base; paths in space are for joints, or a platform alone"
        )
    if frame != robot.platform:
        raise InputError(
            f"robot {robot.name!r} is moved by its platform {robot.platform!r}, and a path leads that, not "
            f"{frame!r}"
        )


def _nodes(path: FramePath, count: int) -> Array:
    """Return places (N,) along the path, its breakpoints among them."""
    step = path.length / count
    corners = path.breakpoints
    parts = [
        np.linspace(begin, end, max(int(np.ceil((end - begin) / step)), 2), endpoint=False)
        for begin, end in zip(corners[:-1], corners[1:])
        if end - begin > 1e-9
    ]
    return np.append(np.concatenate(parts), path.length)


def _solved(
    robot: Robot,
    path: FramePath,
    frame: str,
    places: Array,
    seed: ArrayLike,
    task: Task,
    weights: ArrayLike | None,
) -> Array:
    """Return the joints with their derivatives by u (N, 5, n) at places (N,)."""
    poses, twists = path.at(places, _ORDER)
    expected = np.array(seed, dtype=np.float64)
    solutions: list[Array] = []
    for i, place in enumerate(places):
        if solutions:
            step = place - places[i - 1]
            powers = np.cumprod([1.0, *(step / k for k in range(1, _ORDER + 1))])
            expected = powers @ solutions[-1]
        try:
            solved = robot.inverse_kinematics(
                poses[i],
                twists[i],
                body=frame,
                representation="hybrid",
                seed=expected,
                task=task,
                weights=weights,
            )
        except (SingularError, ConvergenceError) as error:
            raise InputError(_trouble(path, place, frame, error)) from error
        solutions.append(np.asarray(solved))
    return np.stack(solutions)


def _trouble(path: FramePath, place: float, frame: str, error: InputError) -> str:
    at = f"after {place:.4g} of {path.length:.4g} m of the path of {frame!r}"
    if isinstance(error, SingularError):
        return (
            f"{at} the robot is singular ({error}); start from another posture, turn the frame elsewhere on "
            "the way, or lead the path around that place"
        )
    return f"{at} the pose is out of reach ({error}); move the path, or start from another posture"


def _deviation(
    robot: Robot, path: FramePath, frame: str, spline: WaypointSpline, places: Array, task: Task
) -> tuple[float, float]:
    """Return by how much the frame is off its path midway between nodes, and turned [m, rad]."""
    middle = 0.5 * (places[1:] + places[:-1])
    wanted, _ = path.at(middle, 0)
    off, turned = _apart(robot.forward_kinematics(spline.sample(middle, 0)).pose_of(frame), wanted)
    return off, 0.0 if task == "position" else turned


def _apart(reached: Array, wanted: Array) -> tuple[float, float]:
    """Return by how much the farthest of poses (N, 4, 4) are off others, and turned [m, rad]."""
    off = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turned = np.linalg.norm(reached[:, :3, :3] - wanted[:, :3, :3], axis=(1, 2)) / np.sqrt(2.0)
    return float(off.max()), float(turned.max())


def _near_singular(
    robot: Robot, frame: str, spline: WaypointSpline, places: Array, task: Task
) -> tuple[NearSingular, ...]:
    """Return the stretches whose Jacobian is badly conditioned, its rows of lengths as large as of angles."""
    motion = spline.sample(places, 1)
    kinematics = robot.forward_kinematics(motion, representation="hybrid")
    jacobians = np.array(kinematics.jacobian_of(frame))[:, 0]
    angular, linear = (np.linalg.norm(rows, axis=(1, 2), keepdims=True) for rows in np.split(jacobians, 2, 1))
    jacobians[:, 3:] *= angular / linear if task == "pose" else 1.0
    jacobians = jacobians[:, 3:] if task == "position" else jacobians
    sizes = np.linalg.svd(jacobians, compute_uv=False)
    conditions = sizes[:, 0] / np.maximum(sizes[:, -1], 1e-300)
    near = conditions > _NEAR
    edges = np.flatnonzero(np.diff(np.concatenate([[False], near, [False]]).astype(int)))
    stretches = []
    for begin, end in zip(edges[::2], edges[1::2]):
        some = slice(begin, end)
        rates = np.abs(motion[some, 1])
        joint = int(np.argmax(rates.max(axis=0)))
        stretches.append(
            NearSingular(
                float(places[begin]),
                float(places[end - 1]),
                float(conditions[some].max()),
                robot.joint_names[joint],
                float(rates[:, joint].max()),
            )
        )
    return tuple(stretches)
