"""Motions that are slowed down, stopped, turned back and resumed while they are under way."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from refusals import refused
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.override import HOLDS, OverridableSampler, PathClock, moved, override
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])


@cache
def fastest() -> tuple[LimitSet, RobotMotion]:
    """Return the limits of the Panda and the fastest motion along a path: it uses them all the time."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    acceleration = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])  # of the data sheet
    robot = Robot(robot.model, replace(robot.limits, acceleration=acceleration), robot.drive_train)
    points = HOME + np.array([np.zeros(7), np.full(7, 0.4), np.linspace(-0.6, 0.6, 7), np.zeros(7)])
    return LimitSet(robot), time_optimal(WaypointSpline(np.arange(4.0), points), robot).motion


@pytest.mark.parametrize("seed", some(range(4), 0, 1))
def test_changes_at_any_time_keep_limits_and_four_derivatives(seed: int) -> None:
    limits, motion = fastest()
    random = np.random.default_rng(seed)
    clock, now, columns = PathClock.running(motion.trajectory.duration), 0.0, []
    for _ in range(8):
        until = now + random.uniform(0.03, 0.4)
        columns.append(moved(motion, clock, np.arange(now, until, 0.002), limits.order))
        changed = override(motion, clock, until, random.choice([0.0, 0.3, 0.7, 1.0, -0.5, -1.0]), limits)
        around = until + np.array([-0.01, 0.0])
        before, after = moved(motion, clock, around, 4), moved(motion, changed.clock, around, 4)
        np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-6)
        assert changed.usage <= HOLDS
        clock, now = changed.clock, until
    columns.append(moved(motion, clock, np.arange(now, now + 1.0, 0.002), limits.order))
    used = limits.usage(np.abs(limits.relative(MotionSample(np.concatenate(columns))).values))
    assert used.max() <= 1.0 + 1e-3


def test_the_path_stays_the_same_and_derivatives_are_those_of_differences() -> None:
    _, motion = fastest()
    clock = PathClock.running(motion.trajectory.duration).changed(0.3, 0.4, 0.2)
    times = np.linspace(0.2, 0.8, 7)
    places = clock.at(times, 0)[0]
    columns = moved(motion, clock, times, 4)
    np.testing.assert_allclose(columns[:, 0], motion.trajectory.sample(places, 0)[:, 0], rtol=1e-12)
    step = 1e-4
    for order in range(4):
        near = moved(motion, clock, np.concatenate([times - step, times + step]), order)[:, order]
        slope = (near[7:] - near[:7]) / (2.0 * step)
        scale = np.abs(columns[:, order + 1]).max()
        np.testing.assert_allclose(columns[:, order + 1], slope, atol=1e-3 * scale)


def test_pause_and_resume_end_where_the_motion_ends_and_back_where_it_begins() -> None:
    _, motion = fastest()
    duration = motion.trajectory.duration
    sampler = OverridableSampler(motion, 500.0, 4)
    assert sampler.count == np.ceil(duration * 500.0) + 1
    paused = override(motion, sampler.clock, 0.4, 0.0, None, 0.2).clock
    sampler.follow(paused)
    assert np.isinf(sampler.count)
    rest = sampler[500].joints
    assert not rest[1:].any() and 0.5 < paused.at(np.array([1.0]), 0)[0, 0] < 0.55
    resumed = override(motion, paused, 2.0, 1.0, None, 0.2).clock
    sampler.follow(resumed)
    assert np.isfinite(sampler.count)
    last = sampler[int(sampler.count) - 1].joints
    np.testing.assert_allclose(last, motion.trajectory.sample(duration, 4), atol=1e-12)
    # in all, it has lost the pause and two halves of the ramps, each longer by what the spline needs
    assert resumed.ends == pytest.approx(duration + 1.6, abs=0.03)
    back = override(motion, resumed, 2.5, -1.0, None, 0.2).clock
    sampler.follow(back)
    assert np.isinf(sampler.count)
    np.testing.assert_allclose(sampler[5000].joints, motion.trajectory.sample(0.0, 4), atol=1e-12)
    again = override(motion, back, 20.0, 0.5, None, 0.2).clock  # it stands at its beginning: nothing is lost
    assert again.ends == pytest.approx(20.0 + duration / 0.5, abs=0.2)


def test_speeds_that_cannot_be_are_refused() -> None:
    limits, motion = fastest()
    clock = PathClock.running(motion.trajectory.duration)
    for speed in (1.1, -2.0, np.nan):
        refused(partial(override, motion, clock, 0.1, speed, limits), "may be from -1 to 1 times its own")


def test_a_speed_that_no_change_reaches_within_limits_is_refused_and_a_lower_one_is_not() -> None:
    """As of a paused motion that is faster than it may be: it stays there, until somebody asks for less."""
    _, motion = fastest()
    robot = Robot.load(share.find("config", "panda.yaml"))
    slow = LimitSet(Robot(robot.model, replace(robot.limits, velocity=0.1 * robot.limits.velocity)))
    paused = override(motion, PathClock.running(motion.trajectory.duration), 0.4, 0.0, None).clock
    refused(lambda: override(motion, paused, 1.0, 1.0, slow), "times the velocity of ... nothing changes")
    assert override(motion, paused, 1.0, 0.05, slow).usage <= HOLDS
