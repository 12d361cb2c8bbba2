"""Derivatives of the dynamic matrices with respect to the state, for joints of one to six degrees of freedom.

G. Garofalo, C. Ott & A. Albu-Schaeffer (2013), sections IV and VI. A derivative "with respect to q_h" is that
along screw h of its joint, in the moved body, velocities being held: for joints with one degree of freedom
the usual one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.dynamic_matrices import (
    coriolis_matrices,
    ground_acceleration,
    gyroscopic,
    inertias,
    mass_matrices,
    transposes,
)
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Array, ad, matvec


@dataclass(frozen=True, eq=False)
class StateDerivatives:
    """Derivatives of M, C and g by time derivative (lists); the axis of h stands before rows and columns."""

    mass_by_position: list[Array]  # (..., m, m, m): [h] is dM/dq_h
    coriolis_by_position: list[Array]  # (..., m, m, m)
    coriolis_by_velocity: list[Array]  # (..., m, m, m): [h] is dC/dw_h
    gravity_by_position: list[Array]  # (..., m, m): [h] is dg/dq_h


def state_derivatives(bodies: BodyJacobians, order: int) -> StateDerivatives:
    """Compute eqs. 24a-d and their time derivatives up to `order`."""
    tree = bodies.tree
    inertia = inertias(tree)[:, None]  # beside the axis of h
    dJ, dJ_rate = _jacobian_derivatives(bodies, order)
    J = [matrix[..., None, :, :] for matrix in bodies.J]
    psi = [matrix[..., None, :, :] for matrix in gyroscopic(inertias(tree), bodies.brackets)]
    rates = [w[..., None, None, :] for w in bodies.motion.velocities]
    orders = range(order + 1)
    # adj of the change of the twist: with position (dJ/dq_h) w, with velocity column h of J
    by_position = [ad(product_derivative(dJ, rates, r)) for r in orders]
    by_velocity = [ad(np.swapaxes(matrix, -1, -2)) for matrix in bodies.J[: order + 1]]
    psi_by_position, psi_by_velocity = gyroscopic(inertia, by_position), gyroscopic(inertia, by_velocity)
    ground = ground_acceleration(tree)
    gamma = [matvec(U, ground)[..., None, :] for U in bodies.U[: order + 1]]

    Jt, dJt = transposes(J), transposes(dJ)
    momenta = [inertia @ matrix for matrix in J]
    force = [product_derivative(psi, J, r, np.matmul) + momenta[r + 1] for r in orders]
    force_by_position = [
        inertia @ dJ_rate[r]
        + product_derivative(psi_by_position, J, r, np.matmul)
        + product_derivative(psi, dJ, r, np.matmul)
        for r in orders
    ]
    force_by_velocity = [
        product_derivative(psi_by_velocity, J, r, np.matmul) + inertia @ dJ[r] for r in orders
    ]
    weights = [matvec(inertia, value) for value in gamma]
    weights_by_position = [-matvec(inertia, product_derivative(by_velocity, gamma, r)) for r in orders]
    mass, coriolis, coriolis_velocity, gravity = [], [], [], []
    for r in orders:
        half = product_derivative(dJt, momenta, r, np.matmul).sum(axis=-4)
        mass.append(half + np.swapaxes(half, -1, -2))
        change = product_derivative(dJt, force, r, np.matmul)
        change = change + product_derivative(Jt, force_by_position, r, np.matmul)
        coriolis.append(change.sum(axis=-4))
        coriolis_velocity.append(product_derivative(Jt, force_by_velocity, r, np.matmul).sum(axis=-4))
        weight = product_derivative(dJt, weights, r) + product_derivative(Jt, weights_by_position, r)
        gravity.append(weight.sum(axis=-3))
    return StateDerivatives(mass, coriolis, coriolis_velocity, gravity)


def partial_derivatives(bodies: BodyJacobians, order: int) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the derivatives of Q by position, velocity and acceleration (..., m, m), and their rates.

    Each is a list of `order` + 1 time derivatives. From `Q = M w' + C w + g`.
    """
    result = state_derivatives(bodies, order)
    velocities = [w[..., None, :] for w in bodies.motion.velocities]
    mass, coriolis = mass_matrices(bodies, order), coriolis_matrices(bodies, order)
    by_position, by_velocity = [], []
    for r in range(order + 1):
        columns = product_derivative(result.mass_by_position, velocities[1:], r)
        columns = columns + product_derivative(result.coriolis_by_position, velocities, r)
        by_position.append(np.swapaxes(columns + result.gravity_by_position[r], -1, -2))
        columns = product_derivative(result.coriolis_by_velocity, velocities, r)
        by_velocity.append(np.swapaxes(columns, -1, -2) + coriolis[r])
    return by_position, by_velocity, mass


def _jacobian_derivatives(bodies: BodyJacobians, order: int) -> tuple[list[Array], list[Array]]:
    """Return dJ/dq_h and d(J')/dq_h, each (..., bodies, m, 6, m), and their time derivatives; eqs. 31, 32."""
    tree = bodies.tree
    m = tree.n_velocities
    shape = (*bodies.batch, tree.n_bodies, m, 6, m)
    dJ = [np.zeros(shape) for _ in range(order + 1)]
    dJ_rate = [np.zeros(shape) for _ in range(order + 1)]
    for k, parent in enumerate(tree.parents):
        if parent < 0:
            continue
        T = [matrix[..., k, None, :, :] for matrix in bodies.T]
        screws = ad(tree.subspaces[k].T)  # (dof, 6, 6)
        joint = [ad(twist[..., k, None, :]) for twist in bodies.joint_twists]
        above = [J[..., parent, None, :, :] for J in bodies.J]
        dabove = [d[..., parent, :, :, :] for d in dJ]
        dabove_rate = [d[..., parent, :, :, :] for d in dJ_rate]
        for r in range(order + 1):
            own = tree.columns[k]
            dJ[r][..., k, :, :, :] = product_derivative(T, dabove, r, np.matmul)
            dJ[r][..., k, own, :, :] -= screws @ product_derivative(T, above, r, np.matmul)
        for r in range(order + 1):
            rate = product_derivative(T, dabove_rate, r, np.matmul)
            rate = rate - product_derivative(joint, [d[..., k, :, :, :] for d in dJ], r, np.matmul)
            rate[..., own, :, :] -= screws @ product_derivative(T, above[1:], r, np.matmul)
            dJ_rate[r][..., k, :, :, :] = rate
    return dJ, dJ_rate
