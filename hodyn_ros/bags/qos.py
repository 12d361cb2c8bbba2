"""What publishers have offered, as text in a bag."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import yaml
from rosbags.interfaces import Qos
from rosbags.rosbag2 import ReaderError
from rosbags.rosbag2.metadata import dump_qos_v9, parse_qos

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
