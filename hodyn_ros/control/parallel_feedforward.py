"""The feedforward of a parallel robot: a motion of the platform in, efforts of the driven joints out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.control.feedforward import Feedforward, Status
from hodyn_ros.control.law import Law
from hodyn_ros.errors import InputError
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.motion import BaseMotion, Frame
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.parallel.solver import HIGHEST_ORDER
from hodyn_ros.se3 import Array


class ParallelFeedforwardLaw(Law):
    """The law of platforms on limbs: pose and twists of the platform take the place of those of a base.

    Joint positions in limits and motors are those of the driven joints. A call that fails leaves the law as
    it was: the next one starts from the last pose that was reached.
    """

    moves_base = True

    def __init__(
        self,
        robot: ParallelRobot,
        order: int,
        clamp: bool = False,
        limits: JointLimits | None = None,
        wrench_bodies: Sequence[str] = (),
        wrench_frame: Frame = "body",
    ) -> None:
        names = robot.driven_joint_names
        super().__init__(robot, robot.name, names, (), order, clamp, limits, wrench_bodies, wrench_frame)
        self.robot = robot
        self._no_wrench = np.empty((0, 6))
        if set(self.wrench_bodies) - {robot.model.platform.name}:
            raise InputError(
                f"wrenches act on the platform of a parallel robot, {robot.model.platform.name!r}; found "
                f"{list(self.wrench_bodies)}"
            )

    @property
    def engine(self) -> str:
        """What computes the inverse dynamics, in words."""
        return "straight-line code" if self.order <= HIGHEST_ORDER else "interpreted"

    def __call__(
        self, q: Array, base: BaseMotion | None = None, wrenches: Array | None = None
    ) -> Feedforward:
        """Return the feedforward for a motion of the platform; `q` has no columns."""
        if base is None:
            raise InputError(f"robot {self.name!r} is moved by its platform; give pose and twists as base")
        applied = None if wrenches is None else self._applied(wrenches)
        state = self.robot.solve(base.pose, base.twists[: self.order + 2], base.frame, wrenches=applied)
        status = Status.NEAR_SINGULARITY if state.near_singularity else Status.OK
        return self._finished(state.motion, state.forces, self._no_wrench, status)

    @property
    def positions(self) -> list[float] | None:
        """The joint positions that the robot has reached."""
        positions: list[float] = self.robot.positions.tolist()
        return positions

    def start_from(self, positions: Sequence[float]) -> None:
        """Go on from joint positions that another law has reached."""
        self.robot.reset(positions)

    def warm_up(self) -> None:
        """Compute once at rest at the home pose, in both representations of twists."""
        rest = np.zeros((self.order + 2, 6))
        for frame in ("body", "world"):
            self(
                np.empty((self.motion_orders, 0)),
                BaseMotion(self.robot.home_pose, rest, frame=frame),
                self._no_wrenches(),
            )
