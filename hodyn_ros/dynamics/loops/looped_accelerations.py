"""Accelerations of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, drive_rows, sample_of
from hodyn_ros.dynamics.loops.digit_check import CheckedCall
from hodyn_ros.dynamics.loops.grounded import DriftingFunction, loop_code, shifted
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
        call = self._hybrid_call(values, drives, wrenches)
        motion = [] if leader is None else [leader.pose, leader.twists[:1]]
        loads = [load.up_to(len(values) - 1) for load in wrenches]
        arrays = [state, *motion, values[:, first:], *([values[:, :6]] if first else []), *loads]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        table = self.finished(
            call,
            call.function(*arrays, self.memory),
            arrays,
            state,
            leader,
            derivative=len(values) + 1,
            prescribed=prescribed,
        )
        if leader is None:
            return table[:-1], None
        of_base = values if min(drives, default=0) < 0 else table[:-1]
        twists = np.concatenate([leader.twists[:1], of_base[:, :6]])
        return table[:-1, 6 - first :], twists

    def _hybrid_call(
        self, values: Array, drives: tuple[int, ...], wrenches: Sequence[AppliedWrench]
    ) -> CheckedCall:
        """Return the code of hybrid dynamics."""
        if self.independence.idle:
            raise InputError(self.independence.idle)
        order, loads = len(values) - 1, self.places(wrenches)
        key = order, loads, drives
        return self._hybrid_calls.made(
            key, lambda: self._checked_hybrid(self._forward_code(order, loads, drives), drives)
        )

    @cached_property
    def _hybrid_calls(self) -> Kept[tuple[int, LoadPlaces, tuple[int, ...]], CheckedCall]:
        return Kept()

    def _forward_code(
        self, order: int, loads: LoadPlaces, drives: Sequence[int] | None = None
    ) -> LoopFunction | DriftingFunction:
        chosen = self.independence.of_joints

        def make(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            places = shifted(loads, shift)
            return LoopAccelerations(closure, chosen, order, places, drives, on_numbers=on_numbers)

        return loop_code(self.closure, order, order + 2, make)

    def _checked_hybrid(self, code: LoopFunction | DriftingFunction, drives: tuple[int, ...]) -> CheckedCall:
        """Return code of hybrid dynamics, efforts and accelerations judged apart, and those of a base."""
        first = 0 if self.closure.leader is None else 6
        held = [first + place for place in drives if place >= 0]
        moved = [first + i for i in range(len(self.closure.driven)) if first + i not in held]
        groups = [group for group in (list(range(first)), held, moved) if group]
        of_base = [list(range(first))] if min(drives, default=0) < 0 else []
        efforts = [i for i, group in enumerate(groups) if group in [held, *of_base]]
        return self.checked(
            code, "accelerations", lambda table: [table[:-1, group] for group in groups], efforts
        )

    def accelerations(
        self,
        state: Array,
        efforts: Array,
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> Array:
        """Compute what `LoopAccelerations` returns but for its last row: accelerations by order.

        `state` (2, k); `efforts` (order + 1, efforts) as `Closure.effort_map` takes them; `leader`: pose and
        spatial twist of platform or base, which then move freely.
        """
        places = self.places(wrenches)
        motion = [] if leader is None else [leader.pose, np.ascontiguousarray(leader.twists[:1])]
        pushes = [np.ascontiguousarray(efforts[:, :6])] if self.closure.base_given else []
        drives = np.ascontiguousarray(efforts[:, 6:] if pushes else efforts)
        order = len(efforts) - 1
        self.check_loads(leader, wrenches, 0)  # of higher orders, motion is not known yet
        loads = [load.up_to(order) for load in wrenches]
        call = self.forward_call(order, places)
        return call(np.ascontiguousarray(state[:2]), *motion, drives, *pushes, *loads)

    def accelerations_of_samples(
        self,
        count: int,
        state: Array,
        efforts: Array,
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        out: Array | None = None,
    ) -> Array:
        """Compute what `accelerations` does of a batch, each sample on the branch of the one before.

        `state` (count, 2, k), `efforts` (count, order + 1, efforts).
        """

        def alone(i: int) -> Array:
            result = self.accelerations(state[i], efforts[i], sample_of(leader, i), wrenches)
            return np.concatenate([result, np.zeros((1, result.shape[1]))])

        key = efforts.shape[1] - 1, self.places(wrenches)
        self.check_loads(leader, wrenches, 0)
        self.forward_call(*key)
        loop = self._forward_loops[key]
        motion = [] if leader is None else [leader.pose, leader.twists[..., :1, :]]
        drives = [efforts]
        if self.closure.base_given:
            drives = [efforts[..., 6:], efforts[..., :6]]
        loads = [load.up_to(key[0]) for load in wrenches]
        return loop.run(count, [state[:, :2], *motion, *drives, *loads], self.memory, alone, out)

    def forward_call(self, order: int, loads: LoadPlaces = ()) -> Callable[..., Array]:
        """Return `f(state, [pose, twist,] efforts, [base wrench,] load...)`, compiled where it can be."""
        return self._forward_calls.made((order, loads), lambda: self._forward_made(order, loads))

    def _forward_made(self, order: int, loads: LoadPlaces) -> Callable[..., Array]:
        closure = self.closure
        if self.independence.idle:
            raise InputError(self.independence.idle)
        n_given, moved = (0, 0) if closure.leader is None else (2, 6)
        count = 2 + n_given + closure.base_given + len(loads)

        def parts(table: Array) -> list[Array]:
            return [part for part in (table[:-1, :moved], table[:-1, moved:]) if part.size]

        code = self._forward_code(order, loads)
        checked = self.checked(code, "accelerations", parts)
        self._forward_loops[order, loads] = checked.samples
        function, memory, defect_at, sure = (
            checked.function,
            self.memory,
            checked.defect_at,
            checked.sure,
        )

        @finite_result
        def slowly(result: Array, *arguments: Any) -> Array:
            if len(arguments) != count:
                raise InputError(f"expected {count} arguments, found {len(arguments)}")
            state, *rest = arguments
            base = BaseMotion(rest.pop(0), rest.pop(0)) if n_given else None
            y, leader = coordinate_motion(closure, state, base, 1)
            drives = rest.pop(0)
            u = drive_rows(closure, drives, rest.pop(0) if closure.base_given else None)
            if len(y) != 2 or len(u) != order + 1:
                raise InputError(f"expected a state of 2 rows and efforts of {order + 1}")
            for (body, frame), values in zip(loads, rest):
                AppliedWrench(body, values, representation=frame)
            arrays = [np.asarray(array, dtype=np.float64) for array in arguments]
            return self.finished(checked, result, arrays, y, leader, derivative=order + 2)[:-1]

        def by_code(*arguments: Array) -> Array:
            result: Array = function(*arguments, memory)
            return result[:-1] if result.item(defect_at) < sure else slowly(result, *arguments)

        return by_code
