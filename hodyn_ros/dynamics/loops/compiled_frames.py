"""Inverse kinematics of robots with couplings and loops, in compiled code as far as that goes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.dynamics.kinematics.inverse_problem import Targets
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task
from hodyn_ros.dynamics.loops.independence import pivoted
from hodyn_ros.dynamics.loops.looped_frames import LoopedFrames, moving_coordinates
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.engine.loops.loop_goals import GoalMotion, LoopGoal, part_rows
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.errors import HodynError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, convert_screws
from hodyn_ros.lie.se3 import Array, inverse

_DETERMINED = 1e-6  # what a row must add to those chosen before, without units


class Asked(NamedTuple):
    """What a kernel is made for."""

    name: str | int  # of a body or frame
    task: Task
    order: int
    representation: Representation


class CompiledFrames:
    """Inverse kinematics of one robot: of one frame that no more coordinates move than it has components."""

    def __init__(self, looped: LoopedMotion) -> None:
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
        poses, twists = targets.poses[0], targets.twists[0]
        if base is not None:
            poses = np.concatenate([base.pose, poses])
            twists = np.concatenate([base.twists[: targets.order], twists])
        found = self.find(kernel, poses, twists, seed)
        return None if found is None else (found, None)

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

    def find(self, kernel: GoalMotion, poses: Array, twists: Array, seed: ArrayLike | None) -> Array | None:
        """Return what a kernel finds from a seed, by default from the last success, or None."""
        looped = self._looped
        closure, before = looped.closure, looped.memory.copy()
        held = np.zeros(kernel.arguments[0][1])
        if seed is not None:
            y = finite_array("the seed", seed, (len(closure.joints),))[None]
            given = [poses[:4], np.zeros((0, 6))] if closure.base_given else []
            if looped.quick_joint_motion(y, *given) is None:
                try:
                    looped.joint_motion(y, BaseMotion(poses[:4], np.zeros((1, 6))) if given else None)
                except HodynError:
                    return None
        if kernel.held:
            held[0] = looped.known.place.joints[list(kernel.held)]
        found: Array = kernel.function(held, poses, twists, looped.memory)
        if found.item(kernel.bad) < 1.0:
            return found[:-1]
        looped.memory[:] = before
        return None

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
