"""Second derivatives of inverse dynamics of robots with couplings and loops, contracted with a multiplier.

As `hodyn_ros.engine.second_partials` has them of trees; arguments change as `loop_partials` lets them. Where
a coordinate changes, joints that follow the coordinates do too, so that changing twice accounts for the
curvature of what the loops allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.kernel_spec import Loads, load_arguments, motion_arguments
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, TooLong
from hodyn_ros.engine.loops.loop_partials import MotionChange
from hodyn_ros.engine.second_partials import Coordinates, hessian
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class LoopHessian(LoopFunction):
    """Second derivatives of `multiplier · efforts` of one robot at one order.

    `function(q (order + 3, k), [pose (4, 4), spatial twists (order + 2, 6),] wrenches (order + 1, 6)...,
    multiplier (order + 1, efforts), memory (1, N), out=None)`; `changes` of a result are (order + 3, order +
    3, coordinates, coordinates). A wrench on a base is body-fixed.
    """

    def __init__(
        self, closure: Closure, chosen: Array, order: int, loads: Loads = (), *, on_numbers: bool = False
    ) -> None:
        """Trace and compile; raise TooLong where the code would be too long, as it is of numbers."""
        if on_numbers:
            raise TooLong
        c = closure.n_coordinates
        self.shape = order + 3, order + 3, c, c
        motion = motion_arguments(order + 3, len(closure.joints), closure.leader is not None)
        stacks = [*load_arguments(loads, order), ("the multiplier", (order + 1, closure.n_efforts))]
        code = _Code(closure, chosen, order, loads)
        result = (order + 3) ** 2 * c + 1, c
        super().__init__(code, motion, stacks, result, code.hessian)

    def changes(self, table: Array) -> Array:
        """Return the second derivatives (..., order + 3, order + 3, c, c) that results hold."""
        result: Array = table[..., :-1, :].reshape(*table.shape[:-2], *self.shape)
        return result


class _Code(EffortCode):
    def hessian(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the second derivatives by rows, and what is wrong."""
        leader, (*loads, multiplier, memory, state) = self.parted(stacks)
        orders, c = self.order + 3, self.closure.n_coordinates
        fields = []
        for k in range(orders):
            row = []
            for i in range(c):
                unit = [[float((a, b) == (k, i)) for b in range(c)] for a in range(orders)]
                changed = MotionChange(self, q, leader, state, unit)
                row.append(changed.by_node)
            fields.append(row)
        table = changed.efforts(self, loads, memory)
        outputs = [x for row in table[: orders - 2] for x in row]
        weights = [x for row in multiplier for x in row]
        blocks = hessian(weights[0].graph, outputs, weights, Coordinates(fields, self._turning(c)))
        defect = [table[-2][0], *[0.0] * (c - 1)]
        return [*(row for line in blocks for block in line for row in block), defect]

    def _turning(self, count: int) -> Sequence[int]:
        """Return the coordinates that are small displacements of platform or base."""
        n = len(self.closure.joints)
        return range(6) if self.closure.base_prescribed else range(n, count)
