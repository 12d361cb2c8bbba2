"""Feedback on the motors around a feedforward: alone, and around the simulated robot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hodyn_ros import InputError, Robot, SeriesElastic, share
from hodyn_ros.control.feedforward import Feedforward
from hodyn_ros.control.law import FeedforwardLaw
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorController, MotorGains, motor_reference
from hodyn_ros.control.simulation import ElasticJointSimulation
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.trajectory.reader import read_trajectory
from hodyn_ros.trajectory.rest import rest_to_rest

Array = NDArray[np.float64]

MS = 1_000_000  # [ns]


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.from_config(share.find("config", "panda.yaml"))


@pytest.fixture(scope="module")
def motion() -> object:
    return rest_to_rest(read_trajectory(share.find("config", "panda_excitation.yaml")), 1.0, 2.0)


def drives_of(robot: Robot) -> SeriesElastic:
    assert robot.actuation is not None
    return robot.actuation


def test_gains_by_poles() -> None:
    gains = MotorGains.from_frequency([0.5, 0.2], 30.0, 0.7)
    np.testing.assert_allclose(gains.proportional, [450.0, 180.0], rtol=1e-15)
    np.testing.assert_allclose(gains.derivative, [21.0, 8.4], rtol=1e-15)
    # the motor alone, locked link apart: s^2 B + Kd s + Kp has the poles asked for
    poles = np.roots([0.5, gains.derivative[0], gains.proportional[0]])
    np.testing.assert_allclose(np.abs(poles), 30.0, rtol=1e-12)
    np.testing.assert_allclose(-poles.real / np.abs(poles), 0.7, rtol=1e-12)


def test_gains_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="joint 1 has no motor inertia"):
        MotorGains.from_frequency([0.5, 0.0], 30.0, 1.0)
    with pytest.raises(InputError, match="proportional gains must be finite"):
        MotorGains([1.0, np.nan], [1.0, 1.0])
    with pytest.raises(InputError, match="derivative gains must be finite and not negative"):
        MotorGains([1.0, 1.0], [1.0, -1.0])
    with pytest.raises(InputError, match="2 proportional gains, but 1 derivative"):
        MotorGains([1.0, 1.0], [1.0])


@pytest.mark.parametrize("order", [2, 3, 4])
def test_references_of_the_three_modes(panda: Robot, motion: object, order: int) -> None:
    drives = drives_of(panda)
    q = motion.sample(1.7, order + 2)  # type: ignore[attr-defined]
    feedforward = FeedforwardLaw(panda, order)(q)

    elastic = motor_reference(FeedforwardMode.ELASTIC, drives, feedforward)
    np.testing.assert_array_equal(elastic.positions, feedforward.motor_positions)
    count = len(feedforward.motor_efforts)
    np.testing.assert_allclose(elastic.efforts[:count], feedforward.motor_efforts, rtol=1e-12, atol=1e-10)

    rigid = motor_reference(FeedforwardMode.RIGID, drives, feedforward)
    np.testing.assert_allclose(rigid.positions, q[: order + 1], rtol=1e-12, atol=1e-12)
    expected = feedforward.efforts.copy()
    expected[: order - 1] += drives.motor_inertia * q[2 : order + 1]
    np.testing.assert_allclose(rigid.efforts, expected, rtol=1e-12, atol=1e-10)

    none = motor_reference(FeedforwardMode.NONE, drives, feedforward)
    np.testing.assert_allclose(none.positions, q[: order + 1], rtol=1e-12, atol=1e-12)
    assert len(none.efforts) == 0


def test_rigid_joints_follow_their_links_in_every_mode() -> None:
    drives = SeriesElastic([np.inf], [0.5])
    q = np.array([[0.1], [0.2], [0.3], [0.4], [0.5]])
    torques = np.array([[10.0], [20.0], [30.0]])
    motor = drives.feedforward(q, torques)
    feedforward = Feedforward(torques, motor.position, motor.effort, np.empty((0, 6)))
    for mode in (FeedforwardMode.RIGID, FeedforwardMode.ELASTIC):
        reference = motor_reference(mode, drives, feedforward)
        np.testing.assert_allclose(reference.positions, q[:3], rtol=1e-15)
        np.testing.assert_allclose(reference.efforts[0], [10.0 + 0.5 * 0.3], rtol=1e-15)


def test_a_feedforward_that_carries_too_little_is_refused(panda: Robot) -> None:
    feedforward = FeedforwardLaw(panda, 1)(np.zeros((4, 7)))
    with pytest.raises(
        InputError, match="motor efforts of 0.*feedforward 'elastic'; let dynamics_node compute order 2"
    ):
        motor_reference(FeedforwardMode.ELASTIC, drives_of(panda), feedforward)
    without_drives = FeedforwardLaw(Robot(panda.model), 2)(np.zeros((5, 7)))
    with pytest.raises(InputError, match="motor positions of 0 orders"):
        motor_reference(FeedforwardMode.NONE, drives_of(panda), without_drives)


def test_drives_of_any_kind_take_all_or_nothing(panda: Robot, motion: object) -> None:
    """Friction and damped springs: what the feedforward says of the motors, and no other mode."""
    assert panda.drive_specs is not None
    friction = FrictionSpec(1.0, 1.5, 0.05)
    specs = [
        DriveSpec(
            s.stiffness, s.motor_inertia, spring_damping=20.0, motor_friction=friction, link_friction=friction
        )
        for s in panda.drive_specs
    ]
    robot = Robot(panda.model, panda.limits, panda.drives, panda.frames, specs)
    feedforward = FeedforwardLaw(robot, 3)(motion.sample(1.7, 5))  # type: ignore[attr-defined]
    reference = motor_reference(FeedforwardMode.ELASTIC, None, feedforward)
    np.testing.assert_array_equal(reference.positions, feedforward.motor_positions)
    assert len(feedforward.motor_efforts) == 2
    np.testing.assert_array_equal(reference.efforts[:2], feedforward.motor_efforts)
    np.testing.assert_array_equal(reference.efforts[2:], feedforward.efforts[2:])
    with pytest.raises(InputError, match="'rigid' leaves out part.*choose 'elastic'"):
        motor_reference(FeedforwardMode.RIGID, None, feedforward)


def controller(robot: Robot, mode: FeedforwardMode, **options: object) -> MotorController:
    drives = drives_of(robot)
    gains = MotorGains.from_frequency(drives.motor_inertia, 30.0, 1.0)
    return MotorController(drives, gains, mode, **options)  # type: ignore[arg-type]


def test_a_command_is_feedforward_plus_feedback(panda: Robot, motion: object) -> None:
    pd = controller(panda, FeedforwardMode.ELASTIC)
    assert not pd.ready
    with pytest.raises(InputError, match="no feedforward to follow yet"):
        pd.command(0, np.zeros(7), np.zeros(7), 0)
    feedforward = FeedforwardLaw(panda, 2)(motion.sample(1.5, 4))  # type: ignore[attr-defined]
    pd.follow(5 * MS, feedforward)
    assert pd.ready
    position, velocity = feedforward.motor_positions[:2]
    exact = pd.command(5 * MS, position, velocity, 5 * MS)
    np.testing.assert_allclose(exact.effort, feedforward.motor_efforts[0], rtol=1e-12)
    off = pd.command(5 * MS, position - 0.01, velocity + 0.02, 5 * MS)
    gains = MotorGains.from_frequency(drives_of(panda).motor_inertia, 30.0, 1.0)
    expected = feedforward.motor_efforts[0] + 0.01 * gains.proportional - 0.02 * gains.derivative
    np.testing.assert_allclose(off.effort, expected, rtol=1e-12)
    assert not off.held and not off.saturated


def test_steps_are_cut_to_the_limits_of_the_rates(panda: Robot) -> None:
    """From command to command, by the time between; the first one, and one after a long time, are free."""
    rate = np.array([100.0, np.inf, 1000.0, 100.0, 100.0, 100.0, 100.0])
    pd = controller(panda, FeedforwardMode.ELASTIC, rate_limit=rate)
    feedforward = FeedforwardLaw(panda, 2)(np.zeros((5, 7)))
    pd.follow(0, feedforward)
    at_rest = feedforward.motor_positions[0], np.zeros(7)
    first = pd.command(0, *at_rest, 0)
    assert not first.rate_limited
    off = at_rest[0] - 0.01, at_rest[1]
    wanted = controller(panda, FeedforwardMode.ELASTIC)
    wanted.follow(0, feedforward)
    free = wanted.command(2 * MS, *off, 2 * MS).effort
    cut = pd.command(2 * MS, *off, 2 * MS)
    assert cut.rate_limited and not cut.saturated
    expected = first.effort + np.minimum(free - first.effort, rate * 2e-3)
    np.testing.assert_allclose(cut.effort, expected, rtol=1e-12, atol=1e-12)
    again = pd.command(2 * MS, *off, 2 * MS)  # no time has passed
    assert again.effort[0] == cut.effort[0] and again.effort[1] == free[1]
    assert pd.command(2 * MS, *at_rest, 2 * MS).effort[1] == first.effort[1]  # no limit at all
    later = pd.command(90 * MS, *off, 90 * MS)
    assert not later.rate_limited
    np.testing.assert_allclose(later.effort, free, rtol=1e-9, atol=1e-9)


def test_a_measurement_that_is_no_number_leaves_no_trace() -> None:
    gains = MotorGains([1.0, 1.0], [1.0, 1.0])
    controller = MotorController(None, gains, FeedforwardMode.ELASTIC, effort_limit=5.0, rate_limit=100.0)
    controller.follow(0, Feedforward(*[np.zeros((3, 2))] * 3, np.zeros((3, 6))))
    still = np.zeros(2)
    controller.command(0, still, still, 0)
    for position, velocity in (([np.nan, 0.0], still), (still, [0.0, np.inf])):
        with pytest.raises(InputError, match="holds NaN or infinite numbers"):
            controller.command(10**6, np.array(position), np.array(velocity), 10**6)
    assert not controller.command(2 * 10**6, still, still, 2 * 10**6).effort.any()


def test_between_two_feedforwards_the_command_is_that_of_the_instant(panda: Robot, motion: object) -> None:
    """Reference and effort are carried on with an error of third order in the time that has passed."""
    law = FeedforwardLaw(panda, 2)
    errors = []
    for h in (4 * MS, 2 * MS):
        pd = controller(panda, FeedforwardMode.ELASTIC)
        pd.follow(0, law(motion.sample(1.5, 4)))  # type: ignore[attr-defined]
        now = law(motion.sample(1.5 + 1e-9 * h, 4))  # type: ignore[attr-defined]
        command = pd.command(h, now.motor_positions[0], now.motor_positions[1], h)
        errors.append(np.abs(command.effort - now.motor_efforts[0]).max())
    assert errors[0] < 2e-2  # where a held effort would be off by 0.1 N.m
    assert errors[1] < 0.6 * errors[0]


def test_an_old_feedforward_leaves_the_reference_standing(panda: Robot, motion: object) -> None:
    pd = controller(panda, FeedforwardMode.ELASTIC, longest_extrapolation=0.05)
    feedforward = FeedforwardLaw(panda, 2)(motion.sample(1.5, 4))  # type: ignore[attr-defined]
    pd.follow(0, feedforward)
    rest = np.zeros(7)
    before = pd.command(50 * MS, rest, rest, 50 * MS)
    after = pd.command(51 * MS, rest, rest, 51 * MS)
    much_later = pd.command(10_000 * MS, rest, rest, 10_000 * MS)
    assert [before.held, after.held, much_later.held] == [False, True, True]
    np.testing.assert_allclose(after.effort, much_later.effort, rtol=1e-12)
    speed = feedforward.motor_positions[1] + 0.05 * feedforward.motor_positions[2]
    damping = MotorGains.from_frequency(drives_of(panda).motor_inertia, 30.0, 1.0).derivative
    np.testing.assert_allclose(before.effort - after.effort, damping * speed, rtol=1e-9, atol=1e-9)


def test_efforts_are_cut_to_their_limit(panda: Robot) -> None:
    pd = controller(panda, FeedforwardMode.ELASTIC, effort_limit=np.full(7, 12.0))
    pd.follow(0, FeedforwardLaw(panda, 2)(np.zeros((5, 7))))
    command = pd.command(0, np.full(7, 0.5), np.zeros(7), 0)
    assert command.saturated
    assert np.abs(command.effort).max() == 12.0


def track(robot: Robot, motion: object, mode: FeedforwardMode, order: int = 2) -> float:
    """Return the RMS tracking error [rad] of links under samples and commands at 1 kHz, without any delay."""
    law = FeedforwardLaw(robot, order)
    pd = controller(robot, mode)
    simulation = ElasticJointSimulation(robot, motion.sample(0.0, 0)[0])  # type: ignore[attr-defined]
    squares = []
    for k in range(3000):
        instant = k * MS
        pd.follow(instant, law(motion.sample(1e-9 * instant, order + 2)))  # type: ignore[attr-defined]
        # the command is held for a millisecond, so on average it acts in the middle of it
        command = pd.command(instant, simulation.motor_position, simulation.motor_velocity, instant + MS // 2)
        simulation.advance(1e-3, command.effort)
        wanted = motion.sample(1e-3 * (k + 1), 0)[0]  # type: ignore[attr-defined]
        squares.append(np.mean((simulation.position - wanted) ** 2))
    return float(np.sqrt(np.mean(squares)))


def test_elastic_feedforward_tracks_and_the_others_do_not(panda: Robot, motion: object) -> None:
    none, rigid, elastic = (track(panda, motion, mode) for mode in FeedforwardMode)
    assert elastic < 4e-6
    assert 1e-4 < rigid < 1e-2
    assert none > 10.0 * rigid
    # the third derivative of the torque gives the effort of the motors a rate of its own
    assert track(panda, motion, FeedforwardMode.ELASTIC, order=3) < 0.1 * elastic
