"""What is linear in the dynamic parameters: regressors, and derivatives of the matrices by parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.matrices import DynamicMatrices, body_jacobians
from hodyn_ros.dynamics.motion_stack import MotionStack, in_place
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import parameters
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.se3 import Array


def dynamic_parameters(model: TreeModel) -> Array:
    """Return the ten parameters of every body (10 bodies,), Garofalo et al. (2013), eq. 9."""
    return parameters.dynamic_parameters(JointTree.of(model))


def regressor(model: TreeModel, stack: MotionStack) -> Array:
    """Return Y (order + 1, m, 10 bodies) with `Q^(r) = Y[r] pi`."""
    return in_place(parameters.regressors(body_jacobians(model, stack), stack.order), stack.batch)


def slotine_li_regressor(
    model: TreeModel, stack: MotionStack, reference: MotionStack, base_reference: ArrayLike | None
) -> Array:
    """Return Y (order + 1, m, 10 bodies) with `(M x_r' + C x_r + g)^(r) = Y[r] pi`."""
    if reference.order != stack.order or reference.batch != stack.batch:
        raise InputError(
            "the reference must have one row more than the motion and the same batch: its velocities and "
            f"accelerations are used; found {reference.q.shape} beside {stack.q.shape}"
        )
    rates = list(reference.by_order[1:])
    if not model.floating_base:
        if base_reference is not None:
            raise InputError(f"robot {model.name!r} stands on the ground; base_reference does not apply")
    elif base_reference is None:
        raise InputError(
            f"robot {model.name!r} has a floating base; give base_reference ({len(rates)}, 6): body-fixed "
            "reference twists by order"
        )
    else:
        twists = finite_array("base_reference", base_reference, (len(rates), 6))
        rates = [
            np.concatenate([np.broadcast_to(twist, (*rate.shape[:-1], 6)), rate], axis=-1)
            for twist, rate in zip(twists, rates)
        ]
    bodies = body_jacobians(model, stack)
    return in_place(parameters.slotine_li_regressors(bodies, rates, stack.order), stack.batch)


def parameter_derivatives(model: TreeModel, stack: MotionStack) -> DynamicMatrices:
    """Return the derivatives of M, C (order + 1, 10 bodies, m, m) and g (order + 1, 10 bodies, m)."""
    found = parameters.parameter_derivatives(body_jacobians(model, stack), stack.order)
    return DynamicMatrices(*(in_place(values, stack.batch) for values in found))
