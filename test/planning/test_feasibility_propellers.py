"""Limits of propellers: checked along a flight, kept by plans, and what no thrust gives is said."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from hodyn_ros import BaseMotion, Propeller, PropellerLimits, Robot, share
from hodyn_ros.planning.check import check
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.trajectory import Cosines, WaypointSpline, read_motion
from hodyn_ros.trajectory.robot_motion import RobotMotion


def aerial() -> Robot:
    return Robot.load(share.find("config", "aerial_manipulator.yaml"))


def with_propellers(robot: Robot, propellers: list[Propeller]) -> Robot:
    return Robot(robot.model, propellers=propellers)


def limited(robot: Robot, limits: PropellerLimits, **others: bool) -> Robot:
    return with_propellers(
        robot, [replace(one, limits=limits, **others) for one in robot.propellers.propellers]
    )


def test_thrusts_and_their_rates_are_held_to_their_limits_along_a_flight() -> None:
    """Against many instants, each by itself."""
    robot = limited(aerial(), PropellerLimits(most=11.0, rate=0.25))
    motion = read_motion(share.find("config", "aerial_manipulator_motion.yaml"))
    report = check(robot, motion)
    samples = motion.sample(np.linspace(0.0, 30.0, 1001), 3)
    thrusts = []
    for joints, pose, twists in zip(*samples[:3], strict=True):
        base = BaseMotion(pose, twists, representation="body_fixed")
        wrench, _ = robot.inverse_dynamics(joints, base)
        thrusts.append(robot.propellers.motion(base.wrenches_in_body(wrench)).thrusts)
    largest = {"thrust": np.max(thrusts, axis=0)[0], "thrust rate": np.abs(thrusts).max(axis=0)[1]}
    above = {finding.column.joint: finding for finding in report.findings if finding.value > 8.0}
    for name, finding in above.items():
        expected = largest["thrust"][robot.propellers.names.index(name)]
        assert finding.value == pytest.approx(expected, rel=1e-5)
    rates = [f for f in report.findings if f.column.quantity == "thrust rate"]
    assert [abs(f.value) for f in rates] == pytest.approx(list(largest["thrust rate"]), rel=1e-3)
    assert {(f.column.quantity, f.column.joint) for f in report.violations} == {
        ("thrust", "p5"),
        ("thrust", "p6"),
        ("thrust rate", "p2"),
        ("thrust rate", "p5"),
        ("thrust rate", "p6"),
    }


def test_a_plan_keeps_the_rates_of_thrusts() -> None:
    robot = limited(aerial(), PropellerLimits(most=12.0, rate=6.0))
    base = WaypointSpline([0.0, 1.0], [[0.0, 0.0], [0.3, 0.1]])
    joints = WaypointSpline([0.0, 1.0], np.zeros((2, 6)) + [[0.0], [0.2]])
    found = time_optimal(RobotMotion.of_base(base, ["x", "yaw"], None, joints), robot, pieces=6)
    report = check(robot, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.9999 and report.tightest.column.quantity.startswith("thrust")


def test_what_propellers_cannot_give_is_beyond_their_limits() -> None:
    """Four that all pull up, on a base that does not lean, where it is to go sideways."""
    lever = np.array([[0.2, 0.0], [0.0, 0.2], [-0.2, 0.0], [0.0, -0.2]])
    quadrotor = []
    for i, (x, y) in enumerate(lever):
        pose = np.eye(4)
        pose[:2, 3] = x, y
        quadrotor.append(Propeller(f"p{i}", pose, 0.02 * (-1) ** i))
    robot = with_propellers(aerial(), quadrotor)
    still = Cosines([0.0] * 6, [1.0] * 6, duration=1.0)
    up, aside = (
        check(robot, RobotMotion.of_base(Cosines([0.1], [1.0], duration=1.0), [axis], joints=still))
        for axis in "zx"
    )
    assert not up.violations
    worst = aside.violations[0].column
    assert (worst.quantity, worst.joint) == ("force that propellers leave", "x")


def test_tilts_are_checked_and_not_planned() -> None:
    limits = PropellerLimits(most=20.0, tilt=1e-3, tilt_rate=1e-3)
    robot = limited(aerial(), limits, tilts=True)
    motion = read_motion(share.find("config", "aerial_manipulator_motion.yaml"))
    report = check(robot, motion, 1.0)
    assert {f.column.quantity for f in report.violations} == {"tilt", "tilt rate"}
    refused(lambda: time_optimal(motion, robot), "has propellers that tilt")
