"""A node as a process that is told to end at any moment of its start."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_processes import RosProcess, child_environment, start_node

END = "os.kill(os.getpid(), signal.{signal})\n    while rclpy.ok(): time.sleep(0.01)"
CODE = """
import atexit, os, signal, sys, time
import rclpy
from rclpy.node import Node
from hodyn_ros.errors import InputError
from hodyn_ros.nodes.process import run

def make() -> Node:
    {before}
    node = Node("ended")
    {after}
    return node

sys.exit(run(make, []))
"""


def run(before: str, after: str) -> RosProcess:
    code = CODE.format(before=before, after=after)
    return RosProcess([sys.executable, "-c", code], child_environment(), "a node")


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("before", [True, False], ids=["before the node", "before the executor"])
def test_the_end_of_a_start_is_a_clean_end(signal: str, before: bool) -> None:
    end = END.format(signal=signal)
    with run(end if before else "pass", "pass" if before else end) as process:
        assert process.wait() == 0, process.output()
    assert process.lines == []


def test_an_end_is_not_interrupted_by_another_signal() -> None:
    """Both the terminal and launch send SIGINT, the later one while Python ends."""
    again = "atexit.register(os.kill, os.getpid(), signal.SIGINT)"
    with run(again, END.format(signal="SIGINT")) as process:
        assert process.wait() == 0, process.output()
    assert process.lines == []


def test_what_the_user_can_mend_is_said() -> None:
    with run("raise InputError('no such robot')", "pass") as process:
        assert process.wait() == 1, process.output()
    assert process.lines == ["error: no such robot"]


def test_an_error_of_a_start_that_was_told_to_end_is_no_error() -> None:
    with run(END.format(signal="SIGTERM") + "\n    raise InputError('half a node')", "pass") as process:
        assert process.wait() == 0, process.output()
    assert process.lines == []


def test_a_misspelt_parameter_is_named() -> None:
    with start_node("skeleton_node", {"robot_config": "panda.yaml", "fram_id": "map"}, "misspelt") as node:
        line = node.wait_for_line("is unknown")
        assert "parameter 'fram_id' is unknown, and ignored; did you mean 'frame_id'?" in line
        assert node.stop() == 0, node.output()
    assert sum("is unknown" in line for line in node.lines) == 1


@pytest.mark.parametrize("node", ["simulator_node", "controller_node"])
def test_a_parallel_robot_is_refused_by_its_name(node: str) -> None:
    with start_node(node, {"robot_config": "gough_stewart_6ups.yaml"}, "parallel") as process:
        assert process.wait() == 1
    (line,) = process.lines
    assert line.endswith(f"gough_stewart_6ups.yaml describes a parallel robot; {node} takes arms and trees")
