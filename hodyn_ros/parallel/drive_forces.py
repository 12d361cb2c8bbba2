"""From forces in task space to forces of the drives, with derivatives, also with more drives than needed."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import SingularError
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.parallel.limb_kinematics import SINGULAR
from hodyn_ros.se3 import Array


def drive_forces(jacobians: Array, force: Array, preload: Array) -> Array:
    """Return the forces `u` (order + 1, driven) with `J_IK^T u = force` that are nearest to a preload.

    `jacobians` (order + 1, driven, delta), `force` (order + 1, delta), `preload` (order + 1, driven), all by
    derivative order. With as many drives as degrees of freedom the preload does not count; with more,

        u = p + J_IK n,   J_IK^T J_IK n = force - J_IK^T p,

    which is `p` projected on the null space of `J_IK^T` plus the solution of minimum norm; both lines are
    differentiated with the product rule. Raises SingularError where the drives do not hold the platform.
    """
    check_holding(jacobians[0])
    orders = range(len(force))
    transposed = np.swapaxes(jacobians, 1, 2)
    if jacobians.shape[1] == jacobians.shape[2]:
        return _solved(transposed, force)
    missing = force - np.stack([product_derivative(transposed, preload, r) for r in orders])
    normal = np.stack([product_derivative(transposed, jacobians, r, np.matmul) for r in orders])
    multipliers = _solved(normal, missing)
    return preload + np.stack([product_derivative(jacobians, multipliers, r) for r in orders])


def check_holding(jacobian: Array) -> None:
    """Refuse `J_IK` (driven, delta) of a pose where the drives do not hold the platform."""
    size = np.linalg.norm(jacobian, axis=0)
    condition = float(np.linalg.cond(jacobian / np.where(size > 0.0, size, 1.0)))
    if not condition < SINGULAR:
        raise SingularError(
            f"the pose is singular (condition number {condition:.3g}): the platform can move there while all "
            "drives stand still, so no forces of theirs hold it; keep away from this pose",
            condition,
        )


def _solved(matrices: Array, values: Array) -> Array:
    """Solve `A x = b` order by order, `A x^(r) = b^(r) - sum_(k>0) C(r,k) A^(k) x^(r-k)`."""
    inverse = np.linalg.inv(matrices[0])
    found: list[Array] = []
    for r, value in enumerate(values):
        known = product_derivative(matrices, [*found, np.zeros(values.shape[1])], r)
        found.append(inverse @ (value - known))
    return np.stack(found)
