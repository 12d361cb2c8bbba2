"""What is linear in the dynamic parameters: regressors, and derivatives of the matrices by parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.motion_stack import MotionStack
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import parameters as published
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel


def parameter_rows(bodies: BodyJacobians, order: int) -> list[Array]:
    """Return the derivatives of M, C and g by parameter as rows (..., 10 bodies (2 m + 1), m) by order."""
    shape = *bodies.batch, -1, bodies.tree.n_velocities
    parts = zip(*published.parameter_derivatives(bodies, order))
    return [np.concatenate([part.reshape(shape) for part in each], axis=-2) for each in parts]


def by_parameter(rows: Array) -> DynamicMatrices:
    """Return as derivatives of M, C and g the rows (..., 10 bodies (2 m + 1), m) that code computes."""
    m = rows.shape[-1]
    count = rows.shape[-2] // (2 * m + 1)
    square = rows[..., : 2 * count * m, :].reshape(*rows.shape[:-2], 2, count, m, m)
    return DynamicMatrices(square[..., 0, :, :, :], square[..., 1, :, :, :], rows[..., 2 * count * m :, :])


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
    batch = stack.batch if np.ndim(base_reference) == 3 else ()
    twists = finite_array("base_reference", base_reference, (*batch, len(rates), 6))
    return [
        np.concatenate([np.broadcast_to(twist, (*rate.shape[:-1], 6)), rate], axis=-1)
        for twist, rate in zip(np.moveaxis(twists, -2, 0), rates)
    ]
