"""Odometry as the motion of a floating base."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from nav_msgs.msg import Odometry

from hodyn_ros.array import Array
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.layout import Layout, StreamReader
from hodyn_ros.ros.conversions.messages import base_motion
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

_FIELDS = (
    *(f"pose.pose.position.{axis}" for axis in "xyz"),
    *(f"pose.pose.orientation.{axis}" for axis in "xyzw"),
    *(f"twist.twist.{kind}.{axis}" for kind in ("angular", "linear") for axis in "xyz"),
)


class OdometryReader(StreamReader[BaseMotion]):
    """Reads pose and twist: the twist is that of `child_frame_id`, which is the base, in its own axes.

    Covariances are not read. Raises MessageRejected for numbers that are not finite, and for quaternions that
    are no unit ones.
    """

    def __init__(self) -> None:
        super().__init__(Odometry)

    def from_message(self, msg: Odometry) -> BaseMotion:
        """Return what a message holds."""
        return _motion(np.array(attrgetter(*_FIELDS)(msg)))

    def learn(self, layout: Layout, msg: Odometry) -> None:
        """Note where the numbers stand."""
        self._places = layout.numbers(*_FIELDS)

    def from_numbers(self, numbers: Array, data: bytes) -> BaseMotion:
        """Return the same from numbers alone."""
        return _motion(numbers.take(self._places))


def _motion(numbers: Array) -> BaseMotion:
    twist = numbers[None, 7:]
    if not np.isfinite(twist).all():
        raise MessageRejected(Reason.NOT_FINITE, "twist holds NaN or infinite numbers; send finite ones")
    return base_motion(numbers[:3], numbers[3:7], twist, DesiredMotion.BODY, name="pose")
