"""The equations of motion in closed form, `Q = M q'' + C q' + Q_grav`, and their derivatives of any order.

S. Kumar and A. Mueller, "Nth order analytical time derivatives of inverse dynamics in recursive and closed
forms" (2021), section III, in body-fixed representation, extended to trees and floating bases. With a
floating base the velocities q' begin with the body-fixed twist of the base, and the forces Q with the wrench
on it; its block of X is the identity and its block of a is zero, so that `J' = -A a J` holds for it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.formulations.joints import body_fixed_screw, relative_pose, velocities
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, wrenches_to_body
from hodyn_ros.lie.se3 import Ad, Array, ad, inverse, matvec, spatial_inertia, transposed
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True, eq=False)
class SystemMatrices:
    """The system matrices of n bodies with m velocities, and their time derivatives by order.

    For a motion with `order` velocities, the lists A, J and U hold `order` + 1 derivatives, the lists below
    them `order`.
    """

    poses: list[Array]  # per body (..., 4, 4)
    inertia: Array  # (6 n, 6 n) diag(M_i), eq. 40; constant
    X: Array  # (6 n, m) joint screws in body frames, eq. 34; constant
    A: list[Array]  # (..., 6 n, 6 n) blocks Ad_{C_ij} for each j that carries i, eq. 28
    J: list[Array]  # (..., 6 n, m) system Jacobian A X, eq. 22
    U: list[Array]  # (..., 6 n, 6) blocks Ad_{C_i}^{-1}, from the world to the bodies, eq. 44
    velocities: list[Array]  # (..., m) q', a base twist first
    V: list[Array]  # (..., 6 n) system twist J q', eq. 21
    Aa: list[Array]  # (..., 6 n, 6 n) A a with a = diag(q_i' ad_{X_i}), eq. 36
    b: list[Array]  # (..., 6 n, 6 n) diag(ad_{V_i}), eq. 42

    @property
    def order(self) -> int:
        """Number of derivatives of the configuration that went in."""
        return len(self.velocities)


def system_matrices(model: TreeModel, q: Array, base: BaseMotion | None = None) -> SystemMatrices:
    """Compute the system matrices and their derivatives from a motion `q` (order + 1, ..., joints).

    `base` is the motion of a floating base, with `order` twists. Kumar & Mueller (2021), eqs. 21-44 and
    50-57.
    """
    rates = velocities(q, base)
    poses, adjoint = _poses_and_adjoint(model, q[0], base)
    screws = _joint_screws(model)
    A, J = [adjoint], [adjoint @ screws]
    V: list[Array] = []
    U = [np.concatenate([Ad(inverse(pose)) for pose in poses], axis=-2)]
    a: list[Array] = []
    Aa: list[Array] = []
    b: list[Array] = []
    for r in range(len(rates)):
        a.append(_joint_brackets(model, q[r + 1]))
        Aa.append(product_derivative(A, a, r, np.matmul))
        A.append(Aa[r] - product_derivative(Aa, A, r, np.matmul))
        V.append(product_derivative(J, rates, r))
        J.append(A[r + 1] @ screws)
        b.append(_block_diagonal(ad(V[r].reshape(*V[r].shape[:-1], model.n_bodies, 6))))
        U.append(-product_derivative(b, U, r, np.matmul))
    inertia = _block_diagonal(spatial_inertia(model.masses, model.coms, model.inertias))
    return SystemMatrices(poses, inertia, screws, A, J, U, rates, V, Aa, b)


def mass_matrices(system: SystemMatrices, order: int) -> list[Array]:
    """Return the mass matrix `M = J^T M J` (..., m, m) and its derivatives up to `order`; eqs. 39 and 54."""
    momenta = [system.inertia @ jacobian for jacobian in system.J]
    return product_derivatives(transposed(system.J), momenta, order + 1, np.matmul)


def system_coriolis(system: SystemMatrices, order: int) -> list[Array]:
    """Return `C = M (b - A a) - b^T M` (..., 6 n, 6 n) and its derivatives up to `order`; eqs. 41 and 56.

    The term `M b` is not in the paper. As `b V = 0` it takes no part in `C q'`; with it `M' - 2 C` is skew,
    and the matrix is that of Ali et al., lemma 1, in body-fixed representation.
    """
    inertia = system.inertia
    return [
        inertia @ (b - Aa) - np.swapaxes(b, -1, -2) @ inertia
        for Aa, b in zip(system.Aa[: order + 1], system.b)
    ]


def coriolis_matrices(system: SystemMatrices, order: int) -> list[Array]:
    """Return the Coriolis matrix `C = J^T C J` (..., m, m) and its derivatives; `M' - 2 C` is skew.

    `order` is below the order of the system; eqs. 39 and 55.
    """
    coriolis = system_coriolis(system, order)
    forces = product_derivatives(coriolis, system.J, order + 1, np.matmul)
    return product_derivatives(transposed(system.J), forces, order + 1, np.matmul)


def gravity_forces(system: SystemMatrices, gravity: Array, order: int) -> list[Array]:
    """Return `Q_grav = J^T M U (0; -g)` (..., m) and its derivatives, eqs. 43 and 58.

    `gravity` (3,) points down.
    """
    weights = _system_weights(system, gravity, order)
    return product_derivatives(transposed(system.J), weights, order + 1)


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute torques and the base wrench with their derivatives; arguments as `transmission` says.

    Kumar & Mueller (2021), eqs. 1 and 45.
    """
    orders = range(len(q) - 2)
    order = orders[-1]
    system = system_matrices(model, q[:-1], base)
    rates = velocities(q, base)
    accelerations = rates[1:]

    mass, coriolis = mass_matrices(system, order), coriolis_matrices(system, order)
    gravity = gravity_forces(system, model.gravity, order)
    back = transposed(system.J)
    applied = _applied_wrenches(model, system, wrenches, order)
    forces = [
        product_derivative(mass, accelerations, r)
        + product_derivative(coriolis, rates, r)
        + gravity[r]
        - product_derivative(back, applied, r)
        for r in orders
    ]
    # what the bodies need, added up in the world frame; U stands where J stands for the joints
    weights = _system_weights(system, model.gravity, order)
    inertial = _system_inertial_wrenches(system, accelerations, order)
    needed = [w + weight - value for w, weight, value in zip(inertial, weights, applied)]
    ground = product_derivatives(transposed(system.U), needed, len(orders))
    return np.stack(forces)[..., 0 if base is None else 6 :], np.stack(ground)


def _poses_and_adjoint(model: TreeModel, q: Array, base: BaseMotion | None) -> tuple[list[Array], Array]:
    n = model.n_bodies
    poses: list[Array] = []
    adjoint = np.zeros((*q.shape[:-1], 6 * n, 6 * n))
    for j, parent in enumerate(model.parents):
        rows = slice(6 * j, 6 * j + 6)
        if base is not None and j == 0:
            poses.append(np.broadcast_to(base.pose, (*q.shape[:-1], 4, 4)))
        else:
            relative = relative_pose(model, j, q[..., model.joint_of(j)])
            poses.append(relative if parent < 0 else poses[parent] @ relative)
            if parent >= 0:
                above = slice(6 * parent, 6 * parent + 6)
                adjoint[..., rows, :] = Ad(inverse(relative)) @ adjoint[..., above, :]
        adjoint[..., rows, rows] = np.eye(6)
    return poses, adjoint


def _joint_screws(model: TreeModel) -> Array:
    """Return X (6 n, m), eq. 34; the block of a floating base is the identity."""
    first = 6 if model.floating_base else 0
    screws = np.zeros((6 * model.n_bodies, first + model.n_joints))
    screws[:first, :first] = np.eye(first)
    for j in range(model.first_jointed_body, model.n_bodies):
        screws[6 * j : 6 * j + 6, first + model.joint_of(j)] = body_fixed_screw(model, j)
    return screws


def _joint_brackets(model: TreeModel, rate: Array) -> Array:
    """Return a (..., 6 n, 6 n) from joint velocities (..., joints), or its derivatives; eqs. 36 and 51."""
    blocks = np.zeros((*rate.shape[:-1], model.n_bodies, 6, 6))
    for j in range(model.first_jointed_body, model.n_bodies):
        blocks[..., j, :, :] = rate[..., model.joint_of(j), None, None] * ad(body_fixed_screw(model, j))
    return _block_diagonal(blocks)


def _block_diagonal(blocks: Array) -> Array:
    """Put blocks (..., n, 6, 6) on the diagonal of a matrix (..., 6 n, 6 n)."""
    *batch, n, _, _ = blocks.shape
    result = np.zeros((*batch, n, 6, n, 6))
    for j in range(n):
        result[..., j, :, j, :] = blocks[..., j, :, :]
    return result.reshape(*batch, 6 * n, 6 * n)


def _system_weights(system: SystemMatrices, gravity: Array, order: int) -> list[Array]:
    """Return `M U V_0'` (..., 6 n) by order: the ground accelerates with `V_0' = (0; -g)`."""
    ground_acceleration = np.concatenate([np.zeros(3), -gravity])
    return [matvec(system.inertia @ U, ground_acceleration) for U in system.U[: order + 1]]


def _system_inertial_wrenches(
    system: SystemMatrices, accelerations: Sequence[Array], order: int
) -> list[Array]:
    """Return `M V' - b^T M V` (..., 6 n) by order, with `V' = J q'' - A a V` (eq. 37)."""
    momenta = [matvec(system.inertia, twist) for twist in system.V]
    back = transposed(system.b)
    result = []
    for r in range(order + 1):
        rate = product_derivative(system.J, accelerations, r) - product_derivative(system.Aa, system.V, r)
        result.append(matvec(system.inertia, rate) - product_derivative(back, momenta, r))
    return result


def _applied_wrenches(
    model: TreeModel, system: SystemMatrices, wrenches: Sequence[AppliedWrench], order: int
) -> list[Array]:
    """Return the applied wrenches of all bodies (..., 6 n) by order, in body frames."""
    result = np.zeros((order + 1, *system.velocities[0].shape[:-1], 6 * model.n_bodies))
    for wrench in wrenches:
        j = model.body_index(wrench.body)
        rows = slice(6 * j, 6 * j + 6)
        values = wrench.up_to(order)
        if wrench.representation == "spatial":
            values = wrenches_to_body(system.poses[j], [twist[..., rows] for twist in system.V], values)
        for r in range(order + 1):
            result[r, ..., rows] += values[r]
    return list(result)
