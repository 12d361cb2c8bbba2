"""Paths with a time law of their own, and lines with rounded corners."""

import numpy as np
import pytest
from refusals import assert_refused, misshapen, refused

from hodyn_ros.trajectory import BlendedLines, Cosines, TimedPath, WaypointSpline


def test_a_speed_that_grows_evenly_has_a_closed_form() -> None:
    # b = 1 + 2 u, so u'' = 1 and u = t + t^2 / 2
    path = Cosines([1.0, 0.5], [1.0, 2.0], duration=4.0)
    knots = np.array([0.0, 1.5, 4.0])
    padded = np.concatenate([[0.0] * 5, knots, [4.0] * 5])
    greville = np.array([padded[i + 1 : i + 6].mean() for i in range(len(padded) - 6)])
    timed = TimedPath(path, knots, 1.0 + 2.0 * greville)
    assert timed.duration == pytest.approx(2.0, rel=1e-14)
    t = np.linspace(0.0, 2.0, 9)
    u = t + 0.5 * t**2
    samples = timed.sample(t, 3)
    frequencies = np.array([1.0, 2.0])
    angle, size = u[:, None] * frequencies, np.array([1.0, 0.5])
    speed, rise = (1.0 + t)[:, None] * frequencies, frequencies
    np.testing.assert_allclose(samples[:, 0], size * np.cos(angle), atol=1e-13)
    np.testing.assert_allclose(samples[:, 1], -size * np.sin(angle) * speed, atol=1e-12)
    np.testing.assert_allclose(
        samples[:, 2], -size * (np.cos(angle) * speed**2 + np.sin(angle) * rise), atol=1e-11
    )
    third = size * (np.sin(angle) * speed**3 - 3.0 * np.cos(angle) * speed * rise)
    np.testing.assert_allclose(samples[:, 3], third, atol=1e-11)


def test_places_and_times_are_inverse() -> None:
    path = WaypointSpline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]])
    speeds = np.random.default_rng(1).uniform(0.5, 4.0, 14)
    timed = TimedPath(path, np.linspace(0.0, 2.0, 10), speeds)
    times = np.linspace(0.0, timed.duration, 101)
    np.testing.assert_allclose(timed.times_at(timed.places_at(times)), times, atol=1e-13)
    assert timed.smoothness == 4 and timed.starts_at_rest and timed.ends_at_rest
    # derivatives are those of what comes before
    step = 1e-4
    inside = times[1:-1]
    before, after = timed.sample(inside - step, 4), timed.sample(inside + step, 4)
    rise = (after[:, :-1] - before[:, :-1]) / (2.0 * step)
    wanted = timed.sample(inside, 4)[:, 1:]
    np.testing.assert_allclose(rise, wanted, atol=1e-3 * np.abs(wanted).max())


def test_time_laws_that_cannot_be_are_refused() -> None:
    assert_refused(
        (([0.0, 0.5], np.ones(6)), "the last knot is 0.5, but the path has its end at 1"),
        (([0.0, 1.0, 1.0], np.ones(7)), "increase"),
        (([0.0, 1.0], np.ones(5)), misshapen("squared_speeds", (5,), "(6,)")),
        (([0.0, 1.0], -np.ones(6)), "the squared speed must be positive"),
        by=lambda given: TimedPath(WaypointSpline([0.0, 1.0], [[0.0], [1.0]]), *given),
    )


def test_rounded_corners_are_smooth_and_lines_straight() -> None:
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    times = [0.0, 1.0, 2.5, 4.0]
    path = BlendedLines(times, points, blend=0.5)
    for time in path.breakpoints[1:-1]:
        before, after = path.sample([time - 1e-7, time + 1e-7], 4)
        np.testing.assert_allclose(before, after, atol=1e-3)
    sharp = BlendedLines(times, points, blend=0.2)
    np.testing.assert_allclose(sharp.sample(0.5, 2), [[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], atol=1e-14)
    np.testing.assert_allclose(sharp.sample(4.0, 1)[0], points[-1], atol=1e-14)
    inside = path.sample(np.linspace(0.0, 4.0, 201), 0)[:, 0]
    assert (inside >= -1e-14).all() and (inside.sum(axis=1) <= 3.0 + 1e-14).all()
    refused(lambda: BlendedLines(times, points, blend=0.6), "at most 0.5, found 0.6")
