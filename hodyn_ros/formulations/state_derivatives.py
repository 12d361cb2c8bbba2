"""Derivatives of the dynamic matrices with respect to the state, for joints of one to six degrees of freedom.

G. Garofalo, C. Ott & A. Albu-Schaeffer (2013), sections IV and VI. A derivative "with respect to q_h" is that
along screw h of its joint, in the moved body, velocities being held: for joints with one degree of freedom
the usual one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np

from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.dynamic_matrices import (
    coriolis_matrices,
    ground_acceleration,
    gyroscopic,
    inertias,
    mass_matrices,
)
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Array, ad, matvec, transposed


def state_derivatives(
    bodies: BodyJacobians, order: int
) -> tuple[list[Array], list[Array], list[Array], list[Array]]:
    """Return dM/dq_h, dC/dq_h, dC/dw_h (..., m, m, m) and dg/dq_h (..., m, m), eqs. 24a-d.

    Each is a list of `order` + 1 time derivatives; the axis of h stands before rows and columns.
    """
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

    Jt, dJt = transposed(J), transposed(dJ)
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
    return mass, coriolis, coriolis_velocity, gravity


def partial_derivatives(bodies: BodyJacobians, order: int) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the derivatives of Q by position, velocity and acceleration (..., m, m), and their rates.

    Each is a list of `order` + 1 time derivatives. From `Q = M w' + C w + g`.
    """
    mass_change, coriolis_change, by_speed, gravity_change = state_derivatives(bodies, order)
    velocities = [w[..., None, :] for w in bodies.motion.velocities]
    mass, coriolis = mass_matrices(bodies, order), coriolis_matrices(bodies, order)
    by_position, by_velocity = [], []
    for r in range(order + 1):
        columns = product_derivative(mass_change, velocities[1:], r)
        columns = columns + product_derivative(coriolis_change, velocities, r)
        by_position.append(np.swapaxes(columns + gravity_change[r], -1, -2))
        columns = product_derivative(by_speed, velocities, r)
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


def assemble(series: Array, brackets: Sequence[Array]) -> Array:
    """Return dQ^(r)/dx^(k) (..., order + 1, order + 3, m, m) from the series in time of three matrices.

    Q^(r) is the r-th time derivative of Q along the motion, so a change of the motion passes through them by
    the product rule: `dQ^(r)/dq^(k) = C(r,k) (dQ/dq)^(r-k) + C(r,k-1) (dQ/dq')^(r-k+1) + C(r,k-2)
    (dQ/dq'')^(r-k+2)` where displacements are those of joints with one degree of freedom.

    `series` (..., order + 1, 3, m, m) are the derivatives of Q by position, velocity and acceleration by
    order. x^(0) are small displacements in the groups of the joints, x^(k) derivative k - 1 of the
    velocities. A displacement eta changes in time by `eta' = dw - [w, eta]`, which carries it into all
    orders; `brackets` (..., m, m) are the matrices of `eta -> [w, eta]` by order, none where all vanish.
    Arrays are of numbers, or of scalars that are traced.
    """
    orders, m = series.shape[-4], series.shape[-1]
    carried = _carried_displacements(brackets, orders, m) if brackets else []
    result = np.full((*series.shape[:-4], orders, orders + 2, m, m), 0.0, series.dtype)
    for r in range(orders):
        for l in range(r + 1):
            by_position, by_velocity, by_acceleration = np.moveaxis(series[..., r - l, :, :, :], -3, 0)
            result[..., r, l + 1, :, :] += comb(r, l) * by_velocity
            result[..., r, l + 2, :, :] += comb(r, l) * by_acceleration
            result[..., r, l, :, :] += comb(r, l) * by_position
            for k in range(l) if brackets else ():
                result[..., r, k, :, :] += comb(r, l) * (by_position @ carried[l][k])
    return result


def respond(
    partials: Array, prescribed: Sequence[int], solve: Callable[..., Array] = np.linalg.solve
) -> Array:
    """Return dx^(r)/dy^(k) (..., order + 1, order + 3, m, m) of hybrid dynamics.

    `partials`: those that `assemble` returns, along the motion that hybrid dynamics finds; x are
    accelerations and, of the velocities `prescribed`, forces. y^(0) are displacements, y^(1) velocities,
    y^(k + 2) derivative k of what is given: forces and, of the velocities prescribed, accelerations. In
    `dQ^(r) = sum_k P_rk dx^(k)` the last matrix, `P_r,r+2`, is the mass matrix at every order. `solve`: how a
    part of that is taken to the other side.
    """
    orders, m = partials.shape[-4], partials.shape[-1]
    mass, free = partials[..., 0, 2, None, :, :], [i for i in range(m) if i not in prescribed]
    inputs = np.zeros((orders + 2, orders + 2, m, m))  # of y^(k) by y^(l)
    inputs[np.arange(orders + 2), np.arange(orders + 2)] = np.eye(m)
    moves, result = [inputs[0], inputs[1]], np.empty_like(partials)
    for r in range(orders):
        rates = np.full((*partials.shape[:-4], *inputs.shape[1:]), 0.0, partials.dtype)
        rates[..., prescribed, :] = inputs[r + 2][..., prescribed, :]
        known = mass @ rates
        for k, move in enumerate(moves):
            known = known + partials[..., r, k, None, :, :] @ move
        missing = (inputs[r + 2] - known)[..., free, :]
        solved = solve(mass[..., free, :][..., :, free], missing)
        rates[..., free, :] = solved
        moves.append(rates)
        forces, values = known + mass[..., :, free] @ solved, rates.copy()
        values[..., prescribed, :] = forces[..., prescribed, :]
        result[..., r, :, :, :] = values
    return result


def _carried_displacements(brackets: Sequence[Array], orders: int, m: int) -> list[list[Array]]:
    """Return the derivative l of the displacement by x^(k) (..., m, m), for k = 0..l, l below `orders`."""
    carried = [[np.eye(m)]]
    for l in range(orders - 1):
        row = []
        for k in range(l + 1):
            history = [carried[i][k] if k <= i else np.zeros((m, m)) for i in range(l + 1)]
            row.append(-product_derivative(brackets, history, l, np.matmul))
        carried.append([*row, np.eye(m)])
    return carried
