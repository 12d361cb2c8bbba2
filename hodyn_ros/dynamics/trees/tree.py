"""Dynamics of a robot without couplings and loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from hodyn_ros.codegen.kernel import Call, Function
from hodyn_ros.dynamics.kinematics.forward_kinematics import checked_motion
from hodyn_ros.dynamics.kinematics.inverse_kinematics import InverseKinematics
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.dynamics.motion_stack import too_large
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.trees.tree_efforts import TreeEfforts
from hodyn_ros.dynamics.trees.tree_matrices import TreeMatrices
from hodyn_ros.dynamics.trees.tree_second_partials import TreeSecondPartials
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array


class TreeDynamics(TreeSecondPartials, TreeMatrices, TreeEfforts):
    """Motions, efforts, accelerations, matrices and partials of a tree."""

    memory: Array | None = None  # it need not be known where a tree was
    redundant: tuple[str, ...] = ()  # nor has it loops that depend on others

    def found_joints(self, q: ArrayLike | None, base: BaseMotion | None) -> ArrayLike | None:
        """Return what moves all joints, where that is known without a check of what is given."""
        return q if base is None or self.tree.floating_base else None

    def tree_motion(self, q: ArrayLike | None, base: BaseMotion | None) -> tuple[Any, BaseMotion | None]:
        """Return the motion of all joints and of a floating base, which may still have to be checked."""
        return q, base

    def all_joints(self, q: ArrayLike | None, base: BaseMotion | None) -> Array:
        """Compute what `Robot.joint_motion` returns: all joints are coordinates."""
        return checked_motion(self.tree, q, base, "spatial")[0]

    def inverse_kinematics(self, call: GoalCall) -> Array:
        """Compute what `Robot.inverse_kinematics` returns."""
        return self._goals(call)

    @cached_property
    def _goals(self) -> InverseKinematics:
        return InverseKinematics(self.tree, self.frames)

    def compiled(self, what: str, order: int, of: tuple[Any, ...]) -> Callable[..., Array]:
        """Return the fastest callable of an operation."""
        return self.code(what, order, of).function

    def compiled_batch(
        self, what: str, order: int, of: tuple[Any, ...], call: Callable[..., Any], kind: DTypeLike
    ) -> Callable[..., Array]:
        """Return the fastest callable of an operation of batches of numbers of a kind."""
        kernel, dtype = self.code(what, order, of), np.dtype(kind)
        assert isinstance(kernel, Function)

        def batch(*arrays: Array, out: Array | None = None, threads: int | None = None) -> Array:
            if len(arrays) != len(kernel.arguments) or np.ndim(arrays[0]) != 3 or not len(arrays[0]):
                raise InputError(
                    f"expected batches of {[name for name, _ in kernel.arguments]}, (N, rows, columns) each"
                )
            for (name, shape), array in zip(kernel.arguments, arrays):
                expected = (len(arrays[0]), *shape)
                fits = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == expected
                if not (fits and array.flags.c_contiguous and array.flags.aligned):
                    result = f"{getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}"
                    raise InputError(
                        f"{name} must be a C-contiguous {dtype.name} array of shape {expected}, found "
                        f"{result}"
                    )
            return kernel.batch(*arrays, out=out, threads=threads)

        return batch

    def code(self, what: str, order: int, of: tuple[Any, ...]) -> Call:
        """Return the code of an operation; InputError where it would take too long to compile."""
        operation = OPERATIONS[what]
        kernel: Call | None
        if operation.kernel:
            kernel = self.kernel(what, order, KernelSpec.of(self.tree))
        elif operation.takes == "poses":
            kernel = self._goals.compiled(order, *of)
        else:
            kernel = self.traced_kernel(what, order, *of)
        if kernel is None:
            raise too_large(self.tree, what, order)
        return kernel
