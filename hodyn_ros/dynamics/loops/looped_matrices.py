"""Mass and Coriolis matrix and gravity of robots with couplings and loops, in their independent coordinates.

With `z' = F y'` and those of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, each with
time derivatives by the product rule (Mueller et al., eqs. 10 and 11, for limbs of a platform). `M_y' - 2 C_y`
is skew, as it is for the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs, looped_inputs
from hodyn_ros.dynamics.loops.grounded import SHIFT
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, RATES
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class LoopedMatrices(LoopedMotion):
    """Matrices in the independent coordinates.

    These are in the order of the closure: the body-fixed twist of a prescribed base, joints, rows of a
    platform.
    """

    @finite_result
    def computed(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *of: Any) -> Array:
        """Compute by its law what follows from the motion alone: (order + 1, ...), of a batch (N, ...).

        `of`: the name of a frame and a representation, of what is of a frame.
        """
        inputs = looped_inputs(self.closure, q, base, RATES[name])
        result = self._product(name, inputs, *of)
        if not inputs.n_samples:
            code = self.fastest(name, self.product_call(name, len(result) - 1, *of))
            self.fast.note(inputs.y, base, (name, *of), code, result)
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

    def _product(self, name: str, inputs: LoopedInputs, *of: Any, reference: Array | None = None) -> Array:
        """Compute what the call of that name returns, (order + 1, ...), of a batch (count, ...)."""
        call = self.product_call(name, inputs.orders - RATES[name], *of)
        rows = call.run(inputs.n_samples, inputs.arrays(0, *([] if reference is None else [reference])))
        return self._shaped(name, call, rows)

    def _shaped(self, name: str, call: LoopedCall, rows: Array) -> Array:
        """Return the rows of all orders in the shape of one order."""
        shaped = rows.reshape(*rows.shape[:-2], -1, *call.law.shape)
        return shaped[..., self._columns(name)] if self.drifts else shaped

    def compile_long(self, name: str, order: int) -> None:
        """Compile an operation by its law, however long that takes."""
        self.calls["product_call", name, order] = self._made(name, order, (), float("inf"))

    @finite_result
    def slotine_li_regressor(
        self,
        q: ArrayLike | None,
        reference: ArrayLike | None,
        base: BaseMotion | None,
        twists: ArrayLike | None,
    ) -> Array:
        """Compute Y with `M w' + C w + g = Y[0] @ dynamic_parameters()`, w the reference of the coordinates.

        `q` (order + 2, k); `reference` (order + 3, k), and `twists` (order + 2, 6) of base or platform.
        """
        inputs = looped_inputs(self.closure, q, base, 1)
        if not inputs.n_samples:
            rates = self._reference(inputs.orders + 1, reference, twists)
            return self._product("slotine_li_regressor", inputs, reference=rates)

        def alone(i: int) -> Array:
            own = [None if one is None else np.asarray(one) for one in (reference, twists)]
            joints, rates = [one[i] if one is not None and one.ndim == 3 else one for one in own]
            sample = inputs.one(i)
            return self.slotine_li_regressor(sample.y, joints, sample.leader, rates)

        return one_by_one(inputs.n_samples, alone)

    def _reference(self, orders: int, joints: ArrayLike | None, twists: ArrayLike | None) -> Array:
        """Return the velocities (orders, coordinates) of a reference by order."""
        closure, k = self.closure, len(self.closure.joints)
        rates = np.zeros((orders, 0))
        if k or joints is not None:
            rates = finite_array("the reference", joints, (orders + 1, k))[1:]
        if closure.leader is None:
            if twists is not None:
                raise InputError(
                    f"neither base nor platform moves robot {closure.tree.name!r} as prescribed; leave out "
                    "base_reference"
                )
            return rates
        if twists is None:
            raise InputError(
                f"base or platform of robot {closure.tree.name!r} moves as prescribed; give base_reference "
                f"({orders}, 6): body-fixed reference twists by order"
            )
        twists = finite_array("base_reference", twists, (orders, 6))
        if closure.base_prescribed:
            return np.concatenate([twists, rates], axis=1)
        rows = np.linalg.lstsq(closure.directions, twists.T, rcond=None)[0].T
        return np.concatenate([rates, rows], axis=1)
