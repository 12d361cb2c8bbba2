"""A program carried out on NumPy's arrays: what the other readers must agree with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from hodyn_ros.codegen.program import (
    All,
    Choose,
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


def run(program: Program, arguments: Sequence[Any]) -> int:
    """Carry out a program on arrays, flat and written to in place, and integers; returns what it returns."""
    integers: dict[str, int] = {}
    buffers = {name: np.asarray(values).reshape(-1) for name, values in program.constants.items()}
    for argument, value in zip(program.arguments, arguments, strict=True):
        if isinstance(argument, Index):
            integers[argument.name] = value
        else:
            buffers[argument.buffer] = value
    interpreter = _Interpreter(buffers, integers)
    for name, size in program.local.items():
        buffers[name] = np.full(interpreter.whole(Index.of(size)), np.nan)
    return interpreter.body(program.body) or 0


class _Interpreter:
    def __init__(self, buffers: dict[str, Any], integers: dict[str, int]) -> None:
        self._buffers, self._integers = buffers, integers

    def body(self, statements: Sequence[Statement]) -> int | None:
        """Carry out statements; returns a number if they return."""
        for statement in statements:
            returned = self._statement(statement)
            if returned is not None:
                return returned
        return None

    def _statement(self, statement: Statement) -> int | None:
        if isinstance(statement, Return):
            return self.whole(statement.value)
        if isinstance(statement, Run):
            compute = statement.code.compute
            assert compute is not None
            compute(*(self.whole(x) if isinstance(x, Index) else self._from(x) for x in statement.arguments))
        elif isinstance(statement, Copy):
            self._from(statement.target)[: statement.count] = self._from(statement.source)[: statement.count]
        elif isinstance(statement, Put):
            self._from(statement.target)[: statement.count] = statement.value
        elif isinstance(statement, Look):
            self._integers[statement.variable.name] = int(self._from(statement.table)[0])
        elif isinstance(statement, When):
            return self.body(statement.body) if self._holds(statement.condition) else None
        elif isinstance(statement, Choose):
            return self.body(statement.cases.get(self.whole(statement.number), ()))
        elif isinstance(statement, For):
            for i in range(0, self.whole(statement.count), statement.step):
                self._integers[statement.variable.name] = i
                returned = self.body(statement.body)
                if returned is not None:
                    return returned
        else:
            return self._repeat(statement)
        return None

    def _repeat(self, statement: Repeat) -> int | None:
        for _ in range(statement.most):
            returned = self.body(statement.body)
            if returned is not None or not self._holds(statement.again):
                return returned
        return None

    def whole(self, index: Index) -> int:
        """Return a whole number."""
        parts = (
            factor * prod(map(self._integers.__getitem__, names)) for names, factor in index.terms.items()
        )
        return sum(parts)

    def _from(self, view: View) -> Any:
        return self._buffers[view.buffer][self.whole(view.index) :]

    def _holds(self, condition: Condition) -> bool:
        if isinstance(condition, All):
            return all(map(self._holds, condition.conditions))
        if isinstance(condition, Not):
            return not self._holds(condition.condition)
        left, right = self._number(condition.left), self._number(condition.right)
        return bool(_RELATIONS[condition.relation](left, right))

    def _number(self, number: Number) -> float:
        if isinstance(number, float):
            return number
        return float(self._from(number)[0])


_RELATIONS: Mapping[str, Any] = {"<": np.less, "<=": np.less_equal, ">": np.greater}
