"""Bags for the tests, written without ROS."""

from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import (
    Nodetype,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, FEEDFORWARD_TORQUE, STRING
from hodyn_ros.bags.files.types import learn, ros_types
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.bags.writer import BagWriter

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND  # [ns] when the recordings begin
JOINTS = ["shoulder", "elbow"]

TOPICS = (
    Topic("/arm/desired_motion", DESIRED_MOTION),
    Topic("/arm/feedforward_torque", FEEDFORWARD_TORQUE),
    Topic("/arm/note", STRING),
)


def _types() -> Typestore:
    store = ros_types()
    for name in (DESIRED_MOTION, FEEDFORWARD_TORQUE):
        learn(store, name)
    return store


TYPES = _types()


def header(stamp: int) -> Any:
    second, nanosecond = divmod(stamp, SECOND)
    time = TYPES.types["builtin_interfaces/msg/Time"](sec=second, nanosec=nanosecond)
    return TYPES.types["std_msgs/msg/Header"](stamp=time, frame_id="world")


def serialised(kind: str, **values: Any) -> bytes:
    """Return a message with some fields filled."""
    fields: dict[str, Any] = {}
    for name, (nodetype, of) in TYPES.fielddefs[kind][1]:
        if nodetype == Nodetype.SEQUENCE:
            numbers = of[0] == (Nodetype.BASE, ("float64", 0))
            fields[name] = np.array(values.pop(name, []), dtype=float) if numbers else values.pop(name, [])
        else:
            fields[name] = values.pop(name, 0)
    assert not values
    return bytes(TYPES.serialize_cdr(TYPES.types[kind](**fields), kind))


def feedforward(stamp: int, efforts: Any, **values: Any) -> bytes:
    return serialised(FEEDFORWARD_TORQUE, header=header(stamp), joint_names=JOINTS, efforts=efforts, **values)


def recording(count: int = 500) -> list[Message]:
    """Return motions with their answers, a millisecond apart, and now and then a long text."""
    messages = []
    for k in range(count):
        time = START + k * SECOND // 1000
        position = [0.1 * k, -0.2 * k]
        motion = serialised(
            DESIRED_MOTION, header=header(time), joint_names=JOINTS, positions=position, velocities=position
        )
        answer = feedforward(time, [np.sin(0.01 * k), 3.0 * k], computation_time=1e-6 * k)
        messages += [
            Message("/arm/desired_motion", time, motion),
            Message("/arm/feedforward_torque", time + 200_000, answer),
        ]
        if k % 100 == 0:  # several pages of SQLite
            messages.append(Message("/arm/note", time + 300_000, serialised(STRING, data=f"{k:06d}" * 2000)))
    return messages


def write(path: Path, storage: str, messages: list[Message], topics: tuple[Topic, ...] = TOPICS) -> Path:
    """Write a bag."""
    with BagWriter(path, storage) as writer:
        for topic in topics:
            writer.add(topic)
        for message in messages:
            writer.write(*message)
    return path


def write_compressed(
    path: Path,
    storage: str,
    mode: CompressionMode,
    messages: list[Message],
    topics: tuple[Topic, ...] = TOPICS,
) -> Path:
    """Write a bag without checksums, as rosbag2 does."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections = {t.name: writer.add_connection(t.name, t.type, typestore=TYPES) for t in topics}
        for message in messages:
            writer.write(connections[message.topic], message.time, message.data)
    return path


def storage_file(bag: Path) -> Path:
    """Return the file of a bag that holds the messages."""
    (file,) = (path for path in bag.iterdir() if path.suffix in (".mcap", ".db3"))
    return file


def offered(history: QosHistory, depth: int, durability: QosDurability) -> Qos:
    """Return a reliable quality of service without deadlines."""
    forever = QosTime(9223372036, 854775807)
    automatic = QosLiveliness.AUTOMATIC
    return Qos(
        history, depth, QosReliability.RELIABLE, durability, forever, forever, automatic, forever, False
    )
