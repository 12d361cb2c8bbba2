"""A traced graph as straight-line C: every operation once, in the order of the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hodyn_ros.engine.tracer import Graph, Traced
from hodyn_ros.export.c_text import number


def statements(graph: Graph, arguments: Sequence[str], stores: Sequence[tuple[str, Any]]) -> list[str]:
    """Write the statements of a function body.

    `arguments` are the names of the arrays that inputs are read from; `stores` are places and the values they
    receive. All inputs are read before anything is stored, so that a result may overwrite an argument.
    """
    outputs = [value for _, value in stores]
    needed = sorted(graph.needed(outputs))
    reads: list[str] = []
    steps: list[str] = []
    local: dict[int, str] = {}

    def value_of(node: int) -> str:
        operation, a, _ = graph.nodes[node]
        return number(a) if operation == "constant" else local[node]

    for node in needed:
        operation, a, b = graph.nodes[node]
        if operation == "constant":
            continue
        local[node] = f"x{len(local)}"
        made = f"  const double {local[node]} = "
        if operation == "input":
            reads.append(f"{made}{arguments[a]}[{b}];")
        elif operation in ("sin", "cos", "sqrt"):
            steps.append(f"{made}{operation}({value_of(a)});")
        else:
            steps.append(f"{made}{value_of(a)} {operation} {value_of(b)};")
    writes = [f"  {place} = {_signed(value, value_of)};" for place, value in stores]
    return [*reads, *steps, *writes]


def _signed(value: Any, value_of: Callable[[int], str]) -> str:
    if not isinstance(value, Traced):
        return number(value)
    return f"-{value_of(value.number)}" if value.negative else value_of(value.number)
