"""The calls of `Robot` that return efforts from motions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, check_result, finite_result
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.dynamics.calls.description import RobotProperties, load_places
from hodyn_ros.dynamics.calls.results import BaseAndJoints, base_and_joints
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, coordinate_motions, preload_rows
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution
from hodyn_ros.dynamics.motion_stack import applied, check_order, fitting_base, joint_rows
from hodyn_ros.engine import kernels
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import INVERSE_DYNAMICS
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Array


class DriveState(NamedTuple):
    """What the drives do, by derivative order; of a batch with an axis of samples in front."""

    motion: Array  # (order + 3, driven) positions of the driven joints and their derivatives [rad or m, /s^k]
    efforts: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    base_wrench: Array | None  # (order + 1, 6) on a prescribed base, in the world frame
    near_singularity: (
        bool  # whether the pose, or one of them, is close to a singular one; efforts may be large
    )


class InverseDynamicsCalls(RobotProperties):
    """Efforts, and all that moves and holds a robot."""

    @overload
    def inverse_dynamics(
        self,
        q: None,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array: ...

    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> BaseAndJoints: ...

    def inverse_dynamics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        formulation: str | None = None,
        *,
        preload: ArrayLike | None = None,
    ) -> Array | BaseAndJoints:
        """Compute joint torques and their time derivatives from a motion and its derivatives.

        `q` (order + 3, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 3, n).
        `base`: the motion of a floating base with order + 2 twists, one for all samples or one for each.
        `wrenches` that the environment applies to bodies. `formulation`: "spatial", "body_fixed", "hybrid" or
        "closed_form" as published, of robots with loops "embedding" or "limb_decomposition"; by default the
        compiled engine. `preload` (driven,) or (order + 1, driven): what the efforts should come near, where
        there are more drives than coordinates; by default they are those of least norm.

        Returns torques (order + 1, n) [N.m/s^k or N/s^k], or (N, order + 1, n) for a batch; with a floating
        base a `BaseAndJoints`: `.base` is the wrench on it (order + 1, 6) in the world frame, `.joints` are
        the torques. Raises InputError saying what was expected.
        """
        if wrenches is None and formulation is None and preload is None:
            if type(q) is np.ndarray and base is None:
                compiled = self._compiled.get(q.shape)
                if compiled is not None:
                    torques: Array = compiled(q)
                    return torques
            if type(base) is BaseMotion:
                with_base = self._compiled_with_base.get((base.twists.shape, base.representation))
                if with_base is not None:
                    result = with_base(q, base)
                    if result is not None:
                        return result
        if self._looped is not None:
            return self._looped_inverse(q, base, wrenches, formulation, preload)
        if preload is not None:
            raise self._no_preload()
        motion = joint_rows(self.n_coordinates, q, 2)
        order = motion.shape[-2] - 3
        check_order(order, f"a motion of shape {motion.shape} has order")
        base_motion = fitting_base(self.model, base, order + 2, motion.shape[:-2])
        loads = self._loads(wrenches)
        if formulation is not None:
            return self._by_formulation(formulation, motion, base_motion, loads)
        kernel = self._inverse_kernel(order, base_motion, loads)
        arrays = [] if base_motion is None else base_motion.arrays(order + 2, motion.shape[:-2])
        arrays += applied(loads, order, motion.shape[:-2])
        if base is not None and not loads and motion.ndim == 2:
            self._keep_with_base(kernel.function, motion.shape, base.orders, base.representation, pair=True)
        call = kernel.function if motion.ndim == 2 else kernel.batch
        efforts = call(motion, *arrays)
        return efforts if base_motion is None else base_and_joints(efforts)

    def drive_state(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        preload: ArrayLike | None = None,
    ) -> DriveState:
        """Compute the motion of the driven joints and their efforts, compiled where it can be.

        Arguments and errors as in `inverse_dynamics`; of a batch, errors say at which `sample`. Without
        couplings and loops the motion is that given.
        """
        if self._looped is None:
            if preload is not None:
                raise self._no_preload()
            motion = np.asarray(q, dtype=np.float64)
            if base is None:
                return DriveState(motion, self.inverse_dynamics(motion, wrenches=wrenches), None, False)
            wrench, efforts = self.inverse_dynamics(motion, base, wrenches)
            return DriveState(motion, efforts, wrench, False)
        looped, loads = self._looped, self._loads(wrenches)
        count, y, leader = coordinate_motions(looped.closure, q, base, 2)
        order, first = y.shape[-2] - 3, 6 if looped.closure.base_given else 0
        preloaded = preload_rows(looped.closure, preload, order)
        table = looped.drive_table(y, leader, loads, preloaded)
        check_result(table[..., :-2, :])
        return DriveState(
            np.ascontiguousarray(table[..., order + 1 : -2, first:]),
            np.ascontiguousarray(table[..., : order + 1, first:]),
            np.ascontiguousarray(table[..., : order + 1, :6]) if first else None,
            looped.is_near_singular(order, table, loads, preloaded is not None),
        )

    @finite_result
    def solve_loops(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        preload: ArrayLike | None = None,
    ) -> LoopSolution:
        """Compute everything that moves and holds a robot with couplings or loops.

        Arguments as in `inverse_dynamics`, one sample. Positions are found from those of the last call that
        succeeded, which keeps the branch; `reset` starts from the zero configuration
        again. Raises ConvergenceError naming the loop that cannot be closed, SingularError naming the loops
        at a singular pose, InputError saying what was expected.
        """
        looped = self._need_loops("solve_loops")
        y, leader = coordinate_motion(looped.closure, q, base, 2)
        arguments = y, leader, self._loads(wrenches), preload_rows(looped.closure, preload, len(y) - 3)
        return looped.solve(*arguments)

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code; those of some loops are not."""
        return self._looped is None or self._looped.is_compiled(order)

    @finite_result
    def _looped_inverse(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] | None,
        formulation: str | None,
        preload: ArrayLike | None,
    ) -> Array | BaseAndJoints:
        looped = self._need_loops("this")
        closure, loads = looped.closure, self._loads(wrenches)
        if formulation is not None:
            if formulation not in ("embedding", "limb_decomposition"):
                raise InputError(
                    f"robots with loops have no formulation {formulation!r}; leave it out, or choose "
                    "'embedding', or 'limb_decomposition' for a platform on limbs"
                )
            y, leader = coordinate_motion(closure, q, base, 2)
            if formulation == "embedding":
                preloaded = preload_rows(closure, preload, len(y) - 3)
                efforts = looped.by_embedding(y, leader, loads, preloaded)
                return base_and_joints(efforts) if closure.base_given else efforts
            if leader is None:
                raise InputError(f"robot {self.name!r} has no platform for 'limb_decomposition'")
            shortened = BaseMotion(leader.pose, leader.twists[: len(y) - 1])
            return looped.by_limbs(shortened, loads, preload_rows(closure, preload, len(y) - 3))
        one_base = base is None or not isinstance(base, BaseMotion) or not base.batch
        count, y, leader = coordinate_motions(closure, q, base, 2)
        order = y.shape[-2] - 3
        preloaded = preload_rows(closure, preload, order)
        if looped.only_coupled and one_base and (count or not looped.is_compiled(order)):
            result = looped.follow(y, leader, loads)
        else:
            result = looped.efforts(y, leader, loads, preloaded)
            if not count and not loads and preload is None:
                self._keep_compiled(looped, order)
        check_result(result)
        return base_and_joints(result) if closure.base_given else result

    def _keep_compiled(self, looped: LoopedDynamics, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion that fits, find their code."""
        shape = order + 3, len(looped.closure.joints)
        compiled = looped.compile(order)
        if looped.closure.leader is None:
            self._compiled[shape] = compiled
        else:
            self._keep_with_base(compiled, shape, order + 2, "spatial", pair=looped.closure.base_given)

    def _keep_with_base(
        self,
        compiled: Callable[..., Array],
        shape: tuple[int, ...],
        orders: int,
        frame: BaseRepresentation,
        *,
        pair: bool,
    ) -> None:
        """Let further calls with joints of a shape, and a base motion of so many twists, find their code."""
        used = shape[0] - 1

        def with_base(q: ArrayLike | None, base: BaseMotion) -> Array | BaseAndJoints | None:
            if type(q) is not np.ndarray or q.shape != shape:
                return None
            table = compiled(q, base.pose, base.twists[:used])
            return BaseAndJoints(table[:, :6].copy(), table[:, 6:].copy()) if pair else table

        def of_a_platform(q: ArrayLike | None, base: BaseMotion) -> Array | None:
            return compiled(base.pose, base.twists) if q is None else None

        self._compiled_with_base[(orders, 6), frame] = with_base if shape[1] else of_a_platform

    def _by_formulation(
        self,
        name: str,
        motion: Array,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
    ) -> Array | BaseAndJoints:
        if not isinstance(name, str) or name not in INVERSE_DYNAMICS:
            raise InputError(f"there is no formulation {name!r}; choose one of {sorted(INVERSE_DYNAMICS)}")
        check_finite("the motion", motion)
        if base is not None and base.batch:
            bases = [
                BaseMotion(*each, representation=base.representation) for each in zip(base.pose, base.twists)
            ]
            result = [self._by_formulation(name, *each, loads) for each in zip(motion, bases)]
            return BaseAndJoints(
                np.stack([each[0] for each in result]), np.stack([each[1] for each in result])
            )
        formulation = INVERSE_DYNAMICS[name]
        with np.errstate(over="ignore", invalid="ignore"):
            torques, ground = formulation(self.model, np.moveaxis(motion, -2, 0), base, loads)
        check_result(torques, *(() if base is None else (ground,)))
        torques = np.ascontiguousarray(np.moveaxis(torques, 0, -2))
        if base is None:
            return torques
        return BaseAndJoints(np.ascontiguousarray(np.moveaxis(ground, 0, -2)), torques)

    def _inverse_kernel(
        self, order: int, base: BaseMotion | None, loads: Sequence[AppliedWrench]
    ) -> Function:
        setting = kernels.KernelSpec(
            base=base.representation if base else None, loads=load_places(self.model, loads)
        )
        kernel = self._kernel("inverse_dynamics", order, setting)
        if setting == kernels.KernelSpec():
            self._compiled[order + 3, self.n_coordinates] = kernel.function
        return kernel
