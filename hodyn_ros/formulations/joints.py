"""Joints as body-fixed formulations see them: a constant screw, and a pose on the parent.

S. Kumar and A. Mueller, "Nth order analytical time derivatives of inverse dynamics in recursive and closed
forms" (2021), section II-A.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, exp_screw, inverse, matvec
from hodyn_ros.model.tree import TreeModel


def body_fixed_screw(model: TreeModel, body: int) -> Array:
    """Return the screw `X_i` (6,) of the joint that moves a body, in the frame of that body; constant."""
    return matvec(Ad(inverse(model.placements[body])), model.screws[body])


def relative_pose(model: TreeModel, body: int, coordinate: Array) -> Array:
    """Return `C_{i-1,i} = B_i exp(X_i q_i)` (..., 4, 4), a body in the frame of its parent, or in the world.

    `coordinate` (...) [rad or m] of the joint that moves the body.
    """
    parent = model.parents[body]
    reference = np.eye(4) if parent < 0 else model.placements[parent]
    motion = exp_screw(body_fixed_screw(model, body), coordinate)
    pose: Array = inverse(reference) @ model.placements[body] @ motion
    return pose


def velocities(q: Array, base: BaseMotion | None = None) -> list[Array]:
    """Return the velocities (..., m) and their derivatives by order, from `q` (order + 1, ..., joints).

    The body-fixed twist of a floating base, one for all samples or one for each, stands before the rates.
    """
    rates = list(q[1:])
    if base is None:
        return rates
    twists = np.moveaxis(base.in_representation("body_fixed").twists, -2, 0)
    return [
        np.concatenate([np.broadcast_to(twist, (*rate.shape[:-1], 6)), rate], axis=-1)
        for twist, rate in zip(twists, rates)
    ]
