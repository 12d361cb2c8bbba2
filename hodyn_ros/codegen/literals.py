"""Numbers as LLVM writes them, and tables: in which interval a number lies, and what a table says there."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def literal(number: float) -> str:
    """Write a double without losing a bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(number)))[0]:016X}"


def splat(number: float, lanes: int) -> str:
    """Write a vector of `lanes` equal doubles."""
    return "<" + ", ".join([f"double {literal(number)}"] * lanes) + ">"


def table_text(name: str, values: Sequence[float]) -> str:
    """Write a constant array `@name`."""
    numbers = ", ".join(f"double {literal(value)}" for value in values)
    return f"@{name} = internal constant [{len(values)} x double] [{numbers}]\n"


def search_text(name: str, table: str, count: int) -> str:
    """Write `double @name(double x)`: the number of the last of `count` increasing starts not above x, or 0.

    Halves what is left without branches that depend on x, so that every search takes the same time.
    """
    lines = [
        f"define internal double @{name}(double %x) {{",
        "entry:",
        "br label %halve",
        "halve:",
        "%first = phi i64 [0, %entry], [%next_first, %halve]",
        f"%left = phi i64 [{count}, %entry], [%next_left, %halve]",
        "%half = lshr i64 %left, 1",
        "%middle = add i64 %first, %half",
        f"%at = getelementptr double, ptr @{table}, i64 %middle",
        "%start = load double, ptr %at, align 8",
        "%beyond = fcmp oge double %x, %start",
        "%next_first = select i1 %beyond, i64 %middle, i64 %first",
        "%next_left = sub i64 %left, %half",
        "%more = icmp ugt i64 %next_left, 1",
        "br i1 %more, label %halve, label %done",
        "done:",
        "%number = sitofp i64 %next_first to double",
        "ret double %number",
        "}",
    ]
    return "\n".join(lines) + "\n"


def search_lines(result: str, name: str, x: str) -> list[str]:
    """Write the search as part of another function."""
    return [f"{result} = call double @{name}(double {x})"]


def entry_lines(result: str, table: str, number: str) -> list[str]:
    """Write that `result` is the entry of a table with this number, a whole one held in a double."""
    return [
        f"{result}_whole = fptosi double {number} to i64",
        f"{result}_at = getelementptr double, ptr @{table}, i64 {result}_whole",
        f"{result} = load double, ptr {result}_at, align 8",
    ]
