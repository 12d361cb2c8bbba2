"""Commands between feedforwards, their safe end, and their return: continuous wherever they should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hodyn_ros import Robot, share
from hodyn_ros.control.command_stream import Command, CommandStream, Ending
from hodyn_ros.control.extrapolation import error_bound, motor_effort_series
from hodyn_ros.control.feedforward import Feedforward, Status
from hodyn_ros.control.law import FeedforwardLaw
from hodyn_ros.control.motor_references import MotorReference, MotorReferences
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory import read_trajectory

TIMEOUT, FADE = 0.05, 0.2
MS = 1_000_000  # [ns]
START = 1_700_000_000_123_456_789


def sine_series(t: float, orders: int) -> np.ndarray:
    """sin(5 t + j) of three joints, with its derivatives."""
    phase = 5.0 * t + np.arange(3.0)
    return np.array([5.0**k * np.sin(phase + 0.5 * np.pi * k) for k in range(orders)])


def instant(t: float) -> int:
    return START + round(t * 1e9)


def run(stream: CommandStream, messages: dict[int, float], until: int) -> list[Command]:
    """One quantity, a command each millisecond; `messages` says after how many of them what time is sent."""
    commands = []
    for k in range(until):
        if k in messages:
            stream.follow(instant(messages[k]), [sine_series(messages[k], 4)])
        commands += stream.command(instant(1e-3 * k))
    return commands


@given(order=st.integers(0, 6), h=st.floats(-0.2, 0.2))
def test_the_error_of_a_series_is_within_the_bound(order: int, h: float) -> None:
    exact = sine_series(0.7 + h, 1)[0]
    rows = sine_series(0.7, order + 1)
    found = sum(row * h**k / float(np.prod(np.arange(1, k + 1))) for k, row in enumerate(rows))
    largest = np.full(3, 5.0 ** (order + 1))
    assert (np.abs(found - exact) <= error_bound(largest, order, h) + 1e-14).all()


def test_the_bound_is_tight_and_refuses_nonsense() -> None:
    exact, found = np.exp(1e-3), 1.0 + 1e-3 + 0.5e-6
    assert 0.99 < (exact - found) / float(error_bound(exact, 2, 1e-3)) <= 1.0
    with pytest.raises(InputError, match="order of a series must be 0 or higher, found -1"):
        error_bound([1.0], -1, 0.1)


def test_between_messages_the_series_is_followed_and_steps_are_reported() -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.FADE])
    run(stream, {k: 1e-3 * k for k in range(0, 400, 10)}, 400)  # beyond the first fade
    (found,) = stream.command(instant(0.397))
    h = 0.007
    np.testing.assert_allclose(found.value, sine_series(0.397, 1)[0], rtol=0, atol=1.01 * 625 * h**4 / 24)
    np.testing.assert_allclose(found.rate, sine_series(0.397, 2)[1], rtol=0, atol=1.01 * 3125 * h**3 / 6)
    (step,) = stream.follow(instant(0.42), [sine_series(0.42, 4)])
    bound = float(error_bound(625.0, 3, 0.03))
    assert 0.2 * bound < step <= bound
    assert stream.timeouts == 0 and stream.following


@pytest.mark.parametrize("how", Ending)
def test_an_end_and_a_return_have_no_step(how: Ending) -> None:
    stream = CommandStream(TIMEOUT, FADE, [how])
    stream.stand_at([sine_series(0.0, 1)[0]])
    messages = {k: 1e-3 * k for k in [*range(0, 600, 10), *range(1200, 2000, 10)]}
    commands = run(stream, messages, 2000)
    values = np.array([c.value for c in commands])
    assert stream.timeouts == 1
    # the largest change in a millisecond is that of the sine, of the fade, or of both
    fastest = 5e-3 + 1e-3 * 1.5 * 2.0 / FADE
    assert np.abs(np.diff(values, axis=0)).max() <= fastest
    last = values[590 + 50]
    stand = values[1199]
    if how is Ending.FADE:
        np.testing.assert_array_equal(stand, np.zeros(3))
    elif how is Ending.HOLD:
        np.testing.assert_array_equal(stand, last)
    else:
        np.testing.assert_allclose(stand, last + FADE / 3.0 * commands[640].rate, rtol=0, atol=1e-12)
    assert not commands[1199].rate.any()
    # all is as if nothing had been, once the fade is over
    np.testing.assert_allclose(
        values[1405:1410],
        [sine_series(1e-3 * k, 1)[0] for k in range(1405, 1410)],
        rtol=0,
        atol=625 * 0.01**4 / 24,
    )


def test_a_motion_brakes_and_returns_with_a_velocity_that_is_its_derivative() -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.BRAKE])
    messages = {k: 1e-3 * k for k in [*range(0, 600, 10), *range(1200, 2000, 10)]}
    commands = run(stream, messages, 2000)
    values, rates = (np.array([getattr(c, field) for c in commands]) for field in ("value", "rate"))
    differences = (values[2:] - values[:-2]) / 2e-3
    off = np.abs(differences - rates[1:-1])
    # a change of course is a kink in the rate: the largest second derivative of the cubic, and of the sine
    kink = 6.0 * 2.0 / FADE**2 + 4.0 * 5.0 / FADE + 25.0
    assert off.max() <= 0.5e-3 * kink
    assert np.median(off) <= 1e-3
    assert np.abs(np.diff(rates, axis=0)).max() <= 1e-3 * kink


def test_efforts_fade_in_from_zero_at_the_first_feedforward() -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.FADE])
    assert stream.command(START) == []
    stream.follow(START, [np.full((1, 2), 10.0)])
    found = []
    for k in range(0, 250, 10):
        stream.follow(START + k * MS, [np.full((1, 2), 10.0)])
        found.append(stream.command(START + k * MS)[0].value[0])
    assert found[0] == 0.0 and found[10] == pytest.approx(5.0) and found[20:] == [10.0] * 5
    assert (np.diff(found) >= 0.0).all()


def test_a_feedforward_that_is_too_old_or_too_early_is_not_evaluated() -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.HOLD])
    stream.follow(START, [sine_series(0.0, 3)])
    assert stream.command(START + 51 * MS) == []
    assert stream.command(START - 51 * MS) == []
    assert not stream.following and stream.timeouts == 0
    assert len(stream.command(START + 50 * MS)) == 1
    (held,) = stream.command(START - 60 * MS)  # the clock has jumped back
    assert stream.timeouts == 1 and not held.rate.any()


@pytest.mark.parametrize("number", [1e308, -1e200, np.nan, np.inf])
def test_numbers_without_a_sense_are_refused_and_forgotten(number: float) -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.FADE])
    stream.follow(instant(0.0), [np.ones((2, 1))])
    stream.command(instant(0.0))
    with pytest.raises(InputError, match="not finite, or far too large"):
        stream.follow(instant(0.01), [np.full((2, 1), number)])
    for t in np.arange(0.0, 3.0 * FADE, 0.01):
        (command,) = stream.command(instant(t))
        assert np.isfinite(command.value).all() and np.abs(command.value).max() < 2.0


def test_an_end_long_after_the_last_command_begins_where_that_was() -> None:
    stream = CommandStream(TIMEOUT, FADE, [Ending.FADE])
    for k in range(0, 310, 10):
        stream.follow(START + k * MS, [np.full((1, 2), 10.0)])
        stream.command(START + k * MS)
    (first,), (second,) = (stream.command(START + k * MS) for k in (360, 370))
    assert list(first.value) == [10.0, 10.0] and (second.value > 9.0).all() and (second.value < 10.0).all()


def test_impossible_times_are_refused() -> None:
    for timeout, fade in ((0.0, 0.1), (0.1, 0.0), (float("nan"), 0.1)):
        with pytest.raises(InputError, match="must be longer than 0 s"):
            CommandStream(timeout, fade, [Ending.FADE])


# motors


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.from_config(share.find("config", "panda.yaml"))


@pytest.fixture(scope="module")
def moving(robot: Robot) -> dict[int, Feedforward]:
    """A feedforward of the Panda at full speed, by order."""
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    return {r: FeedforwardLaw(robot, r)(motion.sample(3.0, r + 2)) for r in (0, 2, 4)}


def test_derivatives_of_the_link_efforts_fill_those_of_the_motors(moving: dict[int, Feedforward]) -> None:
    found, exact = motor_effort_series(moving[2]), moving[4].motor_efforts
    assert found.shape == exact.shape == (3, 7)
    np.testing.assert_array_equal(found[0], moving[2].motor_efforts[0])
    # much nearer than nothing, which is what the message holds
    for k in (1, 2):
        assert np.linalg.norm(found[k] - exact[k]) < 0.7 * np.linalg.norm(exact[k])
    clamped = moving[2]._replace(status=Status.EFFORT_CLAMPED)
    assert motor_effort_series(clamped) is clamped.motor_efforts
    assert not len(motor_effort_series(moving[0]))


def references(robot: Robot, join_within: float = 0.02) -> MotorReferences:
    return MotorReferences(robot.joint_names, TIMEOUT, FADE, join_within)


def test_references_begin_where_the_robot_stands(robot: Robot, moving: dict[int, Feedforward]) -> None:
    found = references(robot)
    feedforward = moving[4]
    with pytest.raises(InputError, match="where the robot stands is not known"):
        found.follow(START, feedforward, START)
    far = feedforward.motor_positions[0].copy()
    far[2] += 0.021
    found.measure(START, far)
    with pytest.raises(InputError, match="joint 'panda_joint3' stands 0.021 rad or m from the motion"):
        found.follow(START, feedforward, START)
    near = feedforward.motor_positions[0] + 0.01
    found.measure(START, near)
    with pytest.raises(InputError, match="is not known"):
        found.follow(START + 600 * MS, feedforward, START + 600 * MS)
    assert found.command(START) is None
    found.follow(START, feedforward, START)
    first = found.command(START)
    assert first is not None
    np.testing.assert_allclose(first.position, near, rtol=0, atol=1e-12)
    assert not first.velocity.any() and not first.effort.any()
    for k in range(10, 210, 10):
        found.follow(START + k * MS, feedforward, START + k * MS)
    last = found.command(START + 200 * MS)
    assert last is not None
    np.testing.assert_array_equal(last.position, feedforward.motor_positions[0])
    np.testing.assert_array_equal(last.velocity, feedforward.motor_positions[1])
    np.testing.assert_array_equal(last.effort, feedforward.motor_efforts[0])


def test_motors_brake_while_their_efforts_stay(robot: Robot, moving: dict[int, Feedforward]) -> None:
    found = references(robot, join_within=0.0)
    for k in range(0, 310, 10):
        found.follow(START + k * MS, moving[4], START + k * MS)
        found.command(START + k * MS)
    moments = [found.command(START + k * MS) for k in (350, 351, 450, 551, 5000)]
    before, _, braking, stand, later = (m for m in moments if isinstance(m, MotorReference))
    assert (np.abs(braking.velocity) < np.abs(before.velocity)).all()
    assert not stand.velocity.any()
    np.testing.assert_allclose(stand.position, before.position + before.velocity * FADE / 3.0, atol=2e-3)
    np.testing.assert_array_equal(later.position, stand.position)
    np.testing.assert_allclose(later.effort, before.effort, rtol=0, atol=0.2)
    # the motion goes on somewhere else: it is not taken up before it comes near
    gated = references(robot, join_within=0.02)
    gated.measure(START, moving[4].motor_positions[0])
    gated.follow(START, moving[4], START)
    gated.command(START)
    gated.command(START + 100 * MS)
    elsewhere = moving[4]._replace(motor_positions=moving[4].motor_positions + 0.1)
    gated.measure(START + 400 * MS, moving[4].motor_positions[0])
    with pytest.raises(InputError, match="begin where the robot stands"):
        gated.follow(START + 400 * MS, elsewhere, START + 400 * MS)


def test_references_need_motor_motion_and_efforts(robot: Robot, moving: dict[int, Feedforward]) -> None:
    found = references(robot, join_within=0.0)
    with pytest.raises(InputError, match="motor positions of 1 orders and motor efforts of 0"):
        found.follow(START, moving[0], START)
