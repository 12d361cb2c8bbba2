"""The fastest motion along a path: against closed forms, dense searches, and motions planned again."""

import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused, refused
from scipy.interpolate import BSpline
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.robot import Robot as AnyRobot
from hodyn_ros.lie import jets
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.retime import InfeasibleError, retime
from hodyn_ros.planning.time_optimal.chain_rule import chain_rule
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_peaks import PathPeaks
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.planning.time_optimal.report import stretches
from hodyn_ros.planning.time_optimal.speed_search import SpeedSearch, _apart
from hodyn_ros.planning.time_optimal.speed_spline import DEGREE, Stations
from hodyn_ros.trajectory import (
    BlendedLines,
    PiecewisePolynomial,
    RobotMotion,
    ScaledTime,
    TimedPath,
    WaypointSpline,
    read_motion,
)

NONE = [np.inf]
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
AWAY = [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]
SPEEDS = np.array([1.3, 0.4, -0.7, 1.1, -2.0])  # b and its derivatives by u


_IN_ONE_THREAD = """
import time
from hodyn_ros import Robot, share
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline
robot = Robot.load(share.find("config", "panda.yaml"))
path = WaypointSpline([0.0, 1.0, 2.0], [{home}, {away}, {home}])
time_optimal(path, robot)
all_threads, this_thread = time.process_time(), time.thread_time()
time_optimal(path, robot)
print((time.thread_time() - this_thread) / (time.process_time() - all_threads))
"""


def one_joint(**limits: float) -> AnyRobot:
    """A joint about the vertical axis, which gravity does not load."""
    model = Robot.from_screws(
        [-1], [[0, 0, 1, 0, 0, 0]], [np.eye(4)], [1.0], [[0.5, 0, 0]], [0.1 * np.eye(3)]
    ).model
    bounds = {name: [value] for name, value in limits.items()}
    free = {name: NONE for name in ("velocity", "effort", "effort_rate") if name not in limits}
    return Robot(model, JointLimits([-np.inf], NONE, **free, **bounds))


def test_the_chain_rule_is_that_of_taylor_series() -> None:
    rng = np.random.default_rng(0)
    outer = rng.normal(size=6)  # derivatives of f by u
    rule = chain_rule(SPEEDS[None], 5)[0]
    law = np.array([0.0, *rule[1:, 1]])  # those of u by time: f(u) = u
    composed = jets.compose(jets.to_taylor(outer), jets.to_taylor(law))
    np.testing.assert_allclose(rule @ outer, jets.to_derivatives(composed), rtol=1e-13)
    # u'' = b' / 2 fixes all of them
    slope = jets.to_taylor(SPEEDS[1:]) / 2.0
    np.testing.assert_allclose(
        jets.to_taylor(law)[2:] * [2.0, 6.0, 12.0, 20.0],
        jets.compose(slope, jets.to_taylor(law)[:4]),
        rtol=1e-13,
    )


def test_efforts_along_a_path_are_those_of_the_motion(panda: Robot) -> None:
    demand = LimitSet(panda)
    path = demand.fitted(RobotMotion.of(WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME])))
    u = np.array([0.3, 1.1, 1.7])
    y = SPEEDS * np.array([[1.0], [0.3], [2.0]]) ** np.arange(5)
    rates = np.moveaxis(PathDynamics.of(demand, path, u).rates(y), 0, 2)
    motion = chain_rule(y, 5) @ path.trajectory.sample(u, 5)
    torques = panda.inverse_dynamics(np.ascontiguousarray(motion))
    for got, wanted in ((rates[:, :6], motion), (rates[:, 6:], torques)):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("friction", [False, True])
def test_slopes_are_those_of_differences(panda: Robot, friction: bool) -> None:
    robot = panda if not friction else Robot.load(share.find("config", "palletiser.yaml"))
    demand = LimitSet(robot)
    start = np.zeros(robot.n_coordinates) if friction else np.array(HOME)
    path = RobotMotion.of(WaypointSpline([0.0, 1.0], [start, start + 0.2]))
    usage, along = PathUsage(demand), PathDynamics.of(demand, demand.fitted(path), np.array([0.4, 0.7]))
    y = np.tile(SPEEDS, (2, 1))
    slopes = usage.with_gradient(along, y)[1]
    for i in range(5):
        step = np.zeros(5)
        step[i] = 1e-4
        rise = (usage.values(along, y + step) - usage.values(along, y - step)) / 2e-4
        np.testing.assert_allclose(slopes[:, i], rise, rtol=0, atol=1e-6 * np.abs(slopes).max())


def test_slopes_of_powers_are_those_of_differences(panda: Robot) -> None:
    drives = [replace(spec, limits=DriveLimits(power=20.0)) for spec in panda.drive_train.specs]
    robot = panda.with_drives(drives)
    test_slopes_are_those_of_differences(robot, friction=False)
    path = WaypointSpline([0.0, 1.0], [HOME, AWAY])
    found = time_optimal(path, robot, pieces=30)
    assert found.duration > 1.01 * time_optimal(path, panda, pieces=30).duration
    tightest = check(robot, found.motion).tightest
    assert 0.9999 < tightest.usage <= 1.0 + 1e-9
    powers = [binding for binding in found.bindings if binding.column.quantity == "motor power"]
    assert max(binding.gain for binding in powers) > 0.01  # a larger motor is worth something


@pytest.mark.parametrize("stiffness", [np.inf, 2000.0])
def test_friction_that_turns_over_at_once_slows_its_reversals_alone(stiffness: float) -> None:
    path = WaypointSpline(np.arange(5.0), [[0.0], [1.0], [-0.3], [0.8], [0.0]])
    limits = DriveLimits(torque=5.0, torque_rate=300.0)

    def lasts(transition: float) -> float:
        drive = DriveSpec(stiffness, 0.1, motor_friction=FrictionSpec(0.0, 1.0, transition), limits=limits)
        robot = one_joint(velocity=2.0).with_drives([drive])
        found = time_optimal(path, robot)
        assert found.slowed > 0.999
        assert 0.9999 < check(robot, found.motion).tightest.usage <= 1.0 + 1e-9
        return found.duration

    # five reversals: as it is passed over a hundred times as fast, a hundredth of the acceleration is left
    assert lasts(1e-3) < 1.2 * lasts(0.1)


@pytest.mark.parametrize(
    ("limits", "least"),
    [
        ({"velocity": 0.5, "acceleration": 2.0}, 1.0 / 0.5 + 0.5 / 2.0),  # a trapezoid of speed
        ({"acceleration": 2.0}, 2.0 * np.sqrt(1.0 / 2.0)),  # full speed up, full brakes
        ({"jerk": 4.0}, (32.0 / 4.0) ** (1.0 / 3.0)),
    ],
)
def test_it_comes_near_the_closed_form_that_is_less_smooth(limits: dict[str, float], least: float) -> None:
    robot = one_joint(**limits)
    found = time_optimal(WaypointSpline([0.0, 3.0], [[0.0], [1.0]]), robot)
    assert least < found.duration < 1.02 * least
    assert found.motion.trajectory.smoothness >= 4
    report = check(robot, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.999


def test_the_panda_keeps_all_limits_and_touches_some(panda: Robot) -> None:
    path = WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME])
    found = time_optimal(path, panda, pieces=60)
    report = check(panda, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.9999
    assert found.slowed > 0.995
    even = retime(panda, WaypointSpline([0.0, 0.01, 0.02], [HOME, AWAY, HOME])).trajectory.duration
    assert found.even_duration == pytest.approx(even, rel=1e-3)
    assert found.duration < 0.8 * even
    # ends at rest, and the same places in between
    assert not found.law.sample([0.0, found.duration], 4)[:, 1:].round(6).any()
    places = np.linspace(0.0, 2.0, 7)
    np.testing.assert_allclose(
        found.law.sample(found.law.times_at(places), 0), path.sample(places, 0), atol=1e-12
    )
    # what binds from when to when leaves out nothing
    parts = stretches(found)
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]


def test_gains_are_those_of_the_closed_form() -> None:
    # T = d / v + v / a, so v dT/dv = v / a - d / v and a dT/da = -v / a
    path = WaypointSpline([0.0, 3.0], [[0.0], [1.0]])
    found = time_optimal(path, one_joint(velocity=0.5, acceleration=2.0))
    gains = {binding.column.quantity: binding.gain for binding in found.bindings}
    assert gains["velocity"] == pytest.approx(1.0 / 0.5 - 0.5 / 2.0, rel=0.01)
    assert gains["acceleration"] == pytest.approx(0.5 / 2.0, rel=0.03)


def test_a_share_of_a_limit_is_kept(panda: Robot) -> None:
    path = WaypointSpline([0.0, 1.0], [HOME, AWAY])
    found = time_optimal(path, panda, {"velocity": 0.25}, pieces=40)
    fastest = max(f.usage for f in check(panda, found.motion).findings if f.column.quantity == "velocity")
    assert 0.2499 < fastest <= 0.25 + 1e-9
    other = time_optimal(path, panda, replace(panda.limits, velocity=0.25 * panda.limits.velocity), pieces=40)
    # those of the motors are then the same, which springs keep from being just as fast
    assert found.duration - 1e-6 < other.duration < 1.02 * found.duration
    refused(lambda: time_optimal(path, panda, {"speed": 0.5}), "'speed'; it has those of velocity")
    for wrong in (80.0, 1.01, 0.0, np.nan):  # 80 is 80 % without its sign
        refused(partial(time_optimal, path, panda, {"velocity": wrong}), "must be above 0 and at most 1")


def test_a_path_in_motion_at_its_ends_is_eased(panda: Robot) -> None:
    path = BlendedLines([0.0, 1.0, 2.0], [HOME, AWAY, HOME])
    found = time_optimal(path, panda, pieces=60)
    assert found.ease == (0.1, 0.1)
    assert found.law.starts_at_rest and found.law.ends_at_rest
    assert not check(panda, found.motion).violations


def test_a_motion_with_a_time_law_is_taken_for_its_path(panda: Robot) -> None:
    once = time_optimal(WaypointSpline([0.0, 1.0], [HOME, AWAY]), panda, pieces=20)
    again = time_optimal(once.motion, panda, pieces=20)
    assert again.duration == pytest.approx(once.duration, rel=1e-9)


def test_paths_that_cannot_be_are_refused_with_the_place(panda: Robot) -> None:
    bent = PiecewisePolynomial([0.0, 1.0, 2.0], [HOME, AWAY, HOME])
    refused(
        lambda: time_optimal(bent, panda),
        "after 50 % of the path (at 1 of 2): the velocity ... jumps ... blend",
    )
    # cubic through three points as far apart: from rest and to rest its jerk jumps, and nowhere else
    smooth = WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME], order=2)
    refused(lambda: time_optimal(smooth, panda), "a kink at the ... of the path: the jerk ... jumps")
    weak = Robot(panda.model, replace_effort(panda.limits, 1, 5.0), panda.drive_train)
    beyond, barely = ([*AWAY[:3], goal, *AWAY[4:]] for goal in (0.5, -0.06979997))
    assert_refused(
        (lambda: time_optimal(WaypointSpline([0.0, 1.0], [HOME, beyond]), panda),
         "'panda_joint4' leaves its range at the end of the path: it is at 0.5 rad", InfeasibleError),
        (lambda: time_optimal(WaypointSpline([0.0, 1.0], [HOME, barely]), panda),
         "it is at -0.06979997 rad, allowed are -3.0718 to -0.0698", InfeasibleError),
        (lambda: time_optimal(WaypointSpline([0.0, 1.0], [HOME, AWAY]), weak),
         "at the end of the path, gravity alone asks for a torque of ... at joint 'panda_joint2'",
         InfeasibleError),
    )  # fmt: skip


def replace_effort(limits: JointLimits, joint: int, effort: float) -> JointLimits:
    efforts = limits.effort.copy()
    efforts[joint] = effort
    return replace(limits, effort=efforts, joint_names=None)


BOUNDS = {
    "planar_3rrr": {"velocity": 10.0, "effort_rate": 9.0},
    "gough_stewart": {"velocity": 10.0, "effort": 150.0, "effort_rate": 60.0},
    "aerial_manipulator": {"velocity": 10.0, "effort": 3.0, "effort_rate": 0.05},
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "bounds"), some(BOUNDS.items(), *(each for each in BOUNDS.items() if each[0] != "gough_stewart"))
)
def test_platforms_and_floating_bases_keep_the_limits_of_their_drives(
    name: str, bounds: dict[str, float]
) -> None:
    file = {"gough_stewart": "gough_stewart_6ups"}.get(name, name)
    robot = Robot.load(share.find("config", f"{file}.yaml"))
    drives = len(robot.driven_joints)
    limits = replace(
        JointLimits.unlimited(drives), **{key: np.full(drives, value) for key, value in bounds.items()}
    )
    limited = Robot(robot.tree, limits, robot.drive_train, closure=robot.closure)
    origin = read_motion(share.find("config", f"{name}_motion.yaml")).origin
    base = WaypointSpline([0.0, 1.0], [[0.0, 0.0], [0.02, 0.1 if name != "planar_3rrr" else 0.01]])
    joints = WaypointSpline([0.0, 1.0], np.zeros((2, 6)) + [[0.0], [0.2]])
    path = RobotMotion.of_base(
        base,
        ["x", "y" if name == "planar_3rrr" else "yaw"],
        origin,
        joints if robot.closure is None else None,
    )
    found = time_optimal(path, limited, pieces=8)
    report = check(limited, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.9999


@pytest.mark.thorough
@pytest.mark.parametrize("name", some(["palletiser", "delta"], "palletiser"))
def test_robots_with_loops_keep_the_limits_of_their_drives(name: str) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    drives = len(robot.driven_joints)
    bounds = {"velocity": np.full(drives, 2.0), "effort_rate": np.full(drives, 300.0)}
    limits = replace(JointLimits.unlimited(drives), **bounds)
    limited = Robot(robot.tree, limits, robot.drive_train, closure=robot.closure)
    home = robot.home[0]
    path = WaypointSpline([0.0, 0.5, 1.0], [home, home + 0.1, home + 0.25])
    found = time_optimal(path, limited, pieces=12)
    report = check(limited, found.motion)
    assert not report.violations and report.tightest.usage > 0.9999
    assert found.duration < 0.6 * found.even_duration


def test_the_file_it_writes_is_the_motion(tmp_path: Path, panda: Robot) -> None:
    from hodyn_ros.trajectory.files.retimed_file import retimed_text, timed_text

    source = tmp_path / "path.yaml"
    points = "".join(f"- {{positions: {point}}}\n" for point in (HOME, AWAY, HOME))
    source.write_text(f"type: waypoints\ninterpolation: blend\nblend: 0.4\npoints:\n{points}")
    found = time_optimal(read_motion(source), panda, pieces=30)
    planned = tmp_path / "planned.yaml"
    planned.write_text(timed_text(source, found.timing))
    read = read_motion(planned).trajectory
    times = np.linspace(0.0, found.duration, 11)
    np.testing.assert_array_equal(read.sample(times, 5), found.law.sample(times, 5))
    half = tmp_path / "half.yaml"
    half.write_text(retimed_text(planned, 0.5))
    assert read_motion(half).trajectory.duration == pytest.approx(2.0 * found.duration)


@pytest.mark.thorough
def test_it_goes_on_from_a_motion_under_way_and_leads_into_one(panda: Robot) -> None:
    path = ScaledTime(WaypointSpline([0.0, 1.0, 2.0], [HOME, AWAY, HOME], at_rest=False, order=2), 0.4)
    start, end = (1.0, 0.1, -0.2, 0.3), (0.8, 0.0, 0.0, 0.0)
    found = time_optimal(path, panda, start=start, end=end, pieces=40)
    report = check(panda, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.98
    assert found.duration < 0.7 * path.duration
    # the same derivatives as u(t) = u0 + sum of rates t^k / k! gives along the path
    for rates, time, place in ((start, 0.0, 0.0), (end, found.duration, path.duration)):
        law = jets.to_taylor(np.array([place, *rates]))
        wanted = jets.compose(jets.to_taylor(path.sample(place, 4)), law[:, None])
        reached = jets.to_taylor(found.law.sample(time, 4))
        np.testing.assert_allclose(reached, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    assert_refused(
        (lambda: time_optimal(path, panda, start=(20.0, 0.0, 0.0, 0.0), pieces=20),
         "start or end slower", InfeasibleError),
        (lambda: time_optimal(WaypointSpline([0.0, 1.0], [HOME, AWAY]), panda, start=start),
         "the path itself rests at its start"),
    )  # fmt: skip


def test_stations_see_the_functions_of_the_whole_spline() -> None:
    rng = np.random.default_rng(2)
    inner = np.sort(rng.uniform(0.0, 3.0, 40))
    knots = np.concatenate([np.full(DEGREE, inner[0]), inner, np.full(DEGREE, inner[-1])])
    u = np.sort(np.concatenate([rng.uniform(inner[0], inner[-1], 300), inner]))
    stations = Stations(knots, u)
    every = BSpline(knots, np.eye(stations.count), DEGREE)
    for k in range(stations.basis.shape[1]):
        whole = every(u, nu=k)
        near = np.take_along_axis(whole, stations._columns, axis=1)
        np.testing.assert_array_equal(stations.basis[:, k], near)
        assert np.count_nonzero(whole) == np.count_nonzero(near)


@pytest.mark.skipif(os.cpu_count() == 1, reason="BLAS has no other thread to wake")
def test_a_plan_is_found_by_one_thread() -> None:
    """Those of BLAS wait for work by keeping their processors busy, so one call in each step is enough."""
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in limits}
    code = _IN_ONE_THREAD.format(home=HOME, away=AWAY)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert float(done.stdout) > 0.95, done.stderr


def test_the_nearest_breakpoint_is_found() -> None:
    rng = np.random.default_rng(3)
    breaks = np.sort(rng.uniform(0.0, 1.0, 50))
    places = np.concatenate([rng.uniform(-0.1, 1.1, 500), breaks])
    np.testing.assert_array_equal(_apart(places, breaks), np.abs(breaks[:, None] - places).min(axis=0))
    np.testing.assert_array_equal(_apart(places, breaks[:1]), np.abs(places - breaks[0]))


def test_memory_grows_evenly_with_waypoints() -> None:
    """Not as pairs of waypoints and stations, of which 10,000 waypoints have a billion."""
    robot = one_joint(velocity=1.0, effort=2.0)
    largest = []
    for count in (500, 2000):
        times = np.linspace(0.0, 1.0, count)
        path = RobotMotion.of_joints(WaypointSpline(times, np.sin(times)[:, None]))
        demand = LimitSet(robot)
        tracemalloc.start()
        SpeedSearch(demand, demand.fitted(MotionEvaluator(robot).fitted(path)), 120)
        largest.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert largest[1] < 6.0 * largest[0]


@pytest.mark.parametrize("name", ["panda", "palletiser"])
def test_peaks_along_a_path_are_those_of_the_motion(name: str) -> None:
    """As `check` finds them in time, from the motion itself."""
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    start = np.array(HOME) if name == "panda" else np.zeros(robot.n_coordinates)
    path = WaypointSpline([0.0, 1.0, 2.0], [start, start + 0.2, start + 0.1])
    demand = LimitSet(robot)
    motion = demand.fitted(MotionEvaluator(robot).fitted(RobotMotion.of(path)))
    knots = np.linspace(0.0, 2.0, 13)
    peaks = PathPeaks(demand, motion, knots)
    for seed in range(2):  # what is known of the path stays
        coefficients = np.random.default_rng(seed).uniform(0.5, 1.5, len(knots) + 4)
        found = peaks.find(coefficients, 1e-10)
        law = TimedPath(path, knots, coefficients)
        wanted = {
            (each.column.quantity, each.column.joint): each.usage for each in check(robot, law).findings
        }
        for column, size in zip(peaks.usage.columns, found.sizes, strict=True):
            limit = demand.columns[column]
            assert size == pytest.approx(wanted[limit.quantity, limit.joint], rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("name", ["panda", "palletiser"])
def test_integrals_are_those_of_the_quantities(name: str) -> None:
    robot = Robot.load(share.find("config", f"{name}.yaml"))
    start = np.array(HOME) if name == "panda" else np.zeros(robot.n_coordinates)
    demand = LimitSet(robot)
    path = demand.fitted(RobotMotion.of(WaypointSpline([0.0, 1.0], [start, start + 0.2])))
    usage = PathUsage(demand)
    # over a tenth of the path, by Gauss: u'' = b' / 2 with b of the fourth degree
    points, weights = np.polynomial.legendre.leggauss(20)
    u = np.concatenate([[0.4], 0.45 + 0.05 * points, [0.5]])
    b = np.polynomial.Polynomial([1.0, 0.3, -0.2, 0.4, 0.1])
    y = np.stack([b.deriv(k)(u) if k else b(u) for k in range(5)], axis=1)
    values, integrals = usage.with_integrals(PathDynamics.of(demand, path, u), y)
    known = ~np.isnan(integrals).any(axis=0)
    orders = np.array([demand.places[column].derivative for column in usage.columns])
    np.testing.assert_array_equal(known, orders > 0)
    sums = 0.05 * weights @ (values[1:-1] * y[1:-1, :1] ** -0.5)
    wanted = (integrals[-1] - integrals[0])[known]
    np.testing.assert_allclose(sums[known], wanted, rtol=0, atol=1e-9 * np.abs(integrals[:, known]).max())


def test_some_columns_are_used_as_all_are(panda: Robot) -> None:
    demand = LimitSet(panda)
    path = demand.fitted(RobotMotion.of(WaypointSpline([0.0, 1.0], [HOME, AWAY])))
    usage, along = PathUsage(demand), PathDynamics.of(demand, path, np.array([0.3, 0.7]))
    some = np.random.default_rng(0).random(len(usage.columns)) > 0.6
    y = np.tile(SPEEDS, (2, 1))
    for all_of, few in zip(usage.with_gradient(along, y), usage.of_columns(some).with_gradient(along, y)):
        np.testing.assert_array_equal(few, all_of[..., some])
