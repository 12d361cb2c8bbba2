"""The operations of a traced graph as lines of LLVM, on single numbers or on vectors of samples."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from hodyn_ros.codegen.literals import entry_lines, literal, search_lines, search_text, splat, table_text
from hodyn_ros.codegen.processor import masks
from hodyn_ros.codegen.tracer import Graph, Operation, Traced

INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
FUNCTIONS: tuple[Operation, ...] = ("sin", "cos")
_STORED = 32  # results for each angle from which on a batch has to wait for its stores

_REGISTERS = 30  # for vectors, where some are used up on the way
_FAR_FEWER = 0.8  # of the numbers that wait, from which on memory need not be written in its order

_Step = tuple[list[int], list[slice]]  # nodes to compute, and outputs to be stored then

# From 2^60 on numbers become infinite times this, and sums of them stay so or become NaN: products of a dozen
# smaller numbers do not overflow.
CHECK = 2.0**963


class _Writer:
    """Writes the operations of a graph on values of one type."""

    type: str
    flags: str  # the type of comparisons
    suffix: str  # of the type, in names of intrinsic functions

    def __init__(self, graph: Graph, outputs: Sequence[Any]) -> None:
        self.graph = graph
        self.outputs = outputs
        self.order = self.needed = graph.needed(outputs)  # in which they are written, and all
        self.fused = graph.fused(outputs, self.needed)
        self.written: set[int] = set()
        self.names: dict[int, str] = {}  # of the values used
        self.widths: set[int] = set()  # of the sine and cosine functions used
        self.intrinsics: dict[str, str] = {}  # types of square roots and such that are used, by name
        self.tables: dict[Any, str] = {}  # names of those used, by their numbers
        self.searches: dict[Any, str] = {}  # text of the function that searches a table, by its numbers

    def constant(self, number: float) -> str:
        raise NotImplementedError

    def input_lines(self, number: int) -> list[str]:
        raise NotImplementedError

    def function_lines(self, number: int) -> list[str]:
        raise NotImplementedError

    def value(self, number: int) -> str:
        """Return what stands for the value of a node."""
        name = self.names.get(number)
        if name is None:
            operation, a, _ = self.graph.nodes[number]
            if operation == "lane":
                name = self.value(a)
            else:
                name = self.constant(a) if operation == "constant" else f"%n{number}"
            self.names[number] = name
        return name

    def lines(self, numbers: Sequence[int] | None = None) -> list[str]:
        """Write the nodes `numbers`, by default all that are needed, leaving out those written before."""
        result: list[str] = []
        for number in self.needed if numbers is None else numbers:
            if number in self.written:
                continue
            operation, a, b = self.graph.nodes[number]
            if operation in INSTRUCTIONS:
                self.written.add(number)
                if number not in self.fused:
                    result.append(self.arithmetic_line(number))
                continue
            if operation in FUNCTIONS:
                result += self.function_lines(number)
                continue
            self.written.add(number)
            if operation == "input":
                result += self.input_lines(number)
            elif operation in ("sqrt", "floor"):
                name = f"llvm.{operation}.{self.suffix}"
                self.intrinsics[name] = self.type
                result.append(f"%n{number} = call {self.type} @{name}({self.type} {self.value(a)})")
            elif operation == "abs":
                x, zero = self.value(a), self.constant(0.0)
                result += [
                    f"%n{number}_below = fcmp olt {self.type} {x}, {zero}",
                    f"%n{number}_turned = fneg {self.type} {x}",
                    f"%n{number} = select {self.flags} %n{number}_below, {self.type} %n{number}_turned, "
                    f"{self.type} {x}",
                ]
            elif operation in ("piece", "entry"):
                result += self.lookup_lines(number)
        return result

    def arithmetic_line(self, number: int) -> str:
        """Write a product, a quotient or a sum; a sum takes a product that stands in no other along.

        Product and sum are then one operation with a single rounding (contract), where the processor has one.
        Which of them are is not left to LLVM, so that lanes and single samples round alike.
        """
        operation, a, b = self.graph.nodes[number]
        text, instruction = "", f"{INSTRUCTIONS[operation]} {self.type}"
        product = a if a in self.fused else b
        if product in self.fused:
            _, c, d = self.graph.nodes[product]
            text = f"%n{product} = fmul contract {self.type} {self.value(c)}, {self.value(d)}\n"
            instruction = f"{INSTRUCTIONS[operation]} contract {self.type}"
        return f"{text}%n{number} = {instruction} {self.value(a)}, {self.value(b)}"

    def lookup_lines(self, number: int) -> list[str]:
        """Write the search for a piece, or what a table says about it."""
        operation, a, values = self.graph.nodes[number]
        table = self.tables.setdefault(values, f"table{len(self.tables)}")
        if operation == "entry":
            return self.one_by_one(number, a, lambda result, piece: entry_lines(result, table, piece))
        self.searches[values] = search_text(f"search_{table}", table, len(values))
        return self.one_by_one(number, a, lambda result, x: search_lines(result, f"search_{table}", x))

    def one_by_one(self, number: int, operand: int, write: Callable[[str, str], list[str]]) -> list[str]:
        """Write node `number` as a function of single numbers, `write(result, x)`."""
        raise NotImplementedError

    def declarations(self) -> str:
        """Write what the function needs beside it: square root and floor, tables."""
        roots = [f"declare {kind} @{name}({kind})\n" for name, kind in sorted(self.intrinsics.items())]
        tables = [table_text(name, values) for values, name in self.tables.items()]
        return "".join([*roots, *tables, *self.searches.values()])

    def output_values(self) -> Iterator[tuple[list[str], str]]:
        """Give the value of every output, after the lines that make it."""
        for k, output in enumerate(self.outputs):
            if not isinstance(output, Traced):
                yield [], self.constant(float(output))
            elif output.negative:
                yield [f"%m{k} = fneg {self.type} {self.value(output.number)}"], f"%m{k}"
            else:
                yield [], self.value(output.number)

    def angles(self) -> list[int]:
        """Return the angles that still miss their sine and cosine and depend on no other sine or cosine."""
        waits: set[int] = set()  # nodes that are such a function, or are computed from one
        ready: dict[int, None] = {}
        for number in self.needed:  # operands come before what is computed from them
            if number in self.written:
                continue
            operands = self.graph.operands(number)
            if self.graph.nodes[number][0] in FUNCTIONS:
                (angle,) = operands
                if waits.isdisjoint(self.graph.operands(angle)):
                    ready[angle] = None
                waits.add(number)
            elif not waits.isdisjoint(operands):
                waits.add(number)
        return list(ready)

    def missing(self, numbers: Iterable[int], known: Container[int] | None = None) -> list[int]:
        """Return the nodes not yet `known`, by default written, that these are or come of, in order."""
        known = self.written if known is None else known
        result: set[int] = set()
        pending = list(numbers)
        while pending:
            number = pending.pop()
            if number not in result and number not in known:
                result.add(number)
                pending.extend(self.graph.operands(number))
        return sorted(result)


class ScalarWriter(_Writer):
    """Values are single numbers."""

    type = "double"
    flags = "i1"
    suffix = "f64"

    def constant(self, number: float) -> str:
        """Write a constant."""
        return literal(number)

    def input_lines(self, number: int) -> list[str]:
        """Write how an input is read."""
        _, argument, index = self.graph.nodes[number]
        return [
            f"%p{number} = getelementptr double, ptr %a{argument}, i64 {index}",
            f"%n{number} = load double, ptr %p{number}, align 8",
        ]

    def one_by_one(self, number: int, operand: int, write: Callable[[str, str], list[str]]) -> list[str]:
        """Write node `number` as a function of single numbers, `write(result, x)`."""
        return write(f"%n{number}", self.value(operand))

    def function_lines(self, number: int) -> list[str]:
        """Write all sines and cosines that can be computed by now, in vectors of four or eight angles."""
        angles = self.angles()
        result: list[str] = []
        for angle in angles:
            result += self.lines(self.missing([angle]))
        while angles:
            width = 4 if len(angles) <= 4 else 8
            chunk, angles = angles[:width], angles[width:]
            self.widths.add(width)
            vector = f"<{width} x double>"
            packed, name = splat(0.0, width), f"x{chunk[0]}"
            for lane, angle in enumerate(chunk):
                result.append(
                    f"%{name}_{lane} = insertelement {vector} {packed}, double {self.value(angle)}, "
                    f"i32 {lane}"
                )
                packed = f"%{name}_{lane}"
            result.append(f"%{name}_both = call {{{vector}, {vector}}} @sincos{width}({vector} {packed})")
            for part, function in enumerate(FUNCTIONS):
                result.append(
                    f"%{name}_{function} = extractvalue {{{vector}, {vector}}} %{name}_both, {part}"
                )
                for lane, angle in enumerate(chunk):
                    node = self.graph.node(function, angle)
                    self.written.add(node)
                    result.append(f"%n{node} = extractelement {vector} %{name}_{function}, i32 {lane}")
        return result


class LaneWriter(_Writer):
    """Values are vectors with one sample in every lane."""

    def __init__(self, graph: Graph, outputs: Sequence[Any], lanes: int) -> None:
        super().__init__(graph, outputs)
        self.lanes = lanes
        self.type = f"<{lanes} x double>"
        self.flags = f"<{lanes} x i1>"
        self.suffix = f"v{lanes}f64"
        self._masked: dict[str, str] = {}  # declarations of loads and stores of some lanes, by name

    def declarations(self) -> str:
        """Write what the function needs beside it."""
        return super().declarations() + "".join(self._masked.values())

    def constant(self, number: float) -> str:
        """Write a constant."""
        return splat(number, self.lanes)

    def input_lines(self, number: int) -> list[str]:
        """Write how an input is read."""
        return []  # loaded with its block

    def one_by_one(self, number: int, operand: int, write: Callable[[str, str], list[str]]) -> list[str]:
        """Write node `number` as a function of single numbers, `write(result, x)`."""
        lines, packed = [], self.constant(0.0)
        for lane in range(self.lanes):
            x, result = f"%n{number}_x{lane}", f"%n{number}_{lane}"
            lines.append(f"{x} = extractelement {self.type} {self.value(operand)}, i32 {lane}")
            lines += write(result, x)
            filled = f"%n{number}_to{lane}" if lane + 1 < self.lanes else f"%n{number}"
            lines.append(f"{filled} = insertelement {self.type} {packed}, double {result}, i32 {lane}")
            packed = filled
        return lines

    def function_lines(self, number: int) -> list[str]:
        """Write all sines and cosines that can be computed by now, before much waits beside these calls.

        Where results are many, each as late as can be: it is then computed while others are stored.
        """
        angles = self.angles()
        if len(self.outputs) > _STORED * len(angles):
            angles = [self.graph.nodes[number][1]]
        self.widths.add(self.lanes)
        pair = f"{{{self.type}, {self.type}}}"
        result = self.lines(self.missing(angles))
        for angle in angles:
            both = f"%x{angle}_both"
            result.append(f"{both} = call {pair} @sincos{self.lanes}({self.type} {self.value(angle)})")
            for part, function in enumerate(FUNCTIONS):
                node = self.graph.node(function, angle)
                self.written.add(node)
                result.append(f"%n{node} = extractvalue {pair} {both}, {part}")
        return result

    def load(self, argument: int, size: int, step: str = "", *, checked: bool = True) -> list[str]:
        """Load the numbers of `lanes` samples and transpose them, a square block at a time.

        Samples lie `step` numbers apart, by default their size.
        """
        numbers = {
            self.graph.nodes[number][2]: number
            for number in self.needed
            if self.graph.nodes[number][:2] == ("input", argument)
        }
        lines = self._rows(f"%a{argument}", step or str(size))
        for start, length in _windows(size, self.lanes):
            name = f"l{argument}_{start}"
            rows = []
            for lane in range(self.lanes):
                lines.append(_at(f"{name}_{lane}", f"%a{argument}", lane, start))
                lines.append(self._loaded(f"%{name}_r{lane}", f"%{name}_{lane}_at", length))
                rows.append(f"%{name}_r{lane}")
            lines += self._check(name, rows) if checked else []
            columns, made = self._transpose(name, rows)
            lines += made
            for index in range(start, start + length):
                if index in numbers and numbers[index] not in self.written:
                    self.written.add(numbers[index])
                    lines.append(_copy(f"%n{numbers[index]}", self.type, columns[index - start], self.lanes))
        return lines

    def load_vectors(self, argument: int) -> list[str]:
        """Load numbers that lie side by side for these lanes."""
        lines: list[str] = []
        for number in self.needed:
            if self.graph.nodes[number][:2] == ("input", argument):
                self.written.add(number)
                place = f"%n{number}_at = getelementptr {self.type}, ptr %a{argument}"
                lines.append(f"{place}, i64 {self.graph.nodes[number][2]}")
                lines.append(f"%n{number} = load {self.type}, ptr %n{number}_at, align 64")
        return lines

    def load_shared(self, argument: int) -> list[str]:
        """Load numbers that are the same for all lanes."""
        lines: list[str] = []
        for number in self.needed:
            operation, a, index = self.graph.nodes[number]
            if (operation, a) == ("input", argument):
                self.written.add(number)
                one, place = f"%n{number}_one", f"%n{number}_at"
                lines.append(f"{place} = getelementptr double, ptr %a{argument}, i64 {index}")
                lines.append(f"{one} = load double, ptr {place}, align 8")
                lines.append(f"{one}_in = insertelement {self.type} poison, double {one}, i32 0")
                lines.append(_shuffle(f"%n{number}", f"{one}_in", f"{one}_in", self.lanes, [0] * self.lanes))
        return lines

    def vectors(self, moving: tuple[int, float] | None) -> list[str]:
        """Compute the outputs and store those of these lanes side by side, of `moving` ones alone."""
        lines: list[str] = []
        if moving is not None:
            argument, limit = moving
            lines += [
                f"%last_at = getelementptr {self.type}, ptr %a{argument}, i64 {len(self.outputs) - 1}",
                f"%last_number = load {self.type}, ptr %last_at, align 64",
                f"%moving = fcmp ogt {self.type} %last_number, {self.constant(limit)}",
            ]
        for k, (signs, value) in enumerate(self.output_values()):
            output = self.outputs[k]
            lines += self.lines(self.missing([output.number])) if isinstance(output, Traced) else []
            lines += [line.replace(f"%m{k} =", f"%kept{k} =") for line in signs]
            value = f"%kept{k}" if signs else value
            if moving is not None:
                lines += [
                    f"%old{k}_at = getelementptr {self.type}, ptr %a{argument}, i64 {k}",
                    f"%old{k} = load {self.type}, ptr %old{k}_at, align 64",
                    f"%now{k} = select {self.flags} %moving, {self.type} {value}, {self.type} %old{k}",
                ]
                value = f"%now{k}"
            lines.append(f"%kept{k}_at = getelementptr {self.type}, ptr %kept, i64 {k}")
            lines.append(f"store {self.type} {value}, ptr %kept{k}_at, align 64")
        return lines

    def prefetch(self, argument: int, size: int) -> list[str]:
        """Ask for the numbers of the next block."""
        name = f"ahead{argument}"
        lines = [
            f"%{name}_sample = add i64 %first, {self.lanes}",
            f"%{name}_offset = mul i64 %{name}_sample, {8 * size}",
            f"%{name} = getelementptr i8, ptr %a{argument}, i64 %{name}_offset",
        ]
        for line in range(0, 8 * size * self.lanes, 64):
            lines.append(f"%{name}_{line} = getelementptr i8, ptr %{name}, i64 {line}")
            lines.append(f"call void @llvm.prefetch.p0(ptr %{name}_{line}, i32 0, i32 3, i32 1)")
        return lines

    def _loaded(self, result: str, place: str, length: int) -> str:
        """Load a row; where it has fewer numbers than there are lanes, zeros follow."""
        if length == self.lanes:
            return f"{result} = load {self.type}, ptr {place}, align 8"
        name = f"llvm.masked.load.{self.suffix}.p0"
        self._masked[name] = f"declare {self.type} @{name}(ptr, i32, {self.flags}, {self.type})\n"
        mask = f"{self.flags} {_first(length, self.lanes)}"
        rest = f"{self.type} zeroinitializer"
        return f"{result} = call {self.type} @{name}(ptr {place}, i32 1, {mask}, {rest})"

    def _stored(self, row: str, place: str, length: int) -> list[str]:
        """Store the first numbers of a row."""
        if length == self.lanes:
            return [f"store {self.type} {row}, ptr {place}, align 8"]
        if not masks():  # processors without have slow stores of some lanes, or none
            narrow = f"{row}_first"
            return [
                _shuffle(narrow, row, row, self.lanes, range(length)),
                f"store <{length} x double> {narrow}, ptr {place}, align 8",
            ]
        name = f"llvm.masked.store.{self.suffix}.p0"
        self._masked[name] = f"declare void @{name}({self.type}, ptr, i32, {self.flags})\n"
        mask = f"{self.flags} {_first(length, self.lanes)}"
        return [f"call void @{name}({self.type} {row}, ptr {place}, i32 1, {mask})"]

    def _check(self, name: str, rows: Sequence[str]) -> list[str]:
        """Add multiples of the numbers to the checksum."""
        lines = [f"%{name}_k0 = fmul {self.type} {rows[0]}, {self.constant(CHECK)}"]
        for i, row in enumerate(rows[1:]):
            lines.append(f"%{name}_z{i + 1} = fmul contract {self.type} {row}, {self.constant(CHECK)}")
            lines.append(f"%{name}_k{i + 1} = fadd contract {self.type} %{name}_k{i}, %{name}_z{i + 1}")
        lines += [
            f"%{name}_before = load {self.type}, ptr %checksum, align 64",
            f"%{name}_after = fadd {self.type} %{name}_before, %{name}_k{len(rows) - 1}",
            f"store {self.type} %{name}_after, ptr %checksum, align 64",
        ]
        return lines

    def results(self) -> list[str]:
        """Compute the outputs, transpose them back and store them sample by sample, `lanes` at a time.

        Either these outputs one after the other, which writes memory in its order, or all in the order of the
        trace, where far fewer numbers have to wait for others then.
        """
        made = list(self.output_values())
        lines = self._rows("%out", str(len(made)))
        one_by_one, traced = self._steps_by_outputs(), self._steps_by_trace()
        fewer = self._waiting(traced) < _FAR_FEWER * self._waiting(one_by_one)
        for numbers, windows in traced if fewer else one_by_one:
            lines += self.lines(numbers)
            for window in windows:
                lines += self._stored_back(window.start, made[window])
        return lines

    def _windows(self) -> Iterator[tuple[slice, list[int]]]:
        """Give outputs that are stored together, and their nodes."""
        for start, length in _windows(len(self.outputs), self.lanes):
            window = slice(start, start + length)
            yield window, [x.number for x in self.outputs[window] if isinstance(x, Traced)]

    def _steps_by_outputs(self) -> list[_Step]:
        steps: list[_Step] = []
        known = set(self.written)
        for window, numbers in self._windows():
            steps.append((self.missing(numbers, known), [window]))
            known.update(steps[-1][0])
        return steps

    def _steps_by_trace(self) -> list[_Step]:
        due: dict[int, list[slice]] = {}  # by the last of their nodes
        for window, numbers in self._windows():
            due.setdefault(max(numbers, default=-1), []).append(window)
        steps: list[_Step] = [([], due.get(-1, []))]
        return steps + [([number], due.get(number, [])) for number in self.needed]

    def _waiting(self, steps: Sequence[_Step]) -> int:
        """Return how many numbers find no register, summed over all operations."""
        begin, end, time = dict[int, int](), dict[int, int](), 0
        for numbers, windows in steps:
            for number in numbers:
                end.update(dict.fromkeys(self.graph.operands(number), time))
                begin[number] = time
                time += 1
            for window in windows:
                stored = (x.number for x in self.outputs[window] if isinstance(x, Traced))
                end.update(dict.fromkeys(stored, time))
        changes = [0] * (time + 1)
        for number, at in begin.items():
            if self.graph.nodes[number][0] != "constant":
                changes[at] += 1
                changes[end.get(number, at)] -= 1
        return sum(max(0, alive - _REGISTERS) for alive in accumulate(changes))

    def _stored_back(self, start: int, made: Sequence[tuple[list[str], str]]) -> list[str]:
        """Store outputs from one on, given as lines and values."""
        lines = [line for signs, _ in made for line in signs]
        name, columns = f"s{start}", [value for _, value in made]
        # what is missing to a square may be anything
        columns += columns[-1:] * (self.lanes - len(made))
        rows, turned = self._transpose(name, columns)
        lines += turned
        for lane, row in enumerate(rows):
            lines.append(_at(f"{name}_{lane}", "%out", lane, start))
            lines += self._stored(row, f"%{name}_{lane}_at", len(made))
        return lines

    def _rows(self, array: str, step: str) -> list[str]:
        """Find where the samples of these lanes begin in an array, `step` numbers apart."""
        lines = []
        for lane in range(self.lanes):
            lines.append(f"{array}_offset{lane} = mul i64 %sample{lane}, {step}")
            lines.append(f"{array}_row{lane} = getelementptr double, ptr {array}, i64 {array}_offset{lane}")
        return lines

    def _transpose(self, name: str, rows: Sequence[str]) -> tuple[list[str], list[str]]:
        """Turn a square of numbers: pairs of rows are interleaved, then what belongs together is joined.

        Processors do both without a table that says where each number goes.
        """
        lines: list[str] = []
        size = len(rows)
        groups = [[row] for row in rows]  # vectors of a few rows, by their first column
        while len(groups) > 1:
            joined = []
            for upper, lower in zip(groups[::2], groups[1::2]):
                halves: tuple[list[str], list[str]] = ([], [])
                for a, b in zip(upper, lower):
                    for odd, half in enumerate(halves):
                        if len(groups) == size:
                            order = [i + other for i in range(odd, size, 2) for other in (0, size)]
                        else:
                            pairs = range(2 * odd, size, 4)
                            order = [i + k + other for other in (0, size) for i in pairs for k in (0, 1)]
                        half.append(f"%{name}_t{len(lines)}")
                        lines.append(_shuffle(half[-1], a, b, size, order))
                joined.append([*halves[0], *halves[1]])
            groups = joined
        return groups[0], lines


def _windows(size: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut `size` numbers into pieces of `width`; the last one is shorter."""
    for start in range(0, size, width):
        yield start, min(width, size - start)


def _first(count: int, lanes: int) -> str:
    """Write a mask of the first lanes."""
    return "<" + ", ".join(f"i1 {int(lane < count)}" for lane in range(lanes)) + ">"


def _shuffle(result: str, a: str, b: str, length: int, order: Sequence[int]) -> str:
    vector = f"<{length} x double>"
    mask = ", ".join(f"i32 {i}" for i in order)
    return f"{result} = shufflevector {vector} {a}, {vector} {b}, <{len(order)} x i32> <{mask}>"


def _at(name: str, array: str, lane: int, index: int) -> str:
    return f"%{name}_at = getelementptr double, ptr {array}_row{lane}, i64 {index}"


def _copy(result: str, vector: str, value: str, lanes: int) -> str:
    return _shuffle(result, value, value, lanes, range(lanes))
