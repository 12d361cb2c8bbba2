"""Recordings of joints from bags of rosbag2, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hodyn_ros.array import Array
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
from hodyn_ros.identification.recording import LONGEST_STEP, Channel, JointRecording

_Read = Callable[[Bag, str, Sequence[str]], JointStates]


def read_bag(
    path: Path, joint_names: Sequence[str], at_motor: bool = True, chosen: Sequence[str] = ()
) -> JointRecording:
    """Read joint states: those of a topic whose name ends with motor_states are of motors, others of links.

    Topics that do not name these joints, such as those of a gripper, are passed over. Of several topics of
    one type that name them, as measured and commanded joint states, the `chosen` one counts. Links that no
    joint state tells come from the state of a joint_trajectory_controller. Efforts are those of the motors
    where they have any, else of the links, else what the controller measures or commands, else what a
    dynamics_node has computed; the source then says so. Stamps are those of the headers.
    Samples that are no numbers, as drivers publish them before their first reading, are left out; `notes` say
    how many, and what is lost of a bag that was cut off. Raises InputError for a bag without positions or
    efforts of these joints, for one in which stamps go back, for several such topics of which none is chosen,
    and for a chosen one that is not read.
    """
    others: dict[str, JointStates] = {}
    with Bag(path) as bag:
        joint_states = _topics(bag, JOINT_STATE)
        of_motors = [topic for topic in joint_states if topic.endswith("motor_states")]
        of_links = [topic for topic in joint_states if topic not in of_motors]
        motors = _of_robot(bag, of_motors, read_joint_states, joint_names, others, chosen)
        links = _of_robot(bag, of_links, read_joint_states, joint_names, others, chosen)
        controllers = _topics(bag, CONTROLLER_STATE)
        controller = _of_robot(bag, controllers, read_controller_states, joint_names, others, chosen)
        found = [one for one in (motors, links, controller) if one is not None]
        if others and (not found or (of_motors and motors is None)):
            topic, states = next(iter(others.items()))
            raise InputError(
                f"no message on {topic} has all joints of the robot, {list(joint_names)}; the first has "
                f"{list(states.named)}"
            )
        if not found:
            there = ", ".join(f"{name} ({topic.type})" for name, topic in sorted(bag.topics.items()))
            kinds = f"{JOINT_STATE} or {CONTROLLER_STATE}"
            raise InputError(f"'{path}' has no {kinds} messages; its topics: {there or 'none'}")
        notes = [bag.warning] if bag.warning else []
        topics, source, efforts = [topic for topic, _ in found], path.name, None
        for topic, states in found:
            efforts = efforts or _efforts(topic, states, notes)
        if efforts is None:

            def computed_in(bag: Bag, topic: str, names: Sequence[str]) -> JointStates:
                return read_feedforwards(bag, topic, names, at_motor)

            feedforwards = _topics(bag, FEEDFORWARD_TORQUE)
            computed = _of_robot(bag, feedforwards, computed_in, joint_names, {}, chosen)
            if computed is not None:
                efforts = _efforts(*computed, notes)
                source = f"{path.name}, efforts as computed on {computed[0]}"
                topics.append(computed[0])
    if unread := [topic for topic in chosen if topic not in topics]:
        raise InputError(
            f"of '{path}' {', '.join(unread)} is not read; what is read of these joints: {', '.join(topics)}"
        )
    if efforts is None:
        raise InputError(
            f"'{path}' has no efforts of {list(joint_names)}: the field effort of {', '.join(topics)} is "
            "empty, zero or no number; record a driver that fills it in"
        )
    positions = [None if one is None else _positions(*one, notes) for one in (motors, links or controller)]
    return JointRecording(
        source, tuple(joint_names), efforts, positions[0], positions[1], at_motor, notes=tuple(notes)
    )


def _topics(bag: Bag, kind: str) -> list[str]:
    return [t for t in sorted(bag.topics) if bag.topics[t].type == kind and bag.counts[t]]


def _of_robot(
    bag: Bag,
    topics: Sequence[str],
    read: _Read,
    names: Sequence[str],
    others: dict[str, JointStates],
    chosen: Sequence[str],
) -> tuple[str, JointStates] | None:
    """Return the topic that names all joints of a robot, and its states; what does not goes to `others`."""
    fitting: dict[str, JointStates] = {}
    for topic in topics:
        states = read(bag, topic, names)
        (fitting if states.messages else others)[topic] = states
    if len(fitting) > 1:
        kind, several = bag.topics[topics[0]].type, ", ".join(fitting)
        fitting = {topic: states for topic, states in fitting.items() if topic in chosen}
        if len(fitting) != 1:
            raise InputError(
                f"'{bag.path}' has {kind} of these joints on {several}; choose one of them with --topic"
            )
    for topic, states in fitting.items():
        if states.goes_back > LONGEST_STEP:
            raise InputError(
                f"stamps on {topic} go back by {states.goes_back:.4g} s, as where a simulation starts again; "
                "record each run by itself"
            )
        if len(states.times) < 2 <= states.messages:
            raise InputError(
                f"all {states.messages} messages on {topic} have the stamp {states.times[0]:g} s; record a "
                "driver that fills in header.stamp"
            )
        return topic, states
    return None


def _positions(topic: str, states: JointStates, notes: list[str]) -> Channel:
    channel = _numbers(topic, "positions", states.times, states.positions, notes)
    if not channel.measured.all():
        raise InputError(f"messages on {topic} have no positions")
    return channel


def _efforts(topic: str, states: JointStates, notes: list[str]) -> Channel | None:
    channel = _numbers(topic, "efforts", states.times, states.efforts, notes)
    moves = channel.measured.any() and np.ptp(channel.values[:, channel.measured], axis=0).any()
    return channel if moves else None


def _numbers(topic: str, what: str, times: Array, values: Array, notes: list[str]) -> Channel:
    """Return the samples in which every joint that has numbers at all has one."""
    there = ~np.isnan(values).all(axis=0)
    whole = ~np.isnan(values[:, there]).any(axis=1)
    missing = len(times) - np.count_nonzero(whole)
    if missing:
        notes.append(f"{missing} of {len(times)} {what} on {topic} are no numbers, and left out")
    return Channel(times[whole], values[whole])
