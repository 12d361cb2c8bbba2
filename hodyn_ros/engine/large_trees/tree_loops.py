"""Loops over the bodies of a tree, in LLVM's language, around the steps of the generic kernels.

In memory lie a plan with kind and parent's record of every body, a block of constants for the ground (minus
gravity at its start) and for every body, and the records of the ground and of every body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from hodyn_ros.engine.large_trees.tree_memory import BLOCK, FREE, Record

_DECLARATIONS = """declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def tree_text(name: str, arguments: Sequence[str], record: Record, body: Sequence[str]) -> str:
    """Write `void @name(arguments, out, plan, constants, bodies, joints)` around the lines of its body.

    The records are there, those of the ground with its acceleration and zeros, when the body begins at label
    `entry`; it ends by falling through.
    """
    given = ", ".join(
        [*(f"ptr %{argument}" for argument in arguments), "ptr %out, ptr %plan, ptr %constants"]
    )
    lines = [
        f"define void @{name}({given}, i64 %bodies, i64 %joints) {{",
        "entry:",
        "%records_count = add i64 %bodies, 1",
        f"%bytes = mul i64 %records_count, {8 * record.size}",
        "%records = call ptr @malloc(i64 %bytes)",
        f"call void @llvm.memset.p0.i64(ptr %records, i8 0, i64 {8 * record.size}, i1 false)",
        f"%ground = getelementptr double, ptr %records, i64 {record.places['linear']}",
        "call void @llvm.memcpy.p0.p0.i64(ptr %ground, ptr %constants, i64 24, i1 false)",
        *body,
        "call void @free(ptr %records)",
        "ret void",
        "}",
    ]
    return "\n".join(lines) + "\n" + _DECLARATIONS


def base_lines(record: Record) -> list[str]:
    """Find record and constants of a floating base: %base and %base_constants."""
    return [
        f"%base = getelementptr double, ptr %records, i64 {record.size}",
        f"%base_constants = getelementptr double, ptr %constants, i64 {BLOCK}",
    ]


def pass_lines(
    step: str,
    direction: Literal["outward", "inward"],
    first: int,
    record: Record,
    before: Callable[[str], list[str]] = lambda name: [],
    after: Callable[[str], list[str]] = lambda name: [],
    variants: Sequence[str] = FREE,
) -> list[str]:
    """Call a step for every body from `first` on, parents before children or the other way round.

    There is one for each of `variants`, which the plan numbers. `before` and `after` give further lines; in
    them `%<step>_own` is the record and `%<step>_joint` the joint.
    """
    outward = direction == "outward"
    more = f"slt i64 %{step}_next, %bodies" if outward else f"sge i64 %{step}_next, {first}"
    cases = " ".join(f"i64 {i}, label %{step}_{variant}" for i, variant in enumerate(variants))
    lines = [
        f"%{step}_last = sub i64 %bodies, 1",
        f"%{step}_any = icmp sgt i64 %bodies, {first}",
        f"br label %{step}_start",
        f"{step}_start:",
        f"br i1 %{step}_any, label %{step}, label %{step}_done",
        f"{step}:",
        f"%{step}_i = phi i64 [{first if outward else f'%{step}_last'}, %{step}_start], "
        f"[%{step}_next, %{step}_after]",
        f"%{step}_joint = sub i64 %{step}_i, {first}",
        f"%{step}_number = add i64 %{step}_i, 1",
        f"%{step}_offset = mul i64 %{step}_number, {record.size}",
        f"%{step}_own = getelementptr double, ptr %records, i64 %{step}_offset",
        f"%{step}_block = mul i64 %{step}_number, {BLOCK}",
        f"%{step}_constants = getelementptr double, ptr %constants, i64 %{step}_block",
        f"%{step}_plan = mul i64 %{step}_i, 2",
        f"%{step}_kind_at = getelementptr i64, ptr %plan, i64 %{step}_plan",
        f"%{step}_kind = load i64, ptr %{step}_kind_at, align 8",
        f"%{step}_parent_at = getelementptr i64, ptr %{step}_kind_at, i64 1",
        f"%{step}_parent_number = load i64, ptr %{step}_parent_at, align 8",
        f"%{step}_parent_offset = mul i64 %{step}_parent_number, {record.size}",
        f"%{step}_parent = getelementptr double, ptr %records, i64 %{step}_parent_offset",
        *before(step),
        f"switch i64 %{step}_kind, label %{step}_after [{cases}]",
    ]
    for variant in variants:
        lines += [
            f"{step}_{variant}:",
            f"call void @{step}_{variant}(ptr %{step}_parent, ptr %{step}_own, ptr %{step}_constants)",
            f"br label %{step}_after",
        ]
    return [
        *lines,
        f"{step}_after:",
        *after(step),
        f"%{step}_next = {'add' if outward else 'sub'} i64 %{step}_i, 1",
        f"%{step}_more = icmp {more}",
        f"br i1 %{step}_more, label %{step}, label %{step}_done",
        f"{step}_done:",
    ]


def take_column(argument: str, place: int, rows: int, start: int = 0) -> Callable[[str], list[str]]:
    """Copy a joint's column of an argument (rows, joints) into its record."""

    def lines(step: str) -> list[str]:
        result: list[str] = []
        for k in range(rows):
            name = f"%{step}_{argument}{k}"
            result += [
                f"{name}_row = mul i64 %joints, {start + k}",
                f"{name}_index = add i64 {name}_row, %{step}_joint",
                f"{name}_from = getelementptr double, ptr %{argument}, i64 {name}_index",
                f"{name} = load double, ptr {name}_from, align 8",
                f"{name}_to = getelementptr double, ptr %{step}_own, i64 {place + k}",
                f"store double {name}, ptr {name}_to, align 8",
            ]
        return result

    return lines


def give_column(place: int, row: int, rows: int, columns: int) -> Callable[[str], list[str]]:
    """Copy numbers of a joint's record to its column of the result, behind `columns` others."""

    def lines(step: str) -> list[str]:
        result = [f"%{step}_width = add i64 %joints, {columns}"]
        for k in range(rows):
            name = f"%{step}_out{k}"
            result += [
                f"{name}_from = getelementptr double, ptr %{step}_own, i64 {place + k}",
                f"{name} = load double, ptr {name}_from, align 8",
                f"{name}_row = mul i64 %{step}_width, {row + k}",
                f"{name}_column = add i64 %{step}_joint, {columns}",
                f"{name}_index = add i64 {name}_row, {name}_column",
                f"{name}_to = getelementptr double, ptr %out, i64 {name}_index",
                f"store double {name}, ptr {name}_to, align 8",
            ]
        return result

    return lines


def give_base(source: str, row: int, rows: int) -> list[str]:
    """Copy six numbers a row from `source` into the first columns of the result, from `row` on."""
    lines = [f"{source}_width = add i64 %joints, 6"]
    for k in range(rows):
        lines += [
            f"{source}_from{k} = getelementptr double, ptr {source}, i64 {6 * k}",
            f"{source}_index{k} = mul i64 {source}_width, {row + k}",
            f"{source}_to{k} = getelementptr double, ptr %out, i64 {source}_index{k}",
            f"call void @llvm.memcpy.p0.p0.i64(ptr {source}_to{k}, ptr {source}_from{k}, i64 48, i1 false)",
        ]
    return lines
