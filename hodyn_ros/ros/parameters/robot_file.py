"""The file that the parameter `robot_config` names, the robot in it, and whether a motion fits that."""

from __future__ import annotations

from pathlib import Path

from rclpy.node import Node

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.ros.parameters.parameters import value
from hodyn_ros.trajectory.robot_motion import RobotMotion


def robot_file(node: Node) -> Path:
    """Return the path of the robot's file; InputError where none is named or there is no such file."""
    name = value(node, "robot_config")
    if not name:
        raise InputError(
            "parameter 'robot_config' is empty; name a robot, for instance -p robot_config:=panda.yaml"
        )
    return share.find("config", name)


def robot_of_file(node: Node) -> Robot:
    """Return the robot of that file."""
    return Robot.load(robot_file(node))


class TrajectoryTarget:
    """What is known of the robot that is to move, and whether a motion is for it.

    `robot_config`: path of a YAML file, or the name of a shipped one; empty: nothing is known.
    """

    def __init__(self, robot_config: str) -> None:
        self.name = robot_config
        self.joint_names: tuple[str, ...] = ()
        self._moves_base = False
        self.robot: Robot | None = None
        if not robot_config:
            return
        self.robot = robot = Robot.load(share.find("config", robot_config))
        self.joint_names, self._moves_base = robot.joint_names, robot.moves_base

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

    def fitted(self, motion: RobotMotion, file: str) -> RobotMotion:
        """Return the motion in a file with the joints of this robot; InputError unless it has what moves."""
        if not self.name:
            if motion.joint_names is None:
                raise InputError(f"{file} does not name its joints; give the parameter 'robot_config'")
            return motion
        if motion.moves_base and not self._moves_base:
            raise InputError(f"{file} moves a platform or floating base, but {self.name} has none")
        if self._moves_base and not motion.moves_base:
            raise InputError(
                f"{file} moves joints alone, but {self.name} has a platform or floating base; name a file of "
                "type pose"
            )
        try:
            return motion.for_joints(self.joint_names)
        except InputError as error:
            raise InputError(f"{file}: {error}") from error
