"""Efforts and loads of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result, into
from hodyn_ros.codegen.sample_loop import SampleLoop, one_by_one
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, preload_rows, sample_of
from hodyn_ros.dynamics.loops.digit_check import CheckedCall, DigitCheck
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_motion import KEPT, LoopedMotion
from hodyn_ros.dynamics.loops.platform_dynamics import sums_of
from hodyn_ros.engine.limbs.kernel import ParallelKernel
from hodyn_ros.engine.loops.loop_kernel import LoopKernel, compiles
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.errors import InputError, OverflowingError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array, matvec

_NEAR = 0.1  # share of the distance to singularity at home from which a pose counts as near a singular one


@dataclass(frozen=True, eq=False)
class LoopSolution:
    """Everything that moves and holds a robot with loops, by derivative order."""

    joints: Array  # (order + 3, n) positions and derivatives of all joints of the tree [rad or m, /s^k]
    base: BaseMotion | None  # motion of a floating base, spatial
    drives: Array  # (order + 3, driven) those of the driven joints
    efforts: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    base_wrench: Array | None  # (order + 1, 6) on a prescribed base, in the world frame
    loads: Mapping[str, Array]  # by loop (order + 1, 6): the wrench that a exerts on b, in the world frame
    margins: Callable[[], tuple[float, float]]  # `motion_margin` and `drive_margin`

    @cached_property
    def motion_margin(self) -> float:
        """The smallest singular value, without units: 0 where the coordinates fail."""
        return self.margins()[0]

    @cached_property
    def drive_margin(self) -> float:
        """The same of the drives: 0 where they do not hold the robot."""
        return self.margins()[1]


class LoopedEfforts(LoopedMotion):
    """Inverse dynamics in the independent coordinates."""

    def solve(
        self,
        y: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""

        def again(y: Array, given: BaseMotion | None, *preload: Array) -> Array:
            return _rows(self._solved(y, given, wrenches, *preload))

        with self._kept_on_error():
            found = self._solved(y, given, wrenches, preload)
            margin = min(found.motion_margin, found.drive_margin)
            preloads = [] if preload is None else [preload]
            self.judge("efforts", margin, _rows(found), again, y, given, preloads)
            return found

    def _solved(
        self,
        y: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench],
        preload: Array | None = None,
    ) -> LoopSolution:
        """Return what `solve` does, however few digits are left."""
        with self._kept_on_error():
            closure, rows = self.closure, self.independence.rows
            order = len(y) - 3
            self.check_loads(given, wrenches, order)
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
                lambda: margins,
            )

    def quick_solution(
        self,
        y: Array,
        given: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution | None:
        """Return what `solve` does by compiled code; None where that does not find it."""
        closure, order = self.closure, len(y) - 3
        kernel = self._solution_kernel(order, self.places(wrenches), preload is not None)
        if kernel is None:
            return None
        self.check_loads(given, wrenches, order)
        motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: order + 2])]
        others = [load.up_to(order) for load in wrenches] + ([] if preload is None else [preload])
        arguments = [y, *motion, *others]
        table = kernel.call.function(*arguments, self.memory)
        if not kernel.counts(table, arguments, self.memory):
            return None
        n, base = closure.tree.n_joints, 6 if closure.base_given else 0
        efforts = table[: order + 1, : closure.n_efforts]
        joints = np.ascontiguousarray(table[order + 1 : 2 * order + 4, :n])
        loads = table[2 * order + 4 : 3 * order + 5]
        moving = given if closure.tree.floating_base else None
        if moving is not None:
            moving = BaseMotion(moving.pose, moving.twists[: order + 2])

        positions = joints[0].copy()  # whoever writes to the joints' motion later does not change the margins

        @cache
        def margins() -> tuple[float, float]:
            place = Place(positions, None if moving is None else moving.pose)
            moved = LoopMotion(closure, place, None if given is None else given.pose)
            return conditions(closure, moved, self.independence.rows)

        return LoopSolution(
            joints,
            moving,
            np.ascontiguousarray(joints[:, list(closure.driven)]),
            np.ascontiguousarray(efforts[:, base:]),
            np.ascontiguousarray(efforts[:, :6]) if base else None,
            MappingProxyType(
                {
                    loop.name: np.ascontiguousarray(loads[:, 6 * i : 6 * i + 6])
                    for i, loop in enumerate(closure.loops)
                }
            ),
            margins,
        )

    def _solution_kernel(
        self, order: int, loads: LoadPlaces, preload: bool
    ) -> CheckedCall[LoopKernel] | None:
        """Return the kernel of a solution, if there is one."""
        closure, chosen = self.closure, self.independence
        if not compiles(closure, order):
            return None
        key = order, loads, preload
        if key not in self._solutions:
            if len(self._solutions) >= KEPT:
                del self._solutions[next(iter(self._solutions))]
            kernel = LoopKernel(
                closure, chosen.given, order, loads, "solution", preload=preload, rows=chosen.rows
            )

            def parts(table: Array) -> list[Array]:
                efforts, first = table[: order + 1, : closure.n_efforts], 6 if closure.base_given else 0
                loads = table[2 * order + 4 : 3 * order + 5]
                return [part for part in (efforts[:, :first], efforts[:, first:], loads) if part.size]

            self._solutions[key] = self.checked(kernel, "efforts", parts)
        return self._solutions[key]

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
        places = self.places(wrenches)
        self.check_loads(base, wrenches, order)
        loads = [load.up_to(order) for load in wrenches]
        preloads = [] if preload is None else [preload]
        call = self._call(order, places, preload is not None)
        return call(*([y] if y.shape[1] else []), *motion, *loads, *preloads)

    def efforts_of_samples(
        self,
        count: int,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        """Compute the efforts (count, order + 1, efforts) of a batch, y (count, order + 3, k).

        Each sample stays on the branch of the one before, several at a time in lanes where there is code.
        """
        rows = slice(0, y.shape[-2] - 2)
        return self._tables_of_samples(self._effort_loops, rows, count, y, base, wrenches, preload, out)

    def drive_tables(
        self,
        count: int,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute what `drive_table` does of each sample of a batch, as `efforts_of_samples` does."""
        return self._tables_of_samples(self._drive_loops, slice(None), count, y, base, wrenches, preload)

    def _tables_of_samples(
        self,
        loops: Mapping[tuple[int, LoadPlaces, bool], SampleLoop],
        rows: slice,
        count: int,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench],
        preload: Array | None,
        out: Array | None = None,
    ) -> Array:
        order = y.shape[-2] - 3

        def alone(i: int) -> Array:
            return self.drive_table(np.ascontiguousarray(y[i]), sample_of(base, i), wrenches, preload)

        key = order, self.places(wrenches), preload is not None
        self.check_loads(base, wrenches, order)
        self._call(*key)
        loop = loops.get(key)
        if loop is None:
            return one_by_one(count, lambda i: alone(i)[rows], out)
        motion = [] if base is None else [base.pose, base.twists[..., : order + 2, :]]
        told = [] if isinstance(loop.call, ParallelKernel) else [y]
        loads = [load.up_to(order) for load in wrenches]
        if loads and isinstance(loop.call, ParallelKernel):
            loads = sums_of([frame for _, frame in key[1]], loads, order)
        preloads = [] if preload is None else [preload]
        return loop.run(count, [*told, *motion, *loads, *preloads], self.memory, alone, out)

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
        self.check_loads(base, wrenches, len(base.twists) - 2)
        moved, margins = self.move(np.zeros((len(base.twists) + 1, 0)), base)
        self.check_held(margins[1])
        return self.platform.decomposed(moved.place.joints, base, wrenches, preload)

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code, but where that fails."""
        return compiles(self.closure, order) or (self.platform is not None and self.platform.compiles(order))

    def is_near_singular(
        self, order: int, table: Array, wrenches: Sequence[AppliedWrench] = (), preload: bool = False
    ) -> bool:
        """Whether results of `drive_table` with such wrenches and preload are near a singular pose."""
        return bool(
            (table[..., -1, 0] > self.near_singular_from(order, self.places(wrenches), preload)).any()
        )

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
            if len(self._calls) >= KEPT:
                oldest = next(iter(self._calls))
                del self._calls[oldest]
                self._effort_loops.pop(oldest, None)
                self._drive_loops.pop(oldest, None)
            self._calls[key] = self._made(*key)
        return self._calls[key]

    def _made(self, order: int, loads: LoadPlaces, preload: bool) -> Callable[..., Array]:
        closure, key = self.closure, (order, loads, preload)
        still = [] if closure.joints else [np.zeros((order + 3, 0))]
        names = ["the motion"] if closure.joints else []
        names += [] if closure.leader is None else ["the pose", "the twists"]
        names += ["a wrench"] * len(loads) + ["the preload"] * preload

        def checked(
            *arguments: ArrayLike,
        ) -> tuple[Array, BaseMotion | None, list[AppliedWrench], Array | None]:
            if len(arguments) != len(names):
                raise InputError(f"expected {names}, found {len(arguments)} arguments")
            y, *rest = list(itertools.chain(still, arguments))
            base = None
            if closure.leader is not None:
                base = BaseMotion(rest.pop(0), rest.pop(0))  # type: ignore[arg-type]
            wrenches = [
                AppliedWrench(body, values, representation=frame)  # type: ignore[arg-type]
                for (body, frame), values in zip(loads, rest)
            ]
            stack, motion = coordinate_motion(closure, y, base, 2)
            if len(stack) != order + 3:
                raise InputError(f"the motion must have {order + 3} rows, found {len(stack)}")
            return stack, motion, wrenches, preload_rows(closure, rest[-1] if preload else None, order)

        shapes = [(order + 3, len(closure.joints))] if closure.joints else []
        shapes += [] if closure.leader is None else [(4, 4), (order + 2, 6)]
        shapes += [(order + 1, 6)] * len(loads) + [(order + 1, len(closure.driven))] * preload

        def check_of(function: Callable[..., Array], bad: int) -> DigitCheck:
            def parts(table: Array) -> list[Array]:
                efforts = table[: order + 1]
                return [efforts[:, :6], efforts[:, 6:]] if closure.base_given else [efforts]

            return DigitCheck(closure, "efforts", function, names, bad, parts, list(zip(names, shapes)))

        @finite_result
        def carefully(*arguments: ArrayLike) -> Array:
            return _table(self.solve(*checked(*arguments)))

        @finite_result
        def approach(*arguments: ArrayLike) -> Array:
            stack, motion, *_ = checked(*arguments)
            moved, margins = self.begin(stack, motion)
            self.check_held(margins[1])
            self.remember(moved, stack[0], motion)
            return moved.place.joints

        memory, kernel = self.memory, self._effort_kernel(*key)
        if kernel is None:
            return carefully
        function, bad = kernel.function, kernel.bad
        if isinstance(kernel, ParallelKernel) and self.platform is not None:
            function, bad = self.platform.call(*key)
        elif still:
            function = partial(function, *still)
        check = check_of(function, bad)
        sure = self.sure(check)
        self._effort_loops[key] = SampleLoop(kernel, sure=sure)
        self._drive_loops[key] = SampleLoop(kernel, slice(0, kernel.result[0]), sure)

        def call(*arguments: Array) -> Array:
            result: Array = function(*arguments, memory)
            if result.item(bad) < sure:
                return result
            if not result.item(bad) < 1.0:  # as after a long way, on which this goes ahead
                approach(*arguments)
                result = function(*arguments, memory)
                if not result.item(bad) < 1.0:
                    return carefully(*arguments)
            if not result.item(bad) < sure:
                check.refuse(result, arguments, memory)
            return result

        return call

    def _effort_kernel(
        self, order: int, loads: LoadPlaces, preload: bool
    ) -> LoopKernel | ParallelKernel | None:
        if self.platform is not None and self.platform.compiles(order, loads):
            return self.platform.effort_kernel(order, bool(loads), preload)
        if not compiles(self.closure, order):
            return None
        return LoopKernel(self.closure, self.independence.given, order, loads, preload=preload)

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


def _rows(one: LoopSolution) -> Array:
    """Return all efforts of a solution (order + 1, efforts)."""
    return one.efforts if one.base_wrench is None else np.concatenate([one.base_wrench, one.efforts], axis=1)


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
