"""Arrays and names of a robot's description, checked and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Array


def frozen_array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return values as a read-only array of a known shape, all numbers finite; ModelError names the array."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be numbers of shape {shape}: {error}") from error
    if array.shape != shape:
        raise ModelError(f"{name} must have shape {shape}, found {array.shape}")
    if not np.isfinite(array).all():
        place: Any = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"{name}{list(place)} is {array[place]}; all numbers must be finite")
    array.setflags(write=False)
    return array


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
