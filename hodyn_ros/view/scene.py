"""What is drawn of a robot, as points and triangles in the world: nothing here knows how it is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.kinematics.skeleton import body_lines, body_poses, loop_lines
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError
from hodyn_ros.view.track import Instant
from hodyn_ros.view.visuals import Visual

_STEPS = 16  # triangles of a sector
_RADIUS, _OUTSIDE = 0.13, 0.18  # of a sector, as a share of the robot's size; where bodies would hide it
_WIDEST = 0.9  # sector of the largest deflection [rad]
_LONGEST = 0.12  # of a slide's, as a share of the robot's size


class Figure(NamedTuple):
    """A robot at one place."""

    poses: Array  # (bodies, 4, 4) in the world [m]
    bodies: Array  # lines (N, 2, 3) [m]
    loops: Array  # lines (N, 2, 3) [m]
    joints: Array  # (M, 3) [m] where bodies are joined


class Spring(NamedTuple):
    """An elastic joint, in the frame of the body that it moves."""

    driven: int  # index among the driven joints
    body: int
    point: Array  # (3,) on the axis, nearest to the origin [m]
    axis: Array  # (3,) unit vector
    aside: Array  # (3,) unit vector to the rest of the body, normal to the axis
    slides: bool


class Scene:
    """A robot with what its file says of its looks.

    `size` [m]: the longest side of the box around its lines at home, by which all else is scaled.
    """

    def __init__(self, robot: Robot, visuals: tuple[Visual, ...] = ()) -> None:
        self.robot = robot
        self.visuals = visuals
        self.springs = _springs(robot)
        self.home = self.figure(*_home(robot))
        points = np.concatenate([self.home.bodies, self.home.loops]).reshape(-1, 3)
        self.lowest, self.highest = points.min(axis=0), points.max(axis=0)
        self.size = max(float((self.highest - self.lowest).max()), 1e-3)
        frames = [frame for frame in robot.frames.values() if frame.body >= 0]
        self._carriers = [frame.body for frame in frames]
        self._frames = np.array([frame.pose for frame in frames]).reshape(-1, 4, 4)

    def figure(self, positions: Array, pose: Array | None = None) -> Figure:
        """Return the robot at positions (n,) of its coordinates and the pose (4, 4) of its base.

        Raises HodynError where its loops cannot be closed there.
        """
        poses = body_poses(self.robot, positions, pose)
        moved = poses[self.robot.tree.first_jointed_body :, :3, 3]
        return Figure(poses, body_lines(self.robot, poses), loop_lines(self.robot, poses), moved)

    def figures(self, instant: Instant) -> tuple[Figure | None, Figure | None]:
        """Return the robot as it is and as it should be: the latter alone where nothing is measured.

        Without what cannot be reached, and at home where nothing is known.
        """
        if instant.desired is None and instant.measured is None:
            return self.home, None
        figures = []
        for positions in (instant.measured, instant.desired):
            try:
                figures.append(None if positions is None else self.figure(positions, instant.pose))
            except HodynError:
                figures.append(None)
        measured, desired = figures
        return (desired, None) if measured is None else (measured, desired)

    def frames(self, figure: Figure) -> Array:
        """Return the poses (N, 4, 4) of all named frames that bodies carry [m]."""
        return figure.poses[self._carriers] @ self._frames

    def magnification(self, largest: float) -> float:
        """Return a round number by which deflections up to `largest` [rad or m] are seen well."""
        wanted = _WIDEST if not any(s.slides for s in self.springs) else _LONGEST * self.size
        if not 0.0 < largest < np.inf:
            return 100.0
        power = 10.0 ** np.floor(np.log10(wanted / largest))
        return max(float(power * np.floor(wanted / largest / power)), 1.0)

    def sectors(self, figure: Figure, deflections: Array, times: float) -> Array:
        """Return triangles (T, 3, 3) [m] that span from link to motor, deflections (driven,) `times` as wide.

        Sectors about the axes of joints that turn; strips along those of slides.
        """
        triangles = [np.empty((0, 3, 3))]
        for spring in self.springs:
            pose = figure.poses[spring.body]
            corners = self._triangles(spring, float(deflections[spring.driven]) * times)
            triangles.append(corners @ pose[:3, :3].T + pose[:3, 3])
        return np.concatenate(triangles)

    def _triangles(self, spring: Spring, width: float) -> Array:
        across, radius = (
            np.cross(spring.axis, spring.aside),
            (_OUTSIDE if self.visuals else _RADIUS) * self.size,
        )
        if spring.slides:
            edge, way = 0.3 * radius * spring.aside, width * spring.axis
            a, b = spring.point - edge, spring.point + edge
            return np.array([[a, b, a + way], [b, b + way, a + way]])
        angles = np.clip(width, -2.0 * np.pi, 2.0 * np.pi) * np.linspace(0.0, 1.0, _STEPS + 1)[:, None]
        rim = spring.point + radius * (np.cos(angles) * spring.aside + np.sin(angles) * across)
        return np.stack([np.broadcast_to(spring.point, (_STEPS, 3)), rim[:-1], rim[1:]], axis=1)


def _home(robot: Robot) -> tuple[Array, Array | None]:
    start, pose = robot.home
    limits = robot.coordinate_limits
    return np.asarray(np.clip(start, limits.position_lower, limits.position_upper)), pose


def _springs(robot: Robot) -> tuple[Spring, ...]:
    train, tree = robot.drive_train, robot.tree
    springs = []
    for driven in [] if train is None else np.flatnonzero(train.elastic):
        body = tree.first_jointed_body + tree.joint_index(robot.driven_joints[driven])
        place, screw = tree.placements[body], tree.screws[body]
        slides = tree.slides(body - tree.first_jointed_body)
        direction = screw[3:] if slides else screw[:3]
        axis = place[:3, :3].T @ direction
        on_axis = place[:3, 3] if slides else np.cross(screw[:3], screw[3:])
        point = place[:3, :3].T @ (on_axis - place[:3, 3])
        point = point - axis * (axis @ point)
        springs.append(Spring(int(driven), body, point, axis, _aside(axis, tree.coms[body] - point), slides))
    return tuple(springs)


def _aside(axis: Array, towards: Array) -> Array:
    """Return the unit vector normal to an axis that points nearest towards something."""
    for direction in np.concatenate([towards[None], np.eye(3)]):
        aside = direction - axis * (axis @ direction)
        length = float(np.linalg.norm(aside))
        if length > 1e-3 * max(float(np.linalg.norm(direction)), 1e-6):
            return np.asarray(aside / length)
    raise AssertionError("an axis is normal to one of three unit vectors at most in part")
