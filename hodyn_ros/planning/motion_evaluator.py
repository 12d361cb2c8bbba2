"""What is asked of a robot: motion and torques of its driven joints, from samples of how it is to move."""

from __future__ import annotations

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.lie.jets import Array
from hodyn_ros.lie.motion import BaseMotion, twists_to_world
from hodyn_ros.model.tree import JointKind
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion


class SampleError(InputError):
    """A robot cannot move as one of several samples says."""

    def __init__(self, sample: int, message: str) -> None:
        super().__init__(message)
        self.sample = sample


class MotionEvaluator:
    """A robot whose driven joints have limits; nothing limits the wrench on a floating base.

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
        self.least_order = 0 if robot.closure is None else 2

    def slides(self, joint: str) -> bool:
        """Whether a joint is prismatic."""
        tree = self.robot.tree
        return tree.kinds[tree.first_jointed_body + tree.joint_index(joint)] is JointKind.PRISMATIC

    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion of the coordinates; InputError where it moves what is not there."""
        moves_base = self.robot.moves_base
        if motion.moves_base and not moves_base:
            raise InputError(f"the motion moves a base, but robot {self.name!r} has a fixed base")
        if moves_base and not motion.moves_base:
            needed = "base and joints" if self.robot.n_joints else "a base alone"
            platform = self.robot.platform
            what = "has a floating base" if platform is None else f"is moved by its platform {platform!r}"
            raise InputError(f"robot {self.name!r} {what}; give a motion of type pose with {needed}")
        return motion.for_joints(self.robot.joint_names)

    def evaluate(self, sample: MotionSample) -> tuple[Array, Array]:
        """Return motion (N, order + 1, n) and torques (N, order - 1, n) of the driven joints at N samples.

        No rows of torques below order 2. Raises SampleError.
        """
        joints = np.ascontiguousarray(sample.joints)
        if joints.shape[1] < 3:
            return joints, joints[:, :0]
        robot, orders = self.robot, joints.shape[1]
        if robot.closure is None and not robot.moves_base:
            return joints, robot.inverse_dynamics(joints)
        poses, twists = sample.pose, sample.twists
        if poses is not None and twists is not None:
            twists = twists_to_world(poses, np.moveaxis(twists, 1, 0))
            twists = np.ascontiguousarray(np.moveaxis(twists, 0, 1))
            if robot.closure is None:
                dynamics = robot.compile(orders - 3)
                found = [dynamics(*one) for one in zip(joints, poses, twists)]
                return joints, np.stack(found)[:, :, 6:]
        motions, efforts = [], []
        for i, q in enumerate(joints):
            base = None if poses is None or twists is None else BaseMotion(poses[i], twists[i])
            try:
                state = robot.drive_state(q, base)
            except HodynError as error:
                raise SampleError(i, str(error)) from error
            motions.append(state.motion)
            efforts.append(state.efforts)
        return np.stack(motions), np.stack(efforts)
