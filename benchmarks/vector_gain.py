"""What the vectors of a processor gain: fused products and sums in all lanes, beside those of single numbers.

Twelve chains of them are independent of each other, more than any processor needs to keep its units busy. A
processor whose units are as wide as its vectors gains as much as these have lanes; one that computes wide
vectors half by half gains half of that, and no code of ours can gain more there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from benchmarks.stopwatch import CLOCK, Contender
from hodyn_ros.codegen.literals import splat
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.codegen.processor import lanes

_CHAINS = 12
_ROUNDS = 1000  # of all chains, in one call
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

SINGLE, VECTORS = "single numbers fused", "vectors fused"


def contenders() -> list[Contender]:
    """Return as many operations on single numbers and on vectors."""
    return [_contender(SINGLE, 1), _contender(VECTORS, lanes())]


def _contender(name: str, width: int) -> Contender:
    code = compile_text(_text(width), "fused", None)
    return Contender(name, [partial(_run, code, _FUNCTION(code.address), width)])


def _run(code: MachineCode, call: Callable[[int, int], None], width: int, passes: int) -> float:
    """Compute as many numbers whatever the width; `code` is kept alive."""
    result = (ctypes.c_double * width)()
    rounds = passes * _ROUNDS * (lanes() // width)
    start = CLOCK()
    call(ctypes.addressof(result), rounds)
    return CLOCK() - start


def _text(width: int) -> str:
    """Write `void fused(double *result, int64_t rounds)`."""
    vector, fma = f"<{width} x double>", f"@llvm.fma.v{width}f64"
    lines = ["define void @fused(ptr %result, i64 %rounds) {", "entry:", "br label %again", "again:"]
    lines.append("%i = phi i64 [0, %entry], [%next, %again]")
    for k in range(_CHAINS):
        lines.append(f"%x{k} = phi {vector} [{splat(1.0 + k, width)}, %entry], [%y{k}, %again]")
    factors = f"{vector} {splat(0.999, width)}, {vector} {splat(1e-3, width)}"
    lines += [f"%y{k} = call {vector} {fma}({vector} %x{k}, {factors})" for k in range(_CHAINS)]
    lines += [
        "%next = add i64 %i, 1",
        "%more = icmp slt i64 %next, %rounds",
        "br i1 %more, label %again, label %done",
        "done:",
    ]
    lines += [f"%s{k} = fadd {vector} %{f's{k - 1}' if k > 1 else 'y0'}, %y{k}" for k in range(1, _CHAINS)]
    lines += [
        f"store {vector} %s{_CHAINS - 1}, ptr %result, align 8",
        "ret void",
        "}",
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
    ]
    return "\n".join(lines)
