"""Dynamic matrices as sums over bodies, centre of mass and momentum, with time derivatives of any order.

G. Garofalo, C. Ott & A. Albu-Schaeffer (2013), sections II and V, for trees whose joints have one to six
degrees of freedom. Everything is by order, lists of `order` + 1 derivatives.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.se3 import Ad, Array, matvec, spatial_inertia, transposed
from hodyn_ros.lie.se3 import pose as pose_of
from hodyn_ros.model.joint_tree import JointTree


def mass_matrices(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return `M = sum J^T Lambda J` (..., m, m) and its derivatives, eqs. 6a and 25a."""
    inertia = inertias(bodies.tree)
    momenta = [inertia @ J for J in bodies.J[: order + 1]]
    return _sums_over_bodies(bodies.J, momenta, order)


def coriolis_matrices(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return `C = sum J^T (Psi J + Lambda J')` (..., m, m) and its derivatives, eqs. 6b and 25b.

    `Psi = Lambda ad_V - ad_V^T Lambda` is skew, so that `M' - 2 C` is.
    """
    inertia = inertias(bodies.tree)
    psi = gyroscopic(inertia, bodies.brackets)
    forces = [
        product_derivative(psi, bodies.J, r, np.matmul) + inertia @ bodies.J[r + 1] for r in range(order + 1)
    ]
    return _sums_over_bodies(bodies.J, forces, order)


def gravity_forces(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return `g = sum J^T Lambda Ad_{C}^{-1} gamma_0` (..., m) and its derivatives, eqs. 6c and 25c."""
    inertia, ground = inertias(bodies.tree), ground_acceleration(bodies.tree)
    weights = [matvec(inertia @ U, ground) for U in bodies.U[: order + 1]]
    return [one.sum(axis=-2) for one in product_derivatives(transposed(bodies.J), weights, order + 1)]


def com_positions(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the centre of mass (..., 3) in the world [m] and its derivatives."""
    tree = bodies.tree
    points = bodies.poses[..., :3, :3] @ tree.coms[:, :, None]
    points = points[..., 0] + bodies.poses[..., :3, 3]
    first = (tree.masses[:, None] * points).sum(axis=-2) / tree.masses.sum()
    momenta = spatial_momenta(bodies, order - 1)
    return [first, *(momentum[..., 3:] / tree.masses.sum() for momentum in momenta)]


def com_jacobians(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the Jacobian (..., 3, m) of the centre of mass in world axes and its derivatives, eq. 7."""
    return [
        matrix[..., 3:, :] / bodies.tree.masses.sum() for matrix in spatial_momentum_matrices(bodies, order)
    ]


def spatial_momentum_matrices(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the matrix (..., 6, m) from velocities to the momentum about the world origin, by order."""
    inertia = inertias(bodies.tree)
    momenta = [inertia @ J for J in bodies.J[: order + 1]]
    return _sums_over_bodies(bodies.U, momenta, order)


def spatial_momenta(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the momentum (..., 6) about the world origin, in world axes, by order."""
    momenta = [matvec(inertias(bodies.tree), V) for V in bodies.V[: order + 1]]
    return [one.sum(axis=-2) for one in product_derivatives(transposed(bodies.U), momenta, order + 1)]


def centroidal_matrices(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the matrix (..., 6, m) from velocities to the centroidal momentum, by order.

    World axes, about the centre of mass. D. Orin, A. Goswami & S. Lee, "Centroidal dynamics of a humanoid
    robot" (2013).
    """
    to_com = _shifts_to_com(bodies, order)
    matrices = spatial_momentum_matrices(bodies, order)
    return product_derivatives(to_com, matrices, order + 1, np.matmul)


def centroidal_momenta(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the centroidal momentum (..., 6): angular about the centre of mass, then linear, by order."""
    to_com = _shifts_to_com(bodies, order)
    momenta = spatial_momenta(bodies, order)
    return product_derivatives(to_com, momenta, order + 1)


def _sums_over_bodies(left: list[Array], right: list[Array], order: int) -> list[Array]:
    """Return `sum left^T right` over bodies (..., bodies, 6, *) by order, as products of tall matrices."""
    tall = [
        [x.reshape(*x.shape[:-3], x.shape[-3] * x.shape[-2], x.shape[-1]) for x in matrices[: order + 1]]
        for matrices in (left, right)
    ]
    return product_derivatives(transposed(tall[0]), tall[1], order + 1, np.matmul)


def _shifts_to_com(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return `Ad^T` (..., 6, 6) of the shift to the centre of mass, which is linear in it, by order."""
    shifts = []
    for r, position in enumerate(com_positions(bodies, order)):
        shift = Ad(pose_of(np.broadcast_to(np.eye(3), (*position.shape, 3)), position))
        shifts.append(np.swapaxes(shift, -1, -2) - (np.eye(6) if r else 0.0))
    return shifts


def inertias(tree: JointTree) -> Array:
    """Return the spatial inertias Lambda (bodies, 6, 6) in body frames."""
    return spatial_inertia(tree.masses, tree.coms, tree.inertias)


def ground_acceleration(tree: JointTree) -> Array:
    """Return `gamma_0 = (0; -g)` (6,): what gravity amounts to as an acceleration of the ground."""
    return np.concatenate([np.zeros(3), -tree.gravity])


def gyroscopic(inertia: Array, brackets: list[Array]) -> list[Array]:
    """Return the skew matrices `Psi = Lambda ad - ad^T Lambda` (..., bodies, 6, 6)."""
    return [inertia @ b - np.swapaxes(b, -1, -2) @ inertia for b in brackets]
