"""A function with its first and second derivatives, each compiled when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from hodyn_ros.codegen.differentiate import derivatives
from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.errors import InputError
from hodyn_ros.interop.traced_function import TracedFunction

_MOST_SECOND = 60_000  # second derivatives that are compiled


class DerivativeKernels:
    """`value`, `jacobian` and `second` of a traced function, as kernels of single samples and batches.

    Rows of `jacobian` (result, arguments) are of the numbers of the result, those of `second` (result
    arguments, arguments) of the matrices of second derivatives of each of them. `gradient`, `change`
    and `curvature` are what reverse and forward mode need.
    """

    def __init__(self, function: TracedFunction) -> None:
        self.function = function
        self.n_arguments = sum(function.sizes)

    @cached_property
    def value(self) -> Kernel:
        """The function itself."""
        return self._kernel(self.function.law)

    @cached_property
    def jacobian(self) -> Kernel:
        """The derivatives of all numbers of the result by all of the arguments."""

        def trace(*stacks: Stack) -> Stack:
            return self.function.jacobian(stacks[0][0][0].graph, stacks)

        return self._kernel(trace)

    @cached_property
    def gradient(self) -> Kernel:
        """The derivatives (1, arguments) of weights · result; the weights come last."""

        def trace(*stacks: Stack) -> Stack:
            *given, weights = stacks
            graph = given[0][0][0].graph
            return [self.function.gradient(graph, given, [x for row in weights for x in row])]

        return Kernel(trace, [*self.function.arguments, ("the weights", self.function.result[1])])

    @cached_property
    def change(self) -> Kernel:
        """How the result changes in a direction (1, arguments), which comes last."""

        def trace(*stacks: Stack) -> Stack:
            *given, (direction,) = stacks
            found = self.function.change(given[0][0][0].graph, given, direction)
            columns = self.function.result[1][1]
            return [found[i : i + columns] for i in range(0, len(found), columns)]

        return Kernel(trace, [*self.function.arguments, ("the direction", (1, self.n_arguments))])

    @cached_property
    def curvature(self) -> Kernel:
        """How that gradient changes in a direction, which comes last: (1, arguments), and then the result."""

        def trace(*stacks: Stack) -> Stack:
            *given, weights, (direction,) = stacks
            graph = given[0][0][0].graph
            slopes = self.function.gradient(graph, given, [x for row in weights for x in row])
            inputs = [x for stack in given for row in stack for x in row]
            changes = {x.number: step for x, step in zip(inputs, direction)}
            return [derivatives(graph, [*slopes, *self.function.values(given)], changes)]

        further = ("the weights", self.function.result[1]), ("the direction", (1, self.n_arguments))
        return Kernel(trace, [*self.function.arguments, *further])

    @cached_property
    def second(self) -> Kernel:
        """The second derivatives of all numbers of the result by all pairs of numbers of the arguments."""
        entries = self.function.size * self.n_arguments**2
        if entries > _MOST_SECOND:
            raise InputError(
                f"{self.function.name} has {entries} second derivatives, and {_MOST_SECOND} are the most "
                "that are compiled; differentiate it once, or take a smaller robot or a lower order"
            )

        def trace(*stacks: Stack) -> Stack:
            graph, size = stacks[0][0][0].graph, self.function.size
            units = ([float(i == j) for j in range(size)] for i in range(size))
            return [row for unit in units for row in self.function.hessian(graph, stacks, unit)]

        return self._kernel(trace)

    def _kernel(self, trace: Callable[..., Stack]) -> Kernel:
        return Kernel(trace, list(self.function.arguments))
