"""The calls of `Robot` that return efforts from motions, and accelerations from efforts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.digits import is_asked_for, refuse_without_digits
from hodyn_ros.dynamics.call_arguments import HybridArguments, MotionArguments, check_prescribed
from hodyn_ros.dynamics.calls.accuracy import AccuracyCalls
from hodyn_ros.dynamics.loops.coordinate_motion import looped_inputs
from hodyn_ros.dynamics.loops.looped_efforts import LoopSolution
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array


class DynamicsCalls(AccuracyCalls):
    """Efforts, all that moves and holds a robot, and accelerations."""

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
        return self._dynamics.inverse_dynamics(
            MotionArguments(q, base, self._loads(wrenches), preload, formulation)
        )

    def drive_state(
        self,
        q: ArrayLike | None = None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        preload: ArrayLike | None = None,
        *,
        search: bool = True,
    ) -> DriveState:
        """Compute the motion of the driven joints and their efforts, compiled where it can be.

        Arguments and errors as in `inverse_dynamics`; of a batch, errors say at which `sample`. Without
        couplings and loops the motion is that given. Streams leave out the `search` for what is far from the
        last coordinates: compiled code goes there in short steps, or says within milliseconds how far it got.
        """
        if wrenches is None and preload is None:
            table = self._again(q, base, "drive_state", search)
            if table is not None:
                return self._dynamics.state_of(q, table)
        arguments = MotionArguments(q, base, self._loads(wrenches), preload)
        return self._dynamics.drive_state(arguments, search)

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
        loads = self._loads(wrenches)
        return looped.solve(looped_inputs(looped.closure, q, base, 2, loads, preload, alone=True))

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code; those of some loops are not."""
        return self._dynamics.is_compiled(order)

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> BaseAndJoints: ...

    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array | BaseAndJoints:
        """Compute accelerations and their time derivatives from a state, the torques and their derivatives.

        `state` (2, n) positions and velocities, None where no joint is a coordinate; `torques` (order + 1,
        n), of robots with loops those of the driven joints. Of a floating base or platform, `base` gives pose
        and twist, `base_wrench` (order + 1, 6) what acts on a floating base in the world frame, by default
        nothing. `wrenches` that the environment applies to bodies. A batch is (N, 2, n) and (N, order + 1,
        n), with base and its wrench one for all samples or one for each; of robots with loops each sample
        begins at the positions of the one before.

        Returns joint accelerations up to their derivative `order`, (order + 1, n) [rad/s^(k+2) or m/s^(k+2)];
        with a floating base a `BaseAndJoints`: these are `.joints`, and `.base` derivatives 1 to order + 1 of
        its twist, (order + 1, 6), in the representation of `base`. Ali et al., Algorithm 3. High orders
        amplify rounding in the torques, of which `accuracy` says what is left: orders above six of trees, and
        those of robots with loops near singular poses, raise SingularError where that is fewer than six
        digits. Raises InputError saying what was expected.
        """
        if base is None and wrenches is None and type(state) is np.ndarray and type(torques) is np.ndarray:
            compiled = self._fast_forward.get((state.shape, torques.shape))
            if compiled is not None and base_wrench is None:
                accelerations: Array = compiled(state, torques)
                return accelerations
        elif wrenches is None and type(base) is BaseMotion and type(torques) is np.ndarray:
            with_base = self._fast_forward_with_base.get((torques.shape, base.representation))
            if with_base is not None and not base.batch:
                return with_base(state, torques, base, base_wrench)
        arguments = HybridArguments(state, torques, base, base_wrench, self._loads(wrenches))
        result = self._dynamics.forward_dynamics(arguments)
        joints = result.joints if isinstance(result, BaseAndJoints) else result
        if joints.shape[-2] - 1 > self._dynamics.sure_order and not is_asked_for():
            self._refuse_amplified(arguments)
        return result

    def _refuse_amplified(self, arguments: HybridArguments) -> None:
        """Refuse what rounding of torques is amplified to by high orders; SingularError."""
        for i, one in enumerate(arguments.one_by_one() or [arguments]):
            try:
                refuse_without_digits(
                    self.accuracy("forward_dynamics", *one[:5]),
                    f"the forward dynamics of robot {self.name!r}",
                    "take the motion from elsewhere: forward dynamics amplifies the rounding of torques",
                    "its dynamics is that much faster than its motion",
                )
            except SingularError as error:
                error.sample = i
                raise

    def hybrid_dynamics(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array | BaseAndJoints:
        """Compute the torques of joints that are moved and the accelerations of those that are driven.

        `state` (2, n) positions and velocities; `prescribed`: names or indices of the joints whose motion is
        given; `inputs` (order + 1, n): for those the acceleration and its derivatives, for the others the
        torque and its derivatives. Of a floating base either the wrench is given, as in `forward_dynamics`,
        or with `prescribe_base=True` its motion, as in `inverse_dynamics` with order + 2 twists.

        Returns (order + 1, n): torques of the prescribed joints, accelerations of the others; with a floating
        base a `BaseAndJoints`: these are `.joints`, and `.base` (order + 1, 6) derivatives 1 to order + 1 of
        its twist in the representation of `base` or, where its motion is prescribed, the wrench on it in the
        world frame. Ali et al., Algorithm 4. Raises InputError saying what was expected.

        Of a robot with loops `state` is that of the coordinates, as in `forward_dynamics`, and all else is of
        the driven joints: those prescribed, inputs, and what comes back. SingularError where the
        joints prescribed cannot all be moved freely.
        """
        check_prescribed(prescribed)
        if prescribe_base and base_wrench is not None:
            raise InputError("give either the motion of the base or its wrench, not both")
        return self._dynamics.hybrid_dynamics(
            HybridArguments(
                state, inputs, base, base_wrench, self._loads(wrenches), prescribed, prescribe_base
            )
        )
