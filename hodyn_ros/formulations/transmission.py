"""How wrenches go from the tips of a tree to the ground: the same recursion in every representation.

`inverse_dynamics(model, q, base, wrenches)` of each formulation takes the joint motion `q` (order + 3, ...,
joints), the motion `base` of a floating base, with order + 2 twists, and `wrenches` applied by the
environment. It returns torques (order + 1, ..., joints) [N.m or N] and the wrench (order + 1, ..., 6) that
the ground (or, with a floating base, the outside) must exert, in the world frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import AppliedWrench
from hodyn_ros.lie.representations import Representation, convert_screws, convert_wrenches
from hodyn_ros.lie.se3 import Ad, Array, ad, dot, inverse, transposed
from hodyn_ros.model.tree import TreeModel


class Motion(Protocol):
    """The motion of all bodies in one representation, each with its derivatives by order."""

    poses: list[Array]  # (..., 4, 4)
    twists: list[list[Array]]  # (..., 6)
    screws: list[list[Array]]  # (..., 6) of joints, none of a floating base
    transports: list[list[Array]]  # (..., 6, 6) of twists from the parent; none where all share one frame


def transmitted(
    model: TreeModel,
    motion: Motion,
    representation: Representation,
    needed: list[list[Array]],
    wrenches: Sequence[AppliedWrench],
    batch: tuple[int, ...],
) -> tuple[Array, Array]:
    """Return torques and the wrench of the ground from what bodies need to move alone, by order."""
    orders = range(len(needed[0]))
    for wrench in wrenches:
        j = model.body_index(wrench.body)
        pose, twists, source = motion.poses[j], motion.twists[j], wrench.representation
        own = convert_screws(twists, pose, twists, representation, source)
        values = convert_wrenches(wrench.up_to(orders[-1]), pose, own, source, representation)
        needed[j] = [w - value for w, value in zip(needed[j], values)]

    torques = np.zeros((len(orders), *batch, model.n_joints))
    ground = np.zeros((len(orders), *batch, 6))
    for j in reversed(range(model.n_bodies)):
        parent = model.parents[j]
        if motion.screws[j]:
            for r in orders:
                torques[r][..., model.joint_of(j)] = product_derivative(motion.screws[j], needed[j], r, dot)
        if parent < 0:
            pose, twists = motion.poses[j], motion.twists[j]
            ground += convert_wrenches(needed[j], pose, twists, representation, "spatial")
            continue
        carried = needed[j]
        if motion.transports[j]:
            carried = product_derivatives(transposed(motion.transports[j]), needed[j], len(orders))
        needed[parent] = [w + other for w, other in zip(needed[parent], carried)]
    return torques, ground


def inertia_derivatives(body_inertia: Array, pose: Array, twists: Sequence[Array]) -> list[Array]:
    """Return `M = Ad_C^{-T} M^b Ad_C^{-1}` and its derivatives, (..., 6, 6), one per twist.

    `body_inertia` (6, 6) is constant in a frame with pose C (..., 4, 4) that moves with the spatial `twists`
    (..., 6) by order: `M' = -M ad_V - ad_V^T M`. Mueller (2020), eqs. 13 and 14.
    """
    transport = Ad(inverse(pose))
    brackets = [ad(twist) for twist in twists]
    result: list[Array] = [np.swapaxes(transport, -1, -2) @ body_inertia @ transport]
    for r in range(len(twists) - 1):
        half = product_derivative(result, brackets, r, np.matmul)
        result.append(-half - np.swapaxes(half, -1, -2))
    return result
