"""The kernels of a parallel robot, and the joint positions that they go on from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_result, finite_array
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.motion import Frame
from hodyn_ros.parallel import reference
from hodyn_ros.parallel.compiled import ParallelKernel, Setting
from hodyn_ros.parallel.drive_forces import check_holding
from hodyn_ros.parallel.geometry import close_limbs, follow
from hodyn_ros.parallel.inputs import body_motion
from hodyn_ros.parallel.limb_kinematics import limb_pose
from hodyn_ros.parallel.model import ParallelModel
from hodyn_ros.parallel.singularity import singular_values
from hodyn_ros.se3 import Array, exp, inverse, log

HIGHEST_ORDER = 6  # of compiled kernels: code grows with its square, and takes seconds to compile
_STEP = 0.05  # [rad], and of the size of the robot, of a kernel on its way to a pose farther off
_MOST_STEPS = 500
_FAR = 1e6  # times the size of the robot


class Solver:
    """Runs kernels from the last joint positions that were right, which only a success replaces."""

    def __init__(self, model: ParallelModel) -> None:
        self.model = model
        self._kernels: dict[tuple[int, Setting], ParallelKernel] = {}
        self._start = ParallelKernel.order_of_joints(model)
        self.memory = self._as_memory(np.zeros(model.n_joints))  # (1, N), in the order of the kernels

    @property
    def positions(self) -> Array:
        """Joint positions (N,) of the last success."""
        return self._as_positions(self.memory)

    def remember(self, positions: Array) -> None:
        """Go on from joint positions (N,)."""
        self.memory[0] = positions[self._start]

    def kernel(self, order: int, setting: Setting) -> ParallelKernel:
        """Return a kernel, compiled when first asked for."""
        if order > HIGHEST_ORDER:
            raise InputError(f"the order is at most {HIGHEST_ORDER} here, found {order}")
        if (order, setting) not in self._kernels:
            self._kernels[order, setting] = ParallelKernel(self.model, order, setting)
        return self._kernels[order, setting]

    def run(
        self,
        kernel: ParallelKernel,
        pose: Array,
        twists: Array,
        others: Sequence[Array],
        frame: Frame,
        seed: ArrayLike | None,
    ) -> Array:
        """Run a kernel; where its result does not count, start from other positions, or say what is wrong."""
        if seed is None:
            result: Array = kernel.function(pose, twists, *others, self.memory)
            if result.item(kernel.bad) < 1.0:
                return result
        place, body_twists = body_motion(self.model, pose, twists, frame)
        self._check_distance(place)
        memory = self.memory.copy()
        if seed is not None or not self._walk(kernel, place, others, memory):
            memory = self._as_memory(self.locate(place, seed))
        positions = self._as_positions(memory)
        result = kernel.function(place, twists, *others, memory)
        if not result.item(kernel.bad) < 1.0:
            with np.errstate(over="ignore", invalid="ignore"):
                motions = reference.limb_motions(self.model, positions, body_twists)  # names a singular limb
            check_holding(reference.inverse_kinematics_jacobians(self.model, motions, 0)[0])
            check_result(result)
            raise self._singular(positions)
        self.memory[:] = memory
        return result

    def locate(self, pose: Array, seed: ArrayLike | None) -> Array:
        """Return joint positions (N,) for a pose, near a seed or on the branch of the last ones."""
        if seed is not None:
            return close_limbs(self.model, pose, self.seed(seed))
        last = self.positions
        # the straight way may leave the workspace though its end does not
        with suppress(ConvergenceError):
            return follow(self.model, self.pose_at(last), last, pose)
        with suppress(ConvergenceError):
            return close_limbs(self.model, pose, last)
        return close_limbs(self.model, pose, np.zeros(self.model.n_joints))

    def _walk(self, kernel: ParallelKernel, pose: Array, others: Sequence[Array], memory: Array) -> bool:
        """Take a memory to a pose in steps too short to change the branch, and say if it arrived."""
        start = self.pose_at(self._as_positions(memory))
        way = log(inverse(start) @ pose)
        longest = max(float(np.linalg.norm(way[:3])), float(np.linalg.norm(way[3:])) / self.model.size)
        if not longest <= _MOST_STEPS * _STEP:
            return False
        steps = int(np.ceil(longest / _STEP))
        rest = np.zeros((kernel.order + 2, 6))
        for i in range(1, steps + 1):
            result = kernel.function(start @ exp(way * (i / steps)), rest, *others, memory)
            if not result.item(kernel.bad) < 1.0:
                return False
        return steps > 0

    def _check_distance(self, pose: Array) -> None:
        """Raise ConvergenceError for a pose so far away that numbers on the way there mean nothing."""
        distance = float(np.abs(pose[:3, 3]).max())
        if distance > _FAR * self.model.size:
            raise ConvergenceError(
                f"the pose is {distance:.3g} m away, {_FAR:g} times the size of the robot and more; give a "
                "pose within the workspace",
                0.0,
                distance,
            )

    def pose_at(self, positions: Array) -> Array:
        """Return the pose (4, 4) of the platform at joint positions (N,)."""
        return limb_pose(self.model.limbs[0], positions[self.model.slices[0]])

    def seed(self, seed: ArrayLike) -> Array:
        """Return a seed (N,), checked."""
        return finite_array("the seed", seed, (self.model.n_joints,))

    def _singular(self, positions: Array) -> SingularError:
        """Say which limb is, or that the drives are, so close to a singular pose that digits are lost."""
        values = singular_values(self.model, positions)
        if values.drives < values.limbs.min():
            what = "the drives hardly hold the platform"
        else:
            what = f"limb {self.model.limbs[int(values.limbs.argmin())].name!r} is hardly mobile"
        return SingularError(
            f"the pose is too close to a singular one: {what} (smallest singular value {values.least:.3g}); "
            "keep away from this pose",
            1.0 / max(values.least, float(np.finfo(float).tiny)),
        )

    def _as_positions(self, memory: Array) -> Array:
        result = np.empty(self.model.n_joints)
        result[self._start] = memory[0]
        return result

    def _as_memory(self, positions: Array) -> Array:
        return np.ascontiguousarray(positions[self._start][None])
