"""What follows from the motion of a tree alone: matrices, Jacobians, momenta and regressors, by order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics import matrices
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.motion_stack import joint_stack, motion_stack, too_large
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.regressors import by_parameter, reference_velocities
from hodyn_ros.dynamics.trees.tree_code import TreeCode
from hodyn_ros.formulations import parameters
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array


class TreeMatrices(TreeCode):
    """Matrices of a tree."""

    @finite_result
    def computed(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *of: Any) -> Array:
        """Compute what an operation returns, and let the next call go straight to its kernel.

        By its published formula what takes too long to compile. `of`: a frame by name and a representation,
        of an operation that is of a frame.
        """
        operation, tree = OPERATIONS[name], self.tree
        stack = motion_stack(tree, q, base, operation.rates, operation.base)
        kernel = self.traced_kernel(name, stack.order, *of)
        if kernel is None and not operation.published:
            raise too_large(tree, name, stack.order)
        if kernel is None:
            law, bodies = operation.law("published"), stack.bodies(self.joint_tree)
            return matrices.by_order(law, bodies, stack.order, *placed(tree, self.frames, of))
        rows, columns = kernel.result
        shape = (columns,) if len(operation.shape) == 1 else (rows // (stack.order + 1), columns)
        result = stack.call(kernel).reshape(*stack.batch, stack.order + 1, *shape)
        if not stack.batch:
            self.fast.note(stack.q, base, (name, *of), kernel.function, result, stack.frame)
        return result

    def dynamic_matrices(self, q: ArrayLike | None, base: BaseMotion | None) -> DynamicMatrices:
        """Compute the matrices by order, from q (order + 2, n)."""
        rows = self.fast.again(q, base, "dynamic_matrices")
        return matrices.in_parts(self.computed("dynamic_matrices", q, base) if rows is None else rows)

    def compile_matrices(self, order: int) -> None:
        """Compile the matrices of one order, however long that takes."""
        self.compile_long("dynamic_matrices", order)

    def parameter_derivatives(self, q: ArrayLike | None, base: BaseMotion | None) -> DynamicMatrices:
        """Compute the derivatives of the matrices by every dynamic parameter, q (order + 2, n)."""
        rows = self.fast.again(q, base, "parameter_derivatives")
        return by_parameter(self.computed("parameter_derivatives", q, base) if rows is None else rows)

    @finite_result
    def slotine_li_regressor(
        self,
        q: ArrayLike | None,
        reference: ArrayLike | None,
        base: BaseMotion | None,
        twists: ArrayLike | None,
    ) -> Array:
        """Compute Y with `M w' + C w + g = Y[0] @ dynamic_parameters()`, w the reference.

        `q` (order + 2, n), `reference` (order + 3, n), and `twists` (order + 2, 6) of a floating base.
        """
        name, stack = "slotine_li_regressor", motion_stack(self.tree, q, base, 1)
        of_joints = joint_stack(self.tree, reference, 2, "the reference")
        rates = reference_velocities(self.tree, stack, of_joints, twists)
        kernel = self.traced_kernel(name, stack.order)
        if kernel is None:
            law, bodies = parameters.slotine_li_regressors, stack.bodies(self.joint_tree)
            return matrices.by_order(law, bodies, stack.order, rates)
        rows = stack.call(kernel, np.ascontiguousarray(np.stack(rates, axis=-2)))
        result: Array = rows.reshape(*stack.batch, stack.order + 1, self.m, -1)
        if not stack.batch:
            self.fast.note(stack.q, base, (name,), kernel.function, result, stack.frame)
        return result
