"""Inverse kinematics of robots with couplings and loops, in compiled code as far as that goes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.kinematics.inverse_problem import (
    NO_CHOICE,
    GoalCall,
    Targets,
    check_method,
    read_motion,
    read_targets,
    read_weights,
)
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task
from hodyn_ros.dynamics.loops.looped_frames import (
    LoopedFrames,
    coordinate_named,
    moving_coordinates,
    solve_frames,
)
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.engine.loops.loop_kernel import TooLong, compiles
from hodyn_ros.engine.loops.loop_tasks import TaskMotion
from hodyn_ros.engine.recursions.frame_goals import Goals
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Array, inverse
from hodyn_ros.model.frames import Frame

_SAME = 1e-6  # [rad or m] by which joints found twice may differ
_STILL = np.zeros((0, 6))


class Asked(NamedTuple):
    """What a kernel is made for."""

    names: tuple[str | int, ...]
    tasks: tuple[Task, ...]
    order: int
    representation: Representation
    independent: frozenset[int] = frozenset()  # places among the coordinates


def _held(order: int, y: Array, weights: Array | None) -> Array:
    """Return what stays (order + 1, k) of coordinates that are not solved for, and the weights of all."""
    held = np.zeros((order + 2, len(y)))
    held[0], held[-1] = y, 1.0 if weights is None else weights
    return held


def _stacked(pose: Array, twists: Array, base_pose: Array, base_twists: Array) -> tuple[Array, Array]:
    """Return poses and twists as kernels take them of a robot on a prescribed base."""
    return np.concatenate([base_pose, pose]), np.concatenate([base_twists, twists])


class CompiledFrames:
    """Inverse kinematics of one robot with loops."""

    def __init__(self, looped: LoopedMatrices) -> None:
        self._looped = looped
        self._kernels: Kept[Asked, tuple[TaskMotion | None, int]] = Kept()
        self._moving: Kept[tuple[str | int, ...], list[int]] = Kept()
        self._noted: Kept[Hashable, TaskMotion] = Kept()  # by names and shapes of a plain call

    def solve(
        self, call: GoalCall, targets: Targets, base: BaseMotion | None
    ) -> tuple[Array, BaseMotion | None] | None:
        """Return what `solve_frames` does; None where that has to find it. `targets`: those of the call.

        `base`: the motion of a prescribed base, with spatial twists.
        """
        looped, order, redundancy = self._looped, targets.order, call.redundancy
        closure, k = looped.closure, len(looped.closure.joints)
        if closure.platform is not None:
            alone = len(targets.names) == 1 and redundancy.usual and call.seed is None
            return self._of_platform(targets) if alone else None
        seed = None if call.seed is None else finite_array("the seed", call.seed, (k,))
        independent, weights = redundancy.independent or {}, redundancy.weights
        motions = {coordinate_named(looped, name): values for name, values in independent.items()}
        asked = Asked(targets.names, targets.tasks, order, targets.representation, frozenset(motions))
        kernel, moving = self.kernel(asked)
        if kernel is None:
            return None
        check_method(redundancy.method, targets, moving, len(motions))
        y = looped.known.y if seed is None else seed
        held = _held(order, y, None if weights is None else read_weights(weights, k))
        for place, values in motions.items():
            held[:-1, place] = read_motion(closure.tree.joint_names[closure.joints[place]], values, order)
        start = None if seed is None and not motions else held[:1]
        poses, twists = targets.poses.reshape(-1, 4), targets.twists.reshape(-1, 6)
        if base is not None:
            poses, twists = _stacked(poses, twists, base.pose, base.twists[:order])
        motion = self.find(kernel, held, poses, twists, start)
        if motion is None:
            return None
        plain = call.plain(k)
        if plain is not None:
            self._noted[plain[0]] = kernel
        return motion, None

    def kernel(self, asked: Asked) -> tuple[TaskMotion | None, int]:
        """Return the kernel, compiled when first asked for, and how many coordinates move the frames."""
        return self._kernels.made(asked, lambda: self._made(asked))

    def _made(self, asked: Asked) -> tuple[TaskMotion | None, int]:
        looped, nothing = self._looped, (None, 0)
        closure = looped.closure
        frames = tuple(find_frame(closure.tree, looped.frames, name) for name in asked.names)
        if any(frame.body < 0 for frame in frames):
            return nothing
        if not compiles(closure, max(asked.order - 2, 0)):
            return nothing
        moving = self._moving.made(
            asked.names, lambda: moving_coordinates(self._at_present(frames, asked.names))
        )
        movable = [place for place in moving if place not in asked.independent]
        if not movable or not asked.independent <= set(moving):
            return nothing
        rows = tuple(ROWS[task] for task in asked.tasks)
        goals = Goals(frames, rows, asked.representation)
        try:
            return (
                TaskMotion(closure, looped.independence.of_joints, asked.order, goals, movable),
                len(moving),
            )
        except (TooLong, ZeroDivisionError):
            return nothing

    def _at_present(self, frames: Sequence[Frame], names: Sequence[str | int]) -> LoopedFrames:
        """Return frames where the robot is remembered to be."""
        looped, known, base = self._looped, self._looped.known, None
        if looped.closure.base_given and known.pose is not None:
            base = BaseMotion(known.pose, np.zeros((1, 6)))
        label = ", ".join(map(str, names))
        return LoopedFrames(looped, known, known.y, known.pose, frames, base, label)

    def again(self, call: GoalCall) -> Array | None:
        """Return what a kernel finds that has served such a call of `solve`; None where none has."""
        plain = call.plain(len(self._looped.closure.joints))
        kernel = None if plain is None else self._noted.get(plain[0])
        if plain is None or kernel is None:
            return None
        _, poses, twists, seed = plain
        order, base = len(twists) * 4 // len(poses), call.base
        weights = None if call.weights is None else np.asarray(call.weights)
        held = _held(order, self._looped.known.y if seed is None else seed[0], weights)
        if base is not None:
            if base.representation != "spatial":
                return None
            poses, twists = _stacked(poses, twists, base.pose, base.twists[:order])
        return self.find(kernel, held, poses, twists, seed)

    def compiled(
        self, order: int, names: Sequence[str | int], representation: Representation
    ) -> Callable[..., Array]:
        """Return `f(seed (1, k), poses (4 F, 4), twists (F order, 6), [base pose, base twists (order, 6)])`.

        It returns the motion (order + 1, k) of the coordinates that moves frames; what the kernel cannot do
        is left to `solve_frames`.
        """
        looped, F = self._looped, len(names)
        whole: Task = "pose"
        kernel, _ = self.kernel(Asked(tuple(names), (whole,) * F, order, representation))
        tree, k = looped.closure.tree, len(looped.closure.joints)
        of_frames = ["the pose", "the twists"] if F == 1 else ["the poses", "the twists"]
        arguments = ["the seed", *of_frames]
        arguments += ["the base pose", "the base twists"] if looped.closure.base_given else []
        shapes = [(1, k), (4 * F, 4), (F * order, 6)] + [(4, 4), (order, 6)] * looped.closure.base_given

        @finite_result
        def readable(seed: Array, poses: Array, twists: Array, *of_base: Array) -> Array:
            moved = poses.reshape(F, 4, 4), twists.reshape(F, order, 6)
            targets = read_targets(tree, *moved, representation, list(names), "pose")
            base = BaseMotion(of_base[0], of_base[1] if order else np.zeros((1, 6))) if of_base else None
            return solve_frames(looped, targets, seed[0], NO_CHOICE, base)[0]

        def call(*arrays: Array) -> Array:
            if kernel is not None and [getattr(x, "shape", None) for x in arrays] == shapes:
                seed, poses, twists, *of_base = arrays
                if of_base:
                    poses, twists = _stacked(poses, twists, *of_base)
                motion = self.find(kernel, _held(order, seed[0], None), poses, twists, seed)
                if motion is not None:
                    return motion
            if len(arrays) != len(arguments):
                raise InputError(f"expected {len(arguments)} arrays {arguments}, found {len(arrays)}")
            return readable(*(finite_array(*each) for each in zip(arguments, arrays, shapes)))

        return call

    def _of_platform(self, targets: Targets) -> tuple[Array, BaseMotion | None] | None:
        """Return what is asked for of a platform whose pose is a coordinate: as it is, where loops follow."""
        looped, platform, order = self._looped, self._looped.closure.platform, targets.order
        frame = find_frame(looped.closure.tree, looped.frames, targets.names[0])
        assert platform is not None
        whole = len(platform.rows) == 6 or platform.twists is not None
        if frame.body != platform.body or targets.tasks[0] != "pose" or not whole:
            return None
        pose, rates = targets.poses[0], targets.twists[0]
        twists = convert_screws(rates, pose, rates, targets.representation, "spatial") if order else rates
        at = pose @ inverse(frame.pose)
        y = np.zeros((order + 1, len(looped.closure.joints)))
        y[0] = looped.known.y
        if looped.quick_joint_motion(y, at, np.ascontiguousarray(twists)) is None:
            return None
        return y, BaseMotion(at, twists if order else np.zeros((1, 6)))

    def find(
        self, kernel: TaskMotion, held: Array, poses: Array, twists: Array, seed: Array | None
    ) -> Array | None:
        """Return what a kernel finds from a seed (1, k), by default from the last success, or None.

        `held`: its first argument.
        """
        before, motion = self._looped.memory.copy(), None
        with suppress(HodynError):
            motion = self._found(kernel, held, poses, twists, seed)
        if motion is None:
            self._looped.memory[:] = before
        return motion

    def _found(
        self, kernel: TaskMotion, held: Array, poses: Array, twists: Array, seed: Array | None
    ) -> Array | None:
        looped = self._looped
        at = [poses[:4], _STILL] if looped.closure.base_given else []
        if seed is not None and looped.quick_joint_motion(seed, *at) is None:
            looped.joint_motion(seed, BaseMotion(poses[:4], np.zeros((1, 6))) if at else None)
        start = looped.memory.copy()
        table: Array = kernel.function(held, poses, twists, looped.memory)
        right = table.item(kernel.defect_at) < 1.0 and self._keeps_branch(start, table[:1], at)
        return table[:-1] if right else None

    def _keeps_branch(self, start: Array, y: Array, at: Sequence[Array]) -> bool:
        """Whether coordinates y (1, k) lead from a memory to where the robot is remembered to be.

        A frame may be led past a pose at which they do not determine the motion, onto another branch.
        """
        looped = self._looped
        after = looped.memory.copy()
        looped.memory[:] = start
        again = looped.quick_joint_motion(y, *at)
        apart = float(np.abs(looped.memory - after).max())
        looped.memory[:] = after
        return again is not None and apart < _SAME
