"""Limits of coordinates that nothing drives, as of the knee and ankle of a leg behind linkages."""

from dataclasses import replace

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.planning.check import check
from hodyn_ros.planning.retime import retime
from hodyn_ros.trajectory import read_motion

pytestmark = pytest.mark.thorough

MOTION = share.find("config", "humanoid_leg_motion.yaml")


def leg(**changes: np.ndarray) -> Robot:
    """Return the shipped leg with other limits of its coordinates."""
    robot = Robot.load(share.find("config", "humanoid_leg.yaml"))
    limits = replace(robot.coordinate_limits, **changes)
    return Robot(robot.tree, robot.limits, robot.drive_train, robot.frames, robot.closure, limits)


def test_positions_and_rates_of_coordinates_are_checked() -> None:
    robot, motion = leg(velocity=np.full(6, 0.5), jerk=np.full(6, 1e4)), read_motion(MOTION)
    report = check(robot, motion)
    joints = motion.for_joints(robot.joint_names).sample(
        np.linspace(0.0, motion.trajectory.duration, 4001), 3
    )
    own = [name for name in robot.joint_names if name not in robot.driven_joints]
    assert own == ["knee", "ankle_pitch", "ankle_roll"]
    for finding in report.findings:
        if finding.column.joint not in own:
            continue
        derivative = ["position", "velocity", "acceleration", "jerk"].index(finding.column.quantity)
        values = joints.joints[:, derivative, robot.joint_names.index(finding.column.joint)]
        if derivative:
            assert abs(finding.value) == pytest.approx(np.abs(values).max(), rel=1e-5)
        else:
            # peaks are found between the samples here
            assert values.min() - 1e-6 <= finding.value <= values.max() + 1e-6
    found = {(f.column.joint, f.column.quantity) for f in report.findings}
    assert {(name, quantity) for name in own for quantity in ("position", "velocity", "jerk")} <= found
    assert {f.column.joint for f in report.violations if f.column.quantity == "velocity"} >= {"knee"}


def test_a_retimed_motion_keeps_them() -> None:
    robot = leg(velocity=np.full(6, 0.5))
    slowed = retime(robot, read_motion(MOTION), 1.0)
    assert slowed.speed < 1.0
    assert not check(robot, slowed.motion, 1.0 / slowed.speed).violations
