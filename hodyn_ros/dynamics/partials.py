"""Partial derivatives of Q^(r) with respect to the motion and all its derivatives; linearised dynamics.

Only the series in time of three matrices are needed, those of Q with respect to positions, velocities and
accelerations: Q^(r) is the r-th time derivative of Q along the motion, so a change of the motion passes
through them by the product rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.dynamics.motion_stack import in_place
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.state_derivatives import partial_derivatives
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Array, ad, matvec
from hodyn_ros.model.joint_tree import JointTree


class LinearisedDynamics(NamedTuple):
    """`dx' = A dx + B du` for the state x = (positions, velocities) and the joint torques u."""

    A: Array  # (2 m, 2 m)
    B: Array  # (2 m, n)


def assemble(series: Array, brackets: Sequence[Array]) -> Array:
    """Return dQ^(r)/dx^(k) (..., order + 1, order + 3, m, m) from the series in time of three matrices.

    `series` (..., order + 1, 3, m, m) are the derivatives of Q by position, velocity and acceleration by
    order. x^(0) are small displacements in the groups of the joints, x^(k) derivative k - 1 of the
    velocities. A displacement eta changes in time by `eta' = dw - [w, eta]`, which carries it into all
    orders; `brackets` (..., m, m) are the matrices of `eta -> [w, eta]` by order.
    """
    orders, m = series.shape[-4], series.shape[-1]
    carried = _carried_displacements(brackets, orders, m)
    result = np.zeros((*series.shape[:-4], orders, orders + 2, m, m))
    for r in range(orders):
        for l in range(r + 1):
            by_position, by_velocity, by_acceleration = np.moveaxis(series[..., r - l, :, :, :], -3, 0)
            result[..., r, l + 1, :, :] += comb(r, l) * by_velocity
            result[..., r, l + 2, :, :] += comb(r, l) * by_acceleration
            for k in range(l + 1):
                result[..., r, k, :, :] += comb(r, l) * (by_position @ carried[l][k])
    return result


def respond(partials: Array, prescribed: Sequence[int]) -> Array:
    """Return dx^(r)/dy^(k) (..., order + 1, order + 3, m, m) of hybrid dynamics.

    `partials`: those that `assemble` returns, along the motion that hybrid dynamics finds; x are
    accelerations and, of the velocities `prescribed`, forces. y^(0) are displacements, y^(1) velocities,
    y^(k + 2) derivative k of what is given: forces and, of the velocities prescribed, accelerations. In
    `dQ^(r) = sum_k P_rk dx^(k)` the last matrix, `P_r,r+2`, is the mass matrix at every order.
    """
    orders, m = partials.shape[-4], partials.shape[-1]
    mass, free = partials[..., 0, 2, None, :, :], [i for i in range(m) if i not in prescribed]
    given = np.zeros((orders + 2, orders + 2, m, m))  # of y^(k) by y^(l)
    given[np.arange(orders + 2), np.arange(orders + 2)] = np.eye(m)
    moves, result = [given[0], given[1]], np.zeros_like(partials)
    for r in range(orders):
        rates = np.zeros((*partials.shape[:-4], *given.shape[1:]))
        rates[..., prescribed, :] = given[r + 2][..., prescribed, :]
        known = mass @ rates
        for k, move in enumerate(moves):
            known = known + partials[..., r, k, None, :, :] @ move
        missing = (given[r + 2] - known)[..., free, :]
        solved = np.linalg.solve(mass[..., free, :][..., :, free], missing)
        rates[..., free, :] = solved
        moves.append(rates)
        forces, values = known + mass[..., :, free] @ solved, rates.copy()
        values[..., prescribed, :] = forces[..., prescribed, :]
        result[..., r, :, :, :] = values
    return result


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


def closed_form_series(bodies: BodyJacobians, order: int) -> Array:
    """Return the derivatives of Q (..., order + 1, 3, m, m) by position, velocity and acceleration."""
    parts = partial_derivatives(bodies, order)
    return np.stack([in_place(part, bodies.batch) for part in parts], axis=-3)


def linearise(partials: Array, bracket: Array, n: int) -> LinearisedDynamics:
    """Return A and B from the partial derivatives (3, m, m) of Q at one instant.

    `bracket` (m, m) is that of the velocities, by `joint_brackets`; torques act on the last n of m.
    """
    by_position, by_velocity, mass = partials
    m = len(mass)
    A, B = np.zeros((2 * m, 2 * m)), np.zeros((2 * m, n))
    A[:m, :m], A[:m, m:] = -bracket, np.eye(m)
    solved = np.linalg.solve(mass, np.hstack([by_position, by_velocity, np.eye(m)[:, m - n :]]))
    A[m:], B[m:] = -solved[:, : 2 * m], solved[:, 2 * m :]
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
        raise InputError(f"the multiplier must have shape {said}, found {array.shape}")
    check_finite("the multiplier", array)
    return np.ascontiguousarray(np.broadcast_to(array, (*batch, *shape)))
