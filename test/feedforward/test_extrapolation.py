"""How far a series reaches beyond its instant, and what fills up the efforts of motors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from hodyn_ros import Robot, share
from hodyn_ros.feedforward.extrapolation import error_bound, motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward, Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.trajectory import read_trajectory


def sine_series(t: float, orders: int) -> np.ndarray:
    """sin(5 t + j) of three joints, with its derivatives."""
    phase = 5.0 * t + np.arange(3.0)
    return np.array([5.0**k * np.sin(phase + 0.5 * np.pi * k) for k in range(orders)])


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
    refused(lambda: error_bound([1.0], -1, 0.1), "order of a series must be 0 or higher, found -1")


# motors


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load(share.find("config", "panda.yaml"))


@pytest.fixture(scope="module")
def moving(robot: Robot) -> dict[int, Feedforward]:
    """A feedforward of the Panda at full speed, by order."""
    motion = read_trajectory(share.find("config", "panda_excitation.yaml"))
    return {r: FeedforwardModel(robot, r).compute(motion.sample(3.0, r + 2)) for r in (0, 2, 4)}


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
