"""Forward and hybrid dynamics of trees of any size: the articulated recursion in loops over bodies.

Compiled once per order, whatever the robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.codegen.program import Code
from hodyn_ros.codegen.sample_loop import naming_sample
from hodyn_ros.engine.finite_kernel import Refuse
from hodyn_ros.engine.kernel_spec import KernelSpec, hybrid_arguments
from hodyn_ros.engine.large_trees.inverse import TreeFunction
from hodyn_ros.engine.large_trees.sweeps import Base, Joints, Swept, swept_code
from hodyn_ros.engine.large_trees.tree_memory import FREE, KINDS, PRESCRIBED, six
from hodyn_ros.engine.recursions.articulated import ArticulatedInertia, ArticulatedRecursion
from hodyn_ros.engine.series.spatial import symmetric
from hodyn_ros.engine.series.vectors import from_taylor, halves
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.tree import TreeModel

_SUMS = 6 + 21  # a wrench, and an inertia


class _Answers(Swept, ArticulatedRecursion):
    """Hybrid dynamics; children add to a body's wrench of the order at hand, and to its inertia."""

    n_wrench = 0

    def results(self, joints: Sequence[Stack], of_base: Sequence[Stack]) -> Stack:
        """Return what is not given of the joint, or of the base."""
        (state, inputs), ((twist,), base_inputs) = joints, of_base or (((),), ())
        rows = self.solution(state, inputs, twist, base_inputs)
        return [[*self.base_result(k), *from_taylor(row, k)] for k, row in enumerate(rows)]

    def sums(self, i: int) -> list[Any]:
        """Return wrench and inertia of a body."""
        (moment, force), inertia = self.states[i].wrench, self.states[i].inertia
        mixed = (x for row in inertia.mixed for x in row)
        return [*moment, *force, *six(inertia.angular), *six(inertia.linear), *mixed]

    def set_sums(self, i: int, numbers: Sequence[Any]) -> None:
        """Replace them."""
        self.states[i].wrench = halves(numbers)
        angular, linear = ([list(row) for row in symmetric(numbers[k : k + 6])] for k in (6, 12))
        mixed = [list(numbers[k : k + 3]) for k in (18, 21, 24)]
        self.states[i].inertia = ArticulatedInertia(angular, mixed, linear)


@lru_cache(maxsize=KEPT)
def _hybrid_code(
    order: int, frame: BaseRepresentation | None, loaded: bool, prescribed: bool, base_prescribed: bool
) -> Code:
    """Compile hybrid dynamics of one order, with applied wrenches and prescribed joints or without."""
    joints: Joints = {name: (kind, _Answers) for name, kind in zip(FREE, KINDS)}
    if prescribed:
        joints |= {name: (kind, partial(_Answers, prescribed=[0])) for name, kind in zip(PRESCRIBED, KINDS)}
    base = None
    if frame:
        rows = {"twist": 1, "base_inputs": order + 1}
        base = Base(partial(_Answers, base_prescribed=base_prescribed), frame, rows)
    return swept_code(joints, order, _SUMS, {"state": 2, "inputs": order + 1}, base, loaded)


class TreeHybridKernel(TreeFunction):
    """Forward and hybrid dynamics by the generic code, with the arguments of `kernels.hybrid_dynamics`.

    Its steps know a body and the parent alone, so poses are looked at before each call.
    """

    def __init__(
        self, model: TreeModel, order: int, setting: KernelSpec, refuse: Refuse | None = None
    ) -> None:
        loaded, prescribed = bool(setting.loads), bool(setting.prescribed)
        code = _hybrid_code(order, setting.base, loaded, prescribed, setting.base_prescribed)
        super().__init__(model, hybrid_arguments(model, order, setting), order, code, setting)
        self._refuse = refuse
        if refuse is not None:
            self.function = self._otherwise()

    def batch(self, *arrays: Array, out: Array | None = None, threads: int | None = None) -> Array:
        """See `Function`; errors name the sample."""
        out = super().batch(*arrays, out=out, threads=threads)
        if self._refuse is not None:
            for i in range(len(out)):
                with naming_sample(i):
                    self._refuse([array[i] for array in arrays])
        return out

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        if self._refuse is not None:
            self._refuse(arrays)
        super()._compute(arrays, out)
