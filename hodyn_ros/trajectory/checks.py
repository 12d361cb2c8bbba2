"""Checks of the numbers and names that a trajectory is built from; each error names the thing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import SupportsIndex

from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.errors import InputError, ShapeError


def frozen_array(name: str, values: ArrayLike, shape: tuple[int | str, ...]) -> Array:
    """Return a read-only float64 copy of `values` after checking its shape and that every number is finite.

    A letter in `shape` stands for any length of at least one, as in `("m", 7)`.
    """
    spelled = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    array = real_array(name, values, spelled).copy()
    fits = len(array.shape) == len(shape) and all(
        length >= 1 if isinstance(wanted, str) else length == wanted
        for length, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise ShapeError(name, spelled, array.shape)
    check_finite(name, array)
    array.setflags(write=False)
    return array


def real_number(name: str, value: float, *, positive: bool = False) -> float:
    """Return `value` as a float after checking that it is finite, and above zero if it must be `positive`."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a number, found {value!r}") from error
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, found {number}")
    if positive and number <= 0.0:
        raise InputError(f"{name} must be above zero, found {number}")
    return number


def duration_or_endless(value: float) -> float:
    """Return a duration [s] after checking that it is above zero; infinite means without end."""
    return math.inf if value == math.inf else real_number("duration", value, positive=True)


def whole_number(name: str, value: SupportsIndex, lowest: int, highest: int | None = None) -> int:
    """Return `value` as an int after checking that it is one and lies between `lowest` and `highest`."""
    bounds = f"of at least {lowest}" if highest is None else f"from {lowest} to {highest}"
    try:
        number = index(value)
    except TypeError as error:
        raise InputError(f"{name} must be a whole number {bounds}, found {value!r}") from error
    if number < lowest or (highest is not None and number > highest):
        raise InputError(f"{name} must be a whole number {bounds}, found {number}")
    return number


def unique_names(names: Iterable[str] | None, n_joints: int) -> tuple[str, ...] | None:
    """Return the joint names as a tuple after checking that there is one per joint and none twice."""
    if names is None:
        return None
    result = (names,) if isinstance(names, str) else tuple(names)
    if len(result) != n_joints:
        raise InputError(f"joint_names must hold {n_joints} names, one per joint, found {list(result)}")
    for i, name in enumerate(result):
        if not isinstance(name, str) or not name:
            raise InputError(f"joint_names[{i}] must be a name, found {name!r}")
        if name in result[:i]:
            raise InputError(f"joint {name!r} appears twice in joint_names")
    return result
