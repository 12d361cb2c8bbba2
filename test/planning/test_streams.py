"""Streams of points: one motion, continuous to its snap, within all limits, whatever comes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some
from random_points import HOME, Message, follow, largest_usage, panda
from refusals import assert_refused, like, refused
from scipy.interpolate import BSpline

from hodyn_ros import RangeError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.streams.span_limits import SpanLimits
from hodyn_ros.planning.streams.stream_clock import ClockState, readings
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig, Trouble
from hodyn_ros.planning.streams.stream_planner import StreamPlanner, Taken
from hodyn_ros.planning.streams.uniform_spline import DEGREE, UniformSpline, evaluate, interpolating_filter
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty

STEP = 0.004  # [s] from sample to sample of what is followed


def wave(times: Array, pace: float = 1.5, width: float = 0.3) -> Array:
    """Return targets (N, 7) of a wave that rises from rest."""
    t = np.clip(times, 0.0, None)[:, None]
    u = np.clip(t, 0.0, 1.0)
    rise = u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
    return HOME + width * rise * np.sin(pace * t) * np.linspace(1.0, 0.3, 7)


def chunks(
    seed: int, *, count: int, points: int, disagree: float, late: float = 0.2, lost: float = 0.05
) -> list[Message]:
    """Return chunks of points 20 ms apart, ten a second, that disagree by `disagree` [rad] at their seams."""
    random = np.random.default_rng(seed)
    result = []
    for k in range(count):
        times = 0.1 * k + 0.02 * np.arange(points)
        arrival = 0.1 * k + (random.uniform(0.0, 0.15) if random.random() < late else 0.002)
        offset = disagree * random.uniform(-0.5, 0.5, 7)
        if random.random() >= lost:
            result.append(Message(arrival, times, wave(times) + offset))
    return result


def test_derivatives_are_those_of_scipy_and_continuous_to_the_snap() -> None:
    random = np.random.default_rng(1)
    controls, spacing = random.normal(size=(12, 3)), 0.05
    spline = BSpline(spacing * np.arange(-DEGREE, 13), controls, DEGREE)
    motion = UniformSpline(controls, spacing)
    times = np.linspace(0.0, motion.duration, 50)[1:-1]
    found = motion.sample(times, 6)
    for order in range(6):
        expected = spline(times, nu=order)
        np.testing.assert_allclose(found[:, order], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert not found[:, 6].any()
    spans = np.arange(6)
    ends = evaluate(controls, spans, np.ones(6), spacing, 4)
    starts = evaluate(controls, spans + 1, np.zeros(6), spacing, 4)
    for order in range(5):
        scale = np.abs(starts[:, order]).max()
        np.testing.assert_allclose(ends[:, order], starts[:, order], rtol=0.0, atol=1e-13 * scale)


@pytest.mark.parametrize("mode", list(Mode))
def test_chunks_that_disagree_late_and_lost_are_followed_within_limits(mode: Mode) -> None:
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(mode, spacing=0.05))
    messages = chunks(3, count=25, points=50, disagree=0.01)
    motion, said = follow(planner, messages, 5.0, STEP)
    taken = [each for each in said if isinstance(each, Taken)]
    assert np.mean([each.followed for each in taken]) > 0.9
    assert largest_usage(panda(), motion)[0] <= 1.0
    assert planner.ends < 5.0
    assert not motion[-1, 1:].any()  # the stream has stopped, and so has the motion, at its last point
    np.testing.assert_allclose(motion[-1, 0], messages[-1].positions[-1], atol=1e-12)
    if mode is Mode.LATEST:
        np.testing.assert_allclose([each.delay for each in taken], 0.5, atol=0.01)
    else:
        assert np.median([each.delay for each in taken]) < 0.4


def test_what_is_followed_keeps_limits_also_between_samples() -> None:
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(spacing=0.05))
    planner.take(0.02 * np.arange(50), wave(0.02 * np.arange(50), 3.0), 0.0)
    planner.take(0.3 + 0.02 * np.arange(50), wave(0.3 + 0.02 * np.arange(50), 3.0) + 0.01, 0.3)
    # six samples a span give its control points back
    places = (np.arange(6) + 0.5) / 6
    spans = np.arange(int(planner.ends / 0.05) + 3)
    samples = planner.sample((0.05 * (spans[:, None] + places)).ravel(), 0)[:, 0].reshape(-1, 6, 7)
    to_samples = evaluate(np.eye(6), np.zeros(6, dtype=int), places, 0.05, 0)[:, 0]
    controls = np.linalg.solve(to_samples, samples)
    ends = np.repeat(controls[-1:, -1], 6, axis=0)
    np.testing.assert_allclose(controls[-1], ends, atol=1e-10)
    motion = UniformSpline(np.concatenate([controls[:, 0], ends]), 0.05, panda().joint_names)
    assert not check(panda(), motion).violations


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=some.integers(0, 10_000),
    mode=some.sampled_from(Mode),
    points=some.sampled_from([1, 2, 10, 50]),
    disagree=some.sampled_from([0.0, 0.01, 0.2]),
    pace=some.sampled_from([1.0, 4.0, 12.0]),
    spacing=some.sampled_from([0.02, 0.04, 0.1]),
)
def test_limits_hold_whatever_comes(
    seed: int, mode: Mode, points: int, disagree: float, pace: float, spacing: float
) -> None:
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(mode, spacing=spacing, delay=1.5))
    random = np.random.default_rng(seed)
    messages, now = [], 0.0
    while now < 1.2:
        now += random.uniform(0.01, 0.2)
        times = now + random.uniform(-0.3, 0.5) + np.cumsum(random.uniform(0.001, 0.1, points))
        positions = wave(times, pace) + random.uniform(-disagree, disagree, 7)
        messages.append(Message(now, times, positions))
    motion, said = follow(planner, messages, 2.0, STEP)
    refused = {each.trouble for each in said if isinstance(each, PointsError)}
    assert refused <= {Trouble.LATE, Trouble.JUMP}
    assert largest_usage(panda(), motion)[0] <= 1.0
    # the stop, from wherever the motion was
    np.testing.assert_allclose(planner.sample([planner.ends + 0.1], 5)[0, 1:], 0.0, atol=1e-9)
    stop = planner.sample(np.arange(1.2, max(planner.ends, 1.3), STEP), 5)
    assert largest_usage(panda(), stop)[0] <= 1.0


def test_an_approximating_motion_stays_in_the_hull_of_its_points() -> None:
    planner = StreamPlanner(panda(), HOME, 0.0)
    messages = [Message(0.1 * k, np.array([0.1 * k]), wave(np.array([0.1 * k]), 2.0)) for k in range(30)]
    motion, taken = follow(planner, messages, 5.0, STEP)
    points = np.concatenate([HOME[None], *(each.positions for each in messages)])
    assert (motion[:, 0] <= points.max(axis=0) + 1e-12).all()
    assert (motion[:, 0] >= points.min(axis=0) - 1e-12).all()
    assert all(each.followed for each in taken)


def test_an_interpolating_motion_passes_through_its_points() -> None:
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(Mode.INTERPOLATE, delay=1.0, spacing=0.05))
    times = 0.05 * np.arange(60)
    taken = planner.take(times, wave(times, 1.0), 0.0)
    assert taken.followed and taken.rate == 1.0
    motion = planner.sample(times + taken.delay, 0)[:, 0]
    inside = slice(30, 48)  # behind the blend from rest, before the stop
    np.testing.assert_allclose(motion[inside], wave(times, 1.0)[inside], atol=1e-9)
    smooth = StreamPlanner(panda(), HOME, 0.0, StreamConfig(spacing=0.05))
    delay = smooth.take(times, wave(times, 1.0), 0.0).delay
    away = np.abs(smooth.sample(times + delay, 0)[:, 0] - wave(times, 1.0))[inside].max()
    assert away > 1e-4  # which an approximating one does not
    assert interpolating_filter(6).sum() == pytest.approx(1.0, abs=1e-14)


def test_points_that_are_too_fast_slow_the_clock_down() -> None:
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(delay=5.0))
    times = 0.02 * np.arange(100)
    taken = planner.take(times, wave(times, 6.0, 0.5), 0.0)
    assert taken.followed and taken.rate < 0.8 and taken.usage <= 1.0
    motion = planner.sample(np.arange(0.0, planner.ends, STEP), 5)
    assert largest_usage(panda(), motion)[0] <= 1.0
    np.testing.assert_allclose(motion[-1, 0], wave(times, 6.0, 0.5)[-1], atol=1e-6)


@pytest.mark.parametrize(
    ("times", "positions", "trouble", "words"),
    [
        ([0.5], [[*HOME[:6], np.nan]], Trouble.NUMBERS, "point 0 holds nan for joint 'panda_joint7'"),
        ([0.5], [HOME[:6]], Trouble.NUMBERS, "a position of each of the 7 joints"),
        ([np.inf], [HOME], Trouble.NUMBERS, "a time is not finite"),
        ([0.5, 0.5], [HOME, HOME], Trouble.TIMES, "point 1 is not after the one before it"),
        ([0.5], [[3.0, *HOME[1:]]], Trouble.LIMITS, "wants joint 'panda_joint1' at 3, and its limits"),
        ([0.5], [HOME + 0.7], Trouble.JUMP, "joint 'panda_joint7' is wanted 0.666"),
        ([30.0], [HOME], Trouble.TIMES, "let both run by the same clock"),
        ([-3.0], [HOME], Trouble.LATE, "send points further ahead"),
    ],
)
def test_bad_points_are_named_and_change_nothing(
    times: list[float], positions: list[list[float]], trouble: Trouble, words: str
) -> None:
    planner = StreamPlanner(panda(), HOME, 0.0)
    planner.take(0.02 * np.arange(50), wave(0.02 * np.arange(50)) * 1.0, 0.0)
    later = np.arange(0.4, 2.0, 0.1)
    before = planner.sample(later, 5)
    caught = refused(lambda: planner.take(times, positions, 0.4), words, PointsError)
    assert caught.trouble is trouble
    np.testing.assert_array_equal(planner.sample(later, 5), before)


def test_numbers_that_overflow_are_never_within_limits() -> None:
    limits = SpanLimits(panda(), 0.04)
    controls = np.tile(HOME, (20, 1))
    assert limits.usage(controls)[0] < 1.0
    for bad in (np.nan, np.inf, 1e308):
        controls[10, 3] = bad
        with np.errstate(over="ignore", invalid="ignore"):
            assert limits.usage(controls)[0] > 1.0


@pytest.mark.parametrize(("name", "width"), [("planar_3rrr", 0.1), ("palletiser", 0.3)])
def test_platforms_and_robots_with_loops_keep_the_limits_of_their_drives(name: str, width: float) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    drives = len(robot.driven_joints)
    limits = replace(
        JointLimits.unlimited(drives), velocity=np.full(drives, 0.5), effort_rate=np.full(drives, 1e6)
    )
    robot = Robot(robot.tree, limits, robot.drive_train, closure=robot.closure)
    n = len(robot.coordinates)
    home = np.zeros(n) if robot.moves_base else robot.home[0]
    planner = StreamPlanner(robot, home, 0.0, StreamConfig(delay=2.0))
    times = 0.05 * np.arange(12)
    for k in range(3):
        turns = np.sin(3.0 * (times + 0.2 * k))[:, None] ** 2 * np.linspace(1.0, 0.5, n)
        taken = planner.take(times + 0.2 * k, home + width * turns, 0.2 * k)
        assert taken.followed
    assert taken.share < 1.0  # the drives could not be that fast
    wanted = LimitSet(robot)
    motion = planner.sample(np.arange(0.5, planner.ends + 0.1, 0.01), wanted.order)
    used = wanted.usage(np.abs(wanted.relative(planner.coordinates.sample(motion)).values))
    assert 0.5 < used.max() <= 1.0
    refused(lambda: planner.take([1.0], home[None] + 3.0, 0.6), like(PointsError, trouble=Trouble.JUMP))


@pytest.mark.thorough
def test_chunks_that_disagree_are_all_followed() -> None:
    for name, mode in [("panda", each) for each in Mode] + [("palletiser", Mode.INTERPOLATE)]:
        robot = panda() if name == "panda" else Robot.load(share.find("config", f"{name}.yaml"))
        home = HOME if name == "panda" else robot.home[0]
        planner = StreamPlanner(robot, home, 0.0, StreamConfig(mode))
        times = 0.02 * np.arange(50)
        for k in range(30):
            swing = 0.1 * np.sin(1.5 * (times + 0.1 * k))[:, None] * np.linspace(1.0, 0.3, len(home))
            assert planner.take(times + 0.1 * k, home + swing, 0.1 * k).followed


def test_a_platform_is_not_led_where_its_loops_cannot_close() -> None:
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    planner = StreamPlanner(robot, np.zeros(2), 0.0, StreamConfig(jump=10.0, delay=2.0))
    taken = planner.take([1.0], [[3.0, 0.0]], 0.0)
    assert not taken.followed and "reach of the loops" in taken.limit
    assert not planner.sample([0.5], 0).any()


def test_an_uncertain_stiffness_bends_torques_gently() -> None:
    hull = []
    for config in (StreamConfig(), StreamConfig(stiffness_error=0.6), StreamConfig(payload_error=1.0)):
        planner = StreamPlanner(panda(), HOME, 0.0, config)
        times = 0.02 * np.arange(40)
        taken = planner.take(times, wave(times, pace=3.0), 0.0)
        assert taken.followed
        motion = planner.sample(np.arange(0.0, planner.ends, 0.005), 4)
        hull.append(np.abs(panda().inverse_dynamics(np.ascontiguousarray(motion))[:, 2]).max(axis=0))
    bends = Uncertainty(0.6).torque_accelerations(panda(), HOME)
    assert (hull[0] > bends).any() and (hull[1] <= bends).all()
    assert (hull[2] <= Uncertainty(0.0, 1.0).torque_accelerations(panda(), HOME)).all()


def test_robots_and_settings_that_cannot_be_are_refused() -> None:
    flying = Robot.load(share.find("config", "aerial_manipulator.yaml"))
    assert_refused(
        (lambda: StreamPlanner(panda(), HOME + np.array([4.0, 0, 0, 0, 0, 0, 0]), 0.0),
         "cannot stand where the stream is to begin: position of"),
        (lambda: StreamPlanner(panda(), HOME[:6], 0.0), "the position must hold 7 finite numbers"),
        (lambda: StreamConfig(spacing=0.0), like(RangeError, name="spacing")),
        (lambda: StreamPlanner(flying, np.zeros(flying.n_joints), 0.0),
         "streams move the joints of a robot on a fixed base"),
    )  # fmt: skip


@given(
    rate=some.floats(0.0, 1.5),
    slope=some.floats(-3.0, 3.0),
    way=some.floats(0.0, 3.0),
    wish=some.floats(0.1, 1.2),
)
@settings(max_examples=50, deadline=None, derandomize=True)
@example(rate=0.004, slope=-2.8, way=0.0, wish=1.0)
@example(rate=1e-9, slope=3.0, way=0.005, wish=1.0)
@example(rate=0.5, slope=0.0, way=0.05000000000000001, wish=1.0)
def test_the_clock_never_runs_back_and_stands_at_the_end(
    rate: float, slope: float, way: float, wish: float
) -> None:
    found = readings(ClockState(5.0, rate, slope), 5.0 + way, wish, 0.2, 0.2, 0.01)
    assert len(found) < 4000 and (np.diff(np.append(5.0, found)) >= 0.0).all()
    assert not len(found) or found[-1] == 5.0 + way


def test_a_plan_of_too_many_points_is_not_followed_and_the_last_one_goes_on_to_rest() -> None:
    """Ten seconds in steps of a millisecond: finding such a plan would take too long."""
    planner = StreamPlanner(panda(), HOME, 0.0, StreamConfig(spacing=0.001, blend=0.3))
    near = planner.take([0.5], HOME[None] + 0.01, 0.0)
    assert near.followed
    before, ends = planner.sample(np.linspace(0.0, planner.ends, 40), 4), planner.ends
    far = planner.take([10.0], HOME[None] + 0.02, 0.0)
    assert not far.followed and far.limit == "1.5 s of a plan" and far.usage > 1.0
    assert planner.ends == ends
    np.testing.assert_array_equal(planner.sample(np.linspace(0.0, ends, 40), 4), before)
    assert not before[-1, 1:].any()
