"""Accelerations of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, drive_rows, sample_of
from hodyn_ros.dynamics.loops.digit_check import CheckedCall
from hodyn_ros.dynamics.loops.independence import conditions, mass_of
from hodyn_ros.dynamics.loops.looped_motion import KEPT, SINGULAR, LoopedMotion
from hodyn_ros.dynamics.loops.platform_dynamics import PlatformDynamics
from hodyn_ros.engine.loops.loop_kernel import LoopAccelerations, TooLong, compiles
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array


class LoopedAccelerations(LoopedMotion):
    """Forward and hybrid dynamics in the independent coordinates."""

    def forward_dynamics(
        self,
        state: Array,
        efforts: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> tuple[Array, Array | None]:
        """Compute accelerations and derivatives (order + 1, k) of the coordinates from state and efforts.

        `state` (2, k); `efforts` (order + 1, efforts) as `Closure.effort_map` takes them; `given`: pose and
        spatial twist of platform or base, which then move freely. Returns also the spatial twist of platform
        or base with its derivatives (order + 2, 6).

        With `z' = F y'`, M the mass matrix of the tree and e = Q - S u, which the loops balance, `F^T e = 0`:
        at order k `F^T M F y^(k+2) = - sum_{i>=1} C(k,i) F^(i)T e^(k-i) - F^T e^(k)`, e^(k) with y^(k+2) = 0.
        """
        if self.platform is not None and given is not None:
            twists = self._platform_forward(self.platform, given, efforts, wrenches)
            if twists is not None:
                return np.zeros((len(efforts), 0)), twists
        leads, columns = self.closure.leader, list(self.closure.joints)

        def found(state: Array, given: BaseMotion | None, efforts: Array) -> tuple[LoopMotion, Array]:
            moved, _ = self.accelerate(state, efforts, (), given, wrenches)
            rows = moved.joint_motion()[2:, columns]
            return moved, rows if leads is None else np.concatenate(
                [np.array(moved.twists_of(leads))[1:], rows], axis=1
            )

        with self._kept_on_error():
            moved, rows = found(state, given, efforts)
            margin = conditions(self.closure, moved, self.independence.rows)[0]
            self.judge(
                "accelerations", margin, rows, lambda *others: found(*others)[1], state, given, [efforts]
            )
        if leads is None:
            return rows, None
        return rows[:, 6:], np.array(moved.twists_of(leads))

    def hybrid_dynamics(
        self,
        state: Array,
        values: Array,
        prescribed: Sequence[int],
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> tuple[Array, Array | None]:
        """Compute what is not given where some drives are moved and others push.

        As `forward_dynamics`; `values` (order + 1, efforts) holds accelerations and their derivatives in the
        `prescribed` columns, efforts in the others. Returns efforts in the prescribed columns, accelerations
        in those of the other drives, and the spatial twist of platform or base.

        With P the columns of S that are prescribed, at order k

            F^T M F y^(k+2) - F^T P u_p^(k) = ...,   P^T F y^(k+2) = a_p^(k) - P^T z^(k+2) at y^(k+2) = 0
        """
        closure, first = self.closure, 6 if self.closure.base_given else 0
        drives = tuple(place - first for place in prescribed)
        kernel = self._hybrid_kernel(values, drives, wrenches)
        if kernel is not None:
            motion = [] if given is None else [given.pose, given.twists[:1]]
            loads = [load.up_to(len(values) - 1) for load in wrenches]
            arrays = [state, *motion, values[:, first:], *([values[:, :6]] if first else []), *loads]
            arrays = [np.ascontiguousarray(array) for array in arrays]
            table = kernel.call.function(*arrays, self.memory)
            if kernel.counts(table, arrays, self.memory):
                if given is None:
                    return table[:-1], None
                of_base = values if min(drives, default=0) < 0 else table[:-1]
                twists = np.concatenate([given.twists[:1], of_base[:, :6]])
                return table[:-1, 6 - first :], twists
        moved, efforts = self.accelerate(state, values, prescribed, given, wrenches)
        rates = np.array(moved.rates[1:]) @ closure.effort_map
        found = rates.copy()
        found[:, list(prescribed)] = efforts[:, list(prescribed)]
        return found, None if closure.leader is None else np.array(moved.twists_of(closure.leader))

    def _hybrid_kernel(
        self, values: Array, drives: tuple[int, ...], wrenches: Sequence[AppliedWrench]
    ) -> CheckedCall[LoopAccelerations] | None:
        """Return the code of hybrid dynamics; None where there is none."""
        order, loads = len(values) - 1, self.places(wrenches)
        if self.independence.idle or not compiles(self.closure, order):
            return None
        key = order, loads, drives
        if key not in self._hybrid_kernels:
            if len(self._hybrid_kernels) >= KEPT:
                del self._hybrid_kernels[next(iter(self._hybrid_kernels))]
            self._hybrid_kernels[key] = None
            with suppress(TooLong):
                code = LoopAccelerations(self.closure, self.independence.given, order, loads, drives)
                self._hybrid_kernels[key] = self._checked_hybrid(code, drives)
        return self._hybrid_kernels[key]

    @cached_property
    def _hybrid_kernels(
        self,
    ) -> dict[tuple[int, LoadPlaces, tuple[int, ...]], CheckedCall[LoopAccelerations] | None]:
        return {}

    def _checked_hybrid(
        self, code: LoopAccelerations, drives: tuple[int, ...]
    ) -> CheckedCall[LoopAccelerations]:
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

    def accelerate(
        self,
        state: Array,
        values: Array,
        prescribed: Sequence[int],
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench],
    ) -> tuple[LoopMotion, Array]:
        """Return the motion that follows from what is given of the drives, and all efforts."""
        closure, rows = self.closure, self.independence.rows
        if self.independence.idle:
            raise InputError(self.independence.idle)
        efforts = values.copy()
        efforts[:, list(prescribed)] = 0.0
        moved, _ = self.locate(state[0], given, len(efforts) + 1)
        P = closure.effort_map[:, list(prescribed)]
        twist = None if given is None else given.twists[0]
        moved.extend(embedding.next_rate(rows, moved, state[1], twist))
        still = np.zeros(state.shape[1])
        mass = mass_of(closure, moved)
        unbalanced: list[Array] = []
        for k, effort in enumerate(efforts):
            trial = embedding.next_rate(rows, moved, still, None if twist is None else np.zeros(6))
            joints, base = _with(moved, trial)
            open_by = (self.tree_efforts(joints, base, wrenches) @ closure.spread)[k]
            open_by = open_by - closure.effort_map @ effort
            F = embedding.distribution(rows, moved, k)
            right = F[0].T @ open_by
            for i in range(1, k + 1):
                right = right + comb(k, i) * (F[i].T @ unbalanced[k - i])
            system, moving = F[0].T @ mass @ F[0], P.T @ F[0]
            if len(moving):
                self._check_prescribed(moving)
                zeros = np.zeros((len(moving), len(moving)))
                system = np.block([[system, -moving.T], [moving, zeros]])
            missing = values[k, list(prescribed)] - P.T @ trial
            found = np.linalg.solve(system, np.concatenate([-right, missing]))
            split = len(found) - len(moving)
            change = F[0] @ found[:split]
            efforts[k, list(prescribed)] = found[split:]
            unbalanced.append(open_by + mass @ change - P @ found[split:])
            moved.extend(trial + change)
        self.remember(moved, state[0], given)
        return moved, efforts

    def _check_prescribed(self, moving: Array) -> None:
        """Refuse drives that cannot be moved as one likes, from what they move by the coordinates."""
        sized = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        least = float(np.linalg.svd(sized, compute_uv=False)[-1]) if len(sized) <= sized.shape[1] else 0.0
        if least < SINGULAR:
            raise SingularError(
                f"the prescribed joints of robot {self.closure.tree.name!r} cannot all be moved freely there "
                f"(smallest singular value {least:.3g}); prescribe fewer",
                1.0 / max(least, 1e-300),
            )

    def _platform_forward(
        self,
        platform: PlatformDynamics,
        given: BaseMotion,
        efforts: Array,
        wrenches: Sequence[AppliedWrench],
    ) -> Array | None:
        """Compute spatial twists of a platform on limbs (order + 2, 6), compiled where that is possible."""
        places = self.places(wrenches)
        twist = given.twists[:1]
        platform.check_twists(given.pose, twist)
        platform.check_loads(given, wrenches, 0)  # of higher orders, motion is not known yet
        if not platform.compiles(len(efforts) - 1, places):
            return None
        return platform.forward_dynamics(given.pose, twist[0], efforts, wrenches, self.memory)

    def accelerations(
        self,
        state: Array,
        efforts: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> Array:
        """Compute what `LoopAccelerations` returns but for its last row, from arguments as above."""
        places = self.places(wrenches)
        motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[:1])]
        pushes = [np.ascontiguousarray(efforts[:, :6])] if self.closure.base_given else []
        drives = np.ascontiguousarray(efforts[:, 6:] if pushes else efforts)
        order = len(efforts) - 1
        self.check_loads(given, wrenches, 0)  # of higher orders, motion is not known yet
        loads = [load.up_to(order) for load in wrenches]
        call = self.forward_call(order, places)
        return call(np.ascontiguousarray(state[:2]), *motion, drives, *pushes, *loads)

    def accelerations_of_samples(
        self,
        count: int,
        state: Array,
        efforts: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        out: Array | None = None,
    ) -> Array:
        """Compute what `accelerations` does of a batch, each sample on the branch of the one before.

        `state` (count, 2, k), `efforts` (count, order + 1, efforts).
        """

        def alone(i: int) -> Array:
            return self.accelerations(state[i], efforts[i], sample_of(given, i), wrenches)

        key = efforts.shape[1] - 1, self.places(wrenches)
        self.check_loads(given, wrenches, 0)
        self.forward_call(*key)
        loop = self._forward_loops.get(key)
        if loop is None:
            return one_by_one(count, alone, out)
        motion = [] if given is None else [given.pose, given.twists[..., :1, :]]
        drives = [efforts]
        if self.closure.base_given:
            drives = [efforts[..., 6:], efforts[..., :6]]
        loads = [load.up_to(key[0]) for load in wrenches]
        return loop.run(count, [state[:, :2], *motion, *drives, *loads], self.memory, alone, out)

    def forward_call(self, order: int, loads: LoadPlaces = ()) -> Callable[..., Array]:
        """Return `f(state, [pose, twist,] efforts, [base wrench,] load...)`, compiled where it can be."""
        key = order, loads
        if key not in self._forward_calls:
            if len(self._forward_calls) >= KEPT:
                oldest = next(iter(self._forward_calls))
                del self._forward_calls[oldest]
                self._forward_loops.pop(oldest, None)
            self._forward_calls[key] = self._forward_made(*key)
        return self._forward_calls[key]

    def _forward_made(self, order: int, loads: LoadPlaces) -> Callable[..., Array]:
        closure = self.closure
        n_given = 0 if closure.leader is None else 2
        count = 2 + n_given + closure.base_given + len(loads)

        @finite_result
        def carefully(*arguments: ArrayLike) -> Array:
            if len(arguments) != count:
                raise InputError(f"expected {count} arguments, found {len(arguments)}")
            state, *rest = arguments
            base = BaseMotion(rest.pop(0), rest.pop(0)) if n_given else None  # type: ignore[arg-type]
            y, given = coordinate_motion(closure, state, base, 1)
            drives = rest.pop(0)
            u = drive_rows(closure, drives, rest.pop(0) if closure.base_given else None)
            if len(y) != 2 or len(u) != order + 1:
                raise InputError(f"expected a state of 2 rows and efforts of {order + 1}")
            wrenches = [
                AppliedWrench(body, values, representation=frame)  # type: ignore[arg-type]
                for (body, frame), values in zip(loads, rest)
            ]
            joints, twists = self.forward_dynamics(y, u, given, wrenches)
            return joints if twists is None else np.concatenate([twists[1:], joints], axis=1)

        if self.independence.idle or not compiles(closure, order):
            return carefully
        try:
            kernel = LoopAccelerations(closure, self.independence.given, order, loads)
        except TooLong:
            return carefully
        moved = 0 if closure.leader is None else 6

        def parts(table: Array) -> list[Array]:
            return [part for part in (table[:-1, :moved], table[:-1, moved:]) if part.size]

        checked = self.checked(kernel, "accelerations", parts)
        self._forward_loops[order, loads] = checked.samples
        function, memory, bad, sure = kernel.function, self.memory, kernel.bad, checked.sure

        def quickly(*arguments: Array) -> Array:
            result: Array = function(*arguments, memory)
            if result.item(bad) < sure or checked.counts(result, arguments, memory):
                return result[:-1]
            return carefully(*arguments)

        return quickly


def _with(moved: LoopMotion, rate: Array) -> tuple[Array, BaseMotion | None]:
    """Return the motion of joints and base with one more derivative of z'."""
    closure = moved.closure
    joints = np.concatenate([moved.joint_motion(), (closure.spread[closure.first :] @ rate)[None]])
    if moved.place.base is None:
        return joints, None
    twists = np.array([*(r[:6] for r in moved.rates), rate[:6]])
    return joints, BaseMotion(moved.place.base, twists)
