"""Limits along motions of platforms and of floating bases, held and kept by a slower motion."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linkages import shipped
from refusals import assert_refused, refused
from sweeps import some

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import Report, check
from hodyn_ros.planning.retime import retime
from hodyn_ros.trajectory import Cosines
from hodyn_ros.trajectory.combined import ScaledTime
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.trajectory.files.retimed_file import retimed_text
from hodyn_ros.trajectory.robot_motion import RobotMotion

pytestmark = pytest.mark.thorough


CONFIG = Path(share.find("config", "panda.yaml")).parent
WIDE = 10.0


def limited(n: int, **bounds: float) -> JointLimits:
    return replace(JointLimits.unlimited(n), **{name: np.full(n, value) for name, value in bounds.items()})


def state_at(robot: Robot, motion: RobotMotion, time: float, order: int) -> DriveState:
    sample = motion.sample(time, order)
    return robot.drive_state(None, BaseMotion(sample.pose, sample.twists, representation="body_fixed"))


def instants(report: Report, duration: float) -> Array:
    """Return times [s] all along a motion, and many about those at which limits were found to be nearest."""
    about = [finding.time + np.linspace(-4e-3, 4e-3, 33) for finding in report.findings]
    return np.unique(np.clip(np.concatenate([np.linspace(0.0, duration, 201), *about]), 0.0, duration))


@pytest.fixture
def gough_stewart() -> Robot:
    robot = shipped("gough_stewart_6ups.yaml")
    bounds = limited(6, velocity=WIDE, effort=150.0, effort_rate=60.0)
    return Robot(robot.tree, bounds, closure=robot.closure)


@pytest.fixture
def planar() -> Robot:
    robot = shipped("planar_3rrr.yaml")
    bounds = limited(3, velocity=WIDE, effort_rate=9.0)
    return Robot(robot.tree, bounds, robot.drive_train, closure=robot.closure)


@pytest.fixture
def aerial() -> Robot:
    robot = shipped("aerial_manipulator.yaml")
    return Robot(robot.model, limited(6, velocity=WIDE, effort=3.0, effort_rate=0.05))


def test_the_drives_of_a_platform_are_held_to_their_limits(gough_stewart: Robot) -> None:
    """Against the forces of many instants, pose by pose."""
    motion = read_motion(CONFIG / "gough_stewart_motion.yaml")
    report = check(gough_stewart, motion, duration=1.0)
    times = instants(report, 1.0)
    found = [state_at(gough_stewart, motion, t, 3) for t in times]
    expected = {
        "velocity": np.array([state.motion[1] for state in found]),
        "torque": np.array([state.efforts[0] for state in found]),
        "torque rate": np.array([state.efforts[1] for state in found]),
    }
    names = gough_stewart.driven_joints
    assert {f.column.quantity for f in report.findings} == set(expected)
    for finding in report.findings:
        j = names.index(finding.column.joint)
        values = expected[finding.column.quantity][:, j]
        assert abs(finding.value) == pytest.approx(np.abs(values).max(), rel=1e-6)
        assert (
            finding.column.unit
            == {"velocity": "m/s", "torque": "N", "torque rate": "N/s"}[finding.column.quantity]
        )
    assert {f.column.joint for f in report.violations} == {"leg1_slide", "leg6_slide"}


@pytest.mark.parametrize("name", some(["gough_stewart", "planar", "aerial"], "planar", "aerial"))
def test_the_retimed_motion_touches_a_limit_and_exceeds_none(
    name: str, request: pytest.FixtureRequest
) -> None:
    robot = request.getfixturevalue(name)
    file = {"planar": "planar_3rrr", "aerial": "aerial_manipulator"}.get(name, name)
    motion = read_motion(CONFIG / f"{file}_motion.yaml")
    lasts = 0.5 if name == "gough_stewart" else None
    found = retime(robot, motion, lasts)
    assert found.speed < 1.0
    assert 1.0 - 1e-9 <= found.usage <= 1.0
    assert found.motion.coordinates == motion.coordinates
    slower = None if lasts is None else lasts / found.speed
    # on another grid
    report = check(robot, found.motion, slower)
    assert not report.violations
    assert report.tightest.usage == pytest.approx(1.0, abs=1e-9)
    faster = replace(motion, trajectory=ScaledTime(motion.trajectory, 1.001 * found.speed))
    assert check(robot, faster, None if slower is None else slower / 1.001).violations


def test_motors_of_a_platform_count(planar: Robot) -> None:
    motion = read_motion(CONFIG / "planar_3rrr_motion.yaml")
    report = check(planar, motion)
    assert "motor torque rate" in {f.column.quantity for f in report.findings}
    times = instants(report, 2.4)
    rates = []
    for t in times:
        state = state_at(planar, motion, t, 5)
        rates.append(planar.drive_train.feedforward(state.motion, state.efforts).effort[1])
    for finding in report.findings:
        if finding.column.quantity == "motor torque rate":
            j = planar.driven_joints.index(finding.column.joint)
            assert abs(finding.value) == pytest.approx(np.abs(rates)[:, j].max(), rel=1e-5)


def test_the_joints_of_a_floating_base_are_held_to_their_limits(aerial: Robot) -> None:
    motion = read_motion(CONFIG / "aerial_manipulator_motion.yaml")
    report = check(aerial, motion)
    torques = []
    for t in np.linspace(0.0, 30.0, 1001):
        sample = motion.sample(t, 3)
        _, efforts = aerial.inverse_dynamics(
            sample.joints, BaseMotion(sample.pose, sample.twists, representation="body_fixed")
        )
        torques.append(efforts)
    for finding in report.findings:
        order = {"torque": 0, "torque rate": 1}.get(finding.column.quantity)
        if order is not None:
            j = aerial.joint_names.index(finding.column.joint)
            assert abs(finding.value) == pytest.approx(
                np.abs(torques)[:, order, j].max(), rel=1e-4, abs=1e-12
            )
    assert {f.column.quantity for f in report.violations} == {"torque rate"}


def test_where_a_platform_cannot_go_is_said_with_the_time(gough_stewart: Robot) -> None:
    far = RobotMotion.of_base(Cosines([0.5], [1.0], duration=3.0), ["z"], gough_stewart.home[1])
    refused(
        lambda: check(gough_stewart, far), "at ... s of the motion: ... 'gough_stewart_6ups' ... singular"
    )


def test_motions_that_do_not_fit_are_refused(gough_stewart: Robot, planar: Robot, aerial: Robot) -> None:
    arms = Cosines([0.1] * 6, [1.0] * 6, duration=1.0)
    flight = RobotMotion.of_base(Cosines([0.1], [1.0], duration=1.0), ["z"])
    panda = shipped("panda.yaml")
    assert_refused(
        (lambda: check(gough_stewart, arms),
         "is moved by its platform 'platform'; give a motion of type pose with a base alone"),
        (lambda: check(planar, RobotMotion.of_base(Cosines([0.1], [1.0], duration=1.0), ["z"], joints=arms)),
         "moves 6 joints without naming them, but the robot has []"),
        (lambda: check(aerial, arms), "has a floating base; give a motion of type pose"),
        (lambda: check(aerial, flight), "names [], but the robot has other joints as well"),
        (lambda: check(panda, flight), "moves a base, but robot 'panda' has a fixed base"),
        (lambda: check(planar, flight), "cannot move like that"),
    )  # fmt: skip


def test_a_retimed_file_of_a_flight_is_the_motion_at_its_speed(tmp_path: Path) -> None:
    """Base and joints alike, from one file."""
    for name in ("aerial_manipulator", "planar_3rrr", "gough_stewart"):
        source, path = CONFIG / f"{name}_motion.yaml", tmp_path / "retimed.yaml"
        path.write_text(retimed_text(source, 0.37, "slow"), encoding="utf-8")
        motion, found = read_motion(source), read_motion(path)
        scaled = replace(motion, trajectory=ScaledTime(motion.trajectory, 0.37))
        times = np.linspace(0.1, 2.0, 11)
        for a, b in zip(found.sample(times, 4)[:3], scaled.sample(times, 4)[:3], strict=True):
            assert a is not None and b is not None
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
