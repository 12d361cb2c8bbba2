"""Desired motions and their answers as the bytes that travel, without messages of Python in between.

From one sample of a stream to the next only the stamp and the numbers differ. So the first message goes the
ordinary way, by `messages`, which checks its names and lengths. Where its numbers stand among its bytes is
kept, and the next ones are read from there as long as every other byte is as it was. Whatever differs (other
names, other lengths, another byte order) goes the ordinary way again.

The bytes are CDR as ROS 2 sends it: XCDR1, little endian, behind four bytes that say so.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header

from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.lie.motion import BaseMotion, Frame
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.fields import JointOrder, all_finite
from hodyn_ros.ros.conversions.messages import (
    EFFORT_FIELDS,
    MOTION_FIELDS,
    MOTOR_EFFORT_FIELDS,
    MOTOR_POSITION_FIELDS,
    base_motion,
    write_feedforward_torque,
    write_wrenches,
)
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_LITTLE_ENDIAN = b"\0\1"  # the first two of the four bytes; the other two are options that say nothing here
_STAMP = slice(4, 12)  # of every message that begins with a header
_FORMATS = {"uint8": "B", "int32": "i", "uint32": "I", "double": "d"}
_POSE = tuple(f"base_pose.{part}" for part in ("position.x", "position.y", "position.z"))
_QUATERNION = tuple(f"base_pose.orientation.{axis}" for axis in "xyzw")


def read_message(data: bytes) -> DesiredMotion:
    """Return the desired motion that some bytes are; raises MessageRejected where they are none."""
    try:
        msg: DesiredMotion = deserialize_message(data, DesiredMotion)
    except Exception as error:  # each middleware has errors of its own
        raise MessageRejected(
            Reason.MALFORMED, f"its bytes are no desired motion ({error}); is the publisher of this version?"
        ) from error
    return msg


class Sample(NamedTuple):
    """What a desired motion holds, in the model's order of joints."""

    stamp: int  # [ns]
    motion: Array  # (orders, n)
    base: BaseMotion | None


class MotionReader:
    """Reads serialised motions that are laid out as the last one that was read the ordinary way.

    `orders` of the joints, positions included; the twists of a base have one less.
    """

    def __init__(self, joints: JointOrder, orders: int, moves_base: bool) -> None:
        self.header: Header | None = None  # of the layout known, its stamp aside
        self._joints = joints
        self._orders = orders
        self._moves_base = moves_base
        self._layout: _Layout | None = None

    def learn(self, data: bytes, msg: DesiredMotion) -> None:
        """Take the layout of a message that was found right, and of the bytes that it came in."""
        self._layout = layout = _Layout.of(msg, data)
        if layout is None:
            return
        self.header = msg.header
        n = len(self._joints)
        rows = layout.numbers(*MOTION_FIELDS, "higher_derivatives").reshape(-1, n) if n else np.empty((0, 0))
        order = self._joints.places(msg.joint_names) if n else None
        self._motion = np.ascontiguousarray(rows if order is None else rows[:, order], dtype=np.intp)
        self._representation = msg.base_twist_representation
        if self._moves_base:
            self._pose = layout.numbers(*_POSE, *_QUATERNION)
            self._twists = layout.numbers("base_twists").reshape(-1, 6)

    def read(self, data: bytes) -> Sample | None:
        """Return what a motion holds; None where the ordinary way has to read it, or to say what is wrong."""
        layout = self._layout
        if layout is None or not layout.fits(data):
            return None
        numbers = np.frombuffer(data, np.float64, layout.words, 4)
        motion = numbers.take(self._motion)
        base = None
        if self._moves_base:
            pose, twists = numbers.take(self._pose), numbers.take(self._twists)
            if not all_finite(twists):
                return None
            try:
                base = base_motion(pose[:3], pose[3:], twists[: self._orders - 1], self._representation)
            except MessageRejected:
                return None
        if not all_finite(motion):
            return None
        second, nanosecond = struct.unpack_from("<iI", data, _STAMP.start)
        n = motion.shape[1]
        stack = motion[: self._orders] if n else np.empty((self._orders, 0))
        return Sample(second * 1_000_000_000 + nanosecond, stack, base)


class AnswerWriter:
    """Writes answers into the bytes of the one before, as long as only stamp and numbers differ."""

    def __init__(
        self,
        joint_names: Sequence[str],
        propellers: Sequence[str],
        wrench_bodies: Sequence[str],
        wrench_frame: Frame,
    ) -> None:
        self._joint_names = list(joint_names)
        self._propellers = list(propellers)
        self._wrench_bodies = wrench_bodies
        self._wrench_frame: Frame = wrench_frame
        self._shape: tuple[object, ...] = ()  # of what is prepared
        self._prepared: _PreparedAnswer | None = None

    def message(
        self, header: Header, feedforward: Feedforward, wrenches: Array | None, computation_time: float
    ) -> FeedforwardTorque:
        """Return the answer as a message; `wrenches` (bodies, orders, 6) are those it assumes."""
        msg = write_feedforward_torque(
            header, self._joint_names, feedforward, computation_time, self._propellers
        )
        if wrenches is not None:
            write_wrenches(msg, self._wrench_bodies, wrenches, self._wrench_frame)
        return msg

    def write(
        self,
        question: bytes,
        header: Header,
        feedforward: Feedforward,
        wrenches: Array | None,
        computation_time: float,
    ) -> bytes:
        """Return the answer as bytes, with the stamp of the motion `question` and the rest of `header`."""
        efforts, positions, motor_efforts, base_wrenches, status, thrusts, tilts = feedforward
        positions = positions[: len(MOTOR_POSITION_FIELDS)]  # motors move to higher orders than are sent
        others = [base_wrenches, thrusts, tilts, _NO_WRENCHES if wrenches is None else wrenches]
        stacks = [efforts, positions, motor_efforts, *others]
        shape = header.frame_id, wrenches is None, *[stack.shape for stack in stacks]
        if shape == self._shape and self._prepared is not None:
            return self._prepared.filled(question[_STAMP], stacks, computation_time, status)
        msg = self.message(header, feedforward, wrenches, computation_time)
        data: bytes = serialize_message(msg)
        if shape != self._shape:
            self._prepared, self._shape = _PreparedAnswer.of(msg, data), shape
        return data[: _STAMP.start] + question[_STAMP] + data[_STAMP.stop :]


_NO_WRENCHES = np.empty((0, 0, 6))
_STACKS = (EFFORT_FIELDS, MOTOR_POSITION_FIELDS, MOTOR_EFFORT_FIELDS)
_HIGHER = ("higher_effort_derivatives", "", "higher_motor_effort_derivatives")


class _PreparedAnswer:
    """The bytes of an answer, to be filled in again and again."""

    def __init__(self, layout: _Layout) -> None:
        # begins so that what stands on eights behind the four bytes does so in memory, too
        memory = np.zeros(layout.words + 2)
        self._numbers = memory[1:]
        self._bytes = memory.data.cast("B")[4 : 4 + len(layout.data)]
        self._bytes[:] = layout.data
        self._places = [
            *[layout.numbers(*fields, higher) for fields, higher in zip(_STACKS, _HIGHER)],
            *[layout.numbers(field) for field in ("base_wrenches", "thrusts", "tilts", "wrenches")],
        ]
        (self._computation_time,) = layout.numbers("computation_time")
        self._status = layout.scalars["status"]

    @classmethod
    def of(cls, msg: FeedforwardTorque, data: bytes) -> _PreparedAnswer | None:
        """Prepare for answers like a message that is `data`; None where that is laid out in another way."""
        layout = _Layout.of(msg, data)
        return None if layout is None else cls(layout)

    def filled(self, stamp: bytes, stacks: Sequence[Array], computation_time: float, status: int) -> bytes:
        self._bytes[_STAMP] = stamp
        for places, stack in zip(self._places, stacks):
            self._numbers[places] = stack.reshape(-1)
        self._numbers[self._computation_time] = computation_time
        struct.pack_into("<I", self._bytes, self._status, status)
        return bytes(self._bytes)


class _Layout:
    """Where the numbers of a serialised message stand."""

    def __init__(self, msg: Any) -> None:
        self.data = bytearray(_LITTLE_ENDIAN + b"\0\0")
        self.scalars: dict[str, int] = {}  # offsets by field
        self._numbers: dict[str, range] = {}  # places among the float64 behind the first four bytes, by field
        self._same = bytearray(b"\1\1\0\0")  # 1 for each byte that is as it is from message to message
        self._add_message(msg, "")
        self.words = (len(self.data) - 4) // 8
        self._same_places = np.flatnonzero(np.frombuffer(self._same, np.uint8))
        self._expected = self._same_bytes(self.data)

    @classmethod
    def of(cls, msg: Any, data: bytes) -> _Layout | None:
        """Return the layout of a message that came as `data`; None where that is laid out in another way."""
        layout = cls(msg)
        known = layout.fits(data) and layout._number_bytes(data) == layout._number_bytes(layout.data)
        return layout if known else None

    def fits(self, data: bytes) -> bool:
        """Whether a message differs in nothing but stamp, numbers, and what nobody reads behind it."""
        return len(data) >= len(self.data) and self._same_bytes(data) == self._expected

    def numbers(self, *fields: str) -> Places:
        """Return the places of the numbers in some fields, one field after the other."""
        return np.array([place for field in fields for place in self._numbers.get(field, ())], dtype=np.intp)

    def _same_bytes(self, data: bytes | bytearray) -> bytes:
        return np.frombuffer(data, np.uint8)[self._same_places].tobytes()

    def _number_bytes(self, data: bytes | bytearray) -> bytes:
        places = self.numbers(*self._numbers)
        return np.frombuffer(data, np.float64, self.words, 4)[places].tobytes()

    def _add_message(self, msg: Any, name: str) -> None:
        for field, kind in msg.get_fields_and_field_types().items():
            self._add(getattr(msg, field), kind, f"{name}{field}")

    def _add(self, value: Any, kind: str, name: str) -> None:
        if kind.startswith("sequence<"):
            self._add_bytes(struct.pack("<I", len(value)), 4)
            item = kind[len("sequence<") : -1].split(",")[0]
            if item == "double" and len(value):
                self._add_numbers(value, name)
            elif item != "double":
                for one in value:
                    self._add(one, item, name)
        elif kind == "string":
            text = value.encode() + b"\0"
            self._add_bytes(struct.pack("<I", len(text)), 4)
            self._add_bytes(text, 1)
        elif kind == "double":
            self._add_numbers([value], name)
        elif kind in _FORMATS:
            raw = struct.pack("<" + _FORMATS[kind], value)
            self.scalars[name] = self._add_bytes(raw, len(raw), same=not name.startswith("header.stamp"))
        else:
            self._add_message(value, f"{name}.")

    def _add_numbers(self, values: Sequence[float], name: str) -> None:
        start = (self._add_bytes(struct.pack(f"<{len(values)}d", *values), 8, same=False) - 4) // 8
        self._numbers[name] = range(start, start + len(values))

    def _add_bytes(self, raw: bytes, alignment: int, same: bool = True) -> int:
        """Add bytes behind as many as the alignment leaves free, which may be anything; return where."""
        free = -(len(self.data) - 4) % alignment
        self.data += bytes(free) + raw
        self._same += bytes(free) + bytes([same]) * len(raw)
        return len(self.data) - len(raw)
