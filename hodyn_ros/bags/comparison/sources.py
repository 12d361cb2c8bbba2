"""Which topics of a bag belong to one dynamics_node."""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError

DESIRED_MOTION = "hodyn_ros/msg/DesiredMotion"
FEEDFORWARD_TORQUE = "hodyn_ros/msg/FeedforwardTorque"
STRING = "std_msgs/msg/String"


class Sources(NamedTuple):
    """Topics of a bag."""

    desired_motion: str
    feedforward_torque: str  # also where the bag has none
    settings: str  # also where the bag has none


def find_sources(bag: Bag, namespace: str | None = None, topic: str | None = None) -> Sources:
    """Return the topics of one robot; InputError, naming the topics there are, where that is not clear.

    `namespace` chooses among several robots, `topic` by the topic of the desired motion.
    """
    choices = topics_of_type(bag, DESIRED_MOTION)
    if topic is not None:
        choices = [name for name in choices if name == topic]
    if namespace is not None:
        choices = [name for name in choices if _namespace(name) == f"/{namespace.strip('/')}"]
    if not choices:
        wanted = f" named {topic}" if topic else f" in the namespace {namespace}" if namespace else ""
        there = ", ".join(f"{name} ({kind.type})" for name, kind in sorted(bag.topics.items())) or "none"
        raise InputError(f"'{bag.path}' has no desired motion{wanted}; its topics: {there}")
    if len(choices) > 1:
        raise InputError(
            f"'{bag.path}' has several desired motions: {', '.join(choices)}; choose one with --namespace or "
            "--topic"
        )
    folder = _namespace(choices[0]).rstrip("/")
    return Sources(
        choices[0],
        _only(bag, FEEDFORWARD_TORQUE, folder, "/feedforward_torque"),
        _only(bag, STRING, folder, "/dynamics_node/settings", "/settings"),
    )


def _only(bag: Bag, kind: str, folder: str, usual: str, end: str = "") -> str:
    """Return the topic of a type with the usual name, or the only other one in the folder."""
    name = folder + usual
    recorded = [
        other
        for other in topics_of_type(bag, kind)
        if other.startswith(f"{folder}/") and other.endswith(end) and other.count("/") == name.count("/")
    ]
    if name in recorded or not recorded:
        return name
    if len(recorded) > 1:
        raise InputError(
            f"'{bag.path}' has no {name}, but {', '.join(recorded)}; which one counts is not clear"
        )
    return recorded[0]


def topics_of_type(bag: Bag, kind: str) -> list[str]:
    """Return the topics of a type on which there is something."""
    return sorted(name for name, topic in bag.topics.items() if topic.type == kind and bag.counts[name])


def _namespace(name: str) -> str:
    return name.rpartition("/")[0] or "/"
