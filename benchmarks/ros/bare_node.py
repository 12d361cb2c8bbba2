"""The node that dynamics_node is measured against: takes a desired motion and publishes it again.

As anybody would write it with rclpy: a plain node and `rclpy.spin`, which is a SingleThreadedExecutor.
"""

from __future__ import annotations

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.streams.qos import stream_qos


class BareNode(Node):
    """Publishes what it hears."""

    def __init__(self) -> None:
        super().__init__("bare_node")
        self._publisher = self.create_publisher(DesiredMotion, "republished_motion", stream_qos())
        self._subscription = self.create_subscription(
            DesiredMotion, "desired_motion", self._publisher.publish, stream_qos()
        )


def main() -> None:
    """Run the node until the process is told to end."""
    rclpy.init()
    try:
        rclpy.spin(BareNode())
    except (KeyboardInterrupt, ExternalShutdownException):
        return
    finally:
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
