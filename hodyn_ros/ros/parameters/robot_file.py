"""The file that the parameter `robot_config` names, and the robot in it."""

from __future__ import annotations

from pathlib import Path

from rclpy.node import Node

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.ros.parameters.parameters import value


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
