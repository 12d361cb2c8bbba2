"""Inverse dynamics of a tree, by compiled code and by published formulations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, check_result
from hodyn_ros.dynamics.motion_stack import applied, check_order, fitting_base, joint_rows, load_places
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState, base_and_joints
from hodyn_ros.dynamics.trees.tree_code import TreeCode
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array


class TreeEfforts(TreeCode):
    """Efforts of a tree."""

    def inverse_dynamics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
        formulation: str | None,
        preload: ArrayLike | None,
    ) -> Array | BaseAndJoints:
        """Compute what `Robot.inverse_dynamics` returns."""
        if preload is not None:
            raise self._no_preload()
        motion = joint_rows(self.n, q, 2)
        order, batch = motion.shape[-2] - 3, motion.shape[:-2]
        check_order(order, f"a motion of shape {motion.shape} has order")
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

    def drive_state(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
        preload: ArrayLike | None,
    ) -> DriveState:
        """Compute what `Robot.drive_state` returns: all joints are driven."""
        motion = np.asarray(q, dtype=np.float64)
        efforts = self.inverse_dynamics(motion, base, loads, None, preload)
        if isinstance(efforts, BaseAndJoints):
            return DriveState(motion, efforts.joints, efforts.base, False)
        return DriveState(motion, efforts, None, False)

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
