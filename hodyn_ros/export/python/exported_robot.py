"""Exported functions of a robot, called from Python: NumPy and a shared object, nothing else.

`hodyn export --lang python` puts this file into the wheel of the robot as it is, so it imports nothing of
hodyn_ros.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Shape = tuple[int, ...]


class NoResultError(ArithmeticError):
    """A call has no result: loops that cannot be closed, a singular pose, or numbers beyond float64."""


class Signature(NamedTuple):
    """Names and shapes of what one function takes and gives, without leading axes."""

    inputs: Mapping[str, Shape]
    results: Mapping[str, Shape]


class ExportedRobot:
    """Functions of one robot; those of robots with loops continue from the positions of the last call.

    Arrays may have further axes in front, all the same ones: calls that are made one after the other. One
    thread uses one of these; each keeps a memory of its own. Functions raise ValueError for arrays of another
    shape or numbers that are not finite, and NoResultError where there is no result.
    """

    near_singularity: bool
    """Whether the last call came near a pose where the coordinates do not determine the motion."""

    _file: Path
    _prefix: str
    _signatures: Mapping[str, Signature]

    def __init__(self) -> None:
        library = ctypes.CDLL(str(self._file))
        functions = {
            name: _Function(getattr(library, f"{self._prefix}_{name}_calls"), name, signature)
            for name, signature in self._signatures.items()
        }
        self._functions = functions
        self._self_test = getattr(library, f"{self._prefix}_self_test")
        self._self_test.restype = ctypes.c_double
        size = getattr(library, f"{self._prefix}_memory_size")
        size.restype = ctypes.c_size_t
        self._home = getattr(library, f"{self._prefix}_memory_home")
        self._home.argtypes = [ctypes.c_void_p]
        self._memory = ctypes.create_string_buffer(size())
        self.reset()

    def reset(self) -> None:
        """Forget earlier calls: loops are closed from where the robot is described."""
        self._home(self._memory)
        self.near_singularity = False

    def self_test(self) -> float:
        """Make fixed calls and return their largest relative error; rounding leaves about 1e-14."""
        return float(self._self_test())

    def _call(self, name: str, *arguments: ArrayLike) -> list[Array]:
        near = ctypes.c_int(0)
        results = self._functions[name](self._memory, near, arguments)
        self.near_singularity = bool(near.value)
        return results


class _Function:
    """One function of the library; arrays of a single call are copied to places that stay."""

    def __init__(self, function: Any, name: str, signature: Signature) -> None:
        function.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * 4]
        function.restype = ctypes.c_long
        self._function, self._name, self._signature = function, name, signature
        self._inputs = [np.zeros(shape) for shape in signature.inputs.values()]
        self._results = [np.zeros(shape) for shape in signature.results.values()]
        self._places = _pointers(self._inputs), _pointers(self._results)

    def __call__(self, memory: Any, near: Any, arguments: Sequence[ArrayLike]) -> list[Array]:
        arrays = [np.asarray(array, dtype=np.float64) for array in arguments]
        axes = _checked(self._name, self._signature.inputs, arrays)
        if not axes:
            for place, array in zip(self._inputs, arrays):
                np.copyto(place, array)
            if not self._function(1, memory, ctypes.byref(near), *self._places):
                raise self._error(arrays, ())
            return [result.copy() for result in self._results]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        results = [np.empty((*axes, *shape)) for shape in self._signature.results.values()]
        count, places = math.prod(axes), (_pointers(arrays), _pointers(results))
        done = self._function(count, memory, ctypes.byref(near), *places)
        if done < count:
            which = np.unravel_index(done, axes)
            raise self._error([array[which] for array in arrays], tuple(map(int, which)))
        return results

    def _error(self, arrays: Sequence[Array], which: Shape) -> Exception:
        where = f"{self._name} of call {which}" if which else self._name
        for argument, array in zip(self._signature.inputs, arrays):
            if not np.isfinite(array).all():
                return ValueError(f"{argument} of {where} holds NaN or infinity")
        return NoResultError(
            f"{where} has no result: its loops cannot be closed from the positions of the last success, the "
            "pose is singular, or numbers exceed what float64 holds. Lead the robot there in steps of less "
            "than half a radian, or start anew with reset()"
        )


def _checked(name: str, shapes: Mapping[str, Shape], arrays: Sequence[Array]) -> Shape:
    """Return the axes in front, which are those of all arrays."""
    fronts = set()
    for (argument, shape), array in zip(shapes.items(), arrays):
        front = array.ndim - len(shape)
        if front < 0 or array.shape[front:] != shape:
            raise ValueError(
                f"{argument} of {name} has shape {array.shape}; give one of shape {shape}, or several with "
                "further axes in front"
            )
        fronts.add(array.shape[:front])
    if len(fronts) > 1:
        raise ValueError(
            f"the arrays of {name} have different axes in front: {', '.join(map(str, sorted(fronts)))}"
        )
    return fronts.pop()


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.__array_interface__["data"][0] for array in arrays))
