"""What follows from how bodies move, at many digits: Jacobians, matrices, momentum of any robot.

A robot is its bodies and, for each coordinate, how these move when it alone changes. What closes its loops is
not seen here: by the principle of virtual power all follows from the bodies. Of body i with twist V_i and
inertia M_i, body-fixed, and columns J_i that take the velocities v to V_i,

    M = sum J_i^T M_i J_i,   C = sum J_i^T (M_i J_i' + (M_i ad(V_i) - ad(V_i)^T M_i) J_i),   g = dV/dy.

All are power series of time, the power on axis 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oracles import mp_dynamics as mp
from oracles.mp_dynamics import Exact
from oracles.random_trees import Array, Tree


@dataclass(frozen=True, eq=False)
class Bodies:
    """Poses of all bodies by body (terms, 3, 4) and positions of all joints (terms, joints)."""

    poses: list[Exact]
    joints: Exact


@dataclass(frozen=True, eq=False)
class Moving:
    """Bodies along a motion, what a change of each coordinate does to them, and velocities (terms - 1, m).

    `changed`: derivatives of poses and joints by each coordinate, at every time of the motion.
    """

    now: Bodies
    changed: list[Bodies]
    velocities: Exact

    @cached_property
    def columns(self) -> list[Exact]:
        """What takes velocities to the body-fixed twist (terms, 6, m), by body."""
        return [self.jacobian(body, "body_fixed") for body in range(len(self.now.poses))]

    @property
    def by_joints(self) -> Exact:
        """What takes velocities to those of all joints (terms, joints, m)."""
        return np.stack([one.joints for one in self.changed], axis=2)

    def jacobian(self, body: int, representation: str) -> Exact:
        """Return what takes velocities to the twist of a body (terms, 6, m)."""
        pose = self.now.poses[body]
        back = _turned(pose[:, :, :3])
        columns = []
        for one in self.changed:
            change = one.poses[body]
            linear = change[:, :, 3]
            if representation == "body_fixed":
                angular, linear = mp.axis_of(mp.matmul(back, change[:, :, :3])), mp.matmul(back, linear)
            else:
                angular = mp.axis_of(mp.matmul(change[:, :, :3], back))
            if representation == "spatial":
                linear = linear + mp.cross(pose[:, :, 3], angular)
            columns.append(np.concatenate([angular, linear], axis=1))
        return np.stack(columns, axis=2)

    def mass(self, tree: Tree) -> Exact:
        """Return the mass matrix (terms, m, m) with the bodies of a tree."""
        return sum(mp.matmul(_turned(J), _inertia(tree, i) @ J) for i, J in enumerate(self.columns))

    def coriolis(self, tree: Tree) -> Exact:
        """Return the Coriolis matrix (terms - 1, m, m)."""
        total = []
        for i, J in enumerate(self.columns):
            inertia = _inertia(tree, i)
            bracket = _ad(mp.matmul(J[:-1], self.velocities))
            inner = inertia @ bracket - _turned(bracket) @ inertia
            total.append(mp.matmul(_turned(J), inertia @ mp.derivative(J) + mp.matmul(inner, J)))
        return sum(total)

    def gravity(self, tree: Tree) -> Exact:
        """Return what holds the robot against gravity (terms, m)."""
        down = mp.exact(tree.gravity)
        columns = []
        for one in self.changed:
            columns.append(
                -sum(pose @ mp.second_moment(tree, i)[:, 3] @ down for i, pose in enumerate(one.poses))
            )
        return np.stack(columns, axis=1)

    def com(self, tree: Tree) -> Exact:
        """Return the centre of mass (terms, 3)."""
        return _com(tree, self.now)

    def com_jacobian(self, tree: Tree) -> Exact:
        """Return what takes velocities to that of the centre of mass (terms, 3, m)."""
        return np.stack([_com(tree, one) for one in self.changed], axis=2)

    def momentum_matrix(self, tree: Tree) -> Exact:
        """Return what takes velocities to the momentum about the centre of mass (terms, 6, m)."""
        com, total = self.com(tree), []
        for i, pose in enumerate(self.now.poses):
            momentum = _inertia(tree, i) @ self.columns[i]  # body-fixed, about the body's origin
            turn = pose[:, :, :3]
            moment, force = mp.matmul(turn, momentum[:, :3]), mp.matmul(turn, momentum[:, 3:])
            lever = pose[:, :, 3] - com
            moment = moment + np.stack(
                [mp.cross(lever, force[:, :, j]) for j in range(force.shape[2])], axis=2
            )
            total.append(np.concatenate([moment, force], axis=1))
        return sum(total)

    def forces(self, tree: Tree, velocities: Exact) -> Exact:
        """Return `M w' + C w + g` (terms - 2, m) for a reference w (terms - 1, m), or the velocities."""
        return (
            mp.matmul(self.mass(tree), mp.derivative(velocities))
            + mp.matmul(self.coriolis(tree), velocities)[:-1]
            + self.gravity(tree)[:-2]
        )


def _com(tree: Tree, bodies: Bodies) -> Exact:
    total = sum(pose @ mp.second_moment(tree, i)[:, 3] for i, pose in enumerate(bodies.poses))
    mass = sum(mp.second_moment(tree, i)[3, 3] for i in range(tree.n_bodies))
    return total / mass


def _inertia(tree: Tree, body: int) -> Exact:
    """Return the inertia (6, 6) of a body about its origin."""
    moment = mp.second_moment(tree, body)
    second, first, mass = moment[:3, :3], moment[:3, 3], moment[3, 3]
    eye = mp.exact(np.eye(3))
    lever = mp._hat(first)
    return np.block([[np.trace(second) * eye - second, lever], [-lever, mass * eye]])


def _ad(twists: Exact) -> Exact:
    """Return the brackets (terms, 6, 6) of twists (terms, 6)."""
    zero = mp.exact(np.zeros((3, 3)))
    return np.array(
        [np.block([[mp._hat(V[:3]), zero], [mp._hat(V[3:]), mp._hat(V[:3])]]) for V in twists], dtype=object
    )


def _turned(matrices: Exact) -> Exact:
    return matrices.transpose(0, 2, 1)


def parameters(tree: Tree) -> Array:
    """Return by body mass, its first moment, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the origin."""
    found = []
    for body in range(tree.n_bodies):
        second = mp.to_float(mp.second_moment(tree, body))
        inertia = np.trace(second[:3, :3]) * np.eye(3) - second[:3, :3]
        found += [second[3, 3], *second[:3, 3], *np.diag(inertia), *inertia[[0, 0, 1], [1, 2, 2]]]
    return np.array(found)
