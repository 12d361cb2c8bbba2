"""The file that the parameter `robot_config` names, the robot in it, and whether a motion fits that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rclpy.node import Node

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.ros.parameters.parameters import value
from hodyn_ros.trajectory.robot_motion import RobotMotion

_LOOKS, _WITHIN = 1000, 60.0  # at a motion that starts, over so many seconds at most


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

    def out_of_range(self, motion: RobotMotion) -> str:
        """Say which joint goes furthest beyond its range, or is too fast, at samples; "" for none.

        No more than a look, which costs a millisecond: `hodyn check` finds peaks of all limits.
        """
        if self.robot is None or not self.joint_names:
            return ""
        times = np.linspace(0.0, min(motion.trajectory.duration, _WITHIN), _LOOKS)
        samples = motion.trajectory.sample(times, 1)[:, :, -len(self.joint_names) :]  # a base comes first
        limits = self.robot.coordinate_limits
        for does, unit, values, lower, upper in (
            ("goes to", "[rad or m]", samples[:, 0], limits.position_lower, limits.position_upper),
            ("moves at", "[rad/s or m/s]", samples[:, 1], -limits.velocity, limits.velocity),
        ):
            beyond = np.maximum(values - upper, lower - values)
            when, joint = np.unravel_index(np.argmax(beyond), beyond.shape)
            if beyond[when, joint] > 0.0:
                at = values[when, joint]
                limit = (upper if at > upper[joint] else lower)[joint]
                return (
                    f"joint {self.joint_names[joint]!r} {does} {at:.4g} {unit} at {times[when]:.4g} s, and "
                    f"its limit is {limit:.4g}; `hodyn check` compares a motion with all limits"
                )
        return ""
