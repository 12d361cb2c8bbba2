"""What a stream moves: the joints of a robot, those of them that loops leave free, or a platform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.streams.uniform_spline import DEGREE, UniformSpline
from hodyn_ros.trajectory.pose_coordinates import COORDINATES
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

_ROWS = {"rx": "roll", "ry": "pitch", "rz": "yaw"}
_OFF = 1e-3  # [m or rad] by which a pose may miss what a platform can do


@dataclass(frozen=True, eq=False)
class StreamCoordinates:
    """The coordinates of a robot that points of a stream give.

    Attributes:
        names: Joints, or coordinates of the platform's pose relative to its home, out of
            `pose_coordinates.COORDINATES`.
        limits: Theirs, infinite where a robot has none.
        moves_platform: Whether they are those of a platform.
    """

    names: tuple[str, ...]
    limits: JointLimits
    moves_platform: bool
    _motion: RobotMotion

    @classmethod
    def of(cls, robot: Robot) -> StreamCoordinates:
        """Raise InputError for a robot that needs more than joints or the pose of a platform."""
        if robot.moves_base and (robot.platform is None or robot.n_coordinates):
            raise InputError(
                f"robot {robot.name!r} has a floating base, or a platform beside joints; streams move the "
                "joints of a robot on a fixed base, or a platform alone"
            )
        count = len(robot.coordinates)
        still = UniformSpline(np.zeros((DEGREE + 1, count)), 1.0)
        if robot.moves_base:
            rows = [name.rpartition(".")[2] for name in robot.coordinates]
            names = tuple(_ROWS.get(row, row) for row in rows)
            motion = RobotMotion.of_base(still, names, robot.home[1])
            return cls(names, JointLimits.unlimited(count), True, motion)
        return cls(robot.joint_names, _of_coordinates(robot), False, RobotMotion.of_joints(still))

    def sample(self, columns: Array, representation: BaseRepresentation = "body_fixed") -> MotionSample:
        """Return the motion (N, ...) of derivatives (N, order + 1, n) of the coordinates."""
        return self._motion.of_columns(columns, representation)

    def of_pose(self, pose: Array) -> Array:
        """Return the coordinates (n,) of a pose (4, 4) of the platform in the world [m].

        Raises InputError for one that the platform cannot have.
        """
        from scipy.spatial.transform import Rotation

        relative = np.linalg.inv(self._motion.origin) @ pose
        turned = Rotation.from_matrix(relative[:3, :3]).as_euler("ZYX")[::-1]
        every = np.concatenate([relative[:3, 3], turned])
        for name, value in zip(COORDINATES, every):
            if name not in self.names and abs(value) > _OFF:
                raise InputError(
                    f"the pose has {name} {value:.3g} from the home of the platform, which moves in "
                    f"{', '.join(self.names)} alone; send poses that it can have"
                )
        return every[[COORDINATES.index(name) for name in self.names]]


def _of_coordinates(robot: Robot) -> JointLimits:
    """Return the limits of the coordinates, driven or not."""
    driven = robot.driven_joints
    rows = [
        robot.limits.row(driven.index(name)) if name in driven else robot.coordinate_limits.row(j)
        for j, name in enumerate(robot.joint_names)
    ]
    return JointLimits.of(robot.joint_names, rows)
