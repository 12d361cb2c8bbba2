"""Accelerations of a robot with couplings and loops, compiled where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np

from hodyn_ros.checks import finite_result, n_axes
from hodyn_ros.codegen.sample_loop import each_sample
from hodyn_ros.dynamics.call_arguments import HybridArguments
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs, drive_rows, looped_inputs
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.results import BaseAndJoints, base_and_joints
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import twists_to_body
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.arrays import index_in


class LoopedAccelerations(LoopedMotion):
    """Forward and hybrid dynamics in the independent coordinates."""

    sure_order = inf  # results near singular poses are refused where too few digits are left

    @finite_result
    def forward_dynamics(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.forward_dynamics` returns."""
        closure = self.closure
        state, efforts, base, base_wrench, loads, *_ = arguments
        inputs = looped_inputs(closure, state, base, 1, loads)
        count, motion = inputs.n_samples, inputs.leader
        if n_axes(efforts) == 3 and not count:
            raise InputError(f"torques of shape {np.shape(efforts)} are a batch; give as many states")
        u = drive_rows(closure, efforts, base_wrench, count)
        table = np.ascontiguousarray(self.accelerations(inputs, u))
        if not loads and not count:
            self._keep_forward(len(u) - 1)
        if motion is None or base is None:
            return table
        twists, joints = base_and_joints(table)
        if base.representation == "body_fixed":
            first = np.broadcast_to(motion.twists[..., :1, :], (*twists.shape[:-2], 1, 6))
            whole = np.moveaxis(np.concatenate([first, twists], axis=-2), -2, 0)
            twists = np.ascontiguousarray(np.moveaxis(twists_to_body(base.pose, whole)[1:], 0, -2))
        return BaseAndJoints(twists, joints)

    def _keep_forward(self, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion, find their code."""
        closure, call = self.closure, self.fastest("forward_dynamics", self.forward_call(order))
        states, efforts = (2, len(closure.joints)), (order + 1, len(closure.driven))
        if closure.leader is None:
            self.fast.forward[states, efforts] = call
        else:

            def function(state: Array, torques: Array, pose: Array, twist: Array, *push: Array) -> Array:
                return call(state, pose, twist, torques, *push)

            checked, pushed = self.forward_dynamics, closure.base_prescribed
            self.fast.note_forward(states, efforts, "spatial", checked, function, pushed)

    @finite_result
    def hybrid_dynamics(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        """Compute what `Robot.hybrid_dynamics` returns."""
        if each := arguments.one_by_one():
            results = each_sample(len(each), lambda i: self.hybrid_dynamics(each[i]))
            if isinstance(results[0], tuple):
                return BaseAndJoints(*map(np.array, zip(*results)))
            return np.array(results)
        base = arguments.base
        table, twists = self.moved_and_driven(*self._hybrid_problem(arguments))
        first = self.closure.n_base
        joints = np.ascontiguousarray(table[:, first:])
        if base is None or twists is None:
            return joints
        if arguments.prescribe_base:
            return BaseAndJoints(np.ascontiguousarray(table[:, :6]), joints)
        if base.representation == "body_fixed":
            twists = twists_to_body(base.pose, twists)
        return BaseAndJoints(np.ascontiguousarray(twists[1:]), joints)

    def _hybrid_problem(self, arguments: HybridArguments) -> tuple[LoopedInputs, Array, list[int]]:
        """Check what hybrid dynamics of a robot with loops is given; return what `moved_and_driven` takes."""
        state, inputs, base, base_wrench, loads, prescribed, prescribe_base = arguments
        closure, first = self.closure, self.closure.n_base
        if prescribe_base and not first:
            raise InputError(f"robot {self.closure.tree.name!r} has no base to prescribe; name driven joints")
        checked = looped_inputs(closure, state, base, 1, loads, alone=True)
        values, motion = drive_rows(closure, inputs, base_wrench), checked.leader
        moved = {first + self._driven_place(joint) for joint in prescribed}
        if prescribe_base and motion is not None:
            if len(motion.twists) < len(values) + 1:
                raise InputError(f"this needs {len(values) + 1} base twists, found {len(motion.twists)}")
            values[:, :6] = motion.twists[1 : len(values) + 1]
            moved |= set(range(6))
        return checked, values, sorted(moved)

    def _driven_place(self, joint: str | int) -> int:
        """Return where a joint, by name or by its index among the driven ones, stands among these."""
        tree = self.closure.tree
        names = [tree.joint_names[place] for place in self.closure.driven]
        place = index_in(names, joint)
        if place is None:
            raise InputError(f"prescribed names {joint!r}; the driven joints of {tree.name!r} are {names}")
        return place

    def moved_and_driven(
        self, inputs: LoopedInputs, values: Array, prescribed: Sequence[int]
    ) -> tuple[Array, Array | None]:
        """Compute what is not given where some drives are moved and others push.

        `inputs`: a state (2, k), pose and twist of platform or base. `values` (order + 1, efforts), as
        `Closure.effort_map` takes them, holds accelerations and their derivatives in the `prescribed`
        columns, efforts in the others. Returns efforts in the prescribed columns, accelerations in those of
        the other drives, and the spatial twist of platform or base.
        """
        first, leader = self.closure.n_base, inputs.leader
        drives = tuple(place - first for place in prescribed)
        call = self.forward_call(len(values) - 1, self.places(inputs.wrenches), drives)
        table = call(*self._arrays(inputs, values))
        if leader is None:
            return table[:-1], None
        of_base = values if min(drives, default=0) < 0 else table[:-1]
        twists = np.concatenate([leader.twists[:1], of_base[:, :6]])
        return table[:-1, 6 - first :], twists

    def accelerations(self, inputs: LoopedInputs, efforts: Array) -> Array:
        """Compute what `AccelerationCode` returns but for its last row: accelerations by order.

        `inputs` as of `moved_and_driven`, of platform or base that move freely then; `efforts` (order + 1,
        efforts) as `Closure.effort_map` takes them. Of a batch too.
        """
        self.check_loads(inputs, 0)  # of higher orders, motion is not known yet
        call = self.forward_call(efforts.shape[-2] - 1, self.places(inputs.wrenches))
        return call.run(inputs.n_samples, self._arrays(inputs, efforts))

    def _arrays(self, inputs: LoopedInputs, efforts: Array) -> list[Array]:
        """Return what the code takes."""
        drives = [efforts[..., 6:], efforts[..., :6]] if self.closure.base_prescribed else [efforts]
        arrays = inputs._replace(y=inputs.y[..., :2, :]).arrays(efforts.shape[-2] - 1, *drives)
        return [np.ascontiguousarray(array) for array in arrays]

    @kept
    def forward_call(
        self, order: int, loads: Loads = (), drives: tuple[int, ...] | None = None
    ) -> LoopedCall:
        """Return the code of forward dynamics, or of hybrid dynamics with `drives` whose motion is given."""
        if self.independence.idle:
            raise InputError(self.independence.idle)
        return self.call_of(partial(AccelerationCode, order=order, prescribed=drives), order, loads)
