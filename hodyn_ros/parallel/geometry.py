"""Geometric inverse kinematics: joint positions of all limbs from the pose of the platform."""

from __future__ import annotations

import numpy as np

from hodyn_ros.checks import check_result
from hodyn_ros.dynamics.pose_solver import solve_pose
from hodyn_ros.errors import ConvergenceError
from hodyn_ros.parallel.limb import LimbModel
from hodyn_ros.parallel.limb_kinematics import limb_jacobian, limb_pose
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.se3 import Array, exp, inverse, log

_TOLERANCE = 1e-13  # [rad], and of the length of the platform
_ITERATIONS = 12
_STRIDE = 0.2  # [rad], and of the size of the robot: the longest way taken in one step
_MOST_STEPS = 30  # beyond, steps become longer


def close_limbs(model: ParallelModel, pose: Array, seed: Array) -> Array:
    """Find joint positions (N,) of all limbs for a platform pose (4, 4), from a seed (N,).

    Newton's method limb by limb; the seed selects the branch. Raises ConvergenceError naming the limb that
    does not reach the platform, with the angle [rad] and the distance [m] that are missing.
    """
    result = np.empty(model.n_joints)
    for limb, part in zip(model.limbs, model.slices):
        result[part] = _close(limb, pose, seed[part], model.length)
    return result


def follow(model: ParallelModel, start: Array, positions: Array, pose: Array) -> Array:
    """Find joint positions (N,) for a pose, going there from the pose `start` with its joint positions.

    The way is divided into steps so short that the limbs stay on their branch.
    """
    way = log(inverse(start) @ pose)
    check_result(way)
    longest = max(float(np.linalg.norm(way[:3])), float(np.linalg.norm(way[3:])) / model.size)
    steps = max(1, int(np.ceil(min(_MOST_STEPS, longest / _STRIDE))))
    for i in range(1, steps):
        positions = close_limbs(model, start @ exp(way * (i / steps)), positions)
    return close_limbs(model, pose, positions)


def _close(limb: LimbModel, pose: Array, seed: Array, length: float) -> Array:
    scale = np.repeat([1.0, 1.0 / length], 3)
    positions, best = seed, np.inf
    for _ in range(_ITERATIONS):
        error = log(inverse(limb_pose(limb, positions)) @ pose)
        size = float(np.linalg.norm(scale * error))
        if size > 0.5 * best:
            break
        best = size
        step = np.linalg.lstsq(scale[:, None] * limb_jacobian(limb, positions), scale * error, rcond=None)[0]
        if size <= _TOLERANCE:
            return np.asarray(positions + step)
        if np.abs(step).max() > 1.0:
            break
        positions = positions + step
    try:  # slower, but from farther away
        return solve_pose(
            limb.serial_chain,
            pose,
            seed,
            None,
            movable=list(range(limb.n_joints)),
            weights=np.ones(limb.n_joints),
            task="pose",
        )
    except ConvergenceError as error:
        raise ConvergenceError(
            f"limb {limb.name!r} does not reach the platform: the nearest found is off by {error.angle:.3g} "
            f"rad and {error.distance:.3g} m; give a pose within the workspace, or a seed nearer to it",
            error.angle,
            error.distance,
        ) from None
