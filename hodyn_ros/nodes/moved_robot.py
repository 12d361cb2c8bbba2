"""The robot that a trajectory is for: does a motion fit it?"""

from __future__ import annotations

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.parallel.config import is_parallel
from hodyn_ros.trajectory.robot_motion import RobotMotion


class MovedRobot:
    """What is known of the robot that is to move, and whether a motion is for it.

    `robot_config`: path of a YAML file, or the name of a shipped one; empty: nothing is known.
    """

    def __init__(self, robot_config: str) -> None:
        self.name = robot_config
        self.joint_names: tuple[str, ...] = ()
        self._moves_base = False
        if not robot_config:
            return
        path = share.find("config", robot_config)
        if is_parallel(path):
            self._moves_base = True
            return
        robot = Robot.from_config(path)
        self.joint_names, self._moves_base = robot.joint_names, robot.model.floating_base

    def require_joint_trajectories(self) -> None:
        """Raise InputError unless a JointTrajectory says all about the motion of this robot."""
        if not self.name:
            raise InputError(
                "parameters 'trajectory' and 'robot_config' are both empty; name a trajectory, or the robot "
                "that a JointTrajectory is to move"
            )
        if self._moves_base:
            raise InputError(
                f"a JointTrajectory cannot place the platform or floating base of {self.name}; name a file "
                "of type pose with the parameter 'trajectory'"
            )

    def check(self, motion: RobotMotion, file: str) -> None:
        """Raise InputError unless the motion in a file moves this robot's base and joints."""
        given = motion.joint_names
        if not self.name:
            if given is None:
                raise InputError(f"{file} does not name its joints; give the parameter 'robot_config'")
            return
        if motion.moves_base and not self._moves_base:
            raise InputError(f"{file} moves a platform or floating base, but {self.name} has none")
        if self._moves_base and not motion.moves_base:
            raise InputError(
                f"{file} moves joints alone, but {self.name} has a platform or floating base; name a file of "
                "type pose"
            )
        if given is not None and given != self.joint_names:
            raise InputError(f"{file} moves {list(given)}, but the robot has {list(self.joint_names)}")
        if motion.n_joints != len(self.joint_names):
            raise InputError(
                f"{file} moves {motion.n_joints} joints, but the robot has {len(self.joint_names)}"
            )
