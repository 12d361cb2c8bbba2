"""The equations of motion in closed form, `Q = M q'' + C q' + Q_grav`, and their derivatives of any order.

S. Kumar and A. Mueller, "Nth order analytical time derivatives of inverse dynamics in recursive and closed
forms" (2021), section III, in body-fixed representation, extended to trees and floating bases: the velocities
q' then begin with the body-fixed twist of the base, and the forces Q with the wrench on it. The system
Jacobian J of eq. 22 has the body Jacobians of all bodies below each other, so that M, C and Q_grav of eqs. 39
to 43 are the sums over bodies of `dynamic_matrices`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.formulations.body_jacobians import BodyJacobians, joint_motion
from hodyn_ros.formulations.dynamic_matrices import coriolis_matrices, gravity_forces, mass_matrices
from hodyn_ros.formulations.joints import velocities
from hodyn_ros.lie.leibniz import product_derivatives
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, wrenches_to_body, wrenches_to_world
from hodyn_ros.lie.se3 import Array, transposed
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute torques and the base wrench with their derivatives; arguments as `transmission` says.

    Kumar & Mueller (2021), eqs. 1 and 45. What the ground exerts on a fixed base is none of these forces.
    """
    count, tree = len(q) - 2, JointTree.of(model)
    bodies, rates = BodyJacobians(tree, joint_motion(tree, q[:-1], base)), velocities(q, base)
    forces = np.stack(gravity_forces(bodies, count - 1))
    forces = forces + product_derivatives(mass_matrices(bodies, count - 1), rates[1:], count)
    forces = forces + product_derivatives(coriolis_matrices(bodies, count - 1), rates, count)
    for wrench in wrenches:
        k, values = model.body_index(wrench.body), wrench.up_to(count - 1)
        if wrench.representation == "spatial":
            twists = [V[..., k, :] for V in bodies.V]
            values = wrenches_to_body(bodies.poses[..., k, :, :], twists, values)
        jacobians = transposed(J[..., k, :, :] for J in bodies.J)
        forces = forces - product_derivatives(jacobians, values, count)
    if base is None:
        return forces, np.zeros((*forces.shape[:-1], 6))
    ground = wrenches_to_world(base.pose, [V[..., 0, :] for V in bodies.V], forces[..., :6])
    return forces[..., 6:], ground
