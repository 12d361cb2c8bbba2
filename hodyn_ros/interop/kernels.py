"""A function with its first and second derivatives, each compiled when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from hodyn_ros.codegen.kernel import Kernel, Shape, Stack
from hodyn_ros.engine.traced_function import TracedFunction
from hodyn_ros.errors import InputError

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
        self._weights = "the weights", function.result[1]
        self._direction = "the direction", (1, self.n_arguments)

    @cached_property
    def value(self) -> Kernel:
        """The function itself."""
        return self._kernel(self.function.law)

    @cached_property
    def jacobian(self) -> Kernel:
        """The derivatives of all numbers of the result by all of the arguments."""
        return self._kernel(self.function.jacobian)

    @cached_property
    def gradient(self) -> Kernel:
        """The derivatives (1, arguments) of weights · result; the weights come last."""
        return self._kernel(self.function.gradient, self._weights)

    @cached_property
    def change(self) -> Kernel:
        """How the result changes in a direction (1, arguments), which comes last."""
        return self._kernel(self.function.change, self._direction)

    @cached_property
    def curvature(self) -> Kernel:
        """How that gradient changes in a direction, which comes last: (1, arguments), and then the result."""
        return self._kernel(self.function.curvature, self._weights, self._direction)

    @cached_property
    def second(self) -> Kernel:
        """The second derivatives of all numbers of the result by all pairs of numbers of the arguments."""
        entries = self.function.size * self.n_arguments**2
        if entries > _MOST_SECOND:
            raise InputError(
                f"{self.function.name} has {entries} second derivatives, and {_MOST_SECOND} are the most "
                "that are compiled; differentiate it once, or take a smaller robot or a lower order"
            )
        return self._kernel(self.function.second)

    def _kernel(self, trace: Callable[..., Stack], *further: tuple[str, Shape]) -> Kernel:
        return Kernel(trace, [*self.function.arguments, *further])
