"""Which controllers of a controller manager are active, by its own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from hodyn_ros.ros.streams.qos import latched_qos

try:
    from controller_manager_msgs.msg import ControllerManagerActivity
except ImportError:  # it comes with ros2_control
    ControllerManagerActivity = None

_ACTIVE = 3  # lifecycle_msgs/State.PRIMARY_STATE_ACTIVE
_STATUS, _KEY = "Controllers Activity", ".state"  # of the controller manager in /diagnostics


class ControllerActivity:
    """Whether all of some controllers are active; none is until the controller manager has said so.

    By `<manager>/activity` (ros2_control 4.30 and newer), which is published at each change. Where its
    messages are not installed, by /diagnostics, which come once a second: a controller that is off for less
    may not be noticed.
    """

    def __init__(self, node: Node, controllers: Sequence[str], manager: str) -> None:
        self._wanted = frozenset(controllers)
        self._active: frozenset[str] = frozenset()
        if ControllerManagerActivity is not None:
            self._kept = node.create_subscription(
                ControllerManagerActivity, f"{manager}/activity", self._take_activity, latched_qos()
            )
        else:
            self._kept = node.create_subscription(
                DiagnosticArray, "/diagnostics", self._take_diagnostics, 100
            )

    @property
    def all_active(self) -> bool:
        """Whether all of them are active."""
        return self._wanted <= self._active

    def _take_activity(self, msg: Any) -> None:
        self._active = frozenset(each.name for each in msg.controllers if each.state.id == _ACTIVE)

    def _take_diagnostics(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            if status.name.endswith(_STATUS):
                self._active = frozenset(
                    item.key.removesuffix(_KEY)
                    for item in status.values
                    if item.key.endswith(_KEY) and item.value == "active"
                )
