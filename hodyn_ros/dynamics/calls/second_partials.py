"""The calls of `Robot` that return second partial derivatives, in full and contracted with a multiplier."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics.calls.partials import PartialCalls
from hodyn_ros.dynamics.hybrid_arguments import HybridArguments
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array


class SecondPartialCalls(PartialCalls):
    """Second partial derivatives."""

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
        return self._dynamics.inverse_dynamics_hessian(q, multiplier, base, self._loads(wrenches))

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
        return self._dynamics.inverse_dynamics_second_derivatives(q, base, self._loads(wrenches))

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
