"""What CasADi asks of an external function: its values, Jacobian, directional derivatives and Hessian.

CasADi finds derivatives of an external function `f` in functions of the same library, by name: `jac_f`,
`fwd1_f`, `adj1_f`, and of the last `jac_adj1_f`, which holds the Hessian, and `fwd1_adj1_f`, which multiplies
with it. CasADi stores columns together: our matrices by rows, derivative orders on axis 0, are its matrices
with a column for each order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hodyn_ros.codegen.differentiate import Scalar, derivatives
from hodyn_ros.codegen.kernel import Shape, Stack
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.traced_function import TracedFunction, entries, is_zero


@dataclass(frozen=True)
class Block:
    """An input or output of an external function.

    `shape`: rows and columns, as CasADi counts them. `pattern`: rows of the entries that are there, column by
    column; None where all are.
    """

    name: str
    shape: Shape
    pattern: tuple[tuple[int, ...], ...] | None = None

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        rows, columns = self.shape
        return rows * columns if self.pattern is None else sum(map(len, self.pattern))

    def beside(self, count: int) -> Block:
        """Return so many of them side by side."""
        rows, columns = self.shape
        return Block(self.name, (rows, columns * count), self.pattern and self.pattern * count)

    def diagonal(self, count: int) -> Block:
        """Return so many of them as the blocks on a diagonal."""
        rows, columns = self.shape
        pattern = [tuple(range(rows))] * columns if self.pattern is None else self.pattern
        there = (tuple(rows * k + row for row in column) for k in range(count) for column in pattern)
        return Block(self.name, (rows * count, columns * count), tuple(there))

    @property
    def sparsity(self) -> list[int]:
        """Rows, columns, and the pattern in compressed columns, or 1 where all entries are there."""
        if self.pattern is None:
            return [*self.shape, 1]
        starts = [0]
        for column in self.pattern:
            starts.append(starts[-1] + len(column))
        return [*self.shape, *starts, *(row for column in self.pattern for row in column)]


@dataclass(frozen=True, eq=False)
class External:
    """An external function: input i is argument i of the graph, `values[j]` are the numbers of output j.

    With `samples` it is of so many, `values` being those of each. `alone`: the outputs that are computed by
    themselves where no other is asked for.
    """

    name: str
    inputs: tuple[Block, ...]
    outputs: tuple[Block, ...]
    graph: Graph
    values: tuple[list[Scalar], ...]
    samples: int = 1
    alone: tuple[int, ...] = ()

    def of_samples(self, count: int) -> External:
        """Return it of several samples side by side, of which each has derivatives by its own arguments."""
        inputs = tuple(block.beside(count) for block in self.inputs)
        jacobian = self.name.startswith("jac_")
        outputs = tuple(block.diagonal(count) if jacobian else block.beside(count) for block in self.outputs)
        return replace(self, inputs=inputs, outputs=outputs, samples=count)


def externals(function: TracedFunction, name: str, samples: int = 1) -> list[External]:
    """Return a function with its derivatives, as CasADi names them, of one sample or several."""
    arguments = [Block(one, _turned(shape)) for one, shape in function.arguments]
    result = Block(function.result[0], _turned(function.result[1]))
    nominal = Block(f"out_{result.name}", result.shape)
    of_one = [
        _value(function, name, arguments, result),
        _jacobian(function, name, arguments, result, nominal),
        _forward(function, name, arguments, result, nominal),
        _reverse(function, name, arguments, result, nominal),
        _hessian(function, name, arguments, result, nominal),
        _forward_of_reverse(function, name, arguments, result, nominal),
    ]
    return of_one if samples == 1 else [one.of_samples(samples) for one in of_one]


def _value(function: TracedFunction, name: str, arguments: list[Block], result: Block) -> External:
    graph, stacks = function.start()
    return External(name, (*arguments,), (result,), graph, (entries(function.law(*stacks)),))


def _jacobian(
    function: TracedFunction, name: str, arguments: list[Block], result: Block, nominal: Block
) -> External:
    graph, stacks = function.start()
    jacobian = function.jacobian(*stacks)
    outputs, values = _split(jacobian, function.sizes, f"jac_{result.name}", [one.name for one in arguments])
    return External(f"jac_{name}", (*arguments, nominal), (*outputs,), graph, (*values,))


def _forward(
    function: TracedFunction, name: str, arguments: list[Block], result: Block, nominal: Block
) -> External:
    further = [shape for _, shape in function.arguments]
    graph, stacks = function.start(function.result[1], *further)
    changes = entries(*stacks[len(arguments) + 1 :])
    change = entries(function.change(*stacks[: len(arguments)], [changes]))
    seeds = [Block(f"fwd_{one.name}", one.shape) for one in arguments]
    output = Block(f"fwd_{result.name}", result.shape)
    return External(f"fwd1_{name}", (*arguments, nominal, *seeds), (output,), graph, (change,))


def _reverse(
    function: TracedFunction, name: str, arguments: list[Block], result: Block, nominal: Block
) -> External:
    graph, stacks = function.start(function.result[1], function.result[1])
    (slopes,) = function.gradient(*stacks[: len(arguments)], stacks[-1])
    numbers = iter(slopes)
    values = [[next(numbers) for _ in range(size)] for size in function.sizes]
    seed = Block(f"adj_{result.name}", result.shape)
    outputs = [Block(f"adj_{one.name}", one.shape) for one in arguments]
    return External(f"adj1_{name}", (*arguments, nominal, seed), (*outputs,), graph, (*values,))


def _hessian(
    function: TracedFunction, name: str, arguments: list[Block], result: Block, nominal: Block
) -> External:
    """Return the Jacobian of the gradient: by the arguments the Hessian, by the weights the Jacobian.

    Solvers ask for the Hessian alone.
    """
    outs = [Block(f"out_adj_{one.name}", one.shape) for one in arguments]
    graph, stacks = function.start(function.result[1], function.result[1])
    own = stacks[: len(arguments)]
    second = function.hessian(own, entries(stacks[-1]))
    first = [list(column) for column in zip(*function.jacobian(*own))]
    size = function.size
    rows = [[*a, *[0.0] * size, *b] for a, b in zip(second, first)]
    names = [*(one.name for one in arguments), nominal.name, f"adj_{result.name}"]
    outputs: list[Block] = []
    values: list[list[Scalar]] = []
    start = 0
    for one, count in zip(arguments, function.sizes):
        part = _split(
            rows[start : start + count], [*function.sizes, size, size], f"jac_adj_{one.name}", names
        )
        outputs, values, start = [*outputs, *part[0]], [*values, *part[1]], start + count
    seed = Block(f"adj_{result.name}", result.shape)
    alone = tuple(j for j in range(len(outputs)) if j % len(names) < len(arguments))
    inputs = (*arguments, nominal, seed, *outs)
    return External(f"jac_adj1_{name}", inputs, (*outputs,), graph, (*values,), alone=alone)


def _forward_of_reverse(
    function: TracedFunction, name: str, arguments: list[Block], result: Block, nominal: Block
) -> External:
    """Return how the gradient changes where arguments and weights do: what longer graphs ask for."""
    shapes = [shape for _, shape in function.arguments]
    further = [function.result[1], function.result[1], *shapes]  # result, weights, gradients
    graph, stacks = function.start(*further, *shapes, function.result[1], function.result[1])
    own, count = stacks[: len(arguments)], len(arguments)
    first = 2 * count + 2
    (slopes,) = function.gradient(*own, stacks[count + 1])
    by = [*own, stacks[count + 1]]
    changed = [*stacks[first : first + count], stacks[first + count + 1]]
    fields = {
        x.number: change
        for stack, changes in zip(by, changed, strict=True)
        for x, change in zip(entries(stack), entries(changes))
    }
    numbers = iter(derivatives(graph, slopes, fields))
    values = [[next(numbers) for _ in range(size)] for size in function.sizes]
    seed = Block(f"adj_{result.name}", result.shape)
    inputs = [*arguments, nominal, seed, *(Block(f"out_adj_{one.name}", one.shape) for one in arguments)]
    inputs += [Block(f"fwd_{one.name}", one.shape) for one in (*arguments, nominal, seed)]
    outputs = [Block(f"fwd_adj_{one.name}", one.shape) for one in arguments]
    return External(f"fwd1_adj1_{name}", (*inputs,), (*outputs,), graph, (*values,))


def _split(
    rows: Stack, sizes: Sequence[int], name: str, by: Sequence[str]
) -> tuple[list[Block], list[list[Scalar]]]:
    """Cut a matrix into blocks of so many columns, with the numbers that are there by columns."""
    blocks, values, start = [], [], 0
    for other, size in zip(by, sizes, strict=True):
        pattern, numbers = [], []
        for column in range(start, start + size):
            there = [i for i, row in enumerate(rows) if not is_zero(row[column])]
            pattern.append(tuple(there))
            numbers += [rows[i][column] for i in there]
        full = len(numbers) == len(rows) * size
        blocks.append(Block(f"{name}_{other}", (len(rows), size), None if full else tuple(pattern)))
        values.append(numbers)
        start += size
    return blocks, values


def _turned(shape: Shape) -> Shape:
    rows, columns = shape
    return columns, rows
