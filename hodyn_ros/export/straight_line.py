"""A traced graph as straight-line C: every operation once, in the order of the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from textwrap import wrap
from typing import Any

from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, Stack, traced
from hodyn_ros.codegen.tracer import Graph, Operation, Traced
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import WIDTH, number, vector
from hodyn_ros.export.small.turns import without_turns


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


class TracedLines:
    """A traced function as straight-line code of arrays by name.

    `lines` compute, `operations` counts what, `shape` is that of the matrix that the trace returns.
    """

    def __init__(
        self, trace: Callable[..., Stack], arguments: Mapping[str, Shape], what: str, tables: Tables
    ) -> None:
        """Trace; InputError that names `what` where a compiler could not cope with it."""
        self.graph, self.outputs, self.shape = traced(trace, list(arguments.values()))
        self.operations = checked_length(self.graph, self.outputs, what)
        shown = [*self.outputs, *self.graph.conditions]
        self._code = StraightLine(self.graph, list(arguments), shown, tables)
        self.lines = self._code.lines

    def text(self, place: int) -> str:
        """Write an output."""
        return self._code.text(self.outputs[place])

    def stores(self, places: Mapping[str, NDArray[Any]]) -> list[str]:
        """Write outputs into arrays, by their places in the matrix."""
        return [
            f"  {name}[{i}] = {self.text(place)};"
            for name, of_array in places.items()
            for i, place in enumerate(of_array.flat)
        ]

    @property
    def conditions(self) -> list[str]:
        """What has to hold, or there is no result."""
        return [f"({self._code.text(margin)} >= 0.0)" for margin in self.graph.conditions]


class Tables:
    """Rows of numbers that functions of a file look up, each written once, and parts of long functions."""

    def __init__(self, *, small: bool = False) -> None:
        """Begin without any; `small`: for small processors, by `hodyn_ros.export.small`."""
        self.small = small
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
    any of the outputs as an expression. Those of more than `most` operations are cut into functions that hand
    values on in an array.
    """

    type = "double"  # of the numbers

    def __init__(
        self,
        graph: Graph,
        arguments: Sequence[str],
        outputs: Sequence[Any],
        tables: Tables,
        most: float | None = None,
    ) -> None:
        self._tables, self._local = tables, dict[int, str]()
        self._graph, self._became = self._prepared(graph, outputs)
        outputs, graph = [self._now(output) for output in outputs], self._graph
        needed = [node for node in graph.needed(outputs) if graph.nodes[node][0] != "constant"]
        computed = [node for node in needed if graph.nodes[node][0] != "input"]
        shown = [output.number for output in outputs if isinstance(output, Traced)]
        if len(computed) <= (_PART if most is None else most):
            self.lines = self._statements(needed, arguments, shown)
            return
        parts = [computed[i : i + _PART] for i in range(0, len(computed), _PART)]
        part_of = {node: number for number, part in enumerate(parts) for node in part}
        handed = {node for node in shown if node in part_of}
        for node in computed:
            handed |= {a for a in graph.operands(node) if part_of.get(a, part_of[node]) != part_of[node]}
        places = self._places(parts, handed, shown)
        calls = [self._part(part, arguments, places) for part in parts]
        self._local = {node: f"work[{place}]" for node, place in places.items()}
        read = set(shown) - part_of.keys()
        direct = [node for node in needed if node in read]
        size = max(places.values()) + 1
        self.lines = [f"  double work[{size}];", *calls, *self._statements(direct, arguments, direct)]

    def _prepared(self, graph: Graph, outputs: Sequence[Any]) -> tuple[Graph, dict[int, Any]]:
        """Return the graph that is written, and what the nodes of the one given have become in it."""
        return without_turns(graph, outputs) if self._tables.small else (graph, {})

    def _places(
        self, parts: Sequence[Sequence[int]], handed: set[int], shown: Sequence[int]
    ) -> dict[int, int]:
        """Return where values stand that parts hand on; on small processors where others stood before."""
        if not self._tables.small:
            return {node: place for place, node in enumerate(sorted(handed))}
        last = {a: turn for turn, part in enumerate(parts) for n in part for a in self._graph.operands(n)}
        last |= dict.fromkeys(shown, len(parts))
        slots, places = Slots(), dict[int, int]()
        for turn, part in enumerate(parts):
            for node in [node for node in places if last[node] == turn - 1]:
                slots.free(places[node])
            places |= {node: slots.take() for node in part if node in handed}
        return places

    def _part(self, part: Sequence[int], arguments: Sequence[str], places: dict[int, int]) -> str:
        """Write some of the operations as a function of its own; returns the call of it."""
        nodes, within = self._graph.nodes, set(part)
        operands = {a for node in part for a in self._graph.operands(node)} - within
        inputs = sorted(a for a in operands if nodes[a][0] == "input")
        self._local, body = {}, []
        for node in sorted(operands & places.keys()):
            kind, cast = ("int", "(int)") if nodes[node][0] == "piece" else ("double", "")
            held = f"{cast}work[{places[node]}]"
            self._local[node] = held
            if not self._tables.small:
                self._local[node] = f"w{places[node]}"
                body.append(f"  const {kind} {self._local[node]} = {held};")
        body += self._statements([*inputs, *part], [f"a{i}" for i in range(len(arguments))], (), places)
        used = {nodes[a][1] for a in inputs}
        return self._tables.part([name if i in used else "" for i, name in enumerate(arguments)], body)

    def _statements(
        self,
        needed: Sequence[int],
        arguments: Sequence[str],
        kept: Sequence[int],
        places: Mapping[int, int] | None = None,
    ) -> list[str]:
        """Write nodes, inputs first; those of `places` are handed on. `kept`: what is read afterwards."""
        nodes = self._graph.nodes
        inputs = [node for node in needed if nodes[node][0] == "input"]
        ordered = [*inputs, *(node for node in needed if nodes[node][0] != "input")]
        variables = (
            Reused(self._graph, ordered, kept, self.type)
            if self._tables.small
            else Constants(self._graph, ordered, kept)
        )
        lines = []
        for node in ordered:
            operation, a, b = nodes[node]
            lines += self._ahead(node)
            if operation == "input":
                made = self._read(f"{arguments[a]}[{b}]")
            else:
                operands = [self._value(operand) for operand in self._graph.operands(node)]
                made = self._made(operation, b, operands)
            self._local[node], line = variables.assign(node, made)
            lines.append(line)
            if places and node in places:
                lines.append(f"  work[{places[node]}] = {self._local[node]};")
        return [*variables.declarations, *lines]

    def _now(self, value: Any) -> Any:
        """Return what an output of the graph that was given is in the one that is written."""
        if not self._became or not isinstance(value, Traced):
            return value
        return -self._became[value.number] if value.negative else self._became[value.number]

    def text(self, value: Any) -> str:
        """Write one of the outputs."""
        value = self._now(value)
        if not isinstance(value, Traced):
            return number(value)
        shown = self._shown(self._value(value.number))
        return f"-{shown}" if value.negative else shown

    def _value(self, node: int) -> str:
        operation, a, _ = self._graph.nodes[node]
        return self._constant(a) if operation == "constant" else self._local[node]

    def _read(self, element: str) -> str:
        """Write a number that is read from an array."""
        return element

    def _constant(self, value: float) -> str:
        return number(value)

    def _shown(self, value: str) -> str:
        """Write an output."""
        return value

    def _ahead(self, node: int) -> list[str]:
        """Write what a node needs besides its operands."""
        return []

    def _made(self, operation: Operation, second: Any, operands: Sequence[str]) -> str:
        """Write an operation, from the second entry of its node and its operands."""
        return WRITTEN[operation](self._tables, second, *operands)


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
