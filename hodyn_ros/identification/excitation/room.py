"""How much of its limits and boxes a motion uses, at samples and between them."""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.excitation.boxes import Box, BoxSet
from hodyn_ros.planning.along import DemandAlong
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.peaks import Samples, find_peaks
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

_STEP = 1e-6  # of differences, of the size that a derivative has


class Room:
    """All limits of a robot, and boxes: at most 1 is used of each where a motion keeps them."""

    def __init__(self, robot: Robot, boxes: tuple[Box, ...] = ()) -> None:
        limits = robot.limits
        self._require_bounded(robot)
        self.limits, self.boxes = LimitSet(robot), BoxSet(robot, boxes)
        self.order = max(self.limits.order, 2)
        self.labels = [f"{c.quantity} of {c.joint}" for c in self.limits.columns] + self.boxes.labels
        low, high = limits.position_lower, limits.position_upper
        wide = np.isfinite(high - low)
        self.middle = np.where(wide, 0.5 * (np.where(wide, low, 0.0) + np.where(wide, high, 0.0)), 0.0)

    @staticmethod
    def _require_bounded(robot: Robot) -> None:
        limits = robot.limits
        for j, name in enumerate(robot.joint_names):
            if not np.isfinite(limits.velocity[j]):
                raise InputError(f"joint {name!r} has no limit of velocity; give it one in the robot file")

    def usage(self, joints: Array) -> Array:
        """Return what is used (N, columns) at samples (N, order + 1, n)."""
        values, boxes = self.limits.relative(MotionSample(joints)).values, self.boxes.values(joints[:, 0])
        sizes = np.where(self.limits.one_sided, values, np.abs(values))
        inside = np.where(self.boxes.one_sided, boxes, np.abs(boxes))
        return np.hstack([self.limits.usage(sizes), inside])

    def penalty(self, joints: Array, goal: float) -> tuple[float, Array]:
        """Return the mean squares of what is used beyond `goal`, summed, and derivatives by the samples."""
        result = np.zeros_like(joints)
        used = self.usage(joints)
        places = np.flatnonzero((used > goal).any(axis=1))
        beyond = np.maximum(used - goal, 0.0)
        penalty = float((beyond**2).sum() / len(joints))
        if not len(places):
            return penalty, result
        chosen, before, slopes = joints[places], used[places], 2.0 * beyond[places] / len(joints)
        sizes = np.maximum(np.abs(joints).max(axis=(0, 2)), 1.0)
        for order in range(joints.shape[1]):
            step = _STEP * sizes[order]
            for joint in range(joints.shape[2]):
                moved = chosen.copy()
                moved[:, order, joint] += step
                result[places, order, joint] = (slopes * (self.usage(moved) - before)).sum(axis=1) / step
        return penalty, result

    def peak(self, motion: Trajectory) -> tuple[float, str]:
        """Return the largest share of a limit or box that a motion uses anywhere, and which."""
        along = DemandAlong(self.limits, RobotMotion.of_joints(motion))
        peaks = along.peaks()
        shares = [*self.limits.usage(peaks.sizes) + np.where(peaks.sizes > 0.0, peaks.errors, 0.0)]
        if self.boxes.labels:

            def inside(times: Array) -> Samples:
                return Samples(self.boxes.values(motion.sample(times, 0)[:, 0]))

            of_boxes = find_peaks(inside, along.edges, signed=self.boxes.one_sided)
            shares += [*(of_boxes.sizes + of_boxes.errors)]
        worst = int(np.argmax(shares))
        return float(shares[worst]), self.labels[worst]
