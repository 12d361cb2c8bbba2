"""Inverse dynamics of a parallel robot as published, for any order and readable; it defines what is right.

Mueller et al., sections III and V. The compiled kernels give the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.formulations import spatial
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.motion import inverse_adjoint_derivatives
from hodyn_ros.parallel.drive_forces import drive_forces
from hodyn_ros.parallel.limb_kinematics import LimbMotion
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.se3 import Array, ad, matvec


@dataclass(frozen=True, eq=False)
class TaskSpace:
    """What drives have to balance in task space, by derivative order: `J_IK^T u = force` (eq. 14)."""

    force: Array  # (order + 1, delta)
    jacobians: Array  # (order + 1, driven, delta) inverse kinematics Jacobian J_IK (eq. 9)


def limb_motions(model: ParallelModel, positions: Array, twists: Array) -> list[LimbMotion]:
    """Return the motion of every limb from joint positions and body-fixed twists of the platform."""
    return [
        LimbMotion(limb, positions[part], twists, model.length)
        for limb, part in zip(model.limbs, model.slices)
    ]


def joint_motion(motions: Sequence[LimbMotion]) -> Array:
    """Return positions and derivatives (orders + 1, N) of the joints of all limbs."""
    return np.concatenate([motion.joints for motion in motions], axis=1)


def inverse_kinematics_jacobians(model: ParallelModel, motions: Sequence[LimbMotion], order: int) -> Array:
    """Return `J_IK` (order + 1, driven, delta) with `theta_a' = J_IK V_t`; eq. 9 and section V-B."""
    rows = [
        np.stack(motion.inverse_jacobians(model.dof, order))[:, list(motion.limb.driven)]
        for motion in motions
        if motion.limb.driven
    ]
    return np.concatenate(rows, axis=1)


def task_space(
    model: ParallelModel, motions: Sequence[LimbMotion], pose: Array, twists: Array, applied: Array
) -> TaskSpace:
    """Return the force in task space and `J_IK`, with derivatives up to that of `applied`.

    `twists` (order + 2, 6) body-fixed; `applied` (order + 1, 6) the wrench of the environment on the platform
    in its frame.
    """
    order = len(applied) - 1
    force = platform_wrench(model, pose, twists, order) - applied
    force = force @ model.dof
    for motion in motions:
        cut = motion.limb.cut
        if cut is not None:
            n = cut.n_joints
            # generalised forces of the limb cut from the platform, eq. 10
            torques, _ = spatial.inverse_dynamics(cut, motion.joints[: order + 3, :n])
            transposed = [F[:n].T for F in motion.inverse_jacobians(model.dof, order)]
            force = force + np.stack([product_derivative(transposed, torques, r) for r in range(order + 1)])
    return TaskSpace(force, inverse_kinematics_jacobians(model, motions, order))


def platform_wrench(model: ParallelModel, pose: Array, twists: Array, order: int) -> Array:
    """Return the wrench that moves the platform and holds its weight, (order + 1, 6) in its frame.

    `M V' - ad_V^T M V - M Ad^-1 (0; g)` and its derivatives.
    """
    inertia = model.platform.spatial_inertia
    momenta = [inertia @ twist for twist in twists]
    brackets = [-ad(twist).T for twist in twists]
    weight = np.concatenate([np.zeros(3), model.gravity])
    adjoints = inverse_adjoint_derivatives(pose, list(twists), order)
    return np.stack(
        [
            momenta[r + 1]
            + product_derivative(brackets, momenta, r, matvec)
            - inertia @ (adjoints[r] @ weight)
            for r in range(order + 1)
        ]
    )


def inverse_dynamics(
    model: ParallelModel, positions: Array, pose: Array, twists: Array, applied: Array, preload: Array
) -> Array:
    """Return the driven forces (order + 1, driven) and their derivatives; eqs. 14, 19 and 20."""
    motions = limb_motions(model, positions, twists)
    task = task_space(model, motions, pose, twists, applied)
    return drive_forces(task.jacobians, task.force, preload)
