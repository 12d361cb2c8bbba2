"""Efforts and loads of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from hodyn_ros.checks import check_result, finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.call_arguments import MotionArguments
from hodyn_ros.dynamics.loops.closing import home
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs, looped_inputs
from hodyn_ros.dynamics.loops.grounded import SHIFT, is_compiled
from hodyn_ros.dynamics.loops.independence import conditions
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.results import BaseAndJoints, DriveState, base_and_joints
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.engine.loops.loop_efforts import EffortCode, SolutionCode
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array

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
    def _near_singular(self) -> Kept[tuple[int, Loads, bool], float]:
        return Kept()

    @finite_result
    def inverse_dynamics(self, arguments: MotionArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.inverse_dynamics` returns."""
        _, _, loads, preload, formulation = arguments
        if formulation is not None:
            if formulation not in ("embedding", "limb_decomposition"):
                raise InputError(
                    f"robots with loops have no formulation {formulation!r}; leave it out, or choose "
                    "'embedding', or 'limb_decomposition' for a platform on limbs"
                )
            inputs = self._inputs(arguments, alone=True)
            result = self._by_formulation(formulation, inputs)
            return base_and_joints(result) if self.closure.base_prescribed else result
        inputs = self._inputs(arguments)
        result = self.efforts(inputs)
        if not inputs.n_samples and not loads and preload is None:
            self._keep_compiled(inputs.orders - 2)
        check_result(result)
        return base_and_joints(result) if self.closure.base_prescribed else result

    def drive_state(self, arguments: MotionArguments, search: bool) -> DriveState:
        """Compute what `Robot.drive_state` returns."""
        inputs = self._inputs(arguments)
        order, loads, preload = inputs.orders - 2, self.places(inputs.wrenches), inputs.preload is not None
        table = self.drive_table(inputs, search)
        if not (inputs.n_samples or loads or preload):
            call = self.effort_call(order, (), False, search)
            self.fast.note(inputs.y, arguments.base, ("drive_state", search), call, table)
        return self.state_of(arguments.q, table, loads, preload)

    def state_of(self, q: Any, table: Array, loads: Loads = (), preload: bool = False) -> DriveState:
        """Return the state that `drive_table` holds; `q`, which a tree takes it from, does not matter."""
        check_result(table[..., :-2, :])
        order, first = table.shape[-2] // 2 - 3, table.shape[-1] - len(self.closure.driven)
        nearest = table[-1, 0] if table.ndim == 2 else table[:, -1, 0].max()
        return DriveState(
            np.ascontiguousarray(table[..., order + 1 : -2, first:]),
            np.ascontiguousarray(table[..., : order + 1, first:]),
            np.ascontiguousarray(table[..., : order + 1, :6]) if first else None,
            bool(nearest > self.near_singular_from(order, loads, preload)),
        )

    def _inputs(self, arguments: MotionArguments, *, alone: bool = False) -> LoopedInputs:
        """Check what a call along a motion is given."""
        q, base, loads, preload, _ = arguments
        return looped_inputs(self.closure, q, base, 2, loads, preload, alone=alone)

    def _keep_compiled(self, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion that fits, find their code."""
        shape = order + 3, len(self.closure.joints)
        compiled = self.fastest("inverse_dynamics", self.effort_call(order))
        if self.closure.leader is None:
            self.fast.inverse[shape] = compiled
        else:
            pair = self.closure.base_prescribed
            self.fast.note_inverse(compiled, shape, order + 2, "spatial", pair=pair)

    def solve(self, inputs: LoopedInputs) -> LoopSolution:
        """Compute motion, efforts and loads from the motion of the coordinates, y (order + 3, k)."""
        closure, order, leader = self.closure, inputs.orders - 2, inputs.leader
        self.check_loads(inputs, order)
        arrays = inputs.arrays(order)
        table = self._solution_call(order, self.places(inputs.wrenches), inputs.preload is not None)(*arrays)
        n, base = closure.tree.n_joints, closure.n_base
        efforts = table[: order + 1, : closure.n_efforts]
        ahead = SHIFT + 1 if self.drifts else 0  # joints of a base on the ground
        joints = np.ascontiguousarray(table[order + 1 : 2 * order + 4, ahead : ahead + n])
        loads = table[2 * order + 4 : 3 * order + 5]
        moving = leader if closure.tree.floating_base else None
        if self.drifts:
            moving = self._drifting_base(arrays[: 1 + closure.n_leader_arrays])
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
        make = partial(SolutionCode, order=order, preload=preload, rows=self.independence.rows)
        return self.call_of(make, order, loads)

    def efforts(self, inputs: LoopedInputs, rows: slice | None = None, search: bool = True) -> Array:
        """Compute the efforts (order + 1, efforts), of a prescribed base, then of the drives.

        Or other `rows` of what `EffortCode` returns; of a batch (N, ...) too.
        """
        order, places = inputs.orders - 2, self.places(inputs.wrenches)
        self.check_loads(inputs, order)
        call = self.effort_call(order, places, inputs.preload is not None, search)
        return call.run(inputs.n_samples, inputs.arrays(order), rows)

    def drive_table(self, inputs: LoopedInputs, search: bool = True) -> Array:
        """Compute all that `EffortCode` returns: efforts, motion of drives, how near they are to failing."""
        return self.efforts(inputs, slice(0, 2 * inputs.orders + 2), search)

    def _by_formulation(self, name: str, inputs: LoopedInputs) -> Array:
        """Compute the efforts (order + 1, efforts) of one sample as published, in readable NumPy.

        By the embedding of the loops or, of a platform on limbs, by their decomposition.
        """
        y, leader, wrenches, preload = inputs
        platform, robot = self.platform, self.closure.tree.name
        if name == "limb_decomposition":
            if leader is None:
                raise InputError(f"robot {robot!r} has no platform for 'limb_decomposition'")
            if platform is None:
                raise InputError(
                    f"robot {robot!r} is no platform on serial limbs, which the formulation "
                    "'limb_decomposition' is for"
                )
            leader = BaseMotion(leader.pose, leader.twists[: inputs.orders])
        self.check_loads(inputs, inputs.orders - 2)
        moved, margins = self.begin(y, leader)
        self.check_held(margins[1])
        self.remember(moved, y[0], leader)
        if name == "limb_decomposition" and platform is not None and leader is not None:
            return platform.decomposed(moved.place.joints, leader, wrenches, preload)
        rows = self.independence.rows
        return embedding.inverse_dynamics(rows, moved, y, leader, wrenches, preload).efforts

    def is_compiled(self, order: int) -> bool:
        """Whether efforts of an order are computed by compiled code."""
        return is_compiled(self.closure, order)

    def near_singular_from(self, order: int, loads: Loads = (), preload: bool = False) -> float:
        """Return how large the first number of the last row of `drive_table` is where poses are near."""
        key = order, loads, preload  # each kernel has its own measure
        limit = self._near_singular.get(key)
        if limit is None:
            limit = self._near_singular.made(key, lambda: self._at_home(*key) / _NEAR**2)
        return limit

    def _at_home(self, order: int, loads: Loads, preload: bool) -> float:
        start, elsewhere = home(self.closure), self.known
        self.known = start
        base = None if start.pose is None else BaseMotion(start.pose, np.zeros((order + 2, 6)))
        wrenches = [AppliedWrench(body, np.zeros(6), representation=frame) for body, frame in loads]
        y = np.zeros((order + 3, len(start.y)))
        y[0] = start.y
        preloaded = np.zeros((order + 1, len(self.closure.driven))) if preload else None
        try:
            table = self.drive_table(LoopedInputs(y, base, wrenches, preloaded))
        except SingularError:
            return np.inf
        finally:
            self.known = elsewhere
        return float(table[-1, 0])

    @kept
    def effort_call(
        self, order: int, loads: Loads = (), preload: bool = False, search: bool = True
    ) -> LoopedCall:
        """Return the code of efforts; without `search`, one that says soon where it does not get."""
        if not search:
            return self.effort_call(order, loads, preload).without_search()
        make, on_limbs = partial(EffortCode, order=order, preload=preload), is_on_limbs(self.closure, loads)
        return self.call_of(make, order, loads, on_limbs=on_limbs)
