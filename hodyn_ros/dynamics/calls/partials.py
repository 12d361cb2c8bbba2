"""The calls of `Robot` that return partial derivatives of inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.dynamics import partials
from hodyn_ros.dynamics.calls.forward_dynamics import ForwardDynamicsCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls, called
from hodyn_ros.dynamics.floating_base import fitting_base
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.looped_partials import forward_dynamics_partials
from hodyn_ros.dynamics.motion_stack import motion_stack
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.engine import matrix_kernels
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array


class PartialCalls(ForwardDynamicsCalls, MatrixCalls):
    """Partial derivatives, and linearised dynamics."""

    @cached_property
    def _fast_partials(self) -> dict[tuple[int, ...], tuple[Callable[..., Array], tuple[int, ...]]]:
        return {}  # by shape of the motion

    def inverse_dynamics_derivatives(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the partial derivatives of Q^(r) with respect to the motion and all its derivatives.

        `q` (order + 3, n) -> (order + 1, order + 3, m, m): entry [r, k] is dQ^(r)/dq^(k), zero for k > r + 2.
        With a floating base, k = 0 means a small body-fixed displacement of it, and k > 0 derivative k - 1 of
        its body-fixed twist. Compiled.
        """
        if type(q) is np.ndarray and base is None and q.shape in self._fast_partials:
            function, shape = self._fast_partials[q.shape]
            return function(q).reshape(shape)
        return self._inverse_dynamics_derivatives(q, base)

    @finite_result
    def _inverse_dynamics_derivatives(self, q: ArrayLike | None, base: BaseMotion | None) -> Array:
        if self._looped is not None:
            return self._looped.computed("inverse_dynamics_derivatives", q, base)
        stack = motion_stack(self.model, q, base, 2)
        order, m = stack.order, self._m
        if stack.base is None:
            kernel = self._matrix_kernel(matrix_kernels.inverse_dynamics_derivatives, order)
            if kernel is not None:
                shape = (order + 1, order + 3, m, m)
                self._fast_partials[order + 3, m] = kernel.function, shape
                return called(kernel, stack).reshape(*stack.batch, *shape)
        else:
            kernel = self._matrix_kernel(matrix_kernels.partial_series, order)
        bodies = stack.bodies(self._joint_tree)
        if kernel is None:
            series = partials.closed_form_series(bodies, order)
        else:
            series = called(kernel, stack).reshape(*stack.batch, order + 1, 3, m, m)
        return partials.assemble(series, partials.joint_brackets(bodies.tree, bodies.motion.velocities))

    @finite_result
    def linearised_dynamics(
        self, state: ArrayLike, torques: ArrayLike, base: BaseMotion | None = None
    ) -> LinearisedDynamics:
        """Linearise forward dynamics at a state (2, n) under torques (n,): `dx' = A dx + B du`.

        x are the positions, then the m velocities; of a floating base, a small body-fixed displacement before
        the joint positions. u are the joint torques. A (2 m, 2 m), B (2 m, n).
        """
        if self._looped is not None:
            return self._linearised_loops(self._looped, state, torques, base)
        n = self.model.n_joints
        values = finite_array("the state", state, (2, n))
        effort = finite_array("the torques", torques, (n,))
        motion = fitting_base(self.model, base, 1)
        if motion is not None:
            motion = motion.in_frame("body")
            motion = BaseMotion(motion.pose, motion.twists[:1], frame="body")
        accelerations = self._hybrid(values, effort[None], motion, None, None, (), False)[0]
        q = np.vstack([values, accelerations[-n:]])
        if motion is not None:
            motion = BaseMotion(motion.pose, np.vstack([motion.twists, accelerations[:6]]), frame="body")
        found = self.inverse_dynamics_derivatives(q, motion)[0]
        velocities = values[1] if motion is None else np.concatenate([motion.twists[0], values[1]])
        (bracket,) = partials.joint_brackets(self._joint_tree, [velocities])
        return partials.linearise(found, bracket, n)

    def _linearised_loops(
        self, looped: LoopedDynamics, state: ArrayLike, torques: ArrayLike, base: BaseMotion | None
    ) -> LinearisedDynamics:
        closure, k = looped.closure, self.n_joints
        y, _ = coordinate_motion(closure, finite_array("the state", state, (2, k)), base, 1)
        efforts = finite_array("the torques", torques, (len(closure.driven),))
        _, partials = forward_dynamics_partials(looped, y, efforts)
        A = np.concatenate([np.eye(2 * k)[k:], partials[:, : 2 * k]])
        return LinearisedDynamics(A, np.concatenate([np.zeros((k, len(efforts))), partials[:, 2 * k :]]))
