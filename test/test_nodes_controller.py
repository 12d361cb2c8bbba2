"""controller_node as a process, over real DDS."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from panda_drives import MIXED, PAIR, write_panda
from ros_processes import start_node
from ros_talk import Talk
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from hodyn_ros import Robot, share
from hodyn_ros.control.feedforward import Feedforward
from hodyn_ros.control.law import FeedforwardLaw
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.nodes.messages import time_message, write_feedforward_torque

PANDA = "panda.yaml"
Q = np.zeros((5, 7))
Q[0] = [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_config(share.find("config", PANDA))


@pytest.fixture(scope="module")
def standing(robot: Robot) -> Feedforward:
    """The feedforward of a robot that stands still."""
    return FeedforwardLaw(robot, 2)(Q)


def feedforward_message(robot: Robot, feedforward: Feedforward, at: int) -> FeedforwardTorque:
    return write_feedforward_torque(Header(stamp=time_message(at)), list(robot.joint_names), feedforward, 0.0)


def measurement(robot: Robot, position: np.ndarray, at: int, velocity: float = 0.0) -> JointState:
    message = JointState(name=list(robot.joint_names), position=list(position), velocity=[velocity] * 7)
    message.header.stamp = time_message(at)
    return message


def test_one_command_for_each_measurement(robot: Robot, standing: Feedforward) -> None:
    assert robot.drives is not None
    parameters = {
        "robot_config": PANDA,
        "natural_frequency": 20.0,
        "damping_ratio": 0.5,
        "patience": 1.0,  # no commands but the answers to measurements
    }
    with start_node("controller_node", parameters, "cn_pd") as node, Talk("cn_pd") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        measured = talk.publisher(JointState, "motor_states")
        wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        now = time.time_ns()
        measured.publish(measurement(robot, Q[0], now))
        talk.status(
            "controller_node", lambda status, _: status.message == "waiting for the first feedforward"
        )
        assert not commands
        wanted.publish(feedforward_message(robot, standing, now))
        talk.status("controller_node", lambda _, values: values["feedforwards"] == "1")
        theta = standing.motor_positions[0]
        for position, velocity in ((theta, 0.0), (theta + 0.01, 0.1)):
            before = len(commands)
            # fresh feedforward, as an old one would leave the reference standing
            now = time.time_ns()
            wanted.publish(feedforward_message(robot, standing, now))
            talk.wait_until(lambda: time.time_ns() - now > 20_000_000, "its arrival")  # noqa: B023
            measured.publish(measurement(robot, position, now, velocity))
            talk.wait_until(lambda: len(commands) > before, "a command")  # noqa: B023
            inertia = robot.drives.motor_inertia
            expected = standing.motor_efforts[0] - inertia * (400.0 * (position - theta) + 20.0 * velocity)
            np.testing.assert_allclose(commands[-1].data, expected, rtol=1e-9, atol=1e-9)
        assert len(commands) == 2
        talk.wait_until(lambda: time.time_ns() - now > 200_000_000, "a feedforward that is too old")
        measured.publish(measurement(robot, theta, time.time_ns()))
        talk.wait_until(lambda: len(commands) == 3, "a command with a standing reference")
        values = talk.status("controller_node", lambda status, _: "too old" in status.message)
        assert values["commands with a standing reference"] == "1"
        np.testing.assert_allclose(commands[-1].data, standing.motor_efforts[0], rtol=1e-9, atol=1e-9)
        assert node.stop(signal.SIGINT) == 0, node.output()


def test_drives_of_any_kind_with_one_motor_each(tmp_path: Path) -> None:
    """Motor friction and damped springs: the feedforward is that of the whole drive train."""
    path = write_panda(tmp_path / "mixed.yaml", MIXED)
    robot = Robot.from_config(path)
    assert robot.drives is not None
    moving = Q + np.array([0.0, 0.4, 0.3, 0.2, 0.1])[:, None]
    feedforward = FeedforwardLaw(robot, 2)(moving)
    parameters = {"robot_config": str(path), "natural_frequency": 20.0, "patience": 1.0, "lead": 0.0}
    with start_node("controller_node", parameters, "cn_mixed") as node, Talk("cn_mixed") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        measured = talk.publisher(JointState, "motor_states")
        wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        now = time.time_ns()
        wanted.publish(feedforward_message(robot, feedforward, now))
        talk.status("controller_node", lambda _, values: values["feedforwards"] == "1")
        now = time.time_ns()
        wanted.publish(feedforward_message(robot, feedforward, now))
        talk.wait_until(lambda: time.time_ns() - now > 10_000_000, "its arrival")
        measured.publish(measurement(robot, feedforward.motor_positions[0], now))
        talk.wait_until(lambda: commands, "a command")
        late = 1e-9 * (time.time_ns() - now)
        found = np.array(commands[-1].data)
        feedback = robot.drives.motor_inertia * 40.0 * feedforward.motor_positions[1]
        # the effort goes on for as long as the message was under way
        allowed = np.abs(feedforward.efforts[1]) * late + np.abs(feedforward.efforts[2]) * late**2 + 1e-6
        assert (np.abs(found - feedforward.motor_efforts[0] - feedback) <= allowed).all()
        assert node.stop(signal.SIGINT) == 0, node.output()


def test_steps_beyond_the_rates_of_the_drives_are_cut_and_counted(
    robot: Robot, standing: Feedforward, tmp_path: Path
) -> None:
    slow = write_panda(tmp_path / "slow.yaml", {0: "limits: {torque_rate: 1}"})
    parameters = {"robot_config": str(slow), "patience": 1.0, "limit_rates": True}
    with start_node("controller_node", parameters, "cn_rates") as node, Talk("cn_rates") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        measured = talk.publisher(JointState, "motor_states")
        wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        wanted.publish(feedforward_message(robot, standing, time.time_ns()))
        talk.status("controller_node", lambda _, values: values["feedforwards"] == "1")
        theta = standing.motor_positions[0]
        measured.publish(measurement(robot, theta, time.time_ns()))
        talk.wait_until(lambda: len(commands) == 1, "the first command")
        measured.publish(measurement(robot, theta + 10.0, time.time_ns()))  # thousands of N.m
        talk.wait_until(lambda: len(commands) == 2, "a command that is cut")
        assert abs(commands[1].data[0] - commands[0].data[0]) < 30.0  # in half a minute, and not 87
        talk.status("controller_node", lambda _, values: values["commands cut to a limit of the rate"] == "1")
        assert node.stop(signal.SIGINT) == 0, node.output()


def test_commands_go_on_for_a_while_when_measurements_are_late(robot: Robot, standing: Feedforward) -> None:
    parameters = {"robot_config": PANDA, "patience": 0.01, "longest_extrapolation": 0.3}
    with start_node("controller_node", parameters, "cn_late") as node, Talk("cn_late") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        measured = talk.publisher(JointState, "motor_states")
        wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        now = time.time_ns()
        # one that changes: the effort at each instant shows which instant it is for
        efforts = np.zeros((3, 7))
        efforts[1] = 100.0
        changing = Feedforward(efforts, np.zeros((3, 7)), np.zeros((1, 7)), np.empty((0, 6)))
        wanted.publish(feedforward_message(robot, changing, now))
        talk.status("controller_node", lambda _, values: values["feedforwards"] == "1")
        now = time.time_ns()
        wanted.publish(feedforward_message(robot, changing, now))
        talk.wait_until(lambda: time.time_ns() - now > 20_000_000, "its arrival")
        measured.publish(measurement(robot, np.zeros(7), now))
        talk.wait_until(lambda: commands, "the first command")
        values = talk.status("controller_node", lambda _, values: int(values["measurements"]) == 1)
        talk.wait_until(lambda: time.time_ns() - now > 1_500_000_000, "the end of the commands")
        count = len(commands)
        talk.wait_until(lambda: time.time_ns() - now > 2_000_000_000, "more of it")
        assert len(commands) == count  # it has given up
        values = talk.status("controller_node", lambda _, values: True)
        assert int(values["commands without a new measurement"]) == count - 1
        assert node.stop() == 0, node.output()
    assert 10 <= count <= 31
    first_joint = np.array([command.data[0] for command in commands])
    steps = np.diff(first_joint[:5])  # 100 N.m/s for ten milliseconds, if a timer is late now and then
    assert steps.mean() > 0.5 and (steps > 0.0).all()  # never the same twice


def test_bad_input_is_refused_and_the_next_message_works(robot: Robot, standing: Feedforward) -> None:
    with start_node("controller_node", {"robot_config": PANDA}, "cn_bad") as node, Talk("cn_bad") as talk:
        commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        measured = talk.publisher(JointState, "motor_states")
        wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        now = time.time_ns()
        without_motors = standing._replace(motor_positions=np.empty((0, 7)), motor_efforts=np.empty((0, 7)))
        wanted.publish(feedforward_message(robot, without_motors, now))
        talk.wait_for_line(
            node, "feedforward_torque refused: the feedforward holds motor positions of 0 orders"
        )
        wanted.publish(feedforward_message(robot, standing, now))
        talk.status("controller_node", lambda _, values: values["feedforwards"] == "1")
        for bad, words in (
            (JointState(name=["elbow"], position=[0.0], velocity=[0.0]), "joint 'elbow' is unknown"),
            (JointState(name=list(robot.joint_names), position=[0.0] * 7), "position or velocity is empty"),
            (measurement(robot, np.full(7, np.nan), now), "position holds nan for joint 'panda_joint1'"),
        ):
            measured.publish(bad)
            talk.wait_for_line(node, words)
        assert not commands
        measured.publish(measurement(robot, standing.motor_positions[0], time.time_ns()))
        talk.wait_until(lambda: commands, "a command")
        values = talk.status("controller_node", lambda _, values: values["refused measurements"] == "3")
        assert values["refused feedforwards"] == "1"
        assert node.stop(signal.SIGTERM) == 0, node.output()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "'robot_config' is empty"),
        ({"robot_config": PANDA, "feedforward": "some"}, "'some'; choose one of none, rigid, elastic"),
        (
            {"robot_config": PANDA, "proportional_gains": [1.0, 2.0]},
            "'proportional_gains' holds 2 gains for 7",
        ),
        ({"robot_config": PANDA, "lead": -1.0}, "parameter 'lead'"),
        ({"robot_config": "{tmp}/bare.yaml"}, "robot 'bare' has no drives"),
        ({"robot_config": "{tmp}/mixed.yaml", "feedforward": "rigid"}, "choose elastic"),
        ({"robot_config": "{tmp}/pair.yaml"}, "joint 'panda_joint2' of robot 'panda' has a variable"),
    ],
)
def test_a_broken_start_ends_with_one_readable_line(
    parameters: dict[str, object], words: str, tmp_path: Path
) -> None:
    write_panda(tmp_path / "mixed.yaml", MIXED)
    write_panda(tmp_path / "pair.yaml", PAIR)
    (tmp_path / "bare.yaml").write_text(
        "name: bare\nbodies:\n"
        "  - {name: arm, mass: 1, com: [0.1, 0, 0], "
        "inertia: {about: com, ixx: 1, iyy: 1, izz: 1, ixy: 0, ixz: 0, iyz: 0}}\n"
        "joints:\n  - {name: hinge, type: continuous, parent: world, child: arm, axis: [0, 0, 1]}\n"
    )
    filled = {
        name: value.format(tmp=tmp_path) if isinstance(value, str) else value
        for name, value in parameters.items()
    }
    with start_node("controller_node", filled) as node:
        assert node.wait() == 1
        assert len(node.lines) == 1, node.output()
        assert node.lines[0].startswith("error: ") and words in node.lines[0]
