"""Equal parts of a traced graph, side by side in the lanes of vectors.

What is traced for each of several limbs of one build differs in numbers alone: constants, joint positions,
what others exert on them. These are "lane" nodes of the graph; whatever is computed from numbers of one part,
and from what is the same for all, is one operation on vectors if every part has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from hodyn_ros.codegen.literals import literal, splat
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.codegen.writers import _FUNCTIONS, _INSTRUCTIONS, ScalarWriter


class Place(NamedTuple):
    """Where a node is: number of its group, and its lane."""

    group: int
    lane: int


class Packing:
    """Groups of nodes, one of each part, that are the same operation."""

    def __init__(self, graph: Graph, needed: Sequence[int]) -> None:
        self.places: dict[int, Place] = {}
        self.groups: list[list[int]] = []
        self.count = 1 + max((graph.nodes[n][2][0] for n in needed if graph.nodes[n][0] == "lane"), default=0)
        alone: set[int] = set()  # nodes of which not every part has one
        while self.count > 1:
            found = self._found(graph, needed, alone)
            if found:
                alone |= found
                continue
            break

    def _found(self, graph: Graph, needed: Sequence[int], alone: set[int]) -> set[int]:
        """Group nodes; returns those of groups that are not whole."""
        keys: dict[Hashable, int] = {}
        groups: list[dict[int, int]] = []
        places: dict[int, Place] = {}
        for number in needed:
            operation, a, b = graph.nodes[number]
            if number in alone:
                continue
            if operation == "lane":
                lane, name = b
                key: Hashable = ("lane", name)
            else:
                operands = graph.operands(number)
                lanes = {places[x].lane for x in operands if x in places}
                if len(lanes) != 1:
                    continue
                (lane,) = lanes
                names = [(0, places[x].group) if x in places else (1, x) for x in operands]
                if operation in "+*":
                    names.sort()
                key = (operation, *names, b if len(operands) == 1 else None)
            group = keys.setdefault(key, len(groups))
            if group == len(groups):
                groups.append({})
            if lane in groups[group]:
                continue  # the same in other order: computed alone
            groups[group][lane] = number
            places[number] = Place(group, lane)
        part = {n for group in groups if len(group) < self.count for n in group.values()}
        if not part:
            self.places, self.groups = places, [[g[lane] for lane in range(self.count)] for g in groups]
        return part


class PackedWriter(ScalarWriter):
    """Values are single numbers, and vectors of those that equal parts have each."""

    def __init__(self, graph: Graph, outputs: Sequence[Any]) -> None:
        super().__init__(graph, outputs)
        self.packing = packing = Packing(graph, self.needed)
        self.width = width = 2 if packing.count == 2 else 4 if packing.count <= 4 else 8
        self.vector = f"<{width} x double>"
        self._order = [min(lane, packing.count - 1) for lane in range(width)]
        self._vectors: dict[int, str] = {}  # by group
        self._singles: set[int] = set()  # nodes of groups that are single numbers too
        self._angles = {
            graph.nodes[n][1] for n in packing.places if graph.nodes[n][0] in _FUNCTIONS
        }
        self._splats: dict[int, str] = {}  # by node
        self._wanted = {x.number for x in outputs if isinstance(x, Traced)}
        self._fused_groups: set[int] = set()
        for number in self.needed:
            if number in packing.places and graph.nodes[number][0] in "+-":
                for x in graph.operands(number):
                    if x in self.fused and x in packing.places:
                        self._fused_groups.add(packing.places[x].group)
        self._fused_groups = {
            g for g in self._fused_groups if all(n in self.fused for n in packing.groups[g])
        }
        for number in list(self.fused):
            if number in packing.places:
                self.fused.discard(number)

    def lines(self, numbers: Sequence[int] | None = None) -> list[str]:
        result: list[str] = []
        places = self.packing.places
        for number in self.needed if numbers is None else numbers:
            if number in places:
                result += self._group_lines(places[number].group)
                if number in self._wanted:
                    result += self._single(number)
                continue
            if number in self.written:
                continue
            operands = self.graph.operands(number)
            if number not in self.fused:
                for x in operands:
                    result += self._ready(x)
                    if x in self.fused:
                        for y in self.graph.operands(x):
                            result += self._ready(y)
            result += super().lines([number])
        return result

    def _ready(self, number: int) -> list[str]:
        """Write a scalar operand."""
        if number in self.packing.places:
            return [*self._group_lines(self.packing.places[number].group), *self._single(number)]
        return []

    def _single(self, number: int) -> list[str]:
        """Write one number of a vector."""
        if number in self._singles:
            return []
        self._singles.add(number)
        group, lane = self.packing.places[number]
        vector = self._vectors[group]
        return [f"%n{number} = extractelement {self.vector} {vector}, i32 {lane}"]

    def _group_lines(self, group: int) -> list[str]:
        if group in self._vectors or group in self._fused_groups:
            return []
        nodes = self.packing.groups[group]
        graph = self.graph
        self.written.update(nodes)
        operation, a, b = graph.nodes[nodes[0]]
        lines: list[str] = []
        name = f"%v{group}"
        if operation == "lane":
            sources = [graph.nodes[n][1] for n in nodes]
            if all(graph.nodes[x][0] == "constant" for x in sources):
                values = ", ".join(f"double {literal(graph.nodes[sources[i]][1])}" for i in self._order)
                self._vectors[group] = f"<{values}>"
                return []
            lines += self.lines(self.missing(sources))
            for x in sources:
                lines += self._ready(x)
            packed = "poison"
            for lane, i in enumerate(self._order):
                to = name if lane + 1 == self.width else f"{name}_{lane}"
                lines.append(f"{to} = insertelement {self.vector} {packed}, double {self.value(sources[i])}, i32 {lane}")
                packed = to
        elif operation in _FUNCTIONS:
            lines += self._operand(nodes, 0)
            x = self._operand_name(nodes, 0)
            pair = f"{{{self.vector}, {self.vector}}}"
            self.widths.add(self.width)
            lines.append(f"{name}_both = call {pair} @sincos{self.width}({self.vector} {x})")
            for part, function in enumerate(_FUNCTIONS):
                twin = self.packing.places.get(graph.node(function, a))
                if twin is not None:
                    self._vectors[twin.group] = f"%v{twin.group}"
                    self.written.update(self.packing.groups[twin.group])
                    lines.append(f"%v{twin.group} = extractvalue {pair} {name}_both, {part}")
            return lines
        elif operation in _INSTRUCTIONS:
            flags = ""
            for i in range(2):
                lines += self._operand(nodes, i)
                x = (a, b)[i]
                if x in self.packing.places and self.packing.places[x].group in self._fused_groups:
                    flags = "contract "
            lines.append(
                f"{name} = {_INSTRUCTIONS[operation]} {flags}{self.vector} {self._operand_name(nodes, 0)}, "
                f"{self._operand_name(nodes, 1)}"
            )
        else:
            raise AssertionError(operation)
        self._vectors[group] = name
        return lines

    def _operand(self, nodes: Sequence[int], i: int) -> list[str]:
        """Write an operand of a vector operation."""
        x = self.graph.nodes[nodes[0]][1 + i]
        if x in self.packing.places:
            group = self.packing.places[x].group
            if group in self._fused_groups:
                if group in self._vectors:
                    return []
                inner = self.packing.groups[group]
                lines = [*self._operand(inner, 0), *self._operand(inner, 1)]
                lines.append(
                    f"%v{group} = fmul contract {self.vector} {self._operand_name(inner, 0)}, {self._operand_name(inner, 1)}"
                )
                self._vectors[group] = f"%v{group}"
                return lines
            return self._group_lines(group)
        if x in self._splats:
            return []
        if self.graph.nodes[x][0] == "constant":
            self._splats[x] = splat(self.graph.nodes[x][1], self.width)
            return []
        lines = self.lines(self.missing([x]))
        self._splats[x] = f"%w{x}"
        zeros = ", ".join(["i32 0"] * self.width)
        return [
            *lines,
            f"%w{x}_in = insertelement {self.vector} poison, double {self.value(x)}, i32 0",
            f"%w{x} = shufflevector {self.vector} %w{x}_in, {self.vector} poison, <{self.width} x i32> <{zeros}>",
        ]

    def _operand_name(self, nodes: Sequence[int], i: int) -> str:
        x = self.graph.nodes[nodes[0]][1 + i]
        if x in self.packing.places:
            return self._vectors[self.packing.places[x].group]
        return self._splats[x]

    def angles(self) -> list[int]:
        """Return single angles; those of equal parts wait for theirs."""
        return [x for x in super().angles() if x not in self._angles]
