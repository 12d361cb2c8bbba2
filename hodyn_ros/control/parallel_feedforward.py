"""The feedforward of a parallel robot: a motion of the platform in, efforts of the driven joints out."""

from __future__ import annotations

import numpy as np

from hodyn_ros.control.feedforward import Feedforward, Law, Status
from hodyn_ros.errors import InputError
from hodyn_ros.motion import BaseMotion
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.se3 import Array


class ParallelFeedforwardLaw(Law):
    """The law of platforms on limbs: pose and twists of the platform take the place of those of a base.

    Joint positions in limits and motors are those of the driven joints. A call that fails leaves the law as
    it was: the next one starts from the last pose that was reached.
    """

    moves_base = True

    def __init__(self, robot: ParallelRobot, order: int, clamp: bool = False) -> None:
        super().__init__(robot, robot.model.name, robot.driven_joint_names, (), order, clamp)
        self.robot = robot
        self._no_wrench = np.empty((0, 6))

    def __call__(self, q: Array, base: BaseMotion | None = None) -> Feedforward:
        """Return the feedforward for a motion of the platform; `q` has no columns."""
        if base is None:
            raise InputError(f"robot {self.name!r} is moved by its platform; give pose and twists as base")
        state = self.robot.solve(base.pose, base.twists[: self.order + 2], base.frame)
        status = Status.NEAR_SINGULARITY if state.near_singularity else Status.OK
        return self._finished(state.motion, state.forces, self._no_wrench, status)

    def warm_up(self) -> None:
        """Compute once at rest at the home pose, in both representations of twists."""
        rest = np.zeros((self.order + 2, 6))
        for frame in ("body", "world"):
            self(np.empty((self.motion_orders, 0)), BaseMotion(self.robot.home_pose, rest, frame=frame))
