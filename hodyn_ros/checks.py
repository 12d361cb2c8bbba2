"""Checks of arrays that public calls are given; a rejection names the array, what was expected and found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError, NotFiniteError, OverflowingError, ShapeError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def real_array(name: str, values: ArrayLike | None, shape: str) -> Array:
    """Return values as a C-contiguous float64 array; `shape` says in the error what was expected."""
    if values is None:
        raise InputError(f"{name} is None; give an array of shape {shape}")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("found complex ones")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold real numbers of shape {shape}: {error}") from None


def n_axes(values: object) -> int:
    """Return how many axes an argument has before it is checked; none of what is no array, as uneven rows."""
    try:
        return np.ndim(values)  # type: ignore[arg-type]
    except ValueError:
        return 0


def check_finite(name: str, array: Array) -> None:
    """Reject NaN and infinite numbers, naming the first."""
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise NotFiniteError(name, place)


def shaped_array(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Return values as a C-contiguous float64 array of a known shape."""
    array = real_array(name, values, str(shape))
    if array.shape != shape:
        raise ShapeError(name, shape, array.shape)
    return array


def finite_array(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Return values as a C-contiguous float64 array of a known shape, all numbers finite."""
    array = shaped_array(name, values, shape)
    check_finite(name, array)
    return array


def check_out(out: Any, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> None:
    """Reject an array that results cannot be written to."""
    fits = isinstance(out, np.ndarray) and out.dtype == dtype and out.shape == shape
    if fits and out.flags.carray:
        return
    name = np.dtype(dtype).name
    if not fits:
        passed = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else repr(out)
        raise InputError(f"out must be a {name} array of shape {shape}, found {passed}")
    raise InputError(f"out must be a C-contiguous, aligned, writable {name} array of shape {shape}")


def into(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return a call that can write its result into an array, `out`."""

    def compiled(*arguments: Array, out: Array | None = None) -> Array:
        result = call(*arguments)
        if out is None:
            return result
        check_out(out, result.shape)
        out[...] = result
        return out

    return compiled


def check_result(*arrays: Array) -> None:
    """Reject results, or what is to be decomposed on the way to them, that are not finite."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise OverflowingError("the result overflows: the numbers given are too large")


def finite_result(call: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let a public call, whose arguments are finite, raise OverflowingError where its result is not.

    Arrays count, and those in tuples, lists and dataclasses.
    """

    @wraps(call)
    def checked(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        with np.errstate(over="ignore", invalid="ignore"):
            result = call(*arguments, **named)
        check_result(*_arrays_in(result))
        return result

    return checked


def _arrays_in(result: Any) -> list[Any]:
    if isinstance(result, (np.ndarray, float)):
        return [result]
    parts = vars(result).values() if is_dataclass(result) else result
    parts = [part for part in parts if isinstance(part, (np.ndarray, float, tuple, list))]
    return [array for part in parts for array in _arrays_in(part)]
