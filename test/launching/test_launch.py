"""The launch files, run by the real launch and launch_ros where they are."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("launch_ros", reason="launch_ros is not installed; it comes with a ROS 2, not from PyPI")

from ros_launch import launch, package
from ros_processes import TIMEOUT, RosProcess, wait_until
from ros_talk import Talk
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from hodyn_ros import share
from hodyn_ros.launching.qos_overrides import overrides
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.messages import time_message
from hodyn_ros.ros.diagnostics import OK

# Robots that nobody simulates: joints with efforts, and whether a floating base has a wrench.
MOTION_TO_EFFORTS = {
    "gough_stewart": (6, False),
    "planar_3rrr": (3, False),
    "aerial_manipulator": (6, True),
    "delta": (3, False),
    "palletiser": (4, False),
    "humanoid_leg": (6, True),
    "panda_hand": (8, False),
}


def pid_of(process: RosProcess, node: str) -> int:
    """Return the process id of the node that was started last, as launch has said it."""
    return int(re.findall(rf"\[{node}-\d+\]: process started with pid \[(\d+)\]", process.output())[-1])


def alive(pid: int) -> bool:
    """Return whether a process is there, and not only waiting for somebody to ask how it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.realtime  # measurements that are 20 ms late stop the robot, as they should
def test_four_nodes_move_the_robot_in_a_namespace_and_end_together() -> None:
    slow = ("rate:=50", "command_rate:=250")
    arguments = ("namespace:=left", *slow, "feedforward:=rigid", "duration:=1.0", "order:=3")
    with launch("panda.launch.py", *arguments) as process, Talk("left") as talk:
        states = talk.hear(JointState, "joint_states")
        for node in ("trajectory_node", "dynamics_node", "controller_node", "simulator_node"):
            values = talk.status(node, lambda status, _: status.level == OK)
            if node == "controller_node":
                assert values["feedforward"] == "rigid"
            if node == "dynamics_node":
                assert values["order"] == "3"
        talk.wait_for_line(process, "the motion has ended after 251 samples")
        talk.wait_until(
            lambda: max(abs(a - b) for a, b in zip(states[0].position, states[-1].position)) > 0.1,
            "states of an arm that has turned",
        )
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 4, process.output()


@pytest.mark.parametrize(("robot", "expected"), MOTION_TO_EFFORTS.items())
def test_motions_give_efforts(robot: str, expected: tuple[int, bool]) -> None:
    joints, wrenches = expected
    arguments = ("namespace:=cell/one", "rate:=100", "duration:=0.5", "order:=3")
    with launch(f"{robot}.launch.py", *arguments) as process, Talk("cell/one") as talk:
        heard = talk.hear(FeedforwardTorque, "feedforward_torque")
        talk.wait_for_line(process, "the motion has ended")
        values = talk.status("dynamics_node", lambda status, values: int(values["answered"]) > 100)
        assert (values["order"], values["rejected"]) == ("3", "0")
        talk.wait_until(
            lambda: max(abs(each.effort_rates[0]) for each in heard) > 1e-3, "efforts that change"
        )
        message = heard[-1]
        assert len(message.joint_names) == joints
        assert len(message.higher_effort_derivatives) == joints
        assert len(message.base_wrenches) == (24 if wrenches else 0)
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 2, process.output()


def test_two_robots_do_not_hear_each_other() -> None:
    arguments = ("rate:=50", "duration:=0.5", "order:=2", "feedforward:=rigid")
    with (
        launch("two_pandas.launch.py", *arguments) as process,
        Talk("left") as left,
        Talk("right") as right,
    ):
        heard = [talk.hear(FeedforwardTorque, "feedforward_torque") for talk in (left, right)]
        for talk in (left, right):
            talk.wait_until(
                lambda: sum("the motion has ended after 226 samples" in line for line in process.lines) == 2,
                "the end of both motions",
            )
            values = talk.status("dynamics_node", lambda status, _: True)
            assert values["rejected"] == "0"
        for talk in (left, right):
            names = {name for name, _ in talk.node.get_topic_names_and_types()}
            assert {"/left/desired_motion", "/right/desired_motion"} < names
            assert "/desired_motion" not in names
        for messages in heard:
            stamps = [(m.header.stamp.sec, m.header.stamp.nanosec) for m in messages]
            assert stamps == sorted(set(stamps))  # those of one trajectory_node alone
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 8, process.output()


TWO_PLATFORMS = """
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch_ros.actions import PushRosNamespace

def platform(namespace, **arguments):
    return GroupAction([
        PushRosNamespace("cell"),
        IncludeLaunchDescription("GOUGH", launch_arguments={"namespace": namespace, **arguments}.items()),
    ])

def generate_launch_description():
    both = [platform("one", trajectory="none", order="4"), platform("two", trajectory="none")]
    return LaunchDescription(both)
"""


def test_launch_files_can_be_included_in_groups(tmp_path: Path) -> None:
    file = tmp_path / "two.launch.py"
    file.write_text(TWO_PLATFORMS.replace("GOUGH", str(share.find("launch", "gough_stewart.launch.py"))))
    with launch(str(file)) as process:
        assert process.wait_for_line("[cell.one.dynamics_node]: robot").endswith("efforts to order 4")
        assert process.wait_for_line("[cell.two.dynamics_node]: robot").endswith("efforts to order 2")
        assert process.stop(signal.SIGINT) == 0, process.output()


ONE_AFTER_THE_OTHER = """
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription

def included(file, **arguments):
    return IncludeLaunchDescription(file, launch_arguments=arguments.items())

def generate_launch_description():
    return LaunchDescription([
        included("GOUGH", namespace="one", trajectory="none"), included("PLANAR"SECOND)
    ])
"""


def one_after_the_other(folder: Path, second: str) -> str:
    """Write a launch file that includes two of ours outside of groups; return its path."""
    text = ONE_AFTER_THE_OTHER.replace("SECOND", second)
    for word, robot in (("GOUGH", "gough_stewart"), ("PLANAR", "planar_3rrr")):
        text = text.replace(word, str(share.find("launch", f"{robot}.launch.py")))
    file = folder / "both.launch.py"
    file.write_text(text)
    return str(file)


def test_a_launch_file_leaves_its_defaults_to_no_other(tmp_path: Path) -> None:
    with launch(one_after_the_other(tmp_path, ', namespace="two"')) as process:
        assert "'gough_stewart_6ups'" in process.wait_for_line("[one.dynamics_node]: robot")
        assert "'planar_3rrr'" in process.wait_for_line("[two.dynamics_node]: robot")
        assert process.stop(signal.SIGINT) == 0, process.output()


def test_two_robots_in_one_namespace_are_refused(tmp_path: Path) -> None:
    # launch hands explicit arguments on to the next launch file
    with launch(one_after_the_other(tmp_path, "")) as process:
        process.wait_for_line("node '/one/dynamics_node' is started twice; give each robot a namespace")
        assert process.wait(TIMEOUT) == 1, process.output()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_node_that_dies_of_a_signal_ends_the_launch_with_its_name(how: signal.Signals) -> None:
    with launch("gough_stewart.launch.py", "rate:=50") as process:
        process.wait_for_line("the motion starts")
        os.kill(pid_of(process, "dynamics_node"), how)
        process.wait_for_line(f"dynamics_node-1 has been ended by signal {how.value} ({how.name})")
        assert process.wait() == 1
        assert "[trajectory_node-2]: process has finished cleanly" in process.output()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_node_outlives_the_launch(how: signal.Signals) -> None:
    with launch("gough_stewart.launch.py", "rate:=50") as process:
        process.wait_for_line("the motion starts")
        nodes = [pid_of(process, node) for node in ("dynamics_node", "trajectory_node")]
        assert process.stop(how) != 0
        wait_until(lambda: not any(map(alive, nodes)), TIMEOUT, "the end of all nodes")


def test_a_node_that_may_comes_back(tmp_path: Path) -> None:
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("/**/dynamics_node:\n  ros__parameters:\n    order: 1\n")
    arguments = ("rate:=50", "respawn:=true", f"params_file:={parameters}")
    with launch("gough_stewart.launch.py", *arguments) as process, Talk("") as talk:
        process.wait_for_line("efforts to order 1")
        process.wait_for_line("the motion starts")
        os.kill(pid_of(process, "dynamics_node"), signal.SIGKILL)
        wait_until(
            lambda: process.output().count("efforts to order 1") == 2, 60.0, "the second dynamics_node"
        )
        heard = talk.hear(FeedforwardTorque, "feedforward_torque")
        assert (len(heard[0].effort_rates), len(heard[0].effort_accelerations)) == (6, 0)
        assert process.stop(signal.SIGINT) == 0, process.output()


def test_recording_with_what_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    bag = tmp_path / "123"  # not to be taken for a number
    arguments = ("namespace:=left", "rate:=100", "duration:=0.5", "record:=true", f"bag:={bag}")
    with launch("planar_3rrr.launch.py", *arguments) as process:
        process.wait_for_line("the motion has ended")
        assert process.stop(signal.SIGINT) == 0, process.output()
    metadata = (bag / "metadata.yaml").read_text()
    for topic in ("desired_motion", "feedforward_torque"):
        assert f"name: /left/{topic}" in metadata, metadata


def test_all_nodes_follow_simulated_time() -> None:
    arguments = ("use_sim_time:=true", "namespace:=left", "rate:=50", "duration:=0.5")
    with launch("gough_stewart.launch.py", *arguments) as process, Talk("left") as talk:
        clock = talk.node.create_publisher(Clock, "/clock", 10)
        heard = talk.hear_nothing_yet(FeedforwardTorque, "feedforward_torque")
        now = 50_000_000_000

        def tick() -> bool:
            nonlocal now
            now += 10_000_000
            clock.publish(Clock(clock=time_message(now)))
            return any("the motion has ended" in line for line in process.lines)

        talk.wait_until(tick, "the end of the motion")
        assert heard and all(50 <= message.header.stamp.sec <= now / 1e9 for message in heard)
        assert process.stop(signal.SIGINT) == 0, process.output()


@pytest.mark.parametrize(
    ("arguments", "namespace", "output", "topics"),
    [
        (("bag:=/nowhere/bag",), "", "/nowhere/bag", "^(/.*|/clock|/diagnostics|"),
        (
            ("namespace:=a/b", "use_sim_time:=true"),
            "a/b",
            r"rosbag2_\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d_a_b --use-sim-time",
            "^(/a/b/.*|/clock|",
        ),
    ],
)
def test_recording_with_rosbag2_where_it_is(
    tmp_path: Path, arguments: tuple[str, ...], namespace: str, output: str, topics: str
) -> None:
    package(tmp_path, "ros2bag", "bin/ros2")
    arguments = (*arguments, "record:=true", "trajectory:=none")
    given = rf"--output {output} --qos-profile-overrides-path (\S+) --regex {re.escape(topics)}"
    with launch("planar_3rrr.launch.py", *arguments, prefix=tmp_path) as process:
        line = process.wait_for_line("ros2 was given: bag record")
        found = re.search(given, line)
        assert found, line
        assert Path(found[1]).read_text() == overrides(namespace)
        process.stop(signal.SIGINT)


def test_the_slowest_rate_of_the_panda_is_taken_by_all_nodes() -> None:
    with launch("panda.launch.py", "rate:=6", "duration:=0.5") as process:
        process.wait_for_line("the motion has ended")
        assert process.stop(signal.SIGINT) == 0, process.output()
        assert process.output().count("process has finished cleanly") == 4, process.output()


@pytest.mark.parametrize(
    ("argument", "node"),
    [("robot_config:=nowhere.yaml", "_node-"), ("trajectory:=nowhere.yaml", "trajectory_node-3")],
)
def test_the_launch_ends_when_a_node_cannot_start_with_an_argument(argument: str, node: str) -> None:
    with launch("panda_forward_effort.launch.py", "hardware:=false", "respawn:=true", argument) as process:
        assert node in process.wait_for_line("error: no file 'nowhere.yaml'")
        assert node in process.wait_for_line("has ended with exit code 1")
        assert process.wait() == 1
        # the others too, which would wait for it for ever
        started, ended = (
            re.findall(rf"\[(\w+-\d+)\]: process {what}", process.output())
            for what in ("started", "has (?:finished|died)")
        )
        assert sorted(started) == sorted(ended)


def test_rviz_shows_the_robots_motion(tmp_path: Path) -> None:
    """With a stand-in for rviz2, which says what it is given."""
    package(tmp_path, "rviz2", "lib/rviz2/rviz2")
    arguments = ("rviz:=true", "namespace:=left", "rate:=100")
    with launch("aerial_manipulator.launch.py", *arguments, prefix=tmp_path) as process, Talk("left") as talk:
        given = talk.wait_for_line(process, "rviz2 was given: -d ")
        assert "skeleton.rviz" in given and "-r __ns:=/left" in given and "-r /skeleton:=skeleton" in given
        heard = talk.hear(Marker, "skeleton")
        talk.wait_until(lambda: len({marker.points[0].x for marker in heard}) > 10, "ten moves")
        assert process.stop(signal.SIGINT) == 0, process.output()


def test_what_no_node_takes_is_refused_in_one_line_and_starts_nothing() -> None:
    """By launch itself where it knows what is offered, else by what the launch file is written in."""
    for given, wanted in (
        ("rate:=abc", "argument 'rate' is 'abc'; give a number from 1 to 2000"),
        ("record:=yes", 'Argument "record" '),
    ):
        with launch("gough_stewart.launch.py", given) as process:
            process.wait_for_line(wanted)
            assert process.wait() == 1
            assert "process started" not in process.output()
