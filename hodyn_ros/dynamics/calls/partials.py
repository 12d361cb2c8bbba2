"""The calls of `Robot` that return partial derivatives of inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.calls.forward_dynamics import ForwardDynamicsCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.hybrid_arguments import HybridArguments
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array


class PartialCalls(ForwardDynamicsCalls, MatrixCalls):
    """Partial derivatives, and linearised dynamics."""

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
        return self._dynamics.inverse_dynamics_derivatives(q, base, self._loads(wrenches))

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

    def linearised_dynamics(
        self, state: ArrayLike | None, torques: ArrayLike, base: BaseMotion | None = None
    ) -> LinearisedDynamics:
        """Linearise forward dynamics at a state (2, n) under torques (n,): `dx' = A dx + B du`.

        x are the positions, then the m velocities; of a floating base, a small body-fixed displacement before
        the joint positions. u are the joint torques. A (2 m, 2 m), B (2 m, n).

        With loops x are the coordinates, those of a platform small body-fixed displacements in the directions
        that its rows name (what else it moves follows as its pose has it), u the efforts of the drives.
        """
        return self._dynamics.linearised_dynamics(state, torques, base)
