"""Inverse dynamics of any order in spatial representation: world axes, one reference point for all bodies.

A. Mueller, "An O(n)-algorithm for the higher-order kinematics and inverse dynamics of serial manipulators
using spatial representation of twists" (2020), Algorithms 1 and 3; for trees and floating bases M. Z. Ali et
al., Algorithms 1 and 2. The order is arbitrary here: every line below is a printed one differentiated r times
with the product rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.leibniz import product_derivative
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_world
from hodyn_ros.se3 import Ad, Array, ad, exp_screw, inverse, matvec, spatial_inertia


class SpatialMotion:
    """Poses, twists and joint screws of all bodies with their derivatives, in spatial representation.

    `poses[j]` (..., 4, 4); `twists[j][r]` and `screws[j][r]` (..., 6) for r = 0..order-1 of a motion `q`
    (order + 1, ..., joints).
    """

    def __init__(self, model: TreeModel, q: Array, base: BaseMotion | None) -> None:
        self.poses: list[Array] = []
        self.twists: list[list[Array]] = []
        self.screws: list[list[Array]] = []
        ground = [np.zeros((*q.shape[1:-1], 6))] * (len(q) - 1)
        displacements: list[Array] = []  # F_j: motion away from the zero configuration
        for j, parent in enumerate(model.parents):
            if base is not None and j == 0:
                self.poses.append(base.pose)
                displacements.append(base.pose @ inverse(model.placements[0]))
                self.twists.append(list(base.in_frame("world").twists[: len(q) - 1]))
                self.screws.append([])
                continue
            rates = q[:, ..., model.joint_of(j)]
            joint = exp_screw(model.screws[j], rates[0])
            displacement = joint if parent < 0 else displacements[parent] @ joint
            displacements.append(displacement)
            self.poses.append(displacement @ model.placements[j])
            parent_twists = ground if parent < 0 else self.twists[parent]
            twists, screws = _twists_and_screws(
                matvec(Ad(displacement), model.screws[j]), rates, parent_twists
            )
            self.twists.append(twists)
            self.screws.append(screws)


def _twists_and_screws(
    screw: Array, rates: Array, parent_twists: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """Differentiate `V_j = V_p + S_j q'` and `S_j' = ad_{V_j} S_j` (Mueller 2020, Algorithm 1)."""
    speed = [rate[..., None] for rate in rates[1:]]
    twists: list[Array] = []
    screws: list[Array] = []
    for r in range(len(speed)):
        if r == 0:
            screws.append(screw)
        else:
            screws.append(product_derivative([ad(v) for v in twists], screws, r - 1))
        twists.append(parent_twists[r] + product_derivative(screws, speed, r, np.multiply))
    return twists, screws


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute joint torques and the base wrench with their time derivatives.

    `q` (order + 3, ..., joints) joint motion; `base` the motion of a floating base, with order + 2 twists;
    `wrenches` applied by the environment. Returns torques (order + 1, ..., joints) [N.m or N] and the wrench
    (order + 1, ..., 6) that the ground (or, with a floating base, the outside) must exert, in the world
    frame. Mueller (2020), Algorithm 3; Ali et al., Algorithm 2.
    """
    orders = range(len(q) - 2)
    batch = q.shape[1:-1]
    motion = SpatialMotion(model, q, base)
    weight = np.concatenate([np.zeros(3), model.gravity])
    inertias = spatial_inertia(model.masses, model.coms, model.inertias)

    transmitted = []
    for j in range(model.n_bodies):
        twists = motion.twists[j]
        transport = Ad(inverse(motion.poses[j]))
        inertia = _inertia_derivatives(np.swapaxes(transport, -1, -2) @ inertias[j] @ transport, twists)
        # W_j = Pi_j' - W_app - W_grav with Pi_j = M_j V_j
        transmitted.append(
            [product_derivative(inertia, twists, r + 1) - matvec(inertia[r], weight) for r in orders]
        )
    for wrench in wrenches:
        j = model.body_index(wrench.body)
        values = wrench.up_to(orders[-1])
        if wrench.frame == "body":
            values = _to_world(motion, j, values)
        transmitted[j] = [w - value for w, value in zip(transmitted[j], values)]

    torques = np.zeros((len(orders), *batch, model.n_joints))
    ground = np.zeros((len(orders), *batch, 6))
    for j in reversed(range(model.n_bodies)):
        parent = model.parents[j]
        if motion.screws[j]:
            for r in orders:
                torques[r][..., model.joint_of(j)] = product_derivative(
                    motion.screws[j], transmitted[j], r, _dot
                )
        for r in orders:
            if parent < 0:
                ground[r] += transmitted[j][r]
            else:
                transmitted[parent][r] = transmitted[parent][r] + transmitted[j][r]
    return torques, ground


def _inertia_derivatives(inertia: Array, twists: Sequence[Array]) -> list[Array]:
    """Differentiate `M' = -M ad_V - ad_V^T M`, once for every twist given (Mueller 2020, section III)."""
    brackets = [ad(twist) for twist in twists]
    result = [inertia]
    for r in range(len(twists) - 1):
        half = product_derivative(result, brackets, r, np.matmul)
        result.append(-half - np.swapaxes(half, -1, -2))
    return result


def _to_world(motion: SpatialMotion, body: int, values: Array) -> Array:
    """Move a wrench with derivatives from body axes to world axes."""
    body_twists = twists_to_body(motion.poses[body], motion.twists[body])
    return wrenches_to_world(motion.poses[body], body_twists, values)


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("...i,...i->...", a, b)
