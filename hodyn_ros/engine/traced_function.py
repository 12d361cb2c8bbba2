"""A traced function of its arguments, with derivatives by every number in them.

What other libraries differentiate is a function of arrays: all numbers of its arguments count as independent,
the entries of a pose too. Derivatives are traced with `hodyn_ros.codegen.differentiate`, or by a law of their
own where that takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hodyn_ros.codegen.differentiate import Scalar, derivatives, gradient
from hodyn_ros.codegen.kernel import Shape, Stack, inputs_of
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.engine.second_partials import Coordinates, hessian


@dataclass(frozen=True)
class TracedFunction:
    """`name(arguments) -> result`, all matrices by rows.

    `law` is traced. Where there are such laws, `jacobian_law` returns rows of the derivatives of each row of
    the result by each row of the arguments, and `hessian_law`, which takes a multiplier last, rows of the
    second derivatives by each two of them.
    """

    name: str
    arguments: tuple[tuple[str, Shape], ...]
    result: tuple[str, Shape]
    law: Callable[..., Stack]
    jacobian_law: Callable[..., Stack] | None = None
    hessian_law: Callable[..., Stack] | None = None

    @property
    def sizes(self) -> list[int]:
        """How many numbers each argument holds."""
        return [rows * columns for _, (rows, columns) in self.arguments]

    @property
    def size(self) -> int:
        """How many numbers the result holds."""
        rows, columns = self.result[1]
        return rows * columns

    def start(self, *further: Shape) -> tuple[Graph, list[Stack]]:
        """Return a graph with scalars for all arguments, and for `further` ones after them."""
        return inputs_of([*(shape for _, shape in self.arguments), *further])

    def jacobian(self, *stacks: Stack) -> Stack:
        """Return the derivatives of all numbers of the result by all of the arguments."""
        inputs = entries(*stacks)
        if self.jacobian_law is None:
            values = entries(self.law(*stacks))
            columns = [derivatives(_graph_of(stacks), values, {x.number: 1.0}) for x in inputs]
            return [list(row) for row in zip(*columns)]
        rows = self.jacobian_law(*stacks)
        n = self.result[1][1]
        orders = len(inputs) // n
        return [
            [x for k in range(orders) for x in rows[(r * orders + k) * n + i]]
            for r in range(self.result[1][0])
            for i in range(n)
        ]

    def gradient(self, *stacks: Stack) -> Stack:
        """Return a row: the derivatives of weights · result by all numbers of the arguments; weights last."""
        *arguments, weights = stacks
        return [
            gradient(
                _graph_of(arguments),
                entries(self.law(*arguments)),
                entries(weights),
                entries(*arguments),
            )
        ]

    def change(self, *stacks: Stack) -> Stack:
        """Return how the result changes in a direction (1, arguments), which comes last."""
        *arguments, (direction,) = stacks
        result, fields = self.law(*arguments), _fields(entries(*arguments), direction)
        changes = iter(derivatives(_graph_of(arguments), entries(result), fields))
        return [[next(changes) for _ in row] for row in result]

    def curvature(self, *stacks: Stack) -> Stack:
        """Return a row: how the gradient changes in a direction (1, arguments), last, and then the result."""
        *arguments, weights, (direction,) = stacks
        (slopes,) = self.gradient(*arguments, weights)
        values = [*slopes, *entries(self.law(*arguments))]
        return [derivatives(_graph_of(arguments), values, _fields(entries(*arguments), direction))]

    def second(self, *stacks: Stack) -> Stack:
        """Return the second derivatives of all numbers of the result by all pairs of arguments' numbers."""
        units = ([float(i == j) for j in range(self.size)] for i in range(self.size))
        return [row for unit in units for row in self.hessian(stacks, unit)]

    def hessian(self, stacks: Sequence[Stack], weights: Sequence[Scalar]) -> Stack:
        """Return the second derivatives of `weights · result` by all numbers of the arguments."""
        rows = [row for stack in stacks for row in stack]
        if self.hessian_law is not None:
            n = self.result[1][1]
            multiplier = [list(weights[i : i + n]) for i in range(0, len(weights), n)]
            blocks = self.hessian_law(*stacks, multiplier)
            return [
                [x for l in range(len(rows)) for x in blocks[(k * len(rows) + l) * n + i]]
                for k in range(len(rows))
                for i in range(n)
            ]
        # derivatives of lower order come second, as more depends on them
        order = [x.number for row in reversed(rows) for x in row]
        place = {number: i for i, number in enumerate(order)}
        by = Coordinates([[{number: 1.0} for number in order]])
        ((second,),) = hessian(_graph_of(stacks), entries(self.law(*stacks)), weights, by)
        own = [place[x.number] for row in rows for x in row]
        return [[second[i][j] for j in own] for i in own]


def entries(*stacks: Stack) -> list[Scalar]:
    """Return the numbers of stacks, one after the other."""
    return [x for stack in stacks for row in stack for x in row]


def _graph_of(stacks: Sequence[Stack]) -> Graph:
    graph: Graph = stacks[0][0][0].graph
    return graph


def _fields(inputs: Sequence[Traced], changes: Sequence[Scalar]) -> dict[int, Scalar]:
    """Return by node how inputs change."""
    return {x.number: change for x, change in zip(inputs, changes)}


def is_zero(x: Scalar) -> bool:
    """Whether a scalar is zero whatever the arguments are."""
    return not isinstance(x, Traced) and float(x) == 0.0
