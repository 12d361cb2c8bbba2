"""Matrices of motion, Jacobians, centre of mass and momentum of a robot in NumPy, with time derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, n_axes
from hodyn_ros.dynamics.motion_stack import in_place
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import dynamic_matrices as published
from hodyn_ros.formulations import parameters
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.formulations.state_derivatives import assemble, state_derivatives
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.closure import Closure
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
    return MatrixDerivatives(*(in_place(part, bodies.batch) for part in state_derivatives(bodies, order)))


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
    closure: Closure, orders: int, batch: tuple[int, ...], joints: ArrayLike | None, twists: ArrayLike | None
) -> Array:
    """Return reference velocities (..., orders, coordinates), of a batch () or (N,), by order.

    From `joints` (orders + 1, k), whose positions do not matter, and body-fixed `twists` (orders, 6) of base
    or platform, each of all samples or one for each.
    """
    k, name = len(closure.joints), closure.tree.name

    def rows(what: str, values: ArrayLike | None, count: int, columns: int) -> Array:
        own = batch if n_axes(values) == 3 else ()
        result = finite_array(what, values, (*own, count, columns))
        return result if own == batch else np.broadcast_to(result, (*batch, count, columns))

    rates = np.zeros((*batch, orders, 0))
    if k or joints is not None:
        rates = rows("the reference", joints, orders + 1, k)[..., 1:, :]
    if closure.leader is None:
        if twists is not None:
            raise InputError(f"neither base nor platform moves robot {name!r}; leave out base_reference")
        return rates
    if twists is None:
        raise InputError(
            f"base or platform moves robot {name!r}; give base_reference ({orders}, 6): body-fixed reference "
            "twists by order"
        )
    of_leader = rows("base_reference", twists, orders, 6)
    if closure.base_prescribed:
        return np.concatenate([of_leader, rates], axis=-1)
    return np.concatenate([rates, of_leader @ np.linalg.pinv(closure.directions).T], axis=-1)
