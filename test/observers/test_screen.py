"""Samples that repeat the one before, and commands beyond what drives give."""

import numpy as np
import pytest

from hodyn_ros.observers.screen import SampleScreen

ROWS = ("position", "velocity", "motor_position", "motor_velocity", "motor_effort")
MOST = np.array([10.0, np.inf])


@pytest.fixture(name="screen")
def make_screen() -> SampleScreen:
    return SampleScreen(ROWS, ("lift", "turn"), MOST)


def moving(time: float) -> np.ndarray:
    """Two joints at 0.1 and 0.2 rad/s, read at a time."""
    speed = np.array([0.1, 0.2])
    return np.array([speed * time, speed, speed * time, speed, [3.0, 4.0]])


def test_motion_and_rest_do_not_repeat(screen: SampleScreen) -> None:
    assert not any(screen.repeats(1e-3 * k, moving(1e-3 * k)) for k in range(5))
    rest = np.zeros((5, 2))
    assert not any(screen.repeats(1.0 + 1e-3 * k, rest) for k in range(5))


@pytest.mark.parametrize("side", [0, 2])
def test_either_side_that_hangs_is_told(screen: SampleScreen, side: int) -> None:
    assert not screen.repeats(0.0, moving(0.0))
    hanging = moving(1e-3)
    hanging[side] = moving(0.0)[side]
    said = screen.repeats(1e-3, hanging)
    assert f"all {ROWS[side]}s and velocities" in said and "joint 'turn' would have moved by 0.0002" in said
    assert not screen.repeats(2e-3, moving(2e-3))  # and it is held against the last that counted


def test_one_joint_between_two_counts_does_not_hang(screen: SampleScreen) -> None:
    screen.repeats(0.0, moving(0.0))
    coarse = moving(1e-3)
    coarse[[0, 2], 0] = 0.0
    assert not screen.repeats(1e-3, coarse)


def test_after_a_new_beginning_nothing_repeats(screen: SampleScreen) -> None:
    screen.repeats(0.0, moving(0.0))
    screen.forget()
    assert not screen.repeats(1e-3, moving(0.0))


def test_commands_beyond_what_drives_give_count_as_that(screen: SampleScreen) -> None:
    within = moving(0.0)
    assert screen.within_limits(within) is within and not screen.saturated
    beyond = moving(0.0)
    beyond[4] = [-12.0, 1e3]
    given = screen.within_limits(beyond)
    assert given[4].tolist() == [-10.0, 1e3] and screen.saturated == 1
    assert (given[:4] == beyond[:4]).all() and beyond[4, 0] == -12.0
