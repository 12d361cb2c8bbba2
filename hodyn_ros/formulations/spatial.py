"""Inverse dynamics of any order in spatial representation: world axes, one reference point for all bodies.

A. Mueller, "An O(n)-algorithm for the higher-order kinematics and inverse dynamics of serial manipulators
using spatial representation of twists" (2020), Algorithms 1 and 3; for trees and floating bases A. Ali et
al., Algorithms 1 and 2. The order is arbitrary here: every line below is a printed one differentiated r times
with the product rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.formulations.transmission import inertia_derivatives, transmitted
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, ad, exp_screw, inverse, matvec, spatial_inertia
from hodyn_ros.model.tree import TreeModel


class SpatialMotion:
    """Poses, twists and joint screws of all bodies with their derivatives, in spatial representation.

    For a motion `q` (order + 1, ..., joints): `poses[j]` (..., 4, 4); `twists[j][r]` (..., 6) for r =
    0..order-1; `screws[j][r]` (..., 6) for r = 0..order, none of a floating base. The base needs `order`
    twists. All twists are about one point, so there are no `transports`.
    """

    def __init__(self, model: TreeModel, q: Array, base: BaseMotion | None) -> None:
        self._model = model
        self._base_twists = None if base is None else base.in_representation("spatial").twists
        self._speeds: list[Array] = []
        self._brackets: list[list[Array]] = [[] for _ in model.parents]
        self._at_rest = np.zeros((*q.shape[1:-1], 6))
        self.poses: list[Array] = []
        self.twists: list[list[Array]] = [[] for _ in model.parents]
        self.screws: list[list[Array]] = [[] for _ in model.parents]
        self.transports: list[list[Array]] = [[] for _ in model.parents]
        displacements: list[Array] = []  # F_j: motion away from the zero configuration
        for j, parent in enumerate(model.parents):
            if base is not None and j == 0:
                self.poses.append(base.pose)
                displacements.append(base.pose @ inverse(model.placements[0]))
                continue
            joint = exp_screw(model.screws[j], q[0][..., model.joint_of(j)])
            displacements.append(joint if parent < 0 else displacements[parent] @ joint)
            self.poses.append(displacements[j] @ model.placements[j])
            self.screws[j].append(matvec(Ad(displacements[j]), model.screws[j]))
        for speed in q[1:]:
            self.extend(speed)

    def extend(self, speed: Array, base_twist: Array | None = None) -> None:
        """Go one order higher with the next derivative (..., joints) of the joint motion.

        `base_twist` (..., 6): the next of a floating base, where it was not known at the beginning.
        Differentiates `V_j = V_p + S_j q'` and `S_j' = ad_{V_j} S_j` (Mueller 2020, Algorithms 1 and 2).
        """
        order = len(self._speeds)
        self._speeds.append(speed)
        for j, parent in enumerate(self._model.parents):
            if self._base_twists is not None and j == 0:
                self.twists[j].append(self._base_twists[order] if base_twist is None else base_twist)
                continue
            speeds = [rates[..., self._model.joint_of(j), None] for rates in self._speeds]
            twist = product_derivative(self.screws[j], speeds, order, np.multiply)
            self.twists[j].append(twist + (self._at_rest if parent < 0 else self.twists[parent][order]))
            self._brackets[j].append(ad(self.twists[j][order]))
            self.screws[j].append(product_derivative(self._brackets[j], self.screws[j], order))


def inverse_dynamics(
    model: TreeModel, q: Array, base: BaseMotion | None = None, wrenches: Sequence[AppliedWrench] = ()
) -> tuple[Array, Array]:
    """Compute torques and the base wrench with their derivatives; arguments as `transmission` says.

    Mueller (2020), Algorithm 3; Ali et al., Algorithm 2.
    """
    orders = range(len(q) - 2)
    motion = SpatialMotion(model, q, base)
    weight = np.concatenate([np.zeros(3), model.gravity])
    inertias = spatial_inertia(model.masses, model.coms, model.inertias)

    needed = []
    for j in range(model.n_bodies):
        twists = motion.twists[j]
        inertia = inertia_derivatives(inertias[j], motion.poses[j], twists)
        # W_j = Pi_j' - W_app - W_grav with Pi_j = M_j V_j
        needed.append(
            [product_derivative(inertia, twists, r + 1) - matvec(inertia[r], weight) for r in orders]
        )
    return transmitted(model, motion, "spatial", needed, wrenches, q.shape[1:-1])
