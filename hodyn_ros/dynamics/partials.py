"""What calls of partial derivatives of all robots share; linearised dynamics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.dynamics.motion_stack import in_place
from hodyn_ros.errors import ShapeError
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.state_derivatives import partial_derivatives
from hodyn_ros.lie.se3 import Array, ad, matvec
from hodyn_ros.model.joint_tree import JointTree


class LinearisedDynamics(NamedTuple):
    """`dx' = A dx + B du` for the state x = (positions, velocities) and the joint torques u."""

    A: Array  # (2 m, 2 m)
    B: Array  # (2 m, n)


def joint_brackets(tree: JointTree, velocities: Sequence[Array]) -> list[Array]:
    """Return the matrices (..., m, m) of `eta -> [w, eta]` in the groups of all joints, by order of w."""
    result = []
    for w in velocities:
        matrix = np.zeros((*w.shape[:-1], tree.n_velocities, tree.n_velocities))
        for subspace, columns in zip(tree.subspaces, tree.columns):
            if subspace.shape[1] > 1:
                bracket = ad(matvec(subspace, w[..., columns]))
                matrix[..., columns, columns] = np.linalg.pinv(subspace) @ bracket @ subspace
        result.append(matrix)
    return result


def closed_form_series(bodies: BodyJacobians, order: int) -> Array:
    """Return the derivatives of Q (..., order + 1, 3, m, m) by position, velocity and acceleration."""
    parts = partial_derivatives(bodies, order)
    return np.stack([in_place(part, bodies.batch) for part in parts], axis=-3)


def linearised(
    by_position: Array, by_velocity: Array, by_torque: Array, bracket: Array | None = None
) -> LinearisedDynamics:
    """Return A and B from how accelerations (m,) answer positions, velocities (m, m) and torques (m, n).

    Displacements eta change in time by `eta' = dw - [w, eta]`, `bracket` (m, m) being the matrix of the last;
    None is zero.
    """
    m, n = by_torque.shape
    A, B = np.zeros((2 * m, 2 * m)), np.zeros((2 * m, n))
    A[:m, m:] = np.eye(m)
    if bracket is not None:
        A[:m, :m] -= bracket
    A[m:, :m], A[m:, m:], B[m:] = by_position, by_velocity, by_torque
    return LinearisedDynamics(A, B)


def of_each(order: int, m: int, hessian: Callable[[Array], Array]) -> Array:
    """Return second derivatives of all m results by order from those of one after the other."""
    units = np.eye((order + 1) * m).reshape(-1, order + 1, m)
    values = np.stack([hessian(unit) for unit in units], axis=-5)
    whole = values.reshape(*values.shape[:-5], order + 1, m, *values.shape[-4:])
    result: Array = np.ascontiguousarray(np.moveaxis(whole, -5, -3))
    return result


def multiplier_rows(values: ArrayLike, shape: tuple[int, ...], batch: tuple[int, ...]) -> Array:
    """Return a multiplier (shape), or one for every sample of a batch."""
    said = f"{shape}" + (f" or {(*batch, *shape)}" if batch else "")
    array = real_array("the multiplier", values, said)
    if array.shape not in (shape, (*batch, *shape)):
        raise ShapeError("the multiplier", said, array.shape)
    check_finite("the multiplier", array)
    return np.ascontiguousarray(np.broadcast_to(array, (*batch, *shape)))
