"""What a bag holds: topics, and messages as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import yaml
from rosbags.interfaces import Qos
from rosbags.rosbag2 import ReaderError
from rosbags.rosbag2.metadata import dump_qos_v9, parse_qos

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


_LONGEST = 200_000  # characters; three hundred publishers


def read_qos(text: Any) -> tuple[Qos, ...]:
    """Return the profiles that a text names; none where it cannot be read, since no number depends on it."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return ()
    return _profiles(text)


@lru_cache  # topics have the same few, and reading them takes as long as reading a thousand messages
def _profiles(text: str) -> tuple[Qos, ...]:
    try:
        return tuple(parse_qos(text))
    except (ReaderError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return ()


def write_qos(profiles: Sequence[Qos]) -> str:
    """Return profiles as rosbag2 writes them into a storage, from version 9 on."""
    return yaml.safe_dump(dump_qos_v9(list(profiles)), sort_keys=False).strip() if profiles else ""
