"""Traced functions compiled for programs to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.emit import batch_text
from hodyn_ros.codegen.kernel import Shape, Stack, straight_module, traced
from hodyn_ros.codegen.llvm import Facts, Module
from hodyn_ros.codegen.processor import lanes
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


def side_by_side(trace: Trace, shapes: Sequence[Shape]) -> Code:
    """Compile `void f(double *argument, ..., double *result, int64_t count)` of samples in lanes."""
    module = Module(_lanes_module, trace, shapes, lanes())
    code, (n,) = module.compile("hodyn_batch"), module.facts
    one, sizes = computes(trace, shapes), [rows * columns for rows, columns in shapes]

    def compute(*arguments: Any) -> None:
        *inputs, result, count = arguments
        for i in range(count):
            one(*(x[i * size :] for x, size in zip(inputs, sizes)), result[i * n :])

    return Code("hodyn_batch", code.address, compute, code)


def _lanes_module(trace: Trace, shapes: Sequence[Shape], width: int) -> tuple[str, Facts]:
    graph, outputs, _ = traced(trace, shapes)
    return batch_text(graph, outputs, [rows * columns for rows, columns in shapes], width), (len(outputs),)


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
