"""Functions traced one after the other for one body; what one uses of those before stays in its record.

A trace runs through all steps with the same objects. Where a later step refers to a number that an earlier
one has computed, the earlier step stores it and the later one loads it: nothing has to say which those are.
Only what bodies read of each other has places with names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hodyn_ros.codegen.emit import function_text
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.engine.large_trees.tree_memory import OWN, Record, Store, Target, Text
from hodyn_ros.engine.recursions.recursion import Direction


@dataclass
class Step:
    """What is done with each body on the way over all: what is stored, in the arguments of the function.

    `loads`: what applied wrenches are then taken from.
    """

    direction: Direction
    stores: list[Store] = field(default_factory=list)
    loads: list[Target] = field(default_factory=list)


class Steps:
    """The steps of a body of one kind, `variant`, which is the end of their names."""

    def __init__(self, variant: str, record: Record, arguments: int = 3) -> None:
        self.variant, self.record, self.graph = variant, record, Graph()
        self._arguments = arguments
        self.steps: list[Step] = []

    def begin(self, direction: Direction) -> None:
        """Begin the next step; the first has begun with what was traced before it."""
        if self.steps:
            self.graph.begin_step()
        self.steps.append(Step(direction))

    def read(self, name: str, k: int = 0, argument: int = OWN) -> list[Any]:
        """Read numbers of a record."""
        return self.record.read(self.graph, argument, name, k)

    def write(self, name: str, values: Sequence[Any], k: int = 0) -> None:
        """Store all numbers of a name in the record of the body."""
        places = self.record.places(name, k)
        self.store([(OWN, place, value) for place, value in zip(places, values, strict=True)])

    def store(self, stores: Sequence[Store]) -> None:
        """Store numbers in any argument."""
        self.steps[-1].stores.extend(stores)

    def texts(self) -> list[Text]:
        """Write all steps; the record grows by what has to be kept."""
        ends = [*self.graph.steps[1:], len(self.graph.nodes)]
        kept: list[dict[int, int]] = [{} for _ in ends]  # by step: places in the record by node
        own = [index for one in self.steps for argument, index, _ in one.stores if argument == OWN]
        written = [*self.record.places(Record.SUMS), *own]
        places, free = self._places(written), self.record.named
        loaded: list[dict[int, tuple[int, int]]] = [{} for _ in ends]  # argument and index by node
        bodies: list[set[int]] = [set() for _ in ends]
        for step in reversed(range(len(ends))):
            outputs = [value.number for _, _, value in self.steps[step].stores if isinstance(value, Traced)]
            pending = [*outputs, *kept[step]]
            while pending:
                number = pending.pop()
                if number in bodies[step] or number in loaded[step]:
                    continue
                operation, argument, index = self.graph.nodes[number]
                source = self._step_of(number)
                if source == step or operation == "constant":
                    bodies[step].add(number)
                    pending += self.graph.operands(number)
                elif operation == "input" and (argument > OWN or (argument == OWN and index not in written)):
                    loaded[step][number] = argument, index
                else:
                    place = places.get(number, kept[source].get(number))
                    if place is None:
                        place = kept[source][number] = free
                        free += 1
                    loaded[step][number] = OWN, place
        self.record.size = max(self.record.size, free)
        return [self._text(step, bodies[step], loaded[step], kept[step]) for step in range(len(ends))]

    def _places(self, written: Sequence[int]) -> dict[int, int]:
        """Return where numbers are that have places with names to which nothing else is written."""
        return {
            value.number: index
            for step, one in enumerate(self.steps)
            for argument, index, value in one.stores
            if argument == OWN and written.count(index) == 1
            if isinstance(value, Traced) and not value.negative and self._step_of(value.number) == step
        }

    def _step_of(self, number: int) -> int:
        return bisect_right(self.graph.steps, number) - 1

    def _text(
        self, step: int, body: set[int], loaded: dict[int, tuple[int, int]], kept: dict[int, int]
    ) -> Text:
        graph, numbers = Graph(), {}
        for number in sorted({*body, *loaded}):
            if number in loaded:
                numbers[number] = graph.node("input", *loaded[number])
                continue
            operation, a, b = self.graph.nodes[number]
            operands = self.graph.operands(number)
            first = numbers[a] if operands else a
            numbers[number] = graph.node(operation, first, numbers[b] if len(operands) > 1 else b)
        moved = [
            (argument, index, Traced(graph, numbers[value.number], value.negative))
            if isinstance(value, Traced)
            else (argument, index, value)
            for argument, index, value in self.steps[step].stores
        ]
        moved += [(OWN, place, Traced(graph, numbers[number])) for number, place in kept.items()]
        return function_text(step_name(step, self.variant), graph, moved, self._arguments)


def step_name(step: int, variant: str) -> str:
    """Return the name of the function that carries out a step for one kind of body."""
    return f"step{step}_{variant}"
