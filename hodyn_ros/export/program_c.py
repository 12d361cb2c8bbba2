"""A program as C99: the statements of a function, or a whole one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hodyn_ros.codegen.program import (
    All,
    Choose,
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
    Run,
    Statement,
    Sum,
    View,
    When,
)
from hodyn_ros.export.c_text import number, vector


def function_lines(program: Program) -> list[str]:
    """Write a function with its constants; local memory has to be of constant sizes."""
    kind = "long" if program.returns else "void"
    parameters = ", ".join(
        f"long {a.name}" if isinstance(a, Index) else f"double *{a.buffer}" for a in program.arguments
    )
    sizes = {name: Index.of(size).constant for name, size in program.local.items()}
    return [
        *(line for name, values in program.constants.items() for line in vector(name, values.ravel())),
        f"{kind} {program.name}({parameters})",
        "{",
        *[f"  double {name}[{size}];" for name, size in sizes.items()],
        *statement_lines(program.body, returns=program.returns),
        *(["  return 0;"] if program.returns else []),
        "}",
    ]


def statement_lines(statements: Sequence[Statement], *, always: str = "", returns: bool = False) -> list[str]:
    """Write statements; `always` is a macro with which every `Repeat` goes on for as long as it may."""
    return list(_Writer(always, returns).lines(statements, 1))


class _Writer:
    def __init__(self, always: str, returns: bool) -> None:
        self._always, self._returns, self._rounds = always, returns, itertools.count()

    def lines(self, statements: Sequence[Statement], depth: int) -> Iterator[str]:
        for statement in statements:
            for line in self._statement(statement, depth):
                yield "  " * depth + line

    def _block(self, head: str, body: Sequence[Statement], depth: int, tail: str = "}") -> Iterator[str]:
        yield f"{head} {{"
        yield from (line[2 * depth :] for line in self.lines(body, depth + 1))
        yield tail

    def _statement(self, statement: Statement, depth: int) -> Iterator[str]:
        if isinstance(statement, Run):
            passed = [_whole(x) if isinstance(x, Index) else _address(x) for x in statement.arguments]
            yield f"{statement.code.name}({', '.join(passed)});"
        elif isinstance(statement, Copy):
            k, target, source = "k", _address(statement.target), _address(statement.source)
            yield f"for (int {k} = 0; {k} < {statement.count}; ++{k}) {{"
            yield f"  {_element(target, k)} = {_element(source, k)};"
            yield "}"
        elif isinstance(statement, Put):
            if statement.count == 1:
                yield f"{_number(statement.target)} = {number(statement.value)};"
                return
            yield f"for (int k = 0; k < {statement.count}; ++k) {{"
            yield f"  {_element(_address(statement.target), 'k')} = {number(statement.value)};"
            yield "}"
        elif isinstance(statement, Look):
            yield f"const long {statement.variable.name} = (long){_number(statement.table)};"
        elif isinstance(statement, For):
            i = statement.variable.name
            head = f"for (long {i} = 0; {i} < {_whole(statement.count)}; {i} += {statement.step})"
            yield from self._block(head, statement.body, depth)
        elif isinstance(statement, Repeat):
            i, again = f"round{next(self._rounds)}", _condition(statement.again)
            again = f"{self._always} || ({again})" if self._always else again
            yield f"int {i} = 0;"
            tail = f"}} while ((++{i} < {statement.most}) && ({again}));"
            yield from self._block("do", statement.body, depth, tail)
        elif isinstance(statement, When):
            yield from self._block(f"if ({_condition(statement.condition)})", statement.body, depth)
        elif isinstance(statement, Choose):
            for case, body in statement.cases.items():
                yield from self._block(f"if ({_whole(statement.number)} == {case})", body, depth)
        else:
            yield f"return {_whole(statement.value)};" if self._returns else "return;"


def _address(view: View) -> str:
    return view.buffer if not view.index.terms else f"{view.buffer} + {_whole(view.index)}"


def _element(address: str, k: str) -> str:
    return f"({address})[{k}]" if " " in address else f"{address}[{k}]"


def _whole(index: Index) -> str:
    terms = [
        " * ".join([*([str(factor)] if factor != 1 or not names else []), *names])
        for names, factor in index.terms.items()
    ]
    return " + ".join(terms) or "0"


def _condition(condition: Condition) -> str:
    if isinstance(condition, Compare):
        return f"{_number(condition.left)} {condition.relation} {_number(condition.right)}"
    if isinstance(condition, Not):
        return f"!({_condition(condition.condition)})"
    assert isinstance(condition, All)
    return " && ".join(f"({_condition(part)})" for part in condition.conditions)


def _number(value: Number) -> str:
    if isinstance(value, float):
        return number(value)
    views = value.views if isinstance(value, Sum) else [value]
    return " + ".join(f"{view.buffer}[{_whole(view.index)}]" for view in views)
