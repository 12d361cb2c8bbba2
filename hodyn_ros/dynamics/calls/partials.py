"""The calls of `Robot` that return partial derivatives of inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.sample_loop import each_sample, one_by_one
from hodyn_ros.dynamics import matrices, partials
from hodyn_ros.dynamics.calls.description import load_places
from hodyn_ros.dynamics.calls.forward_dynamics import (
    ForwardDynamicsCalls,
    HybridArguments,
    HybridProblem,
    check_prescribed,
)
from hodyn_ros.dynamics.calls.matrices import MatrixCalls, called
from hodyn_ros.dynamics.loops.coordinate_motion import (
    coordinate_motion,
    coordinate_motions,
    drive_rows,
    sample_of,
)
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.motion_stack import MotionStack, applied, fitting_base, motion_stack
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.engine.direction_lanes import (
    hybrid_dynamics_changes,
    in_all_directions,
    inverse_dynamics_changes,
    matrix_changes,
)
from hodyn_ros.engine.kernels import KernelSpec
from hodyn_ros.engine.matrix_kernels import Loads, load_series
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array, ad
from hodyn_ros.model.tree import TreeModel


class PartialCalls(ForwardDynamicsCalls, MatrixCalls):
    """Partial derivatives, and linearised dynamics."""

    @cached_property
    def _fast_partials(self) -> Kept[Any, tuple[Callable[..., Array], tuple[int, ...]]]:
        """Functions of forward dynamics by shapes of state and torques, and frame of a base."""
        return Kept()

    @finite_result
    def matrix_derivatives(self, q: ArrayLike | None, base: BaseMotion | None = None) -> MatrixDerivatives:
        """Compute dM/dq, dC/dq, dC/dq' and dg/dq with their time derivatives, from `q` (order + 2, n).

        Garofalo et al. (2013), eq. 24. With loops in the coordinates, by these and their rates.
        """
        if self._looped is not None:
            looped = self._looped
            count, y, moving = coordinate_motions(looped.closure, q, base, 1)
            if not count:
                return looped.matrix_partials(y, moving)
            each = each_sample(count, lambda i: looped.matrix_partials(y[i], sample_of(moving, i)))
            return MatrixDerivatives(
                *(np.array([getattr(one, part.name) for one in each]) for part in fields(MatrixDerivatives))
            )
        stack = motion_stack(self.model, q, base, 1)
        changes = self._matrix_kernel(matrix_changes, stack.order)
        if changes is None:
            return matrices.matrix_derivatives(stack.bodies(self._joint_tree), stack.order)
        m, first = self._m, self._m - self.n_coordinates
        result = in_all_directions(changes, stack.arguments(), stack.batch)
        result = result.reshape(*stack.batch, stack.order + 1, 2 * m + 1, 2, m, m)
        by_position, by_velocity = (np.moveaxis(result[..., k, :, :], -1, -3) for k in range(2))
        mass, coriolis, gravity = by_position[..., :m, :], by_position[..., m:-1, :], by_position[..., -1, :]
        by_rate = by_velocity[..., m:-1, :]
        # where a base is changes gravity alone
        mass[..., :first, :, :] = coriolis[..., :first, :, :] = 0.0
        for r in range(1, stack.order + 1):  # a time derivative of C takes dC/dq along
            by_rate[..., r, :, :, :] -= r * coriolis[..., r - 1, :, :, :]
        return MatrixDerivatives(mass, coriolis, by_rate, gravity)

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the partial derivatives of Q^(r) with respect to the motion and all its derivatives.

        `q` (order + 3, n) -> (order + 1, order + 3, m, m): entry [r, k] is dQ^(r)/dq^(k), zero for k > r + 2.
        With a floating base, k = 0 means a small body-fixed displacement of it, and k > 0 derivative k - 1 of
        its body-fixed twist. `wrenches` on bodies stay as they are given, in the world or in the frame of
        their body, where the robot moves away. Compiled.
        """
        if wrenches is None:
            result: Array | None = self._by_noted(q, base, "inverse_dynamics_derivatives")
            if result is not None:
                return result
        return self._inverse_dynamics_derivatives(q, base, wrenches)

    @finite_result
    def _inverse_dynamics_derivatives(
        self, q: ArrayLike | None, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] | None
    ) -> Array:
        loads = self._loads(wrenches)
        if self._looped is not None:
            count, y, moving = coordinate_motions(self._looped.closure, q, base, 2)
            result = self._looped.inverse_dynamics_partials(y, moving, loads)
            if not count and not loads:
                call = self._looped.inverse_partials_call(len(result) - 1)
                key = y.shape, base and base.orders, "inverse_dynamics_derivatives"
                self._noted[key] = call, result.shape, "spatial"
            return result
        stack = motion_stack(self.model, q, base, 2)
        order, m, places = stack.order, self._m, load_places(self.model, loads)
        kernel = self._traced_kernel("inverse_dynamics_derivatives", order, *([places] if places else []))
        if kernel is not None:
            shape = (order + 1, order + 3, m, m)
            if not loads:
                self._note(kernel, stack, shape[1:], "inverse_dynamics_derivatives")
            return called(kernel, stack, loads).reshape(*stack.batch, *shape)
        changes = self._matrix_kernel(inverse_dynamics_changes, order, places)
        if changes is not None:
            arrays = [*stack.arguments(), *applied(loads, order, stack.batch)]
            return in_all_directions(changes, arrays, stack.batch)
        series = partials.closed_form_series(stack.bodies(self._joint_tree), order)
        if loads:
            pushed = self._matrix_kernel(_load_series_kernel, order, places)
            assert pushed is not None
            change = called(pushed, stack, loads)
            series[..., 0, :, :] += change.reshape(*stack.batch, order + 1, m, m)
        return partials.assemble(series, partials.joint_brackets(self._joint_tree, stack.velocities))

    def forward_dynamics_derivatives(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the partial derivatives of accelerations and their time derivatives, of any order.

        Arguments as of `forward_dynamics`. Returns (order + 1, order + 3, m, m): entry [r, k] says
        how derivative r of the accelerations changes with positions (k = 0), velocities (k = 1) and
        derivative k - 2 of the torques, zero for k > r + 2. With a floating base six entries stand first:
        body-fixed twists, small body-fixed displacements, and body-fixed wrenches on it. Wrenches given stay
        as they are where the robot moves away. Named as future work by Ali et al.; of trees compiled.

        With loops rows are of accelerations of the coordinates, columns for k < 2 by these and their rates,
        those of a platform as in `linearised_dynamics`, and for k >= 2 by the efforts of the drives, after
        the wrench on a prescribed base: (order + 1, order + 3, coordinates, efforts). With more drives than
        coordinates, columns beyond these are zero for k < 2.
        """
        unloaded = wrenches is None and base_wrench is None and (base is None or type(base) is BaseMotion)
        if unloaded and state is None and base is not None:  # of a robot that a platform moves
            state = np.empty((2, 0))
        if unloaded and type(state) is np.ndarray and type(torques) is np.ndarray:
            noted = self._fast_partials.get((state.shape, torques.shape, base and base.representation))
            if noted is not None:
                moving = () if base is None else (base.pose, base.twists[:1], np.zeros((len(torques), 6)))
                return noted[0](state, torques, *moving).reshape(noted[1])
        arguments = HybridArguments(state, torques, base, base_wrench, wrenches)
        if self._looped is not None:
            return self._looped_partials(arguments)
        return self._hybrid_partials(arguments)

    def hybrid_dynamics_derivatives(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the partial derivatives of what `hybrid_dynamics` returns, by what it is given.

        As `forward_dynamics_derivatives`; rows of prescribed joints are of their torques, and columns k >= 2
        of derivatives of their accelerations; likewise of a prescribed base. With loops rows are of the
        driven joints, as what `hybrid_dynamics` returns.
        """
        arguments = HybridArguments(state, inputs, base, base_wrench, wrenches, prescribed, prescribe_base)
        if self._looped is None:
            return self._hybrid_partials(arguments)
        check_prescribed(prescribed)
        return self._looped_partials(arguments, of_drives=True)

    @finite_result
    def _hybrid_partials(self, arguments: HybridArguments) -> Array:
        """Return what `hybrid_dynamics_derivatives` does of a tree."""
        problem, base = self._hybrid_problem(arguments), arguments.base
        order, m, n = problem.order, self._m, self.n_coordinates
        shape = (order + 1, order + 3, m, m)
        kernel = self._partial_kernel(order, problem.setting)
        if kernel is not None:
            plain = problem.setting == KernelSpec(base=None if base is None else base.representation)
            if plain and not problem.batch and not self._massless:
                self._fast_partials[(2, n), (order + 1, n), base and base.representation] = (
                    kernel.function,
                    shape,
                )
            return problem.call(kernel).reshape(*problem.batch, *shape)
        if problem.setting.base == "spatial":
            assert base is not None
            arguments = arguments._replace(base=base.in_representation("body_fixed"))
            problem = self._hybrid_problem(arguments)
        changes = self._matrix_kernel(hybrid_dynamics_changes, order, problem.setting)
        if changes is not None:
            return in_all_directions(changes, problem.arrays, problem.batch)
        if arguments.base_wrench is not None and np.ndim(arguments.base_wrench) == 3:
            each = arguments.one_by_one()
            return one_by_one(len(each), lambda i: self._hybrid_partials(each[i]))
        stack, loads, known = self._inverse_problem(problem, arguments)
        return partials.respond(self.inverse_dynamics_derivatives(stack.q, stack.base, loads or None), known)

    def _inverse_problem(
        self, problem: HybridProblem, arguments: HybridArguments
    ) -> tuple[MotionStack, list[AppliedWrench], list[int]]:
        """Return the motion that hybrid dynamics finds, what acts along it, and which columns are known."""
        stack, first = self._solved_motion(problem), self._m - self.n_coordinates
        loads, push, setting = list(self._loads(arguments.wrenches)), arguments.base_wrench, problem.setting
        if stack.base is not None and not setting.base_prescribed and push is not None:
            loads.append(AppliedWrench(0, np.asarray(push)))
        of_base = range(first) if setting.base_prescribed else ()
        return stack, loads, [*of_base, *(first + joint for joint in setting.prescribed)]

    def _solved_motion(self, problem: HybridProblem) -> MotionStack:
        """Return the motion that hybrid dynamics finds."""
        setting, (state, inputs, *of_base) = problem.setting, problem.arrays
        result = problem.call(self._kernel("forward_dynamics", problem.order, setting))
        accelerations = np.array(result[..., self._m - self.n_coordinates :])
        accelerations[..., setting.prescribed] = inputs[..., setting.prescribed]
        base = None
        if setting.base is not None:
            rates = of_base[2] if setting.base_prescribed else result[..., :6]
            twists = np.concatenate([of_base[1], rates], axis=-2)
            base = BaseMotion(of_base[0], twists, representation=setting.base)
        return motion_stack(self.model, np.concatenate([state, accelerations], axis=-2), base, 2)

    @finite_result
    def _looped_partials(self, arguments: HybridArguments, of_drives: bool = False) -> Array:
        """Return the partial derivatives of forward dynamics with loops, or of hybrid dynamics."""
        state, inputs, base, base_wrench, wrenches, *_ = arguments
        of_states = state is not None and np.ndim(state) == 3
        many = of_states or (isinstance(base, BaseMotion) and base.batch)
        if many and not of_drives:
            looped = self._need_loops("this")
            count, states, motion = coordinate_motions(looped.closure, state, base, 1)
            efforts = drive_rows(looped.closure, inputs, base_wrench, count)
            return looped.forward_dynamics_partials(states[:, :2], efforts, motion, self._loads(wrenches))
        if each := arguments.one_by_one():
            return one_by_one(len(each), lambda i: self._looped_partials(each[i], of_drives))
        looped, y, values, moved, motion = self._looped_problem(arguments)
        loads = self._loads(wrenches)
        if of_drives:
            return looped.hybrid_dynamics_partials(y, values, moved, motion, loads)
        result = looped.forward_dynamics_partials(y, values, motion, loads)
        if not loads and base_wrench is None:
            torques = (len(values), len(looped.closure.driven))
            call, leader = looped.forward_partials_call(len(values) - 1), looped.closure.base_given

            def compute(state: Array, torques: Array, *of_base: Array) -> Array:
                return call(state, *of_base[:2], torques, *of_base[2:][:leader])

            self._fast_partials[y.shape, torques, base and "spatial"] = compute, result.shape
        return result

    @finite_result
    def linearised_dynamics(
        self, state: ArrayLike | None, torques: ArrayLike, base: BaseMotion | None = None
    ) -> LinearisedDynamics:
        """Linearise forward dynamics at a state (2, n) under torques (n,): `dx' = A dx + B du`.

        x are the positions, then the m velocities; of a floating base, a small body-fixed displacement before
        the joint positions. u are the joint torques. A (2 m, 2 m), B (2 m, n).

        With loops x are the coordinates, those of a platform small body-fixed displacements in the directions
        that its rows name (what else it moves follows as its pose has it), u the efforts of the drives.
        """
        if self._looped is not None:
            return self._linearised_loops(self._looped, state, torques, base)
        n, m = self.model.n_joints, self._m
        values = finite_array("the state", state, (2, n))
        effort = finite_array("the torques", torques, (n,))
        motion = fitting_base(self.model, base, 1)
        by_position, by_velocity, by_torque = self.forward_dynamics_derivatives(values, effort[None], base)[0]
        A, B = np.zeros((2 * m, 2 * m)), np.zeros((2 * m, n))
        A[:m, m:] = np.eye(m)
        if motion is not None:  # displacements e change by e' = dw - [w, e]
            A[:6, :6] = -ad(motion.twists_in("body_fixed", 1)[0])
        A[m:, :m], A[m:, m:], B[m:] = by_position, by_velocity, by_torque[:, m - n :]
        return LinearisedDynamics(A, B)

    def _linearised_loops(
        self, looped: LoopedDynamics, state: ArrayLike | None, torques: ArrayLike, base: BaseMotion | None
    ) -> LinearisedDynamics:
        closure = looped.closure
        if state is not None:
            state = finite_array("the state", state, (2, self.n_coordinates))
        y, moving = coordinate_motion(closure, state, base, 1)
        efforts = finite_array("the torques", torques, (len(closure.driven),))
        return looped.linearised(y, moving, efforts)


def _load_series_kernel(model: TreeModel, order: int, loads: Loads) -> Kernel:
    return Kernel(*load_series(model, order, loads))
