"""From the drives to the platform: forward kinematics of any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import check_result
from hodyn_ros.errors import ConvergenceError, InputError
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.parallel.drive_forces import check_holding
from hodyn_ros.parallel.geometry import follow
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.parallel.reference import inverse_kinematics_jacobians, limb_motions
from hodyn_ros.se3 import Array, exp

_ITERATIONS = 100
_TOLERANCE = 1e-13  # [rad], and of the length of the platform
_PATIENCE = 20  # steps that may bring the drives no nearer to where they should be
_LONGEST = 0.2  # step [rad], and of the length of the platform
_INCONSISTENT = 1e-9  # share of a motion of redundant drives that the platform may fail to follow


class PlatformMotion(NamedTuple):
    """Pose (4, 4) of the platform in the world [m], and its twists by order (orders, 6)."""

    pose: Array
    twists: Array


def platform_pose(model: ParallelModel, drives: Array, pose: Array, positions: Array) -> tuple[Array, Array]:
    """Find the pose (4, 4) at which the driven joints have the positions `drives` (driven,).

    Newton's method from `pose` with the joint positions `positions` (N,) of all limbs there, in short steps,
    so that the assembly mode nearest to it is found. Returns pose and joint positions. Raises
    ConvergenceError, SingularError.
    """
    length = model.length
    task = np.repeat([1.0, 1.0 / length], 3)
    unit = np.array([1.0 if _turns(model, i) else 1.0 / length for i in model.driven])
    best, stalled = np.inf, 0
    for _ in range(_ITERATIONS):
        missing = unit * (drives - positions[list(model.driven)])
        size = float(np.abs(missing).max())
        motions = limb_motions(model, positions, np.zeros((0, 6)))
        jacobian = inverse_kinematics_jacobians(model, motions, 0)[0]
        check_holding(jacobian)
        step = np.linalg.lstsq(unit[:, None] * jacobian, missing, rcond=None)[0]
        twist = model.dof @ step
        check_result(twist)
        longest = float(np.abs(task * twist).max())
        if longest <= _TOLERANCE or (size < 1e-9 and size > 0.5 * best):
            if size > 1e-9:
                raise InputError(
                    f"the positions of the {model.n_driven} drives contradict each other by {size:.3g}: no "
                    f"pose of a platform with {model.delta} degrees of freedom has them all"
                )
            return pose, positions
        stalled = 0 if size < best else stalled + 1
        if stalled > _PATIENCE:
            break
        best = min(best, size)
        target = pose @ exp(twist * min(1.0, _LONGEST / longest))
        positions = follow(model, pose, positions, target)
        pose = target
    raise ConvergenceError(
        "no pose was found near the last one at which the drives are where they should be; the nearest "
        f"found is off by {size:.3g}. Give a start nearer to it, or positions within the workspace",
        size,
        size * length,
    )


def platform_twists(model: ParallelModel, positions: Array, rates: Array) -> Array:
    """Return body-fixed twists (orders, 6) from derivatives (orders, driven) of the driven joints.

    `J_IK V_t^(r) = theta_a^(r+1) - sum_(k>0) C(r,k) J_IK^(k) V_t^(r-k)`. Raises InputError where redundant
    drives contradict each other, SingularError at a singular pose.
    """
    found: list[Array] = []
    for r, rate in enumerate(rates):
        twists = np.stack([model.dof @ velocity for velocity in found]) if found else np.zeros((0, 6))
        jacobians = inverse_kinematics_jacobians(model, limb_motions(model, positions, twists), r)
        check_holding(jacobians[0])
        missing = rate - product_derivative(jacobians, [*found, np.zeros(model.delta)], r)
        velocity = np.linalg.lstsq(jacobians[0], missing, rcond=None)[0]
        lost = np.linalg.norm(missing - jacobians[0] @ velocity)
        if lost > _INCONSISTENT * max(float(np.linalg.norm(missing)), float(np.linalg.norm(rate))):
            raise InputError(
                f"derivative {r + 1} of the positions of the drives is not one that the platform can follow: "
                f"the {model.n_driven} drives contradict each other"
            )
        found.append(velocity)
    return np.array(found).reshape(-1, model.delta) @ model.dof.T


def _turns(model: ParallelModel, joint: int) -> bool:
    screws = np.concatenate([limb.chain.screws for limb in model.limbs])
    return bool(screws[joint, :3].any())
