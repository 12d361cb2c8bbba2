"""Inverse kinematics of robots with couplings and loops, in compiled code as far as that goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.dynamics.kinematics.inverse_problem import Bodies, Targets, Tasks, read_targets
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task
from hodyn_ros.dynamics.loops.independence import pivoted
from hodyn_ros.dynamics.loops.looped_frames import LoopedFrames, moving_coordinates, solve_frames
from hodyn_ros.dynamics.loops.looped_matrices import LoopedMatrices
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.engine.loops.loop_goals import GoalMotion, LoopGoal, part_rows
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Array, inverse

_SAME = 1e-6  # [rad or m] by which joints found twice may differ
_STILL = np.zeros((0, 6))
_REPRESENTATIONS: dict[str, Representation] = {"world": "spatial", "body": "body_fixed"}
_DETERMINED = 1e-6  # what a row must add to those chosen before, without units


class Asked(NamedTuple):
    """What a kernel is made for."""

    name: str | int  # of a body or frame
    task: Task
    order: int
    representation: Representation


def _stacked(pose: Array, twists: Array, base_pose: Array, base_twists: Array) -> tuple[Array, Array]:
    """Return poses and twists as kernels take them of a robot on a prescribed base."""
    return np.concatenate([base_pose, pose]), np.concatenate([base_twists, twists])


class CompiledFrames:
    """Inverse kinematics of one robot: of one frame that no more coordinates move than it has components."""

    def __init__(self, looped: LoopedMatrices) -> None:
        self._looped = looped
        self._goals: dict[tuple[str | int, Task], tuple[tuple[str, ...], tuple[int, ...]] | None] = {}
        self._kernels: dict[Asked, GoalMotion | None] = {}

    def solve(
        self, targets: Targets, seed: ArrayLike | None, base: BaseMotion | None
    ) -> tuple[Array, BaseMotion | None] | None:
        """Return what `solve_frames` does of one frame; None where that has to find it."""
        if self._looped.closure.platform is not None:
            return None if seed is not None else self._of_platform(targets)
        asked = Asked(targets.names[0], targets.tasks[0], targets.order, targets.representation)
        kernel = self.kernel(asked)
        if kernel is None:
            return None
        moved = targets.poses[0], targets.twists[0]
        if base is not None:
            moved = _stacked(*moved, base.pose, base.twists[: targets.order])
        start = None
        if seed is not None:
            start = finite_array("the seed", seed, (len(self._looped.closure.joints),))[None]
        found = self.find(kernel, *moved, start)
        return None if found is None else (found, None)

    def at_once(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None,
        frame: str,
        body: Bodies,
        seed: ArrayLike | None,
        task: Tasks,
        base: BaseMotion | None,
    ) -> Array | None:
        """Return what a kernel finds that `solve` has made, of plain arrays; None for anything else."""
        rates = _STILL if twists is None else twists
        named = type(frame) is type(body) is type(task) is str
        if not named or type(pose) is not np.ndarray or type(rates) is not np.ndarray:
            return None
        if pose.shape != (4, 4) or rates.ndim != 2 or rates.shape[1] != 6 or frame not in _REPRESENTATIONS:
            return None
        order = len(rates)
        asked = Asked(body, task, order, _REPRESENTATIONS[frame])  # type: ignore[arg-type]
        kernel = self._kernels.get(asked)
        if kernel is None or not (seed is None or type(seed) is np.ndarray):
            return None
        if self._looped.closure.base_given:
            if type(base) is not BaseMotion or base.frame != "world" or base.batch:
                return None
            if len(base.twists) < order:
                return None
            pose, rates = _stacked(pose, rates, base.pose, base.twists[:order])
        elif base is not None:
            return None
        return self.find(kernel, pose, rates, None if seed is None else seed[None])  # type: ignore[call-overload, index]

    def compiled(self, order: int, name: str | int, representation: Representation) -> Callable[..., Array]:
        """Return `f(seed (1, k), pose (4, 4), twists (order, 6), [base pose, base twists (order, 6)])`.

        It returns the motion (order + 1, k) of the coordinates that moves a frame; what the kernel cannot do
        is left to `solve_frames`.
        """
        looped, kernel = self._looped, self.kernel(Asked(name, "pose", order, representation))
        tree, k = looped.closure.tree, len(looped.closure.joints)
        names = ["the seed", "the pose", "the twists"]
        names += ["the base pose", "the base twists"] if looped.closure.base_given else []
        shapes = [(1, k), (4, 4), (order, 6)] + [(4, 4), (order, 6)] * looped.closure.base_given

        @finite_result
        def careful(seed: Array, pose: Array, twists: Array, *of_base: Array) -> Array:
            targets = read_targets(tree, pose, twists, "world", name, "pose", representation)
            base = BaseMotion(of_base[0], of_base[1] if order else np.zeros((1, 6))) if of_base else None
            return solve_frames(looped, targets, seed[0], None, None, {}, base)[0]

        def call(*arguments: Array) -> Array:
            if kernel is not None and [getattr(x, "shape", None) for x in arguments] == shapes:
                seed, pose, twists, *of_base = arguments
                if of_base:
                    pose, twists = _stacked(pose, twists, *of_base)
                found = self.find(kernel, pose, twists, seed)
                if found is not None:
                    return found
            if len(arguments) != len(names):
                raise InputError(f"expected {len(names)} arrays {names}, found {len(arguments)}")
            return careful(*(finite_array(*each) for each in zip(names, arguments, shapes)))

        return call

    def _of_platform(self, targets: Targets) -> tuple[Array, BaseMotion | None] | None:
        """Return what is asked for of a platform whose pose is a coordinate: as it is, where loops follow."""
        looped, platform, order = self._looped, self._looped.closure.platform, targets.order
        frame = find_frame(looped.closure.tree, looped.frames, targets.names[0])
        assert platform is not None
        whole = len(platform.rows) == 6 or platform.twists is not None
        if frame.body != platform.body or targets.tasks[0] != "pose" or not whole:
            return None
        pose, given = targets.poses[0], targets.twists[0]
        twists = convert_screws(given, pose, given, targets.representation, "spatial") if order else given
        at = pose @ inverse(frame.pose)
        y = np.zeros((order + 1, len(looped.closure.joints)))
        y[0] = looped.known.y
        if looped.quick_joint_motion(y, at, np.ascontiguousarray(twists)) is None:
            return None
        return y, BaseMotion(at, twists if order else np.zeros((1, 6)))

    def find(self, kernel: GoalMotion, poses: Array, twists: Array, seed: Array | None) -> Array | None:
        """Return what a kernel finds from a seed (1, k), by default from the last success, or None."""
        before = self._looped.memory.copy()
        try:
            found = self._found(kernel, poses, twists, seed)
        except HodynError:
            found = None
        if found is None:
            self._looped.memory[:] = before
        return found

    def _found(self, kernel: GoalMotion, poses: Array, twists: Array, seed: Array | None) -> Array | None:
        looped = self._looped
        at = [poses[:4], _STILL] if looped.closure.base_given else []
        if seed is not None and looped.quick_joint_motion(seed, *at) is None:
            looped.joint_motion(seed, BaseMotion(poses[:4], np.zeros((1, 6))) if at else None)
        start, held = looped.memory.copy(), np.zeros(kernel.arguments[0][1])
        if kernel.held:
            held[0] = looped.known.place.joints[list(kernel.held)]
        found: Array = kernel.function(held, poses, twists, looped.memory)
        right = found.item(kernel.bad) < 1.0 and self._keeps_branch(start, found[:1], at)
        return found[:-1] if right else None

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

    def kernel(self, asked: Asked) -> GoalMotion | None:
        """Return the kernel, compiled when first asked for; None where there is none."""
        if asked not in self._kernels:
            self._kernels[asked] = self._made(asked)
        return self._kernels[asked]

    def _made(self, asked: Asked) -> GoalMotion | None:
        closure, key = self._looped.closure, (asked.name, asked.task)
        if not compiles(closure, max(asked.order - 2, 0), "joints"):
            return None
        if key not in self._goals:
            self._goals[key] = self._chosen(*key)
        chosen = self._goals[key]
        if chosen is None:
            return None
        frame = find_frame(closure.tree, self._looped.frames, asked.name)
        goal = LoopGoal(frame, ROWS[asked.task], *chosen, asked.representation)
        try:
            return GoalMotion(closure, self._looped.independence.given, asked.order, goal)
        except ZeroDivisionError:  # singular whatever the pose
            return None

    def _chosen(self, name: str | int, task: Task) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
        """Return as many rows as coordinates move a frame, and the joints that do not; None for too few.

        Of rows that are more than coordinates those that differ most near where the robot is, in the axes of
        the frame.
        """
        looped = self._looped
        closure, known = looped.closure, looped.known
        frame = find_frame(closure.tree, looped.frames, name)
        base = None
        if closure.base_given and known.pose is not None:
            base = BaseMotion(known.pose, np.zeros((1, 6)))
        start = LoopedFrames(looped, known, known.y, known.pose, [frame], base, str(name))
        moving, near = moving_coordinates(start)
        part = ROWS[task]
        rows = part_rows(part)
        held = tuple(joint for i, joint in enumerate(closure.joints) if i not in moving)
        if len(moving) > len(rows):
            return None
        if len(moving) < len(rows):
            turned = near.jacobians[0].reshape(2, 3, -1) * near.sizes
            turned = near.poses[0][:3, :3].T @ turned / np.array([1.0, near.unit])[:, None, None]
            triangle, pivots = pivoted(turned.reshape(6, -1)[part][:, moving])
            if abs(triangle[len(moving) - 1, len(moving) - 1]) < _DETERMINED:
                return None
            rows = tuple(rows[i] for i in sorted(pivots[: len(moving)]))
        return rows, held
