"""Robots of every kind in motion, with the exact efforts of that motion and of those beside it.

One for each kind of robot: trees, mechanisms with loops, platforms on limbs. Coordinates are those of the
robot's matrices: the body-fixed displacement of a base that floats, joints, and the rows of a platform.
Motions are of order `ORDER`; those of lower orders are their first rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hodyn_ros import BaseMotion, ParallelRobot, Robot
from hodyn_ros.lie.se3 import Ad, exp, inverse
from oracles import mp_dynamics as mp
from oracles import mp_loops, mp_parallel
from oracles.changes import displaced
from oracles.differences import derivative, second_derivative
from oracles.mechanisms import Mechanism
from oracles.motions import Base, random_stack
from oracles.mp_bodies import Bodies, Moving
from oracles.mp_dynamics import Exact
from oracles.parallel_robots import Parallel
from oracles.random_trees import Array, Tree, random_tree

ORDER = 2
_DIGITS = 60


class Subject(ABC):
    """A robot in motion.

    `q` (order + 3, n) of the joints that are coordinates, `base` the motion of base or platform with
    body-fixed twists, `directions` (6, c) those that it may have, and `given_by` (6, c) the components that
    are coordinates, `tree` what moves. `pushed`: whether a base moves as given, and the wrench on it is an
    effort.
    """

    q: Array
    base: BaseMotion | None
    tree: Tree
    directions: Array
    given_by: Array
    pushed: bool
    driven: tuple[int, ...]
    closed = True  # by loops or couplings
    symmetric: tuple[int, ...] = ()  # bodies whose turn about an axis nothing holds

    @abstractmethod
    def robot(self) -> Robot:
        """Return the robot at home, of its own."""

    @abstractmethod
    def bodies(self, changes: list[Exact], terms: int) -> list[Bodies]:
        """Return how bodies move where coordinates are larger by each of some changes (m,) at all times."""

    @abstractmethod
    def efforts_along(self, q: Exact, base: Base | None, order: int, tree: Tree) -> Exact:
        """Return efforts (order + 1, efforts) with the bodies of a tree; wrenches on a base in the world."""

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Shape (order + 3, m) of the motion of the coordinates."""
        return len(self.q), self.q.shape[1] + (0 if self.base is None else self.directions.shape[1])

    @cached_property
    def n_efforts(self) -> int:
        """Number of efforts: of drives, and six on a base that is pushed."""
        return len(self.driven) + 6 * self.pushed

    def split(self, rows: Any, directions: Array | None = None) -> tuple[Any, Any]:
        """Return the part of the joints, and that of base or platform as twists (..., 6), by default of those
        that it may have.
        """
        n = self.q.shape[1]
        if self.base is None:
            return rows, rows[..., :0]
        first = rows[..., :6] if self.pushed else rows[..., n:]
        joints = rows[..., 6:] if self.pushed else rows[..., :n]
        return joints, first @ mp.exact(self.directions if directions is None else directions).T

    def joined(self, joints: Array, twists: Array | None) -> Array:
        """Return rows of coordinates from those of joints and body-fixed twists."""
        if twists is None:
            return joints
        rows = twists @ np.linalg.pinv(self.directions).T
        return np.hstack([rows, joints] if self.pushed else [joints, rows])

    @cached_property
    def velocities(self) -> Array:
        """Velocities of the coordinates and their derivatives (order + 2, m)."""
        return self.joined(self.q[1:], None if self.base is None else self.base.twists[: len(self.q) - 1])

    @cached_property
    def moving(self) -> Moving:
        """How all bodies move, and how that changes with each coordinate."""
        m, terms = self.shape[1], len(self.q)
        with mp.digits(_DIGITS):
            step = mp.mpfr(10) ** (-_DIGITS // 3)
            units = mp.exact(np.eye(m)) * step
            now, *beside = self.bodies([0 * units[0], *units, *-units], terms)
            changed = [
                Bodies(
                    [(a - b) / (2 * step) for a, b in zip(one.poses, other.poses, strict=True)],
                    (one.joints - other.joints) / (2 * step),
                )
                for one, other in zip(beside[:m], beside[m:], strict=True)
            ]
        return Moving(now, changed, mp.taylor(mp.exact(self.velocities), terms - 1))

    @property
    def order(self) -> int:
        """The highest order that the motion is enough for."""
        return len(self.q) - 3

    def motion(
        self, changes: Exact | None = None, order: int | None = None, settled: bool = False
    ) -> tuple[Exact, Base | None]:
        """Return the motion where it is larger by changes (orders, m) of the coordinates' derivatives.

        Of a base by a displacement that takes its pose to `pose exp(xi)`, and derivatives of its twist; those
        of a platform as they are given, or `settled` as it can have them.
        """
        order = self.order if order is None else order
        q = mp.exact(self.q[: order + 3])
        if changes is None:
            changes = mp.exact(np.zeros((order + 3, self.shape[1])))
        joints, twists = self.split(changes, self.directions if settled else self.given_by)
        q[: len(joints)] = q[: len(joints)] + joints
        if self.base is None:
            return q, None
        moved = mp.exact(self.base.twists[: order + 2])
        moved[: len(twists) - 1] = moved[: len(twists) - 1] + twists[1:]
        pose = displaced(mp.rigid(self.base.pose), twists[0])
        return q, Base(pose, moved, "body_fixed")

    def efforts(self, changes: Exact | None, order: int, body: bool = True) -> Exact:
        """Return the efforts of such a motion; wrenches on a base body-fixed, or in the world."""
        q, base = self.motion(changes, order)
        found = self.efforts_along(q, base, order, self.tree)
        return self.in_body(found, base) if body else found

    def in_body(self, efforts: Exact, base: Base | None) -> Exact:
        """Return efforts with those on a base in its axes, about its origin."""
        if not self.pushed:
            return efforts
        assert base is not None
        count = len(efforts)
        poses = mp.base_poses(base, mp.taylor(base.twists, count), count)
        wrench = mp.wrench_to_body(poses, mp.taylor(efforts[:, :6], count))
        return np.concatenate([mp.derivatives(wrench), efforts[:, 6:]], axis=1)

    @cached_property
    def exact_efforts(self) -> Exact:
        """The efforts of the motion, wrenches on a base in the world."""
        return self.efforts(None, self.order, body=False)

    @cached_property
    def way(self) -> Array:
        """A direction (order + 3, m) in which all that is given changes."""
        return np.random.default_rng(2).normal(size=self.shape)

    @cached_property
    def slope(self) -> Array:
        """How efforts (order + 1, efforts) change in that direction, those of a base body-fixed."""
        return derivative(lambda step: self.efforts(step * mp.exact(self.way), self.order))

    def curvature(self, order: int) -> Array:
        """Return the second derivative of the efforts in that direction."""
        way = mp.exact(self.way[: order + 3])
        return second_derivative(lambda step: self.efforts(step * way, order))

    def heavier(self) -> Tree:
        """Return the tree with other bodies; those without mass, and such as are symmetric, stay that."""
        rng, tree = np.random.default_rng(11), self.tree
        own = rng.uniform(0.5, 2.0, tree.n_bodies)
        turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        free = np.array([body not in self.symmetric for body in range(tree.n_bodies)]) * tree.masses
        more = turned @ np.diag([0.01, 0.02, 0.015]) @ turned.T * free[:, None, None]
        return replace(
            tree,
            masses=tree.masses * own,
            coms=tree.coms + 0.02 * rng.normal(size=(tree.n_bodies, 3)) * (free > 0.0)[:, None],
            inertias=own[:, None, None] * tree.inertias + more,
        )


class TreeSubject(Subject):
    """A tree, which may float."""

    closed = False

    def __init__(self, seed: int, bodies: int, floats: bool = False, order: int = ORDER) -> None:
        rng = np.random.default_rng(seed)
        self.tree = random_tree(rng, bodies, floating_base=floats)
        self.q = random_stack(rng, order + 3, self.tree.n_joints)
        self.base, self.pushed = None, floats
        self.directions = self.given_by = np.eye(6)
        if floats:
            pose = exp(rng.uniform(-1.0, 1.0, 6))
            self.base = BaseMotion(pose, random_stack(rng, order + 2, 6), representation="body_fixed")
        self.driven = tuple(range(self.tree.n_joints))

    def robot(self) -> Robot:
        return Robot.from_screws(**self.tree.arguments())

    def bodies(self, changes: list[Exact], terms: int) -> list[Bodies]:
        found = []
        for change in changes:
            q, base = self.motion(change[None])
            series, poses = mp.taylor(q, terms), None
            if base is not None:
                # displaced by the same at all times, unlike the motion from another pose
                still = mp.base_poses(self._base, mp.taylor(mp.exact(self._base.twists), terms - 1), terms)
                xi = mp.rigid(displaced(mp.exact(np.eye(4)), self.split(change)[1]))
                poses = mp._carried(still, xi)
            found.append(Bodies(mp.kinematics(self.tree, series, poses).poses, series))
        return found

    @property
    def _base(self) -> Base:
        assert self.base is not None
        return Base(self.base.pose, self.base.twists, "body_fixed")

    def efforts_along(self, q: Exact, base: Base | None, order: int, tree: Tree) -> Exact:
        found = mp.inverse_dynamics(tree, q, base=base)
        parts = [part for part in (found.base_wrench, found.torques) if part is not None]
        return np.concatenate(parts, axis=1)


class LoopSubject(Subject):
    """A mechanism with loops and couplings, on a base or moved by a platform."""

    def __init__(
        self, mechanism: Mechanism, build: Callable[[Mechanism], Robot], order: int = ORDER, seed: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.mechanism, self.build, self.tree = mechanism, build, mechanism.tree
        self.q = rng.uniform(-1.0, 1.0, (order + 3, len(mechanism.joints)))
        self.q[0] *= 0.1
        self.driven, platform = mechanism.driven, mechanism.platform
        self.symmetric = tuple(loop.b for loop in mechanism.loops if loop.kind == "spin")
        self.pushed = self.tree.floating_base and platform is None
        self.base = None
        self.directions = self.given_by = np.eye(6)
        if self.pushed or platform is not None:
            pose = self.tree.placements[0 if platform is None else platform[0]]
            if platform is not None and len(platform[1]) == 3:  # in the plane of the world's x and y
                along = (Ad(inverse(pose)) @ np.eye(6))[:, [2, 3, 4]]
                own = [_ROWS.index(row) for row in platform[1]]
                self.directions, self.given_by = along @ np.linalg.inv(along[own]), np.eye(6)[:, own]
            along = self.directions
            pose = pose @ exp(along @ rng.uniform(-0.02, 0.02, along.shape[1]))
            twists = rng.uniform(-1.0, 1.0, (order + 2, along.shape[1])) @ along.T
            self.base = BaseMotion(pose, twists, representation="body_fixed")

    def robot(self) -> Robot:
        return self.build(self.mechanism)

    def bodies(self, changes: list[Exact], terms: int) -> list[Bodies]:
        motions = []
        for change in changes:
            joints, twist = self.split(change)
            q, base = mp.exact(self.q), None
            q[0] = q[0] + joints
            if self.base is not None:
                world = self._in_world(self.motion()[1])
                base = Base(displaced(world.pose, twist), world.twists, "spatial")
            motions.append((q, base))
        return mp_loops.bodies_beside(self.mechanism, *motions[0], motions[1:], terms)

    def efforts_along(self, q: Exact, base: Base | None, order: int, tree: Tree) -> Exact:
        mechanism = replace(self.mechanism, tree=tree)
        return mp_loops.exact_efforts(mechanism, q, order, base and self._in_world(base))

    def _in_world(self, base: Base | None) -> Base:
        assert base is not None
        count = len(base.twists)
        poses = mp.base_poses(base, mp.taylor(mp.exact(base.twists), count), count + 1)
        return Base(mp.rigid(base.pose), mp.derivatives(mp.twists_of(poses, "spatial")), "spatial")


class LimbSubject(Subject):
    """A platform on limbs."""

    pushed = False

    def __init__(self, arrays: Parallel, order: int = ORDER, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.arrays = arrays
        self.directions = self.given_by = arrays.dof
        self.tree = Tree.of(self.robot().tree)
        count = arrays.dof.shape[1]
        pose = arrays.placement @ exp(arrays.dof @ rng.uniform(-0.1, 0.1, count))
        twists = random_stack(rng, order + 2, count) @ arrays.dof.T
        self.q, self.base = np.zeros((order + 3, 0)), BaseMotion(pose, twists, representation="body_fixed")
        ends = np.cumsum([tree.n_joints for tree in arrays.limbs])
        self.driven = tuple(
            int(end) - 1 - joint for end, joints in zip(ends, arrays.driven) for joint in joints
        )

    def robot(self) -> Robot:
        return ParallelRobot.from_screws(**self.arrays.arguments())

    def bodies(self, changes: list[Exact], terms: int) -> list[Bodies]:
        assert self.base is not None
        base, found = Base(self.base.pose, self.base.twists, "body_fixed"), []
        still = mp.base_poses(base, mp.taylor(mp.exact(base.twists), terms - 1), terms)
        for change in changes:
            poses = mp._carried(still, mp.rigid(displaced(mp.exact(np.eye(4)), self.split(change)[1])))
            limbs = [mp_parallel.joint_series(tree, poses)[:, ::-1] for tree in self.arrays.limbs]
            joints = np.concatenate(limbs, axis=1)  # from the platform on
            found.append(Bodies(mp.kinematics(self.tree, joints, poses).poses, joints))
        return found

    def efforts_along(self, q: Exact, base: Base | None, order: int, tree: Tree) -> Exact:
        assert base is not None
        if tree is not self.tree:  # by the principle of virtual power, along the motion as it is
            forces = self.moving.forces(tree, self.moving.velocities)
            by_drives = self.moving.by_joints[:, list(self.driven)].transpose(0, 2, 1)
            return mp.derivatives(mp_parallel._solve(by_drives, forces))[: order + 1]
        redundant = len(self.driven) > self.directions.shape[1]
        least = np.zeros((order + 1, len(self.driven))) if redundant else None
        motion = base.pose, base.twists, base.representation
        return mp_parallel.inverse_dynamics(self.arrays, *motion, preload=least)


_ROWS = ("rx", "ry", "rz", "x", "y", "z")
