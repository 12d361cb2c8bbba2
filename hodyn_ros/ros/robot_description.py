"""The robot as a URDF on the topic robot_description, as robot_state_publisher gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.ros.streams.qos import latched_qos, subscribe

TOPIC = "robot_description"
_PATIENCE = 10.0  # [s] between two lines about waiting


class DescriptionSubscriber:
    """Hears robot descriptions and keeps the last one; `taken` is called with the text of each."""

    def __init__(self, node: Node, taken: Callable[[str], None]) -> None:
        self._node = node
        self._taken = taken
        self._subscription: Any = None
        self.text: str | None = None
        self.topic: str = node.resolve_topic_name(TOPIC)

    def listen(self, wanted: bool) -> None:
        """Begin or end to listen."""
        if wanted and self._subscription is None:
            self._subscription = subscribe(self._node, String, TOPIC, self._take, latched_qos())
        elif not wanted and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription, self.text = None, None

    def robot_files(self, floating_base: bool) -> RobotFiles:
        """Return the last description; InputError where none has come."""
        if self.text is None:
            raise InputError(
                f"parameter 'robot_config' is empty, and no robot description has come on {self.topic}; "
                "name a robot, for instance -p robot_config:=panda.yaml, or publish its URDF there"
            )
        return RobotFiles(TOPIC, self.text, kind="urdf", floating_base=floating_base)

    def say_waiting(self) -> None:
        """Log that a description is awaited, now and then."""
        self._node.get_logger().info(
            f"waiting for a robot description on {self.topic}", throttle_duration_sec=_PATIENCE
        )

    def _take(self, msg: String) -> None:
        self.text = msg.data
        self._taken(msg.data)
