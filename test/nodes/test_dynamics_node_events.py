"""What dynamics_node reports of the middleware, and which engine computes."""

from itertools import count

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.qos import QoSLivelinessPolicy, QoSProfile, QoSReliabilityPolicy
from ros_peer import Peer, asked, node_and_peer
from ros_processes import RosProcess
from ros_stream import JOINTS, motion

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.messages import time_message, write_desired_motion
from hodyn_ros.ros.streams.qos import stream_qos

SPACE = "events"
IN, OUT = (
    f"qos_overrides./{SPACE}/desired_motion.subscription.",
    f"qos_overrides./{SPACE}/feedforward_torque.",
)
MILLISECOND = 1_000_000


def desired(millisecond: int, orders: int = 5) -> DesiredMotion:
    stamp = millisecond * MILLISECOND
    return write_desired_motion(JOINTS, time_message(stamp), motion(stamp)[:orders])


PARAMETERS = {
    "robot_config": "panda.yaml",
    IN + "deadline": 300 * MILLISECOND,
    IN + "liveliness": "manual_by_topic",
    IN + "liveliness_lease_duration": 400 * MILLISECOND,
}
both, node, peer = node_and_peer(PARAMETERS, SPACE, "module", ready=False)


def offered() -> QoSProfile:
    """Return what a publisher has to offer here."""
    profile = stream_qos()
    profile.deadline = Duration(nanoseconds=100 * MILLISECOND)
    profile.liveliness = QoSLivelinessPolicy.MANUAL_BY_TOPIC
    profile.liveliness_lease_duration = Duration(nanoseconds=200 * MILLISECOND)
    return profile


def test_missed_deadlines_and_lost_publishers_are_counted_and_logged(peer: Peer, node: RosProcess) -> None:
    publisher = peer.node.create_publisher(DesiredMotion, "desired_motion", offered())
    peer.wait_until(lambda: publisher.get_subscription_count() > 0, "the match")
    stamps = count(1000)

    def answered() -> bool:  # the node may come to know the publisher after the first ones
        publisher.publish(desired(next(stamps)))
        return len(peer.answers) >= 5

    peer.wait_until(answered, "five answers")
    values = peer.diagnostics(lambda values: int(values["deadline missed: desired_motion"]) >= 2)
    # a status between two of these has nothing new to warn of
    assert DiagnosticStatus.WARN in [status.level for status in peer.statuses]
    assert int(values["answered"]) >= 5
    peer.diagnostics(lambda values: int(values["publisher lost: desired_motion"]) >= 1)
    late = node.wait_for_line("no message on 'desired_motion' within the requested deadline")
    assert "WARN" in late
    node.wait_for_line("a publisher of 'desired_motion' has given no sign of life")
    # about three deadlines a second are missed, and one line a second is written
    seen = int(values["deadline missed: desired_motion"])
    values = peer.diagnostics(lambda values: int(values["deadline missed: desired_motion"]) >= seen + 6)
    lines = [line for line in node.lines if "within the requested deadline" in line]
    assert len(lines) < int(values["deadline missed: desired_motion"])
    # by now it has been lost, and not only held up by a busy machine; that counts once
    lost = values["publisher lost: desired_motion"]
    values = peer.diagnostics(lambda values: int(values["deadline missed: desired_motion"]) >= seen + 9)
    assert values["publisher lost: desired_motion"] == lost
    peer.node.destroy_publisher(publisher)


def test_whoever_does_not_fit_is_counted_and_named(peer: Peer, node: RosProcess) -> None:
    publisher = peer.node.create_publisher(DesiredMotion, "desired_motion", QoSProfile(depth=1))
    line = peer.wait_for_line(
        node, "a publisher of 'desired_motion' of node /events/peer has incompatible QoS"
    )
    assert "WARN" in line
    assert ": nothing is received from it" in line
    peer.diagnostics(lambda values: int(values["incompatible QoS: desired_motion"]) >= 1)
    peer.node.destroy_publisher(publisher)
    asking = QoSProfile(depth=1, deadline=Duration(nanoseconds=MILLISECOND))
    subscription = peer.node.create_subscription(
        FeedforwardTorque, "feedforward_torque", lambda msg: None, asking
    )
    line = peer.wait_for_line(
        node, "a subscription of 'feedforward_torque' of node /events/peer has incompatible QoS"
    )
    assert "(DEADLINE): nothing is sent to it" in line
    values = peer.diagnostics(lambda values: int(values["incompatible QoS: feedforward_torque"]) >= 1)
    assert values["incompatible QoS: feedforward_torque"] == "1"
    peer.node.destroy_subscription(subscription)


def test_deadlines_that_are_offered_are_watched_too() -> None:
    parameters = {
        "robot_config": "panda.yaml",
        "qos_overrides./offer/feedforward_torque.publisher.deadline": 200 * MILLISECOND,
        "qos_overrides./offer/feedforward_torque.publisher.reliability": "best_effort",
    }
    with asked(parameters, "offer", ready=False) as (node, peer):
        publisher = peer.node.create_publisher(DesiredMotion, "desired_motion", stream_qos())
        best_effort = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
        heard: list[FeedforwardTorque] = []
        subscription = peer.node.create_subscription(
            FeedforwardTorque, "feedforward_torque", heard.append, best_effort
        )
        peer.wait_until(lambda: publisher.get_subscription_count() > 0, "the match")
        peer.wait_until(lambda: publish_and_look(publisher, heard), "an answer")
        peer.diagnostics(lambda values: int(values["deadline missed: feedforward_torque"]) >= 2)
        assert any("no message was published on 'feedforward_torque' within" in line for line in node.lines)
        peer.node.destroy_subscription(subscription)


_sent = [0]


def publish_and_look(publisher: object, heard: list[FeedforwardTorque]) -> bool:
    _sent[0] += 1
    publisher.publish(desired(_sent[0]))  # type: ignore[attr-defined]
    return bool(heard)


def test_the_engine_of_large_robots_is_told() -> None:
    links = 40
    placements = np.tile(np.eye(4), (links, 1, 1))
    axes = np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (links, 1))
    robot = Robot.from_screws(
        range(-1, links - 1), axes, placements, np.ones(links), np.zeros((links, 3)), [np.eye(3)] * links
    )
    assert FeedforwardModel(robot, 2).engine == "loops"
    assert FeedforwardModel(robot, 1, wrench_bodies=["body40"]).engine == "straight-line code"
    assert FeedforwardModel(robot, 2, wrench_bodies=["body40"]).engine == "loops"
