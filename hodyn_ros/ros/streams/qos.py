"""Quality of service of the streams between the nodes.

Reliable and keep last, because a reliable publisher serves both kinds of subscribers while a best-effort one
gives a reliable subscriber nothing, and because a lost sample of a desired motion is a lost step of the
robot. The depth is one second at 1 kHz: so long may the machine hold up a process before samples are lost.

A consumer that wants the newest sample only asks for `sensor_qos(1)`, and not for a reliable stream of depth
1. Fast DDS hands out nothing beyond a gap before all of it has been sent again, and of what comes meanwhile
a depth of 1 keeps one: where samples go on being lost, nothing comes. Behind a flood, under hold-ups of 0.3
s, that were five samples in 20 s, all older than 2 s; a reliable stream of depth 1000 went on.

Everything is overridable per topic by parameters of the node, for instance
`-p qos_overrides./desired_motion.subscription.reliability:=best_effort`, and likewise `history`, `depth`,
`durability`, `deadline`, `lifespan`, `liveliness` and `liveliness_lease_duration` (durations in nanoseconds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSPolicyKind, QoSProfile, QoSReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

STREAM_DEPTH = 1000


def _profile(reliability: QoSReliabilityPolicy, durability: QoSDurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(
        reliability=reliability, durability=durability, history=QoSHistoryPolicy.KEEP_LAST, depth=depth
    )


def stream_qos(depth: int = STREAM_DEPTH) -> QoSProfile:
    """Return the profile of a stream of samples."""
    return _profile(QoSReliabilityPolicy.RELIABLE, QoSDurabilityPolicy.VOLATILE, depth)


def latched_qos() -> QoSProfile:
    """Return the profile of a topic whose last message newcomers get as well."""
    return _profile(QoSReliabilityPolicy.RELIABLE, QoSDurabilityPolicy.TRANSIENT_LOCAL, 1)


def sensor_qos(depth: int = 10) -> QoSProfile:
    """Return the profile of measurements, soon outdated; best effort hears both kinds of publishers."""
    return _profile(QoSReliabilityPolicy.BEST_EFFORT, QoSDurabilityPolicy.VOLATILE, depth)


def overridable(publisher: bool = False) -> QoSOverridingOptions:
    """Return the options that let parameters override the profile of a subscription, or of a publisher."""
    policies = [
        QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DURABILITY,
        QoSPolicyKind.HISTORY,
        QoSPolicyKind.DEPTH,
        QoSPolicyKind.DEADLINE,
        QoSPolicyKind.LIVELINESS,
        QoSPolicyKind.LIVELINESS_LEASE_DURATION,
    ]
    if publisher:
        policies.append(QoSPolicyKind.LIFESPAN)
    return QoSOverridingOptions(policies)


def subscribe(
    node: Node,
    kind: Any,
    topic: str,
    callback: Callable[..., Any],
    qos: QoSProfile | int,
    group: CallbackGroup | None = None,
    **options: Any,
) -> Any:
    """Return a subscription whose profile parameters may override."""
    return node.create_subscription(
        kind, topic, callback, qos, callback_group=group, qos_overriding_options=overridable(), **options
    )


def advertise(node: Node, kind: Any, topic: str, qos: QoSProfile) -> Any:
    """Return a publisher whose profile parameters may override."""
    return node.create_publisher(kind, topic, qos, qos_overriding_options=overridable(publisher=True))
