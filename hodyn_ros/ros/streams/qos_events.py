"""What the middleware reports about topics: missed deadlines, lost publishers, partners that do not fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible, qos_policy_name_from_kind
from rclpy.topic_endpoint_info import TopicEndpointInfo

from hodyn_ros.ros.streams.qos import overridable, subscribe

_PERIOD = 1.0  # [s] between two lines about one kind of event of one topic
_LOOKS = 3  # for the names of nodes, which on a busy machine come later than the event
UNKNOWN_NAME = "_NODE_NAME_UNKNOWN_"  # what the middleware calls a node until then


def full_name(endpoint: TopicEndpointInfo) -> str:
    """Return the full name of the node that a publisher or subscription belongs to."""
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


class QosEvents:
    """Counts the events of the topics of a node, and logs them, once a second at most for each kind."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._counts: dict[str, int] = {}
        self._logged_at: dict[str, float] = {}
        self._misfits: list[tuple[str, str, int]] = []  # topic, policy, how often its nodes were looked for
        self._watched: dict[str, Any] = {}  # publisher or subscription by topic

    @property
    def total(self) -> int:
        """Number of events so far."""
        return sum(self._counts.values())

    def subscription(
        self,
        kind: Any,
        topic: str,
        callback: Callable[..., None],
        qos: QoSProfile,
        group: CallbackGroup,
        *,
        raw: bool = True,
    ) -> Any:
        """Return a subscription of the node whose events count; `raw`: to bytes.

        Messages of Python would take most of the time of a fast topic.
        """
        events = self._of_subscription(topic)
        made = subscribe(self._node, kind, topic, callback, qos, group, raw=raw, event_callbacks=events)
        self._watched[topic] = made
        return made

    def publisher(self, kind: Any, topic: str, qos: QoSProfile) -> Any:
        """Return a publisher whose events count; that of a lifecycle node follows its state."""
        node = self._node
        make = node.create_lifecycle_publisher if isinstance(node, LifecycleNode) else node.create_publisher
        made = make(
            kind,
            topic,
            qos,
            event_callbacks=self._of_publisher(topic),
            qos_overriding_options=overridable(publisher=True),
        )
        self._watched[topic] = made
        return made

    def _of_subscription(self, topic: str) -> SubscriptionEventCallbacks:
        missed = f"no message on {topic!r} within the requested deadline"
        lost = f"a publisher of {topic!r} has given no sign of life within its lease"
        return SubscriptionEventCallbacks(
            deadline=self._counting("deadline missed", topic, missed),
            # also told of publishers that come alive
            liveliness=self._counting("publisher lost", topic, lost, "not_alive_count_change"),
            incompatible_qos=self._misfitting(topic),
        )

    def _of_publisher(self, topic: str) -> PublisherEventCallbacks:
        missed = f"no message was published on {topic!r} within the deadline that is offered"
        lost = f"the publisher of {topic!r} has given no sign of life within the lease that is offered"
        return PublisherEventCallbacks(
            deadline=self._counting("deadline missed", topic, missed),
            liveliness=self._counting("liveliness lost", topic, lost),
            incompatible_qos=self._misfitting(topic),
        )

    def lost(self, topic: str, messages: int) -> None:
        """Count messages that were sent and never taken, which the gaps between their numbers show."""
        kind = "messages lost"
        self._counts.setdefault(f"{kind}: {topic}", 0)
        if messages:
            self._count(kind, topic, messages, f"messages on {topic!r} were lost: more came than can wait")

    def look(self) -> None:
        """Log who does not fit; the names of nodes arrive a moment later than their topics."""
        misfits, self._misfits = self._misfits, []
        for topic, policy, looks in misfits:
            entity = self._watched[topic]
            publishes = isinstance(entity, Publisher)
            what, fate = ("subscription", "sent to") if publishes else ("publisher", "received from")
            names = sorted(set(self._misfit_nodes(entity)))
            if looks < _LOOKS and (not names or any(UNKNOWN_NAME in name for name in names)):
                self._misfits.append((topic, policy, looks + 1))
                continue
            of = f" of node {', '.join(names)}" if names else ""
            self._node.get_logger().warning(
                f"a {what} of {topic!r}{of} has incompatible QoS ({policy}): nothing is {fate} it"
            )

    def as_values(self) -> dict[str, int]:
        """Return the counts as keys and values of a diagnostic status."""
        return dict(self._counts)

    def _count(self, kind: str, topic: str, more: int, line: str) -> None:
        key = f"{kind}: {topic}"
        self._counts[key] += more
        now = time.monotonic()
        if now - self._logged_at.get(key, float("-inf")) >= _PERIOD:
            self._logged_at[key] = now
            self._node.get_logger().warning(f"{line} ({self._counts[key]} times so far)")

    def _counting(
        self, kind: str, topic: str, line: str, change: str = "total_count_change"
    ) -> Callable[[Any], None]:
        """Return what counts events of a kind, none yet, by a field of theirs, and logs a line about them."""
        self._counts[f"{kind}: {topic}"] = 0

        def count(event: Any) -> None:
            more = getattr(event, change)
            if more > 0:
                self._count(kind, topic, more, line)

        return count

    def _misfitting(self, topic: str) -> Callable[[Any], None]:
        """Return what counts partners that do not fit, none yet, and notes whom to look for."""
        key = f"incompatible QoS: {topic}"
        self._counts[key] = 0

        def misfit(event: Any) -> None:
            self._counts[key] += event.total_count_change
            self._misfits.append((topic, str(qos_policy_name_from_kind(event.last_policy_kind)), 0))

        return misfit

    def _misfit_nodes(self, entity: Any) -> list[str]:
        mine = entity.qos_profile
        if isinstance(entity, Publisher):
            endpoints = self._node.get_subscriptions_info_by_topic(entity.topic_name)
            pairs = [(other, mine, other.qos_profile) for other in endpoints]
        else:
            endpoints = self._node.get_publishers_info_by_topic(entity.topic_name)
            pairs = [(other, other.qos_profile, mine) for other in endpoints]
        return [
            full_name(other)
            for other, offered, asked in pairs
            if qos_check_compatible(offered, asked)[0] == QoSCompatibility.ERROR
        ]
