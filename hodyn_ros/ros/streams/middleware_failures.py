"""What the middleware could not do for a node, which goes on: counted, and logged once a second."""

from __future__ import annotations

import time
from types import TracebackType
from weakref import WeakKeyDictionary

import rclpy
from rclpy.node import Node

from hodyn_ros.ros.streams.wait_sets import RCLError

_PERIOD = 1.0  # [s] between two lines in the log


class MiddlewareFailures:
    """A context in which the middleware may fail in a callback of nodes; what is left of that is not done.

    It fails to publish, for instance, where a reliable subscriber that stands still is to get all messages.
    """

    def __init__(self, *nodes: Node) -> None:
        self.count = 0
        self._node = nodes[0]
        self._logged_at = float("-inf")
        _of_nodes.update(dict.fromkeys(nodes, self))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, RCLError) or not rclpy.ok():
            return False
        self.count += 1
        now = time.monotonic()
        if now - self._logged_at >= _PERIOD:
            self._logged_at = now
            words = " ".join(str(error).split())
            self._node.get_logger().error(f"{words} ({self.count} such failures so far; the node continues)")
        return True


def failures_of(node: Node) -> int:
    """Return how often the middleware has failed in the callbacks of a node."""
    return _of_nodes[node].count if node in _of_nodes else 0


_of_nodes: WeakKeyDictionary[Node, MiddlewareFailures] = WeakKeyDictionary()
