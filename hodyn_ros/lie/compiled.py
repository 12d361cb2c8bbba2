"""Conversions of stacks with a pose as machine code, traced from what stands in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.kernel import Kernel, Noted, Stack
from hodyn_ros.codegen.object_cache import KEPT

_LONGEST = 16  # rows of a stack for which conversions are compiled, in half a second at most


def compiled(convert: Callable[..., Array]) -> Callable[..., Array]:
    """Let a function of a pose (..., 4, 4) and stacks by order (orders, ..., 6) be machine code.

    That is of arrays, of one sample or with one axis of samples. Lists, and all else, stay in NumPy. Raises
    OverflowingError where numbers are too large.
    """
    careful = finite_result(convert)

    @lru_cache(maxsize=KEPT)
    def kernel(*orders: int) -> Kernel:
        def trace(pose: Any, *stacks: Any) -> Stack:
            arrays = [np.array(stack, dtype=object).reshape(-1, 6) for stack in stacks]
            result = convert(np.array(pose, dtype=object), *arrays)
            return Noted(result.reshape(-1, result.shape[-1]).tolist(), *result.shape)

        return Kernel(trace, [("the pose", (4, 4)), *[("the motion", (count, 6)) for count in orders]])

    @wraps(convert)
    def converted(pose: Array, *stacks: Sequence[Array] | Array) -> Array:
        samples = pose.shape[:-2]
        if pose.dtype != np.float64 or len(samples) > 1 or not all(_fits(stack, samples) for stack in stacks):
            return careful(pose, *stacks)
        code = kernel(*map(len, stacks))
        if not samples:
            return code.function(pose, *stacks).reshape(code.noted)  # type: ignore[no-any-return]
        arrays = [pose, *[np.asarray(stack).swapaxes(0, 1) for stack in stacks]]
        result = code.batch(*map(np.ascontiguousarray, arrays))
        return result.reshape(-1, *code.noted).swapaxes(0, 1)

    return converted


def _fits(stack: Sequence[Array] | Array, samples: tuple[int, ...]) -> bool:
    if not isinstance(stack, np.ndarray) or stack.dtype != np.float64 or len(stack) > _LONGEST:
        return False
    return stack.shape[1:] == (*samples, 6) and 0 not in samples
