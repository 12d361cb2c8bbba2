"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from types import MappingProxyType

import numpy as np

from hodyn_ros.dynamics.closing import Known, home, reach
from hodyn_ros.dynamics.independence import conditions, find_independence, mass_of
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel import Function
from hodyn_ros.errors import InputError, OverflowingError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.model.closure import Closure
from hodyn_ros.motion import AppliedWrench, BaseMotion
from hodyn_ros.se3 import Array, matvec

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only, and the singular values found there are of that size.
_SINGULAR = 1e-6


@dataclass(frozen=True, eq=False)
class LoopSolution:
    """Everything that moves and holds a robot with loops, by derivative order."""

    joints: Array  # (order + 3, n) positions and derivatives of all joints of the tree [rad or m, /s^k]
    base: BaseMotion | None  # motion of a floating base, spatial
    drives: Array  # (order + 3, driven) those of the driven joints
    efforts: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    base_wrench: Array | None  # (order + 1, 6) on a prescribed base, in the world frame
    loads: Mapping[str, Array]  # by loop (order + 1, 6): the wrench that a exerts on b, in the world frame
    motion_margin: float  # smallest singular value, without units: 0 where the coordinates fail
    drive_margin: float  # the same of the drives: 0 where they do not hold the robot


class LoopedDynamics:
    """The dynamics of a robot with couplings and loops; remembers where it was, to stay on its branch."""

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        self.independence = find_independence(closure)
        self.known = home(closure)
        self._kernels: dict[tuple[int, kernels.Setting], Function] = {}

    def locate(
        self, y: Array, given: BaseMotion | None, derivative: int
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        """
        moved = reach(self.closure, self.independence.rows, self.known, y, given.pose if given else None)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self._check_margin(moved, margins[0])
        return moved, margins

    def move(self, y: Array, given: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Return the motion from that of the coordinates, y (orders + 1, k), and its margins.

        `given`: the motion of platform or base, with spatial twists.
        """
        moved, margins = self.locate(y[0], given, len(y) - 1)
        embedding.follow(self.independence.rows, moved, y, given)
        self._remember(moved, y[0], given)
        return moved, margins

    def _remember(self, moved: LoopMotion, y: Array, given: BaseMotion | None) -> None:
        self.known = Known(moved.place, y.copy(), given.pose if given else None)

    def solve(
        self,
        y: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""
        closure, rows = self.closure, self.independence.rows
        order = len(y) - 3
        moved, margins = self.move(y, given)
        if margins[1] < _SINGULAR:
            raise SingularError(
                f"the pose of robot {closure.tree.name!r} is singular: its driven joints do not hold it "
                f"there (smallest singular value {margins[1]:.3g})",
                1.0 / max(margins[1], 1e-300),
            )
        efforts = self.tree_efforts(moved.joint_motion(), moved.base_motion, wrenches)
        forces = embedding.forces(closure, rows, moved, efforts @ closure.spread, preload)
        if not np.isfinite(forces.efforts).all():
            raise OverflowingError("the result overflows: the numbers given are too large")
        joints = moved.joint_motion()
        base = 6 if closure.base_given else 0
        return LoopSolution(
            joints,
            moved.base_motion,
            np.ascontiguousarray(joints[:, list(closure.driven)]),
            np.ascontiguousarray(forces.efforts[:, base:]),
            np.ascontiguousarray(forces.efforts[:, :6]) if base else None,
            self._loads(moved, forces.multipliers, order),
            *margins,
        )

    def efforts(self, y: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()) -> Array:
        """Compute the efforts (order + 1, efforts): of a prescribed base, then of the drives."""
        one = self.solve(y, base, wrenches)
        if one.base_wrench is None:
            return one.efforts
        return np.concatenate([one.base_wrench, one.efforts], axis=1)

    def follow(self, y: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()) -> Array:
        """Compute the efforts (..., order + 1, efforts) of a robot with couplings alone.

        For y (..., order + 3, k); velocities follow from y', and efforts from Q, by constant matrices.
        """
        joints = y @ self._coupled[0].T
        joints[..., 0, :] += self._coupled[1]
        efforts: Array = self.tree_efforts(joints, base, wrenches) @ self._coupled[2]
        return efforts

    @property
    def only_coupled(self) -> bool:
        """Whether there are linear couplings alone, and as many drives as coordinates."""
        closure = self.closure
        tied = bool(closure.loops) or bool(closure.followers) or closure.platform is not None
        return not tied and closure.n_efforts == closure.n_velocities

    @cached_property
    def _coupled(self) -> tuple[Array, Array, Array]:
        """The joints as `q = A y + b`, and the efforts as `u = Q C`."""
        closure = self.closure
        first, joints = closure.first, list(closure.joints)
        spread = closure.spread[first:, first:]
        ratios = spread @ np.linalg.inv(spread[joints])
        offsets = closure.offsets - ratios @ closure.offsets[joints]
        return ratios, offsets, closure.spread @ np.linalg.inv(closure.effort_map).T

    def tree_efforts(
        self, joints: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()
    ) -> Array:
        """Return efforts (..., order + 1, 6 + n or n) of the tree, compiled: joints (..., order + 3, n)."""
        tree, order = self.closure.tree, joints.shape[-2] - 3
        places = tuple((tree.body_index(load.body), load.frame) for load in wrenches)
        setting = kernels.Setting(base="world" if tree.floating_base else None, loads=places)
        if (order, setting) not in self._kernels:
            self._kernels[order, setting] = kernels.inverse_dynamics(tree, order, setting)
        others = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: order + 2])]
        others += [load.up_to(order) for load in wrenches]
        kernel, motion = self._kernels[order, setting], np.ascontiguousarray(joints)
        efforts: Array
        if motion.ndim == 2:
            efforts = kernel.function(motion, *others)
        else:
            efforts = kernel.batch(motion, *[np.tile(other, (len(motion), 1, 1)) for other in others])
        return efforts

    def forward_dynamics(
        self,
        state: Array,
        efforts: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> tuple[Array, Array | None]:
        """Compute accelerations and derivatives (order + 1, k) of the coordinates from state and efforts.

        `state` (2, k); `efforts` (order + 1, efforts) as `Closure.effort_map` takes them; `given`: pose and
        spatial twist of platform or base, which then move freely. Returns also the spatial twist of platform
        or base with its derivatives (order + 2, 6).

        With `z' = F y'`, M the mass matrix of the tree and e = Q - S u, which the loops balance, `F^T e = 0`:
        at order k `F^T M F y^(k+2) = - sum_{i>=1} C(k,i) F^(i)T e^(k-i) - F^T e^(k)`, e^(k) with y^(k+2) = 0.
        """
        closure, rows = self.closure, self.independence.rows
        if self.independence.idle:
            raise InputError(self.independence.idle)
        moved, _ = self.locate(state[0], given, len(efforts) + 1)
        twist = None if given is None else given.twists[0]
        moved.extend(embedding.next_rate(rows, moved, state[1], twist))
        still = np.zeros(state.shape[1])
        mass = mass_of(closure, moved)
        unbalanced: list[Array] = []
        for k, effort in enumerate(efforts):
            trial = embedding.next_rate(rows, moved, still, None if twist is None else np.zeros(6))
            joints, base = _with(moved, trial)
            open_by = (self.tree_efforts(joints, base, wrenches) @ closure.spread)[k]
            open_by = open_by - closure.effort_map @ effort
            F = embedding.distribution(rows, moved, k)
            right = F[0].T @ open_by
            for i in range(1, k + 1):
                right = right + comb(k, i) * (F[i].T @ unbalanced[k - i])
            change = F[0] @ np.linalg.solve(F[0].T @ mass @ F[0], -right)
            unbalanced.append(open_by + mass @ change)
            moved.extend(trial + change)
        self._remember(moved, state[0], given)
        joints = moved.joint_motion()[2:, list(closure.joints)]
        return joints, None if closure.leader is None else np.array(moved.twists_of(closure.leader))

    def _check_margin(self, moved: LoopMotion, margin: float) -> None:
        if margin >= _SINGULAR:
            return
        closure = self.closure
        raise SingularError(
            f"the pose of robot {closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g})",
            1.0 / max(margin, 1e-300),
        )

    def _loads(self, moved: LoopMotion, multipliers: Array, order: int) -> Mapping[str, Array]:
        whole = np.zeros((order + 1, moved.n_loop_rows))
        whole[:, self.independence.rows] = multipliers
        wrenches = np.array([moved.loop_wrenches(k) for k in range(order + 1)])
        loads: dict[str, Array] = {}
        for loop, part in zip(self.closure.loops, moved.loop_slices):
            bases = [w[part].T for w in wrenches]
            values = whole[:, part]
            loads[loop.name] = np.array(
                [product_derivative(bases, values, k, matvec) for k in range(order + 1)]
            )
        return MappingProxyType(loads)

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Names of the loops that are overconstrained: their loads depend on which rows were taken."""
        return self.independence.redundant


def _with(moved: LoopMotion, rate: Array) -> tuple[Array, BaseMotion | None]:
    """Return the motion of joints and base with one more derivative of z'."""
    closure = moved.closure
    joints = np.concatenate([moved.joint_motion(), (closure.spread[closure.first :] @ rate)[None]])
    if moved.place.base is None:
        return joints, None
    twists = np.array([*(r[:6] for r in moved.rates), rate[:6]])
    return joints, BaseMotion(moved.place.base, twists)
