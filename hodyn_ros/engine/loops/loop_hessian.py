"""Second derivatives of inverse dynamics of robots with couplings and loops, contracted with a multiplier.

As `hodyn_ros.engine.second_partials` has them of trees; arguments change as `loop_partials` lets them. Where
a coordinate changes, joints that follow the coordinates do too, so that changing twice accounts for the
curvature of what the loops allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.kernel import Shape, Stack, TooLong
from hodyn_ros.codegen.program import Code
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_partials import Changing, MotionChange
from hodyn_ros.engine.second_partials import Coordinates, hessian
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class HessianCode(Changing, EffortCode):
    """Second derivatives of `multiplier · efforts` of one robot at one order.

    `function(q (order + 3, k), [pose (4, 4), spatial twists (order + 2, 6),] wrenches (order + 1, 6)...,
    multiplier (order + 1, efforts), memory)`; `changes` of a result are (order + 3, order + 3, coordinates,
    coordinates). A wrench on a base is body-fixed.
    """

    def __init__(self, closure: Closure, chosen: Array, order: int, loads: Loads = ()) -> None:
        super().__init__(closure, chosen, order, loads, from_ground=False)
        self.stacks = [*self.stacks, ("the multiplier", (order + 1, closure.n_efforts))]
        self.result = (order + 3) ** 2 * closure.n_coordinates + 1, closure.n_coordinates

    def changes(self, table: Array) -> Array:
        """Return the second derivatives (..., order + 3, order + 3, c, c) that results hold."""
        orders, c = self.order + 3, self.closure.n_coordinates
        result: Array = table[..., :-1, :].reshape(*table.shape[:-2], orders, orders, c, c)
        return result

    def uncompiled_end(self, shapes: Sequence[Shape]) -> Code:
        """Refuse numbers, of which there is no graph."""
        raise TooLong

    def end(self, q: Stack, *stacks: Stack) -> Stack:
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
