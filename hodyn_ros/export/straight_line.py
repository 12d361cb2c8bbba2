"""A traced graph as straight-line C: every operation once, in the order of the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hodyn_ros.codegen.tracer import Graph, Operation, Traced
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import number, vector

_MOST_OPERATIONS = 200_000  # optimizing compilers take minutes for them
_PART = 4000  # operations of one C function: compilers take ever longer for longer ones


def checked_length(graph: Graph, outputs: Sequence[Any], what: str) -> int:
    """Count the operations of a function; InputError where a compiler could not cope with them."""
    operations = graph.count_operations(outputs)
    if operations > _MOST_OPERATIONS:
        raise InputError(
            f"{what} takes {operations} operations, and C compilers take minutes for more than "
            f"{_MOST_OPERATIONS}; choose a lower order"
        )
    return operations


class Tables:
    """Rows of numbers that functions of a file look up, each written once, and parts of long functions."""

    def __init__(self) -> None:
        self._names: dict[tuple[float, ...], str] = {}
        self._parts: list[list[str]] = []
        self._searched = False

    def name_of(self, values: tuple[float, ...]) -> str:
        """Return the name of the array with these values."""
        return self._names.setdefault(values, f"table{len(self._names)}")

    def search(self, starts: tuple[float, ...], x: str) -> str:
        """Write the call that finds the interval of x."""
        self._searched = True
        return f"piece_of({self.name_of(starts)}, {len(starts)}, {x})"

    def lines(self) -> list[str]:
        """Write all arrays, and the function that searches them."""
        lines: list[str] = []
        for values, name in self._names.items():
            lines += [*vector(name, values), ""]
        lines += [*_PIECE_OF, ""] if self._searched else []
        return lines + [line for part in self._parts for line in [*part, ""]]

    def part(self, arguments: Sequence[str], body: Sequence[str]) -> str:
        """Add a function that computes from arrays `a0`, `a1`, ... and `work`; returns the call of it."""
        name = f"part{len(self._parts)}"
        parameters = [f"const double *a{i}" for i in range(len(arguments)) if arguments[i]]
        self._parts.append(
            [f"static void {name}({', '.join([*parameters, 'double *work'])})", "{", *body, "}"]
        )
        return f"  {name}({', '.join([*filter(None, arguments), 'work'])});"


class StraightLine:
    """The statements that compute `outputs` from the arrays named `arguments`.

    `lines` first read all inputs, so that a result may overwrite an argument afterwards; `text` then writes
    any of the outputs as an expression. Long ones are cut into functions that hand values on in an array.
    """

    def __init__(
        self, graph: Graph, arguments: Sequence[str], outputs: Sequence[Any], tables: Tables
    ) -> None:
        self._graph, self._tables, self._local = graph, tables, dict[int, str]()
        needed = [node for node in graph.needed(outputs) if graph.nodes[node][0] != "constant"]
        computed = [node for node in needed if graph.nodes[node][0] != "input"]
        if len(computed) <= _PART:
            self.lines = self._statements(needed, arguments)
            return
        parts = [computed[i : i + _PART] for i in range(0, len(computed), _PART)]
        shown = [output.number for output in outputs if isinstance(output, Traced)]
        part_of = {node: number for number, part in enumerate(parts) for node in part}
        handed = {node for node in shown if node in part_of}
        for node in computed:
            handed |= {a for a in graph.operands(node) if part_of.get(a, part_of[node]) != part_of[node]}
        places = {node: place for place, node in enumerate(sorted(handed))}
        calls = [self._part(part, arguments, places) for part in parts]
        self._local = {node: f"work[{place}]" for node, place in places.items()}
        read = set(shown) - part_of.keys()
        direct = [node for node in needed if node in read]
        self.lines = [f"  double work[{len(places)}];", *calls, *self._statements(direct, arguments)]

    def _part(self, part: Sequence[int], arguments: Sequence[str], places: dict[int, int]) -> str:
        """Write some of the operations as a function of its own; returns the call of it."""
        nodes, within = self._graph.nodes, set(part)
        operands = {a for node in part for a in self._graph.operands(node)} - within
        inputs = sorted(a for a in operands if nodes[a][0] == "input")
        self._local, body = {}, []
        for node in sorted(operands & places.keys()):
            self._local[node] = f"w{places[node]}"
            kind, cast = ("int", "(int)") if nodes[node][0] == "piece" else ("double", "")
            body.append(f"  const {kind} {self._local[node]} = {cast}work[{places[node]}];")
        body += self._statements([*inputs, *part], [f"a{i}" for i in range(len(arguments))])
        body += [f"  work[{places[node]}] = {self._local[node]};" for node in part if node in places]
        used = {nodes[a][1] for a in inputs}
        return self._tables.part([name if i in used else "" for i, name in enumerate(arguments)], body)

    def _statements(self, needed: Sequence[int], arguments: Sequence[str]) -> list[str]:
        reads: list[str] = []
        steps: list[str] = []
        for node in needed:
            operation, a, b = self._graph.nodes[node]
            if operation == "input":
                made = f"{arguments[a]}[{b}]"
            else:
                operands = [self._value(operand) for operand in self._graph.operands(node)]
                made = WRITTEN[operation](self._tables, b, *operands)
            kind = "int" if operation == "piece" else "double"
            self._local[node] = f"x{len(self._local)}"
            (reads if operation == "input" else steps).append(f"  const {kind} {self._local[node]} = {made};")
        return [*reads, *steps]

    def text(self, value: Any) -> str:
        """Write one of the outputs."""
        if not isinstance(value, Traced):
            return number(value)
        return f"-{self._value(value.number)}" if value.negative else self._value(value.number)

    def _value(self, node: int) -> str:
        operation, a, _ = self._graph.nodes[node]
        return number(a) if operation == "constant" else self._local[node]


def _between(sign: str) -> Callable[..., str]:
    return lambda tables, second, a, b: f"{a} {sign} {b}"


def _of(function: str) -> Callable[..., str]:
    return lambda tables, second, a: f"{function}({a})"


# What is written for every operation of the tracer but constants and inputs, from the second entry of the
# node and the texts of its operands.
WRITTEN: dict[Operation, Callable[..., str]] = {
    "+": _between("+"),
    "-": _between("-"),
    "*": _between("*"),
    "/": _between("/"),
    "abs": _of("fabs"),
    "sin": _of("sin"),
    "cos": _of("cos"),
    "sqrt": _of("sqrt"),
    "floor": _of("floor"),
    "piece": lambda tables, starts, x: tables.search(starts, x),
    "entry": lambda tables, values, piece: f"{tables.name_of(values)}[{piece}]",
}

_PIECE_OF = [
    "/* The last of `count` increasing starts that is not above x, or 0: as many steps for every x. */",
    "static int piece_of(const double *starts, int count, double x)",
    "{",
    "  int first = 0;",
    "  while (count > 1) {",
    "    const int half = count / 2;",
    "    first += half * (x >= starts[first + half]);",
    "    count -= half;",
    "  }",
    "  return first;",
    "}",
]
