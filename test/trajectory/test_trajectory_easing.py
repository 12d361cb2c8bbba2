"""Starts from rest and stops to rest, against exact arithmetic."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import mp_trajectories as mp
from refusals import assert_refused

from hodyn_ros.trajectory import (
    Cosines,
    EasedStart,
    EasedStop,
    PiecewisePolynomial,
    Trajectory,
    WaypointSpline,
)

W = 1.7
MOTION = Cosines([1.0, -0.4], [W, 2.0 * W])


def exact(scaling: Any, times: Any, order: int) -> mp.Array:
    def joint(amplitude: float, w: Any) -> Any:
        return lambda t: amplitude * mpmath.cos(w * scaling(t))

    joints = [joint(1.0, mpmath.mpf(W)), joint(-0.4, mpmath.mpf(2.0 * W))]
    return mp.derivatives(joints, times, order)


def knot_steps(motion: Trajectory, t: float, order: int) -> mp.Array:
    """Return the steps of the derivatives at t, each relative to its largest value around."""
    around = np.abs(motion.sample(np.linspace(t - 0.2, t + 0.2, 401), order)).max(axis=(0, 2))
    beside = motion.sample([math.nextafter(t, -1e3), math.nextafter(t, 1e3)], order)
    steps = np.abs(beside[1] - beside[0]).max(axis=1)
    return np.asarray(steps / around)


@pytest.mark.thorough
@pytest.mark.parametrize("order", range(1, 11))
def test_start_with_every_derivative(order: int) -> None:
    ramp, start = 1.5, 0.4
    times = np.linspace(0.0, ramp, 9)[1:-1]
    found = EasedStart(MOTION, ramp, start, order=order).sample(times, 6)
    wanted = exact(lambda t: mpmath.mpf(start) + mp.eased_time(order - 1, ramp, t), times, 6)
    assert mp.error(found, wanted) < 1e-11


@pytest.mark.thorough
@given(ramp=st.floats(0.01, 100.0), start=st.floats(0.0, 10.0), fraction=st.floats(0.01, 0.99))
@settings(deadline=None, max_examples=10)
def test_start_of_any_length(ramp: float, start: float, fraction: float) -> None:
    times = ramp * np.array([0.25, fraction, 0.75])
    found = EasedStart(MOTION, ramp, start).sample(times, 4)
    assert mp.error(found, exact(lambda t: start + mp.eased_time(5, ramp, t), times, 4)) < 1e-10


@pytest.mark.parametrize("order", [4, 6])
def test_stop_with_every_derivative(order: int) -> None:
    ramp, stop = 1.5, 3.0
    motion = EasedStop(MOTION, ramp, stop, order=order)
    times = motion.duration - np.linspace(0.0, ramp, 9)[1:-1]
    end = mpmath.mpf(stop) + mpmath.mpf(ramp) / 2
    wanted = exact(lambda t: stop - mp.eased_time(order - 1, ramp, end - t), times, 6)
    assert mp.error(motion.sample(times, 6), wanted) < 1e-12


def test_start_begins_at_rest_and_becomes_the_motion() -> None:
    motion = EasedStart(MOTION, 1.5, 0.4)
    at_rest = np.zeros((7, 2))
    at_rest[0] = MOTION.sample(0.4, 0)
    assert motion.starts_at_rest
    assert not motion.ends_at_rest
    assert np.array_equal(motion.sample(0.0, 6), at_rest)
    assert np.array_equal(motion.sample(-7.0, 6), at_rest)
    assert np.allclose(motion.sample([1.5, 4.0], 8), MOTION.sample([0.4 + 0.75, 0.4 + 3.25], 8), rtol=1e-13)
    assert motion.duration == math.inf


def test_stop_follows_the_motion_and_ends_at_rest() -> None:
    motion = EasedStop(Cosines([1.0], [W], duration=3.0), 1.0)
    assert motion.ends_at_rest
    assert not motion.starts_at_rest
    assert motion.duration == 3.5
    assert np.allclose(motion.sample([0.0, 2.5], 8), Cosines([1.0], [W]).sample([0.0, 2.5], 8), rtol=1e-13)
    for t in (3.5, 9.0):
        end = motion.sample(t, 6)
        assert np.isclose(end[0, 0], math.cos(3.0 * W), rtol=1e-15)
        assert not end[1:].any()


def test_start_and_stop_of_one_motion() -> None:
    motion = EasedStop(EasedStart(MOTION, 1.0), 2.0, stop=6.0)
    assert motion.starts_at_rest
    assert motion.ends_at_rest
    assert motion.duration == 7.0
    assert np.array_equal(motion.sample(-1.0, 3)[1:], np.zeros((3, 2)))
    assert np.array_equal(motion.sample(8.0, 3)[1:], np.zeros((3, 2)))
    assert np.allclose(motion.sample(3.0, 4), MOTION.sample(2.5, 4), rtol=1e-12)


@pytest.mark.parametrize("order", [4, 6])
def test_derivatives_are_continuous_up_to_the_order_and_no_further(order: int) -> None:
    start, stop = EasedStart(MOTION, 1.0, 0.4, order=order), EasedStop(MOTION, 1.0, 3.0, order=order)
    assert start.smoothness == stop.smoothness == order
    for motion, t in ((start, 0.0), (start, 1.0), (stop, 2.5), (stop, 3.5)):
        steps = knot_steps(motion, t, order + 1)
        assert np.all(steps[: order + 1] < 1e-9)
        assert steps[order + 1] > 1e-3


def test_smoothness_is_that_of_the_roughest_part() -> None:
    times, positions = [0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]]
    spline, rough = WaypointSpline(times, positions), PiecewisePolynomial(times, positions)
    assert EasedStart(spline, 0.5).smoothness == 4
    assert EasedStart(rough, 0.5).smoothness == 0
    assert_refused(
        (lambda: EasedStart(MOTION, 0.5, order=3).require_smoothness(4),
         "snap ... jumps; build it with order=4 or more"),
        (lambda: EasedStart(rough, 0.5).require_smoothness(4),
         "velocity (derivative 1) of this EasedStart jumps; make a WaypointSpline"),
    )  # fmt: skip


def test_bad_ramps_are_refused() -> None:
    assert_refused(
        (lambda: EasedStart(MOTION, 0.0), "ramp_duration must be above zero, found 0"),
        (lambda: EasedStart(MOTION, math.inf), "ramp_duration must be a finite number, found inf"),
        (lambda: EasedStart(MOTION, 1.0, -0.1), "start must lie between 0 and inf s, found -0.1"),
        (lambda: EasedStart(MOTION, 1.0, order=0), "order must be a whole number from 1 to 10, found 0"),
        (lambda: EasedStart(Cosines([1.0], [1.0], duration=2.0), 1.0, 1.6),
         "start must lie between 0 and 1.5 s, found 1.6: the trajectory ends at 2 s"),
        (lambda: EasedStop(MOTION, 1.0), "stop must be given, because the trajectory has no end"),
        (lambda: EasedStop(MOTION, 1.0, 0.4), "stop must lie between 0.5 s, half of the ramp, and inf s"),
        (lambda: EasedStop(Cosines([1.0], [1.0], duration=2.0), 1.0, 2.1),
         "and 2 s, the end of the trajectory"),
    )  # fmt: skip


@pytest.mark.parametrize("duration", [2.7, 8.496, 32.4969392347174])
def test_what_jumps_before_a_stop_jumps_where_it_did(duration: float) -> None:
    """The time left until the end rounds as the end does, which is more than what is near the start."""
    path = WaypointSpline([0.0, 0.3 * duration, duration], [[0.0], [1.0], [-1.0]], at_rest=False, order=2)
    start = EasedStart(path, 0.05 * duration, order=4)
    both = EasedStop(start, 0.05 * duration, order=4)
    points = start.breakpoints
    before = points[points < both.duration - both.ramp_duration]
    np.testing.assert_array_equal(before, np.asarray(both.breakpoints)[: len(before)])
    for point in before:
        beside = point + np.spacing(point) * np.array([-9.0, -1.0, 1.0, 9.0])
        beside = beside[beside >= 0.0]
        np.testing.assert_array_equal(both.sample(beside, 5), start.sample(beside, 5))
