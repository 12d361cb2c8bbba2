"""Many samples by compiled code that goes on from where it was: in lanes, or one after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from hodyn_ros.codegen.kernel import Array, Shape
from hodyn_ros.codegen.program import (
    Code,
    Compare,
    For,
    Not,
    Program,
    Return,
    Run,
    Statement,
    When,
    arrays,
    integer,
)
from hodyn_ros.codegen.program_llvm import CompiledProgram, compile_program
from hodyn_ros.errors import HodynError

_BLOCK = 64  # samples computed one by one before lanes are tried again
_WORTHWHILE = 64  # samples for which code for lanes is compiled


class Remembering(Protocol):
    """A `Call` whose last argument is a memory, and whose result says at `defect_at` whether it counts.

    `in_lanes(rows, sure)`: C code for many samples, `int64_t f(const double* argument, int64_t step, ...,
    double* memory, double* out, int64_t count)`, steps in numbers from sample to sample, or None. It writes
    those rows of the results, and returns how many samples count, with numbers at `defect_at` below `sure`,
    before the first of a block with one that does not.
    """

    arguments: tuple[tuple[str, Shape], ...]
    result: Shape
    address: int
    function: Callable[..., Array]

    @property
    def defect_at(self) -> int:
        """Where the number is that must be below one."""
        ...

    @property
    def batch_rows(self) -> slice:
        """Rows of the result that are wanted of many samples."""
        ...

    def in_lanes(self, rows: slice, sure: float = 1.0) -> CompiledProgram | None:
        """Code for several samples at a time."""
        ...


_Result = TypeVar("_Result")


class SampleLoop:
    """Compiled loops over samples, all with one memory: in lanes, and one by one where these cannot.

    They write `rows` of the results, by default its `batch_rows`, and leave those to calls of one whose
    number at `defect_at` is not below `sure`.
    """

    def __init__(self, call: Remembering, rows: slice | None = None, sure: float = 1.0) -> None:
        self.call = call
        self._rows = call.batch_rows if rows is None else rows
        self._sure = sure
        shapes = [*(shape for _, shape in call.arguments[:-1]), call.result]
        self._sizes = [a * b for a, b in shapes]

    @cached_property
    def _code(self) -> CompiledProgram:
        """One sample after the other; returns how many count before the first that does not."""
        i, count, (memory, out) = integer("i"), integer("count"), arrays(("memory", "out"))
        inputs = arrays(f"a{k}" for k in range(len(self._sizes) - 1))
        steps = [integer(f"step{k}") for k in range(len(inputs))]
        result = out.at(i * self._sizes[-1])
        moved = [view.at(i * step) for view, step in zip(inputs, steps)]
        call = Run(Code("hodyn_kernel", self.call.address), [*moved, memory, result])
        right = Compare(result.at(self.call.defect_at), "<", self._sure)
        arguments = [x for pair in zip(inputs, steps) for x in pair]
        sample: list[Statement] = [call, When(Not(right), [Return(i)])]
        body: list[Statement] = [For(i, count, sample), Return(count)]
        return compile_program(
            Program("hodyn_samples", [*arguments, memory, out, count], {}, body, returns=True)
        )

    @cached_property
    def _one_by_one(self) -> Callable[..., int]:
        return self._loop(self._code)

    @cached_property
    def _in_lanes(self) -> Callable[..., int] | None:
        return None if self._lane_code is None else self._loop(self._lane_code)

    @cached_property
    def _lane_code(self) -> CompiledProgram | None:
        return self.call.in_lanes(self._rows, self._sure)

    def _loop(self, code: CompiledProgram) -> Callable[..., int]:
        kinds = [ctypes.c_void_p, ctypes.c_int64] * (len(self._sizes) - 1)
        kinds += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code.address)

    def run(
        self, count: int, arrays: Sequence[Array], memory: Array, failed: Callable[[int], Array]
    ) -> Array:
        """Return rows of the results (count, ...).

        `arrays` have an axis of samples in front, or are the same for all. A sample whose result does not
        count is replaced by what `failed` returns for it, or it raises.
        """
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in arrays]
        for array, (name, shape) in zip(arrays, self.call.arguments):
            if array.shape not in (shape, (count, *shape)):
                raise ValueError(f"{name}: {array.shape} is neither {shape} nor {(count, *shape)}")
        rows = self._rows
        out = np.empty((count, rows.stop - rows.start, self.call.result[1]))
        in_lanes = self._in_lanes if count >= _WORTHWHILE else None
        block, done = _BLOCK if in_lanes else count, 0
        few = np.empty((min(block, _BLOCK), *self.call.result))

        def walk(loop: Callable[..., int], target: Array, samples: int) -> int:
            places: list[int] = []
            for array, size in zip(arrays, self._sizes):
                step = size if array.ndim == 3 else 0
                places += [array.ctypes.data + 8 * done * step, step]
            return loop(*places, memory.ctypes.data, target.ctypes.data, samples)

        while done < count:
            if in_lanes:
                done += walk(in_lanes, out[done:], count - done)
            end = min(done + block, count)
            while done < end:
                good = walk(self._one_by_one, few, min(len(few), end - done))
                out[done : done + good] = few[:good, rows]
                done += good
                if good < len(few) and done < end:
                    with naming_sample(done):
                        out[done] = failed(done)[rows]
                    done += 1
        return out


def one_by_one(count: int, alone: Callable[[int], Array]) -> Array:
    """Return the stack of what `alone` does of each of `count` samples."""
    return np.stack(each_sample(count, alone))


def each_sample(count: int, alone: Callable[[int], _Result]) -> list[_Result]:
    """Return what `alone` does of each of `count` samples; errors name theirs."""
    result = []
    for i in range(count):
        with naming_sample(i):
            result.append(alone(i))
    return result


@contextmanager
def naming_sample(number: int) -> Iterator[None]:
    """Say at which sample of a batch an error was raised."""
    try:
        yield
    except HodynError as error:
        error.args = (f"sample {number}: {error}",)
        error.sample = number
        raise
