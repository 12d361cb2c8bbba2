"""Feedback on the motors around a feedforward: alone, and around the simulated robot."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import assert_refused

from hodyn_ros import DriveTrain, InputError, Robot, series_elastic, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference, spring_deflections
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.trajectory.files.reader import read_trajectory
from hodyn_ros.trajectory.rest import rest_to_rest


@pytest.fixture(scope="module")
def motion() -> object:
    return rest_to_rest(read_trajectory(share.find("config", "panda_excitation.yaml")), 1.0, 2.0)


def drives_of(robot: Robot) -> DriveTrain:
    return robot.drive_train


def test_gains_by_poles() -> None:
    gains = MotorGains.from_frequency([0.5, 0.2], 30.0, 0.7)
    np.testing.assert_allclose(gains.proportional, [450.0, 180.0], rtol=1e-15)
    np.testing.assert_allclose(gains.derivative, [21.0, 8.4], rtol=1e-15)
    # the motor alone, locked link apart: s^2 B + Kd s + Kp has the poles asked for
    poles = np.roots([0.5, gains.derivative[0], gains.proportional[0]])
    np.testing.assert_allclose(np.abs(poles), 30.0, rtol=1e-12)
    np.testing.assert_allclose(-poles.real / np.abs(poles), 0.7, rtol=1e-12)


def test_gains_that_make_no_sense_are_refused() -> None:
    assert_refused(
        (lambda: MotorGains.from_frequency([0.5, 0.0], 30.0, 1.0), "joint 1 has no motor inertia"),
        (lambda: MotorGains([1.0, np.nan], [1.0, 1.0]), "proportional gains must be finite"),
        (lambda: MotorGains([1.0, 1.0], [1.0, -1.0]), "derivative gains must be finite and not negative"),
        (lambda: MotorGains([1.0, 1.0], [1.0]), "2 proportional gains, but 1 derivative"),
    )


@pytest.mark.parametrize("order", [2, 3, 4])
def test_references_of_the_modes(panda: Robot, motion: object, order: int) -> None:
    drives = drives_of(panda)
    q = motion.sample(1.7, order + 2)  # type: ignore[attr-defined]
    feedforward = FeedforwardModel(panda, order).compute(q)

    elastic = motor_reference(FeedforwardMode.ELASTIC, drives, feedforward)
    np.testing.assert_array_equal(elastic.positions, feedforward.motor_positions)
    count = len(feedforward.motor_efforts)
    np.testing.assert_allclose(elastic.efforts[:count], feedforward.motor_efforts, rtol=1e-12, atol=1e-10)

    rigid = motor_reference(FeedforwardMode.RIGID, drives, feedforward)
    np.testing.assert_allclose(rigid.positions, q[: order + 1], rtol=1e-12, atol=1e-12)
    expected = feedforward.efforts.copy()
    expected[: order - 1] += drives.motor_inertia * q[2 : order + 1]
    np.testing.assert_allclose(rigid.efforts, expected, rtol=1e-12, atol=1e-10)

    offset = motor_reference(FeedforwardMode.OFFSET, drives, feedforward)
    bent = q[: order + 1].copy()
    bent[:2] += feedforward.efforts[:2] / drives.stiffness
    np.testing.assert_allclose(offset.positions, bent, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(offset.efforts, expected[:2], rtol=1e-12, atol=1e-10)

    none = motor_reference(FeedforwardMode.NONE, drives, feedforward)
    np.testing.assert_allclose(none.positions, q[: order + 1], rtol=1e-12, atol=1e-12)
    assert len(none.efforts) == 0


def test_motors_that_rub_are_given_their_friction_in_every_mode(panda: Robot, motion: object) -> None:
    friction = FrictionSpec(viscous=2.0, coulomb=3.0, transition=0.05)
    robot = panda.with_drives([replace(spec, motor_friction=friction) for spec in panda.drive_train.specs])
    q = motion.sample(1.7, 5)  # type: ignore[attr-defined]
    feedforward = FeedforwardModel(robot, 3).compute(q)
    drives, velocity = drives_of(robot), feedforward.motor_positions[1]
    lost = 2.0 * velocity + 3.0 * velocity / np.sqrt(velocity**2 + 0.05**2)
    expected = feedforward.efforts[0] + drives.motor_inertia * q[2] + lost
    for mode in (FeedforwardMode.RIGID, FeedforwardMode.OFFSET):
        reference = motor_reference(mode, drives, feedforward)
        np.testing.assert_allclose(reference.efforts[0], expected, rtol=1e-12)


def test_rigid_joints_follow_their_links_in_every_mode() -> None:
    drives = DriveTrain(series_elastic([np.inf], [0.5]))
    q = np.array([[0.1], [0.2], [0.3], [0.4], [0.5]])
    torques = np.array([[10.0], [20.0], [30.0]])
    motor = drives.feedforward(q, torques)
    feedforward = Feedforward(torques, motor.position, motor.effort, np.empty((0, 6)))
    for mode in (FeedforwardMode.RIGID, FeedforwardMode.OFFSET, FeedforwardMode.ELASTIC):
        reference = motor_reference(mode, drives, feedforward)
        np.testing.assert_allclose(reference.positions[:2], q[:2], rtol=1e-15)
        np.testing.assert_allclose(reference.efforts[0], [10.0 + 0.5 * 0.3], rtol=1e-15)


def test_a_feedforward_that_carries_too_little_is_refused(panda: Robot) -> None:
    feedforward = FeedforwardModel(panda, 1).compute(np.zeros((4, 7)))
    without_drives = FeedforwardModel(Robot(panda.model), 2).compute(np.zeros((5, 7)))
    assert_refused(
        (lambda: motor_reference(FeedforwardMode.ELASTIC, drives_of(panda), feedforward),
         "motor efforts of 0 ... feedforward 'elastic'; let dynamics_node compute order 2"),
        (lambda: motor_reference(FeedforwardMode.NONE, drives_of(panda), without_drives),
         "motor positions of 0 orders"),
    )  # fmt: skip


def test_drives_of_any_kind_take_all_or_nothing(panda: Robot, motion: object) -> None:
    """Friction and damped springs: what the feedforward says of the motors, and no other mode."""
    friction = FrictionSpec(1.0, 1.5, 0.05)
    specs = [
        DriveSpec(
            s.stiffness, s.motor_inertia, spring_damping=20.0, motor_friction=friction, link_friction=friction
        )
        for s in panda.drive_train.specs
    ]
    robot = panda.with_drives(specs)
    feedforward = FeedforwardModel(robot, 3).compute(motion.sample(1.7, 5))  # type: ignore[attr-defined]
    reference = motor_reference(FeedforwardMode.ELASTIC, drives_of(robot), feedforward)
    np.testing.assert_array_equal(reference.positions, feedforward.motor_positions)
    assert len(feedforward.motor_efforts) == 2
    np.testing.assert_array_equal(reference.efforts[:2], feedforward.motor_efforts)
    np.testing.assert_array_equal(reference.efforts[2:], feedforward.efforts[2:])
    for mode in ("none", "rigid", "offset"):
        with pytest.raises(InputError, match=f"'{mode}' leaves out part.*choose 'elastic'"):
            motor_reference(FeedforwardMode(mode), drives_of(robot), feedforward)


@pytest.mark.parametrize(
    "more, rubs",
    [
        ({}, 0.0),
        ({"cubic_stiffness": 2e5}, 0.0),
        ({"spring_damping": 15.0}, 0.0),
        ({}, 4.0),
        ({"cubic_stiffness": 2e5}, 4.0),
    ],
)
def test_springs_set_motors_ahead_of_their_links(more: dict[str, float], rubs: float) -> None:
    """Of a motion without jerk, which is what a feedforward cannot tell of links with friction."""
    friction = FrictionSpec(viscous=rubs)
    specs = [DriveSpec(k, 0.3, link_friction=friction, **more) for k in (4000.0, 900.0)]
    train = DriveTrain([*specs, DriveSpec(np.inf, 0.2)])
    q = np.zeros((5, 3))
    q[:3] = [[0.4, -0.7, 0.2], [1.0, -2.0, 0.5], [3.0, 5.0, -4.0]]
    torques = np.array([[60.0, -30.0, 5.0], [200.0, 150.0, 10.0], [-9e3, 4e3, 100.0]])
    motors = train.feedforward(q, torques)
    found = spring_deflections(train, Feedforward(torques, motors.position, motors.effort, np.empty((0, 6))))
    assert found.shape == (3, 3) and not found[:, 2].any()
    np.testing.assert_allclose(motors.position[:3] - found, q[:3], rtol=1e-9)


def test_without_springs_or_their_torques_motors_are_where_their_links_are(panda: Robot) -> None:
    q, train = np.zeros((5, 7)), drives_of(panda)
    feedforward = FeedforwardModel(panda, 2).compute(q)
    rigid = DriveTrain(series_elastic([np.inf] * 7, [0.5] * 7))
    assert len(spring_deflections(train, feedforward)) == 3
    assert not len(spring_deflections(rigid, feedforward)) and not len(spring_deflections(None, feedforward))
    assert not len(spring_deflections(train, feedforward._replace(efforts=feedforward.efforts[:2])))


def test_each_mode_says_how_far_motors_are_ahead_of_the_links(panda: Robot, motion: object) -> None:
    q = motion.sample(1.7, 4)  # type: ignore[attr-defined]
    feedforward = FeedforwardModel(panda, 2).compute(q)
    for mode in (FeedforwardMode.RIGID, FeedforwardMode.OFFSET, FeedforwardMode.ELASTIC):
        reference = motor_reference(mode, drives_of(panda), feedforward)
        np.testing.assert_allclose(
            reference.positions[:3] - reference.deflections, q[:3], rtol=1e-12, atol=1e-13
        )
