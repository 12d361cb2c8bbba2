"""Whether what is published is being recorded: `recorder` says what it has heard, and rosbag2 is looked for.

That a subscription is there does not say that it hears: publisher and subscription get to know of each other
one after the other, on a busy machine seconds apart, and what is sent meanwhile is lost. A message that has
come proves that all after it come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from hodyn_ros.ros.streams.one_publisher import identity, publishers_of
from hodyn_ros.ros.streams.qos import latched_qos

STREAMS = ("desired_motion", "feedforward_torque", "effort_commands", "joint_states", "motor_states")
HEARD = "recorder/heard"  # what `recorder` says, by its name: a word for each publisher of a topic

_ROSBAG2 = "rosbag2_recorder"  # the node of `ros2 bag record`
_LOOK_AGAIN = 0.1  # [s]; to ask who publishes and hears takes a millisecond, as long as some streams leave


def word(topic: str, publisher: bytes = b"") -> str:
    """Return how a recorder names a publisher by its identifier; none where the middleware does not tell."""
    return f"{topic}={publisher.hex()}"


def heard_message(words: Iterable[str]) -> String:
    """Return what a recorder says of the publishers that it has heard."""
    return String(data=" ".join(words))


class RecordedTopics:
    """Whether somebody records all that is published on `STREAMS`, from now on."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._topics = [node.resolve_topic_name(topic) for topic in STREAMS]
        self._recorders = node.resolve_topic_name(HEARD)
        self._heard: dict[bytes, set[str]] = {}  # by who says it; one that the middleware does not tell: b""
        self._missing, self._looked_at = self._topics, -math.inf
        self._subscription = node.create_subscription(String, HEARD, self._take, latched_qos())

    def _take(self, msg: String, info: Mapping[str, Any]) -> None:
        self._heard[identity(info) or b""] = set(msg.data.split())

    def missing(self) -> list[str]:
        """Return the topics of which somebody publishes what is not recorded, as of 0.1 s ago at most."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_AGAIN:
            present = publishers_of(self._node, self._recorders)  # one that has died hears nothing any more
            words = {
                each
                for recorder, heard in self._heard.items()
                if present and recorder in (*present, b"")
                for each in heard
            }
            self._missing = [topic for topic in self._topics if not self._is_recorded(topic, words)]
            self._looked_at = now
        return self._missing

    def _is_recorded(self, topic: str, heard: set[str]) -> bool:
        publishers = publishers_of(self._node, topic)
        if word(topic) in heard or {word(topic, gid) for gid in publishers} <= heard:
            return True
        listeners = self._node.get_subscriptions_info_by_topic(topic)
        return any(listener.node_name == _ROSBAG2 for listener in listeners)
