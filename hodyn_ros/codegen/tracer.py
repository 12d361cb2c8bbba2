"""Scalars that write down what is computed with them, as a graph without repetitions.

Constants fold (x + 0, x · 0, x · 1, ...), signs move outward, and equal expressions share one node, so that
tracing a recursion on one robot leaves only the operations that this robot needs.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, NamedTuple

ARITHMETIC = ("+", "-", "*", "/")
_BINARY = frozenset(ARITHMETIC)
_LEAVES = frozenset(("constant", "input"))

Operation = Literal[
    "constant", "input", "+", "-", "*", "/", "abs", "sin", "cos", "sqrt", "floor", "piece", "entry", "lane"
]
Key = tuple[Operation, Any, Any]
Part = tuple[int, int]  # one of parts that are alike: number of these, and the place among them


@dataclass
class Graph:
    """The operations of a traced function, in the order in which they were first met.

    Node i is `nodes[i] = (operation, a, b)`. Operands are node numbers; a "constant" has its value, an
    "input" the number of the argument and the index into it, a "piece" the starts of intervals, an "entry"
    the numbers that it is one of. A "lane" is operand a as it is, which one of several equal parts of a robot
    has: b is the part, and what the number is to it. `conditions` are scalars below zero where the function
    was not meant.
    """

    nodes: list[Key] = field(default_factory=list)
    conditions: list[Traced] = field(default_factory=list)
    steps: list[int] = field(default_factory=lambda: [0])  # first nodes of functions that follow each other
    packs: bool = False  # whether it is told which numbers are those of equal parts
    parts: dict[int, Part] = field(default_factory=dict)  # of nodes that follow from numbers of one alone
    _known: dict[Key, int] = field(default_factory=dict)

    def node(self, operation: Operation, a: Any, b: Any = None) -> int:
        """Return the number of a node, made anew unless the same one exists."""
        key: Key = (operation, a, b)
        new = len(self.nodes)
        number = self._known.setdefault(key, new)
        if number == new:
            self.nodes.append(key)
            parts = self.parts
            if operation == "lane":
                parts[number] = b[0]
            elif parts and operation not in _LEAVES:
                part = parts.get(a)
                if operation in _BINARY:
                    other = parts.get(b)
                    part = other if part is None else part if other is None or other == part else None
                if part is not None:
                    parts[number] = part
        return number

    def begin_step(self) -> None:
        """Let what follows be a function of its own, which refers to results of those before."""
        self._known.clear()
        self.steps.append(len(self.nodes))

    def input(self, argument: int, index: int) -> Traced:
        """Return the scalar that stands for an element of an argument of the function."""
        return Traced(self, self.node("input", argument, index))

    def needed(self, outputs: Sequence[Any], known: Container[int] = ()) -> list[int]:
        """Return the nodes that the traced scalars among `outputs` depend on, in their order.

        What leads to those that are `known` is left out.
        """
        last = max((x.number for x in outputs if isinstance(x, Traced)), default=-1)
        result = bytearray(last + 1)
        for output in outputs:
            if isinstance(output, Traced):
                result[output.number] = 1
        # operands come before what is computed from them
        for number in range(len(result) - 1, -1, -1):
            if result[number] and number not in known:
                operation, a, b = self.nodes[number]
                if operation in _BINARY:
                    result[a] = result[b] = 1
                elif operation not in _LEAVES:
                    result[a] = 1
        return list(compress(range(len(result)), result))

    def operands(self, number: int) -> list[int]:
        """Return the nodes that a node is computed from."""
        operation, a, b = self.nodes[number]
        if operation in _LEAVES:
            return []
        return [a, b] if operation in _BINARY else [a]

    def fused(self, outputs: Iterable[Any], needed: Sequence[int]) -> set[int]:
        """Return products, one at most of each sum or difference, that are needed there and nowhere else."""
        nodes, uses = self.nodes, [0] * len(self.nodes)
        for output in outputs:
            if isinstance(output, Traced):
                uses[output.number] += 1
        for number in needed:
            operation, a, b = nodes[number]
            if operation in _BINARY:
                uses[a] += 1
                uses[b] += 1
            elif operation not in _LEAVES:
                uses[a] += 1
        result = set()
        for number in needed:
            operation, a, b = nodes[number]
            if operation == "+" or operation == "-":
                if nodes[a][0] == "*" and uses[a] == 1:
                    result.add(a)
                elif nodes[b][0] == "*" and uses[b] == 1:
                    result.add(b)
        return result

    def count_operations(self, outputs: Sequence[Any]) -> int:
        """Count the additions, subtractions, multiplications and divisions that the outputs need."""
        return sum(self.nodes[number][0] in ARITHMETIC for number in self.needed(outputs))

    def violation(self) -> Traced | float:
        """Return what is zero where all conditions hold, and else positive or NaN."""
        total: Traced | float = 0.0
        for margin in self.conditions:
            total = total + (abs(margin) - margin)
        return total

    def constant(self, value: float) -> int:
        """Return the node of a constant."""
        return self.node("constant", float(value))


class Traced:
    """A scalar that stands for a node of a graph, or for its negative."""

    __slots__ = ("graph", "number", "negative")

    def __init__(self, graph: Graph, number: int, negative: bool = False) -> None:
        self.graph = graph
        self.number = number
        self.negative = negative

    def __neg__(self) -> Traced:
        return Traced(self.graph, self.number, not self.negative)

    def __add__(self, other: Traced | float) -> Traced | float:
        if not isinstance(other, Traced):
            if isinstance(other, Own) and self.graph.packs:
                other = other.traced(self.graph)
            elif other == 0.0:
                return self
            else:
                other = _constant(self.graph, float(other))
        return self._plus(other.number, other.negative)

    __radd__ = __add__

    def __sub__(self, other: Traced | float) -> Traced | float:
        if not isinstance(other, Traced):
            return self + (-other)
        return self._plus(other.number, not other.negative)

    def __rsub__(self, other: Traced | float) -> Traced | float:
        return (-self) + other

    def _plus(self, b: int, negative: bool) -> Traced | float:
        """Add node `b`, or its negative. What differs in all signs alone shares a node."""
        a, graph = self.number, self.graph
        if self.negative == negative:
            return Traced(graph, graph.node("+", a, b) if a < b else graph.node("+", b, a), negative)
        if a == b:
            return 0.0
        first = a < b
        if graph.parts and (a in graph.parts) is not (b in graph.parts):
            first = a in graph.parts  # alike for equal parts, whatever was met before
        if first:
            return Traced(graph, graph.node("-", a, b), self.negative)
        return Traced(graph, graph.node("-", b, a), negative)

    def __mul__(self, other: Traced | float) -> Traced | float:
        if not isinstance(other, Traced):
            if isinstance(other, Own) and self.graph.packs:
                other = other.traced(self.graph)
            else:
                value = float(other)
                if value == 0.0:
                    return 0.0
                if value == 1.0:
                    return self
                if value == -1.0:
                    return -self
                other = _constant(self.graph, value)
        a, b = self.number, other.number
        node = self.graph.node("*", a, b) if a < b else self.graph.node("*", b, a)
        return Traced(self.graph, node, self.negative != other.negative)

    __rmul__ = __mul__

    def __truediv__(self, other: Traced | float) -> Traced | float:
        if not isinstance(other, Traced):
            return self * (1.0 / float(other))
        return Traced(
            self.graph, self.graph.node("/", self.number, other.number), self.negative != other.negative
        )

    def __rtruediv__(self, other: float) -> Traced | float:
        return 0.0 if other == 0.0 else _constant(self.graph, float(other)) / self

    def __pow__(self, exponent: float) -> Traced | float:
        if exponent == 0.5:
            return self.sqrt()
        if exponent == -0.5:
            return 1.0 / self.sqrt()
        if exponent == -1.0:
            return 1.0 / self
        raise TypeError(f"the tracer knows the powers 0.5, -0.5 and -1, not {exponent}")

    def __abs__(self) -> Traced:
        return Traced(self.graph, self.graph.node("abs", self.number))

    def cos(self) -> Traced:
        """Cosine; also reached through `numpy.cos`."""
        return Traced(self.graph, self.graph.node("cos", self.number))

    def sin(self) -> Traced:
        """Sine; also reached through `numpy.sin`."""
        return Traced(self.graph, self.graph.node("sin", self.number), self.negative)

    def sqrt(self) -> Traced:
        """Square root; also reached through `numpy.sqrt`. That of a negative scalar is NaN."""
        return Traced(self.graph, self.graph.node("sqrt", self._signed()))

    def __floor__(self) -> Traced:
        return Traced(self.graph, self.graph.node("floor", self._signed()))

    def looked_up(self, starts: Sequence[float], rows: Sequence[Sequence[float]]) -> list[Traced]:
        """Return from each of `rows` (m,) the number of the interval that this scalar lies in.

        `starts` (m,) of the intervals increase; below the first one, the first interval counts.
        """
        piece = self.graph.node("piece", self._signed(), tuple(map(float, starts)))
        return [Traced(self.graph, self.graph.node("entry", piece, tuple(map(float, row)))) for row in rows]

    def _signed(self) -> int:
        """Return the node of this scalar with its sign, which else lives outside of nodes."""
        if not self.negative:
            return self.number
        return self.graph.node("-", self.graph.constant(0.0), self.number)


class Own(float):
    """A constant that each of several equal parts of a robot has: where graphs pack, it does not fold.

    `name` is what it is to its part.
    """

    part: Part
    name: Hashable

    @classmethod
    def of(cls, value: float, part: Part, name: Hashable) -> Own:
        """Return a constant of one of the parts."""
        own = cls(value)
        own.part, own.name = part, name
        return own

    def traced(self, graph: Graph) -> Traced:
        """Return the scalar that stands for it in a graph that packs."""
        return Traced(graph, graph.node("lane", graph.constant(self), (self.part, self.name)))

    def _made(self, value: float, operation: str, other: Any = None) -> Own:
        return Own.of(value, self.part, (operation, self.name, getattr(other, "name", other)))

    def __neg__(self) -> Own:
        return self._made(-float(self), "-")

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return self if _is(other, 0.0) else self._made(float(self) + float(other), "+", other)

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return self if _is(other, 0.0) else self._made(float(self) - float(other), "-", other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        if _is(other, 0.0) or _is(other, 1.0):
            return self if _is(other, 1.0) else 0.0
        return self._made(float(self) * float(other), "*", other)

    __radd__, __rmul__ = __add__, __mul__


_NUMBERS = (int, float)  # traced scalars, and arrays of derivatives, know what to do with one of these


def _is(other: Any, value: float) -> bool:
    return not isinstance(other, Own) and float(other) == value


def of_part(x: Any, part: Part, name: Hashable) -> Any:
    """Return a scalar as one that each of several equal parts has; `name`: what it is to its part."""
    if not isinstance(x, Traced) or not x.graph.packs:
        return x
    return Traced(x.graph, x.graph.node("lane", x._signed(), (part, name)))


def _constant(graph: Graph, value: float) -> Traced:
    """Return a constant, its sign kept apart so that x · c and x · -c share a node."""
    return Traced(graph, graph.constant(abs(value)), math.copysign(1.0, value) < 0.0)


class Split(NamedTuple):
    """A function whose arguments are the scalars `kept` of another one, and the argument that changes."""

    kept: list[Traced]
    graph: Graph
    outputs: list[Any]


def split(graph: Graph, outputs: Sequence[Any], argument: int) -> Split:
    """Take apart what follows from an argument; what it leaves as it is may be computed once for many."""
    moving, kept = Graph(), list[Traced]()
    place: dict[int, int] = {}  # in the new graph
    varies = set[int]()

    def at(number: int) -> int:
        """Return where a node is in the new graph, where it is an argument unless it varies."""
        if number not in place:
            operation, a, _ = graph.nodes[number]
            if operation == "constant":
                place[number] = moving.constant(a)
            else:
                place[number] = moving.node("input", 0, len(kept))
                kept.append(Traced(graph, number))
        return place[number]

    for number in graph.needed(outputs):
        operation, a, b = graph.nodes[number]
        operands = graph.operands(number)
        if operation == "input" and a == argument:
            place[number] = moving.node("input", 1, b)
        elif varies.intersection(operands):
            places = [at(operand) for operand in operands]
            place[number] = moving.node(operation, places[0], places[1] if len(places) > 1 else b)
        else:
            continue
        varies.add(number)
    result = [Traced(moving, at(x.number), x.negative) if isinstance(x, Traced) else x for x in outputs]
    return Split(kept, moving, result)
