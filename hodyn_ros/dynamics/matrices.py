"""Matrices of motion, Jacobians, centre of mass and momentum of a robot in NumPy, with time derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, n_axes
from hodyn_ros.dynamics.motion_stack import MotionStack, in_place
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import dynamic_matrices as published
from hodyn_ros.formulations import parameters
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.state_derivatives import assemble, state_derivatives
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel


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


def by_order(law: Callable[..., Sequence[Array]], bodies: BodyJacobians, order: int, *of: Any) -> Array:
    """Return what a published formula gives by order, (..., order + 1, *), a batch before the orders."""
    return in_place(law(bodies, order, *of), bodies.batch)


def rows(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return M, C and g below each other, (..., 2 m + 1, m) by order, as code computes them."""
    laws = published.mass_matrices, published.coriolis_matrices, published.gravity_forces
    parts = zip(*(law(bodies, order) for law in laws))
    return [
        np.concatenate([mass, coriolis, gravity[..., None, :]], axis=-2) for mass, coriolis, gravity in parts
    ]


def in_parts(rows: Array) -> DynamicMatrices:
    """Return the parts of such rows (..., 2 m + 1, m)."""
    m = rows.shape[-1]
    return DynamicMatrices(rows[..., :m, :], rows[..., m : 2 * m, :], rows[..., 2 * m, :])


def coefficient_matrices(matrices: DynamicMatrices) -> Array:
    """Return `P_k` with `Q^(r) - g^(r) = sum_k P_k q^(k)`, as (..., order + 1, order + 3, m, m).

    Entry [r, k] belongs to Q^(r) and q^(k); [r, 0] is zero. Kumar & Mueller (2021), eq. 49.
    """
    mass, coriolis, _ = matrices
    return assemble(np.stack([np.zeros_like(mass), coriolis, mass], axis=-3), [])


def matrix_derivatives(bodies: BodyJacobians, order: int) -> MatrixDerivatives:
    """Return the derivatives of M, C and g with respect to positions and velocities."""
    parts = vars(state_derivatives(bodies, order))
    return MatrixDerivatives(**{name: in_place(part, bodies.batch) for name, part in parts.items()})


def jacobian(bodies: BodyJacobians, order: int, place: Frame, representation: Representation) -> list[Array]:
    """Return the Jacobians (..., 6, m) by order of a frame on a body, of its twist in `representation`."""
    if place.body < 0:
        return [np.zeros((*bodies.batch, 6, bodies.tree.n_velocities))] * (order + 1)
    carry = Ad(inverse(place.pose))
    columns = [np.swapaxes(carry @ J[..., place.body, :, :], -1, -2) for J in bodies.J]  # (..., m, 6)
    twists = [(V[..., place.body, :] @ carry.T)[..., None, :] for V in bodies.V]
    pose = (bodies.poses[..., place.body, :, :] @ place.pose)[..., None, :, :]
    screws = convert_screws(np.stack(columns), pose, twists, "body_fixed", representation)
    return list(np.swapaxes(screws, -1, -2))


def parameter_rows(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the derivatives of M, C and g by parameter as rows (..., 10 bodies (2 m + 1), m) by order."""
    shape = *bodies.batch, -1, bodies.tree.n_velocities
    parts = zip(*parameters.parameter_derivatives(bodies, order))
    return [np.concatenate([part.reshape(shape) for part in each], axis=-2) for each in parts]


def by_parameter(rows: Array, n_bodies: int) -> DynamicMatrices:
    """Return as derivatives of M, C and g the rows (..., 10 bodies (2 m + 1), m) that code computes.

    By those of the last `n_bodies` bodies: others before them hold a base that is computed on the ground.
    """
    m, n = rows.shape[-1], parameters.PER_BODY * n_bodies
    count = rows.shape[-2] // (2 * m + 1)
    square = rows[..., : 2 * count * m, :].reshape(*rows.shape[:-2], 2, count, m, m)[..., -n:, :, :]
    return DynamicMatrices(square[..., 0, :, :, :], square[..., 1, :, :, :], rows[..., -n:, :])


def reference_velocities(
    model: TreeModel, stack: MotionStack, reference: MotionStack, base_reference: ArrayLike | None
) -> list[Array]:
    """Return reference velocities (..., m) by order from those of the joints and of a floating base."""
    if reference.order != stack.order or reference.batch != stack.batch:
        raise InputError(
            "the reference must have one row more than the motion and the same batch: its velocities and "
            f"accelerations are used; found {reference.q.shape} beside {stack.q.shape}"
        )
    rates = list(reference.by_order[1:])
    if not model.floating_base:
        if base_reference is not None:
            raise InputError(f"robot {model.name!r} has a fixed base; base_reference does not apply")
        return rates
    if base_reference is None:
        raise InputError(
            f"robot {model.name!r} has a floating base; give base_reference ({len(rates)}, 6): body-fixed "
            "reference twists by order"
        )
    batch = stack.batch if n_axes(base_reference) == 3 else ()
    twists = finite_array("base_reference", base_reference, (*batch, len(rates), 6))
    return [
        np.concatenate([np.broadcast_to(twist, (*rate.shape[:-1], 6)), rate], axis=-1)
        for twist, rate in zip(np.moveaxis(twists, -2, 0), rates)
    ]
