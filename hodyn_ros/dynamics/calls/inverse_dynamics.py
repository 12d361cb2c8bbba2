"""The calls of `Robot` that return efforts from motions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics.calls.description import RobotProperties
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array


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
                compiled = self._fast_inverse.get(q.shape)
                if compiled is not None:
                    torques: Array = compiled(q)
                    return torques
            if type(base) is BaseMotion:
                with_base = self._fast_inverse_with_base.get((base.twists.shape, base.representation))
                if with_base is not None:
                    result = with_base(q, base)
                    if result is not None:
                        return result
        return self._dynamics.inverse_dynamics(q, base, self._loads(wrenches), formulation, preload)

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
        return self._dynamics.drive_state(q, base, self._loads(wrenches), preload)

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
        return looped.solve(looped.effort_inputs(q, base, self._loads(wrenches), preload, alone=True))

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code; those of some loops are not."""
        return self._dynamics.is_compiled(order)
