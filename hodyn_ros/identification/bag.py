"""Recordings of joints from bags of rosbag2, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hodyn_ros.bags.joint_states import JOINT_STATE, read_joint_states
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel, JointRecording


def read_bag(path: Path, joint_names: Sequence[str], at_motor: bool = True) -> JointRecording:
    """Read joint states: those of a topic whose name ends with motor_states are of motors, others of links.

    Efforts come from the motors where they have any, from the links otherwise. Stamps are those of the
    headers. Raises InputError for a bag without positions or efforts of these joints.
    """
    with Bag(path) as bag:
        topics = [t for t in sorted(bag.topics) if bag.topics[t].type == JOINT_STATE and bag.counts[t]]
        if not topics:
            there = ", ".join(f"{name} ({topic.type})" for name, topic in sorted(bag.topics.items()))
            raise InputError(f"'{path}' has no {JOINT_STATE} messages; its topics: {there or 'none'}")
        motor_topics = [t for t in topics if t.endswith("motor_states")]
        link_topics = [t for t in topics if t not in motor_topics]
        motors = _states(bag, _only(path, motor_topics), joint_names)
        links = _states(bag, _only(path, link_topics), joint_names)
    positions = [None if s is None else s[0] for s in (motors, links)]
    efforts = next((s[1] for s in (motors, links) if s is not None and s[1] is not None), None)
    if efforts is None:
        raise InputError(
            f"'{path}' has no efforts of {list(joint_names)}: the field effort of {', '.join(topics)} is "
            "empty; record a driver that fills it in"
        )
    return JointRecording(path.name, tuple(joint_names), efforts, positions[0], positions[1], at_motor)


def _only(path: Path, topics: list[str]) -> str | None:
    if len(topics) > 1:
        raise InputError(f"'{path}' has joint states on {', '.join(topics)}; record those of one robot alone")
    return topics[0] if topics else None


def _states(bag: Bag, topic: str | None, names: Sequence[str]) -> tuple[Channel, Channel | None] | None:
    """Return positions and efforts of the joints on a topic."""
    if topic is None:
        return None
    states = read_joint_states(bag, topic, names)
    if not len(states.times):
        raise InputError(f"no message on {topic} has all joints of the robot, {list(names)}")
    if np.isnan(states.positions).any():
        raise InputError(f"messages on {topic} have no positions")
    efforts = states.efforts
    known = not np.isnan(efforts).any() and bool(np.ptp(efforts, axis=0).any())
    return Channel(states.times, states.positions), Channel(states.times, efforts) if known else None
