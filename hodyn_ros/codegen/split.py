"""A traced function in two: what one argument does not change, and what follows from that and from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hodyn_ros.codegen.tracer import Graph, Traced


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
