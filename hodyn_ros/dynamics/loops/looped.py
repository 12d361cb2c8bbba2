"""Dynamics of a tree with couplings and loops, in its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from hodyn_ros.checks import check_finite
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.sample_loop import SampleLoop, one_by_one
from hodyn_ros.digits import moving_rows
from hodyn_ros.dynamics.kinematics.carriers import last_body
from hodyn_ros.dynamics.loops.compiled_frames import CompiledFrames
from hodyn_ros.dynamics.loops.coordinate_motion import batch_size, drive_values
from hodyn_ros.dynamics.loops.looped_call import LoopedCall
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.loops.looped_partials import LoopedPartials
from hodyn_ros.dynamics.loops.moved_by_drives import MovedByDrives
from hodyn_ros.engine.limbs.direct_kinematics import DirectKinematics
from hodyn_ros.engine.loops.loop_kernel import LoopFromDrives
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array

_STILL = np.zeros((1, 6))


class LoopedDynamics(LoopedPartials, LoopedMatrices):
    """Motions, efforts, accelerations, matrices and partials of a robot with couplings and loops."""

    _by_drives: MovedByDrives | None = None

    @cached_property
    def _drive_calls(self) -> Kept[int, LoopedCall | None]:
        return Kept()

    @cached_property
    def compiled_frames(self) -> CompiledFrames:
        """Inverse kinematics of single frames in compiled code."""
        return CompiledFrames(self)

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
            if len(rows) != order + 1 or len(base) != 2 * closure.base_given:
                besides = ", pose and twists of the base" * closure.base_given
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
        found, rows = compiled.found, slice(0, self._drive_columns(order))

        def by_code(*arguments: Array) -> Array:
            table = found(*arguments)
            return call(*arguments) if table is None else table[:1, rows]

        return by_code

    def compile_drives_of_samples(self, order: int) -> Callable[..., Array]:
        """Return what `compile_move_drives` does, of batches: each sample on the branch of the one before."""
        alone, compiled = self.compile_move_drives(order), self._drive_call(order)
        loop = None if compiled is None else compiled.samples()

        def call(*arrays: Array) -> Array:
            count = batch_size(arrays, 1 + 2 * self.closure.base_given)
            for array in arrays:
                check_finite("the batch", array)

            def one(i: int) -> Array:
                return alone(*[array[i] for array in arrays])

            if not isinstance(loop, SampleLoop) or arrays[0].shape[1:] != loop.call.arguments[0][1]:
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
        call = self._drive_calls.get(order)
        table = None if call is None else call.found(drives, *base)
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

    def _drive_call(self, order: int) -> LoopedCall | None:
        """Return the code that finds the motion from that of the drives; None where there is none."""

        def make() -> LoopedCall | None:
            code: LoopFromDrives | DirectKinematics | None
            if self.platform is not None and self.platform.compiles(order):
                code = self.platform.direct_kinematics(order)
            else:
                code = self._moved_by_drives.kernel(order)
            if code is None:
                return None
            return LoopedCall(self, code, self.check_of(code, "drives", partial(self._parts, order)))

        return self._drive_calls.made(order, make)

    def _parts(self, order: int, table: Array) -> list[Array]:
        """Return the pose and twists of a platform, and the motion of the coordinates, by order."""
        q, platform = self._read(order, table)
        parts = [] if platform is None else [moving_rows(platform.pose, platform.twists[:order])]
        return [*parts, q] if q.size else parts

    @property
    def _moved_by_drives(self) -> MovedByDrives:
        if self._by_drives is None or not self._by_drives.near:
            self._by_drives = MovedByDrives(self)
        return self._by_drives
