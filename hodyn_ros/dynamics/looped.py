"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_out, finite_result
from hodyn_ros.dynamics.closing import Known, home, reach
from hodyn_ros.dynamics.coordinate_motion import coordinate_motion
from hodyn_ros.dynamics.independence import conditions, find_independence, mass_of
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel import Function
from hodyn_ros.engine.loop_kernel import LoadPlaces, LoopKernel, compiles
from hodyn_ros.errors import InputError, OverflowingError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.leibniz import product_derivative
from hodyn_ros.model.closure import Closure
from hodyn_ros.motion import AppliedWrench, BaseMotion
from hodyn_ros.se3 import Array, matvec

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only, and the singular values found there are of that size.
_SINGULAR = 1e-6
_NEAR = 0.1  # share of the distance to singularity at home from which a pose counts as near a singular one
_KEPT = 100  # compiled calls of a robot; one that walks meets many sets of contacts


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
    """The dynamics of a robot with couplings and loops; remembers where it was, to stay on its branch.

    `memory` (1, N): the positions of the leading joints at the last success, and the pose given then.
    """

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        self.independence = find_independence(closure)
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self._kernels: dict[tuple[int, kernels.Setting], Function] = {}
        self._calls: dict[tuple[int, LoadPlaces], Callable[..., Array]] = {}
        self._flat_at_home: dict[int, float] = {}
        self._joint_kernels: dict[int, LoopKernel] = {}

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.spread[closure.first :, closure.first :] @ self.memory[0, :n] + closure.offsets
        pose = self.memory[0, n:].reshape(4, 4).copy() if self.memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    @known.setter
    def known(self, known: Known) -> None:
        n = len(self.closure.leading)
        self.memory[0, :n] = known.place.joints[list(self.closure.leading)]
        if known.pose is not None:
            self.memory[0, n:] = known.pose.ravel()
        self._base = known.place.base

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
        return self.drive_table(y, base, wrenches)[: len(y) - 2]

    def drive_table(self, y: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()) -> Array:
        """Compute what `LoopKernel` returns: efforts, motion of the drives, and how near they are to failing.

        `base`: with spatial twists.
        """
        order = len(y) - 3
        motion = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: order + 2])]
        places = tuple((self.closure.tree.body_index(load.body), load.frame) for load in wrenches)
        loads = [load.up_to(order) for load in wrenches]
        return self._call(order, places)(*([y] if y.shape[1] else []), *motion, *loads)

    def joint_motion(self, y: Array, base: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of all joints of the tree, and of its base, up to the order of y (orders + 1, k).

        `base`: that of platform or base, with spatial twists.
        """
        closure, order = self.closure, len(y) - 1
        if not compiles(closure, max(order - 2, 0), "joints"):
            moved, _ = self.move(y, base)
            return moved.joint_motion(), moved.base_motion
        if order not in self._joint_kernels:
            kernel = LoopKernel(closure, self.independence.rows, order, (), "joints")
            self._joint_kernels[order] = kernel
        kernel = self._joint_kernels[order]
        given = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[:order])]
        table = kernel.function(y, *given, self.memory)
        if not table.item(kernel.bad) < 1.0:
            moved, _ = self.move(y, base)
            return moved.joint_motion(), moved.base_motion
        return table[:-1], base if closure.tree.floating_base else None

    def compile(self, order: int) -> Callable[..., Array]:
        """Return `f([y (order + 3, k),] [pose (4, 4), twists (order + 2, 6)], out=None)`.

        It returns efforts (order + 1, efforts), compiled where that is possible; what the kernel cannot do is
        left to `solve`, which does it or says what is wrong. Twists are spatial; y is left out where no joint
        is a coordinate.
        """
        call, rows = self._call(order, ()), slice(0, order + 1)

        def compiled(*arguments: Array, out: Array | None = None) -> Array:
            efforts = call(*arguments)[rows]
            if out is None:
                return efforts
            check_out(out, efforts.shape)
            out[...] = efforts
            return out

        return compiled

    def is_near_singular(self, order: int, table: Array) -> bool:
        """Whether a result of `drive_table` is of a pose near a singular one."""
        if order not in self._flat_at_home:
            self._flat_at_home[order] = self._at_home(order)
        return bool(table[-1, 0] > self._flat_at_home[order] / _NEAR**2)

    def _at_home(self, order: int) -> float:
        start, elsewhere = home(self.closure), self.known
        self.known = start
        given = [] if start.pose is None else [start.pose, np.zeros((order + 2, 6))]
        y = np.zeros((order + 3, len(start.y)))
        y[0] = start.y
        try:
            table = self._call(order, ())(*([y] if len(start.y) else []), *given)
        except SingularError:
            return np.inf
        finally:
            self.known = elsewhere
        return float(table[-1, 0])

    def _call(self, order: int, loads: LoadPlaces) -> Callable[..., Array]:
        """Return `f([y,] [pose, twists,] load (order + 1, 6)...)`, compiled where that is possible."""
        if (order, loads) not in self._calls:
            if len(self._calls) >= _KEPT:
                del self._calls[next(iter(self._calls))]
            self._calls[order, loads] = self._made(order, loads)
        return self._calls[order, loads]

    def _made(self, order: int, loads: LoadPlaces) -> Callable[..., Array]:
        closure = self.closure
        still = [] if closure.joints else [np.zeros((order + 3, 0))]
        names = ["the motion"] if closure.joints else []
        names += [] if closure.leader is None else ["the pose", "the twists"]

        @finite_result
        def carefully(*arguments: ArrayLike) -> Array:
            if len(arguments) != len(names) + len(loads):
                raise InputError(
                    f"expected {[*names, *['a wrench'] * len(loads)]}, found {len(arguments)} arguments"
                )
            y, *rest = list(itertools.chain(still, arguments))
            base = None
            if closure.leader is not None:
                base = BaseMotion(rest.pop(0), rest.pop(0))  # type: ignore[arg-type]
            wrenches = [
                AppliedWrench(body, values, frame=frame)  # type: ignore[arg-type]
                for (body, frame), values in zip(loads, rest)
            ]
            stack, motion = coordinate_motion(closure, y, base, 2)
            if len(stack) != order + 3:
                raise InputError(f"the motion must have {order + 3} rows, found {len(stack)}")
            return _table(self.solve(stack, motion, wrenches))

        if not compiles(closure, order):
            return carefully
        kernel = LoopKernel(closure, self.independence.rows, order, loads)
        function, memory, bad = kernel.function, self.memory, kernel.bad

        def quickly(*arguments: Array) -> Array:
            result: Array = function(*still, *arguments, memory)
            return result if result.item(bad) < 1.0 else carefully(*arguments)

        return quickly

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


def _table(one: LoopSolution) -> Array:
    """Return a solution in the form of `LoopKernel`."""
    base = 0 if one.base_wrench is None else 6
    order, columns = len(one.efforts) - 1, base + one.efforts.shape[1]
    table = np.zeros((2 * order + 6, columns))
    if one.base_wrench is not None:
        table[: order + 1, :6] = one.base_wrench
    table[: order + 1, base:] = one.efforts
    table[order + 1 : -2, base:] = one.drives
    table[-1] = 1.0 / min(one.motion_margin, one.drive_margin) ** 2
    return table


def _with(moved: LoopMotion, rate: Array) -> tuple[Array, BaseMotion | None]:
    """Return the motion of joints and base with one more derivative of z'."""
    closure = moved.closure
    joints = np.concatenate([moved.joint_motion(), (closure.spread[closure.first :] @ rate)[None]])
    if moved.place.base is None:
        return joints, None
    twists = np.array([*(r[:6] for r in moved.rates), rate[:6]])
    return joints, BaseMotion(moved.place.base, twists)
