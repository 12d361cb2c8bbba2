"""Dynamics at many digits beside a motion, and second derivatives of it by differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hodyn_ros import AppliedWrench, BaseMotion
from oracles import mp_dynamics as mp
from oracles.cases import Case
from oracles.motions import Base, Load
from oracles.random_trees import Array

Place = tuple[int, int]  # derivative order and entry


def second_derivatives(
    at: Callable[[mp.Exact], mp.Exact],
    shape: tuple[int, int],
    pairs: Sequence[tuple[Place, Place]],
    digits: int = 60,
) -> list[Array]:
    """Return d²at(x)/dx_a dx_b at x = 0 (shape) for pairs of entries, by differences at many digits."""
    with mp.digits(digits):
        step = mp.mpfr(10) ** (-digits // 4)

        def beside(a: Place, s: int, b: Place, t: int) -> mp.Exact:
            changes = np.zeros(shape, dtype=object) * mp.ONE
            changes[a] += s * step
            changes[b] += t * step
            return s * t * at(changes)

        signs = [(s, t) for s in (1, -1) for t in (1, -1)]
        found = [sum(beside(a, s, b, t) for s, t in signs) / (4 * step * step) for a, b in pairs]
        return [mp.to_float(one) for one in found]


def displaced(pose: mp.Exact, displacement: mp.Exact) -> mp.Exact:
    """Return `pose exp(displacement)`, a small body-fixed one."""
    twist = np.zeros((12, 6), dtype=object) * mp.ONE
    twist[0] = displacement  # a constant twist for unit time
    moved = mp.base_poses(Base(np.eye(4), twist, "body_fixed"), twist, 12)
    return pose @ np.vstack([moved.sum(axis=0), [0, 0, 0, 1]])


def forces_beside(case: Case, changes: mp.Exact, loads: Sequence[AppliedWrench] = ()) -> mp.Exact:
    """Return the exact forces (order + 1, m) where x^(k) is larger by `changes` (order + 3, m).

    Those of a floating base are body-fixed.
    """
    q, base, first = mp.exact(case.q), case.base, 6 if case.base else 0
    q = q + changes[:, first:]
    if base is None:
        return mp.inverse_dynamics(case.tree, q, loads=loads).torques
    twists = mp.exact(base.twists)
    twists = twists + changes[1 : len(twists) + 1, :6]
    pose = displaced(mp.rigid(base.pose), changes[0, :6])
    moved = Base(pose, twists, "body_fixed")
    found = mp.inverse_dynamics(case.tree, q, base=moved, loads=loads)
    poses = mp.base_poses(moved, mp.taylor(twists, len(q) - 1), len(q))
    wrench = mp.wrench_to_body(poses, mp.taylor(found.base_wrench, len(q) - 2))
    return np.concatenate([mp.derivatives(wrench), found.torques], axis=1)


class HybridChanges:
    """Forward or hybrid dynamics at many digits, beside which entries of what is given differ.

    Of a floating base body-fixed twists, also where its motion is given (`held`).
    """

    def __init__(
        self, case: Case, order: int, prescribed: tuple[int, ...] = (), held: bool = False, seed: int = 1
    ) -> None:
        rng = np.random.default_rng(seed)
        n = case.tree.n_joints
        self.case, self.order, self.prescribed, self.held = case, order, prescribed, held
        self.state, self.given = case.q[:2].copy(), rng.normal(size=(order + 1, n))
        self.free = [i not in prescribed for i in range(n)]
        self.push = rng.normal(size=(order + 1, 6)) if case.base and not held else None
        self.loads = [
            AppliedWrench(1, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
            AppliedWrench(case.tree.n_bodies - 1, rng.normal(size=(order + 1, 6))),
        ]

    def called(self, call: Callable[..., Array], *multiplier: Array) -> Array:
        """Return what a call of a robot finds, as `hybrid_dynamics_derivatives`."""
        base = self.case.base and BaseMotion(
            self.case.base.pose, self.case.base.twists, representation="body_fixed"
        )
        prescribed: Any = {"prescribed": self.prescribed, "prescribe_base": self.held}
        return call(self.state, self.given, *multiplier, base, self.push, self.loads, **prescribed)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (order + 3, m) of changes."""
        return self.order + 3, self.case.tree.n_joints + (6 if self.case.base else 0)

    def solved(
        self, state: Any, given: Any, base: Base | None, loads: Sequence[Load] = ()
    ) -> tuple[Any, Any]:
        """Return motion and efforts."""
        zero = np.zeros_like(self.given)
        torques, motions = (np.where(row, given, zero) for row in (self.free, np.invert(self.free)))
        return mp.hybrid_dynamics(
            self.case.tree,
            state,
            self.free,
            torques,
            motions,
            base=base,
            base_free=not self.held,
            base_wrench=None if self.push is None else mp.exact(self.push),
            loads=[*self.loads, *loads],
        )

    def found(self, state: Any, given: Any, base: Base | None, loads: Sequence[Load] = ()) -> mp.Exact:
        """Return accelerations, or efforts of what is prescribed, those of the base first."""
        moved, efforts = self.solved(state, given, base, loads)
        joints = np.where(self.free, moved.joints, efforts.torques)
        if base is None:
            return joints
        if not self.held:
            return np.concatenate([moved.base, joints], axis=1)
        wrench = mp.wrench_to_body(self.poses(base, base.twists), mp.taylor(efforts.base_wrench, len(joints)))
        return np.concatenate([mp.derivatives(wrench), joints], axis=1)

    def poses(self, base: Base, twists: Any) -> mp.Exact:
        """Return the series of the pose of the base."""
        return mp.base_poses(base, mp.taylor(twists, self.order + 1), self.order + 1)

    def at(self, changes: mp.Exact) -> mp.Exact:
        """Return what is found where what is given is larger by `changes` (order + 3, m)."""
        base, first = self.case.base, 6 if self.case.base else 0
        state, given = mp.exact(self.state) + changes[:2, first:], mp.exact(self.given) + changes[2:, first:]
        if base is None:
            return self.found(state, given, None)
        twists, rows = mp.exact(base.twists).copy(), self.order + 2 if self.held else 1
        twists[:rows] = twists[:rows] + changes[1 : rows + 1, :6]
        # a wrench in body axes turns with the base
        loads = [] if self.held else [Load(0, changes[2:, :6], "body_fixed")]
        moving = Base(displaced(mp.rigid(base.pose), changes[0, :6]), twists, "body_fixed")
        return self.found(state, given, moving, loads)
