"""What a joint_trajectory_controller says of itself: where it has its reference, and how far it has come.

Needs control_msgs; nothing but trajectory_proxy imports this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from control_msgs.msg import JointTrajectoryControllerState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.task import Future

from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.ros.streams.fixed_rate import steady_timer
from hodyn_ros.ros.streams.qos import sensor_qos, subscribe

# [s] A controller that has said nothing for longer is not active.
_PATIENCE = 0.5


class Reference(NamedTuple):
    """The state of a controller: its reference and its output, by joint."""

    stamp: int  # [ns] on the controller's clock
    elapsed: float  # [s] since its trajectory began
    positions: dict[str, float]  # [rad or m]
    at_rest: bool
    efforts: dict[str, float]  # what it commands [N·m or N]; empty where it commands none

    @property
    def begin(self) -> int:
        """When its trajectory began [ns], on the controller's clock."""
        return self.stamp - round(1e9 * self.elapsed)


class ControllerState:
    """Hears `<controller>/controller_state`, which comes at the rate of the controller.

    Only the messages that somebody asks for are read.
    """

    def __init__(self, node: Node, controller: str, group: ReentrantCallbackGroup) -> None:
        self._node = node
        self._raw = b""
        self._heard_at = -float("inf")
        self._waiting: dict[Future[Any], Callable[[Reference], bool]] = {}
        self._group = group
        self.topic = f"{controller}/controller_state"
        kind = JointTrajectoryControllerState
        self._subscription = subscribe(node, kind, self.topic, self._take, sensor_qos(1), group, raw=True)

    @property
    def age(self) -> float:
        """Time since the controller has said something [s]."""
        return time.monotonic() - self._heard_at

    def newest(self) -> Reference | None:
        """Return the newest state; none where the controller says nothing, as it is not active."""
        return _read(self._raw) if self.age <= _PATIENCE else None

    async def when(self, condition: Callable[[Reference], bool], patience: float) -> Reference | None:
        """Return the first state from now on that meets a condition; none after `patience` [s]."""
        future: Future[Any] = Future()
        self._waiting[future] = condition
        timer = steady_timer(
            self._node, patience, lambda: None if future.done() else future.set_result(None), self._group
        )
        try:
            state: Reference | None = await future
            return state
        finally:
            del self._waiting[future]
            self._node.destroy_timer(timer)

    def _take(self, raw: Any) -> None:
        self._raw, self._heard_at = raw, time.monotonic()
        if not self._waiting:
            return
        state = _read(raw)
        for future, condition in list(self._waiting.items()):
            if not future.done() and condition(state):
                future.set_result(state)


def _read(raw: bytes) -> Reference:
    msg: Any = deserialize_message(raw, JointTrajectoryControllerState)
    names, elapsed = msg.joint_names, msg.reference.time_from_start
    return Reference(
        nanoseconds(msg.header.stamp),
        elapsed.sec + 1e-9 * elapsed.nanosec,
        dict(zip(names, msg.reference.positions)),
        not any(msg.reference.velocities),
        dict(zip(names, msg.output.effort)),
    )
