"""Inverse dynamics of any order in body-fixed representation: body axes, body origins.

S. Kumar and A. Mueller, "Nth order analytical time derivatives of inverse dynamics in recursive and closed
forms" (2021), section II, extended to trees and floating bases. The twists are differentiated through eq. 4
with the product rule, which is linear in the number of bodies; the printed way through all screws B_ij is
quadratic and gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.formulations.joints import body_fixed_screw, relative_pose
from hodyn_ros.formulations.transmission import transmitted
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, ad, inverse, matvec, spatial_inertia, transposed
from hodyn_ros.model.tree import TreeModel


class BodyFixedMotion:
    """Poses, twists and transports of all bodies with their derivatives, in body-fixed representation.

    `poses[j]` (..., 4, 4); `twists[j][r]` (..., 6) and `transports[j][r]` (..., 6, 6), the derivatives of
    `Ad_{C_{j,parent}}`, for r = 0..order-1 of a motion `q` (order + 1, ..., joints); `screws[j]` the constant
    one (6,) and its derivatives, none of a floating base.
    """

    def __init__(self, model: TreeModel, q: Array, base: BaseMotion | None) -> None:
        self.poses: list[Array] = []
        self.twists: list[list[Array]] = []
        self.transports: list[list[Array]] = []
        self.screws: list[list[Array]] = []
        for j, parent in enumerate(model.parents):
            if base is not None and j == 0:
                self.poses.append(base.pose)
                self.twists.append(list(base.in_representation("body_fixed").twists[: len(q) - 1]))
                self.transports.append([])
                self.screws.append([])
                continue
            rates = q[:, ..., model.joint_of(j)]
            screw = body_fixed_screw(model, j)
            relative = relative_pose(model, j, rates[0])  # C_{parent,j}
            self.poses.append(relative if parent < 0 else self.poses[parent] @ relative)
            transports = _transport_derivatives(Ad(inverse(relative)), screw, rates)
            twists = [screw * rate[..., None] for rate in rates[1:]]
            if parent >= 0:
                above = self.twists[parent]
                twists = [v + product_derivative(transports, above, r) for r, v in enumerate(twists)]
            self.twists.append(twists)
            self.transports.append(transports)
            self.screws.append([screw, *[np.zeros(6)] * (len(q) - 1)])


def _transport_derivatives(transport: Array, screw: Array, rates: Array) -> list[Array]:
    """Differentiate `Ad_{C_{i,i-1}}' = -q' ad_X Ad_{C_{i,i-1}}` (Kumar & Mueller, section II-D)."""
    bracket = ad(screw)
    speed = [rate[..., None, None] for rate in rates[1:]]
    result = [transport]
    for r in range(len(speed) - 1):
        result.append(-bracket @ product_derivative(result, speed, r, np.multiply))
    return result


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute torques and the base wrench with their derivatives; arguments as `transmission` says.

    Kumar & Mueller (2021), eqs. 13 and 19.
    """
    orders = range(len(q) - 2)
    motion = BodyFixedMotion(model, q, base)
    inertias = spatial_inertia(model.masses, model.coms, model.inertias)
    gravity = _gravity_in_bodies(model, motion, len(orders))

    needed = []
    for j in range(model.n_bodies):
        twists = motion.twists[j]
        brackets = transposed(map(ad, twists))
        momenta = [matvec(inertias[j], v) for v in twists]
        # W_j = M_j (V_j' - (0; g)) - ad_{V_j}^T M_j V_j
        needed.append(
            [
                momenta[r + 1] - matvec(inertias[j], gravity[j][r]) - product_derivative(brackets, momenta, r)
                for r in orders
            ]
        )
    return transmitted(model, motion, "body_fixed", needed, wrenches, q.shape[1:-1])


def _gravity_in_bodies(model: TreeModel, motion: BodyFixedMotion, orders: int) -> list[list[Array]]:
    """Return `(0; R_j^T g)` of every body with derivatives; transports move it like a twist."""
    result: list[list[Array]] = []
    weight = np.concatenate([np.zeros(3), model.gravity])
    for j, parent in enumerate(model.parents):
        if not motion.transports[j]:
            result.append(_gravity_in_base(weight, motion, orders))
        elif parent < 0:
            result.append([matvec(motion.transports[j][r], weight) for r in range(orders)])
        else:
            result.append(product_derivatives(motion.transports[j], result[parent], orders))
    return result


def _gravity_in_base(weight: Array, motion: BodyFixedMotion, orders: int) -> list[Array]:
    """Differentiate `(R^T g)' = -omega × R^T g` in a floating base."""
    result = [np.concatenate([np.zeros(3), motion.poses[0][:3, :3].T @ weight[3:]])]
    brackets = [-ad(twist) for twist in motion.twists[0]]
    for r in range(orders - 1):
        result.append(product_derivative(brackets, result, r))
    return result
