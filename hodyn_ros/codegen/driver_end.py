"""The end of programs that find positions by Newton's method: these are kept where the result counts."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.literals import literal


def kept_where_good(bad: int, remember: Sequence[str]) -> list[str]:
    """Return the last lines of a program: `remember` where `out[bad]` is below one, and the return."""
    return [
        f"%bad_at = getelementptr double, ptr %out, i64 {bad}",
        "%bad = load double, ptr %bad_at, align 8",
        f"%good = fcmp olt double %bad, {literal(1.0)}",
        "br i1 %good, label %remember, label %done",
        "remember:",
        *remember,
        "br label %done",
        "done:",
        "ret void",
        "}",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ]
