"""Efforts and loads of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_result, finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.dynamics.loops.coordinate_motion import (
    coordinate_motion,
    coordinate_motions,
    count_of,
    preload_rows,
    spatial_arrays,
)
from hodyn_ros.dynamics.loops.grounded import SHIFT, is_compiled, loop_code, shifted
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_call import LoopCodes, LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.loops.platform_dynamics import sums_of
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState, base_and_joints
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.limbs.kernel import ParallelKernel
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, LoopKernel
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

    @cached_property
    def _singularity_at_home(self) -> Kept[tuple[int, Loads, bool], float]:
        return Kept()

    @finite_result
    def inverse_dynamics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
        formulation: str | None,
        preload: ArrayLike | None,
    ) -> Array | BaseAndJoints:
        """Compute what `Robot.inverse_dynamics` returns."""
        closure = self.closure
        if formulation is not None:
            if formulation not in ("embedding", "limb_decomposition"):
                raise InputError(
                    f"robots with loops have no formulation {formulation!r}; leave it out, or choose "
                    "'embedding', or 'limb_decomposition' for a platform on limbs"
                )
            y, leader = coordinate_motion(closure, q, base, 2)
            if formulation == "embedding":
                preloaded = preload_rows(closure, preload, len(y) - 3)
                efforts = self.by_embedding(y, leader, loads, preloaded)
                return base_and_joints(efforts) if closure.base_given else efforts
            if leader is None:
                raise InputError(f"robot {closure.tree.name!r} has no platform for 'limb_decomposition'")
            shortened = BaseMotion(leader.pose, leader.twists[: len(y) - 1])
            return self.by_limbs(shortened, loads, preload_rows(closure, preload, len(y) - 3))
        one_base = base is None or not isinstance(base, BaseMotion) or not base.batch
        count, y, leader = coordinate_motions(closure, q, base, 2)
        order = y.shape[-2] - 3
        preloaded = preload_rows(closure, preload, order)
        if self.only_coupled and one_base and (count or not self.is_compiled(order)):
            result = self.follow(y, leader, loads)
        else:
            result = self.efforts(y, leader, loads, preloaded)
            if not count and not loads and preload is None:
                self._keep_compiled(order)
        check_result(result)
        return base_and_joints(result) if closure.base_given else result

    def drive_state(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None,
        loads: Sequence[AppliedWrench],
        preload: ArrayLike | None,
    ) -> DriveState:
        """Compute what `Robot.drive_state` returns."""
        closure = self.closure
        count, y, leader = coordinate_motions(closure, q, base, 2)
        order, first = y.shape[-2] - 3, 6 if closure.base_given else 0
        preloaded = preload_rows(closure, preload, order)
        table = self.drive_table(y, leader, loads, preloaded)
        check_result(table[..., :-2, :])
        return DriveState(
            np.ascontiguousarray(table[..., order + 1 : -2, first:]),
            np.ascontiguousarray(table[..., : order + 1, first:]),
            np.ascontiguousarray(table[..., : order + 1, :6]) if first else None,
            self.is_near_singular(order, table, loads, preloaded is not None),
        )

    def _keep_compiled(self, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion that fits, find their code."""
        shape, compiled = (order + 3, len(self.closure.joints)), self.compile(order)
        if self.closure.leader is None:
            self.fast.inverse[shape] = compiled
        else:
            pair = self.closure.base_given
            self.fast.note_inverse(compiled, shape, order + 2, "spatial", pair=pair)

    def solve(
        self,
        y: Array,
        leader: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""
        closure, order = self.closure, len(y) - 3
        self.check_loads(leader, wrenches, order)
        motion = [y, *spatial_arrays(leader, order + 2)]
        arrays = [*motion, *(load.up_to(order) for load in wrenches)]
        arrays += [] if preload is None else [preload]
        table = self._solution_call(order, self.places(wrenches), preload is not None)(*arrays)
        n, base = closure.tree.n_joints, 6 if closure.base_given else 0
        efforts = table[: order + 1, : closure.n_efforts]
        ahead = SHIFT + 1 if self.drifts else 0  # joints of a base on the ground
        joints = np.ascontiguousarray(table[order + 1 : 2 * order + 4, ahead : ahead + n])
        loads = table[2 * order + 4 : 3 * order + 5]
        moving = leader if closure.tree.floating_base else None
        if self.drifts:
            moving = self._drifting_base(motion)
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

    @kept
    def _solution_call(self, order: int, loads: Loads, preload: bool) -> LoopedCall:
        """Return the code of a solution."""
        closure, chosen = self.closure, self.independence

        def code(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            places, rows = shifted(loads, shift), chosen.rows
            return LoopKernel(
                closure,
                chosen.of_joints,
                order,
                places,
                "solution",
                preload=preload,
                rows=rows,
                on_numbers=on_numbers,
            )

        def parts(table: Array) -> list[Array]:
            efforts, first = table[: order + 1, : closure.n_efforts], 6 if closure.base_given else 0
            loads = table[2 * order + 4 : 3 * order + 5]
            return [part for part in (efforts[:, :first], efforts[:, first:], loads) if part.size]

        made = loop_code(closure, order, order + 2, code)
        return LoopedCall(self, made, self.check_of(made, "efforts", parts), held=True)

    def efforts(
        self,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
        rows: slice | None = None,
    ) -> Array:
        """Compute the efforts (order + 1, efforts), of a prescribed base, then of the drives.

        y (order + 3, k), of a batch (N, ...) too; `base`: with spatial twists; `preload` (order + 1, driven):
        what redundant drives should come near. Or other `rows` of what `LoopKernel` returns.
        """
        order, places = y.shape[-2] - 3, self.places(wrenches)
        self.check_loads(base, wrenches, order)
        call = self.effort_call(order, places, preload is not None)
        loads = [load.up_to(order) for load in wrenches]
        arrays = [] if isinstance(call.code, ParallelKernel) else [y]
        if loads and not arrays:
            loads = sums_of([frame for _, frame in places], loads, order)
        arrays += [*spatial_arrays(base, order + 2), *loads, *([] if preload is None else [preload])]
        return call.run(count_of(y), arrays, rows)

    def drive_table(
        self,
        y: Array,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench] = (),
        preload: Array | None = None,
    ) -> Array:
        """Compute all that `LoopKernel` returns: efforts, motion of drives, and how near they are to failing.

        Arguments as of `efforts`.
        """
        return self.efforts(y, base, wrenches, preload, slice(0, 2 * y.shape[-2]))

    def compile(self, order: int, drives: bool = False) -> Callable[..., Array]:
        """Return `f([y (order + 3, k),] [pose (4, 4), twists (order + 2, 6)])`.

        It returns efforts (order + 1, efforts) and, with `drives`, the motion of the driven joints below them
        (2 order + 4, efforts), compiled where that takes some seconds at most. Twists are spatial; y is left
        out where no joint is a coordinate.
        """
        call, rows = self.effort_call(order), slice(0, 2 * order + 4 if drives else order + 1)
        takes_none = self.closure.joints or isinstance(call.code, ParallelKernel)
        return call.compiled(rows, *([] if takes_none else [np.zeros((order + 3, 0))]))

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
        nearest = table[-1, 0] if table.ndim == 2 else table[:, -1, 0].max()
        return bool(nearest > self.near_singular_from(order, self.places(wrenches), preload))

    def near_singular_from(self, order: int, loads: Loads = (), preload: bool = False) -> float:
        """Return how large the first number of the last row of `drive_table` is where poses are near."""
        key = order, loads, preload  # each kernel has its own measure
        return self._singularity_at_home.made(key, lambda: self._at_home(*key)) / _NEAR**2

    def _at_home(self, order: int, loads: Loads, preload: bool) -> float:
        start, elsewhere = home(self.closure), self.known
        self.known = start
        base = None if start.pose is None else BaseMotion(start.pose, np.zeros((order + 2, 6)))
        wrenches = [AppliedWrench(body, np.zeros(6), representation=frame) for body, frame in loads]
        y = np.zeros((order + 3, len(start.y)))
        y[0] = start.y
        preloaded = np.zeros((order + 1, len(self.closure.driven))) if preload else None
        try:
            table = self.drive_table(y, base, wrenches, preloaded)
        except SingularError:
            return np.inf
        finally:
            self.known = elsewhere
        return float(table[-1, 0])

    @kept
    def effort_call(self, order: int, loads: Loads = (), preload: bool = False) -> LoopedCall:
        """Return the code of efforts, of platforms on limbs that which computes limbs side by side."""
        closure, chosen = self.closure, self.independence.of_joints

        def code(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            places = shifted(loads, shift)
            return LoopKernel(closure, chosen, order, places, preload=preload, on_numbers=on_numbers)

        def parts(table: Array) -> list[Array]:
            efforts = table[: order + 1]
            return [efforts[:, :6], efforts[:, 6:]] if closure.base_given else [efforts]

        made: LoopCodes
        if self.platform is not None and self.platform.compiles(order, loads):
            made = self.platform.effort_kernel(order, bool(loads), preload)
        else:
            made = loop_code(closure, order, order + 2, code)
        return LoopedCall(self, made, self.check_of(made, "efforts", parts), held=True)

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
