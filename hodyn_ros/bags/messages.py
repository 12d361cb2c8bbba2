"""What a bag holds: topics, and messages as bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from rosbags.interfaces import Qos

from hodyn_ros.errors import InputError

# How bags name the languages of definitions; an introspected service may have "unknown" and no definition.
MSG, IDL, UNKNOWN = "ros2msg", "ros2idl", "unknown"

LATEST = 2**63 - 1  # [ns] the last time that a bag can hold


class DamagedError(InputError):
    """Bytes of a recording are not what they should be."""


@dataclass(frozen=True)
class Topic:
    """A topic of a recording."""

    name: str
    type: str  # such as hodyn_ros/msg/DesiredMotion
    definition: str = ""  # the text that defines the type and its parts; empty where the bag has none
    encoding: str = ""  # the language of the definition
    hash: str = ""  # RIHS01_..., the type hash of REP 2016; empty where the bag does not say
    qos: tuple[Qos, ...] = ()  # what the publishers offered
    serialization: str = "cdr"  # how the messages are written as bytes


class Message(NamedTuple):
    """A message as it was recorded."""

    topic: str
    time: int  # when it was recorded [ns]
    data: bytes  # serialised (CDR)


def stamp_of(data: bytes) -> int:
    """Return the stamp [ns] of a serialised message that begins with a header."""
    if len(data) < 12:
        raise DamagedError(f"a message of {len(data)} bytes has no header")
    # after four bytes that hold the encoding, the second of them the order of bytes
    second, nanosecond = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, 4)
    return int(second) * 1_000_000_000 + int(nanosecond)
