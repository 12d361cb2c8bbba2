"""Where a robot with couplings and loops is, on which branch, and how it gets to other coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.fast_calls import FastCalls
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known, home, reach
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.dynamics.loops.digit_check import DigitCheck, memory_of
from hodyn_ros.dynamics.loops.independence import conditions, find_independence
from hodyn_ros.dynamics.loops.platform_dynamics import PlatformDynamics
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.errors import ConvergenceError, HodynError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only. Compiled code ends at the same distance, `SINGULAR_LENGTH`.
SINGULAR = 1e-5


class LoopedPosition:
    """A robot with couplings and loops; remembers where it was, to stay on its branch.

    `memory` (1, N): the positions of the leading joints at the last success, and the pose given then.
    """

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        # whether components of the pose of a floating base follow from the others
        self.drifts = closure.drifts and closure.tree.floating_base
        self.independence = find_independence(closure)
        self.platform = PlatformDynamics(closure) if is_on_limbs(closure) else None
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self.fast = FastCalls()
        self.calls: Kept[tuple[Any, ...], Any] = Kept()  # by the method that makes them, and its arguments

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        return self._known_from(self.memory)

    @known.setter
    def known(self, known: Known) -> None:
        result = memory_of(self.closure, known)
        self.memory[:, : result.shape[1]] = result
        self._base = known.place.base

    def _known_from(self, memory: Array) -> Known:
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.coupling_matrix[closure.first :, closure.first :] @ memory[0, :n] + closure.offsets
        pose = memory[0, n:].reshape(4, 4).copy() if memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    def locate(
        self, y: Array, leader: BaseMotion | None, derivative: int
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        """
        if self.platform is not None and leader is not None:
            moved = self._reach_on_limbs(self.platform, y, leader.pose)
        else:
            moved = self.reach(self.known, y, leader.pose if leader else None)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self.check_margin(moved, margins[0])
        if self.platform is not None and leader is not None:
            self.platform.check_pose(moved.body_pose(0), leader.pose)
        return moved, margins

    def reach(self, known: Known, y: Array, pose: Array | None, most_steps: int = MOST_STEPS) -> LoopMotion:
        """Return the motion of order 0 at independent joints (k,) and a pose, on the branch of a known place.

        Whatever was found last; errors as of `hodyn_ros.dynamics.loops.closing.reach`.
        """
        return reach(self.closure, self.independence.rows, known, y, pose, most_steps)

    def _reach_on_limbs(self, platform: PlatformDynamics, y: Array, pose: Array) -> LoopMotion:
        """Reach a platform's pose, by kernels as far as these go, or say what is wrong there."""
        memory = self.memory.copy()
        platform.approach(pose, memory)
        try:
            return self.reach(self._known_from(memory), y, pose, 0)
        except ConvergenceError as error:
            platform.check_limbs(pose, memory)
            there = self.reach(self._known_from(memory), y, pose, 0)
            margins = conditions(self.closure, there, self.independence.rows)
            self.check_margin(there, margins[0])
            self.check_held(margins[1])
            raise ConvergenceError(
                f"robot {self.closure.tree.name!r} does not get to that pose from the last one in short "
                "steps, as beside a singular pose on the way; give poses nearer to the last ones, and "
                "keep away from singular ones",
                error.angle,
                error.distance,
            ) from None

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Stay where the last success was where a computation fails."""
        before = self.known
        try:
            yield
        except HodynError:
            self.known = before
            raise

    def begin(self, y: Array, leader: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Find where the motion of the coordinates y (orders + 1, k) begins: its order 0, as of `locate`.

        `leader`: the motion of platform or base, with spatial twists.
        """
        if self.platform is not None and leader is not None:
            self.platform.check_twists(leader.pose, leader.twists[: len(y) - 1])
        return self.locate(y[0], leader, len(y) - 1)

    def check_prescribed(self, moved: LoopMotion, prescribed: Sequence[int]) -> None:
        """Refuse drives that cannot be moved as one likes; SingularError."""
        if not prescribed:
            return
        F = embedding.distribution(self.independence.rows, moved, 0)[0]
        moving = self.closure.effort_map[:, list(prescribed)].T @ F
        sized = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        least = float(np.linalg.svd(sized, compute_uv=False)[-1]) if len(sized) <= sized.shape[1] else 0.0
        if least < SINGULAR:
            raise SingularError(
                f"the prescribed joints of robot {self.closure.tree.name!r} cannot all be moved freely there "
                f"(smallest singular value {least:.3g}); prescribe fewer",
                1.0 / max(least, 1e-300),
            )

    def remember(self, moved: LoopMotion, y: Array, leader: BaseMotion | None) -> None:
        """Start from there the next time."""
        pose = moved.place.base if leader is None or self.drifts else leader.pose
        self.known = Known(moved.place, y.copy(), pose)

    def check_loads(self, inputs: LoopedInputs, order: int) -> None:
        """Refuse wrenches that would turn a platform where nothing holds it; InputError."""
        if self.platform is not None and inputs.wrenches and inputs.leader is not None:
            self.platform.check_loads(inputs.leader, inputs.wrenches, order)

    def check_margin(self, moved: LoopMotion, margin: float) -> None:
        """Refuse a pose at which coordinates do not determine the motion, from its margin; SingularError."""
        if margin >= SINGULAR:
            return
        raise self.singular(moved, margin)

    def singular(self, moved: LoopMotion, margin: float) -> SingularError:
        """Say that coordinates do not determine the motion."""
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_held(self, margin: float) -> None:
        """Refuse a pose at which drives do not hold the robot, from their margin; SingularError."""
        if margin < SINGULAR:
            raise self.not_held(margin)

    def not_held(self, margin: float) -> SingularError:
        """Say that drives do not hold the robot."""
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its driven joints do not hold it "
            f"there (smallest singular value {margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def sure(self, check: DigitCheck) -> float:
        """Return below which number at `defect_at` results need no check of their digits."""
        place = self.independence.generic
        basis = np.eye(6) if self.platform is None else self.platform.model.dof
        return 0.0 if place is None else check.sure(place, basis, self.independence.rows)

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Names of the loops that are overconstrained: their loads depend on which rows were taken."""
        return self.independence.redundant
