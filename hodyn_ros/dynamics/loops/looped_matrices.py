"""Mass and Coriolis matrix and gravity of robots with couplings and loops, in their independent coordinates.

With `z' = F y'` and those of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, each with
time derivatives by the product rule (Mueller et al., eqs. 10 and 11, for limbs of a platform). `M_y' - 2 C_y`
is skew, as it is for the tree.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT
from hodyn_ros.dynamics.loops.coordinate_motion import looped_inputs
from hodyn_ros.dynamics.loops.grounded import SHIFT
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.matrices import reference_velocities
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, RATES
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class LoopedMatrices(LoopedMotion):
    """Matrices in the independent coordinates.

    These are in the order of the closure: the body-fixed twist of a prescribed base, joints, rows of a
    platform.
    """

    @finite_result
    def computed(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        *of: Any,
        reference: tuple[ArrayLike | None, ArrayLike | None] | None = None,
    ) -> Array:
        """Compute by its law what follows from the motion: (order + 1, ...), of a batch (N, ...).

        `of`: the name of a frame and a representation, of what is of a frame; `reference`: of what takes one,
        its joints and twists.
        """
        inputs = looped_inputs(self.closure, q, base, RATES[name])
        further: list[Array] = []
        batch = (inputs.n_samples,) if inputs.n_samples else ()
        if reference is not None:
            further.append(reference_velocities(self.closure, inputs.orders + 1, batch, *reference))
        call = self.product_call(name, inputs.orders - RATES[name], *of)
        rows = call.run(inputs.n_samples, inputs.arrays(0, *further))
        result: Array = rows.reshape(*rows.shape[:-2], -1, *call.law.shape)
        result = result[..., self._columns(name)] if self.drifts else result
        if not batch and reference is None:
            self.fast.note(inputs.y, base, (name, *of), self.fastest(name, call), result)
        return result

    @kept
    def product_call(self, name: str, order: int, *of: Any) -> LoopedCall:
        """Return the code of what the call of that name returns."""
        return self._made(name, order, of)

    def _made(
        self, name: str, order: int, of: tuple[Any, ...], limit: float = STRAIGHT_LINE_LIMIT
    ) -> LoopedCall:
        def make(closure: Closure, chosen: Array, loads: Loads) -> LoopCode:
            frames = placed(self.closure.tree, self.frames, of, 0 if closure is self.closure else SHIFT)
            law: LoopCode = OPERATIONS[name].law("loops")(closure, chosen, order, *frames)
            law.limit = limit
            return law

        return self.call_of(make, order)

    def compile_long(self, name: str, order: int) -> None:
        """Compile an operation by its law, however long that takes."""
        self.calls["product_call", name, order] = self._made(name, order, (), float("inf"))
