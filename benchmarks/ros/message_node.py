"""dynamics_node as it was before it read and wrote bytes: by messages of Python, which rclpy makes.

Its executor, too, is as it was: rclpy looks through the whole node 25 times a second. So is its model:
inverse dynamics, motors and limits one after the other.
"""

from __future__ import annotations

import sys
from typing import Any

from hodyn_ros.msg import DesiredMotion
from hodyn_ros.nodes.dynamics_node import DynamicsNode
from hodyn_ros.ros.conversions.layout import deserialised
from hodyn_ros.ros.process import run
from hodyn_ros.ros.streams.stream_executor import StreamExecutor


class MessageNode(DynamicsNode):
    """Answers with the same numbers by way of messages of Python."""

    def _take(self, data: bytes, info: dict[str, Any]) -> None:
        assert self._pipeline is not None
        self._pipeline.model.whole_arm = None
        msg = deserialised(data, DesiredMotion)
        self._one_publisher.check(msg, info)
        answer = self._pipeline.answer(msg, self._wrenches.now())
        self._publisher.publish(answer)
        self._statistics.add(answer.status, answer.computation_time, info["received_timestamp"])


class ThoroughExecutor(StreamExecutor):
    """Has rclpy look whether there is anything to do beside streams."""

    def _housekeeping(self) -> None:
        self._more = True
        super()._housekeeping()


if __name__ == "__main__":
    sys.exit(run(MessageNode, make_executor=ThoroughExecutor))
