"""Derivatives of traced functions, traced into the same graph: in one direction, and of one sum by all."""

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
    result: dict[int, Scalar] = {}
    for number in graph.needed(outputs, changes):
        if number in changes:
            change = changes[number]
        elif result.keys().isdisjoint(graph.operands(number)):
            continue
        else:
            change = _change(graph, number, result)
        if not (isinstance(change, float) and change == 0.0):
            result[number] = change
    return [
        (-1.0 if x.negative else 1.0) * result.get(x.number, 0.0) if isinstance(x, Traced) else 0.0
        for x in outputs
    ]


def _change(graph: Graph, number: int, changes: Mapping[int, Scalar]) -> Scalar:
    """Return how a node changes where its operands do."""
    operation, a, b = graph.nodes[number]
    if operation in ("constant", "input", "floor", "piece", "entry"):
        return 0.0
    of_a = changes.get(a, 0.0)
    if operation in ("+", "-"):
        of_b = changes.get(b, 0.0)
        return of_a + of_b if operation == "+" else of_a - of_b
    argument, value = Traced(graph, a), Traced(graph, number)
    if operation == "*":
        return of_a * Traced(graph, b) + changes.get(b, 0.0) * argument
    if operation == "/":
        inverse = 1.0 / Traced(graph, b)
        return of_a * inverse - changes.get(b, 0.0) * (value * inverse)
    if operation == "sin":
        return of_a * argument.cos()
    if operation == "cos":
        return -(of_a * argument.sin())
    if operation == "sqrt":
        return of_a * (0.5 / value)
    return of_a * (argument / value)  # abs


def gradient(
    graph: Graph, outputs: Sequence[Scalar], weights: Sequence[Scalar], inputs: Sequence[Scalar]
) -> list[Scalar]:
    """Return the derivatives of `sum of weights · outputs` by each of `inputs`, whatever weights depend on.

    Reverse mode: A. Griewank & A. Walther, "Evaluating Derivatives" (2008), section 3.2. Every operation is
    visited once, so that all derivatives together cost about as much as four times the outputs. What is
    looked up in tables is differentiated within its interval.
    """
    adjoints: dict[int, Scalar] = {}
    for output, weight in zip(outputs, weights, strict=True):
        if isinstance(output, Traced):
            _add(adjoints, output.number, -weight if output.negative else weight)
    sought = {x.number for x in inputs if isinstance(x, Traced)}
    moved = _depending(graph, outputs, sought)
    for number in reversed(moved):
        if number in sought:
            continue
        adjoint = adjoints.pop(number, 0.0)
        if not (isinstance(adjoint, float) and adjoint == 0.0):
            _pass_on(graph, number, adjoint, adjoints, moved)
    return [
        (-1.0 if x.negative else 1.0) * adjoints.get(x.number, 0.0) if isinstance(x, Traced) else 0.0
        for x in inputs
    ]


def _depending(graph: Graph, outputs: Sequence[Scalar], sought: set[int]) -> dict[int, None]:
    """Return the nodes between what is sought and the outputs, in their order."""
    result: dict[int, None] = {}
    for number in graph.needed(outputs, sought):
        if number in sought or any(operand in result for operand in graph.operands(number)):
            result[number] = None
    return result


def _add(adjoints: dict[int, Scalar], number: int, value: Scalar) -> None:
    adjoints[number] = adjoints[number] + value if number in adjoints else value


def _pass_on(
    graph: Graph, number: int, adjoint: Scalar, adjoints: dict[int, Scalar], moved: dict[int, None]
) -> None:
    """Add to the adjoints of a node's operands what its own contributes."""
    operation, a, b = graph.nodes[number]
    if operation in ("floor", "piece", "entry"):
        return
    if operation in ("+", "-"):
        if a in moved:
            _add(adjoints, a, adjoint)
        if b in moved:
            _add(adjoints, b, adjoint if operation == "+" else -adjoint)
        return
    argument, value = Traced(graph, a), Traced(graph, number)
    if operation == "*":
        if a in moved:
            _add(adjoints, a, adjoint * Traced(graph, b))
        if b in moved:
            _add(adjoints, b, adjoint * argument)
    elif operation == "/":
        scaled = adjoint / Traced(graph, b)
        if a in moved:
            _add(adjoints, a, scaled)
        if b in moved:
            _add(adjoints, b, -(scaled * value))
    elif operation == "sin":
        _add(adjoints, a, adjoint * argument.cos())
    elif operation == "cos":
        _add(adjoints, a, -(adjoint * argument.sin()))
    elif operation == "sqrt":
        _add(adjoints, a, adjoint * (0.5 / value))
    else:  # abs
        _add(adjoints, a, adjoint * (argument / value))
