"""Partial derivatives of inverse and forward dynamics of a tree and of its matrices, and second ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result, n_axes
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics import matrices, partials
from hodyn_ros.dynamics.call_arguments import HybridArguments, MotionArguments
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.motion_stack import MotionStack, load_places, motion_stack, too_large
from hodyn_ros.dynamics.partials import multiplier_rows, of_each
from hodyn_ros.dynamics.trees.tree_accelerations import HybridProblem, TreeAccelerations
from hodyn_ros.engine import second_partials as laws
from hodyn_ros.engine.direction_lanes import (
    hybrid_dynamics_changes,
    in_all_directions,
    inverse_dynamics_changes,
    inverse_gradient_changes,
    matrix_changes,
)
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads
from hodyn_ros.engine.matrix_kernels import load_series
from hodyn_ros.formulations.second_derivatives import answered, hybrid_weights, of_displacements
from hodyn_ros.formulations.state_derivatives import assemble, respond
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array, ad
from hodyn_ros.model.tree import TreeModel

_LAWS: dict[str, laws.Law] = {  # by which their numbers of entries are judged
    "inverse_dynamics_second_derivatives": "inverse",
    "forward_dynamics_hessian": "hybrid contracted",
    "forward_dynamics_second_derivatives": "hybrid",
}


class TreePartials(TreeAccelerations):
    """First and second partial derivatives of a tree."""

    @finite_result
    def matrix_derivatives(self, q: ArrayLike | None, base: BaseMotion | None) -> MatrixDerivatives:
        """Compute what `Robot.matrix_derivatives` returns."""
        stack = motion_stack(self.tree, q, base, 1)
        changes = self.derived_kernel(matrix_changes, stack.order)
        if changes is None:
            return matrices.matrix_derivatives(stack.bodies(self.joint_tree), stack.order)
        m, first = self.m, self.m - self.n
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

    @finite_result
    def inverse_dynamics_derivatives(self, arguments: MotionArguments) -> Array:
        """Compute what `Robot.inverse_dynamics_derivatives` returns."""
        stack, places = self._loaded_motion(arguments)
        order, m, loads = stack.order, self.m, arguments.wrenches
        kernel = self.traced_kernel("inverse_dynamics_derivatives", order, *([places] if places else []))
        if kernel is not None:
            result: Array = stack.call(kernel).reshape(*stack.batch, order + 1, order + 3, m, m)
            if not loads and not stack.batch:
                call = ("inverse_dynamics_derivatives",)
                self.fast.note(stack.q, arguments.base, call, kernel.function, result, stack.frame)
            return result
        changes = self.derived_kernel(inverse_dynamics_changes, order, places)
        if changes is not None:
            return in_all_directions(changes, stack.arguments(), stack.batch)
        series = partials.closed_form_series(stack.bodies(self.joint_tree), order)
        if loads:
            pushed = self.derived_kernel(_load_series_kernel, order, places)
            assert pushed is not None
            series[..., 0, :, :] += stack.call(pushed).reshape(*stack.batch, order + 1, m, m)
        return assemble(series, partials.joint_brackets(self.joint_tree, stack.velocities))

    @finite_result
    def hybrid_dynamics_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.hybrid_dynamics_derivatives` returns."""
        problem, base = self._hybrid_problem(arguments), arguments.base
        order, m, n = problem.order, self.m, self.n
        shape = (order + 1, order + 3, m, m)
        kernel = self._partial_kernel(order, problem.setting)
        if kernel is not None:
            plain = problem.setting == KernelSpec(base=None if base is None else base.representation)
            if plain and not problem.batch:
                self.fast.partials[(2, n), (order + 1, n), base and base.representation] = (
                    kernel.function,
                    shape,
                )
            return problem.call(kernel).reshape(*problem.batch, *shape)
        if problem.setting.base == "spatial":
            assert base is not None
            arguments = arguments._replace(base=base.in_representation("body_fixed"))
            problem = self._hybrid_problem(arguments)
        changes = self.derived_kernel(hybrid_dynamics_changes, order, problem.setting)
        if changes is not None:
            self._solved_motion(problem)  # which refuses singular poses
            return in_all_directions(changes, problem.arrays, problem.batch)
        if arguments.base_wrench is not None and n_axes(arguments.base_wrench) == 3:
            each = arguments.one_by_one()
            return one_by_one(len(each), lambda i: self.hybrid_dynamics_derivatives(each[i]))
        motion, known = self._inverse_problem(problem, arguments)
        return respond(self.inverse_dynamics_derivatives(motion), known)

    def _loaded_motion(self, arguments: MotionArguments) -> tuple[MotionStack, Loads]:
        """Check a motion under wrenches; return it, and where these act."""
        q, base, loads, *_ = arguments
        return motion_stack(self.tree, q, base, 2, loads=loads), load_places(self.tree, loads)

    def _partial_kernel(self, order: int, setting: KernelSpec) -> Kernel | None:
        plain = setting == KernelSpec.of(self.tree)
        return self.traced_kernel("forward_dynamics_derivatives", order, *(() if plain else (setting,)))

    def _inverse_problem(
        self, problem: HybridProblem, arguments: HybridArguments
    ) -> tuple[MotionArguments, list[int]]:
        """Return the motion that hybrid dynamics finds, with what acts along it, and the columns known."""
        stack, first = self._solved_motion(problem), self.m - self.n
        loads, push, setting = list(arguments.wrenches), arguments.base_wrench, problem.setting
        if stack.base is not None and not setting.base_prescribed and push is not None:
            loads.append(AppliedWrench(0, np.asarray(push)))
        of_base = range(first) if setting.base_prescribed else ()
        motion = MotionArguments(stack.q, stack.base, loads)
        return motion, [*of_base, *(first + joint for joint in setting.prescribed)]

    def _solved_motion(self, problem: HybridProblem) -> MotionStack:
        """Return the motion that hybrid dynamics finds."""
        setting, (state, inputs, *of_base) = problem.setting, problem.arrays
        result = problem.call(self.kernel("forward_dynamics", problem.order, setting))
        accelerations = np.array(result[..., self.m - self.n :])
        accelerations[..., setting.prescribed] = inputs[..., setting.prescribed]
        base = None
        if setting.base is not None:
            rates = of_base[2] if setting.base_prescribed else result[..., :6]
            twists = np.concatenate([of_base[1], rates], axis=-2)
            base = BaseMotion(of_base[0], twists, representation=setting.base)
        return motion_stack(self.tree, np.concatenate([state, accelerations], axis=-2), base, 2)

    def forward_dynamics_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.forward_dynamics_derivatives` returns."""
        return self.hybrid_dynamics_derivatives(arguments)

    def displacement_bracket(self, state: ArrayLike | None, base: BaseMotion | None) -> Array | None:
        """Return the matrix of `e -> [w, e]` in displacements e; None where it is zero."""
        if base is None:
            return None
        result = np.zeros((self.m, self.m))
        result[:6, :6] = ad(base.twists_in("body_fixed", 1)[0])
        return result

    def inverse_dynamics_hessian(self, arguments: MotionArguments, multiplier: ArrayLike) -> Array:
        """Compute what `Robot.inverse_dynamics_hessian` returns."""
        name, (stack, places) = "inverse_dynamics_hessian", self._loaded_motion(arguments)
        order = stack.order
        weights = multiplier_rows(multiplier, (order + 1, self.m), stack.batch)
        kernel = self._second_kernel(name, order, *([places] if places else []))
        if kernel is not None:
            shape = (order + 3, order + 3, self.m, self.m)
            return stack.call(kernel, weights).reshape(*stack.batch, *shape)
        changes = self.derived_kernel(inverse_gradient_changes, order, places)
        if changes is None:
            raise too_large(self.tree, name, order)
        result = in_all_directions(changes, [*stack.arguments(), weights], stack.batch)
        return of_displacements(result, self.tree.floating_base)

    def inverse_dynamics_second_derivatives(self, arguments: MotionArguments) -> Array:
        """Compute what `Robot.inverse_dynamics_second_derivatives` returns."""
        name, (stack, places) = "inverse_dynamics_second_derivatives", self._loaded_motion(arguments)
        kernel = self._second_kernel(name, stack.order, *([places] if places else []))
        if kernel is not None:
            return self._all(stack.call(kernel), stack.order, stack.batch)
        return of_each(stack.order, self.m, lambda unit: self.inverse_dynamics_hessian(arguments, unit))

    def hybrid_dynamics_hessian(self, arguments: HybridArguments, multiplier: ArrayLike) -> Array:
        """Compute what `Robot.hybrid_dynamics_hessian` returns."""
        problem = self._hybrid_problem(arguments)
        order, m = problem.order, self.m
        weights = multiplier_rows(multiplier, (order + 1, m), problem.batch)
        kernel = self._hybrid_kernel("forward_dynamics_hessian", problem)
        if kernel is not None:
            return problem.call(kernel, weights).reshape(*problem.batch, order + 3, order + 3, m, m)
        if arguments.base_wrench is not None and n_axes(arguments.base_wrench) == 3:
            each = arguments.one_by_one()
            return one_by_one(len(each), lambda i: self.hybrid_dynamics_hessian(each[i], weights[i]))
        # from the second derivatives of inverse dynamics along the motion that is found
        responses = self.hybrid_dynamics_derivatives(arguments)
        motion, known = self._inverse_problem(problem, arguments)
        nu = hybrid_weights(responses, weights, known)
        return answered(self.inverse_dynamics_hessian(motion, nu), responses, known)

    def hybrid_dynamics_second_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.hybrid_dynamics_second_derivatives` returns."""
        problem = self._hybrid_problem(arguments)
        kernel = self._hybrid_kernel("forward_dynamics_second_derivatives", problem)
        if kernel is not None:
            return self._all(problem.call(kernel), problem.order, problem.batch)
        return of_each(problem.order, self.m, lambda unit: self.hybrid_dynamics_hessian(arguments, unit))

    def frame_derivatives(self, q: ArrayLike | None, base: BaseMotion | None, *of: Any) -> Array:
        """Compute what `Robot.forward_kinematics_derivatives` returns of frames, in a representation."""
        stack, kernel = self._frame_kernel("forward_kinematics_derivatives", q, base, *of)
        return stack.call(kernel).reshape(*stack.batch, -1, 16 + 6 * stack.order, stack.order + 1, self.m)

    def frame_hessian(
        self, q: ArrayLike | None, multiplier: ArrayLike, base: BaseMotion | None, *of: Any
    ) -> Array:
        """Compute what `Robot.forward_kinematics_hessian` returns of frames, in a representation."""
        stack, kernel = self._frame_kernel("forward_kinematics_hessian", q, base, *of)
        weights = multiplier_rows(multiplier, kernel.arguments[-1][1], stack.batch)
        k, m = stack.order + 1, self.m
        return stack.call(kernel, weights).reshape(*stack.batch, k, k, m, m)

    def _frame_kernel(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        frames: Sequence[str | int] | None,
        representation: Representation,
    ) -> tuple[MotionStack, Kernel]:
        check_representation(representation)
        stack = motion_stack(self.tree, q, base, 0)
        names = self.tree.body_names if frames is None else tuple(frames)
        kernel = self.traced_kernel(name, stack.order, names, representation)
        if kernel is None:
            raise too_large(self.tree, name, stack.order)
        return stack, kernel

    def _hybrid_kernel(self, name: str, problem: HybridProblem) -> Kernel | None:
        plain = problem.setting == KernelSpec.of(self.tree)
        return self._second_kernel(name, problem.order, *(() if plain else (problem.setting,)))

    def _second_kernel(self, name: str, order: int, *of: Any) -> Kernel | None:
        """Return the kernel of an operation as `_traced_kernel` does; None of too many entries as well."""
        law = _LAWS.get(name)
        many = law is not None and laws.has_many_entries(self.tree, order, law)
        return None if many else self.traced_kernel(name, order, *of)

    def _all(self, result: Array, order: int, batch: tuple[int, ...]) -> Array:
        m = self.m
        return result.reshape(*batch, order + 1, order + 3, order + 3, m, m, m)


def _load_series_kernel(model: TreeModel, order: int, loads: Loads) -> Kernel:
    return Kernel(*load_series(model, order, loads))
