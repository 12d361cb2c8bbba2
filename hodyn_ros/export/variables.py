"""The variables of straight-line code: a constant for each value, or few that hold several in turn."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from textwrap import wrap

from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.export.c_text import WIDTH


class Constants:
    """A constant for each value, which compilers read fastest."""

    def __init__(self, graph: Graph, ordered: Sequence[int], kept: Sequence[int]) -> None:
        self._graph, self._count = graph, 0
        self.declarations: list[str] = []

    def assign(self, node: int, text: str) -> tuple[str, str]:
        """Return the name of a value, and the statement that computes it."""
        name = f"x{self._count}"
        self._count += 1
        return name, f"  const {_kind(self._graph, node)} {name} = {text};"


class Reused:
    """As few variables as values are needed at once, so that stacks are small at every optimisation.

    `ordered`: the nodes in the order of their statements; `kept`: those that are read afterwards; `number`:
    the type of all that are no integers.
    """

    def __init__(self, graph: Graph, ordered: Sequence[int], kept: Sequence[int], number: str) -> None:
        self._graph, self._number = graph, number
        self._slots = {number: Slots(), "int": Slots()}
        self._last = {operand: node for node in ordered for operand in graph.operands(node)}
        self._last |= dict.fromkeys(kept, -1)
        self._held: dict[int, int] = {}

    def assign(self, node: int, text: str) -> tuple[str, str]:
        """Return the name of a value, and the statement that computes it."""
        for operand in dict.fromkeys(self._graph.operands(node)):
            if self._last[operand] == node and operand in self._held:
                self._slots[self._kind(operand)].free(self._held.pop(operand))
        kind = self._kind(node)
        slot = self._slots[kind].take()
        if node in self._last:
            self._held[node] = slot
        else:  # it is handed on at once
            self._slots[kind].free(slot)
        name = f"{kind[0]}{slot}"
        return name, f"  {name} = {text};"

    def _kind(self, node: int) -> str:
        kind = _kind(self._graph, node)
        return self._number if kind == "double" else kind

    @property
    def declarations(self) -> list[str]:
        """The statements that declare all variables, once the values are assigned."""
        names = [(kind, f"{kind[0]}{i}") for kind, slots in self._slots.items() for i in range(slots.count)]
        words = " ".join(f"{kind} {name};" for kind, name in names)
        return wrap(words, WIDTH, initial_indent="  ", subsequent_indent="  ")


class Slots:
    """Places that are taken and freed; the lowest free one is taken."""

    def __init__(self) -> None:
        self.count = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Take a place."""
        if self._free:
            return heappop(self._free)
        self.count += 1
        return self.count - 1

    def free(self, slot: int) -> None:
        """Give a place back."""
        heappush(self._free, slot)


def _kind(graph: Graph, node: int) -> str:
    return "int" if graph.nodes[node][0] == "piece" else "double"
