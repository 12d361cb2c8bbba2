"""Efforts and loads of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.sample_loop import SampleLoop
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, preload_rows, sample_of
from hodyn_ros.dynamics.loops.digit_check import CheckedCall, DigitCheck, Samples, sample_loop
from hodyn_ros.dynamics.loops.grounded import SHIFT, DriftingFunction, is_compiled, loop_code, shifted
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.loops.platform_dynamics import sums_of
from hodyn_ros.engine.limbs.kernel import ParallelKernel
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, LoopKernel
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.engine.recursions.kinematics import motion_arguments
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

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
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""
        closure, order = self.closure, len(y) - 3
        kernel = self._solution_call(order, self.places(wrenches), preload is not None)
        self.check_loads(leader, wrenches, order)
        motion = [] if leader is None else [leader.pose, np.ascontiguousarray(leader.twists[: order + 2])]
        arrays = [load.up_to(order) for load in wrenches] + ([] if preload is None else [preload])
        arguments = [y, *motion, *arrays]
        table = kernel.function(*arguments, self.memory)
        table = self.finished(kernel, table, arguments, y, leader, held=True)
        n, base = closure.tree.n_joints, 6 if closure.base_given else 0
        efforts = table[: order + 1, : closure.n_efforts]
        ahead = SHIFT + 1 if self.drifts else 0  # joints of a base on the ground
        joints = np.ascontiguousarray(table[order + 1 : 2 * order + 4, ahead : ahead + n])
        loads = table[2 * order + 4 : 3 * order + 5]
        moving = leader if closure.tree.floating_base else None
        if self.drifts:
            moving = self._drifting_base(y, arguments[: 1 + len(motion)])
        elif moving is not None:
            moving = BaseMotion(moving.pose, moving.twists[: order + 2])

        positions = joints[0].copy()  # whoever writes to the joints' motion later does not change the margins

        @cache
        def margins() -> tuple[float, float]:
            place = Place(positions, None if moving is None else moving.pose)
            moved = LoopMotion(closure, place, None if leader is None else leader.pose)
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

    def _solution_call(self, order: int, loads: LoadPlaces, preload: bool) -> CheckedCall:
        """Return the code of a solution."""
        closure, chosen, key = self.closure, self.independence, (order, loads, preload)
        if key in self._solutions:
            return self._solutions[key]

        def make(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            return LoopKernel(
                closure,
                chosen.of_joints,
                order,
                shifted(loads, shift),
                "solution",
                preload=preload,
                rows=chosen.rows,
                on_numbers=on_numbers,
            )

        def parts(table: Array) -> list[Array]:
            efforts, first = table[: order + 1, : closure.n_efforts], 6 if closure.base_given else 0
            loads = table[2 * order + 4 : 3 * order + 5]
            return [part for part in (efforts[:, :first], efforts[:, first:], loads) if part.size]

        code = loop_code(closure, order, order + 2, make)
        self._solutions[key] = self.checked(code, "efforts", parts)
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
        return self._tables_of_samples(self._effort_loops, count, y, base, wrenches, preload, out)

    def drive_tables(
        self,
        count: int,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute what `drive_table` does of each sample of a batch, as `efforts_of_samples` does."""
        return self._tables_of_samples(self._drive_loops, count, y, base, wrenches, preload)

    def _tables_of_samples(
        self,
        loops: Mapping[tuple[int, LoadPlaces, bool], Samples],
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
        loop = loops[key]
        motion = [] if base is None else [base.pose, base.twists[..., : order + 2, :]]
        on_limbs = isinstance(loop, SampleLoop) and isinstance(loop.call, ParallelKernel)
        of_joints = [] if on_limbs else [y]
        loads = [load.up_to(order) for load in wrenches]
        if loads and on_limbs:
            loads = sums_of([frame for _, frame in key[1]], loads, order)
        preloads = [] if preload is None else [preload]
        return loop.run(count, [*of_joints, *motion, *loads, *preloads], self.memory, alone, out)

    def compile(self, order: int, drives: bool = False) -> Callable[..., Array]:
        """Return `f([y (order + 3, k),] [pose (4, 4), twists (order + 2, 6)])`.

        It returns efforts (order + 1, efforts) and, with `drives`, the motion of the driven joints below them
        (2 order + 4, efforts), compiled where that takes some seconds at most. Twists are spatial; y is left
        out where no joint is a coordinate.
        """
        call, rows = self._call(order, ()), slice(0, 2 * order + 4 if drives else order + 1)
        return lambda *arguments: call(*arguments)[rows]

    def compile_drive_state(self, order: int) -> Callable[..., Array]:
        """Return the same, with the motion of the driven joints."""
        return self.compile(order, drives=True)

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
        moved, margins = self.begin(np.zeros((len(base.twists) + 1, 0)), base)
        self.check_held(margins[1])
        self.remember(moved, np.zeros(0), base)
        return self.platform.decomposed(moved.place.joints, base, wrenches, preload)

    def by_embedding(
        self,
        y: Array,
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute the efforts (order + 1, efforts) by the embedding of the loops in readable NumPy."""
        self.check_loads(leader, wrenches, len(y) - 3)
        moved, margins = self.begin(y, leader)
        self.check_held(margins[1])
        self.remember(moved, y[0], leader)
        rows = self.independence.rows
        return embedding.inverse_dynamics(rows, moved, y, leader, wrenches, preload).efforts

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code."""
        if self.platform is not None and self.platform.compiles(order):
            return True
        return is_compiled(self.closure, order)

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
        return self._singularity_at_home.made(key, lambda: self._at_home(*key)) / _NEAR**2

    def _at_home(self, order: int, loads: LoadPlaces, preload: bool) -> float:
        start, elsewhere = home(self.closure), self.known
        self.known = start
        arrays = [] if start.pose is None else [start.pose, np.zeros((order + 2, 6))]
        arrays += [np.zeros((order + 1, 6))] * len(loads)
        arrays += [np.zeros((order + 1, len(self.closure.driven)))] * preload
        y = np.zeros((order + 3, len(start.y)))
        y[0] = start.y
        try:
            table = self._call(order, loads, preload)(*([y] if len(start.y) else []), *arrays)
        except SingularError:
            return np.inf
        finally:
            self.known = elsewhere
        return float(table[-1, 0])

    def _call(self, order: int, loads: LoadPlaces, preload: bool = False) -> Callable[..., Array]:
        """Return `f([y,] [pose, twists,] load..., [preload])`, compiled where that is possible."""
        return self._calls.made((order, loads, preload), lambda: self._made(order, loads, preload))

    def _made(self, order: int, loads: LoadPlaces, preload: bool) -> Callable[..., Array]:
        closure, key = self.closure, (order, loads, preload)
        still = [] if closure.joints else [np.zeros((order + 3, 0))]
        shapes = motion_arguments(order + 3, len(closure.joints), closure.leader is not None)
        shapes = shapes[not closure.joints :]
        shapes += [("a wrench", (order + 1, 6))] * len(loads)
        shapes += [("the preload", (order + 1, len(closure.driven)))] * preload

        def checked(*arguments: Any) -> tuple[Array, BaseMotion | None]:
            if len(arguments) != len(shapes):
                asked = [name for name, _ in shapes]
                raise InputError(f"expected {asked}, found {len(arguments)} arguments")
            y, *rest = list(itertools.chain(still, arguments))
            base = None
            if closure.leader is not None:
                base = BaseMotion(rest.pop(0), rest.pop(0))
            for (body, frame), values in zip(loads, rest):
                AppliedWrench(body, values, representation=frame)
            stack, motion = coordinate_motion(closure, y, base, 2)
            if len(stack) != order + 3:
                raise InputError(f"the motion must have {order + 3} rows, found {len(stack)}")
            preload_rows(closure, rest[-1] if preload else None, order)
            return stack, motion

        def parts(table: Array) -> list[Array]:
            efforts = table[: order + 1]
            return [efforts[:, :6], efforts[:, 6:]] if closure.base_given else [efforts]

        function, kernel = self._effort_code(*key)
        memory, defect_at = self.memory, int(kernel.defect_at)
        check = DigitCheck(closure, "efforts", function, shapes, defect_at, parts)
        sure = self.sure(check)
        whole = CheckedCall(kernel, check, sure, function)
        self._effort_loops[key] = sample_loop(kernel, kernel.batch_rows, sure)
        self._drive_loops[key] = sample_loop(kernel, slice(0, kernel.result[0]), sure)

        @finite_result
        def slowly(result: Array, *arguments: ArrayLike) -> Array:
            stack, motion = checked(*arguments)
            arrays = [np.asarray(array, dtype=np.float64) for array in arguments]
            return self.finished(whole, result, arrays, stack, motion, held=True)

        def call(*arguments: Array) -> Array:
            result: Array = function(*arguments, memory)
            return result if result.item(defect_at) < sure else slowly(result, *arguments)

        return call

    def _effort_code(
        self, order: int, loads: LoadPlaces, preload: bool
    ) -> tuple[Callable[..., Array], LoopFunction | DriftingFunction | ParallelKernel]:
        """Return what computes efforts, and the code behind it."""
        if self.platform is not None and self.platform.compiles(order, loads):
            function, _ = self.platform.call(order, loads, preload)
            return function, self.platform.effort_kernel(order, bool(loads), preload)
        chosen = self.independence.of_joints

        def make(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            places = shifted(loads, shift)
            return LoopKernel(closure, chosen, order, places, preload=preload, on_numbers=on_numbers)

        code = loop_code(self.closure, order, order + 2, make)
        still = [] if self.closure.joints else [np.zeros((order + 3, 0))]
        return partial(code.function, *still) if still else code.function, code

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
        coupling = closure.coupling_matrix[first:, first:]
        ratios = coupling @ np.linalg.inv(coupling[joints])
        offsets = closure.offsets - ratios @ closure.offsets[joints]
        return ratios, offsets, closure.coupling_matrix @ np.linalg.inv(closure.effort_map).T
