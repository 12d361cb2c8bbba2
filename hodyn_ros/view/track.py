"""What a robot does over time, as it is shown: its motion, what its springs and drives do."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.trajectory.robot_motion import RobotMotion

RATE = 50.0  # pictures per second [Hz]
ENDLESS = 10.0  # [s] that are shown of a motion without end
MOST = 6000  # pictures; of a longer motion they are farther apart


class Instant(NamedTuple):
    """A robot at one time; None for what is not known."""

    desired: Array | None = None  # (n,) positions of its coordinates [rad or m]
    pose: Array | None = None  # (4, 4) of base or platform in the world [m]
    measured: Array | None = None  # (n,) positions of its coordinates [rad or m]
    deflections: Array | None = None  # (driven,) of its springs [rad or m]
    torques: Array | None = None  # as many as `drive_limits` [N·m or N]


class DriveLimit(NamedTuple):
    """What a motor or propeller may give."""

    name: str
    unit: str
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Track:
    """Instants one after the other; arrays as of `Instant`, with a first axis of N more.

    `measured` is nan where nothing was measured. `note` says what is not shown, or not there, and why.
    """

    times: Array  # (N,) [s], increasing
    desired: Array
    pose: Array | None = None
    measured: Array | None = None
    deflections: Array | None = None
    torques: Array | None = None
    note: str = ""

    @property
    def duration(self) -> float:
        """From the first instant to the last one [s]."""
        return float(self.times[-1] - self.times[0])

    def at(self, time: float) -> Instant:
        """Return the last instant that is not after a time [s], counted from the first one."""
        i = int(np.searchsorted(self.times, self.times[0] + time + 1e-9, side="right")) - 1
        i = min(max(i, 0), len(self.times) - 1)
        rows = (self.desired, self.pose, self.measured, self.deflections, self.torques)
        return Instant(*(None if row is None or np.isnan(row[i]).any() else row[i] for row in rows))


def drive_limits(robot: Robot) -> tuple[DriveLimit, ...]:
    """Return the limits of all motors, or of the driven joints without drives, and of all propellers."""
    evaluator, train = MotionEvaluator(robot), robot.drive_train
    names, efforts = evaluator.joint_names, robot.limits.effort
    slides = dict(zip(names, evaluator.prismatic))
    joints = names
    if train is not None:
        joints = tuple(names[joint] for joint in train.motor_joints)
        names, efforts = train.motor_names, train.effort_limits(efforts)
    units = ["N" if slides[joint] else "N·m" for joint in joints]
    rows = [DriveLimit(name, unit, -most, most) for name, unit, most in zip(names, units, efforts.tolist())]
    for each in () if robot.propellers is None else robot.propellers.propellers:
        rows.append(DriveLimit(each.name, "N", each.limits.least, each.limits.most))
    return tuple(rows)


def track_of_motion(robot: Robot, motion: RobotMotion, duration: float | None = None) -> Track:
    """Compute what a robot does along a motion, by default to its end, or ten seconds where it has none.

    Springs and drives are left out, with a note, where the robot cannot do the motion or it is too rough.
    Raises InputError where it does not fit the robot.
    """
    evaluator = MotionEvaluator(robot)
    fitted = evaluator.fitted(motion)
    end = fitted.trajectory.duration if duration is None else min(duration, fitted.trajectory.duration)
    end = ENDLESS if isinf(end) else end
    times = np.linspace(0.0, end, min(max(int(np.ceil(end * RATE)), 1) + 1, MOST))
    train = robot.drive_train
    order = 4 if train is not None and train.elastic.any() else 2
    try:
        sample = fitted.sample(times, order)
        moved, efforts = evaluator.evaluate(sample)
    except InputError as error:
        sample = fitted.sample(times, 0)
        note = f"torques and springs are not shown: {error}"
        return Track(times, sample.joints[:, 0], sample.pose, note=note)
    n = len(evaluator.joint_names)
    torques, deflections = efforts[:, 0, :n], None
    if train is not None:
        motors = train.feedforward(moved, efforts[:, :, :n])
        torques = motors.effort[:, 0]
        if train.elastic.any():
            deflections = train.deflections(moved[:, 0], motors.position[:, 0])
    if robot.propellers is not None:
        torques = np.concatenate([torques, efforts[:, 0, n : n + len(robot.propellers.names)]], axis=1)
    return Track(times, sample.joints[:, 0], sample.pose, None, deflections, torques)
