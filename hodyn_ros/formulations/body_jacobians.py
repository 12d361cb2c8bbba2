"""Body-fixed Jacobians of trees whose joints have one to six degrees of freedom, with time derivatives.

G. Garofalo, C. Ott & A. Albu-Schaeffer, "On the closed form computation of the dynamic matrices and their
differentiations" (2013), section VI, here with the angular part first. Their eqs. 28 and 29 are eq. 27
differentiated once and twice; the product rule gives all orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.formulations.joints import velocities
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, inverse_adjoint_derivatives
from hodyn_ros.lie.se3 import Array, ad, exp_screw, matvec
from hodyn_ros.model.joint_tree import JointTree


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Where the joints of a tree are, and their velocities.

    `poses[k]` (..., 4, 4): the element of its group that joint k has reached, the identity at rest.
    `velocities[r]` (..., m): group velocities of all joints and their derivatives by order.
    """

    poses: Sequence[Array]
    velocities: Sequence[Array]

    @property
    def order(self) -> int:
        """Number of velocities that are given."""
        return len(self.velocities)


def joint_motion(tree: JointTree, q: Array, base: BaseMotion | None = None) -> JointMotion:
    """Return the motion of a tree made by `JointTree.of` from `q` (order + 1, ..., joints).

    `base` is the motion of a floating base with `order` twists, one for all samples or one for each; its
    body-fixed twist stands first.
    """
    first = 0 if base is None else 1
    poses = [] if base is None else [base.pose]
    poses += [exp_screw(tree.subspaces[k][:, 0], q[0][..., k - first]) for k in range(first, tree.n_bodies)]
    return JointMotion(poses, velocities(q, base))


class BodyJacobians:
    """Poses, Jacobians and twists of all bodies in motion, in body-fixed representation.

    With `order` velocities: `poses` (..., bodies, 4, 4); `J[r]` (..., bodies, 6, m) for r = 0..order takes
    velocities to body-fixed twists; `V[r]` (..., bodies, 6) for r below order; `T[r]` (..., bodies, 6, 6),
    the derivatives of `Ad_{C_pk}^{-1}` that carries twists from the parent, and `U[r]` (..., bodies, 6, 6)
    those of `Ad_{C_k}^{-1}`, from the world, for r = 0..order. `joint_twists[r]` (..., bodies, 6): relative
    to the parent.
    """

    def __init__(self, tree: JointTree, motion: JointMotion) -> None:
        self.tree = tree
        self.motion = motion
        orders = range(motion.order + 1)
        batch = np.broadcast_shapes(
            *(pose.shape[:-2] for pose in motion.poses), *(w.shape[:-1] for w in motion.velocities)
        )
        self.batch = batch
        twists = [np.zeros((*batch, tree.n_bodies, 6)) for _ in motion.velocities]
        poses: list[Array] = []
        relative: list[Array] = []
        for k, parent in enumerate(tree.parents):
            for twist, w in zip(twists, motion.velocities):
                twist[..., k, :] = matvec(tree.subspaces[k], w[..., tree.columns[k]])
            relative.append(np.broadcast_to(tree.references[k] @ motion.poses[k], (*batch, 4, 4)))
            poses.append(relative[k] if parent < 0 else poses[parent] @ relative[k])
        self.joint_twists = twists
        self.T = inverse_adjoint_derivatives(np.stack(relative, axis=-3), twists, motion.order)
        self.J = [np.zeros((*batch, tree.n_bodies, 6, tree.n_velocities)) for _ in orders]
        for k, parent in enumerate(tree.parents):
            if parent >= 0:
                above = [J[..., parent, :, :] for J in self.J]
                transports = [T[..., k, :, :] for T in self.T]
                for r in orders:
                    self.J[r][..., k, :, :] = product_derivative(transports, above, r, np.matmul)
            self.J[0][..., k, :, tree.columns[k]] = tree.subspaces[k]
        self.V = [np.zeros((*batch, tree.n_bodies, 6)) for _ in orders[:-1]]
        for r in orders[:-1]:
            self.V[r] += product_derivative(self.J, [w[..., None, :] for w in motion.velocities], r)
        self.poses = np.stack(poses, axis=-3)
        self.U = inverse_adjoint_derivatives(self.poses, self.V, motion.order)

    @property
    def brackets(self) -> list[Array]:
        """The matrices `ad_{V_k}` (..., bodies, 6, 6) and their derivatives by order."""
        return [ad(twist) for twist in self.V]
