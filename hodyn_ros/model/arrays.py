"""Arrays and names of a robot's description, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError, nearest

_UNIT_TOLERANCE = 1e-9


def frozen_array(name: str, values: ArrayLike, shape: tuple[int, ...] | None) -> Array:
    """Return values as a read-only array of a shape, None for any, all finite; ModelError names the array."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        of_shape = "" if shape is None else f" of shape {shape}"
        raise ModelError(f"{name} must be numbers{of_shape}: {error}") from error
    if shape is not None and array.shape != shape:
        raise ModelError(f"{name} must have shape {shape}, found {array.shape}")
    if not np.isfinite(array).all():
        place: Any = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"{name}{list(place)} is {array[place]}; all numbers must be finite")
    array.setflags(write=False)
    return array


def is_turn(matrix: Array) -> bool:
    """Tell whether the columns of a matrix (3, 3) are those of a right-handed frame."""
    return bool(
        np.abs(matrix.T @ matrix - np.eye(3)).max() <= _UNIT_TOLERANCE and np.linalg.det(matrix) > 0.0
    )


def parent_indices(parents: Sequence[int]) -> tuple[int, ...]:
    """Return the parents of bodies as integers; ModelError where they are none."""
    try:
        return tuple(int(parent) for parent in np.asarray(parents, dtype=int).reshape(-1))
    except (TypeError, ValueError) as error:
        raise ModelError(f"parents must be integers, one per body: {error}") from error


def check_parents(parents: Sequence[int], names: Sequence[str]) -> None:
    """Refuse parents that do not come before their children; ModelError names the body."""
    for i, parent in enumerate(parents):
        if not -1 <= parent < i:
            raise ModelError(
                f"body {names[i]!r} (index {i}) has parent {parent}; a parent is -1 (the world) or a body "
                "listed before its child"
            )


def known_fields(what: str, kind: type, values: Any) -> dict[str, Any]:
    """Return a mapping whose keys are fields of the dataclass `kind`; ModelError names the odd one."""
    if not isinstance(values, Mapping):
        raise ModelError(f"{what} must be a {kind.__name__} or a mapping, found {type(values).__name__}")
    known = {field.name: field for field in fields(kind)}
    for key in values:
        if key not in known:
            raise ModelError(f"{what} has no {key!r}; {nearest(str(key), list(known))}")
    for key, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and key not in values:
            raise ModelError(f"{what} misses {key!r}")
    return dict(values)


def rounded(array: Array) -> Array:
    """Return numbers with those that miss a whole one by rounding alone set right."""
    nearest = np.round(array)
    result: Array = np.where(np.abs(array - nearest) < 1e-15, nearest, array)
    return result


def unique_names(what: str, names: Sequence[str] | None, count: int, prefix: str) -> tuple[str, ...]:
    """Return so many different names, numbered ones if None are given; ModelError names those repeated."""
    if names is None:
        return tuple(f"{prefix}{i + 1}" for i in range(count))
    result = tuple(str(name) for name in names)
    if len(result) != count:
        raise ModelError(f"{what} must hold {count} names, found {len(result)}")
    repeated = sorted({name for name in result if result.count(name) > 1})
    if repeated:
        raise ModelError(f"{what} holds {repeated} more than once; every name must be unique")
    return result


def index_in(names: Sequence[str], key: object) -> int | None:
    """Return the place of a name, given itself or by its index; None for anything else."""
    if isinstance(key, str):
        try:
            return names.index(key)
        except ValueError:
            return None
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and 0 <= key < len(names):
        return int(key)
    return None


def counted(number: int, word: str, plural: str = "") -> str:
    """Return a number with its word, `plural` or with an s where it is not one.

    >>> counted(1, "drive"), counted(2, "drive")
    ('1 drive', '2 drives')
    """
    return f"{number} {word if number == 1 else plural or word + 's'}"
