"""Forward and hybrid dynamics of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import check_result, finite_array, real_array
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.dynamics.call_arguments import HybridArguments, check_prescribed
from hodyn_ros.dynamics.motion_stack import applied, check_order, fitting_base, load_places
from hodyn_ros.dynamics.results import BaseAndJoints, base_and_joints
from hodyn_ros.dynamics.trees.tree_code import TreeCode
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel


class HybridProblem(NamedTuple):
    """What a kernel of hybrid dynamics takes."""

    order: int
    setting: KernelSpec
    arrays: list[Array]
    batch: tuple[int, ...]  # () or (N,)

    def call(self, kernel: Function, *multiplier: Array) -> Array:
        """Call a kernel that takes the arrays, and what a Hessian is weighted with."""
        result: Array = (kernel.batch if self.batch else kernel.function)(*self.arrays, *multiplier)
        return result


class TreeAccelerations(TreeCode):
    """Accelerations of a tree, and what is moved and driven in parts."""

    sure_order = 6  # above which accelerations are refused where too few digits are left

    def forward_dynamics(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.forward_dynamics` returns."""
        result, base = self._hybrid(arguments), arguments.base
        order = result.shape[-2] - 1
        plain = not arguments.wrenches and result.ndim == 2
        if plain and order <= self.sure_order:
            setting = KernelSpec(base=None if base is None else base.representation)
            function = self.kernel("forward_dynamics", order, setting).function
            state, efforts = (2, self.n), (len(result), self.n)
            if base is None:
                self.fast.forward[state, efforts] = function
            else:
                self.fast.note_forward(state, efforts, base.representation, self.forward_dynamics, function)
        return result if base is None else base_and_joints(result)

    def hybrid_dynamics(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.hybrid_dynamics` returns."""
        result = self._hybrid(arguments)
        return result if arguments.base is None else base_and_joints(result)

    def _hybrid(self, arguments: HybridArguments) -> Array:
        problem = self._hybrid_problem(arguments)
        result = problem.call(self.kernel("forward_dynamics", problem.order, problem.setting))
        check_result(result)
        return result

    def _hybrid_problem(self, arguments: HybridArguments) -> HybridProblem:
        """Check what hybrid dynamics is given, one sample or a batch."""
        state, inputs, base, base_wrench, loads, names, prescribe_base = arguments
        prescribed = _prescribed_joints(self.tree, names)
        n = self.n
        shapes = f"(order + 1, {n}) or (N, order + 1, {n})"
        values = real_array("the torques", inputs, shapes)
        if values.ndim not in (2, 3) or values.shape[-1] != n or not values.shape[-2]:
            raise ShapeError("the torques", shapes, values.shape)
        batch, order = values.shape[:-2], values.shape[-2] - 1
        check_order(order, "torques of shape {} have order", values.shape)
        positions = finite_array("the state", state, (*batch, 2, n))
        motion = fitting_base(self.tree, base, order + 2 if prescribe_base else 1, batch)
        of_base: list[Array] = []
        if motion is not None:
            pose, twists = motion.arrays(order + 2 if prescribe_base else 1, batch)
            shape = (*batch, order + 1, 6)
            push = np.zeros(shape)
            if base_wrench is not None:
                one = real_array("base_wrench", base_wrench, str(shape))
                push += finite_array("base_wrench", one, shape if one.ndim == 3 else shape[-2:])
            first = np.ascontiguousarray(twists[..., :1, :])
            moved = np.ascontiguousarray(twists[..., 1:, :])
            of_base = [pose, first, moved if prescribe_base else push]
        elif base_wrench is not None or prescribe_base:
            raise InputError(
                f"robot {self.tree.name!r} has a fixed base; neither motion nor wrench of a base applies"
            )
        setting = KernelSpec(
            base=motion.representation if motion else None,
            loads=load_places(self.tree, loads),
            prescribed=prescribed,
            base_prescribed=prescribe_base,
        )
        arrays = [positions, values, *of_base, *applied(loads, order, batch)]
        return HybridProblem(order, setting, arrays, batch)


def _prescribed_joints(tree: TreeModel, prescribed: Sequence[str | int]) -> tuple[int, ...]:
    """Return the indices of joints whose motion is given, in order; InputError for unknown ones."""
    check_prescribed(prescribed)
    return tuple(sorted({tree.joint_index(joint) for joint in prescribed}))
