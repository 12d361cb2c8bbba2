"""Second partial derivatives of a tree, in full and contracted with a multiplier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Kernel, LaneKernel
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.hybrid_arguments import HybridArguments
from hodyn_ros.dynamics.motion_stack import MotionStack, load_places, motion_stack, too_large
from hodyn_ros.dynamics.partials import multiplier_rows, of_each
from hodyn_ros.dynamics.trees.tree_accelerations import HybridProblem
from hodyn_ros.dynamics.trees.tree_partials import TreePartials
from hodyn_ros.engine import second_partials as laws
from hodyn_ros.engine.direction_lanes import in_all_directions
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads
from hodyn_ros.formulations.second_derivatives import answered, hybrid_weights, of_displacements
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_LAWS: dict[str, laws.Law] = {  # by which their numbers of entries are judged
    "inverse_dynamics_second_derivatives": "inverse",
    "forward_dynamics_hessian": "hybrid contracted",
    "forward_dynamics_second_derivatives": "hybrid",
}


class TreeSecondPartials(TreePartials):
    """Second partial derivatives of a tree."""

    def inverse_dynamics_hessian(
        self,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
    ) -> Array:
        """Compute what `Robot.inverse_dynamics_hessian` returns."""
        name, stack = "inverse_dynamics_hessian", motion_stack(self.tree, q, base, 2, loads=loads)
        order, places = stack.order, load_places(self.tree, loads)
        weights = multiplier_rows(multiplier, (order + 1, self.m), stack.batch)
        kernel = self._second_kernel(name, order, *([places] if places else []))
        if kernel is not None:
            shape = (order + 3, order + 3, self.m, self.m)
            return stack.call(kernel, weights).reshape(*stack.batch, *shape)
        changes = self.derived_kernel(_inverse_gradient_changes, order, places)
        if changes is None:
            raise too_large(self.tree, name, order)
        result = in_all_directions(changes, [*stack.arguments(), weights], stack.batch)
        return of_displacements(result, self.tree.floating_base)

    def inverse_dynamics_second_derivatives(
        self, q: ArrayLike | None, base: BaseMotion | None, loads: Sequence[AppliedWrench]
    ) -> Array:
        """Compute what `Robot.inverse_dynamics_second_derivatives` returns."""
        name, stack = "inverse_dynamics_second_derivatives", motion_stack(self.tree, q, base, 2, loads=loads)
        places = load_places(self.tree, loads)
        kernel = self._second_kernel(name, stack.order, *([places] if places else []))
        if kernel is not None:
            return self._all(stack.call(kernel), stack.order, stack.batch)
        return of_each(stack.order, self.m, lambda unit: self.inverse_dynamics_hessian(q, unit, base, loads))

    def hybrid_dynamics_hessian(self, arguments: HybridArguments, multiplier: ArrayLike) -> Array:
        """Compute what `Robot.hybrid_dynamics_hessian` returns."""
        problem = self._hybrid_problem(arguments)
        order, m = problem.order, self.m
        weights = multiplier_rows(multiplier, (order + 1, m), problem.batch)
        kernel = self._hybrid_kernel("forward_dynamics_hessian", problem)
        if kernel is not None:
            return problem.call(kernel, weights).reshape(*problem.batch, order + 3, order + 3, m, m)
        if arguments.base_wrench is not None and np.ndim(arguments.base_wrench) == 3:
            each = arguments.one_by_one()
            return one_by_one(len(each), lambda i: self.hybrid_dynamics_hessian(each[i], weights[i]))
        # from the second derivatives of inverse dynamics along the motion that is found
        responses = self.hybrid_dynamics_derivatives(arguments)
        stack, loads, known = self._inverse_problem(problem, arguments)
        nu = hybrid_weights(responses, weights, known)
        return answered(self.inverse_dynamics_hessian(stack.q, nu, stack.base, loads), responses, known)

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


def _inverse_gradient_changes(model: TreeModel, order: int, loads: Loads) -> LaneKernel | None:
    kernel = LaneKernel(*laws.inverse_dynamics_gradient_changes(model, order, loads))
    return kernel if kernel.operations <= STRAIGHT_LINE_LIMIT else None
