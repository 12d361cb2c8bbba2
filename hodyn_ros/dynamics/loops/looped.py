"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from hodyn_ros.checks import check_finite, finite_result, into
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.digits import CLOSING
from hodyn_ros.dynamics.kinematics.carriers import last_body
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall
from hodyn_ros.dynamics.loops.coordinate_motion import (
    batch_size,
    drive_values,
    looped_inputs,
    prescribed_base,
)
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_frames import CompiledFrames, solve_frames
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.loops.looped_partials import LoopedPartials
from hodyn_ros.dynamics.loops.moved_by_drives import MovedByDrives
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.results import CoordinateMotion
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, compiles
from hodyn_ros.engine.loops.platform_drives import PlatformCode
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array

_STILL = np.zeros((1, 6))


class LoopedDynamics(LoopedPartials, LoopedMatrices):
    """Motions, efforts, accelerations, matrices and partials of a robot with couplings and loops."""

    _by_drives: MovedByDrives | None = None

    def rounding_gain(self, call: str) -> float:
        """Return by how much errors exceed those that rounded arguments make."""
        return CLOSING

    @cached_property
    def compiled_frames(self) -> CompiledFrames:
        """Inverse kinematics of single frames in compiled code."""
        return CompiledFrames(self)

    def joint_motion_or_none(self, q: ArrayLike | None, base: BaseMotion | None) -> Array | None:
        """Return the motion of all joints, of arguments such as have been checked; None of others."""
        result: Array | None = self.fast.again(q, base, "joint_motion")
        return result

    def tree_motion(self, q: ArrayLike | None, base: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of all joints, and of a floating base of the tree."""
        inputs = looped_inputs(self.closure, q, base, 0)
        result = self.joint_motion(inputs.y, inputs.leader)
        if not inputs.n_samples and not self.drifts:
            call = self.joint_call(inputs.orders)
            self.fast.note(inputs.y, base, ("joint_motion",), call.compiled(call.law.batch_rows), result[0])
        return result

    def all_joints(self, q: ArrayLike | None, base: BaseMotion | None) -> Array:
        """Compute what `Robot.joint_motion` returns."""
        result = self.joint_motion_or_none(q, base)
        return finite_result(self.tree_motion)(q, base)[0] if result is None else result

    def inverse_kinematics(self, call: GoalCall) -> Array | CoordinateMotion:
        """Compute what `Robot.inverse_kinematics` returns."""
        result = self.compiled_frames.again(call)
        if result is not None:
            return result
        moved = self._inverse_kinematics(call)
        return moved.joints if moved.base is None else moved

    @finite_result
    def _inverse_kinematics(self, call: GoalCall) -> CoordinateMotion:
        tree, base = self.closure.tree, call.base
        targets = call.targets(tree)
        if self.closure.base_prescribed:
            base = prescribed_base(self.closure, base, targets.order)
        elif base is not None:
            raise InputError(f"robot {tree.name!r} has no base that moves as prescribed; leave `base` out")
        motion = self.compiled_frames.solve(call, targets, base)
        if motion is None:
            motion = solve_frames(self, call, targets, base)
        joints, platform = motion
        return CoordinateMotion(platform, joints)

    def compiled(self, what: str, order: int, of: tuple[Any, ...]) -> Callable[..., Array]:
        """Return the fastest callable of an operation."""
        operation = OPERATIONS[what]
        if operation.loops:
            call: Any = self.product_call(what, order, *of)
        else:
            call = operation.law("loops_call")(self, order, *of)
        return into(self.fastest(what, call) if isinstance(call, LoopedCall) else call)

    def compiled_batch(
        self, what: str, order: int, of: tuple[Any, ...], call: Callable[..., Any], kind: DTypeLike
    ) -> Callable[..., Array]:
        """Return the fastest callable of an operation of batches, whose `call` is that of the robot."""
        if np.dtype(kind) != np.float64:
            own = "loops" if self.closure.loops else "couplings"
            raise InputError(f"robot {self.closure.tree.name!r} has {own}, whose batches are of float64")
        if OPERATIONS[what].takes == "drives":
            written = into(self.compile_drives_of_samples(order))
        else:
            written = into(self._batches(what, order, of, call))
        return lambda *arrays, out=None, threads=None: written(*arrays, out=out)  # in one thread

    def _batches(
        self, what: str, order: int, of: tuple[Any, ...], call: Callable[..., Any]
    ) -> Callable[..., Array]:
        closure, operation = self.closure, OPERATIONS[what]
        forward = operation.takes == "state"
        takes_q = bool(closure.joints) or not operation.q_left_out
        count = takes_q + closure.n_leader_arrays + forward + (forward and closure.base_prescribed)
        rows = 2 if forward else order + 1 + operation.rates

        def compute(*arrays: Array) -> Array:
            rest, samples = list(arrays), batch_size(arrays, count)
            q = rest.pop(0) if takes_q else np.zeros((samples, rows, 0))
            base = None
            if closure.leader is not None:
                pose, twists = rest.pop(0), rest.pop(0)
                base = BaseMotion(pose, twists if np.shape(twists)[1] else np.zeros((samples, 1, 6)))
            if np.shape(q)[1] != rows or (forward and np.shape(rest[0])[1] != order + 1):
                raise InputError(f"expected motions of {rows} rows, found {np.shape(q)[1]}")
            result: Any
            if operation.loops:
                result = self.computed(what, q, base, *of)
            else:
                result = call(q, *rest[:forward], base, *rest[forward:])
            if isinstance(result, tuple):
                result = np.concatenate(result, axis=2)
            return np.ascontiguousarray(result.reshape(samples, -1, result.shape[-1]))

        return compute

    def compile_inverse_kinematics(
        self, order: int, names: Sequence[str | int], representation: Representation
    ) -> Callable[..., Array]:
        """Return `f(seed, poses, twists)` of the motion of the coordinates."""
        tree = self.closure.tree
        if self.closure.platform is not None:
            raise InputError(
                f"there is no compiled inverse kinematics of robot {tree.name!r}, which a platform moves"
            )
        return self.compiled_frames.compiled(order, names or [last_body(tree)], representation)

    def move_drives(self, drives: Array, leader: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of the coordinates, and of a platform, from that of the drives (orders, driven).

        `leader`: the motion of a prescribed base, with spatial twists. With more drives than coordinates some
        determine the motion, and the others have to agree: InputError.
        """
        self._drive_call(len(drives) - 1)
        base = [] if leader is None else leader.arrays(len(drives) - 1)
        result = self.compiled_drive_motion(np.ascontiguousarray(drives), *base)
        if result is not None:
            return result
        return self._moved_by_drives.move(drives, leader)

    def compile_move_drives(self, order: int) -> Callable[..., Array]:
        """Return `f(drives (order + 1, driven), [pose (4, 4), twists (order, 6)])`.

        The row (1, ...) holds the pose of the platform by rows and its spatial twists, if there is one, then
        the motion of the joints that are coordinates, one order after the other. Pose and twists given are
        those of a prescribed base.
        """
        closure = self.closure

        def call(drives: Array, *base: Array) -> Array:
            rows = drive_values("the motion of the drives", closure, drives)
            if len(rows) != order + 1 or len(base) != 2 * closure.base_prescribed:
                besides = ", pose and twists of the base" * closure.base_prescribed
                raise InputError(f"expected a motion of {order + 1} rows{besides}")
            leader = BaseMotion(base[0], base[1] if order else _STILL) if base else None
            q, platform = self.move_drives(rows, leader and leader.in_representation("spatial"))
            parts = (
                [q.ravel()] if platform is None else [*(x.ravel() for x in platform.arrays(order)), q.ravel()]
            )
            return np.concatenate(parts)[None]

        compiled = self._drive_call(order)
        if compiled is None:
            return call
        quick_call, rows = compiled.quick, slice(0, self._drive_columns(order))

        def by_code(*arguments: Array) -> Array:
            table = quick_call(*arguments)
            return call(*arguments) if table is None else table[:1, rows]

        return by_code

    def compile_drives_of_samples(self, order: int) -> Callable[..., Array]:
        """Return what `compile_move_drives` does, of batches: each sample on the branch of the one before."""
        alone, compiled = self.compile_move_drives(order), self._drive_call(order)
        loop = None if compiled is None else compiled.samples()

        def call(*arrays: Array) -> Array:
            count = batch_size(arrays, 1 + 2 * self.closure.base_prescribed)
            for array in arrays:
                check_finite("the batch", array)

            def one(i: int) -> Array:
                return alone(*[array[i] for array in arrays])

            if loop is None or arrays[0].shape[1:] != loop.call.arguments[0][1]:
                return one_by_one(count, one)
            columns, width = self._drive_columns(order), loop.call.result[1]
            padding = np.zeros((1, width - columns))
            result = loop.run(count, arrays, self.memory, lambda i: np.hstack([one(i), padding]))
            return np.ascontiguousarray(result[..., :columns])

        return call

    def _drive_columns(self, order: int) -> int:
        """Return how many numbers say how platform and coordinates move."""
        of_platform = 0 if self.closure.platform is None else POSE + 6 * order
        return of_platform + (order + 1) * len(self.closure.joints)

    def compiled_drive_motion(self, drives: Array, *base: Array) -> tuple[Array, BaseMotion | None] | None:
        """Return what `move_drives` does, if it has compiled code that can; `base`: its pose and twists."""
        order = len(drives) - 1
        call: LoopedCall | None = self.calls.get(("_drive_call", order))
        table = None if call is None else call.quick(drives, *base)
        if table is None:
            return None
        return self._read(order, table)

    def _read(self, order: int, table: Array) -> tuple[Array, BaseMotion | None]:
        closure, row, platform, behind = self.closure, table[0], None, 0
        if closure.platform is not None:
            behind = POSE + 6 * order
            twists = row[POSE:behind].reshape(order, 6) if order else _STILL
            platform = BaseMotion.computed(row[:POSE].reshape(4, 4), twists)
        k = len(closure.joints)
        return row[behind : behind + (order + 1) * k].reshape(order + 1, k), platform

    @kept
    def _drive_call(self, order: int) -> LoopedCall | None:
        """Return the code that finds the motion from that of the drives; None where there is none."""
        if self.platform is not None and compiles(self.closure, order, on_limbs=True):
            return LoopedCall(self, LoopFunction(PlatformCode(self.closure, order)))
        code = self._moved_by_drives.kernel(order)
        return None if code is None else LoopedCall(self, code)

    @property
    def _moved_by_drives(self) -> MovedByDrives:
        if self._by_drives is None or not self._by_drives.near:
            self._by_drives = MovedByDrives(self)
        return self._by_drives
