"""controller_node as a process, over real DDS."""

import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from panda_drives import MIXED, write_panda
from ros_clock import SimulatedClock
from ros_processes import RosProcess
from ros_talk import Talk, talking
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from std_srvs.srv import Trigger

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.ros.conversions.messages import time_message, write_feedforward_torque

PANDA = "panda.yaml"
MS = 1_000_000  # [ns]
Q = np.zeros((5, 7))
Q[0] = [0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0]


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load(share.find("config", PANDA))


@pytest.fixture(scope="module")
def standing(robot: Robot) -> Feedforward:
    """The feedforward of a robot that stands still."""
    return FeedforwardModel(robot, 2).compute(Q)


def feedforward_message(robot: Robot, feedforward: Feedforward, at: int) -> FeedforwardTorque:
    return write_feedforward_torque(Header(stamp=time_message(at)), list(robot.joint_names), feedforward, 0.0)


def measurement(robot: Robot, position: np.ndarray, at: int, velocity: float = 0.0) -> JointState:
    message = JointState(name=list(robot.joint_names), position=list(position), velocity=[velocity] * 7)
    message.header.stamp = time_message(at)
    return message


class Arm:
    """controller_node in simulated time, in the place of the robot and of dynamics_node."""

    def __init__(self, robot: Robot, node: RosProcess, talk: Talk) -> None:
        self.robot, self.node, self.talk = robot, node, talk
        self.alone = True  # whether measurements alone are answered
        self.commands = talk.hear_nothing_yet(Float64MultiArray, "effort_commands")
        self._measured = talk.publisher(JointState, "motor_states")
        self._wanted = talk.publisher(FeedforwardTorque, "feedforward_torque")
        self.clock = SimulatedClock(talk)
        self.ms = 0

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.ms += ms
        self.clock.set(self.clock.start + self.ms * MS)

    def want(self, feedforward: Feedforward) -> None:
        self._wanted.publish(feedforward_message(self.robot, feedforward, self.clock.now))
        self.talk.pause(0.01)

    def measure(self, position: np.ndarray, velocity: float = 0.0, late: int = 0) -> None:
        self._measured.publish(measurement(self.robot, position, self.clock.now - late * MS, velocity))
        self.talk.pause(0.01)

    def command(
        self, feedforward: Feedforward, position: np.ndarray, velocity: float = 0.0, late: int = 0
    ) -> np.ndarray:
        """Let 10 ms pass, and return the answer to a feedforward and a measurement."""
        before = len(self.commands)
        self.wait(10)
        self.want(feedforward)
        self.measure(position, velocity, late)
        self.talk.wait_until(lambda: len(self.commands) > before, "a command")
        assert len(self.commands) == before + 1 or not self.alone
        return np.array(self.commands[-1].data)

    def measure_on(self, position: np.ndarray, count: int) -> None:
        """Let 10 ms pass so many times, each with a measurement, and hear the command for it.

        A busy machine may hold the node up; more than one of these steps at once would be a hold-up to it.
        """
        for _ in range(count):
            before = len(self.commands)
            self.wait(10)
            self.measure(position)
            self.talk.wait_until(lambda: len(self.commands) > before, "a command")  # noqa: B023

    def reason(self, words: str) -> None:
        self.talk.status("controller_node", lambda status, _: words in status.message)

    def end(self, how: signal.Signals) -> None:
        """Tell the node to end, and let time pass until it has."""
        os.kill(self.node.pid, how)
        while self.node.running:
            self.wait(5)
            self.talk.pause(0.002)
        assert self.node.wait() == 0, self.node.output()


@contextmanager
def arm(robot: Robot, namespace: str, **parameters: object) -> Iterator[Arm]:
    """Start a controller that joins at once and does not command unasked."""
    given = {
        "robot_config": PANDA,
        "use_sim_time": True,
        "natural_frequency": 20.0,
        "damping_ratio": 0.5,
        "patience": 1.0,
        "lead": 0.0,
        "settle": 0.0,
        "fade": 0.02,
        **parameters,
    }
    with talking("controller_node", given, namespace) as (node, talk):
        yield Arm(robot, node, talk)


def test_one_command_for_each_measurement(robot: Robot, standing: Feedforward, tmp_path: Path) -> None:
    assert robot.drive_train is not None
    theta = standing.motor_positions[0]
    # it is moved by hand, as no efforts would move it
    moved = write_panda(tmp_path / "moved.yaml", {}, "uncertainty: {efforts: 10}")
    with arm(robot, "cn_pd", robot_config=str(moved)) as a:
        a.wait(10)
        a.measure(theta)
        a.reason("waiting: no feedforward")
        assert not a.commands
        for _ in range(4):  # the joints carry the weight already, so this is what they are commanded to
            found = a.command(standing, theta)
            np.testing.assert_allclose(found, standing.motor_efforts[0], rtol=1e-9, atol=1e-9)
        for position, velocity in ((theta, 0.0), (theta + 0.003, 0.1)):
            found = a.command(standing, position, velocity)
            expected = standing.motor_efforts[0] - robot.drive_train.motor_inertia * (
                400.0 * (position - theta) + 20.0 * velocity
            )
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        a.measure_on(theta, 6)  # no feedforward for 60 ms
        a.talk.wait_for_line(a.node, "following -> stopping: no feedforward")
        a.measure_on(theta, 20)  # it stands where it stood, and carries its weight
        values = a.talk.status("controller_node", lambda status, _: status.message.startswith("stopped"))
        assert values["stopped for: no feedforward"] == "1"
        np.testing.assert_allclose(a.commands[-1].data, standing.motor_efforts[0], rtol=0, atol=0.05)
        a.end(signal.SIGTERM)
        a.talk.wait_until(lambda: not len(a.commands[-1].data), "the end of the commands")


def test_drives_of_any_kind_with_one_motor_each(tmp_path: Path) -> None:
    """Motor friction and damped springs: the feedforward is that of the whole drive train."""
    path = write_panda(tmp_path / "mixed.yaml", MIXED)
    robot = Robot.load(path)
    assert robot.drive_train is not None
    moving = Q + np.array([0.0, 0.04, 0.03, 0.02, 0.01])[:, None]
    law = FeedforwardModel(robot, 2)
    with arm(robot, "cn_mixed", robot_config=str(path), join_speed=1.0) as a:
        for k in range(5):
            h = 0.01 * k
            powers = np.array(
                [
                    [h ** (j - i) / math.factorial(j - i) if j >= i else 0.0 for j in range(5)]
                    for i in range(5)
                ]
            )
            feedforward = law.compute(powers @ moving)
            found = a.command(feedforward, feedforward.motor_positions[0])
        feedback = robot.drive_train.motor_inertia * 20.0 * feedforward.motor_positions[1]
        np.testing.assert_allclose(found, feedforward.motor_efforts[0] + feedback, rtol=0, atol=1e-6)


def test_steps_beyond_the_rates_of_the_drives_are_cut_and_counted(
    robot: Robot, standing: Feedforward, tmp_path: Path
) -> None:
    slow = write_panda(tmp_path / "slow.yaml", {0: "limits: {torque_rate: 50}"})
    theta = standing.motor_positions[0]
    with arm(robot, "cn_rates", robot_config=str(slow), natural_frequency=100.0, effort_step=0.1) as a:
        for _ in range(4):
            before = a.command(standing, theta)
        found = a.command(standing, theta + 0.003 * (np.arange(7) == 0))
        assert found[0] == pytest.approx(before[0] - 0.5)  # of 18 N.m that the gains ask for
        a.talk.status("controller_node", lambda _, values: values["commands whose step was cut"] == "1")


def test_a_stop_without_measurements_ends_with_an_empty_command(robot: Robot, standing: Feedforward) -> None:
    theta = standing.motor_positions[0]
    with arm(robot, "cn_late", patience=0.01) as a:
        a.alone = False
        for _ in range(4):
            a.command(standing, theta)
        count = len(a.commands)
        for _ in range(40):  # step by step, as in `measure_on`
            before = len(a.commands)
            a.wait(10)
            a.want(standing)
            a.talk.wait_until(lambda: len(a.commands) > before, "a command")  # noqa: B023
            if not len(a.commands[-1].data):
                break
        assert not len(a.commands[-1].data)
        a.talk.wait_for_line(a.node, "following -> stopping: no measurement: no sound one for 0.05 s")
        a.talk.wait_for_line(a.node, "stopping -> stopped")
        efforts = np.array([command.data for command in a.commands[count:-1]])
        assert 3 <= len(efforts) <= 25
        np.testing.assert_allclose(
            efforts, np.tile(standing.motor_efforts[0], (len(efforts), 1)), rtol=0, atol=0.05
        )
        values = a.talk.status("controller_node", lambda status, _: status.message.startswith("stopped"))
        assert int(values["commands without a new measurement"]) >= len(efforts)
        # they come again: when it is asked to, the motion is joined as at the start
        assert a.talk.call(Trigger, "controller_node/start", Trigger.Request()).success
        for _ in range(100):  # as often as this machine, busy with other tests, lets one of the two be late
            a.wait(10)
            a.want(standing)
            a.measure(theta)
            if any("stopped -> joining" in line for line in a.node.lines):
                break
        a.talk.wait_for_line(a.node, "stopped -> joining")
        a.talk.wait_until(lambda: len(a.commands[-1].data), "the command after this line")
        np.testing.assert_allclose(a.commands[-1].data, standing.motor_efforts[0], rtol=0, atol=1e-6)
        a.end(signal.SIGINT)


def test_bad_input_is_refused_and_the_next_message_works(robot: Robot, standing: Feedforward) -> None:
    theta = standing.motor_positions[0]
    with arm(robot, "cn_bad") as a:
        a.wait(10)
        a.want(standing._replace(motor_positions=np.empty((0, 7)), motor_efforts=np.empty((0, 7))))
        a.talk.wait_for_line(
            a.node, "feedforward_torque rejected: the feedforward holds motor positions of 0 orders"
        )
        now, names = a.clock.now, list(robot.joint_names)
        rounds = (  # one line a second for each reason: in a round no two have the same
            (
                (
                    JointState(name=["elbow"], position=[0.0], velocity=[0.0]),
                    "joint 'panda_joint1' is missing",
                ),
                (JointState(name=names, position=[0.0] * 7), "velocity holds 0 values for 7 joints"),
                (
                    measurement(robot, np.full(7, np.nan), now),
                    "position of joint 'panda_joint1' is not finite",
                ),
                (measurement(robot, theta, 0), "its stamp is zero; let the driver stamp it"),
            ),
            (
                (measurement(robot, theta, now, np.nan), "velocity of joint 'panda_joint1' is not finite"),
                (measurement(robot, theta, now - 200 * MS), "its stamp lies 0.2 s before the clock"),
            ),
            ((measurement(robot, theta, now + 1000 * MS), "its stamp lies 1 s after the clock"),),
        )
        for cases in rounds:
            for bad, words in cases:
                a._measured.publish(bad)
                a.talk.wait_for_line(a.node, words)
            a.talk.pause(1.1)
        assert not a.commands
        found = a.command(standing, theta)
        np.testing.assert_allclose(found, standing.motor_efforts[0], rtol=1e-9, atol=1e-9)
        values = a.talk.status("controller_node", lambda _, values: values["rejected measurements"] == "7")
        assert values["rejected"] == "1"
        reasons = {key[23:]: count for key, count in values.items() if key[:23] == "rejected measurements: "}
        assert reasons == {"missing joint": "1", "wrong length": "1", "not finite": "2", "bad times": "3"}


def test_feedback_that_swings_the_robot_up_is_said(robot: Robot, standing: Feedforward) -> None:
    key = "age of measurements that feedback bears at home [s]"
    for name, patience, bears in (("cn_slow", 0.03, 0.0), ("cn_prompt", 0.0015, 0.0077)):
        settings = {"natural_frequency": 30.0, "damping_ratio": 1.0, "latency": 0.02}
        with arm(robot, name, patience=patience, lead=patience / 3.0, **settings) as a:
            if not bears:
                a.node.wait_for_line("feedback swings the motor of joint 'panda_joint2' of robot 'panda' up")
            else:
                a.command(standing, standing.motor_positions[0], late=15)
                a.node.wait_for_line("measurements are 15 ms old in the mean, and at home feedback bears 7.6")
            values = a.talk.status("controller_node", lambda _, values: key in values)
            assert float(values[key]) == pytest.approx(bears, abs=1e-4)


def test_a_robot_that_stands_elsewhere_is_left_alone_and_soft_feedback_is_said(
    robot: Robot, standing: Feedforward
) -> None:
    far = standing.motor_positions[0] + 0.3 * (np.arange(7) == 2)
    with arm(robot, "cn_far", join_within=0.05, natural_frequency=5.0) as a:
        a.node.wait_for_line("the weight of robot 'panda' tips it")

        def stands_far() -> bool:
            for _ in range(5):
                a.wait(10)
                a.want(standing)
                a.measure(far)
            return False

        stands_far()
        # again and again: where the machine holds the node up, samples are too old when it gets them
        invalid = "start pose invalid: joint 'panda_joint3' stands 0.3 rad or m from the motion"
        a.talk.status("controller_node", lambda status, _: invalid in status.message or stands_far())
        assert not a.commands
