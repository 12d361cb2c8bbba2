"""One stream from one publisher: two that send on the same topic would make a robot jump between both."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rclpy.node import Node

from hodyn_ros.array import Array
from hodyn_ros.msg import DesiredMotion
from hodyn_ros.ros.conversions.layout import deserialised
from hodyn_ros.ros.conversions.messages import nanoseconds
from hodyn_ros.ros.streams.qos_events import UNKNOWN_NAME, full_name
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Publishers = Mapping[bytes, str]  # full names of nodes by the identifiers of their publishers

_NAMELESS = "a node unknown by name"
_LOOK_AGAIN = 0.1  # [s] before one asks anew who publishes
_LONGEST_STEP = 1.0  # [s] between the stamps of two samples of one stream
_SAME_POSITION = 1e-3  # [rad or m] by which a sample may miss what those before it announce


class OnePublisher:
    """Follows one publisher of a topic, rejects what others send, and counts what was lost on the way.

    Another one is followed when the first has gone, or has been silent for `silence` seconds. `publishers`
    says who publishes now. Some middlewares do not say who has sent a message (that of ROS 2 Jazzy does not);
    then a message is taken for another publisher's where there are several, and `continues` says that it does
    not go on from the one before.
    """

    def __init__(
        self,
        publishers: Callable[[], Publishers],
        continues: Callable[[Any, Any], bool] = lambda before, after: True,
        silence: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._publishers = publishers
        self._continues = continues
        self._silence = silence
        self._clock = clock
        self._known: Publishers = {}
        self._known_at = -np.inf
        self.forget()

    def forget(self) -> None:
        """Follow whoever is heard next, and take nothing until then for lost."""
        self._followed: bytes | None = None
        self._last: Any = None  # message
        self._number: int | None = None  # that its publisher has given it
        self._heard_at = -np.inf

    def check(self, msg: Any, info: Mapping[str, Any]) -> int:
        """Return how many messages were lost between the last one and this one.

        Raises MessageRejected, naming the publishers, for a message of another one than is followed. `info`
        is the MessageInfo of rclpy.
        """
        now = self._clock()
        gid = identity(info)
        if now - self._heard_at <= self._silence and self._is_foreign(gid, msg, now):
            raise MessageRejected(Reason.SECOND_PUBLISHER, self._words(gid, now))
        number, lost = info.get("publication_sequence_number"), 0
        if number is not None and self._number is not None and gid == self._followed:
            lost = max(0, number - self._number - 1)
        self._followed, self._last, self._number, self._heard_at = gid, msg, number, now
        return lost

    def _is_foreign(self, gid: bytes | None, msg: Any, now: float) -> bool:
        if gid is not None:
            # one that has just been heard may not be known by its name yet
            return gid != self._followed and (
                now - self._heard_at <= _LOOK_AGAIN or self._followed in self._who(now)
            )
        return len(self._who(now)) > 1 and not self._continues(self._last, msg)

    def _who(self, now: float) -> Publishers:
        if now - self._known_at > _LOOK_AGAIN:
            self._known, self._known_at = self._publishers(), now
        return self._known

    def _words(self, gid: bytes | None, now: float) -> str:
        known = self._who(now)
        advice = (
            "let one node publish at a time; another is followed when the first has been silent for "
            f"{self._silence:g} s"
        )
        if gid is None:
            names = " and ".join(sorted(known.values()))
            return f"it does not go on from the one before, and {names} publish; {advice}"
        sender, followed = known.get(gid, _NAMELESS), known.get(self._followed or b"", _NAMELESS)
        return f"it comes from {sender} while {followed} is followed; {advice}"


def identity(info: Mapping[str, Any]) -> bytes | None:
    """Return the identifier of the publisher in the MessageInfo of rclpy; None where it is not said."""
    gid = info.get("publisher_gid")
    return None if gid is None else bytes(gid["data"])


def publishers_of(node: Node, topic: str) -> dict[bytes, str]:
    """Return the full names of the nodes that publish a topic, by the identifiers of their publishers."""
    return {
        bytes(info.endpoint_gid): _NAMELESS if UNKNOWN_NAME in (name := full_name(info)) else name
        for info in node.get_publishers_info_by_topic(topic)
    }


def motion_continues(before: DesiredMotion, after: DesiredMotion) -> bool:
    """Whether a desired motion goes on from another one as the velocities and accelerations of both say."""
    step = 1e-9 * (nanoseconds(after.header.stamp) - nanoseconds(before.header.stamp))
    if not 0.0 < step <= _LONGEST_STEP or before.joint_names != after.joint_names:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        (p0, v0, a0), (p1, v1, a1) = _joints(before), _joints(after)
        missed = np.abs(p1 - p0 - 0.5 * step * (v0 + v1))
        bound = _SAME_POSITION + 0.25 * step**2 * (np.abs(a0) + np.abs(a1))
        return bool((missed <= bound).all()) and _base_continues(before, after, step)


def bytes_continue(before: bytes, after: bytes) -> bool:
    """Whether a desired motion goes on from another one, as `motion_continues` has it, both serialised."""
    return motion_continues(*(deserialised(data, DesiredMotion) for data in (before, after)))


def _joints(msg: DesiredMotion) -> Array:
    """Return positions, velocities and accelerations (3, n), zero where the message does not hold them."""
    n = len(msg.joint_names)
    fields = msg.positions, msg.velocities, msg.accelerations
    return np.stack([np.array(field) if len(field) == n else np.zeros(n) for field in fields])


def _base_continues(before: DesiredMotion, after: DesiredMotion, step: float) -> bool:
    if not before.base_pose or not after.base_pose:
        return not before.base_pose and not after.base_pose
    places, speeds = [], []
    for msg in (before, after):
        place = msg.base_pose[0].position
        places.append(np.array([place.x, place.y, place.z]))
        twist = np.array(msg.base_twists[:6]) if len(msg.base_twists) >= 6 else np.zeros(6)
        # of the origin, in whichever representation the twist is
        speeds.append(np.linalg.norm(twist[3:]) + np.linalg.norm(twist[:3]) * np.linalg.norm(places[-1]))
    return bool(np.linalg.norm(places[1] - places[0]) <= _SAME_POSITION + step * max(speeds))
