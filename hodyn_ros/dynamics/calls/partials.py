"""The calls of `Robot` that return partial derivatives, first and second, in full and contracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.dynamics.call_arguments import HybridArguments, MotionArguments
from hodyn_ros.dynamics.calls.dynamics import DynamicsCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.partials import LinearisedDynamics, linearised
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array


class PartialCalls(DynamicsCalls, MatrixCalls):
    """First and second partial derivatives, and linearised dynamics."""

    def matrix_derivatives(self, q: ArrayLike | None, base: BaseMotion | None = None) -> MatrixDerivatives:
        """Compute dM/dq, dC/dq, dC/dq' and dg/dq with their time derivatives, from `q` (order + 2, n).

        Garofalo et al. (2013), eq. 24. With loops in the coordinates, by these and their rates.
        """
        return self._dynamics.matrix_derivatives(q, base)

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the partial derivatives of Q^(r) with respect to the motion and all its derivatives.

        `q` (order + 3, n) -> (order + 1, order + 3, m, m): entry [r, k] is dQ^(r)/dq^(k), zero for k > r + 2.
        With a floating base, k = 0 means a small body-fixed displacement of it, and k > 0 derivative k - 1 of
        its body-fixed twist. `wrenches` on bodies stay as they are given, in the world or in the frame of
        their body, where the robot moves away. Compiled.
        """
        if wrenches is None:
            result: Array | None = self._again(q, base, "inverse_dynamics_derivatives")
            if result is not None:
                return result
        return self._dynamics.inverse_dynamics_derivatives(MotionArguments(q, base, self._loads(wrenches)))

    def forward_dynamics_derivatives(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the partial derivatives of accelerations and their time derivatives, of any order.

        Arguments as of `forward_dynamics`. Returns (order + 1, order + 3, m, m): entry [r, k] says
        how derivative r of the accelerations changes with positions (k = 0), velocities (k = 1) and
        derivative k - 2 of the torques, zero for k > r + 2. With a floating base six entries stand first:
        body-fixed twists, small body-fixed displacements, and body-fixed wrenches on it. Wrenches given stay
        as they are where the robot moves away. Named as future work by Ali et al.; of trees compiled.

        With loops rows are of accelerations of the coordinates, columns for k < 2 by these and their rates,
        those of a platform as in `linearised_dynamics`, and for k >= 2 by the efforts of the drives, after
        the wrench on a prescribed base: (order + 1, order + 3, coordinates, efforts). With more drives than
        coordinates, columns beyond these are zero for k < 2.
        """
        unloaded = wrenches is None and base_wrench is None and (base is None or type(base) is BaseMotion)
        if unloaded and state is None and base is not None:  # of a robot that a platform moves
            state = np.empty((2, 0))
        if unloaded and type(state) is np.ndarray and type(torques) is np.ndarray:
            noted = self._fast_partials.get((state.shape, torques.shape, base and base.representation))
            if noted is not None:
                moving = () if base is None else (base.pose, base.twists[:1], np.zeros((len(torques), 6)))
                return noted[0](state, torques, *moving).reshape(noted[1])
        return self._dynamics.forward_dynamics_derivatives(
            HybridArguments(state, torques, base, base_wrench, self._loads(wrenches))
        )

    def hybrid_dynamics_derivatives(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the partial derivatives of what `hybrid_dynamics` returns, by what it is given.

        As `forward_dynamics_derivatives`; rows of prescribed joints are of their torques, and columns k >= 2
        of derivatives of their accelerations; likewise of a prescribed base. With loops rows are of the
        driven joints, as what `hybrid_dynamics` returns.
        """
        return self._dynamics.hybrid_dynamics_derivatives(
            HybridArguments(
                state, inputs, base, base_wrench, self._loads(wrenches), prescribed, prescribe_base
            )
        )

    @finite_result
    def linearised_dynamics(
        self, state: ArrayLike | None, torques: ArrayLike, base: BaseMotion | None = None
    ) -> LinearisedDynamics:
        """Linearise forward dynamics at a state (2, n) under torques (n,): `dx' = A dx + B du`.

        x are the positions, then the m velocities; of a floating base, a small body-fixed displacement before
        the joint positions. u are the joint torques. A (2 m, 2 m), B (2 m, n).

        With loops x are the coordinates, those of a platform small body-fixed displacements in the directions
        that its rows name (what else it moves follows as its pose has it), u the efforts of the drives.
        """
        closure, m = self._structure, self._structure.n_coordinates
        if isinstance(base, BaseMotion) and base.batch:
            raise InputError("base holds motions of several samples; this takes one")
        if closure.joints or state is not None:
            state = finite_array("the state", state, (2, len(closure.joints)))
        efforts = finite_array("the torques", torques, (len(closure.driven),))
        by_position, by_velocity, by_effort = self.forward_dynamics_derivatives(state, efforts[None], base)[0]
        by_drives = by_effort[:, by_effort.shape[1] - len(efforts) :]
        bracket = self._dynamics.displacement_bracket(state, base)
        return linearised(by_position[:, :m], by_velocity[:, :m], by_drives, bracket)

    @finite_result
    def inverse_dynamics_hessian(
        self,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of `sum of multiplier[r] · Q^(r)`, as optimisers take them.

        `q` (order + 3, n), `multiplier` (order + 1, m) -> (order + 3, order + 3, m, m): entry [k, l] is by
        q^(k) and q^(l), the transpose of [l, k], and zero for k + l > order + 2. With a floating base k = 0
        means a small body-fixed displacement xi of it, which takes its pose to `pose exp(xi)`, and k > 0
        derivative k - 1 of its body-fixed twist; its body-fixed wrench comes before the torques. `wrenches`
        stay as they are given. A. Griewank & A. Walther (2008), sections 3.1 and 3.2: forward over reverse on
        the operations of inverse dynamics; compiled.
        """
        arguments = MotionArguments(q, base, self._loads(wrenches))
        return self._dynamics.inverse_dynamics_hessian(arguments, multiplier)

    @finite_result
    def inverse_dynamics_second_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of Q^(r) by the motion and all its derivatives.

        `q` (order + 3, n) -> (order + 1, order + 3, order + 3, m, m, m): entry [r, k, l, i] is the matrix of
        derivatives of Q_i^(r) by q^(k) and q^(l), as of `inverse_dynamics_hessian`, zero for k + l > r + 2.
        Of order 0 what S. Singh, R. Russell & P. Wensing (2022) give in closed form.
        """
        return self._dynamics.inverse_dynamics_second_derivatives(
            MotionArguments(q, base, self._loads(wrenches))
        )

    @finite_result
    def forward_dynamics_hessian(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of `sum of multiplier[r] · accelerations^(r)`.

        `multiplier` (order + 1, m), other arguments as of `forward_dynamics` -> (order + 3, order + 3, m, m):
        entry [k, l] is by y^(k) and y^(l), which are positions, velocities, and then derivatives of the
        torques, as of `forward_dynamics_derivatives`. S. Singh, R. Russell & P. Wensing, "On second-order
        derivatives of rigid-body dynamics: theory & implementation" (2024), here of any order; compiled.
        """
        return self._dynamics.hybrid_dynamics_hessian(
            HybridArguments(state, torques, base, base_wrench, self._loads(wrenches)), multiplier
        )

    @finite_result
    def forward_dynamics_second_derivatives(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of accelerations and their time derivatives.

        Arguments as of `forward_dynamics` -> (order + 1, order + 3, order + 3, m, m, m): entry [r, k, l, i]
        is of derivative r of acceleration i, as of `forward_dynamics_hessian`.
        """
        return self._dynamics.hybrid_dynamics_second_derivatives(
            HybridArguments(state, torques, base, base_wrench, self._loads(wrenches))
        )

    @finite_result
    def hybrid_dynamics_hessian(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the second partial derivatives of `multiplier · what hybrid_dynamics returns`.

        As `forward_dynamics_hessian`; of prescribed joints torques are found, and y^(k + 2) are derivatives
        of their accelerations; likewise of a prescribed base.
        """
        arguments = HybridArguments(
            state, inputs, base, base_wrench, self._loads(wrenches), prescribed, prescribe_base
        )
        return self._dynamics.hybrid_dynamics_hessian(arguments, multiplier)

    @finite_result
    def hybrid_dynamics_second_derivatives(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the second partial derivatives of what `hybrid_dynamics` returns.

        As `forward_dynamics_second_derivatives`; what is found, and by what, as of `hybrid_dynamics_hessian`.
        """
        arguments = HybridArguments(
            state, inputs, base, base_wrench, self._loads(wrenches), prescribed, prescribe_base
        )
        return self._dynamics.hybrid_dynamics_second_derivatives(arguments)

    @finite_result
    def forward_kinematics_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        *,
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the partial derivatives of poses of frames, and of derivatives of their twists.

        `q` (order + 1, n) -> (frames, 16 + 6 order, order + 1, m): entry [f, x, k] says how number x of frame
        f changes with q^(k), the pose by rows before its twist and the derivatives of that, as
        `compile(order, "forward_kinematics")` returns them. `frames`: bodies and named frames, by default all
        bodies; `representation` of their twists. With a floating base columns are as of
        `inverse_dynamics_derivatives`.
        """
        tree = self._need_tree("forward_kinematics_derivatives")
        return tree.frame_derivatives(q, base, frames, representation)

    @finite_result
    def forward_kinematics_hessian(
        self,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        *,
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the second partial derivatives of `multiplier · poses and twists of frames`.

        `q` (order + 1, n), `multiplier` (frames, 16 + 6 order) -> (order + 1, order + 1, m, m), by q^(k) and
        q^(l); numbers, frames and columns as of `forward_kinematics_derivatives`.
        """
        tree = self._need_tree("forward_kinematics_hessian")
        return tree.frame_hessian(q, multiplier, base, frames, representation)
