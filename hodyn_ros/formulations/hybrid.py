"""Inverse dynamics of any order in hybrid representation: world axes, body origins.

A. Mueller, "Recursive second-order inverse dynamics for serial manipulators" (2017), and "Screw and Lie group
theory in multibody dynamics: recursive algorithms and equations of motion of tree-topology systems" (2018),
extended to any order and to floating bases by the product rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.formulations.joints import body_fixed_screw, relative_pose
from hodyn_ros.formulations.transmission import inertia_derivatives, transmitted
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import (
    Representation,
    angular_part,
    convert_screws,
    linear_part,
    shifting,
    turning,
)
from hodyn_ros.lie.se3 import Ad, Array, ad, matvec, spatial_inertia, transposed
from hodyn_ros.model.tree import TreeModel


class HybridMotion:
    """Poses, twists, joint screws and transports of all bodies with derivatives, in hybrid representation.

    For a motion `q` (order + 1, ..., joints): `poses[j]` (..., 4, 4); `twists[j][r]` (..., 6) for r =
    0..order-1; `screws[j][r]` (..., 6) and `transports[j][r]` (..., 6, 6), the derivatives of `Ad_{r_{j,p}}`
    with the vector `r_{j,p} = p_p - p_j` to the origin of the parent, for r = 0..order. A floating base has
    neither screws nor transports.
    """

    def __init__(self, model: TreeModel, q: Array, base: BaseMotion | None) -> None:
        self.poses: list[Array] = []
        self.twists: list[list[Array]] = []
        self.screws: list[list[Array]] = []
        self.transports: list[list[Array]] = []
        at_rest = [np.zeros((*q.shape[1:-1], 6))] * (len(q) - 1)
        for j, parent in enumerate(model.parents):
            if base is not None and j == 0:
                self.poses.append(base.pose)
                source: Representation = base.representation
                of_base = base.twists[: len(q) - 1]
                self.twists.append(list(convert_screws(of_base, base.pose, of_base, source, "hybrid")))
                self.screws.append([])
                self.transports.append([])
                continue
            rates = q[:, ..., model.joint_of(j)]
            above = np.eye(4) if parent < 0 else self.poses[parent]
            pose = above @ relative_pose(model, j, rates[0])
            twists, screws, transports = _twists_screws_and_transports(
                matvec(Ad(turning(pose)), body_fixed_screw(model, j)),
                Ad(shifting(above[..., :3, 3] - pose[..., :3, 3])),
                rates,
                at_rest if parent < 0 else self.twists[parent],
            )
            self.poses.append(pose)
            self.twists.append(twists)
            self.screws.append(screws)
            self.transports.append(transports)


def _twists_screws_and_transports(
    screw: Array, transport: Array, rates: Array, parent_twists: Sequence[Array]
) -> tuple[list[Array], list[Array], list[Array]]:
    """Differentiate `V_j = Ad_{r_{j,p}} V_p + S_j q'` with `S_j' = ad_{(omega_j; 0)} S_j`.

    As `Ad_r` is linear in r, its derivatives are `ad_{(0; r^(k))}`, and `r' = v_p - v_j`.
    """
    speed = [rate[..., None] for rate in rates[1:]]
    twists: list[Array] = []
    turns: list[Array] = []
    screws, transports = [screw], [transport]
    for r in range(len(speed)):
        relative = product_derivative(screws, speed, r, np.multiply)
        twists.append(product_derivative(transports, parent_twists, r) + relative)
        turns.append(ad(angular_part(twists[r])))
        screws.append(product_derivative(turns, screws, r))
        transports.append(ad(linear_part(parent_twists[r] - twists[r])))
    return twists, screws, transports


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute torques and the base wrench with their derivatives; arguments as `transmission` says.

    Mueller (2017), differentiated.
    """
    orders = range(len(q) - 2)
    motion = HybridMotion(model, q, base)
    weight = np.concatenate([np.zeros(3), model.gravity])
    inertias = spatial_inertia(model.masses, model.coms, model.inertias)

    needed = []
    for j in range(model.n_bodies):
        twists = motion.twists[j]
        inertia = inertia_derivatives(
            inertias[j], turning(motion.poses[j]), [angular_part(v) for v in twists]
        )
        momenta = product_derivatives(inertia, twists, len(twists))
        # the momentum is taken about a point that moves: W_j = Pi_j' - ad_{(0; v_j)}^T Pi_j - M_j (0; g)
        brackets = transposed(ad(linear_part(v)) for v in twists)
        needed.append(
            [
                momenta[r + 1] - product_derivative(brackets, momenta, r) - matvec(inertia[r], weight)
                for r in orders
            ]
        )
    return transmitted(model, motion, "hybrid", needed, wrenches, q.shape[1:-1])
