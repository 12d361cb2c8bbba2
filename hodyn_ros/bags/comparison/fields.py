"""The fields of a message, flat: numbers as arrays, texts as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
Value = Numbers | str


def flat_fields(message: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the fields of a message of the library rosbags, by names such as "header.stamp.sec".

    A field of numbers comes as an array (n,), one for a single number; texts come one by one. Constants are
    no fields; ROS has them in capitals.
    """
    if isinstance(message, str):
        yield path, message
    elif is_dataclass(message):
        for field in fields(message):
            if field.name.isupper():
                continue
            below = f"{path}.{field.name}" if path else field.name
            yield from flat_fields(getattr(message, field.name), below)
    elif isinstance(message, list):
        for place, part in enumerate(message):
            yield from flat_fields(part, f"{path}[{place}]")
    else:
        yield path, np.atleast_1d(np.asarray(message))


_OF_PROPELLERS = ("thrusts", "tilts")
_OF_BODIES = ("base_wrenches", "wrenches")  # components, which may be as many as joints


def names_of_elements(message: Any, field: str) -> list[str]:
    """Return the joints or propellers that a field of a message is about; nothing where it names none."""
    if field in _OF_BODIES:
        return []
    if field in _OF_PROPELLERS:
        return list(getattr(message, "propeller_names", None) or [])
    return list(getattr(message, "joint_names", None) or getattr(message, "name", None) or [])
