"""What is asked of a robot: motion and efforts of its drives, from samples of how it is to move."""

from __future__ import annotations

from typing import Any

import numpy as np

from hodyn_ros.actuation.propellers import UNREACHED
from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError, SingularError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

_NOISE = 1e-3 * UNREACHED  # [N·m, N]


class SampleError(InputError):
    """A robot cannot move as one of several samples says."""

    def __init__(self, sample: int, message: str) -> None:
        super().__init__(message)
        self.sample = sample


class MotionEvaluator:
    """A robot whose driven joints and propellers have limits.

    Efforts are the torques of the driven joints, and behind them thrusts and tilts of all propellers, and
    what of the body-fixed wrench on the base these cannot give (6,).

    Attributes:
        least_order: Derivative of the motion that is needed in any case.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.name = robot.name
        self.joint_names = robot.driven_joints
        self.prismatic = tuple(self.slides(name) for name in robot.driven_joints)
        self.limits = robot.limits
        self.train = robot.drive_train
        self.propellers = robot.propellers
        self.extra = 0 if robot.propellers is None else 2 * len(robot.propellers.names) + 6
        self.least_order = 0 if robot.closure is None else 2

    def slides(self, joint: str) -> bool:
        """Whether a joint is prismatic."""
        return self.robot.tree.slides(joint)

    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion of the coordinates; InputError where it moves what is not there."""
        moves_base = self.robot.moves_base
        if motion.moves_base and not moves_base:
            raise InputError(f"the motion moves a base, but robot {self.name!r} has a fixed base")
        if moves_base and not motion.moves_base:
            needed = "base and joints" if self.robot.n_coordinates else "a base alone"
            platform = self.robot.platform
            what = "has a floating base" if platform is None else f"is moved by its platform {platform!r}"
            raise InputError(f"robot {self.name!r} {what}; give a motion of type pose with {needed}")
        return motion.for_joints(self.robot.joint_names)

    def evaluate(self, sample: MotionSample) -> tuple[Array, Array]:
        """Return motion (N, order + 1, n) of the driven joints and efforts (N, order - 1, n + extra).

        Of N samples; no rows of efforts below order 2. Raises SampleError.
        """
        joints = np.ascontiguousarray(sample.joints)
        if joints.shape[1] < 3:
            return joints, np.zeros((len(joints), 0, len(self.joint_names) + self.extra))
        robot = self.robot
        if robot.is_arm:
            return joints, robot.inverse_dynamics(joints)
        base = sample.base
        if base is not None:
            base = base.in_representation("spatial")
        try:
            motion, efforts, wrenches, _ = robot.drive_state(joints, base)
        except HodynError as error:
            words = str(error).removeprefix(f"sample {error.sample}: ")
            raise SampleError(error.sample, words) from error
        return motion, self._with_thrusts(efforts, wrenches, base)

    def approach(self, sample: MotionSample) -> None:
        """Close the loops of a robot where the first sample is, so that the next one starts there.

        Raises SampleError.
        """
        q = sample.joints[0]
        base = None if sample.pose is None else BaseMotion(sample.pose[0], np.zeros((len(q) - 1, 6)))
        try:
            self.robot.drive_state(q, base)
        except HodynError as error:
            raise SampleError(0, str(error)) from error

    def _with_thrusts(self, torques: Array, wrenches: Any, base: BaseMotion | None) -> Array:
        """Put what propellers do behind torques (N, orders, n), from wrenches on the base in the world."""
        if self.propellers is None or base is None:
            return torques
        try:
            thrusts, tilts, left = self.propellers.motion(wrenches, base)
        except SingularError as error:
            raise SampleError(error.sample, str(error)) from error
        left = np.where(np.abs(left) > _NOISE, left, 0.0)  # a search for peaks would follow rounding
        return np.concatenate([torques, thrusts, tilts, left], axis=-1)
