"""What is asked of a robot: motion and torques of its driven joints, from samples of how it is to move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.jets import Array
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.tree import JointKind
from hodyn_ros.motion import BaseMotion, twists_to_world
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion


class SampleError(InputError):
    """A robot cannot move as one of several samples says."""

    def __init__(self, sample: int, message: str) -> None:
        super().__init__(message)
        self.sample = sample


class Subject(ABC):
    """A robot whose joints have limits.

    Attributes:
        least_order: Derivative of the motion that is needed in any case.
    """

    least_order = 0

    def __init__(
        self,
        name: str,
        joint_names: Sequence[str],
        prismatic: Sequence[bool],
        limits: JointLimits,
        actuation: SeriesElastic | None,
        train: DriveTrain | None,
    ) -> None:
        self.name = name
        self.joint_names = tuple(joint_names)
        self.prismatic = tuple(prismatic)
        self.limits = limits
        self.actuation = actuation
        self.train = train

    @abstractmethod
    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion with the joints of the robot; InputError where it moves what is not there."""

    @abstractmethod
    def evaluate(self, sample: MotionSample) -> tuple[Array, Array]:
        """Return motion (N, order + 1, n) and torques (N, order - 1, n) of the driven joints at N samples.

        No rows of torques below order 2. Raises SampleError.
        """


class TreeRobot(Subject):
    """A robot whose coordinates are joints, and a floating base or a platform; its limits are of its drives.

    Nothing limits the wrench on a floating base.
    """

    def __init__(self, robot: Robot) -> None:
        tree = robot.tree
        drives = [tree.first_jointed_body + tree.joint_index(name) for name in robot.driven_joints]
        super().__init__(
            robot.name,
            robot.driven_joints,
            [tree.kinds[body] is JointKind.PRISMATIC for body in drives],
            robot.limits,
            robot.actuation,
            robot.drive_train,
        )
        self.robot = robot
        self.least_order = 0 if robot.closure is None else 2

    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion of the coordinates."""
        moves_base = self.robot.moves_base
        if motion.moves_base and not moves_base:
            raise InputError(f"the motion moves a base, but robot {self.name!r} stands on the ground")
        if moves_base and not motion.moves_base:
            what = "has a floating base" if self.robot.tree.floating_base else "is moved by its platform"
            raise InputError(f"robot {self.name!r} {what}; give a motion of type pose with base and joints")
        return motion.for_joints(self.robot.joint_names)

    def evaluate(self, sample: MotionSample) -> tuple[Array, Array]:
        """Return motion and torques of the driven joints."""
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


class PlatformRobot(Subject):
    """A parallel robot; its limits are those of the driven joints, its motion is that of the platform."""

    least_order = 2

    def __init__(self, robot: ParallelRobot) -> None:
        screws = np.concatenate([limb.chain.screws for limb in robot.model.limbs])
        super().__init__(
            robot.name,
            robot.driven_joint_names,
            [not screws[i, :3].any() for i in robot.model.driven],
            robot.limits,
            robot.actuation,
            robot.drive_train,
        )
        self.robot = robot

    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion, if it is one of the platform alone."""
        if not motion.moves_base or motion.n_joints:
            raise InputError(
                f"robot {self.name!r} is moved by its platform; give a motion of type pose with a base alone"
            )
        return motion

    def evaluate(self, sample: MotionSample) -> tuple[Array, Array]:
        """Return motion and forces of the driven joints."""
        if sample.pose is None or sample.twists is None:
            raise InputError(f"robot {self.name!r} is moved by its platform; the samples hold none")
        motions, forces = [], []
        for i, (pose, twists) in enumerate(zip(sample.pose, sample.twists)):
            try:
                found = self.robot.solve(pose, twists)
            except HodynError as error:
                raise SampleError(i, str(error)) from error
            motions.append(found.motion)
            forces.append(found.forces)
        return np.stack(motions), np.stack(forces)


def subject_of(robot: Robot | ParallelRobot) -> Subject:
    """Return a robot of any kind as what has limits."""
    if isinstance(robot, ParallelRobot):
        return PlatformRobot(robot)
    return TreeRobot(robot)
