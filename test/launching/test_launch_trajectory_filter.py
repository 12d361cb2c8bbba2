"""The launch file of trajectory_filter, run by the real launch and launch_ros where they are."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2, not from PyPI")

from panda_plan import plan
from ros_launch import launch, package
from ros_talk import Talk
from trajectory_msgs.msg import JointTrajectory

from hodyn_ros import share

FILE = "panda_trajectory_filter.launch.py"


def test_trajectories_go_on_to_the_topic_of_the_controller(tmp_path: Path) -> None:
    shipped = share.find("config", "controllers_joint_trajectory.yaml").read_text()
    own = tmp_path / "own.yaml"
    own.write_text(shipped.replace("period: 0.01", "period: 0.02"))
    arguments = ("hardware:=false", "namespace:=left", "controller:=arm", f"controllers:={own}")
    with launch(FILE, *arguments) as process, Talk("left") as talk:
        process.wait_for_line("[left.trajectory_filter]")  # about its action
        heard = talk.hear_nothing_yet(JointTrajectory, "arm/joint_trajectory")
        filtered = talk.ask(
            talk.publisher(JointTrajectory, "trajectory_filter/joint_trajectory"), plan(), heard
        )
        assert len(filtered.points) == 1 + 12 * 5 + 2  # 12 steps of 0.1 s, and one of 0.03 s
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 1, process.output()


def test_the_controller_is_started_with_its_file(tmp_path: Path) -> None:
    package(tmp_path, "robot_state_publisher", "lib/robot_state_publisher/robot_state_publisher")
    package(tmp_path, "joint_state_broadcaster", "lib/joint_state_broadcaster/none")
    for executable in ("ros2_control_node", "spawner"):
        package(tmp_path, "controller_manager", f"lib/controller_manager/{executable}")
    with launch(FILE, "namespace:=left", prefix=tmp_path) as process:
        controllers = re.escape(str(share.find("config", "controllers_joint_trajectory.yaml")))
        line = process.wait_for_line("spawner was given: joint_trajectory_controller")
        assert re.search(f"joint_trajectory_controller --param-file {controllers} --activate", line)
        assert re.search(f"--params-file {controllers}", process.wait_for_line("ros2_control_node was given"))
        process.stop(signal.SIGINT)
