"""Targets that are followed with little delay, within all limits, whatever comes."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from random_points import HOME, Message, anything, follow, largest_usage, panda
from refusals import like, refused
from sweeps import THOROUGH, some

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.planning.streams.approach import Approach, Bounds, State
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig, Taken, Trouble
from hodyn_ros.planning.streams.stream_coordinates import StreamCoordinates
from hodyn_ros.planning.streams.tracked_target import TargetEstimator
from hodyn_ros.planning.streams.tracking_planner import STEP, TrackingPlanner
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline

pytestmark = pytest.mark.thorough


def require_limits_and_rest(robot: Robot, seed: int) -> int:
    """Follow a random stream; return how many messages were followed."""
    planner = TrackingPlanner(robot, HOME, 0.0)
    messages = sorted(anything(np.random.default_rng(seed)), key=lambda each: each.arrival)
    last = messages[-1].arrival + 0.05
    motion, taken = follow(planner, messages, last, 0.003)
    assert np.isfinite(motion).all()
    ends = planner.sample(np.arange(last, planner.ends + 0.01, 0.003), 5)
    usage, limit = largest_usage(robot, np.concatenate([motion, ends]))
    assert usage <= 1.0 + 1e-6, (seed, usage, limit)
    rest = planner.sample([planner.ends + 0.1], 5)[0, 1:]
    np.testing.assert_allclose(rest, 0.0, atol=1e-7)
    return sum(isinstance(each, Taken) and each.followed for each in taken)


@pytest.mark.parametrize("limited", [True, False])
def test_limits_hold_to_the_snap_whatever_comes(limited: bool) -> None:
    count = 8 if THOROUGH else 3
    assert sum(require_limits_and_rest(panda(limited), seed) for seed in range(count)) > 6 * count


@pytest.mark.skipif(not THOROUGH, reason="five minutes; make test-thorough runs it")
@pytest.mark.timeout(1800)
def test_limits_hold_in_a_thousand_streams() -> None:
    for seed in range(1000):
        require_limits_and_rest(panda(seed % 2 == 0), seed)


RUBBING = """
name: arm
bodies:
  - name: upper
    mass: 6
    com: [0, 0, 0.2]
    inertia: {about: com, ixx: 0.1, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.02}
joints:
  - {name: shoulder, type: revolute, parent: world, child: upper, axis: [0, 1, 0],
     limits: {lower: -3, upper: 3, velocity: 2.6, effort_rate: 2000, acceleration: 12, jerk: 400},
     drive: {motor_inertia: 0.9, stiffness: 9000, motor_friction: {viscous: 5, coulomb: 3.6}}}
"""


def test_friction_that_turns_over_within_a_limit_of_rates_leads_nowhere_else(tmp_path: Path) -> None:
    """Not to turn back keeps such a limit, too; the joint went on to its end stop, ten times as far."""
    (tmp_path / "arm.yaml").write_text(RUBBING)
    robot, times = Robot.load(tmp_path / "arm.yaml"), 0.02 * np.arange(1, 150)
    for rounding in some([0.0, 1e-12, -1e-12], 0.0):  # as that of another processor
        planner = TrackingPlanner(robot, [0.0], 0.0)
        farthest, followed = 0.0, 0
        for now in times:
            wanted = 0.3 * np.sin(4.0 * now) * min(now, 1.0) + rounding * np.sin(1e4 * now)
            followed += planner.take([now], [[wanted]], now + 0.001).followed
            farthest = max(farthest, abs(planner.sample([now], 0)[0, 0, 0]))
        stop = planner.sample(np.arange(times[-1], planner.ends, 0.005), 0)[:, 0]
        assert max(farthest, np.abs(stop).max()) < 0.3 and followed > 130
        assert planner.ends - times[-1] < 0.7


def test_an_arm_whose_efforts_change_slowly_follows_slowly(tmp_path: Path) -> None:
    """Whatever its jerk, all of its acceleration would change them too fast; with less it follows."""
    limits, rest = RUBBING.split("effort_rate: 2000", 1)
    text = limits + "effort: 60, effort_rate: 20" + rest[: rest.index(", jerk")] + "}}\n"
    (tmp_path / "arm.yaml").write_text(text)
    planner = TrackingPlanner(Robot.load(tmp_path / "arm.yaml"), [0.0], 0.0)
    off, followed = [], 0
    for now in 0.02 * np.arange(1, 200):
        wanted = 0.3 * np.sin(1.25 * now)
        followed += planner.take([now], [[wanted]], now).followed
        off.append(abs(planner.sample([now], 0)[0, 0, 0] - wanted))
    assert followed > 150 and max(off[100:]) < 0.1


# what it is made of


@pytest.mark.parametrize(
    ("distance", "expected"),
    [  # with 2 rad/s, 10 rad/s², 500 rad/s³: the limits are reached one behind the other
        (1e-3, (32.0 * 1e-3 / 500.0) ** (1.0 / 3.0)),
        (0.1, 0.02 + np.sqrt(0.02**2 + 4.0 * 0.1 / 10.0)),
        (3.0, 3.0 / 2.0 + 2.0 / 10.0 + 10.0 / 500.0),
    ],
)
def test_an_approach_takes_the_least_time_from_rest(distance: float, expected: float) -> None:
    """The closed forms of Biagiotti and Melchiorri, Trajectory Planning (Springer 2008), section 3.4."""
    one = np.ones(1)
    way = Approach(
        State(-distance * one, 0.0 * one, 0.0 * one), Bounds.symmetric(2.0 * one, 10.0 * one, 500.0 * one)
    )
    assert way.duration == pytest.approx(expected, rel=1e-9)


def states(seed: int, n: int) -> tuple[State, Array]:
    """Return states that bounds of velocity, acceleration and jerk (3, n) allow."""
    random = np.random.default_rng(seed)
    bounds = np.array([random.uniform(*r, n) for r in ((0.5, 3.0), (2.0, 20.0), (50.0, 2000.0))])
    velocity, acceleration, jerk = bounds
    begin = random.uniform(-1.0, 1.0, n) * np.minimum(acceleration, np.sqrt(jerk * velocity))
    speed = random.uniform(-1.0, 1.0, n) * np.maximum(velocity - 0.5 * begin**2 / jerk, 0.0)
    place = random.uniform(-1.0, 1.0, n) * 10.0 ** random.uniform(-4.0, 0.5, n)
    return State(place, speed, begin), bounds


def test_approaches_come_to_rest_at_zero_within_their_bounds_from_any_state() -> None:
    start, (velocity, acceleration, jerk) = states(1, 300)
    speed = start.velocity
    bounds = Bounds(-velocity, 0.7 * velocity + 0.3 * np.abs(speed), acceleration, jerk)
    way = Approach(start, bounds)
    times = np.linspace(0.0, way.duration, 2001)
    motion = way.at(times)
    np.testing.assert_allclose(motion[0], np.stack(start), rtol=1e-12)
    np.testing.assert_allclose(motion[-1, 0], 0.0, atol=1e-10)
    assert not motion[-1, 1:].any()
    assert (motion[:, 1] >= -velocity - 1e-9).all() and (np.abs(motion[:, 2]) <= acceleration + 1e-9).all()
    step = times[1]
    assert (np.abs(np.diff(motion[:, 2], axis=0)) <= jerk * step * (1.0 + 1e-9) + 1e-9).all()
    # Simpson's rule over two steps is exact but where the jerk changes
    simpson = step / 3.0 * (motion[:-2, 1] + 4.0 * motion[1:-1, 1] + motion[2:, 1])
    away = np.abs(motion[2:, 0] - motion[:-2, 0] - simpson)
    assert (away <= jerk * step**3).all()


def test_the_estimate_is_the_weighted_least_squares_fit_of_all_points() -> None:
    random = np.random.default_rng(4)
    noise, step, count = 1e-3, 0.02, 12
    points = 0.01 * random.normal(size=count).cumsum() * step
    estimator = TargetEstimator(noise, np.array([100.0]))
    for k in range(count):
        estimator.take(step * k, points[k : k + 1])
    # unknown states x_0 ... x_11; the jerk between two of them is white: rows of x_k+1 - F x_k, whitened
    forward = np.array([[1.0, step, step**2 / 2.0], [0.0, 1.0, step], [0.0, 0.0, 1.0]])
    places, weights = np.polynomial.legendre.leggauss(6)
    after = 0.5 * step * (1.0 + places)
    drift = np.stack([after**2 / 2.0, after, np.ones(6)])
    spread = 10.0 * (0.5 * step * weights * drift) @ drift.T  # rad²/s⁵ of white jerk
    white = np.linalg.inv(np.linalg.cholesky(spread))
    rows, right = [], []
    for k in range(count):
        row = np.zeros((1, 3 * count))
        row[0, 3 * k] = 1.0 / noise
        rows.append(row)
        right.append(points[k : k + 1] / noise)
        if k + 1 < count:
            row = np.zeros((3, 3 * count))
            row[:, 3 * k : 3 * k + 3], row[:, 3 * k + 3 : 3 * k + 6] = -white @ forward, white
            rows.append(row)
            right.append(np.zeros(3))
    prior = np.zeros((3, 3 * count))
    prior[:, :3] = np.diag([1.0 / noise, 1.0 / 0.1, 1.0 / 1.0])
    prior[0] = 0.0  # the first point says it
    solution = np.linalg.lstsq(
        np.concatenate([*rows, prior]), np.concatenate([*right, np.zeros(3)]), rcond=None
    )[0]
    np.testing.assert_allclose(estimator.state[:, 0], solution[-3:], rtol=1e-7)


# what is promised


def hand(times: Array) -> Array:
    """Return where an operator leads (N, 7): sines of up to 1.3 Hz that rise from rest."""
    t = np.asarray(times)[:, None]
    u = np.clip(t, 0.0, 1.0)
    waves = ((0.23, 0.15), (0.57, 0.06), (0.9, 0.025), (1.3, 0.012))
    phases = 1.3 * np.arange(7)
    return HOME + u**3 * (10.0 - 15.0 * u + 6.0 * u * u) * sum(
        size * np.sin(2.0 * np.pi * f * (t + phases)) for f, size in waves
    )


def test_noisy_points_at_50_hz_are_followed_within_60_ms_and_3_mrad() -> None:
    stamps = np.arange(0.0, 4.0, 0.02)
    points = hand(stamps) + 1e-3 * np.random.default_rng(0).normal(size=(200, 7))
    planner = TrackingPlanner(panda(), HOME, 0.0)
    messages = [Message(s + 0.002, np.array([s]), p[None]) for s, p in zip(stamps, points)]
    motion, taken = follow(planner, messages, 3.9, 0.005)
    assert all(isinstance(each, Taken) and each.followed and each.note is None for each in taken)
    times = 0.005 * np.arange(len(motion))
    late = times > 2.0
    off = {delay: motion[late, 0] - hand(times[late] - delay) for delay in np.arange(0.0, 0.1, 0.001)}
    delay = min(off, key=lambda each: float(np.square(off[each]).sum()))
    assert delay <= 0.06
    assert np.abs(off[delay]).max() < 3e-3 and np.sqrt(np.square(off[delay]).mean()) < 1e-3
    assert largest_usage(panda(), motion)[0] <= 1.0


@pytest.mark.parametrize("way", [np.array([0.3] * 6 + [-0.3]), np.array([0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0])])
def test_a_change_of_target_is_followed_nearly_as_fast_as_can_be(way: Array) -> None:
    def arrival(times: Array, positions: Array) -> float:
        share = ((positions - HOME)[:, way != 0.0] / way[way != 0.0]).min(axis=1)
        return float(times[np.argmax(share > 0.9)])

    fastest = time_optimal(WaypointSpline(np.array([0.0, 1.0]), np.stack([HOME, HOME + way])), panda())
    times = np.linspace(0.0, fastest.duration, 2001)
    least = arrival(times, fastest.law.sample(times, 0)[:, 0])
    for points in (1, 50):
        planner = TrackingPlanner(panda(), HOME, 0.0)
        messages = [
            Message(t + 0.001, t + 0.02 * np.arange(points), np.tile(HOME + way * (t > 0.3), (points, 1)))
            for t in 0.02 * np.arange(45)
        ]
        motion, taken = follow(planner, messages, 0.9, 0.001)
        assert all(isinstance(each, Taken) and each.followed for each in taken)
        took = arrival(0.001 * np.arange(len(motion)), motion[:, 0]) - 0.321
        assert took <= 1.1 * least, (took, least)


def test_chunks_that_disagree_a_little_stay_in_time() -> None:
    """Their seams are joined more gently where limits ask for it; slower, each would be late for the next."""
    random, planner = np.random.default_rng(0), TrackingPlanner(panda(limited=False), HOME, 0.0)
    for now in 0.1 * np.arange(12):
        times = now + 0.02 * np.arange(50)
        points = HOME + 0.2 * (np.sin(2.0 * times)[:, None]) + 0.003 * random.normal(size=7)
        taken = planner.take(times, points, now)
        assert taken.followed and taken.share == 1.0 and taken.delay < 0.1
    assert planner.delay < 1e-6


def test_streams_of_a_kilohertz_are_planned_for_no_more_often_than_that_can_change_anything() -> None:
    planner = TrackingPlanner(panda(), HOME, 0.0, StreamConfig(Mode.TRACK, noise=1e-4))
    stamps = np.arange(0.0, 0.4, 0.001)
    plans = 0
    for s, p in zip(stamps, hand(stamps + 1.0) - hand(np.ones(1)) + HOME):
        before = planner.sample([0.5], 0)
        assert planner.take([s], p[None], s + 5e-4).followed
        plans += bool((planner.sample([0.5], 0) != before).any())
    assert 0.9 * 0.4 / STEP < plans < 0.25 * len(stamps)  # more while the velocity is not known yet
    # the next one behind the step counts, and it ends there
    last = hand(np.array([1.399])) - hand(np.ones(1)) + HOME
    planner.take([0.409], last, 0.4095)
    np.testing.assert_allclose(planner.sample([planner.ends], 0)[0, 0], last[0], atol=3e-4)


def test_approaches_are_as_fast_as_those_of_ruckig() -> None:
    ruckig = pytest.importorskip("ruckig", reason="ruckig comes with `make bench`")
    start, bounds = states(7, 300)
    search, ratios = ruckig.Ruckig(1), []
    for *state, velocity, acceleration, jerk in np.vstack([*start, bounds]).T[:, :, None]:
        asked, found = ruckig.InputParameter(1), ruckig.Trajectory(1)
        asked.current_position, asked.current_velocity, asked.current_acceleration = state
        asked.target_position, asked.max_velocity = [0.0], velocity
        asked.max_acceleration, asked.max_jerk = acceleration, jerk
        assert search.calculate(asked, found) >= 0
        own = Approach(State(*state), Bounds.symmetric(velocity, acceleration, jerk))
        ratios.append(own.duration / found.duration)
    assert min(ratios) > 1.0 - 1e-6 and np.percentile(ratios, 95.0) < 1.0 + 1e-6 and max(ratios) < 1.5


def test_what_is_wrong_is_named_and_followed_nevertheless() -> None:
    planner = TrackingPlanner(panda(), HOME, 0.0)

    def say(stamp: float, place: Array, now: float) -> str:
        taken = planner.take([stamp], place[None], now)
        assert taken.followed
        return "" if taken.note is None else str(taken.note)

    assert say(0.0, HOME, 0.0) == ""
    high = HOME + np.array([0.0, 0.0, 0.0, 2.1, 0.0, 0.0, 0.0])
    near = high - np.array([0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0])
    for k in (1, 2):
        refused(partial(say, 0.01 * k, high, 0.01 * k), "wanted 1.93 rad ... 3rd message", PointsError)
    assert "wants joint 'panda_joint4' at 0.1, and its limits are" in say(0.03, high, 0.03)
    assert "its stamps advance 0.04 s in 2 s; points count as of their arrival" in say(0.04, near, 2.0)
    refused(lambda: say(0.01, near, 2.02), like(PointsError, trouble=Trouble.TIMES))
    last = planner.sample([planner.ends], 5)[0]  # what nothing follows ends at rest at its last point
    np.testing.assert_allclose(last[0], near, atol=1e-9)
    np.testing.assert_allclose(last[1:4], 0.0, atol=1e-6)


def test_a_platform_is_followed() -> None:
    robot = Robot.load(share.find("config", "planar_3rrr.yaml"))
    names = StreamCoordinates.of(robot).names
    planner = TrackingPlanner(robot, np.zeros(len(names)), 0.0)
    for k in range(20):
        where = np.zeros(len(names))
        where[names.index("x")] = 0.03 * min(k / 10.0, 1.0)
        assert planner.take([0.02 * k], where[None], 0.02 * k + 0.001).followed
    last = planner.sample([planner.ends + 0.1], 4)[0]
    np.testing.assert_allclose(last[0], where, atol=1e-9)
