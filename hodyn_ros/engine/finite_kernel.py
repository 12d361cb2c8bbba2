"""Kernels that look at their results: where these are not finite, whoever made the kernel says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Shape, Stack
from hodyn_ros.codegen.llvm import Module
from hodyn_ros.codegen.program import (
    All,
    Code,
    Compare,
    For,
    Index,
    Not,
    Program,
    Return,
    Run,
    Statement,
    When,
    arrays,
    integer,
)
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.codegen.sample_loop import naming_sample
from hodyn_ros.errors import OverflowingError

Refuse = Callable[[Sequence[Array]], None]  # raises for the arguments of a sample


class FiniteKernel(Kernel):
    """A kernel with results that are not finite where its function is not defined, as at singular poses.

    Others are finite wherever their arguments are moderate, and are not looked at. `rows`: those of which
    some number is then none, by default all. `refuse` raises for what such a sample is given; where it does
    not, numbers were too large.
    """

    def __init__(
        self,
        trace: Callable[..., Stack],
        arguments: Sequence[tuple[str, Shape]],
        module: Module | None = None,
        *,
        refuse: Refuse,
        rows: int | None = None,
    ) -> None:
        self._refuse, self._rows = refuse, rows
        super().__init__(trace, arguments, module)

    def batch(self, *arrays: Array, out: Array | None = None, threads: int | None = None) -> Array:
        """See `Function`; errors name the sample."""
        out = super().batch(*arrays, out=out, threads=threads)
        finite = np.isfinite(out[:, : self._rows])
        if not finite.all():
            sample = int(np.argmin(finite.all(axis=(1, 2))))
            with naming_sample(sample):
                self._explain([array[sample] for array in arrays])
        return out

    def _bind(self, address: int, *, judged: bool = False) -> None:
        """Bind code that looks at the results of that at an address."""
        passed = arrays(f"a{i}" for i in range(len(self.arguments) + 1))
        i, value = integer("i"), passed[-1].at(integer("i"))
        finite = All([Compare(value, "<", inf), Compare(value, ">", -inf)])
        rows, columns = self.result
        count = Index.of((self._rows or rows) * columns)
        body: list[Statement] = [
            Run(Code("hodyn_kernel", address, alive=self.code), passed),
            For(i, count, [When(Not(finite), [Return(Index.of(1))])]),
        ]
        self._looking = compile_program(Program("hodyn_finite", passed, {}, body, returns=True))
        super()._bind(self._looking.address, judged=True)

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        try:
            super()._compute(arrays, out)
        except OverflowingError:
            self._explain(arrays)

    def _explain(self, arrays: Sequence[Array]) -> None:
        self._refuse(arrays)
        raise OverflowingError(
            "the result is not finite: the pose is too close to a singular one, or the numbers given are too "
            "large"
        )
