"""Samples of motions from rest to rest at a fixed rate."""

import math

import numpy as np
import pytest
from refusals import assert_refused, refused

from hodyn_ros.trajectory import Cosines, WaypointSpline
from hodyn_ros.trajectory.rest import rest_to_rest, through_points
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.sampling import Sampler

ENDLESS = Cosines([1.0, 0.5], [2.0, 3.0])
SHORT = Cosines([1.0, 0.5], [2.0, 3.0], duration=4.0)
SPLINE = WaypointSpline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]])


def test_samples_are_those_of_the_trajectory() -> None:
    motion = rest_to_rest(SHORT, 1.0)
    sampler = Sampler(RobotMotion.of_joints(motion), 100.0, 4)
    for k in (0, 1, 2, 19, 20, 21, 300, 7):
        np.testing.assert_allclose(sampler[k].joints, motion.sample(k / 100.0, 4), rtol=1e-12, atol=1e-12)
    assert sampler.count == round(100 * motion.duration) + 1
    np.testing.assert_array_equal(sampler[10_000].joints, motion.sample(motion.duration, 4))


def test_a_motion_in_motion_at_its_end_can_be_sampled_up_to_it() -> None:
    sampler = Sampler(RobotMotion.of_joints(SHORT), 7.0, 2)
    assert sampler.count == 29
    np.testing.assert_allclose(sampler[28].joints, SHORT.sample(4.0, 2), rtol=1e-12)


def test_the_last_sample_of_a_motion_that_ends_between_two() -> None:
    spline = WaypointSpline([0.0, 1.05], [[0.0], [1.0]])
    sampler = Sampler(RobotMotion.of_joints(spline), 10.0, 2)
    assert sampler.count == 12
    np.testing.assert_allclose(sampler[11].joints, [[1.0], [0.0], [0.0]], rtol=0, atol=1e-12)
    assert Sampler(RobotMotion.of_joints(ENDLESS), 10.0, 2).count == math.inf


def test_a_rate_that_makes_no_sense_is_refused() -> None:
    refused(lambda: Sampler(RobotMotion.of_joints(SPLINE), 0.0, 2), "rate must be positive")


def test_ramps_are_put_where_there_is_no_rest() -> None:
    motion = rest_to_rest(ENDLESS, 1.0, 5.0)
    assert motion.duration == pytest.approx(7.0, rel=1e-12)
    assert motion.starts_at_rest and motion.ends_at_rest
    # at full speed between the ramps, half a ramp behind
    np.testing.assert_allclose(motion.sample(3.3, 4), ENDLESS.sample(2.8, 4), rtol=1e-10)
    assert rest_to_rest(ENDLESS, 1.0).duration == math.inf
    whole = rest_to_rest(SHORT, 1.0)
    np.testing.assert_allclose(whole.sample(whole.duration, 0), SHORT.sample(4.0, 0), rtol=1e-12)


def test_what_rests_by_itself_is_left_alone() -> None:
    assert rest_to_rest(SPLINE, 1.0) is SPLINE
    assert rest_to_rest(SHORT, 0.0) is SHORT
    assert rest_to_rest(SPLINE, 1.0, 2.0) is SPLINE


def test_ramps_are_as_smooth_as_asked_for() -> None:
    assert rest_to_rest(ENDLESS, 1.0, 5.0).smoothness == 6
    assert rest_to_rest(ENDLESS, 1.0, 5.0, order=8).smoothness == 8


def test_durations_that_do_not_fit_are_refused() -> None:
    assert_refused(
        (lambda: rest_to_rest(SPLINE, 1.0, 9.0), "asked to last 9 s, but there are 2 s"),
        (lambda: rest_to_rest(SPLINE, 1.0, 1.8), "let it last 1.5 s at most, or all"),
        (lambda: rest_to_rest(ENDLESS, 0.0, 5.0), "ramp longer than 0 s"),
    )


def test_points_are_reached_from_where_the_robot_is_held() -> None:
    positions = np.array([[1.0, 2.0], [2.0, 1.0]])
    motion = through_points(np.array([1.0, 2.0]), positions, present=np.array([0.5, 0.5]))
    np.testing.assert_allclose(motion.sample(0.0, 0), [[0.5, 0.5]], atol=1e-12)
    np.testing.assert_allclose(motion.sample([1.0, 2.0], 0)[:, 0], positions, rtol=1e-12)
    assert motion.starts_at_rest and motion.ends_at_rest
    velocities = np.array([[1.0, -1.0], [0.0, 0.0]])
    fast = through_points(np.array([1.0, 2.0]), positions, velocities, present=np.array([0.5, 0.5]))
    np.testing.assert_allclose(fast.sample(1.0, 1)[1], [1.0, -1.0], rtol=1e-12)


def test_points_that_would_make_a_robot_jump_are_refused() -> None:
    positions = np.array([[1.0], [2.0]])
    assert_refused(
        (lambda: through_points(np.array([0.0, 1.0]), positions, present=np.array([0.5])),
         "0.5 rad ... from where the robot is held"),
        (lambda: through_points(np.array([0.0, 1.0]), positions, np.array([[0.0], [1.0]])),
         "velocities of the last point must be zero"),
        (lambda: through_points(np.array([0.0, 1.0]), positions, np.array([[1.0], [0.0]])),
         "velocities of the first point must be zero"),
        (lambda: through_points(np.array([0.0, 1.0]), positions, np.zeros((2, 1)), np.array([[1.0], [0.0]])),
         "accelerations of the first point must be zero"),
    )  # fmt: skip
