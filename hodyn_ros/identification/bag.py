"""Recordings of joints from bags of rosbag2, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hodyn_ros.bags.comparison.sources import FEEDFORWARD_TORQUE
from hodyn_ros.bags.joint_states import (
    CONTROLLER_STATE,
    JOINT_STATE,
    JointStates,
    read_controller_states,
    read_feedforwards,
    read_joint_states,
)
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel, JointRecording


def read_bag(path: Path, joint_names: Sequence[str], at_motor: bool = True) -> JointRecording:
    """Read joint states: those of a topic whose name ends with motor_states are of motors, others of links.

    Links that no joint state tells come from the state of a joint_trajectory_controller. Efforts are those of
    the motors where they have any, else of the links, else what the controller measures or commands, else
    what a dynamics_node has computed; the source then says so. Stamps are those of the headers. Raises
    InputError for a bag without positions or efforts of these joints.
    """
    with Bag(path) as bag:
        motor_topic = _only(bag, [t for t in _topics(bag, JOINT_STATE) if t.endswith("motor_states")])
        link_topic = _only(bag, [t for t in _topics(bag, JOINT_STATE) if not t.endswith("motor_states")])
        controller_topic = _only(bag, _topics(bag, CONTROLLER_STATE))
        computed_topic = _only(bag, _topics(bag, FEEDFORWARD_TORQUE))
        topics = [t for t in (motor_topic, link_topic, controller_topic) if t is not None]
        if not topics:
            there = ", ".join(f"{name} ({topic.type})" for name, topic in sorted(bag.topics.items()))
            kinds = f"{JOINT_STATE} or {CONTROLLER_STATE}"
            raise InputError(f"'{path}' has no {kinds} messages; its topics: {there or 'none'}")
        motors, links, controller = (
            None if topic is None else _known(topic, read(bag, topic, joint_names), joint_names)
            for topic, read in (
                (motor_topic, read_joint_states),
                (link_topic, read_joint_states),
                (controller_topic, read_controller_states),
            )
        )
        source, efforts = path.name, None
        for states in (motors, links, controller):
            efforts = efforts or _efforts(states)
        if efforts is None and computed_topic is not None:
            efforts = _efforts(read_feedforwards(bag, computed_topic, joint_names, at_motor))
            source = f"{path.name}, efforts as computed on {computed_topic}"
            topics.append(computed_topic)
    if efforts is None:
        raise InputError(
            f"'{path}' has no efforts of {list(joint_names)}: the field effort of {', '.join(topics)} is "
            "empty; record a driver that fills it in"
        )
    positions = [None if s is None else Channel(s.times, s.positions) for s in (motors, links or controller)]
    return JointRecording(source, tuple(joint_names), efforts, positions[0], positions[1], at_motor)


def _topics(bag: Bag, kind: str) -> list[str]:
    return [t for t in sorted(bag.topics) if bag.topics[t].type == kind and bag.counts[t]]


def _only(bag: Bag, topics: list[str]) -> str | None:
    if len(topics) > 1:
        kind = bag.topics[topics[0]].type
        raise InputError(f"'{bag.path}' has {kind} on {', '.join(topics)}; record those of one robot alone")
    return topics[0] if topics else None


def _known(topic: str, states: JointStates, names: Sequence[str]) -> JointStates:
    if not len(states.times):
        raise InputError(
            f"no message on {topic} has all joints of the robot, {list(names)}; the first has "
            f"{list(states.named)}"
        )
    if np.isnan(states.positions).any():
        raise InputError(f"messages on {topic} have no positions")
    return states


def _efforts(states: JointStates | None) -> Channel | None:
    if states is None or not len(states.times) or np.isnan(states.efforts).any():
        return None
    return Channel(states.times, states.efforts) if np.ptp(states.efforts, axis=0).any() else None
