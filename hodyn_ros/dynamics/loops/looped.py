"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_out, check_result, finite_result
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known, home, reach
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, drive_rows, preload_rows
from hodyn_ros.dynamics.loops.independence import choose_coordinates, conditions, find_independence, mass_of
from hodyn_ros.dynamics.loops.platform_dynamics import PlatformDynamics
from hodyn_ros.engine import kernels
from hodyn_ros.engine.codegen.kernel import Function
from hodyn_ros.engine.loops.loop_kernel import LoopAccelerations, LoopKernel, LoopMatrix, TooLong, compiles
from hodyn_ros.engine.loops.loop_matrices import Part
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, OverflowingError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array, matvec
from hodyn_ros.model.closure import Closure, PlatformRows

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only, and the singular values found there are of that size.
_SINGULAR = 1e-6
_AGREE = 1e-9  # share of the fastest drive, and of the robot's size, in which redundant drives may differ
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
        on_limbs = closure.platform is not None and closure.platform.twists is not None
        self.platform = PlatformDynamics(closure) if on_limbs else None
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self._kernels: dict[tuple[int, kernels.KernelSpec], Function] = {}
        self._calls: dict[tuple[int, LoadPlaces, bool], Callable[..., Array]] = {}
        self._flat_at_home: dict[tuple[int, LoadPlaces, bool], float] = {}
        self._joint_kernels: dict[int, LoopKernel] = {}
        self._forward_calls: dict[tuple[int, LoadPlaces], Callable[..., Array]] = {}
        self._matrix_kernels: dict[tuple[Part, int], LoopMatrix | None] = {}

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        return self._known_from(self.memory)

    @known.setter
    def known(self, known: Known) -> None:
        n = len(self.closure.leading)
        self.memory[0, :n] = known.place.joints[list(self.closure.leading)]
        if known.pose is not None:
            self.memory[0, n:] = known.pose.ravel()
        self._base = known.place.base

    def _known_from(self, memory: Array) -> Known:
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.spread[closure.first :, closure.first :] @ memory[0, :n] + closure.offsets
        pose = memory[0, n:].reshape(4, 4).copy() if memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    def locate(
        self, y: Array, given: BaseMotion | None, derivative: int
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        """
        if self.platform is not None and given is not None:
            moved = self._reach_on_limbs(self.platform, y, given.pose)
        else:
            moved = self._reach(self.known, y, given.pose if given else None)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self._check_margin(moved, margins[0])
        if self.platform is not None and given is not None:
            self.platform.check_pose(moved.body_pose(0), given.pose)
        return moved, margins

    def _reach(self, known: Known, y: Array, pose: Array | None, most_steps: int = MOST_STEPS) -> LoopMotion:
        return reach(self.closure, self.independence.rows, known, y, pose, most_steps)

    def _reach_on_limbs(self, platform: PlatformDynamics, y: Array, pose: Array) -> LoopMotion:
        """Reach a platform's pose, by kernels as far as these go, or say what is wrong there."""
        memory = self.memory.copy()
        platform.approach(pose, memory)
        try:
            return self._reach(self._known_from(memory), y, pose, 0)
        except ConvergenceError as error:
            platform.check_limbs(pose, memory)
            there = self._reach(self._known_from(memory), y, pose, 0)
            margins = conditions(self.closure, there, self.independence.rows)
            self._check_margin(there, margins[0])
            self.check_held(margins[1])
            raise ConvergenceError(
                f"robot {self.closure.tree.name!r} does not get to that pose from the last one in short "
                "steps, as beside a singular pose on the way; give poses nearer to the last ones, and "
                "keep away from singular ones",
                error.angle,
                error.distance,
            ) from None

    @contextmanager
    def _kept_on_error(self) -> Iterator[None]:
        """Stay where the last success was where a computation fails."""
        before = self.known
        try:
            yield
        except HodynError:
            self.known = before
            raise

    def move(self, y: Array, given: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Return the motion from that of the coordinates, y (orders + 1, k), and its margins.

        `given`: the motion of platform or base, with spatial twists.
        """
        if self.platform is not None and given is not None:
            self.platform.check_twists(given.pose, given.twists[: len(y) - 1])
        moved, margins = self.locate(y[0], given, len(y) - 1)
        embedding.follow(self.independence.rows, moved, y, given)
        check_result(*moved.rates)
        self._remember(moved, y[0], given)
        return moved, margins

    def move_drives(self, drives: Array, given: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of the coordinates, and of a platform, from that of the drives (orders, driven).

        `given`: the motion of a prescribed base, with spatial twists. With more drives than coordinates some
        determine the motion, and the others have to agree: InputError.
        """
        closure, twin = self.closure, self._moved_by_drives
        now = self.known.place
        twin.known = Known(now, now.joints[list(twin.closure.joints)], now.base)
        columns = [closure.driven.index(joint) for joint in twin.closure.joints]
        moved, _ = twin.move(drives[:, columns], given)
        joints = moved.joint_motion()
        apart = (
            np.abs(joints[:, list(closure.driven)] - drives)
            / np.abs(drives).max(axis=1, initial=closure.size)[:, None]
        )
        if apart.max(initial=0.0) > _AGREE:
            worst = closure.driven[int(apart.max(axis=0).argmax())]
            raise InputError(
                f"the drives of robot {closure.tree.name!r} contradict each other: joint "
                f"{closure.tree.joint_names[worst]!r} does not move like that where the others do"
            )
        platform = None
        if closure.platform is not None:
            body = closure.platform.body
            twists = moved.twists_of(body) or [np.zeros(6)]
            platform = BaseMotion(moved.body_pose(body), np.array(twists))
        y = joints[:, list(closure.joints)]
        self._remember(moved, y[0], given if platform is None else platform)
        return y, platform

    @cached_property
    def _moved_by_drives(self) -> LoopedDynamics:
        """This robot with driven joints as coordinates."""
        closure = self.closure
        joints, hold = closure.driven, True
        if closure.n_efforts > closure.n_coordinates:
            joints, hold = choose_coordinates(closure, closure.driven)
        if not hold:
            raise SingularError(
                f"the drives of robot {closure.tree.name!r} do not determine its motion near its home", np.inf
            )
        free = closure.tree.floating_base and not closure.base_given
        platform = PlatformRows(0, ()) if free else None
        return LoopedDynamics(replace(closure, joints=joints, driven=joints, platform=platform))

    def _remember(self, moved: LoopMotion, y: Array, given: BaseMotion | None) -> None:
        pose = moved.place.base if given is None else given.pose
        self.known = Known(moved.place, y.copy(), pose)

    def solve(
        self,
        y: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""
        with self._kept_on_error():
            closure, rows = self.closure, self.independence.rows
            order = len(y) - 3
            self._check_loads(given, wrenches, order)
            moved, margins = self.move(y, given)
            self.check_held(margins[1])
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

    def efforts(
        self,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute the efforts (order + 1, efforts): of a prescribed base, then of the drives."""
        return self.drive_table(y, base, wrenches, preload)[: len(y) - 2]

    def drive_table(
        self,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute what `LoopKernel` returns: efforts, motion of the drives, and how near they are to failing.

        `base`: with spatial twists; `preload` (order + 1, driven): what redundant drives should come near.
        """
        order = len(y) - 3
        motion = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: order + 2])]
        places = self._places(wrenches)
        self._check_loads(base, wrenches, order)
        loads = [load.up_to(order) for load in wrenches]
        preloads = [] if preload is None else [preload]
        call = self._call(order, places, preload is not None)
        return call(*([y] if y.shape[1] else []), *motion, *loads, *preloads)

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

    def compile(self, order: int, drives: bool = False) -> Callable[..., Array]:
        """Return `f([y (order + 3, k),] [pose (4, 4), twists (order + 2, 6)], out=None)`.

        It returns efforts (order + 1, efforts) and, with `drives`, the motion of the driven joints below them
        (2 order + 4, efforts), compiled where that is possible; what the kernel cannot do is left to `solve`,
        which does it or says what is wrong. Twists are spatial; y is left out where no joint is a coordinate.
        """
        call, rows = self._call(order, ()), slice(0, 2 * order + 4 if drives else order + 1)
        return into(lambda *arguments: call(*arguments)[rows])

    def by_limbs(
        self,
        base: BaseMotion,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute the efforts (order + 1, drives) of a platform on limbs by their published decomposition."""
        if self.platform is None:
            raise InputError(
                f"robot {self.closure.tree.name!r} is no platform on serial limbs, which the formulation "
                "'limb_decomposition' is for"
            )
        self._check_loads(base, wrenches, len(base.twists) - 2)
        moved, margins = self.move(np.zeros((len(base.twists) + 1, 0)), base)
        self.check_held(margins[1])
        return self.platform.decomposed(moved.place.joints, base, wrenches, preload)

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code, but where that fails."""
        return compiles(self.closure, order) or (self.platform is not None and self.platform.compiles(order))

    def is_near_singular(
        self, order: int, table: Array, wrenches: Sequence[AppliedWrench] = (), preload: bool = False
    ) -> bool:
        """Whether a result of `drive_table` with such wrenches and preload is near a singular pose."""
        return bool(table[-1, 0] > self.near_singular_from(order, self._places(wrenches), preload))

    def near_singular_from(self, order: int, loads: LoadPlaces = (), preload: bool = False) -> float:
        """Return how large the first number of the last row of `drive_table` is where poses are near."""
        key = order, loads, preload  # each kernel has its own measure
        if key not in self._flat_at_home:
            self._flat_at_home[key] = self._at_home(*key)
        return self._flat_at_home[key] / _NEAR**2

    def _at_home(self, order: int, loads: LoadPlaces, preload: bool) -> float:
        start, elsewhere = home(self.closure), self.known
        self.known = start
        given = [] if start.pose is None else [start.pose, np.zeros((order + 2, 6))]
        given += [np.zeros((order + 1, 6))] * len(loads)
        given += [np.zeros((order + 1, len(self.closure.driven)))] * preload
        y = np.zeros((order + 3, len(start.y)))
        y[0] = start.y
        try:
            table = self._call(order, loads, preload)(*([y] if len(start.y) else []), *given)
        except SingularError:
            return np.inf
        finally:
            self.known = elsewhere
        return float(table[-1, 0])

    def _call(self, order: int, loads: LoadPlaces, preload: bool = False) -> Callable[..., Array]:
        """Return `f([y,] [pose, twists,] load..., [preload])`, compiled where that is possible."""
        key = order, loads, preload
        if key not in self._calls:
            if len(self._calls) >= _KEPT:
                del self._calls[next(iter(self._calls))]
            self._calls[key] = self._made(*key)
        return self._calls[key]

    def _made(self, order: int, loads: LoadPlaces, preload: bool) -> Callable[..., Array]:
        closure = self.closure
        still = [] if closure.joints else [np.zeros((order + 3, 0))]
        names = ["the motion"] if closure.joints else []
        names += [] if closure.leader is None else ["the pose", "the twists"]
        names += ["a wrench"] * len(loads) + ["the preload"] * preload

        @finite_result
        def carefully(*arguments: ArrayLike) -> Array:
            if len(arguments) != len(names):
                raise InputError(f"expected {names}, found {len(arguments)} arguments")
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
            given = rest[-1] if preload else None
            return _table(self.solve(stack, motion, wrenches, preload_rows(closure, given, order)))

        memory = self.memory
        if self.platform is not None and self.platform.compiles(order, loads):
            of_platform, bad = self.platform.call(order, loads, preload, memory)

            return _or_carefully(of_platform, bad, carefully)
        if not compiles(closure, order):
            return carefully
        kernel = LoopKernel(closure, self.independence.rows, order, loads, preload=preload)
        function, bad = kernel.function, kernel.bad

        def quickly(*arguments: Array) -> Array:
            result: Array = function(*still, *arguments, memory)
            return result

        return _or_carefully(quickly, bad, carefully)

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
        setting = kernels.KernelSpec(
            base="world" if tree.floating_base else None, loads=self._places(wrenches)
        )
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
        if self.platform is not None and given is not None:
            twists = self._platform_forward(self.platform, given, efforts, wrenches)
            if twists is not None:
                return np.zeros((len(efforts), 0)), twists
        moved, _ = self._accelerate(state, efforts, (), given, wrenches)
        joints = moved.joint_motion()[2:, list(self.closure.joints)]
        leads = self.closure.leader
        return joints, None if leads is None else np.array(moved.twists_of(leads))

    def hybrid_dynamics(
        self,
        state: Array,
        values: Array,
        prescribed: Sequence[int],
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> tuple[Array, Array | None]:
        """Compute what is not given where some drives are moved and others push.

        As `forward_dynamics`; `values` (order + 1, efforts) holds accelerations and their derivatives in the
        `prescribed` columns, efforts in the others. Returns efforts in the prescribed columns, accelerations
        in those of the other drives, and the spatial twist of platform or base.

        With P the columns of S that are prescribed, at order k

            F^T M F y^(k+2) - F^T P u_p^(k) = ...,   P^T F y^(k+2) = a_p^(k) - P^T z^(k+2) at y^(k+2) = 0
        """
        closure = self.closure
        moved, efforts = self._accelerate(state, values, prescribed, given, wrenches)
        rates = np.array(moved.rates[1:]) @ closure.effort_map
        found = rates.copy()
        found[:, list(prescribed)] = efforts[:, list(prescribed)]
        return found, None if closure.leader is None else np.array(moved.twists_of(closure.leader))

    def _accelerate(
        self,
        state: Array,
        values: Array,
        prescribed: Sequence[int],
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench],
    ) -> tuple[LoopMotion, Array]:
        """Return the motion that follows from what is given of the drives, and all efforts."""
        closure, rows = self.closure, self.independence.rows
        if self.independence.idle:
            raise InputError(self.independence.idle)
        efforts = values.copy()
        efforts[:, list(prescribed)] = 0.0
        moved, _ = self.locate(state[0], given, len(efforts) + 1)
        P = closure.effort_map[:, list(prescribed)]
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
            system, moving = F[0].T @ mass @ F[0], P.T @ F[0]
            if len(moving):
                self._check_prescribed(moving)
                zeros = np.zeros((len(moving), len(moving)))
                system = np.block([[system, -moving.T], [moving, zeros]])
            missing = values[k, list(prescribed)] - P.T @ trial
            found = np.linalg.solve(system, np.concatenate([-right, missing]))
            split = len(found) - len(moving)
            change = F[0] @ found[:split]
            efforts[k, list(prescribed)] = found[split:]
            unbalanced.append(open_by + mass @ change - P @ found[split:])
            moved.extend(trial + change)
        self._remember(moved, state[0], given)
        return moved, efforts

    def _check_prescribed(self, moving: Array) -> None:
        """Refuse drives that cannot be moved as one likes, from what they move by the coordinates."""
        sized = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        least = float(np.linalg.svd(sized, compute_uv=False)[-1]) if len(sized) <= sized.shape[1] else 0.0
        if least < _SINGULAR:
            raise SingularError(
                f"the prescribed joints of robot {self.closure.tree.name!r} cannot all be moved freely there "
                f"(smallest singular value {least:.3g}); prescribe fewer",
                1.0 / max(least, 1e-300),
            )

    def _platform_forward(
        self,
        platform: PlatformDynamics,
        given: BaseMotion,
        efforts: Array,
        wrenches: Sequence[AppliedWrench],
    ) -> Array | None:
        """Compute spatial twists of a platform on limbs (order + 2, 6), compiled where that is possible."""
        places = self._places(wrenches)
        twist = given.twists[:1]
        platform.check_twists(given.pose, twist)
        platform.check_loads(given.pose, twist, wrenches, 0)  # of higher orders, motion is not known yet
        if not platform.compiles(len(efforts) - 1, places):
            return None
        return platform.forward_dynamics(given.pose, twist[0], efforts, wrenches, self.memory)

    def _check_loads(self, base: BaseMotion | None, wrenches: Sequence[AppliedWrench], order: int) -> None:
        if self.platform is not None and wrenches and base is not None:
            self.platform.check_loads(base.pose, base.twists, wrenches, order)

    def _places(self, wrenches: Sequence[AppliedWrench]) -> LoadPlaces:
        return tuple((self.closure.tree.body_index(load.body), load.frame) for load in wrenches)

    def accelerations(
        self,
        state: Array,
        efforts: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
    ) -> Array:
        """Compute what `LoopAccelerations` returns but for its last row, from arguments as above."""
        places = self._places(wrenches)
        motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[:1])]
        pushes = [np.ascontiguousarray(efforts[:, :6])] if self.closure.base_given else []
        drives = np.ascontiguousarray(efforts[:, 6:] if pushes else efforts)
        order = len(efforts) - 1
        loads = [load.up_to(order) for load in wrenches]
        call = self.forward_call(order, places)
        return call(np.ascontiguousarray(state[:2]), *motion, drives, *pushes, *loads)

    def forward_call(self, order: int, loads: LoadPlaces = ()) -> Callable[..., Array]:
        """Return `f(state, [pose, twist,] efforts, [base wrench,] load...)`, compiled where it can be."""
        key = order, loads
        if key not in self._forward_calls:
            if len(self._forward_calls) >= _KEPT:
                del self._forward_calls[next(iter(self._forward_calls))]
            self._forward_calls[key] = self._forward_made(*key)
        return self._forward_calls[key]

    def _forward_made(self, order: int, loads: LoadPlaces) -> Callable[..., Array]:
        closure = self.closure
        n_given = 0 if closure.leader is None else 2
        count = 2 + n_given + closure.base_given + len(loads)

        @finite_result
        def carefully(*arguments: ArrayLike) -> Array:
            if len(arguments) != count:
                raise InputError(f"expected {count} arguments, found {len(arguments)}")
            state, *rest = arguments
            base = BaseMotion(rest.pop(0), rest.pop(0)) if n_given else None  # type: ignore[arg-type]
            y, given = coordinate_motion(closure, state, base, 1)
            drives = rest.pop(0)
            u = drive_rows(closure, drives, rest.pop(0) if closure.base_given else None)
            if len(y) != 2 or len(u) != order + 1:
                raise InputError(f"expected a state of 2 rows and efforts of {order + 1}")
            wrenches = [
                AppliedWrench(body, values, frame=frame)  # type: ignore[arg-type]
                for (body, frame), values in zip(loads, rest)
            ]
            joints, twists = self.forward_dynamics(y, u, given, wrenches)
            return joints if twists is None else np.concatenate([twists[1:], joints], axis=1)

        of_limbs = self.platform is not None and self.platform.compiles(order, loads)
        if of_limbs or self.independence.idle or not compiles(closure, order):
            return carefully
        try:
            kernel = LoopAccelerations(closure, self.independence.rows, order, loads)
        except TooLong:
            return carefully
        function, memory, bad = kernel.function, self.memory, kernel.bad

        def quickly(*arguments: Array) -> Array:
            result: Array = function(*arguments, memory)
            return result[:-1] if result.item(bad) < 1.0 else carefully(*arguments)

        return quickly

    def matrix(self, part: Part, y: Array, given: BaseMotion | None) -> Array | None:
        """Compute a matrix by order (order + 1, c, c), or gravity (order + 1, c), if it can be compiled.

        `y` (order + 1, k), one row more for the Coriolis matrix; `given`: with spatial twists.
        """
        order = len(y) - 1 - (part == "coriolis")
        motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: len(y) - 1])]
        result = self.matrix_rows(part, order, np.ascontiguousarray(y), *motion)
        if result is None:
            return None
        size = self.closure.n_coordinates
        return result.reshape((order + 1, size) if part == "gravity" else (order + 1, size, size))

    def matrix_rows(self, part: Part, order: int, *motion: Array) -> Array | None:
        """Compute what `LoopMatrix` returns but for its last row, if it can be compiled and found."""
        key = part, order
        if key not in self._matrix_kernels:
            self._matrix_kernels[key] = self._matrix_kernel(part, order)
        kernel = self._matrix_kernels[key]
        if kernel is None:
            return None
        result = kernel.function(*motion, self.memory)
        return result[:-1] if result.item(kernel.bad) < 1.0 else None

    def _matrix_kernel(self, part: Part, order: int) -> LoopMatrix | None:
        if not compiles(self.closure, order):
            return None
        try:
            return LoopMatrix(self.closure, self.independence.rows, order, part)
        except TooLong:
            return None

    def _check_margin(self, moved: LoopMotion, margin: float) -> None:
        if margin >= _SINGULAR:
            return
        closure = self.closure
        raise SingularError(
            f"the pose of robot {closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_held(self, margin: float) -> None:
        """Refuse a pose at which drives do not hold the robot, from their margin; SingularError."""
        if margin < _SINGULAR:
            raise SingularError(
                f"the pose of robot {self.closure.tree.name!r} is singular: its driven joints do not hold it "
                f"there (smallest singular value {margin:.3g}); keep away from this pose",
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


def _or_carefully(
    quickly: Callable[..., Array], bad: int, carefully: Callable[..., Array]
) -> Callable[..., Array]:
    """Return a kernel's call that does carefully what the kernel cannot, as after a long way."""

    def call(*arguments: Array) -> Array:
        result = quickly(*arguments)
        if result.item(bad) < 1.0:
            return result
        found = carefully(*arguments)
        # now that it is there, the kernel says in its own measure how near a singular pose that is
        result = quickly(*arguments)
        return result if result.item(bad) < 1.0 else found

    return call


def into(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return a call that can write its result into an array, `out`."""

    def compiled(*arguments: Array, out: Array | None = None) -> Array:
        result = call(*arguments)
        if out is None:
            return result
        check_out(out, result.shape)
        out[...] = result
        return out

    return compiled


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
