"""Where the numbers of a serialised message stand, to read the next one of a stream without taking it apart.

From one message of a stream to the next only the stamp and the numbers differ. So the first one is taken
apart by the middleware, and checked. Where its numbers stand among its bytes is kept, and the next ones are
read from there as long as every other byte is as it was. Whatever differs (other names, other lengths,
another byte order) is taken apart again.

The bytes are CDR as ROS 2 sends it: XCDR1, little endian, behind four bytes that say so.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header

from hodyn_ros.array import Array
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

Places = NDArray[np.intp]
Content = TypeVar("Content")

STAMP = slice(4, 12)  # of every message that begins with a header
_PACKED_STAMP = struct.Struct("<iI")
_LITTLE_ENDIAN = b"\0\1"  # the first two of the four bytes; the others may say how many are left at the end
_FORMATS = {
    "boolean": "?", "octet": "B", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I",
    "int32": "i", "uint64": "Q", "int64": "q", "float": "f", "double": "d",
}  # fmt: skip
_STAMP_FIELDS = ("header.stamp.sec", "header.stamp.nanosec")


class Single(NamedTuple):
    """Where a field that is one number stands in the bytes of a message, and how."""

    offset: int
    format: str  # of `struct`

    def read(self, data: bytes) -> Any:
        """Return the number."""
        return struct.unpack_from(self.format, data, self.offset)[0]

    def write(self, data: memoryview, number: Any) -> None:
        """Put a number in its place."""
        struct.pack_into(self.format, data, self.offset, number)


def deserialised(data: bytes, kind: Any) -> Any:
    """Return the message that some bytes are; raises MessageRejected where they are none."""
    try:
        return deserialize_message(data, kind)
    except Exception as error:  # each middleware has errors of its own
        raise MessageRejected(
            Reason.MALFORMED, f"its bytes are no {kind.__name__} ({error}); is the publisher of this version?"
        ) from error


def packed(stamp: Time) -> bytes:
    """Return the eight bytes of a stamp."""
    return _PACKED_STAMP.pack(stamp.sec, stamp.nanosec)


def unpacked(stamp: bytes) -> Time:
    """Return the stamp that eight bytes are."""
    second, nanosecond = _PACKED_STAMP.unpack(stamp)
    return Time(sec=second, nanosec=nanosecond)


def instant(stamp: bytes) -> int:
    """Return what the eight bytes of a stamp say [ns]."""
    second, nanosecond = _PACKED_STAMP.unpack(stamp)
    return int(second) * 1_000_000_000 + int(nanosecond)


class Layout:
    """Where the numbers of a serialised message stand.

    Those in `changing`, and the stamp, may change from message to message, as all float64 may; other numbers
    are part of how it is laid out.
    """

    def __init__(self, msg: Any, options: bytes, changing: Collection[str] = ()) -> None:
        self.data = bytearray(_LITTLE_ENDIAN + options)
        self.singles: dict[str, Single] = {}  # by field
        self._changing = {*changing, *_STAMP_FIELDS}
        self._numbers: dict[str, range] = {}  # places among the float64 behind the first four bytes, by field
        self._same = bytearray(b"\1\1\1\1")  # 1 for each byte that is as it is from message to message
        self._meant = bytearray(b"\1\1\1\1")  # 1 for each byte that means something
        self._add_message(msg, "")
        self.words = (len(self.data) - 4) // 8
        self._mask = _mask(self._same)
        self._expected = int.from_bytes(self.data, "little") & self._mask

    @classmethod
    def of(cls, msg: Any, data: bytes, changing: Collection[str] = ()) -> Layout | None:
        """Return the layout of a message that came as `data`; None where that is laid out in another way."""
        layout = cls(msg, data[2:4], changing)
        differences = int.from_bytes(data, "little") ^ int.from_bytes(layout.data, "little")
        return layout if layout.fits(data) and not differences & _mask(layout._meant) else None

    def fits(self, data: bytes) -> bool:
        """Whether a message differs in nothing but stamp, numbers, and what nobody reads behind it."""
        # one operation on a large integer, instead of a comparison for each run of bytes
        return len(data) >= len(self.data) and int.from_bytes(data, "little") & self._mask == self._expected

    @property
    def number_fields(self) -> set[str]:
        """The fields that hold numbers: those of float64, and single ones of any kind."""
        return {*self._numbers, *self.singles}

    def numbers(self, *fields: str) -> Places:
        """Return the places of the numbers in some fields, one field after the other."""
        return np.array([place for field in fields for place in self._numbers.get(field, ())], dtype=np.intp)

    def float64s(self, data: bytes) -> Array:
        """Return the memory of a message that fits, for `numbers` to choose from."""
        return np.frombuffer(data, np.float64, self.words, 4)

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
        elif kind.startswith("double["):  # as many as its type says
            self._add_numbers(value, name)
        elif kind == "string":
            text = value.encode() + b"\0"
            self._add_bytes(struct.pack("<I", len(text)), 4)
            self._add_bytes(text, 1)
        elif kind in _FORMATS:
            raw = struct.pack("<" + _FORMATS[kind], value)
            if kind == "double":
                self._add_numbers([value], name)
            else:
                self._add_bytes(raw, len(raw), same=name not in self._changing)
            self.singles[name] = Single(len(self.data) - len(raw), "<" + _FORMATS[kind])
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
        self._meant += bytes(free) + bytes([1]) * len(raw)
        return len(self.data) - len(raw)


def _mask(marks: bytearray) -> int:
    """Return the integer, little endian, whose bytes are full where they are marked with a one."""
    return int.from_bytes(bytes(255 * mark for mark in marks), "little")


class StreamReader(ABC, Generic[Content]):
    """Reads serialised messages of one type: those laid out as the one before from their bytes alone.

    `changing`: its fields of one number, other than float64, that change from message to message.
    """

    def __init__(self, kind: Any, changing: Collection[str] = ()) -> None:
        self.header = Header()  # of the last message that was taken apart; all since have its frame
        self._kind, self._changing = kind, changing
        self._layout: Layout | None = None

    def read(self, data: bytes) -> tuple[bytes, Content]:
        """Return the stamp of a message, see `instant`, and what it holds; raises MessageRejected."""
        layout = self._layout
        if layout is not None and layout.fits(data):
            content = self.from_numbers(layout.float64s(data), data)
            if content is not None:
                return data[STAMP], content
        msg = deserialised(data, self._kind)
        content = self.from_message(msg)
        self.header, self._layout = msg.header, Layout.of(msg, data, self._changing)
        if self._layout is not None:
            self.learn(self._layout, msg)
        return packed(msg.header.stamp), content

    @abstractmethod
    def from_message(self, msg: Any) -> Content:
        """Return what a message holds; raises MessageRejected."""

    @abstractmethod
    def learn(self, layout: Layout, msg: Any) -> None:
        """Note where the numbers of messages like this one stand."""

    @abstractmethod
    def from_numbers(self, numbers: Array, data: bytes) -> Content | None:
        """Return the same from the bytes of another; None where it has to be taken apart, or is wrong."""
