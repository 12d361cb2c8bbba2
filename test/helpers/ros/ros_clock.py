"""Simulated time for the tests of nodes: the test is the clock."""

import time

from diagnostic_msgs.msg import DiagnosticArray
from ros_processes import TIMEOUT
from ros_talk import Talk
from rosgraph_msgs.msg import Clock

from hodyn_ros.ros.conversions.messages import nanoseconds, time_message

SECOND = 1_000_000_000  # [ns]


class SimulatedClock:
    """Publishes /clock; has begun when so many `nodes` have shown by their diagnostics that they follow."""

    def __init__(self, talk: Talk, nodes: int = 1) -> None:
        self.now = 1_700_000_000 * SECOND  # [ns]
        self._publisher = talk.node.create_publisher(Clock, "/clock", 1)
        followed: dict[str, int] = {}

        def take(msg: DiagnosticArray) -> None:
            followed.update({status.name: nanoseconds(msg.header.stamp) for status in msg.status})

        subscription = talk.node.create_subscription(DiagnosticArray, "/diagnostics", take, 10)
        end = time.monotonic() + TIMEOUT
        while list(followed.values()).count(self.now) < nodes:
            if time.monotonic() > end:
                raise TimeoutError(f"{nodes} nodes did not follow /clock within {TIMEOUT:g} s: {followed}")
            self.set(self.now)  # what is not matched yet misses it, and gets another
            talk.pause(0.05)
        talk.node.destroy_subscription(subscription)
        self.start = self.now

    def set(self, nanosecond: int) -> None:
        """Let it be an instant."""
        self.now = nanosecond
        self._publisher.publish(Clock(clock=time_message(nanosecond)))
