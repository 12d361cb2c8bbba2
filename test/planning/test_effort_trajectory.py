"""From the waypoints of a planner to a dense trajectory with efforts."""

from functools import partial

import numpy as np
import pytest
from linkages import robot_of, with_drives
from oracles.mechanisms import four_bar
from refusals import assert_refused, refused
from scipy.interpolate import CubicHermiteSpline

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.planning.check import check
from hodyn_ros.planning.effort_trajectory import EffortFilter
from hodyn_ros.trajectory.splines.densify import Waypoints, densify
from hodyn_ros.trajectory.splines.start import PresentState, start_from

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MOVE = np.array([0.6, 0.3, -0.4, 0.5, 0.3, -0.4, 0.5])
NAMES = tuple(f"panda_joint{i}" for i in range(1, 8))


def planned(step: float = 0.1, end: float = 1.23, speed: float = 1.0) -> Waypoints:
    """Full acceleration, then full braking, in even steps and a rest: what a time-optimal planner sends."""
    times = np.append(np.arange(0.0, end, step), end)
    half, peak = 0.5 * end, 4.0 / end**2
    early = times < half
    path = np.where(early, 0.5 * peak * times**2, 1.0 - 0.5 * peak * (end - times) ** 2)
    pace = np.where(early, peak * times, peak * (end - times))
    gain = np.where(early, peak, -peak)
    return Waypoints(
        times / speed,
        HOME + path[:, None] * MOVE,
        pace[:, None] * MOVE * speed,
        gain[:, None] * MOVE * speed**2,
    )


def test_the_motion_passes_what_is_given_at_its_own_instants() -> None:
    waypoints = planned()
    dense = densify(waypoints, 0.01)
    assert dense.left_out == 0
    steps = np.diff(dense.times)
    assert (steps > 0.0).all() and steps.max() <= 0.01 + 1e-12 and steps.min() >= 0.005
    places = np.searchsorted(dense.times, waypoints.times)
    np.testing.assert_array_equal(dense.times[places], waypoints.times)
    np.testing.assert_array_equal(dense.leads_to[places], np.arange(len(waypoints.times)))
    np.testing.assert_array_equal(dense.leads_to[places[:-1] + 1], np.arange(1, len(waypoints.times)))
    given = np.stack([np.asarray(field) for field in waypoints[1:]], axis=1)
    np.testing.assert_allclose(dense.motion.sample(waypoints.times, 2), given, rtol=0.0, atol=1e-9)
    # continuous up to snap where the waypoints' own acceleration jumps
    assert dense.motion.smoothness >= 4


def test_an_end_at_rest_has_no_jump_of_the_torque_when_eased(panda: Robot) -> None:
    waypoints = planned()
    plain, eased = densify(waypoints, 0.01), densify(waypoints, 0.01, ease=0.1)
    ends = waypoints.times[[0, -1]]
    np.testing.assert_allclose(
        plain.motion.sample(ends, 2)[:, 2], np.asarray(waypoints.accelerations)[[0, -1]], atol=1e-9
    )
    still = eased.motion.sample(ends, 4)
    np.testing.assert_allclose(still[:, 0], waypoints.positions[[0, -1]], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(still[:, 1:4], 0.0, atol=1e-7)
    # the last step is 0.03 s: its first point would leave no room to come to rest
    assert eased.left_out == 1
    np.testing.assert_array_equal(eased.times, plain.times)
    assert 1e-4 < eased.departure.distance < 5e-3
    planned_most = np.abs(np.asarray(waypoints.accelerations)).max()
    assert np.abs(eased.motion.sample(eased.times, 2)[:, 2]).max() < 2.5 * planned_most
    standing = panda.inverse_dynamics(np.stack([HOME, 0.0 * HOME, 0.0 * HOME]))[0]
    effort = EffortFilter(panda, "motor", 0.01, ease=0.1)(waypoints).efforts
    np.testing.assert_allclose(effort[0], standing, rtol=0.0, atol=1e-6)


def test_a_motion_that_ends_in_motion_keeps_its_acceleration() -> None:
    waypoints = planned()
    cut = Waypoints(*(np.asarray(field)[:8] for field in waypoints))
    dense = densify(cut, 0.01, ease=0.1)
    assert dense.left_out == 0 and cut.velocities is not None and cut.accelerations is not None
    last = dense.motion.sample(cut.times[-1], 2)
    np.testing.assert_allclose(last[1:], [cut.velocities[-1], cut.accelerations[-1]], rtol=0.0, atol=1e-9)


def test_the_departure_is_the_one_from_the_controllers_own_interpolation() -> None:
    full = planned()
    waypoints = Waypoints(full.times, full.positions, full.velocities)
    dense = densify(waypoints, 0.01)
    cubic = CubicHermiteSpline(full.times, full.positions, full.velocities)  # what it does with velocities
    away = np.abs(dense.motion.sample(dense.times, 0)[:, 0] - cubic(dense.times))
    row, joint = np.unravel_index(np.argmax(away), away.shape)
    assert dense.departure.distance == pytest.approx(away.max(), abs=1e-12)
    assert dense.departure.joint == int(joint) and dense.departure.time == dense.times[row]
    # positions alone are joined by straight lines: the way is the same, the time is not
    line = densify(Waypoints(np.array([0.0, 1.0]), np.stack([HOME, HOME + MOVE])), 0.01)
    assert line.departure.joint == 0 and 0.05 < line.departure.distance / 0.6 < 0.25


@pytest.mark.parametrize("side", ["link", "motor"])
def test_efforts_are_those_of_the_published_recursion(panda: Robot, side: str) -> None:
    result = EffortFilter(panda, "motor" if side == "motor" else "link", 0.02)(planned())
    motion = result.dense.motion.sample(result.dense.times, 4)
    torques = panda.inverse_dynamics(motion, formulation="spatial")
    stiffness, inertia = panda.drive_train.stiffness, panda.drive_train.motor_inertia
    expected = torques[:, 0]
    if side == "motor":
        expected = expected + inertia * (motion[:, 2] + torques[:, 2] / stiffness)
    np.testing.assert_allclose(result.efforts, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(result.motion, motion[:, :3], rtol=0.0, atol=1e-12)


def test_what_a_straight_line_between_two_instants_misses(panda: Robot) -> None:
    coarse = EffortFilter(panda, "link", 0.02)(planned())
    fine = EffortFilter(panda, "link", 0.0005)(planned())
    lines = np.stack(
        [np.interp(fine.dense.times, coarse.dense.times, effort) for effort in coarse.efforts.T], axis=1
    )
    missed = np.abs(lines - fine.efforts).max(axis=0)
    # the middle is where a parabola is farthest from its chord
    np.testing.assert_allclose(coarse.between, missed, rtol=0.1)
    assert (fine.between < 2e-3 * coarse.between).all()


def test_limits_are_reported_with_joint_and_time(panda: Robot) -> None:
    assert EffortFilter(panda)(planned(speed=0.3)).violations == ()
    worst = EffortFilter(panda)(planned(speed=4.0)).violations[0]
    assert worst.violated and worst.column.joint in NAMES
    assert 0.0 <= worst.time <= 1.23 / 4.0 and abs(worst.value) > worst.column.upper
    bare = Robot(panda.model)  # no limits, no drives
    assert EffortFilter(bare)(planned(speed=4.0)).violations == ()


def test_of_a_wild_motion_no_peaks_are_sought(panda: Robot) -> None:
    """A spline through points at uneven instants swings so far that its torques are noise in the search."""
    rng = np.random.default_rng(0)
    times = np.append(0.0, np.cumsum(10.0 ** rng.uniform(-2.6, 0.3, 28)))
    wild = Waypoints(times, HOME + rng.uniform(-0.3, 0.3, (29, 7)))
    assert EffortFilter(panda)(wild).violations[0].usage > 1e3
    motion = densify(wild, 0.01, 0.1).motion
    assert check(panda, motion, enough=1e3).evaluations < 10_000


def test_a_late_first_point_is_led_to_from_the_present_state() -> None:
    late = Waypoints(np.array([0.5, 1.0]), np.stack([HOME + 0.5 * MOVE, HOME + MOVE]), np.zeros((2, 7)))
    present = PresentState(HOME, np.full(7, 0.001))  # the noise of a robot at rest
    started = start_from(late, present, NAMES, 0.01)
    np.testing.assert_array_equal(started.times, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(started.positions[0], HOME)
    np.testing.assert_array_equal(np.asarray(started.velocities)[0], 0.0)
    moving = PresentState(HOME, np.full(7, 0.3))
    np.testing.assert_array_equal(np.asarray(start_from(late, moving, NAMES, 0.01).velocities)[0], 0.3)
    unknown = PresentState(np.where(np.arange(7) == 3, np.nan, HOME), np.zeros(7))
    assert_refused(
        (lambda: start_from(Waypoints(late.times, late.positions), moving, NAMES, 0.01),
         "moves at 0.3 rad/s ... has no velocities"),
        (lambda: start_from(late, unknown, NAMES, 0.01),
         "where joint 'panda_joint4' is before that is not known"),
    )  # fmt: skip


def test_a_first_point_now_has_to_be_where_the_robot_is() -> None:
    now = Waypoints(np.array([0.0, 1.0]), np.stack([HOME, HOME + MOVE]))
    near = PresentState(HOME + 0.005, np.zeros(7))
    away = PresentState(HOME + 0.2 * (np.arange(7) == 4), np.zeros(7))
    for present in (near, PresentState.unknown(7)):
        assert start_from(now, present, NAMES, 0.01) is now
    assert start_from(now, away, NAMES, 0.0) is now
    assert_refused(
        (lambda: start_from(now, away, NAMES, 0.01),
         "joint 'panda_joint5' is at 0.2, 0.2 rad ... plan from where"),
        (lambda: start_from(Waypoints(now.times[:1], now.positions[:1]), near, NAMES, 0.01),
         "the only point is at time 0"),
        (lambda: start_from(Waypoints(now.times - 1.0, now.positions), near, NAMES, 0.01),
         "at -1 s; times count from the start"),
    )  # fmt: skip


def test_robots_and_settings_that_do_not_fit_are_refused(panda: Robot) -> None:
    refused(lambda: EffortFilter(Robot(panda.model), "motor"), "has no drives in its file")
    refused(lambda: EffortFilter(panda, "both"), "'link' or of the 'motor', found 'both'")
    call = partial(EffortFilter, Robot.load(share.find("config", "aerial_manipulator.yaml")))
    refused(call, "has a floating base")
    for period in (0.0, float("nan")):
        refused(partial(EffortFilter, panda, period=period), "the period must be positive")


def test_a_crank_of_a_linkage_gets_the_effort_of_its_drive() -> None:
    robot = with_drives(robot_of(four_bar()), 500.0, 0.01)
    waypoints = Waypoints(np.array([0.0, 0.5, 1.0]), np.array([[0.0], [0.1], [0.2]]))
    for side in ("link", "motor"):
        found = EffortFilter(robot, side, 0.05)(waypoints)  # type: ignore[arg-type]
        for time, effort in zip(found.dense.times, found.efforts):
            state = robot.drive_state(found.dense.motion.sample(time, 4))
            expected = state.efforts[0]
            if side == "motor":
                expected = robot.require_drives().feedforward(state.motion, state.efforts).effort[0]
            np.testing.assert_allclose(effort, expected, rtol=1e-12)
    assert_refused(
        (lambda: EffortFilter(robot_of(four_bar(), driven=["joint3"])),
         "name the driven joints as `coordinates`"),
        (lambda: EffortFilter(Robot.load(share.find("config", "planar_3rrr.yaml"))),
         "which a joint trajectory does not move"),
    )  # fmt: skip


@pytest.mark.parametrize("side", ["link", "motor"])
def test_a_stop_follows_the_path_and_ends_with_the_weight(panda: Robot, side: str) -> None:
    fill_in = EffortFilter(panda, "motor" if side == "motor" else "link", 0.01, ease=0.1)
    going = fill_in(planned())
    motion = going.dense.motion
    stop = fill_in.stop(motion, 0.3, 0.4, 0.5)
    assert stop.times[0] == 0.3 and stop.times[-1] == pytest.approx(0.9)
    assert np.diff(stop.times).max() <= 0.01 + 1e-12
    # until it begins it is the same motion, with the same efforts
    before = stop.times <= 0.4
    np.testing.assert_allclose(
        stop.motion[before], motion.sample(stop.times[before], 2), rtol=0.0, atol=1e-12
    )
    on_both = np.isclose(stop.times[:, None], going.dense.times[None], rtol=0.0, atol=1e-9) & before[:, None]
    rows, places = np.nonzero(on_both)
    assert len(rows) >= 10
    np.testing.assert_allclose(stop.efforts[rows], going.efforts[places], rtol=0.0, atol=1e-8)
    # all of it lies on the path of the motion, in its direction, and rests where that is half of the stop on
    way = (stop.motion[:, 0] - HOME) / MOVE
    assert np.ptp(way, axis=1).max() < 1e-9 and (np.diff(way[:, 0]) >= 0.0).all()
    np.testing.assert_allclose(stop.motion[-1, 0], motion.sample(0.65, 0)[0], rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(stop.motion[-1, 1:], 0.0)
    np.testing.assert_allclose(stop.efforts[-1], fill_in.hold(stop.motion[-1, 0]), rtol=0.0, atol=1e-9)
    # no step: what a straight line between two points misses is small beside what the motion takes
    assert np.abs(np.diff(stop.efforts, axis=0)).max() < 2.0


def test_the_efforts_of_a_hold_are_the_weight(panda: Robot) -> None:
    standing = np.stack([HOME, 0.0 * HOME, 0.0 * HOME])
    for side in ("link", "motor"):
        fill_in = EffortFilter(panda, "motor" if side == "motor" else "link", 0.01)
        np.testing.assert_allclose(fill_in.hold(HOME), panda.inverse_dynamics(standing)[0], atol=1e-9)


def test_a_motion_that_is_over_before_cannot_be_stopped(panda: Robot) -> None:
    fill_in = EffortFilter(panda, "link", 0.01)
    refused(lambda: fill_in.stop(fill_in(planned()).dense.motion, 0.9, 1.1, 0.5), "stop must lie between")


def test_a_path_of_many_points_is_as_fast_as_one_of_few(panda: Robot) -> None:
    """As planners send them; a spline at rest at its ends would leave points that are dense there."""
    durations = []
    for count in (2, 5, 60):
        points = HOME + np.linspace(0.0, 1.0, count)[:, None] * MOVE
        found = EffortFilter(panda, "link", 0.004).fastest(points)
        durations.append(found.times[-1])
        way = (found.motion[:, 0] - HOME) @ MOVE / (MOVE @ MOVE)
        np.testing.assert_allclose(found.motion[:, 0], HOME + way[:, None] * MOVE, atol=1e-9)  # straight
        assert (np.diff(way) > -1e-12).all()
    assert max(durations[1:]) < 1.12 * durations[0]


def test_steps_at_the_ends_that_are_noise_are_left_out(panda: Robot) -> None:
    """As from where the arm is measured to where a planner begins; no spline goes through both."""
    points = HOME + np.linspace(0.0, 1.0, 6)[:, None] * MOVE
    path = np.stack([HOME + 3e-5, *points, HOME + MOVE - 1e-4])
    found = EffortFilter(panda, "link", 0.004).fastest(path)
    plain = EffortFilter(panda, "link", 0.004).fastest(points)
    np.testing.assert_allclose(found.motion[[0, -1], 0], path[[0, -1]], rtol=0.0, atol=1e-12)
    assert found.times[-1] < 1.01 * plain.times[-1]


@pytest.mark.parametrize(("seed", "count"), [(3, 8), (0, 3)])
def test_a_path_does_not_swing_far_off_its_points(panda: Robot, seed: int, count: int) -> None:
    """The smoothest spline through these goes further off the straight way than their longest step."""
    random = np.random.default_rng(seed)
    steps = 0.12 * random.normal(size=(count, 7)) * 5.0 ** random.uniform(-1.0, 0.0, (count, 1))
    steps[-1] *= 0.2
    path = HOME + np.cumsum(steps, axis=0)
    found = EffortFilter(panda, "motor", 0.01).fastest(path).motion[:, 0]
    shares = np.linspace(0.0, 1.0, 200)[:, None, None]
    lines = (path[:-1] + shares * np.diff(path, axis=0)).reshape(-1, 7)
    off = [np.abs(lines - point).max(axis=1).min() for point in found]
    assert max(off) < np.abs(steps[1:]).max()


def test_a_path_through_points_that_are_too_uneven_is_refused(panda: Robot) -> None:
    random = np.random.default_rng(0)  # steps of which one is a hundred times another
    steps = 0.2 * random.normal(size=(8, 7)) * 100.0 ** random.uniform(-1.0, 0.0, (8, 1))
    refused(lambda: EffortFilter(panda).fastest(HOME + np.cumsum(steps, axis=0)), "give a blend")


@pytest.mark.thorough
def test_corners_sharper_than_any_limit_sees_are_passed_slowly(panda: Robot) -> None:
    """No limit was near one at the first stations of such a path, so none was looked at any more."""
    middle = HOME + 0.5 * MOVE + [0.0, 0.2, 0.0, 0.0, 0.1, 0.0, 0.0]
    path = np.stack([HOME, middle, middle + 1.1e-6, HOME + MOVE])
    found = EffortFilter(panda, period=0.1).fastest(path, blend=0.4)
    assert 10.0 < found.times[-1] < 1000.0
    assert np.abs(found.motion[-1, 0] - path[-1]).max() < 1e-12
