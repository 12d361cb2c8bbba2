"""Calling compiled functions in a compiled loop: what a control loop in C would pay for a call.

One loop, made by LLVM, calls ours and theirs alike: through a function pointer, `void f(const double*...,
double* out)`, with arguments that change from call to call, so that nothing can be hoisted out of the loop.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from benchmarks.stopwatch import CLOCK, Array, Contender


def compiled_call(
    name: str, addresses: Sequence[int], arguments: Sequence[Array], results: Array, keep: Any = None
) -> Contender:
    """Return a contender that calls the function at `addresses`, each that of another copy of it.

    `arguments` are stacks of samples (samples, ...), which the calls take in turn, `results` (samples, ...)
    takes what the function writes; all C-contiguous. `keep` is kept alive: what owns the code.
    """
    samples = len(results)
    if any(len(argument) != samples for argument in arguments):
        raise ValueError("arguments and results must have the same number of samples")
    arrays = [*arguments, results]
    if not all(array.flags.c_contiguous and array.dtype == np.float64 for array in arrays):
        raise ValueError("compiled code takes C-contiguous float64 arrays")
    loop = _loop(len(arrays))
    pointers = np.array([array.ctypes.data for array in arrays], dtype=np.int64)
    strides = np.array([array[0].nbytes for array in arrays], dtype=np.int64)

    def run(address: int, calls: int) -> float:
        start = CLOCK()
        loop(address, pointers.ctypes.data, strides.ctypes.data, samples, calls)
        return CLOCK() - start

    run.__dict__["kept"] = arrays, keep  # the loop knows no more than addresses
    return Contender(name, [partial(run, address) for address in addresses])


@cache
def _loop(arrays: int) -> Any:
    """Return the loop over functions of that many pointers, the last one the result's."""
    loads, moves = [], []
    for a in range(arrays):
        loads += [
            f"%slot{a} = getelementptr ptr, ptr %pointers, i64 {a}",
            f"%base{a} = load ptr, ptr %slot{a}, align 8",
            f"%width{a} = getelementptr i64, ptr %strides, i64 {a}",
            f"%stride{a} = load i64, ptr %width{a}, align 8",
        ]
        moves += [
            f"%offset{a} = mul i64 %sample, %stride{a}",
            f"%p{a} = getelementptr i8, ptr %base{a}, i64 %offset{a}",
        ]
    lines = [
        "define void @bench_loop(ptr %f, ptr %pointers, ptr %strides, i64 %samples, i64 %calls) {",
        "entry:",
        *loads,
        "br label %again",
        "again:",
        "%i = phi i64 [0, %entry], [%next, %again]",
        "%sample = phi i64 [0, %entry], [%following, %again]",
        *moves,
        f"call void %f({', '.join(f'ptr %p{a}' for a in range(arrays))})",
        "%after = add i64 %sample, 1",
        "%last = icmp eq i64 %after, %samples",
        "%following = select i1 %last, i64 0, i64 %after",
        "%next = add i64 %i, 1",
        "%done = icmp uge i64 %next, %calls",
        "br i1 %done, label %end, label %again",
        "end:",
        "ret void",
        "}",
    ]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("\n".join(lines)), machine)
    engine.finalize_object()
    words = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
    loop = ctypes.CFUNCTYPE(None, *words)(engine.get_function_address("bench_loop"))
    loop.__dict__["kept"] = engine  # it owns the code
    return loop
