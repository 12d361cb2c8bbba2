"""What consumers read from bytes: bit for bit what rclpy and the ordinary way make of it, errors included."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from sweeps import THOROUGH

from hodyn_ros.bags.files.types import learn, ros_types
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.msg import FeedforwardTorque
from hodyn_ros.replay.recorded import Serialiser
from hodyn_ros.ros.conversions.fields import float64s
from hodyn_ros.ros.conversions.joint_subset import FeedforwardReader, StateReader
from hodyn_ros.ros.conversions.layout import StreamReader, deserialised, instant
from hodyn_ros.ros.conversions.messages import nanoseconds, write_feedforward_torque
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Rng = np.random.Generator
NAMES = ["shoulder", "elbow", "wrist", "hand"]
WANTED = ["wrist", "shoulder"]
COUNT = 10_000 if THOROUGH else 2_000


class Feedforwards:
    """A stream of feedforwards: of an arm, or of one that flies and has no motors."""

    kind: Any = FeedforwardTorque
    name = "hodyn_ros/msg/FeedforwardTorque"

    def __init__(self, rng: Rng) -> None:
        self.reader: StreamReader[Any] = FeedforwardReader(WANTED)
        self.order, self.flies = int(rng.integers(6)), bool(rng.random() < 0.5)
        self.names = [str(name) for name in rng.permutation(NAMES)]
        self.frame = str(rng.choice(["", "world", "é"]))

    def message(self, rng: Rng, stamp: Time) -> FeedforwardTorque:
        n, orders = len(self.names), self.order + 1
        propellers = "abcd" if self.flies else ""
        nothing = np.empty((0, n))
        rows = [rng.normal(size=(orders, count)) for count in (n, n, n, 6, 4, 4)]
        flown = rows[3:] if self.flies else [np.empty((0, 6)), np.empty((0, 0)), np.empty((0, 0))]
        motors = [nothing, nothing] if self.flies else [rows[1][:3], rows[2][: max(0, self.order - 1)]]
        status = Status(int(rng.integers(512)))
        law = Feedforward(rows[0], *motors, flown[0], status, *flown[1:])
        header = Header(stamp=stamp, frame_id=self.frame)
        msg = write_feedforward_torque(header, self.names, law, float(rng.random()), propellers)
        msg.status |= int(rng.integers(2)) << 31  # of a later version
        return msg


class States:
    """A stream of joint states, with or without velocities, which may be NaN."""

    kind: Any = JointState
    name = "sensor_msgs/msg/JointState"

    def __init__(self, rng: Rng) -> None:
        self.reader: StreamReader[Any] = StateReader(WANTED, with_velocity=bool(rng.random() < 0.5))
        self.names = [str(name) for name in rng.permutation(NAMES)]
        self.fields = ["position", "velocity", "effort"][: int(rng.integers(1, 4))]

    def message(self, rng: Rng, stamp: Time) -> JointState:
        msg = JointState(header=Header(stamp=stamp), name=self.names)
        for field in self.fields:
            values = rng.normal(size=len(self.names))
            if field != "position" and rng.random() < 0.1:
                values[int(rng.integers(len(values)))] = rng.choice([np.nan, np.inf])
            setattr(msg, field, float64s(values))
        return msg


STREAMS = [Feedforwards, States]


def damaged(rng: Rng, data: bytes) -> bytes:
    """Return the bytes with some of them changed, numbers made absurd, or cut off."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[place] = rng.choice([0, 1, 127, 128, 240, 255])
    if rng.random() < 0.3:
        place = 4 + 8 * int(rng.integers((len(data) - 4) // 8))
        changed[place : place + 8] = np.float64(rng.choice([np.nan, np.inf, 1e200, -1e308])).tobytes()
    return bytes(changed[: rng.integers(len(data))] if rng.random() < 0.2 else changed)


def plain(content: Sequence[Any]) -> list[object]:
    """Return values so that equal ones are the same to the last bit."""
    return [
        (each.shape, each.flags.c_contiguous, each.tobytes()) if isinstance(each, np.ndarray) else each
        for each in content
    ]


def from_bytes(reader: StreamReader[Any], data: bytes) -> object:
    try:
        stamp, content = reader.read(data)
    except MessageRejected as rejected:
        return rejected.reason, str(rejected)
    return instant(stamp), plain(content)


def from_message(reader: StreamReader[Any], data: bytes, kind: Any) -> object:
    try:
        msg = deserialised(data, kind)
        content = reader.from_message(msg)
    except MessageRejected as rejected:
        return rejected.reason, str(rejected)
    return nanoseconds(msg.header.stamp), plain(content)


def goes_by_bytes(source: Any, data: bytes) -> bool:
    layout = source.reader._layout
    return layout is not None and bool(layout.fits(data))


@pytest.mark.parametrize("stream", STREAMS)
def test_bytes_are_read_as_messages_are(stream: Any) -> None:
    rng = np.random.default_rng(3)
    taken = fast = 0
    for k in range(COUNT):
        if k % 50 == 0:
            source = stream(rng)
        data: bytes = serialize_message(source.message(rng, Time(sec=k, nanosec=int(rng.integers(10**9)))))
        if rng.random() < 0.2:
            data = damaged(rng, data)
        fast += goes_by_bytes(source, data)
        found = from_bytes(source.reader, data)
        assert found == from_message(source.reader, data, source.kind)
        taken += not isinstance(found[0], Reason)
    assert taken > 0.6 * COUNT and fast > 0.5 * COUNT


@pytest.mark.parametrize("stream", STREAMS)
def test_every_surprise_goes_the_ordinary_way(stream: Any) -> None:
    rng = np.random.default_rng(4)
    source = stream(rng)
    while source.kind is JointState and source.reader._with_velocity:
        source = stream(rng)  # such a state may be rejected for a velocity
    first, second = (serialize_message(source.message(rng, Time(sec=sec))) for sec in (1, 2))
    names, source.names = source.names, source.names[::-1]
    renamed = serialize_message(source.message(rng, Time(sec=3)))
    assert names != source.names
    whole = len(Serialiser(source.name)(deserialised(second, source.kind)))
    cut = [second[:length] for length in range(whole)]
    for other in (renamed, b"\0\0" + second[2:], b"\0\x03" + second[2:], *cut):
        source.reader.read(first)
        assert goes_by_bytes(source, second) and not goes_by_bytes(source, other)
        assert from_bytes(source.reader, other) == from_message(source.reader, other, source.kind)


@pytest.mark.parametrize("stream", STREAMS)
def test_another_byte_order_says_the_same(stream: Any) -> None:
    rng = np.random.default_rng(5)
    source, store = Feedforwards(rng) if stream is Feedforwards else States(rng), ros_types()
    name = source.name
    learn(store, name)
    for sec in (1, 2):
        little = Serialiser(name)(source.message(rng, Time(sec=sec)))
        big = bytes(store.serialize_cdr(store.deserialize_cdr(little, name), name, little_endian=False))
        assert big != little and len(big) == len(little)
        assert from_bytes(source.reader, big) == from_bytes(source.reader, little)
        assert from_bytes(source.reader, little) == from_message(source.reader, big, source.kind)
