"""observer_node as a process, over real DDS."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_talk import Talk, talking
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import pose
from hodyn_ros.msg import ContactEvent, ExternalEfforts, PayloadEstimate
from hodyn_ros.ros.conversions.messages import nanoseconds

ROBOT = Robot.load(share.find("config", "panda.yaml"))
NAMES = list(ROBOT.joint_names)
Q = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
TORQUE = ROBOT.inverse_dynamics(np.stack([Q, 0 * Q, 0 * Q]))[0]
THETA = Q + TORQUE / ROBOT.require_drives().stiffness


class Source:
    """Publishes what sensors of a robot that stands still show, at 500 Hz of its own stamps."""

    def __init__(self, talk: Talk) -> None:
        self._links = talk.publisher(JointState, "joint_states")
        self._motors = talk.publisher(JointState, "motor_states")
        self.stamp = 1_000_000_000

    def send(self, count: int = 1, push: float = 0.0, **changes: Any) -> None:
        """Publish some samples; `push` on the third joint bends its spring."""
        outside = push * np.eye(7)[2]
        for _ in range(count):
            self.stamp += 2_000_000
            theta = THETA - outside / ROBOT.require_drives().stiffness
            for publisher, position, effort in (
                (self._links, Q, TORQUE - outside),
                (self._motors, theta, TORQUE - outside),
            ):
                message = JointState(name=NAMES, position=position, velocity=0 * Q, effort=effort)
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(self.stamp, 10**9)
                if publisher is self._motors:
                    for field, values in changes.items():
                        setattr(message, field, values)
                publisher.publish(message)
            time.sleep(5e-4)


@contextmanager
def observed(namespace: str, **parameters: object) -> Iterator[tuple[Any, Talk, Source]]:
    given = {"robot_config": "panda.yaml", "effort_noise": [0.2], "inertia_deviation": 0.0} | parameters
    with talking("observer_node", given, namespace) as (node, talk):
        yield node, talk, Source(talk)


def test_a_push_shows_with_deviations_that_a_parameter_changes_and_is_announced() -> None:
    with observed("on_push") as (node, talk, source):
        efforts = talk.hear_nothing_yet(ExternalEfforts, "external_efforts")
        contacts = talk.hear_nothing_yet(ContactEvent, "contacts")
        talk.wait_until(lambda: source.send() or efforts, "the first effort")
        source.send(50)
        talk.wait_until(lambda: len(efforts) > 40, "efforts")
        assert np.abs(efforts[-1].efforts).max() < 1e-6 and not efforts[-1].contact and not contacts
        source.send(100, push=6.0)
        talk.wait_until(lambda: efforts[-1].contact and abs(efforts[-1].efforts[2] - 6.0) < 0.5, "the push")
        source.send(200)
        talk.wait_until(lambda: len(contacts) > 1, "the end of the contact")
        first, last = contacts[:2]
        assert first.begins and first.joint_names == ["panda_joint3"] and not last.begins
        assert efforts[-1].joint_names == NAMES and min(efforts[-1].deviations) >= 0.2
        values = talk.status("observer_node", lambda _, values: values["contacts"] == "1")
        assert values["panda_joint2: torque corrected by"].startswith(("+0.00", "-0.00"))

        def put(name: str, held: object) -> Any:
            request = SetParameters.Request(parameters=[Parameter(name, value=held).to_parameter_msg()])
            return talk.call(SetParameters, "observer_node/set_parameters", request).results[0]

        assert put("effort_noise", [3.0]).successful
        talk.wait_until(lambda: source.send() or min(efforts[-1].deviations) >= 3.0, "the new deviation")
        refused = put("effort_noise", [1.0, 2.0])
        assert not refused.successful and "2 values for 7 joints" in refused.reason
        assert "fixed while" in put("measured", ["position"]).reason
        change = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
        assert talk.call(ChangeState, "observer_node/change_state", change).success
        begin = source.stamp
        source.send(20)
        talk.status("observer_node", lambda status, _: status.message == "not active")
        talk.hear_out(efforts)
        assert nanoseconds(efforts[-1].header.stamp) <= begin


def test_what_is_no_sample_is_counted_and_nothing_false_follows() -> None:
    with observed("on_bad") as (node, talk, source):
        efforts = talk.hear_nothing_yet(ExternalEfforts, "external_efforts")
        talk.wait_until(lambda: source.send() or efforts, "the first effort")
        nan = np.where(np.arange(7) == 3, np.nan, THETA)
        for change, reason, words in (
            ({"position": nan}, "not finite", "position of joint 'panda_joint4' is nan"),
            ({"name": NAMES[:6]}, "missing joint", "joint 'panda_joint7' is missing"),
            ({"velocity": []}, "wrong length", "velocity holds 0 values for 7 joints"),
        ):
            source.send(push=50.0, **change)
            talk.wait_for_line(node, words)
            talk.status(
                "observer_node", lambda _, values, r=reason: values.get(f"motor_states rejected: {r}") == "1"
            )
        back, source.stamp = source.stamp, source.stamp - 500_000_000
        source.send(push=50.0)
        talk.wait_for_line(node, "before the last accepted one")
        source.stamp = back
        source.send(5)
        source.stamp += 1_000_000_000  # a gap, across which nothing is known
        source.send(5)
        values = talk.status("observer_node", lambda _, values: int(values["begun anew"]) >= 2)
        assert int(values["states without a partner"]) >= 1
        assert max(np.abs(one.efforts).max() for one in efforts) < 1e-6
        assert not any(one.contact for one in efforts)
        source.send(4, velocity=np.full(7, 0.01))  # a driver that hangs sends its last reading again
        talk.wait_for_line(node, "those of the sample before, though joint 'panda_joint1' would have moved")
        talk.status(
            "observer_node",
            lambda _, values: (
                sum(
                    int(values.get(f"{topic} rejected: repeated readings", 0))
                    for topic in ("joint_states", "motor_states")
                )
                == 3
            ),
        )


def test_a_load_is_found_and_offered_to_dynamics_node() -> None:
    load = ROBOT.with_tree(Payload(1.2, (0.02, 0.0, 0.1)).on_tree(ROBOT))
    given = {
        "measured": ["position", "velocity", "joint_torque"],
        "stiffness_deviation": 0.0,
        "payload_rate": 20.0,
    }
    with observed("on_load", **given) as (node, talk, _):
        payloads = talk.hear_nothing_yet(PayloadEstimate, "payload")
        links = talk.publisher(JointState, "joint_states")
        asked = talk.call(Trigger, "observer_node/payload", Trigger.Request())
        assert not asked.success and "has not yet shown mass" in asked.message
        for i in range(500):
            time_ = 4e-3 * i
            motion = np.array(
                [0.4 * 3.0**k * np.sin(3.0 * time_ + np.arange(7.0) + k * np.pi / 2) for k in range(3)]
            )
            motion[0] += Q
            message = JointState(name=NAMES, position=motion[0], velocity=motion[1])
            message.effort = load.inverse_dynamics(motion)[0].tolist()
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(10**9 + i * 4_000_000, 10**9)
            links.publish(message)
            time.sleep(5e-4)
        talk.wait_until(lambda: len(payloads) > 35, "what is carried")
        last = payloads[-1]
        assert abs(last.mass - 1.2) < 0.02
        assert last.header.frame_id == "panda_link7" and 0.0 < last.mass_deviation < 0.2
        np.testing.assert_allclose(last.centre, [0.02, 0.0, 0.1], atol=0.005)
        asked = talk.call(Trigger, "observer_node/payload", Trigger.Request())
        offered = json.loads(asked.message)["dynamics_node"]["ros__parameters"]
        assert asked.success and abs(offered["payload_mass"] - 1.2) < 0.02
        assert talk.call(Trigger, "observer_node/restart_payload", Trigger.Request()).success
        assert not talk.call(Trigger, "observer_node/payload", Trigger.Request()).success


def test_the_wrench_on_a_floating_base_shows_before_the_joints() -> None:
    """What holds a robot at rest whose base is turned, and a push on a joint."""
    robot = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    names, n = list(robot.joint_names), robot.n_coordinates
    turn = Rotation.from_rotvec([0.2, -0.3, 0.5])
    still = BaseMotion(pose(turn.as_matrix(), np.array([1.0, 2.0, 3.0])), np.zeros((2, 6)))
    torque = robot.inverse_dynamics(np.zeros((3, n)), still).joints[0]
    given = {"robot_config": "aerial_manipulator.yaml", "wrench_noise": [0.5] * 6}
    with observed("on_base", **given) as (node, talk, _):
        efforts = talk.hear_nothing_yet(ExternalEfforts, "external_efforts")
        links, bases = talk.publisher(JointState, "joint_states"), talk.publisher(Odometry, "odom")
        stamp = 10**9

        def send(push: float, twist: float = 0.0) -> None:
            nonlocal stamp
            stamp += 2_000_000
            outside = push * np.eye(n)[1]
            state = JointState(name=names, position=[0.0] * n, velocity=[0.0] * n, effort=torque - outside)
            base = Odometry()
            at, turned = base.pose.pose.position, base.pose.pose.orientation
            at.x, at.y, at.z = 1.0, 2.0, 3.0
            turned.x, turned.y, turned.z, turned.w = turn.as_quat()
            base.twist.twist.linear.x = twist
            for message in (base, state):
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
            bases.publish(base)
            links.publish(state)
            time.sleep(5e-4)

        talk.wait_until(lambda: send(0.0) or efforts, "the first effort")
        for _ in range(200):
            send(4.0)
        talk.wait_until(lambda: abs(efforts[-1].efforts[7] - 4.0) < 1e-9, "the push")
        last = efforts[-1]
        weight = robot.tree.masses.sum() * np.linalg.norm(robot.tree.gravity)
        np.testing.assert_allclose(last.efforts[3:6], [0.0, 0.0, weight], atol=1e-6 * weight)
        assert last.joint_names == [*(f"base {k} {a}" for k in ("moment", "force") for a in "xyz"), *names]
        assert min(last.deviations[:6]) >= 0.5
        send(0.0, twist=np.nan)
        talk.wait_for_line(node, "twist holds NaN")
        talk.status("observer_node", lambda _, values: values["odom rejected: not finite"] == "1")
