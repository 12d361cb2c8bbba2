"""Dynamics of a robot without couplings and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from hodyn_ros.checks import check_finite, check_result, finite_result, n_axes, real_array
from hodyn_ros.codegen.kernel import Call, Function
from hodyn_ros.dynamics import matrices
from hodyn_ros.dynamics.call_arguments import MotionArguments
from hodyn_ros.dynamics.kinematics.forward_kinematics import checked_motion
from hodyn_ros.dynamics.kinematics.inverse_kinematics import InverseKinematics
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.dynamics.matrices import reference_velocities
from hodyn_ros.dynamics.motion_stack import (
    applied,
    check_order,
    fitting_base,
    joint_rows,
    load_places,
    motion_stack,
    too_large,
)
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState, base_and_joints
from hodyn_ros.dynamics.trees.tree_partials import TreePartials
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, own_rounding


class TreeDynamics(TreePartials):
    """Motions, efforts, accelerations, matrices and partials of a tree."""

    closure: Closure | None = None
    memory: Array | None = None  # it need not be known where a tree was
    redundant: tuple[str, ...] = ()  # nor has it loops that depend on others

    def rounding_gain(self, call: str) -> float:
        """Return by how much errors exceed those that rounded arguments make.

        By as much as numbers of the tree are rounded more. Poses are as large as the distance themselves.
        """
        return own_rounding(self.tree) if call.endswith("dynamics") else 1.0

    def joint_motion_or_none(self, q: ArrayLike | None, base: BaseMotion | None) -> ArrayLike | None:
        """Return what moves all joints, where that is known without a check of what is given."""
        return q if base is None or self.tree.floating_base else None

    def tree_motion(self, q: ArrayLike | None, base: BaseMotion | None) -> tuple[Any, BaseMotion | None]:
        """Return the motion of all joints and of a floating base, which may still have to be checked."""
        return q, base

    def all_joints(self, q: ArrayLike | None, base: BaseMotion | None) -> Array:
        """Compute what `Robot.joint_motion` returns: all joints are coordinates."""
        return checked_motion(self.tree, q, base, "spatial")[0]

    def inverse_dynamics(self, arguments: MotionArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.inverse_dynamics` returns."""
        q, base, loads, preload, formulation = arguments
        if preload is not None:
            raise self._no_preload()
        motion = joint_rows(self.n, q, 2)
        order, batch = motion.shape[-2] - 3, motion.shape[:-2]
        check_order(order, "a motion of shape {} has order", motion.shape)
        moving = fitting_base(self.tree, base, order + 2, batch)
        if formulation is not None:
            return self._by_formulation(formulation, motion, moving, loads)
        setting = KernelSpec(
            base=moving.representation if moving else None, loads=load_places(self.tree, loads)
        )
        kernel = self.kernel("inverse_dynamics", order, setting)
        arrays = [] if moving is None else moving.arrays(order + 2, batch)
        arrays += applied(loads, order, batch)
        if not loads and moving is None:
            self.fast.inverse[order + 3, self.n] = kernel.function
        elif moving is not None and not loads and not batch:
            self.fast.note_inverse(
                kernel.function, motion.shape, moving.orders, moving.representation, pair=True
            )
        efforts = (kernel.batch if batch else kernel.function)(motion, *arrays)
        return efforts if moving is None else base_and_joints(efforts)

    def drive_state(self, arguments: MotionArguments, search: bool) -> DriveState:
        """Compute what `Robot.drive_state` returns: all joints are driven."""
        q, base, loads, preload, _ = arguments
        motion = real_array("the motion", q, f"(order + 3, {self.n})")
        efforts: Array | BaseAndJoints | None = None
        if type(base) is BaseMotion and not loads and preload is None:
            noted = self.fast.inverse_with_base.get((base.twists.shape, base.representation))
            efforts = None if noted is None else noted(motion, base)
        if efforts is None:
            efforts = self.inverse_dynamics(arguments._replace(q=motion))
        if isinstance(efforts, BaseAndJoints):
            return DriveState(motion, efforts.joints, efforts.base, False)
        compiled = self.fast.inverse.get(motion.shape)
        if compiled is not None and not loads:
            self.fast.note(motion, None, ("drive_state", search), compiled, efforts)
        return self.state_of(motion, efforts)

    def state_of(self, q: Any, efforts: Array) -> DriveState:
        """Return the state of a motion `q` (order + 3, n) on a fixed base with its efforts."""
        return DriveState(np.ascontiguousarray(q, np.float64), efforts, None, False)

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code."""
        return True

    def _no_preload(self) -> InputError:
        return InputError(
            f"a preload needs more drives than coordinates; robot {self.tree.name!r} has as many"
        )

    def _by_formulation(
        self, name: str, motion: Array, base: BaseMotion | None, loads: Sequence[AppliedWrench]
    ) -> Array | BaseAndJoints:
        if not isinstance(name, str) or name not in INVERSE_DYNAMICS:
            raise InputError(f"there is no formulation {name!r}; choose one of {sorted(INVERSE_DYNAMICS)}")
        check_finite("the motion", motion)
        if base is not None and base.batch:
            each = [self._by_formulation(name, one, base.one(i), loads) for i, one in enumerate(motion)]
            return BaseAndJoints(*map(np.stack, zip(*each)))
        formulation = INVERSE_DYNAMICS[name]
        with np.errstate(over="ignore", invalid="ignore"):
            torques, ground = formulation(self.tree, np.moveaxis(motion, -2, 0), base, loads)
        check_result(torques, *(() if base is None else (ground,)))
        torques = np.ascontiguousarray(np.moveaxis(torques, 0, -2))
        if base is None:
            return torques
        return BaseAndJoints(np.ascontiguousarray(np.moveaxis(ground, 0, -2)), torques)

    @finite_result
    def computed(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        *of: Any,
        reference: tuple[ArrayLike | None, ArrayLike | None] | None = None,
    ) -> Array:
        """Compute what an operation returns, and let the next call go straight to its kernel.

        By its published formula what takes too long to compile. `of`: a frame by name and a representation,
        of an operation that is of a frame; `reference`: of one that takes one, its joints and twists.
        """
        operation, tree = OPERATIONS[name], self.tree
        stack = motion_stack(tree, q, base, operation.rates, operation.base)
        further: list[Array] = []
        if reference is not None:
            further.append(reference_velocities(self.structure, stack.order + 2, stack.batch, *reference))
        kernel = self.traced_kernel(name, stack.order, *of)
        if kernel is None and not operation.published:
            raise too_large(tree, name, stack.order)
        if kernel is None:
            law, bodies = operation.law("published"), stack.bodies(self.joint_tree)
            given = [*placed(tree, self.frames, of), *(list(np.moveaxis(x, -2, 0)) for x in further)]
            return matrices.by_order(law, bodies, stack.order, *given)
        rows, columns = kernel.result
        shape = (columns,) if len(operation.shape) == 1 else (rows // (stack.order + 1), columns)
        result = stack.call(kernel, *map(np.ascontiguousarray, further))
        result = result.reshape(*stack.batch, stack.order + 1, *shape)
        if not stack.batch:
            self.fast.note(stack.q, base, (name, *of), kernel.function, result, stack.frame)
        return result

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
            if len(arrays) != len(kernel.arguments) or n_axes(arrays[0]) != 3 or not len(arrays[0]):
                names = [name for name, _ in kernel.arguments]
                raise InputError(
                    f"expected batches of {names}, (N, rows, columns) each, of one sample or more"
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
