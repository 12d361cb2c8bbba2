"""Derivatives of traced functions in one direction, traced into the same graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hodyn_ros.codegen.tracer import Graph, Traced

Scalar = Any  # traced, or a number


def derivatives(graph: Graph, outputs: Sequence[Scalar], changes: Mapping[int, Scalar]) -> list[Scalar]:
    """Return the change of each output where nodes change as given, whatever these are computed from.

    Forward mode: A. Griewank & A. Walther, "Evaluating Derivatives" (2008), section 3.1. What is looked up in
    tables is differentiated within its interval.
    """
    found: dict[int, Scalar] = {}
    for number in graph.needed(outputs):
        change = changes[number] if number in changes else _change(graph, number, found)
        if not (isinstance(change, float) and change == 0.0):
            found[number] = change
    return [
        (-1.0 if x.negative else 1.0) * found.get(x.number, 0.0) if isinstance(x, Traced) else 0.0
        for x in outputs
    ]


def _change(graph: Graph, number: int, found: Mapping[int, Scalar]) -> Scalar:
    """Return how a node changes where its operands do."""
    operation, a, b = graph.nodes[number]
    if operation in ("constant", "input", "floor", "piece", "entry"):
        return 0.0
    of_a = found.get(a, 0.0)
    if operation in ("+", "-"):
        of_b = found.get(b, 0.0)
        return of_a + of_b if operation == "+" else of_a - of_b
    argument, value = Traced(graph, a), Traced(graph, number)
    if operation == "*":
        return of_a * Traced(graph, b) + found.get(b, 0.0) * argument
    if operation == "/":
        inverse = 1.0 / Traced(graph, b)
        return of_a * inverse - found.get(b, 0.0) * (value * inverse)
    if operation == "sin":
        return of_a * argument.cos()
    if operation == "cos":
        return -(of_a * argument.sin())
    if operation == "sqrt":
        return of_a * (0.5 / value)
    return of_a * (argument / value)  # abs
