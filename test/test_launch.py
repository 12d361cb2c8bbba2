"""The launch file, run by the real launch and launch_ros where they are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2, not from PyPI")

from launch.actions import DeclareLaunchArgument
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from ros_processes import RosProcess, child_environment
from ros_talk import Talk
from sensor_msgs.msg import JointState

from hodyn_ros import share
from hodyn_ros.nodes.diagnostics import OK

PANDA = share.find("launch", "panda.launch.py")

# What `ros2 launch` does.
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
arguments = [tuple(argument.split(":=", 1)) for argument in sys.argv[2:]]
source = AnyLaunchDescriptionSource(sys.argv[1])
service = LaunchService()
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)])
)
sys.exit(service.run())
"""


def launch(*arguments: str) -> RosProcess:
    environment = child_environment()
    # launch finds the executables of a package by these
    prefixes = [environment.get("AMENT_PREFIX_PATH", ""), sys.prefix]
    environment["AMENT_PREFIX_PATH"] = os.pathsep.join(filter(None, prefixes))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    return RosProcess([sys.executable, "-c", LAUNCH, str(PANDA), *arguments], environment, PANDA.name)


def test_every_argument_is_described() -> None:
    description = get_launch_description_from_python_launch_file(str(PANDA))
    arguments = {a.name: a for a in description.entities if isinstance(a, DeclareLaunchArgument)}
    assert {"robot_config", "rate", "order", "feedforward", "namespace", "use_sim_time", "log_level"} < set(
        arguments
    )
    assert all(len(argument.description) > 20 for argument in arguments.values())


def test_four_nodes_move_the_robot_in_a_namespace_and_end_together() -> None:
    arguments = ("namespace:=left", "rate:=200", "feedforward:=rigid", "duration:=1.0", "order:=3")
    with launch(*arguments) as process, Talk("left") as talk:
        states = talk.hear(JointState, "joint_states")
        for node in ("trajectory_node", "dynamics_node", "controller_node", "simulator_node"):
            values = talk.status(node, lambda status, _: status.level == OK)
            if node == "controller_node":
                assert values["feedforward"] == "rigid"
            if node == "dynamics_node":
                assert values["order"] == "3"
        talk.wait_for_line(process, "the motion has ended after 1001 samples")
        turned = max(abs(a - b) for a, b in zip(states[0].position, states[-1].position))
        assert turned > 0.1
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 4, process.output()


def test_an_argument_that_no_node_takes_ends_with_a_readable_line() -> None:
    with launch("feedforward:=some") as process, Talk("left") as talk:
        talk.wait_for_line(process, "'some'; choose one of none, rigid, elastic")
        process.stop(signal.SIGINT)
