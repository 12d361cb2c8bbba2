"""A program as the text of an LLVM module, and as machine code."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hodyn_ros.codegen.literals import literal
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.codegen.program import (
    Choose,
    Code,
    Compare,
    Condition,
    Copy,
    For,
    Index,
    Look,
    Not,
    Number,
    Program,
    Put,
    Repeat,
    Return,
    Run,
    Statement,
    View,
    When,
)

_PLACES = "hodyn_places"  # of codes and constants
_RELATIONS = {"<": "olt", "<=": "ole", ">": "ogt"}
_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
_HEAP = "declare ptr @malloc(i64)\ndeclare void @free(ptr)\n"


@dataclass(frozen=True)
class CompiledProgram:
    """The machine code of a program, with the codes and constants that it points to."""

    program: Program
    code: MachineCode

    @property
    def address(self) -> int:
        """Address of the function."""
        return self.code.address


def compile_program(program: Program, beside: str = "", function: str = "") -> CompiledProgram:
    """Compile a program, with the text of functions of its module `beside` it, one of which may be meant.

    Addresses of codes and constants stand in a table that is filled once the code is loaded, so that the code
    itself is kept on disk, and is that of all robots whose programs go the same way.
    """
    text, places = llvm_text(program)
    code = compile_text(text + beside, function or program.name, ObjectCache.default())
    if places:
        ctypes.memmove(code.beside(_PLACES), (ctypes.c_int64 * len(places))(*places), 8 * len(places))
    return CompiledProgram(program, code)


def llvm_text(program: Program) -> tuple[str, list[int]]:
    """Return the module, and the addresses that it looks up in its table."""
    writer = _Writer(program)
    kind = "i64" if program.returns else "void"
    arguments = ", ".join(
        f"i64 %{a.name}" if isinstance(a, Index) else f"ptr %{a.buffer}" for a in program.arguments
    )
    body = "\n".join(writer.lines())
    text = f"define {kind} @{program.name}({arguments}) {{\n{body}\n}}\n"
    used = {_MEMCPY: "@llvm.memcpy" in body, _MEMSET: "@llvm.memset" in body, _HEAP: bool(writer.heap)}
    table = f"@{_PLACES} = global [{len(writer.places)} x i64] zeroinitializer, align 8\n"
    used[table] = bool(writer.places)
    return text + "".join(declared for declared, needed in used.items() if needed), writer.places


class _Writer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self.places: list[int] = []  # addresses, by place in the table
        self._lines: list[str] = []
        self._numbers = itertools.count()
        self._label = "entry"  # of the block that is being written
        self._values: dict[str, str] = {}  # of named whole numbers
        self.heap: list[str] = []

    def lines(self) -> list[str]:
        self._lines.append("entry:")
        self._values = {a.name: f"%{a.name}" for a in self._program.arguments if isinstance(a, Index)}
        for name, size in self._program.local.items():
            count = Index.of(size)
            if count.constant is not None:
                self._lines.append(f"%{name} = alloca double, i64 {count.constant}, align 64")
                continue
            self._lines.append(f"%{name} = call ptr @malloc(i64 {self._whole(count * 8)})")
            self.heap.append(name)
        if self._body(self._program.body):
            self._return(Index({}))
        return self._lines

    def _body(self, statements: Sequence[Statement]) -> bool:
        """Write statements; says whether the end is reached, and not returned from before."""
        for statement in statements:
            if isinstance(statement, Return):
                self._return(statement.value)
                return False
            self._statement(statement)
        return True

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Run):
            arguments = ", ".join(
                f"i64 {self._whole(x)}" if isinstance(x, Index) else f"ptr {self._address(x)}"
                for x in statement.arguments
            )
            self._lines.append(f"call void {self._code(statement.code)}({arguments})")
        elif isinstance(statement, Copy):
            self._copy(statement)
        elif isinstance(statement, Put):
            self._put(statement)
        elif isinstance(statement, Look):
            address = self._address(statement.table, "i64")
            self._values[statement.variable.name] = self._define(f"load i64, ptr {address}, align 8")
        elif isinstance(statement, For):
            self._for(statement)
        elif isinstance(statement, Repeat):
            self._repeat(statement)
        elif isinstance(statement, When):
            self._when(statement)
        elif isinstance(statement, Choose):
            self._choose(statement)

    def _copy(self, statement: Copy) -> None:
        target, source = self._address(statement.target), self._address(statement.source)
        if statement.count == 1:
            number = self._define(f"load double, ptr {source}, align 8")
            self._lines.append(f"store double {number}, ptr {target}, align 8")
            return
        self._lines.append(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target}, ptr align 8 {source}, "
            f"i64 {8 * statement.count}, i1 false)"
        )

    def _put(self, statement: Put) -> None:
        address = self._address(statement.target)
        if statement.count == 1:
            self._lines.append(f"store double {literal(statement.value)}, ptr {address}, align 8")
            return
        assert statement.value == 0.0
        size = f"i64 {8 * statement.count}, i1 false"
        self._lines.append(f"call void @llvm.memset.p0.i64(ptr align 8 {address}, i8 0, {size})")

    def _for(self, statement: For) -> None:
        k, count = next(self._numbers), self._whole(statement.count)
        enter, label = f"%any{k}", self._label
        self._lines.append(f"{enter} = icmp sgt i64 {count}, 0")
        self._lines.append(f"br i1 {enter}, label %each{k}, label %done{k}")
        self._begin(f"each{k}")
        self._lines.append(f"%i{k} = phi i64 [0, %{label}], [%next{k}, %after{k}]")
        self._values[statement.variable.name] = f"%i{k}"
        if self._body(statement.body):
            self._lines.append(f"br label %after{k}")
        self._begin(f"after{k}")
        self._lines += [
            f"%next{k} = add i64 %i{k}, {statement.step}",
            f"%more{k} = icmp slt i64 %next{k}, {count}",
            f"br i1 %more{k}, label %each{k}, label %done{k}",
        ]
        self._begin(f"done{k}")

    def _repeat(self, statement: Repeat) -> None:
        k, label = next(self._numbers), self._label
        self._lines.append(f"br label %round{k}")
        self._begin(f"round{k}")
        self._lines.append(f"%i{k} = phi i64 [0, %{label}], [%next{k}, %after{k}]")
        if self._body(statement.body):
            self._lines.append(f"br label %after{k}")
        self._begin(f"after{k}")
        again = self._condition(statement.again)
        self._lines += [
            f"%next{k} = add i64 %i{k}, 1",
            f"%early{k} = icmp slt i64 %next{k}, {statement.most}",
            f"%more{k} = and i1 {again}, %early{k}",
            f"br i1 %more{k}, label %round{k}, label %done{k}",
        ]
        self._begin(f"done{k}")

    def _when(self, statement: When) -> None:
        k, holds = next(self._numbers), self._condition(statement.condition)
        self._lines.append(f"br i1 {holds}, label %then{k}, label %else{k}")
        self._begin(f"then{k}")
        if self._body(statement.body):
            self._lines.append(f"br label %else{k}")
        self._begin(f"else{k}")

    def _choose(self, statement: Choose) -> None:
        k, number = next(self._numbers), self._whole(statement.number)
        cases = " ".join(f"i64 {case}, label %case{k}_{case}" for case in statement.cases)
        self._lines.append(f"switch i64 {number}, label %chosen{k} [{cases}]")
        for case, body in statement.cases.items():
            self._begin(f"case{k}_{case}")
            if self._body(body):
                self._lines.append(f"br label %chosen{k}")
        self._begin(f"chosen{k}")

    def _return(self, value: Index) -> None:
        result = f"i64 {self._whole(value)}" if self._program.returns else "void"
        self._lines += [f"call void @free(ptr %{name})" for name in self.heap]
        self._lines.append(f"ret {result}")

    def _condition(self, condition: Condition) -> str:
        if isinstance(condition, Compare):
            left, right = self._number(condition.left), self._number(condition.right)
            return self._define(f"fcmp {_RELATIONS[condition.relation]} double {left}, {right}")
        if isinstance(condition, Not):
            return self._define(f"xor i1 {self._condition(condition.condition)}, true")
        holds = "true"
        for part in condition.conditions:
            holds = self._define(f"and i1 {holds}, {self._condition(part)}")
        return holds

    def _number(self, number: Number) -> str:
        if isinstance(number, float):
            return literal(number)
        return self._define(f"load double, ptr {self._address(number)}, align 8")

    def _address(self, view: View, element: str = "double") -> str:
        base = f"%{view.buffer}"
        if view.buffer in self._program.constants:
            base = self._place(self._program.constants[view.buffer].ctypes.data)
        if not view.index.terms:
            return base
        return self._define(f"getelementptr {element}, ptr {base}, i64 {self._whole(view.index)}")

    def _code(self, code: Code) -> str:
        return self._place(code.address) if code.address else f"@{code.name}"

    def _place(self, address: int) -> str:
        if address not in self.places:
            self.places.append(address)
        at = f"getelementptr (i64, ptr @{_PLACES}, i64 {self.places.index(address)})"
        return self._define(f"load ptr, ptr {at}, align 8")

    def _whole(self, index: Index) -> str:
        """Write a whole number."""
        total = ""
        for names, factor in index.terms.items():
            value = self._values[names[0]] if names else str(factor)
            for name in names[1:]:
                value = self._define(f"mul i64 {value}, {self._values[name]}")
            if names and factor != 1:
                value = self._define(f"mul i64 {value}, {factor}")
            total = self._define(f"add i64 {total}, {value}") if total else value
        return total or "0"

    def _define(self, expression: str) -> str:
        name = f"%v{next(self._numbers)}"
        self._lines.append(f"{name} = {expression}")
        return name

    def _begin(self, label: str) -> None:
        self._label = label
        self._lines.append(f"{label}:")
