"""Matrices of motion, Jacobians, centre of mass and momentum of a robot in NumPy, with time derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from hodyn_ros.dynamics.motion_stack import in_place
from hodyn_ros.formulations import dynamic_matrices as published
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.state_derivatives import state_derivatives
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.frames import Frame


class DynamicMatrices(NamedTuple):
    """`Q = M x' + C x + g` by order, with x = q', or the body-fixed base twist and q'."""

    mass: Array  # (order + 1, m, m)
    coriolis: Array  # (order + 1, m, m)
    gravity: Array  # (order + 1, m)


@dataclass(frozen=True, eq=False)
class MatrixDerivatives:
    """Derivatives of the dynamic matrices with respect to the state, and their time derivatives.

    Axes (order + 1, h, row, column), a batch before them: entry [r, h] is the r-th time derivative of the
    derivative by position (or velocity) h. Garofalo et al. (2013), eqs. 24a-d.
    """

    mass_by_position: Array
    coriolis_by_position: Array
    coriolis_by_velocity: Array
    gravity_by_position: Array  # (order + 1, h, row)


def mass_matrix(bodies: BodyJacobians, order: int) -> Array:
    """Return M (..., order + 1, m, m) in closed form."""
    return in_place(published.mass_matrices(bodies, order), bodies.batch)


def coriolis_matrix(bodies: BodyJacobians, order: int) -> Array:
    """Return C (..., order + 1, m, m) in closed form."""
    return in_place(published.coriolis_matrices(bodies, order), bodies.batch)


def gravity_torque(bodies: BodyJacobians, order: int) -> Array:
    """Return g (..., order + 1, m) in closed form."""
    return in_place(published.gravity_forces(bodies, order), bodies.batch)


def dynamic_matrices(bodies: BodyJacobians, order: int) -> DynamicMatrices:
    """Return M, C and g in closed form."""
    return DynamicMatrices(
        mass_matrix(bodies, order), coriolis_matrix(bodies, order), gravity_torque(bodies, order)
    )


def rows(bodies: BodyJacobians, order: int) -> Array:
    """Return M, C and g in closed form, below each other, (..., order + 1, 2 m + 1, m)."""
    mass, coriolis, gravity = dynamic_matrices(bodies, order)
    return np.concatenate([mass, coriolis, gravity[..., None, :]], axis=-2)


def coefficient_matrices(matrices: DynamicMatrices) -> Array:
    """Return `P_k` with `Q^(r) - g^(r) = sum_k P_k q^(k)`, as (..., order + 1, order + 3, m, m).

    Entry [r, k] belongs to Q^(r) and q^(k); [r, 0] is zero. Kumar & Mueller (2021), eq. 49.
    """
    mass, coriolis, _ = matrices
    orders = mass.shape[-3]
    result = np.zeros((*mass.shape[:-3], orders, orders + 2, *mass.shape[-2:]))
    for r in range(orders):
        for l in range(r + 1):
            result[..., r, l + 2, :, :] += comb(r, l) * mass[..., r - l, :, :]
            result[..., r, l + 1, :, :] += comb(r, l) * coriolis[..., r - l, :, :]
    return result


def matrix_derivatives(bodies: BodyJacobians, order: int) -> MatrixDerivatives:
    """Return the derivatives of M, C and g with respect to positions and velocities."""
    result = state_derivatives(bodies, order)
    return MatrixDerivatives(
        in_place(result.mass_by_position, bodies.batch),
        in_place(result.coriolis_by_position, bodies.batch),
        in_place(result.coriolis_by_velocity, bodies.batch),
        in_place(result.gravity_by_position, bodies.batch),
    )


def jacobian(bodies: BodyJacobians, place: Frame, representation: Representation) -> Array:
    """Return the Jacobian (order + 1, 6, m) of a frame on a body, of its twist in `representation`."""
    if place.body < 0:
        return np.zeros((*bodies.batch, bodies.motion.order + 1, 6, bodies.tree.n_velocities))
    carry = Ad(inverse(place.pose))
    columns = [np.swapaxes(carry @ J[..., place.body, :, :], -1, -2) for J in bodies.J]  # (..., m, 6)
    twists = [(V[..., place.body, :] @ carry.T)[..., None, :] for V in bodies.V]
    pose = (bodies.poses[..., place.body, :, :] @ place.pose)[..., None, :, :]
    result = convert_screws(np.stack(columns), pose, twists, "body_fixed", representation)
    return in_place(list(np.swapaxes(result, -1, -2)), bodies.batch)


def com(bodies: BodyJacobians, order: int) -> Array:
    """Return the centre of mass (order + 1, 3) in the world [m]."""
    return in_place(published.com_positions(bodies, order), bodies.batch)


def com_jacobian(bodies: BodyJacobians, order: int) -> Array:
    """Return the Jacobian (order + 1, 3, m) of the centre of mass in world axes."""
    return in_place(published.com_jacobians(bodies, order), bodies.batch)


def centroidal_momentum(bodies: BodyJacobians, order: int) -> Array:
    """Return the momentum (order + 1, 6) about the centre of mass in world axes, angular part first."""
    return in_place(published.centroidal_momenta(bodies, order), bodies.batch)


def centroidal_momentum_matrix(bodies: BodyJacobians, order: int) -> Array:
    """Return the matrix (order + 1, 6, m) that takes velocities to the centroidal momentum."""
    return in_place(published.centroidal_matrices(bodies, order), bodies.batch)
