"""Traced functions compiled for programs to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, Stack, straight_module
from hodyn_ros.codegen.llvm import Module
from hodyn_ros.codegen.program import Code

Trace = Callable[..., Stack]


class TooLong(Exception):
    """Code would take too long to compile."""


def straight_line(trace: Trace, shapes: Sequence[Shape], limit: float = inf) -> Code:
    """Compile `void f(double *argument, ..., double *result)`; TooLong beyond a limit of operations."""
    module = Module(straight_module, trace, shapes)
    if module.facts[0] > limit:
        raise TooLong
    code = module.compile("hodyn_kernel")
    return Code("hodyn_kernel", code.address, computes(trace, shapes), code)


def uncompiled(trace: Trace, shapes: Sequence[Shape]) -> Code:
    """Return what can be carried out on numbers alone."""
    return Code("hodyn_kernel", compute=computes(trace, shapes))


def computes(trace: Trace, shapes: Sequence[Shape]) -> Callable[..., None]:
    """Return a trace as a function of flat arrays that writes to the last one.

    All numbers of that are NaN where machine code would divide by zero.
    """

    def compute(*arrays: NDArray[np.float64]) -> None:
        *inputs, result = arrays
        stacks = [
            x[: rows * columns].reshape(rows, columns).tolist() for x, (rows, columns) in zip(inputs, shapes)
        ]
        try:
            with np.errstate(all="ignore"):
                values = [value for row in trace(*stacks) for value in row]
        except (ZeroDivisionError, OverflowError):  # singular there, or numbers too large
            result[:] = np.nan
            return
        result[: len(values)] = values

    return compute
