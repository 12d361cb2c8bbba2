"""Recordings of joints from bags of rosbag2, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.bags.files.decoder import Decoder
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.lie.jets import Array

JOINT_STATE = "sensor_msgs/msg/JointState"


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
    decode = Decoder(bag.topics[topic])
    stamps, positions, efforts = [], [], []
    for message in bag.messages([topic]):
        state = decode(message)
        places = {name: i for i, name in enumerate(state.name)}
        if not all(name in places for name in names):
            continue
        order = [places[name] for name in names]
        stamps.append(state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec)
        positions.append(_values(state.position, order))
        efforts.append(_values(state.effort, order))
    if not stamps:
        raise InputError(f"no message on {topic} has all joints of the robot, {list(names)}")
    times, values = np.array(stamps), np.array(positions)
    kept = np.r_[True, np.diff(np.maximum.accumulate(times)) > 0.0]  # a repeated message adds nothing
    if np.isnan(values).any():
        raise InputError(f"messages on {topic} have no positions")
    found = np.array(efforts)[kept]
    known = not np.isnan(found).any() and bool(np.ptp(found, axis=0).any())
    return Channel(times[kept], values[kept]), Channel(times[kept], found) if known else None


def _values(field: Any, order: list[int]) -> Array:
    values = np.asarray(field, dtype=np.float64)
    return values[order] if len(values) > max(order) else np.full(len(order), np.nan)
