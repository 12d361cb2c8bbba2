"""How a node is doing, on /diagnostics once a second, or more often."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from hodyn_ros.ros.parameters.parameters import ParameterSpec, declare, value
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.wait_sets import RCLError

OK: bytes = DiagnosticStatus.OK
WARN: bytes = DiagnosticStatus.WARN
ERROR: bytes = DiagnosticStatus.ERROR
STALE: bytes = DiagnosticStatus.STALE

PERIOD = 1.0  # [s] at most
SETTING = ParameterSpec(
    PERIOD,
    "Time between two reports on /diagnostics [s].",
    within=(0.02, PERIOD),
    name="diagnostic_updater.period",
)
PACKAGE_KEY, PACKAGE = "package", "hodyn_ros"  # first among the values, so that `hodyn top` knows its nodes

FAILURES_KEY = "failures of the middleware"


class Report(NamedTuple):
    """What a node says about itself: a level, one line, and values by name."""

    level: bytes
    message: str
    values: Mapping[str, object]


class Durations:
    """The last `window` of some durations [s], for percentiles."""

    def __init__(self, window: int = 1000) -> None:
        self._durations: deque[float] = deque(maxlen=window)
        self.add = self._durations.append

    def as_values(
        self, what: str, unit: Literal["us", "ms"], percents: Sequence[int] = (50, 99)
    ) -> dict[str, float]:
        """Return percentiles, that of 100 as the most, for diagnostics; NaN while there are no durations."""
        percentiles = np.percentile(self._durations or [np.nan], percents) * {"us": 1e6, "ms": 1e3}[unit]
        names = ("max" if percent == 100 else f"p{percent}" for percent in percents)
        return {f"{what} {name} [{unit}]": float(x) for name, x in zip(names, percentiles)}


class Stream:
    """Counts the messages of a topic: how many, how often, and how long ago the last one came.

    Also keeps the durations [s] of the last `window` messages, for percentiles.
    """

    def __init__(self, window: int = 1000, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self._clock = clock
        self._last: float | None = None
        self._counted, self._counted_at = 0, clock()
        self._durations = Durations(window)
        self.as_values = self._durations.as_values

    def tick(self, duration: float | None = None) -> None:
        """Count one message, with the time [s] it took to deal with it."""
        self.count += 1
        self._last = self._clock()
        if duration is not None:
            self._durations.add(duration)

    def rate(self) -> float:
        """Return the messages per second since the last call."""
        now = self._clock()
        elapsed, messages = now - self._counted_at, self.count - self._counted
        self._counted, self._counted_at = self.count, now
        return messages / elapsed if elapsed > 0.0 else 0.0

    def age(self) -> float:
        """Return how long ago [s] the last message came; infinite before the first."""
        return float("inf") if self._last is None else self._clock() - self._last


class Diagnostics:
    """Publishes what `report` returns on /diagnostics, by a timer, under the full name of the node."""

    def __init__(self, node: Node, report: Callable[[], Report], hardware_id: str = "") -> None:
        declare(node, [SETTING])
        self.hardware_id = hardware_id
        self._node = node
        self._report = report
        self._failures = 0
        self._name = node.get_fully_qualified_name().lstrip("/")
        self._publisher = node.create_publisher(
            DiagnosticArray,
            "/diagnostics",
            QoSProfile(depth=10),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        # real time: a simulation that stands still does not silence the node
        self._timer = steady_timer(node, value(node, SETTING.name), self.publish)

    def publish(self) -> None:
        """Publish now; the timer calls this."""
        level, message, reported = self._report()
        failures, self._failures = self._failures, failures_of(self._node)
        if self._failures > failures and level == OK:
            level, message = WARN, "the middleware has failed, see the log"
        values = {PACKAGE_KEY: PACKAGE, **reported, FAILURES_KEY: self._failures}
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message=message,
            hardware_id=self.hardware_id,
            values=[KeyValue(key=key, value=_text(value)) for key, value in values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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
