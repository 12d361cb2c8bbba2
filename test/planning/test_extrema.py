"""Peaks of motions made of polynomials, against closed forms and dense samples; moves with limits of jerk."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import BSpline
from sweeps import THOROUGH, some

from hodyn_ros import InputError, Robot, share
from hodyn_ros.lie.jets import Array
from hodyn_ros.planning.check import check
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_peaks import Extrema, find_extrema, has_extrema
from hodyn_ros.planning.peaks import RoughError, Samples, find_peaks
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import (
    BlendedLines,
    Cosines,
    EasedStart,
    PiecewisePolynomial,
    ScaledTime,
    WaypointSpline,
)
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.combined import Rearranged, SideBySide
from hodyn_ros.trajectory.timed import DEGREE, TimedPath, lowest_value


def extrema_of(motion: Trajectory, order: int = 3) -> Extrema:
    assert motion.pieces is not None and has_extrema(motion.pieces, order)
    return find_extrema(motion.pieces, order, motion.duration)


def waypoints(rng: np.random.Generator) -> tuple[Array, Array]:
    count = int(rng.integers(2, 7))
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.2, 1.5, count - 1))])
    return times, rng.normal(size=(count, 2))


def motion_of(kind: str, rng: np.random.Generator) -> Trajectory:
    times, points = waypoints(rng)
    spline = WaypointSpline(times, points)
    knots = np.concatenate([[0.0], np.sort(rng.uniform(0.05, 0.95, 5)), [1.0]]) * times[-1]
    if kind == "spline":
        return spline
    if kind == "cubic":
        return PiecewisePolynomial(times, points, rng.normal(size=points.shape))
    if kind == "blended":
        return EasedStart(BlendedLines(times, points), 0.2, order=4)
    if kind == "timed":
        return TimedPath(spline, knots, rng.uniform(0.2, 3.0, len(knots) + 4))
    if kind == "scaled":
        return ScaledTime(
            Rearranged(TimedPath(spline, knots, rng.uniform(0.2, 3.0, 11)), [2, 0], [0.0] * 3), 0.7
        )
    return SideBySide([spline, WaypointSpline([0.0, 0.5], rng.normal(size=(2, 1)), order=2)])


@pytest.mark.parametrize("kind", ["spline", "cubic", "blended", "timed", "scaled", "side by side"])
@pytest.mark.parametrize("seed", some(range(4), 0, 1))
def test_extrema_against_dense_samples(kind: str, seed: int) -> None:
    motion = motion_of(kind, np.random.default_rng(seed))
    found = extrema_of(motion, 2)
    times = np.linspace(0.0, motion.duration, 5001)
    dense = motion.sample(times, 2)
    curved = np.abs(np.diff(dense, 2, axis=0)).max(axis=0)  # what is missed between samples is less
    size = np.abs(dense).max(axis=0) + 1e-12
    for sign, values, instants in (
        (1.0, found.highest, found.highest_times),
        (-1.0, found.lowest, found.lowest_times),
    ):
        most = (sign * dense).max(axis=0)
        assert (sign * values >= most - 1e-11 * size).all()
        if kind != "cubic":  # whose acceleration jumps
            assert (sign * values <= most + curved + 1e-9 * size).all()
            n = motion.n_joints
            again = [motion.sample(instants[k], 2)[np.arange(n), k, np.arange(n)] for k in range(3)]
            np.testing.assert_allclose(again, values, rtol=0, atol=1e-8 * size.max())


def test_extrema_of_closed_forms() -> None:
    # from rest to rest in one step: q' has its peak 315/128 in the middle
    found = extrema_of(WaypointSpline([0.0, 1.0], [[0.0], [1.0]]))
    assert found.highest[1, 0] == pytest.approx(315.0 / 128.0, rel=1e-14)
    assert found.highest_times[1, 0] == pytest.approx(0.5, abs=1e-7)
    assert found.lowest[1, 0] == 0.0 and found.highest[0, 0] == 1.0
    # a jump of the acceleration: 6 before it, and -6 after it
    jumps = PiecewisePolynomial([0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]], [[0.0], [0.0], [0.0]])
    found = extrema_of(jumps, 2)
    assert [found.highest[2, 0], found.lowest[2, 0]] == pytest.approx([6.0, -6.0], rel=1e-12)
    assert Cosines([1.0], [1.0]).pieces is None


def test_an_end_at_rest_is_so_however_near_one_looks() -> None:
    spline = WaypointSpline([0.0, 1.0, 2.0], [[0.3], [1.7], [-0.6]])
    assert not spline.sample([0.0, 2.0], 4)[:, 1:].any()
    for end, sign in ((0.0, 1.0), (2.0, -1.0)):
        far, near = (spline.sample(end + sign * 2.0**-k, 1)[1, 0] for k in (24, 26))
        assert near / far == pytest.approx(2.0**-8, rel=1e-5)  # the velocity grows with the fourth power


def test_a_squared_speed_that_dips_below_zero_is_said() -> None:
    path = WaypointSpline([0.0, 1.0], [[0.0], [1.0]])
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(100):
        knots = np.sort(np.append(rng.random(4), [0.0, 1.0]))
        coefficients = rng.normal(size=10) + 0.8
        try:
            TimedPath(path, knots, coefficients)
            seen.add("kept")
            spline = BSpline(np.pad(knots, DEGREE, mode="edge"), coefficients, DEGREE)
            lowest = lowest_value(spline)[0]
            assert spline(np.linspace(0.0, 1.0, 2001)).min() >= lowest * (1.0 - 1e-14) > 0.0
        except InputError as error:
            seen.add("refused")
            assert "the squared speed must be positive" in str(error)
    assert seen == {"kept", "refused"}


def test_noise_keeps_no_search_from_its_end() -> None:
    """Noise of rounding, and that of an integral over panels that are short, are no reason to halve them."""
    rng = np.random.default_rng(0)

    def function(times: Array) -> Samples:
        noise = rng.normal(size=(2, len(times)))
        flat = np.clip(3.0 * np.sin(5.0 * times), -1.0, 1.0) + 1e-8 * noise[0]
        return Samples(flat[:, None], (times + 1e-10 * noise[1])[:, None] * np.nan)

    def rising(times: Array) -> Samples:
        noise = rng.normal(size=(2, len(times)))
        values = np.cos(times) + 3e-8 * noise[0]
        return Samples(values[:, None], (np.sin(times) + 1e-9 * noise[1])[:, None])

    for each in (function, rising):
        found = find_peaks(each, np.linspace(0.0, 6.0, 7))
        assert found.sizes[0] == pytest.approx(1.0, abs=1e-6)
        assert found.errors[0] < 1e-3 and found.evaluations < 60_000
    with pytest.raises(RoughError):
        find_peaks(lambda times: Samples(0.1 * rng.normal(size=(len(times), 1))), np.array([0.0, 1.0]))


def jerk_limited(robot: Robot, joints: int) -> Robot:
    limits = replace(
        robot.limits, acceleration=np.full(joints, 12.0), jerk=np.full(joints, 150.0), joint_names=None
    )
    return Robot(robot.tree, limits)


@pytest.fixture(scope="module")
def panda() -> Robot:
    return jerk_limited(Robot.load(share.find("config", "panda.yaml")), 7)


@pytest.mark.parametrize("seed", range(1000 if THOROUGH else 6))
def test_no_random_move_with_limits_of_jerk_fails(panda: Robot, seed: int) -> None:
    """Against the least time of a straight move with as much of velocity, acceleration and jerk."""
    rng = np.random.default_rng(seed)
    limits = panda.limits
    middle = 0.5 * (limits.position_upper + limits.position_lower)
    points = middle + 0.4 * (limits.position_upper - limits.position_lower) * rng.uniform(-1.0, 1.0, (2, 7))
    found = time_optimal(WaypointSpline([0.0, 1.0], points), panda)
    away = np.abs(points[1] - points[0])
    fastest = [float((bound / away).min()) for bound in (limits.velocity, limits.acceleration, limits.jerk)]
    demand = LimitSet(panda)
    report = check(panda, found.motion)
    assert not report.violations and report.tightest.usage > 0.9999
    assert demand.order == 3
    assert found.duration > least_time(*fastest) * (1.0 - 1e-9)
    torques = any(
        binding.usage > 0.99 and binding.column.order > 1 and "torque" in binding.column.quantity
        for binding in found.bindings
    )
    assert torques or found.duration < 1.03 * least_time(*fastest)


def least_time(velocity: float, acceleration: float, jerk: float) -> float:
    """Return the least time of a move over one, from rest to rest: seven stretches of constant jerk."""
    if acceleration**2 >= velocity * jerk:  # the velocity is reached before the acceleration
        ramp, reached = 2.0 * np.sqrt(velocity / jerk), velocity
    else:
        ramp, reached = velocity / acceleration + acceleration / jerk, velocity
    if reached * ramp <= 1.0:
        return float(2.0 * ramp + (1.0 - reached * ramp) / velocity)
    if 2.0 * acceleration**3 / jerk**2 >= 1.0:  # jerk alone
        return float((32.0 / jerk) ** (1.0 / 3.0))
    # v (v / a + a / j) = 1
    lower = acceleration / jerk
    v = 0.5 * acceleration * (-lower + np.sqrt(lower**2 + 4.0 / acceleration))
    return float(2.0 * (v / acceleration + lower))
