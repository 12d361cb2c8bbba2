"""The calls of `Robot` that return matrices: of the equations of motion, Jacobians, regressors, partials."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics import matrices
from hodyn_ros.dynamics.calls.description import RobotProperties
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.motion_stack import whole_order
from hodyn_ros.formulations import parameters
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.joint_tree import JointTree


def _through_noted_kernel(call: Callable[..., Array]) -> Callable[..., Array]:
    """Let a call go straight to its kernel where that has served the same shape before."""
    name = call.__name__

    @wraps(call)
    def noted(self: MatrixCalls, q: ArrayLike, base: BaseMotion | None = None) -> Array:
        result: Array | None = self._again(q, base, name)
        return call(self, q, base) if result is None else result

    return noted


class MatrixCalls(RobotProperties):
    """Matrices of a robot by order."""

    @_through_noted_kernel
    def mass_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the mass matrix and its time derivatives, `q` (order + 1, n) -> (order + 1, m, m).

        Kumar & Mueller (2021), eqs. 39 and 54; compiled.
        """
        return self._dynamics.computed("mass_matrix", q, base)

    @_through_noted_kernel
    def coriolis_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the Coriolis matrix and its time derivatives, `q` (order + 2, n) -> (order + 1, m, m).

        `M' - 2 C` is skew. Kumar & Mueller (2021), eqs. 39 and 55, Garofalo et al. (2013), eq. 6b; compiled.
        """
        return self._dynamics.computed("coriolis_matrix", q, base)

    @_through_noted_kernel
    def gravity_torque(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute what holds the robot against gravity, by order: `q` (order + 1, n) -> (order + 1, m).

        Kumar & Mueller (2021), eqs. 43 and 58; compiled.
        """
        return self._dynamics.computed("gravity_torque", q, base)

    def dynamic_matrices(self, q: ArrayLike | None, base: BaseMotion | None = None) -> DynamicMatrices:
        """Compute `mass`, `coriolis` and `gravity` in one go, from `q` (order + 2, n)."""
        return matrices.in_parts(self._rows("dynamic_matrices", q, base))

    def compile_matrices(self, order: int) -> None:
        """Compile `dynamic_matrices` of one order for this robot, however long that takes.

        Without this, robots and orders too large for a compilation of a few seconds are computed in NumPy, a
        humanoid of 25 joints from order 7 on. The next process finds the machine code on disk.
        """
        self._dynamics.compile_long("dynamic_matrices", whole_order(order))
        self._dynamics.fast.of_motion.clear()

    @finite_result
    def coefficient_matrices(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute P with `Q^(r) - g^(r) = sum_k P[r, k] q^(k)`, `q` (order + 2, n).

        Shape (order + 1, order + 3, m, m); entries [r, 0] and those with k > r + 2 are zero. Kumar & Mueller
        (2021), eq. 49.
        """
        return matrices.coefficient_matrices(self.dynamic_matrices(q, base))

    def jacobian(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        *,
        body: str | int,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the Jacobian of a body or named frame, `q` (order + 1, n) -> (order + 1, 6, m).

        It takes velocities to the twist `(omega; v)`: "spatial" (world axes, at the world origin),
        "body_fixed" (body axes, body origin) or "hybrid" (world axes, body origin).
        Garofalo et al. (2013), eqs. 27-29; compiled.
        """
        result = self._again(q, base, "jacobian", body, representation)
        if result is not None:
            return result
        return self._dynamics.computed("jacobian", q, base, body, representation)

    @_through_noted_kernel
    def com(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the centre of mass in the world [m] by order, `q` (order + 1, n) -> (order + 1, 3).

        Compiled.
        """
        return self._dynamics.computed("com", q, base)

    @_through_noted_kernel
    def com_jacobian(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the Jacobian of the centre of mass by order, `q` (order + 1, n) -> (order + 1, 3, m).

        Garofalo et al. (2013), eq. 7; compiled.
        """
        return self._dynamics.computed("com_jacobian", q, base)

    @_through_noted_kernel
    def centroidal_momentum(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the momentum about the centre of mass by order, `q` (order + 2, n) -> (order + 1, 6).

        World axes; angular [kg m^2/s], then linear [kg m/s]. Compiled.
        """
        return self._dynamics.computed("centroidal_momentum", q, base)

    @_through_noted_kernel
    def centroidal_momentum_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the matrix of the centroidal momentum by order, `q` (order + 1, n) -> (order + 1, 6, m).

        Compiled.
        """
        return self._dynamics.computed("centroidal_momentum_matrix", q, base)

    def dynamic_parameters(self) -> Array:
        """Return the parameters (10 bodies,): of every body m, m r, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz.

        In body axes, inertias about the origin of the body frame. Garofalo et al. (2013), eq. 9.
        """
        return parameters.dynamic_parameters(JointTree.of(self.tree))

    @_through_noted_kernel
    def regressor(self, q: ArrayLike, base: BaseMotion | None = None) -> Array:
        """Compute Y with `Q^(r) = Y[r] @ dynamic_parameters()`, `q` (order + 3, n).

        Shape (order + 1, m, 10 bodies). Garofalo et al. (2013), eq. 16; compiled.
        """
        return self._dynamics.computed("regressor", q, base)

    def slotine_li_regressor(
        self,
        q: ArrayLike | None,
        qr: ArrayLike | None,
        base: BaseMotion | None = None,
        base_reference: ArrayLike | None = None,
    ) -> Array:
        """Compute Y with `M q_r'' + C q_r' + g = Y[0] @ dynamic_parameters()` and its time derivatives.

        `q` (order + 2, n); `qr` (order + 3, n) the reference, whose positions do not matter, and
        `base_reference` (order + 2, 6) the body-fixed reference twists of a floating base or platform. Shape
        (order + 1, m, 10 bodies); with loops, m coordinates. Garofalo et al. (2013), eq. 16; compiled.
        """
        rates = _reference_rates(q, qr, base, base_reference)
        if rates is not None:
            result = self._again(q, base, "slotine_li_regressor", more=[rates])
            if result is not None:
                return result
        return self._dynamics.computed("slotine_li_regressor", q, base, reference=(qr, base_reference))

    def parameter_derivatives(self, q: ArrayLike | None, base: BaseMotion | None = None) -> DynamicMatrices:
        """Compute the derivatives of M, C and g by every dynamic parameter, `q` (order + 2, n).

        Shapes (order + 1, 10 bodies, m, m) and (order + 1, 10 bodies, m). Garofalo et al. (2013), eq. 13.
        """
        return matrices.by_parameter(self._rows("parameter_derivatives", q, base), self._tree.n_bodies)

    def _rows(self, name: str, q: ArrayLike | None, base: BaseMotion | None) -> Array:
        """Compute rows of several matrices below each other."""
        result: Array | None = self._again(q, base, name)
        return self._dynamics.computed(name, q, base) if result is None else result


def _reference_rates(q: Any, qr: Any, base: BaseMotion | None, base_reference: Any) -> Array | None:
    """Return velocities of a reference as kernels take them; None where that takes a closer look."""
    plain = type(q) is type(qr) is np.ndarray and len(qr) == len(q) + 1 and np.isfinite(qr[0]).all()
    if not plain or (base is None) != (base_reference is None):
        return None
    if base is None:
        rates: Array = qr[1:]
        return rates
    if type(base_reference) is not np.ndarray or base_reference.shape != (len(q), 6):
        return None
    return np.concatenate([base_reference, qr[1:]], axis=1)
