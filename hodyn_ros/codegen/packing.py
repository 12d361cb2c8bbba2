"""Equal parts of a traced graph, computed side by side in the lanes of vectors.

What is traced of each of several limbs of one build differs in numbers alone: constants, positions, what the
drives exert. They stand in "lane" nodes of the graph. Whatever follows from numbers of one limb, and from
what is the same for all, is one operation on vectors if every limb has it; all else is computed with single
numbers, also what each limb makes of a sum over an odd number of them, which ends with one of its own. S.
Larsen & S. Amarasinghe, "Exploiting superword level parallelism with multimedia instruction sets" (PLDI
2000), pack isomorphic statements likewise, from neighbouring addresses on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from hodyn_ros.codegen.literals import literal, splat
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.codegen.writers import FUNCTIONS, INSTRUCTIONS, ScalarWriter

_COMMUTATIVE = ("+", "*")
_UNARY = (*FUNCTIONS, "sqrt")


class Packing:
    """The vectors that a graph is computed with: each the nodes in its lanes; `of` by node."""

    def __init__(self, graph: Graph, needed: Sequence[int]) -> None:
        nodes, parts = graph.nodes, graph.parts
        counts: dict[int, int] = {}
        for number in needed:
            if nodes[number][0] == "lane":
                (alike, lane), _ = nodes[number][2]
                counts[alike] = max(counts.get(alike, 0), lane + 1)
        # by what is done with which vectors, and with which nodes, -1 - node, that are the same for all limbs
        numbers: dict[tuple[int, str, Any, int], int] = {}
        rows: list[dict[int, int]] = []  # nodes by lane
        of: dict[int, int] = {}  # vectors by node
        for number in needed:
            if number not in parts:
                continue
            operation, a, b = nodes[number]
            x: Any = of.get(a, -1 - a)
            y = -1
            if operation in INSTRUCTIONS:
                y = of.get(b, -1 - b)
                if x < 0 and y < 0:
                    continue
                if operation in _COMMUTATIVE and x > y:
                    x, y = y, x
            elif operation == "lane":
                x = b[1]
            elif x < 0 or operation not in _UNARY:
                continue
            alike, lane = parts[number]
            vector = numbers.setdefault((alike, operation, x, y), len(rows))
            if vector == len(rows):
                rows.append({})
            if rows[vector].setdefault(lane, number) == number:
                of[number] = vector
        # what a limb lacks is computed alone, and with it all that the others make of it
        whole: list[bool] = []
        for (alike, done, x, y), row in zip(numbers, rows):
            operands = () if done == "lane" else (x, y)
            whole.append(len(row) == counts[alike] and all(whole[i] for i in operands if i >= 0))
        self.vectors = [[row[lane] for lane in range(len(row))] for row, kept in zip(rows, whole) if kept]
        place = dict(zip(compress(range(len(rows)), whole), range(len(rows))))
        self.of = {number: place[vector] for number, vector in of.items() if vector in place}

    def fused(self, graph: Graph, fused: set[int]) -> set[int]:
        """Return which of some products stay part of a sum: those alone, and those of all lanes of a vector.

        Lanes of samples, which compute each limb by itself, fuse the same ones, and so round alike.
        """
        inner = {
            self.of[x]
            for number, *_ in self.vectors  # lanes are alike
            if graph.nodes[number][0] in ("+", "-")
            for x in graph.operands(number)
            if x in fused and x in self.of
        }
        whole = [self.vectors[vector] for vector in inner if fused.issuperset(self.vectors[vector])]
        return {x for x in fused if x not in self.of}.union(*whole)


class PackedWriter(ScalarWriter):
    """Values are single numbers, and vectors of those that limbs of one build have each.

    Spare lanes repeat the last limb.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Any]) -> None:
        super().__init__(graph, outputs)
        packing = Packing(graph, self.needed)
        self._of, self._vectors = packing.of, packing.vectors
        self._values: dict[int, str] = {}  # of the vectors written
        self._in_all_lanes: dict[tuple[int, int], str] = {}  # single numbers in all lanes, by node and width
        self._singles: set[int] = set()  # nodes whose number has been taken out of its vector
        self._outputs = {x.number for x in outputs if isinstance(x, Traced)}
        nodes = (graph.nodes[row[0]] for row in self._vectors)
        functions = (vector for vector, node in enumerate(nodes) if node[0] in FUNCTIONS)
        self._packed_angles = {graph.nodes[x][1] for vector in functions for x in self._vectors[vector]}
        fused = packing.fused(graph, self.fused)
        self.fused = {x for x in fused if x not in self._of}
        self._fused_vectors = {self._of[x] for x in fused if x in self._of}
        # a vector is written where the first of its numbers is met
        first = {min(row) for row in self._vectors}
        self.order = [x for x in self.needed if x not in self._of or x in first or x in self._outputs]

    def lines(self, numbers: Sequence[int] | None = None) -> list[str]:
        """Write the nodes `numbers`, by default all that are needed, leaving out those written before."""
        result: list[str] = []
        for number in self.order if numbers is None else numbers:
            if number in self._of:
                result += self._vector_lines(self._of[number])
                result += self._single(number) if number in self._outputs else []
            elif number not in self.written:
                for operand in () if number in self.fused else self.graph.operands(number):
                    inner = self.graph.operands(operand) if operand in self.fused else [operand]
                    for x in inner:
                        if x in self._of:
                            result += self._single(x)
                result += super().lines([number])
        return result

    def value(self, number: int) -> str:
        """Return what stands for the single number of a node."""
        return f"%n{number}" if number in self._of else super().value(number)

    def angles(self) -> list[int]:
        """Return those of single numbers."""
        return [angle for angle in super().angles() if angle not in self._packed_angles]

    def _width(self, vector: int) -> int:
        return max(2, 1 << (len(self._vectors[vector]) - 1).bit_length())

    def _type(self, vector: int) -> str:
        return f"<{self._width(vector)} x double>"

    def _single(self, number: int) -> list[str]:
        """Take a number out of its vector, if it is in one."""
        if number not in self._of or number in self._singles:
            return []
        self._singles.add(number)
        vector, (_, lane) = self._of[number], self.graph.parts[number]
        lines = self._vector_lines(vector)
        value = f"{self._type(vector)} {self._values[vector]}"
        return [*lines, f"%n{number} = extractelement {value}, i32 {lane}"]

    def _vector_lines(self, vector: int) -> list[str]:
        """Write a vector, unless it is written or becomes part of a sum."""
        if vector in self._values or vector in self._fused_vectors:
            return []
        nodes = self._vectors[vector]
        self.written.update(nodes)
        operation = self.graph.nodes[nodes[0]][0]
        if operation == "lane":
            return self._gathered(vector)
        if operation in FUNCTIONS:
            return self._both_functions(vector)
        lines, operands, product = self._operands(vector)
        kind = self._type(vector)
        if operation in INSTRUCTIONS:
            instruction = f"{INSTRUCTIONS[operation]} {'contract ' if product else ''}{kind}"
            lines.append(f"{product}%v{vector} = {instruction} {', '.join(operands)}")
        else:
            name = f"llvm.{operation}.v{self._width(vector)}f64"
            self.intrinsics[name] = kind
            lines.append(f"%v{vector} = call {kind} @{name}({kind} {operands[0]})")
        self._values[vector] = f"%v{vector}"
        return lines

    def _gathered(self, vector: int) -> list[str]:
        """Put single numbers side by side."""
        nodes, width = self._vectors[vector], self._width(vector)
        sources = [self.graph.nodes[node][1] for node in nodes]
        sources += sources[-1:] * (width - len(sources))
        if all(self.graph.nodes[x][0] == "constant" for x in sources):
            numbers = (f"double {literal(self.graph.nodes[x][1])}" for x in sources)
            self._values[vector] = f"<{', '.join(numbers)}>"
            return []
        lines = self.lines(self.missing(sources))
        packed = "poison"
        for lane, x in enumerate(sources):
            lines += self._single(x)
            name = f"%v{vector}" if lane + 1 == width else f"%v{vector}_{lane}"
            lines.append(
                f"{name} = insertelement {self._type(vector)} {packed}, double {self.value(x)}, i32 {lane}"
            )
            packed = name
        self._values[vector] = packed
        return lines

    def _both_functions(self, vector: int) -> list[str]:
        """Write sine and cosine of a vector of angles."""
        lines, (angle,), _ = self._operands(vector)
        kind, width = self._type(vector), self._width(vector)
        self.widths.add(width)
        both, pair = f"%v{vector}_both", f"{{{kind}, {kind}}}"
        lines.append(f"{both} = call {pair} @sincos{width}({kind} {angle})")
        for part, function in enumerate(FUNCTIONS):
            twin = self._of.get(self.graph.node(function, self.graph.nodes[self._vectors[vector][0]][1]))
            if twin is not None:
                self._values[twin] = f"%v{twin}"
                self.written.update(self._vectors[twin])
                lines.append(f"%v{twin} = extractvalue {pair} {both}, {part}")
        return lines

    def _operands(self, vector: int) -> tuple[list[str], list[str], str]:
        """Return the lines that write the operands of a vector, their names, and a product as part of a sum.

        That stands with the sum, for LLVM makes one operation of both only where they are in one block.
        """
        lines, names, product = [], [], ""
        for x in self.graph.operands(self._vectors[vector][0]):
            if x not in self._of:
                lines += self._spread_lines(x, self._width(vector))
                names.append(self._in_all_lanes[x, self._width(vector)])
                continue
            inner = self._of[x]
            if inner in self._fused_vectors:
                before, factors, _ = self._operands(inner)
                lines += before
                product = f"%v{inner} = fmul contract {self._type(inner)} {', '.join(factors)}\n"
                self._values[inner] = f"%v{inner}"
            else:
                lines += self._vector_lines(inner)
            names.append(self._values[inner])
        return lines, names, product

    def _spread_lines(self, number: int, width: int) -> list[str]:
        """Write a single number into all lanes."""
        if (number, width) in self._in_all_lanes:
            return []
        operation, value, _ = self.graph.nodes[number]
        if operation == "constant":
            self._in_all_lanes[number, width] = splat(value, width)
            return []
        name, kind = f"%w{number}_{width}", f"<{width} x double>"
        self._in_all_lanes[number, width] = name
        return [
            *self.lines(self.missing([number])),
            f"{name}_one = insertelement {kind} poison, double {self.value(number)}, i32 0",
            f"{name} = shufflevector {kind} {name}_one, {kind} poison, <{width} x i32> zeroinitializer",
        ]
