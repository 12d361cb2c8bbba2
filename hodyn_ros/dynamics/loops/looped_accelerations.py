"""Accelerations of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hodyn_ros.dynamics.loops.coordinate_motion import count_of, spatial_arrays
from hodyn_ros.dynamics.loops.grounded import loop_code, shifted
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.engine.loops.loop_kernel import LoopAccelerations, LoopFunction
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class LoopedAccelerations(LoopedMotion):
    """Forward and hybrid dynamics in the independent coordinates."""

    def hybrid_dynamics(
        self,
        state: Array,
        values: Array,
        prescribed: Sequence[int],
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> tuple[Array, Array | None]:
        """Compute what is not given where some drives are moved and others push.

        `state` (2, k); `leader`: pose and spatial twist of platform or base. `values` (order + 1, efforts),
        as `Closure.effort_map` takes them, holds accelerations and their derivatives in the `prescribed`
        columns, efforts in the others. Returns efforts in the prescribed columns, accelerations in those of
        the other drives, and the spatial twist of platform or base.
        """
        first = 6 if self.closure.base_given else 0
        drives = tuple(place - first for place in prescribed)
        call = self.forward_call(len(values) - 1, self.places(wrenches), drives)
        table = call(*self._arrays(state, values, leader, wrenches))
        if leader is None:
            return table[:-1], None
        of_base = values if min(drives, default=0) < 0 else table[:-1]
        twists = np.concatenate([leader.twists[:1], of_base[:, :6]])
        return table[:-1, 6 - first :], twists

    def accelerations(
        self,
        state: Array,
        efforts: Array,
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> Array:
        """Compute what `LoopAccelerations` returns but for its last row: accelerations by order.

        `state` (2, k); `efforts` (order + 1, efforts) as `Closure.effort_map` takes them; `leader`: pose and
        spatial twist of platform or base, which then move freely. Of a batch too, (N, 2, k).
        """
        self.check_loads(leader, wrenches, 0)  # of higher orders, motion is not known yet
        call = self.forward_call(efforts.shape[-2] - 1, self.places(wrenches))
        return call.run(count_of(state), self._arrays(state, efforts, leader, wrenches))

    def _arrays(
        self, state: Array, efforts: Array, leader: BaseMotion | None, wrenches: Sequence[AppliedWrench]
    ) -> list[Array]:
        """Return what the code takes."""
        drives = [efforts]
        if self.closure.base_given:
            drives = [efforts[..., 6:], efforts[..., :6]]
        loads = [load.up_to(efforts.shape[-2] - 1) for load in wrenches]
        arrays = [state[..., :2, :], *spatial_arrays(leader, 1), *drives, *loads]
        return [np.ascontiguousarray(array) for array in arrays]

    @kept
    def forward_call(
        self, order: int, loads: LoadPlaces = (), drives: tuple[int, ...] | None = None
    ) -> LoopedCall:
        """Return the code of forward dynamics, or of hybrid dynamics where the motion of `drives` is given.

        Of these, efforts and accelerations are judged apart, and those of a base.
        """
        if self.independence.idle:
            raise InputError(self.independence.idle)
        closure, chosen = self.closure, self.independence.of_joints
        first = 0 if closure.leader is None else 6
        if drives is None:
            held, moved = [], list(range(first, first + len(closure.joints)))
        else:
            held = [first + place for place in drives if place >= 0]
            moved = [first + i for i in range(len(closure.driven)) if first + i not in held]
        groups = [group for group in (list(range(first)), held, moved) if group]
        of_base = [list(range(first))] if min(drives or (), default=0) < 0 else []
        efforts = [i for i, group in enumerate(groups) if group in [held, *of_base]]
        ahead = 6 if closure.base_given else 0

        def code(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            places = shifted(loads, shift)
            return LoopAccelerations(closure, chosen, order, places, drives, on_numbers=on_numbers)

        def parts(table: Array) -> list[Array]:
            return [table[:-1, group] for group in groups]

        made = loop_code(closure, order, order + 2, code)
        check = self.check_of(made, "accelerations", parts, efforts)
        prescribed = [ahead + place for place in drives or ()]
        return LoopedCall(self, made, check, prescribed=prescribed, derivative=order + 2)

    def compile_forward(self, order: int) -> Callable[..., Array]:
        """Return `f(state, [pose, twist,] efforts, [base wrench])`, compiled where it can be."""
        return self.forward_call(order).compiled(slice(0, -1))
