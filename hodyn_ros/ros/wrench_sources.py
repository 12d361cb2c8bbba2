"""Measured external wrenches: a topic per body, filtered so that they have the derivatives asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.validate_topic_name import validate_topic_name

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.filtered_wrench import FilteredWrench
from hodyn_ros.feedforward.model import FeedforwardModel, wrench_frames
from hodyn_ros.ros.diagnostics import Stream
from hodyn_ros.ros.streams.one_publisher import OnePublisher, publishers_of
from hodyn_ros.ros.streams.qos import sensor_qos, subscribe
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stream_executor import StreamGroup

TOPIC = "external_wrench/"


class WrenchSources:
    """The wrenches on some bodies, as measured until now.

    Measurements count when they come, by the clock of the node, whatever their stamps.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sources: dict[str, _Source] = {}

    def use(
        self, robot: Robot, model: FeedforwardModel, cutoff: float, timeout: float, largest: float
    ) -> None:
        """Subscribe to wrenches on the bodies of a model; filters of the same bodies keep their state.

        They start anew where the representation has changed. A measurement with a component beyond `largest`
        [N, N.m] is rejected.
        """
        kept = {body: source for body, source in self._sources.items() if source.fits(model)}
        for body, source in self._sources.items():
            if body not in kept:
                self._node.destroy_subscription(source.subscription)
        self._sources = {}
        for body in model.wrench_bodies:
            source = kept.get(body) or _Source(self._node, body, robot, model)
            source.filtered = source.filtered.changed(model.order, cutoff, timeout)
            source.largest = largest
            self._sources[body] = source

    def forget(self) -> None:
        """Hear nothing any more."""
        for source in self._sources.values():
            self._node.destroy_subscription(source.subscription)
        self._sources = {}

    def now(self) -> Array | None:
        """Return the wrenches (bodies, order + 1, 6) at this moment; None without bodies."""
        if not self._sources:
            return None
        instant = int(self._node.get_clock().now().nanoseconds)
        return np.stack([source.filtered.at(instant) for source in self._sources.values()])

    def missing(self) -> list[str]:
        """Return the bodies without a measurement that counts."""
        self.now()  # time may have run out since the last sample
        return [body for body, source in self._sources.items() if not source.filtered.is_measured]

    def as_values(self) -> dict[str, object]:
        """Return keys and values of a diagnostic status."""
        values: dict[str, object] = {}
        for body, source in self._sources.items():
            values[f"wrench on {body}: messages"] = source.stream.count
            values[f"wrench on {body}: rate [1/s]"] = source.stream.rate()
            values[f"wrench on {body}: age [s]"] = source.stream.age()
            values[f"wrench on {body}: timeouts"] = source.filtered.timeouts
            values |= source.rejections.beside(f"wrench on {body}: rejected")
        return values


def check_topics(bodies: Sequence[str]) -> None:
    """Reject bodies whose names cannot be part of a topic's, with InputError."""
    for body in bodies:
        try:
            validate_topic_name(TOPIC + body)
        except (InvalidTopicNameException, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"parameter 'wrench_bodies': {body!r} cannot have a topic: {reason}") from None


class _Source:
    """The wrench on one body."""

    def __init__(self, node: Node, body: str, robot: Robot, model: FeedforwardModel) -> None:
        self.filtered = FilteredWrench(0, 1.0, 1.0)
        self.largest = 0.0
        self.stream = Stream()
        self.rejections = Rejections(node.get_logger().warning, TOPIC + body)
        self._one_publisher = OnePublisher(partial(publishers_of, node, TOPIC + body))
        self._body = body
        self._frame = model.wrench_frame
        self._frames: Mapping[str, Array] = wrench_frames(robot, body, model.wrench_frame)
        self._clock = node.get_clock()
        topic, group = TOPIC + body, StreamGroup()
        self.subscription = subscribe(node, WrenchStamped, topic, self._take, sensor_qos(), group)

    def fits(self, model: FeedforwardModel) -> bool:
        """Return whether a model needs the wrench of this source, in the same frame."""
        return self._body in model.wrench_bodies and self._frame == model.wrench_frame

    def _take(self, msg: WrenchStamped, info: dict[str, Any]) -> None:
        with self.rejections:
            self._one_publisher.check(msg, info)
            wrench = self._read(msg)
            self.filtered.measure(int(self._clock.now().nanoseconds), wrench)
            self.stream.tick()

    def _read(self, msg: WrenchStamped) -> Array:
        frame = msg.header.frame_id
        matrix = self._frames.get(frame or next(iter(self._frames)))
        if matrix is None:
            raise MessageRejected(
                Reason.BAD_FRAME,
                f"frame_id is {frame!r}; with wrench_frame {self._frame!r} a wrench on {self._body!r} is "
                f"given in {' or '.join(repr(name) for name in self._frames)}, or with an empty frame_id in "
                "the first of these",
            )
        moment, force = msg.wrench.torque, msg.wrench.force
        wrench = np.array([moment.x, moment.y, moment.z, force.x, force.y, force.z])
        if not np.isfinite(wrench).all():
            raise MessageRejected(
                Reason.NOT_FINITE, "the wrench holds NaN or infinite numbers; send finite ones"
            )
        if (np.abs(wrench) > self.largest).any():
            raise MessageRejected(
                Reason.BEYOND_LIMITS,
                f"the wrench holds {np.abs(wrench).max():.3g} N or N.m, beyond wrench_limit, "
                f"{self.largest:g}; measure what is there, or raise wrench_limit",
            )
        return matrix @ wrench
