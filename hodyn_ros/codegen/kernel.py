"""Traced functions, compiled and callable: one sample in the least time, batches in lanes and threads."""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache, cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.array import Array as Array
from hodyn_ros.checks import check_finite, check_out, check_result, finite_array
from hodyn_ros.codegen.emit import batch_text, kernel_text, shared_text, single_text
from hodyn_ros.codegen.fast_call import data_of, fast_call
from hodyn_ros.codegen.llvm import Facts, MachineCode, Module
from hodyn_ros.codegen.processor import lanes
from hodyn_ros.codegen.program import (
    All,
    Code,
    Compare,
    For,
    Index,
    Not,
    Program,
    Put,
    Return,
    Run,
    Statement,
    View,
    When,
    arrays,
    integer,
)
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.codegen.writers import CHECK
from hodyn_ros.errors import InputError

Stack = list[list[Any]]  # scalars by row and column
Shape = tuple[int, int]
_BatchCalls = tuple[Callable[..., int], Callable[..., int]]  # of one thread alone, and of each of several


class Noted(Stack):
    """A stack that a trace returns with whole numbers which its caller needs: what it has rows of, say.

    They are kept with the code. A trace that writes them elsewhere runs whenever it is compiled.
    """

    def __init__(self, rows: Iterable[list[Any]], *numbers: int) -> None:
        super().__init__(rows)
        self.numbers = numbers


STRAIGHT_LINE_LIMIT = 500_000  # operations; tracing them and LLVM take three seconds at most

_WORTHWHILE = 4096  # samples of a batch for every thread that is woken
_PART = 2048  # samples that a thread takes at a time


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="hodyn_batch")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of the threads


class Call:
    """Compiled code as a function of matrices.

    `function` is the fastest callable there is, `function(*arrays, out=None)`, with everything about the
    arrays checked in compiled code. `arguments` are the names and shapes of its arguments, `result` is the
    shape of its result.
    """

    function: Callable[..., Any]
    address: int

    def __init__(self, arguments: Sequence[tuple[str, Shape]], result: Shape) -> None:
        self.arguments = tuple(arguments)
        self.result = result

    def _bind(self, address: int, *, judged: bool = False) -> None:
        """Call the code at an address, `void f(const double* argument, ..., double* out)`, as `fast_call`."""
        self.address = address
        shapes = [shape for _, shape in self.arguments]
        self._call = ctypes.CFUNCTYPE(
            ctypes.c_int64 if judged else None, *[ctypes.c_void_p] * (len(shapes) + 1)
        )(address)
        self.function = fast_call(address, shapes, self.result, self._otherwise(), judged=judged)

    def _otherwise(self) -> Callable[..., Any]:
        """Return `_converted` of a copy that has no `function` yet.

        The function keeps what it passes calls on to. Were that this object, which keeps the function, the
        machine code of both would stay until the garbage collector looks through all old objects.
        """
        return copy(self)._converted

    @property
    def _asked(self) -> list[str]:
        """The names of the arguments that a caller knows of."""
        return [name for name, _ in self.arguments]

    def _check(self, out: Array) -> None:
        """Refuse a result that is none."""
        check_result(out)

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        """Call the code with arrays that fit."""
        self._call(*[array.ctypes.data for array in arrays], out.ctypes.data)
        self._check(out)

    def _converted(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Convert what is not an array yet, and explain what cannot be used."""
        if len(arguments) != len(self.arguments):
            names = self._asked
            result = len(arguments) - len(self.arguments) + len(names)
            raise InputError(f"expected {len(names)} arrays {names}, found {result}")
        arrays = [
            finite_array(name, values, shape) for (name, shape), values in zip(self.arguments, arguments)
        ]
        if out is None:
            out = np.empty(self.result)
        else:
            check_out(out, self.result)
        self._compute(arrays, out)
        return out


class Function(Call, ABC):
    """A compiled function of matrices; `code.address` is the bare C function."""

    def __init__(self, code: MachineCode, arguments: Sequence[tuple[str, Shape]], result: Shape) -> None:
        super().__init__(arguments, result)
        self.code = code
        self._bind(code.address)

    @cached_property
    @abstractmethod
    def batch_code(self) -> MachineCode:
        """The bare C function for batches, shared by the threads that call it with the same arguments.

        `int64_t f(const double*, ..., double* out, int64_t count, int64_t threads, int64_t thread, int64_t
        taken[threads][8])`, with zeros in `taken`. It returns whether any number in the samples computed by
        this thread may have been NaN, infinite or too large.
        """

    def batch(self, *arrays: Array, out: Array | None = None, threads: int | None = None) -> Array:
        """Return the results (N, ...) for N samples of every argument, (N, rows, columns) each.

        Several samples are computed at a time in the lanes of vector registers, in `threads` threads, by
        default as many as there are processors. The arrays are C-contiguous and all of one type, float64 or,
        of straight-line code, float32. `out` receives the results: a large new array costs as much time as
        what is written into it. Raises InputError for NaN and infinite numbers, and for those whose results
        are.
        """
        count, dtype = len(arrays[0]), arrays[0].dtype
        if out is None:
            out = np.empty((count, *self.result), dtype)
        else:
            check_out(out, (count, *self.result), dtype)
        alone, shared = self._batch_calls if dtype == np.float64 else self._single_calls
        places = [data_of(array) for array in arrays]
        places.append(data_of(out))
        parts = 1
        if count >= 2 * _WORTHWHILE:
            parts = max(1, min(threads or _processors(), count // _WORTHWHILE))
        if parts == 1:
            spoiled = alone(*places, count)
        else:
            taken = (ctypes.c_int64 * (8 * parts))()
            rest = [
                _pool(parts - 1).submit(shared, *places, count, parts, part, taken)
                for part in range(1, parts)
            ]
            # all have to be done with the arrays before an error may leave here
            spoiled = shared(*places, count, parts, 0, taken)
            spoiled = any([spoiled, *[other.result() for other in rest]])
        if spoiled:
            for (name, _), array in zip(self.arguments, arrays):
                check_finite(name, array)
            check_result(out)
        return out

    def _one_by_one(self) -> MachineCode:
        """Return code for batches that calls the code for one sample, and one that looks at its numbers."""
        shapes = [shape for _, shape in self.arguments]
        sizes = [rows * columns for rows, columns in [*shapes, self.result]]
        passed, checksum = arrays(f"a{i}" for i in range(len(sizes))), View("checksum")
        i, count = integer("i"), integer("count")
        sample = [view.at(i * size) for view, size in zip(passed, sizes)]
        look = Module(straight_module, _checksum, [*shapes, (1, 1)]).compile("hodyn_kernel")
        each: list[Statement] = [
            Run(Code("look", look.address, alive=look), [*sample[:-1], checksum, checksum]),
            Run(Code("kernel", self.code.address), sample),
        ]
        moderate = All([Compare(checksum, "<", inf), Compare(checksum, ">", -inf)])
        body: list[Statement] = [
            Put(checksum, 0.0),
            For(i, count, each),
            When(Not(moderate), [Return(Index.of(1))]),
        ]
        program = Program("hodyn_batch", [*passed, count], {"checksum": 1}, body, returns=True)
        beside = "declare i64 @llvm.smin.i64(i64, i64)\n" + shared_text(sizes, _PART)
        self._batches = compile_program(program, beside, "hodyn_shared")  # which holds what it runs
        return self._batches.code

    @cached_property
    def _single_calls(self) -> _BatchCalls:
        raise InputError("this robot is too large for batches of float32; use float64")

    @cached_property
    def _batch_calls(self) -> _BatchCalls:
        return self._calls(self.batch_code)

    def _calls(self, code: MachineCode) -> _BatchCalls:
        count = ctypes.c_int64
        kinds = [*[ctypes.c_void_p] * (len(self.arguments) + 1), count]
        alone = ctypes.CFUNCTYPE(count, *kinds)(code.beside("hodyn_alone"))
        return alone, ctypes.CFUNCTYPE(count, *kinds, count, count, ctypes.c_void_p)(code.address)


# What a kernel is compiled from, and code in other languages is written from: a function of one stack of
# scalars for every argument, with names and shapes of these.
Traceable = tuple[Callable[..., Stack], list[tuple[str, Shape]]]


class Kernel(Function):
    """A function of matrices, traced and compiled into straight-line code.

    `trace` takes one stack of scalars for every named shape in `arguments` and returns a stack. `operations`
    counts the additions, multiplications and divisions of one call, and `noted` are the numbers of a `Noted`.
    """

    def __init__(
        self,
        trace: Callable[..., Stack],
        arguments: Sequence[tuple[str, Shape]],
        module: Module | None = None,
    ) -> None:
        """Compile; `module`: that of `trace`, if there is one."""
        self._trace, self._shapes = trace, [shape for _, shape in arguments]
        module = module or _module(trace, arguments)
        self.operations, rows, columns, *self.noted = module.facts
        super().__init__(module.compile("hodyn_kernel"), arguments, (rows, columns))

    @staticmethod
    def unless_long(
        trace: Callable[..., Stack],
        arguments: Sequence[tuple[str, Shape]],
        limit: float | None = None,
        make: Callable[..., Kernel] | None = None,
    ) -> Kernel | None:
        """Compile; None where there are more operations than a limit, by default `STRAIGHT_LINE_LIMIT`.

        `make(trace, arguments, module)`: by default this class.
        """
        module = _module(trace, arguments)
        if module.facts[0] > (STRAIGHT_LINE_LIMIT if limit is None else limit):
            return None
        return (make or Kernel)(trace, arguments, module)

    @cached_property
    def batch_code(self) -> MachineCode:
        """See `Function`."""
        return Module(_batch, self._trace, self._shapes, lanes()).compile("hodyn_shared")

    @cached_property
    def single_code(self) -> MachineCode:
        """The bare C function for batches of float32, as `batch_code`."""
        return Module(_batch, self._trace, self._shapes, 2 * lanes(), True).compile("hodyn_shared")

    @cached_property
    def _single_calls(self) -> _BatchCalls:
        return self._calls(self.single_code)


class LaneKernel(Kernel):
    """A kernel of batches alone, which compiles in half the time; it has no `function`."""

    def __init__(self, trace: Callable[..., Stack], arguments: Sequence[tuple[str, Shape]]) -> None:
        self._trace, self._shapes = trace, [shape for _, shape in arguments]
        self.operations, rows, columns, *self.noted = _module(trace, arguments).facts
        Call.__init__(self, arguments, (rows, columns))


def traced(
    trace: Callable[..., Stack], shapes: Sequence[Shape], *, packs: bool = False
) -> tuple[Graph, list[Any], Shape]:
    """Run `trace` on traced scalars; return the graph, the results row by row, and their shape."""
    graph, result = _run(trace, shapes, packs=packs)
    return graph, [value for row in result for value in row], (len(result), len(result[0]))


def inputs_of(shapes: Sequence[Shape], *, packs: bool = False) -> tuple[Graph, list[Stack]]:
    """Return a graph, and scalars that stand for the numbers of arguments."""
    graph = Graph(packs=packs)
    stacks: list[Stack] = [
        [[graph.input(a, row * columns + column) for column in range(columns)] for row in range(rows)]
        for a, (rows, columns) in enumerate(shapes)
    ]
    return graph, stacks


def _run(trace: Callable[..., Stack], shapes: Sequence[Shape], *, packs: bool = False) -> tuple[Graph, Stack]:
    graph, stacks = inputs_of(shapes, packs=packs)
    return graph, trace(*stacks)


def straight_module(trace: Callable[..., Stack], shapes: Sequence[Shape]) -> tuple[str, Facts]:
    """Write `void hodyn_kernel(double *argument, ..., double *result)`.

    Facts are the number of operations, the rows and columns of the result, and what is `Noted`.
    """
    graph, result = _run(trace, shapes, packs=True)
    outputs = [value for row in result for value in row]
    noted = result.numbers if isinstance(result, Noted) else ()
    facts = graph.count_operations(outputs), len(result), len(result[0]), *noted
    return kernel_text(graph, outputs, len(shapes)), facts


class TooLong(Exception):
    """Code would take too long to compile."""


def straight_line(trace: Callable[..., Stack], shapes: Sequence[Shape], limit: float = inf) -> Code:
    """Compile `void f(double *argument, ..., double *result)`; TooLong beyond a limit of operations."""
    module = Module(straight_module, trace, shapes)
    if module.facts[0] > limit:
        raise TooLong
    code = module.compile("hodyn_kernel")
    return Code("hodyn_kernel", code.address, computes(trace, shapes), code)


def uncompiled(trace: Callable[..., Stack], shapes: Sequence[Shape]) -> Code:
    """Return what can be carried out on numbers alone."""
    return Code("hodyn_kernel", compute=computes(trace, shapes))


def computes(trace: Callable[..., Stack], shapes: Sequence[Shape]) -> Callable[..., None]:
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


def _checksum(*stacks: Stack) -> Stack:
    """Return a sum, the last argument, with what makes it infinite or NaN where a number is large or is."""
    *inputs, ((total,),) = stacks
    return [[sum((x * CHECK for stack in inputs for row in stack for x in row), start=total)]]


def _module(trace: Callable[..., Stack], arguments: Sequence[tuple[str, Shape]]) -> Module:
    return Module(straight_module, trace, [shape for _, shape in arguments])


def _batch(
    trace: Callable[..., Stack], shapes: Sequence[Shape], width: int, single: bool = False
) -> tuple[str, Facts]:
    """Write `hodyn_batch` and `hodyn_shared`."""
    graph, outputs, _ = traced(trace, shapes)
    sizes = [rows * columns for rows, columns in shapes]
    shared = shared_text([*sizes, len(outputs)], _PART)
    text = batch_text(graph, outputs, sizes, width, single=single)
    return text + (single_text(shared) if single else shared), ()
