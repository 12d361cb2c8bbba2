"""`hodyn run`: real nodes, started from launch files without launch."""

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_processes import TIMEOUT, RosProcess, start_launch_file, wait_until
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from sweeps import some

from hodyn_ros.msg import FeedforwardTorque


def pid_of(process: RosProcess, title: str) -> int:
    """Return the process id of what was started last under a title."""
    return int(re.findall(rf"^{title}: process (\d+) started", process.output(), re.MULTILINE)[-1])


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_nodes_have_their_namespace_parameters_and_topics_and_one_that_may_comes_back(tmp_path: Path) -> None:
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("/**/dynamics_node:\n  ros__parameters:\n    order: 1\n")
    arguments = ("namespace:=cell/one", "rate:=100", "duration:=0.5", f"params_file:={parameters}")
    with (
        start_launch_file("gough_stewart.launch.py", *arguments, "respawn:=true") as process,
        Talk("cell/one") as talk,
    ):
        heard = talk.hear(FeedforwardTorque, "feedforward_torque")
        assert (len(heard[0].effort_rates), len(heard[0].effort_accelerations)) == (6, 0)
        line = talk.wait_for_line(process, "the motion has ended after")
        assert line.startswith("[trajectory_node-2] ")
        os.kill(pid_of(process, "dynamics_node-1"), signal.SIGKILL)
        process.wait_for_line("dynamics_node-1 has been ended by signal 9 (SIGKILL); starting it again")
        wait_until(
            lambda: process.output().count("efforts to order 1") == 2, TIMEOUT, "the second dynamics_node"
        )
        process.end(signal.SIGTERM)


@pytest.mark.parametrize("how", some([signal.SIGKILL, signal.SIGSEGV], signal.SIGSEGV))
def test_all_end_when_a_node_dies(how: signal.Signals) -> None:
    with start_launch_file("gough_stewart.launch.py", "rate:=50") as process:
        process.wait_for_line("the motion starts")
        nodes = [pid_of(process, title) for title in ("dynamics_node-1", "trajectory_node-2")]
        os.kill(nodes[0], how)
        process.wait_for_line(f"dynamics_node-1 has been ended by signal {how.value} ({how.name})")
        assert process.wait() == 2
        assert gone(nodes)


def test_a_node_that_cannot_start_is_not_tried_again() -> None:
    arguments = ("robot_config:=nowhere.yaml", "respawn:=true")
    with start_launch_file("gough_stewart.launch.py", *arguments) as process:
        process.wait_for_line("error: no file 'nowhere.yaml'")
        assert process.wait() == 2
        assert process.output().count("dynamics_node-1: process") == 1


def test_no_node_outlives_it() -> None:
    """Each begins as it does in a terminal."""
    with start_launch_file("gough_stewart.launch.py", "rate:=50", cold=True) as process:
        process.wait_for_line("the motion starts")
        nodes = [pid_of(process, title) for title in ("dynamics_node-1", "trajectory_node-2")]
        process.stop(signal.SIGKILL)
        wait_until(lambda: gone(nodes), TIMEOUT, "the end of all nodes")


@pytest.mark.parametrize("argument", ["rate", "rate:=0"])
def test_wrong_arguments_start_nothing(argument: str) -> None:
    with start_launch_file("gough_stewart.launch.py", argument) as process:
        assert process.wait() == 2
        (line,) = process.lines
        assert line.startswith("error: ")


# A machine that does other things beside holds messages up; what the guard makes of that is tested elsewhere.
PATIENT = """
/**:
  ros__parameters:
    {diagnostic_updater.period: 0.05}
/**/trajectory_node:
  ros__parameters: {auto_start: false}
/**/controller_node:
  ros__parameters:
    {timeout: 1.0, measurement_timeout: 10.0, latency: 1.0, natural_frequency: 10.0, tracking_error: 10.0}
"""


@pytest.mark.realtime
def test_a_robot_with_loops_is_simulated_and_commanded(tmp_path: Path) -> None:
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text(PATIENT)
    arguments = ("simulate:=true", "rate:=50", "command_rate:=100", "duration:=0.5", "namespace:=cell")
    arguments += ("order:=3", f"params_file:={parameters}")
    with Talk("cell") as talk, start_launch_file("delta.launch.py", *arguments) as process:
        states = talk.hear(JointState, "joint_states")
        talk.wait_for_line(process, "waiting -> joining")
        talk.wait_until(lambda: len(states) > 0, "the robot")
        assert talk.call(Trigger, "trajectory_node/start", Trigger.Request()).success
        talk.wait_until(
            lambda: "missed" in process.output() or "the motion has ended after" in process.output(),
            "the end",
        )
        if "missed" in process.output():
            pytest.skip("the machine was too busy to simulate a robot in real time")
        assert talk.was_sound("trajectory_node") and talk.was_sound("dynamics_node")
        talk.wait_until(
            lambda: np.ptp([state.position for state in states], axis=0).max() > 0.01, "the robot in motion"
        )
        assert process.stop(signal.SIGINT) == 0, process.output()
    assert "-> stopping" not in process.output().partition("the motion has ended")[0], process.output()


def test_arguments_are_shown() -> None:
    with start_launch_file("panda.launch.py", "--show-args") as process:
        assert process.wait() == 0
        assert "feedforward:=elastic" in process.lines
        assert any("From 6 to 2000." in line for line in process.lines)
