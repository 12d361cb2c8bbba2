"""What is linear in masses, centres of mass and inertias: regressors and derivatives of dynamic matrices.

G. Garofalo, C. Ott & A. Albu-Schaeffer (2013), section III, with the angular part first. The ten parameters
of a body are `(m, m r, Ixx, Iyy, Izz, Ixy, Ixz, Iyz)`: mass [kg], first moment [kg m], and the inertia about
the origin of the body frame [kg m^2], all in body axes (eq. 9).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.dynamic_matrices import ground_acceleration
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.se3 import Array, hat, matvec, transposed
from hodyn_ros.model.joint_tree import JointTree

PER_BODY = 10


def dynamic_parameters(tree: JointTree) -> Array:
    """Return the parameters pi (10 n,) of n bodies, eq. 9."""
    inertia = tree.inertias - tree.masses[:, None, None] * (hat(tree.coms) @ hat(tree.coms))
    i, j = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    rows = [tree.masses[:, None], tree.masses[:, None] * tree.coms, inertia[:, i, j]]
    return np.concatenate(rows, axis=1).ravel()


def momentum_factor(twist: Array) -> Array:
    """Return A(V) (..., 6, 10) with `Lambda V = A(V) pi`, eqs. 8 and 10-12."""
    w, v = twist[..., :3], twist[..., 3:]
    result = np.zeros((*twist.shape[:-1], 6, PER_BODY))
    result[..., 3:, 0] = v
    result[..., 3:, 1:4] = hat(w)
    result[..., :3, 1:4] = -hat(v)
    x, y, z = np.moveaxis(w, -1, 0)
    for column, (row, value) in enumerate([(0, x), (1, y), (2, z)]):
        result[..., row, 4 + column] = value
    for column, (a, b, first, second) in enumerate([(0, 1, y, x), (0, 2, z, x), (1, 2, z, y)]):
        result[..., a, 7 + column] = first
        result[..., b, 7 + column] = second
    return result


def slotine_li_regressors(bodies: BodyJacobians, order: int, reference: Sequence[Array]) -> list[Array]:
    """Return Y (..., m, 10 n) with `M w_r' + C w_r + g = Y pi` and its derivatives, eqs. 15 and 16.

    `reference` (..., m) are the velocities w_r by order, `order` + 2 of them.
    """
    brackets = bodies.brackets
    ground = ground_acceleration(bodies.tree)
    rates = [w[..., None, :] for w in reference]
    twists = product_derivatives(bodies.J, rates, order + 1)  # J w_r
    changes = product_derivatives(bodies.J[1:], rates, order + 1)  # J' w_r
    factors = [momentum_factor(twist) for twist in twists]
    turned = transposed(brackets)
    wrenches = []
    for r in range(order + 1):
        alpha = product_derivative(bodies.J, rates[1:], r) + product_derivative(brackets, twists, r)
        alpha = alpha + changes[r] + matvec(bodies.U[r], ground)
        wrenches.append(momentum_factor(alpha) - product_derivative(turned, factors, r, np.matmul))
    jacobians = transposed(bodies.J)
    blocks = product_derivatives(jacobians, wrenches, order + 1, np.matmul)
    return [_side_by_side(block) for block in blocks]


def regressors(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return Y (..., m, 10 n) with `Q = Y pi` and its derivatives; remark 4."""
    return slotine_li_regressors(bodies, order, bodies.motion.velocities)


def parameter_derivatives(bodies: BodyJacobians, order: int) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the derivatives of M, C (..., 10 n, m, m) and g (..., 10 n, m) by parameter, eqs. 13a-c.

    Each is a list of `order` + 1 time derivatives.
    """
    brackets = bodies.brackets
    columns = [np.swapaxes(J, -1, -2) for J in bodies.J]  # (..., bodies, m, 6): a twist for each velocity
    factors = [momentum_factor(column) for column in columns]
    turned = transposed(brackets)
    jacobians = transposed(bodies.J)
    weights = [momentum_factor(matvec(U, ground_acceleration(bodies.tree))) for U in bodies.U[: order + 1]]
    mass, coriolis, gravity = [], [], []
    forces = []
    for r in range(order + 1):
        carried = product_derivative(brackets, bodies.J, r, np.matmul) + bodies.J[r + 1]
        force = momentum_factor(np.swapaxes(carried, -1, -2))
        forces.append(force - product_derivative(turned, factors, r, _each_velocity))
    for r in range(order + 1):
        mass.append(_by_parameter(product_derivative(jacobians, factors, r, _each_velocity)))
        coriolis.append(_by_parameter(product_derivative(jacobians, forces, r, _each_velocity)))
        block = product_derivative(jacobians, weights, r, np.matmul)  # (..., bodies, m, 10)
        gravity.append(np.swapaxes(_side_by_side(block), -1, -2))
    return mass, coriolis, gravity


def _each_velocity(matrices: Array, factors: Array) -> Array:
    """Multiply matrices (..., bodies, i, 6) with factors (..., bodies, m, 6, 10)."""
    product: Array = matrices[..., None, :, :] @ factors
    return product


def _by_parameter(values: Array) -> Array:
    """Turn (..., bodies, column, row, 10) into matrices (..., 10 n, row, column)."""
    moved = np.moveaxis(values, (-4, -1, -2, -3), (-4, -3, -2, -1))
    return moved.reshape(*moved.shape[:-4], -1, *moved.shape[-2:])


def _side_by_side(blocks: Array) -> Array:
    """Put blocks (..., bodies, m, 10) side by side, (..., m, 10 n)."""
    moved = np.moveaxis(blocks, -3, -2)
    return moved.reshape(*moved.shape[:-2], -1)
