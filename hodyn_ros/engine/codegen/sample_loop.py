"""Many samples by compiled code that goes on from where it was: one after the other, in one compiled loop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from hodyn_ros.engine.codegen.kernel import Shape
from hodyn_ros.engine.codegen.literals import literal
from hodyn_ros.engine.codegen.llvm import MachineCode, compile_text
from hodyn_ros.lie.se3 import Array


class Remembering(Protocol):
    """A `Call` whose last argument is a memory, and whose result says at `bad` whether it counts."""

    arguments: tuple[tuple[str, Shape], ...]
    result: Shape
    address: int

    @property
    def bad(self) -> int:
        """Where the number is that must be below one."""
        ...


class SampleLoop:
    """A compiled loop over samples, all with one memory."""

    def __init__(self, call: Remembering) -> None:
        self.call = call
        rows, columns = call.result
        self._sizes = [*(8 * a * b for _, (a, b) in call.arguments[:-1]), 8 * rows * columns]

    @cached_property
    def _code(self) -> MachineCode:
        text = _text(self.call.address, len(self._sizes) - 1, self._sizes[-1], self.call.bad)
        return compile_text(text, "hodyn_samples", None)

    @cached_property
    def _loop(self) -> Callable[..., int]:
        kinds = [ctypes.c_void_p, ctypes.c_int64] * (len(self._sizes) - 1)
        kinds += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self._code.address)

    def run(
        self, count: int, arrays: Sequence[Array], memory: Array, failed: Callable[[int], Array]
    ) -> Array:
        """Return the results (count, ...).

        `arrays` have an axis of samples in front, or are the same for all. A sample whose result does not
        count is replaced by what `failed` returns for it, or it raises.
        """
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in arrays]
        for array, (name, shape) in zip(arrays, self.call.arguments):
            if array.shape not in (shape, (count, *shape)):
                raise ValueError(f"{name}: {array.shape} is neither {shape} nor {(count, *shape)}")
        out, done = np.empty((count, *self.call.result)), 0
        while done < count:
            places: list[int] = []
            for array, size in zip(arrays, self._sizes):
                step = size if array.ndim == 3 else 0
                places += [array.ctypes.data + done * step, step]
            done += self._loop(
                *places, memory.ctypes.data, out.ctypes.data + done * self._sizes[-1], count - done
            )
            if done < count:
                out[done] = failed(done)
                done += 1
        return out


def _text(address: int, n_arguments: int, result: int, bad: int) -> str:
    """Write `i64 @hodyn_samples(ptr argument, i64 stride, ..., ptr memory, ptr out, i64 count)`.

    It returns how many samples count before the first that does not. Strides and `result` are in bytes.
    """
    given = "".join(f"ptr %a{i}, i64 %s{i}, " for i in range(n_arguments))
    lines = [
        f"define i64 @hodyn_samples({given}ptr %memory, ptr %out, i64 %count) {{",
        "entry:",
        "%any = icmp sgt i64 %count, 0",
        "br i1 %any, label %sample, label %none",
        "none:",
        "ret i64 0",
        "sample:",
        "%i = phi i64 [0, %entry], [%next, %good]",
    ]
    for i in range(n_arguments):
        lines += [f"%o{i} = mul i64 %i, %s{i}", f"%p{i} = getelementptr i8, ptr %a{i}, i64 %o{i}"]
    places = "".join(f"ptr %p{i}, " for i in range(n_arguments))
    lines += [
        f"%offset = mul i64 %i, {result}",
        "%place = getelementptr i8, ptr %out, i64 %offset",
        f"call void inttoptr (i64 {address} to ptr)({places}ptr %memory, ptr %place)",
        f"%bad_at = getelementptr double, ptr %place, i64 {bad}",
        "%bad = load double, ptr %bad_at, align 8",
        f"%counts = fcmp olt double %bad, {literal(1.0)}",
        "br i1 %counts, label %good, label %stop",
        "good:",
        "%next = add i64 %i, 1",
        "%more = icmp slt i64 %next, %count",
        "br i1 %more, label %sample, label %stop",
        "stop:",
        "%done = phi i64 [%i, %sample], [%next, %good]",
        "ret i64 %done",
        "}",
    ]
    return "\n".join(lines) + "\n"
