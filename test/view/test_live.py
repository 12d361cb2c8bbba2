"""A robot as its topics say."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from ros_talk import Talk
from sensor_msgs.msg import JointState

from hodyn_ros import Robot, share
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.view.live import LiveRobot


def test_the_newest_messages_make_an_instant() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    names, q = list(robot.joint_names), np.linspace(-0.3, 0.3, 7)
    back = names[::-1]
    with Talk("viewed") as talk, LiveRobot(robot, "viewed") as newest:
        assert newest() == (None,) * 5
        desired = talk.publisher(DesiredMotion, "desired_motion")
        links, motors = (talk.publisher(JointState, f"{side}_states") for side in ("joint", "motor"))
        answers = talk.publisher(FeedforwardTorque, "feedforward_torque")

        def send(until: Callable[[], bool], *pairs: tuple[Any, Any]) -> None:
            """Publish again and again: who listens with best effort may miss what comes as they meet."""
            end = time.monotonic() + 30.0
            while not until():
                assert time.monotonic() < end
                for publisher, message in pairs:
                    publisher.publish(message)
                talk.pause(0.02)

        send(
            lambda: newest().torques is not None and newest().desired is not None,
            (desired, DesiredMotion(joint_names=back, positions=q[::-1].tolist())),
            (answers, FeedforwardTorque(joint_names=names, motor_efforts=(10.0 * q).tolist())),
        )
        np.testing.assert_array_equal(newest().desired, q)
        np.testing.assert_array_equal(newest().torques, 10.0 * q)
        assert newest().measured is None
        effort = (2.0 * q).tolist()
        send(
            lambda: newest().deflections is not None,
            (links, JointState(name=back, position=(q - 0.1)[::-1].tolist())),
            (motors, JointState(name=names, position=q.tolist(), effort=effort)),
        )
        np.testing.assert_array_equal(newest().measured, q - 0.1)
        np.testing.assert_allclose(newest().deflections, 0.1, rtol=1e-12)
        np.testing.assert_array_equal(newest().torques, effort)
        send(
            lambda: newest().measured is None and newest().desired is None,
            (links, JointState(name=names[1:], position=q[1:].tolist())),  # of another robot
            (desired, DesiredMotion(joint_names=names[1:], positions=q[1:].tolist())),
        )
