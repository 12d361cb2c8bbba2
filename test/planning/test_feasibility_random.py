"""Peaks along random motions of 1 to 10 000 s, against dense search; the speeds that retime finds."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from linkages import shipped
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.lie.jets import Array
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.along import DemandAlong
from hodyn_ros.planning.check import check
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.retime import retime
from hodyn_ros.trajectory import (
    Cosines,
    EasedStart,
    EasedStop,
    FourierSeries,
    PiecewisePolynomial,
    RobotMotion,
    ScaledTime,
    SideBySide,
    Trajectory,
    WaypointSpline,
)
from hodyn_ros.trajectory.base import Trajectory as Base
from hodyn_ros.trajectory.combined import Rearranged

pytestmark = pytest.mark.thorough


def lever(smooth: bool = True) -> Robot:
    """Return two levers in a row under gravity, with limits of every kind; elastic drives with friction."""
    model = Robot.from_screws(
        [-1, 0],
        [[0, -1, 0, 0, 0, 0], [0, -1, 0, 0, 0, -0.6]],
        [np.eye(4)] * 2,
        [2.0, 1.0],
        [[0.4, 0.0, 0.0], [0.9, 0.0, 0.1]],
        [0.1 * np.eye(3)] * 2,
    ).model
    every = np.ones(2)
    limits = JointLimits(-2.0 * every, 2.5 * every, 3.0 * every, 30.0 * every, 300.0 * every)
    limits = replace(limits, acceleration=20.0 * every, jerk=200.0 * every)
    if not smooth:
        return Robot(model, replace(limits, effort_rate=np.inf * every, jerk=np.inf * every))
    spec = DriveSpec(
        900.0,
        0.2,
        motor_friction=FrictionSpec(0.3, 2.0, 0.05),
        limits=DriveLimits(torque=40.0, torque_rate=900.0, speed=4.0, deflection=0.1),
    )
    return Robot(model, limits, drives=[spec, replace(spec, motor_friction=FrictionSpec())])


def waves(rng: np.random.Generator, end: float) -> FourierSeries:
    """Return up to some hundreds of turns, however long it lasts."""
    turns = rng.uniform(1.0, min(200.0, 2.0 * end))
    shape = (4, 2)
    return FourierSeries(
        0.5 * np.pi * turns / end, *rng.normal(0.0, 0.4 * turns / end, (2, *shape)), [0.2, -0.4], duration=end
    )


def through_points(rng: np.random.Generator, end: float) -> tuple[Array, Array]:
    """Return points at uneven times, short steps among them, most of the time at rest."""
    steps = rng.uniform(0.3, 1.0, rng.integers(4, 12))
    steps *= rng.uniform(0.3, 1.0) * min(end, 20.0) / steps.sum()
    rest = end - steps.sum()
    lengths = np.concatenate([[0.3 * rest], steps, [0.7 * rest]]) if rest > 1.0 else steps
    positions = rng.normal(0.0, 0.4, (len(steps) + 1, 2))
    if rest > 1.0:
        positions = np.concatenate([positions[:1], positions, positions[-1:]])
    return np.concatenate([[0.0], np.cumsum(lengths)]), positions


def smooth_motion(rng: np.random.Generator, kind: str, end: float) -> Trajectory:
    if kind == "fourier":
        return waves(rng, end)
    if kind == "cosines":
        turns = rng.uniform(1.0, min(200.0, 2.0 * end), 2)
        return Cosines(rng.uniform(0.1, 1.0, 2), 2.0 * np.pi * turns / end, duration=end)
    if kind == "eased":
        ramp = 0.1 * min(end, 10.0)
        return EasedStop(EasedStart(waves(rng, end), ramp, start=0.1 * end), ramp, stop=0.6 * end)
    if kind == "scaled":
        return ScaledTime(waves(rng, 0.5 * end), 0.5)
    times, positions = through_points(rng, min(end, 20.0))
    times = times * (min(end, 20.0) / times[-1])
    move = WaypointSpline(times, positions)
    if kind == "spline":
        return move
    if kind == "eased spline":
        return EasedStart(WaypointSpline(times, positions, np.tile([[0.3, 0.1]], (len(times), 1))), 0.3, 0.1)
    # a short move somewhere in a long rest
    start = rng.uniform(0.0, max(end - 2.0, 0.0))
    hidden = WaypointSpline(start + np.array([0.0, 0.31, 0.44, 0.9]), rng.normal(0.0, 0.2, (4, 1)))
    slow = Cosines([0.5], [4.0 / end], duration=end)
    return Rearranged(SideBySide([hidden, slow]), [1, 0], [0.0, 0.0])


KINDS = ["fourier", "cosines", "eased", "scaled", "spline", "eased spline", "hidden"]


def dense_times(trajectory: Trajectory, end: float) -> Array:
    """Return instants fine beside what happens: even ones, and many between breakpoints, near to them too."""
    points = trajectory.breakpoints
    edges = np.unique(np.concatenate([[0.0], np.clip(points, 0.0, end), [end]]))
    near = 10.0 ** np.linspace(-9.0, -2.0, 15)
    inside = np.concatenate([near, np.linspace(0.0, 1.0, 900)[1:-1], 1.0 - near])
    between = (edges[:-1, None] + np.diff(edges)[:, None] * inside).ravel()
    return np.concatenate([between, np.linspace(0.0, end, 20_000)])


def assert_nothing_is_higher(
    robot: Robot, motion: RobotMotion, times: Array, duration: float | None = None
) -> None:
    report = check(robot, motion, duration)
    along = DemandAlong(LimitSet(robot), motion, duration)
    sizes = along.sizes(along.relative(times).values).max(axis=0)
    usage = along.demand.usage(sizes)
    for finding, dense in zip(report.findings, usage, strict=True):
        size = max(finding.usage, 1.0)
        assert dense <= finding.usage + 1e-8 * size, finding
        # no more than dense search could have missed
        assert dense >= finding.usage - 2e-2 * size, finding
        assert finding.error <= 1e-6 * size, finding
    # what was drawn has the peaks in it
    assert report.usage.max(axis=0) == pytest.approx(usage, rel=0.03, abs=0.03)


@pytest.mark.parametrize(
    ("kind", "end"),
    some(
        product(KINDS, [1.0, 30.0, 600.0, 10_000.0]),
        *((kind, 1.0) for kind in KINDS),
        *(("fourier", 600.0), ("spline", 600.0), ("hidden", 600.0)),
    ),
)
def test_no_dense_search_finds_more(kind: str, end: float) -> None:
    rng = np.random.default_rng([KINDS.index(kind), int(end)])
    trajectory = smooth_motion(rng, kind, end)
    assert_nothing_is_higher(
        lever(), RobotMotion.of(trajectory), dense_times(trajectory, trajectory.duration)
    )


@pytest.mark.parametrize("seed", some(range(4), 0))
def test_motions_with_jumps_of_the_jerk(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times, positions = through_points(rng, 10.0 ** rng.uniform(0.0, 4.0))
    still = np.zeros_like(positions)
    trajectory = PiecewisePolynomial(times, positions, still, still)
    assert_nothing_is_higher(lever(False), RobotMotion.of(trajectory), dense_times(trajectory, times[-1]))


def test_a_peak_that_an_even_grid_misses() -> None:
    """A move of half a second in ten minutes, between instants of an even grid of 2001."""
    times, away = 0.5 * np.arange(1201.0), np.zeros((1201, 2))
    away[600:] = [0.7, 0.3]
    still = np.zeros_like(away)
    trajectory = WaypointSpline(times + 0.02, away, still, still)
    robot = lever()
    coarse = DemandAlong(LimitSet(robot), RobotMotion.of(trajectory)).relative(np.linspace(0.0, 600.0, 2001))
    report = check(robot, trajectory)
    assert np.abs(coarse.values).max() < 0.9 * report.tightest.usage
    assert report.tightest.time == pytest.approx(299.77, abs=0.25)
    assert_nothing_is_higher(robot, RobotMotion.of(trajectory), np.linspace(299.5, 300.1, 20_001))


def test_a_motion_that_does_not_know_its_breakpoints() -> None:
    """A trajectory of one's own, which says nothing of itself."""

    class Unknown(Base):
        def __init__(self) -> None:
            self._set(motion=waves(np.random.default_rng(3), 50.0), n_joints=2, joint_names=None)
            self._set(duration=50.0, smoothness=np.inf, starts_at_rest=False, ends_at_rest=False)

        def _derivatives(self, times: Array, order: int) -> Array:
            return self.motion._derivatives(times, order)  # type: ignore[attr-defined]

        def _smoother(self, order: int) -> str:
            return ""

    assert Unknown().breakpoints is None
    assert_nothing_is_higher(lever(), RobotMotion.of(Unknown()), np.linspace(0.0, 50.0, 60_001))


def limited(n: int, **bounds: float) -> JointLimits:
    return replace(JointLimits.unlimited(n), **{name: np.full(n, value) for name, value in bounds.items()})


@pytest.mark.parametrize("seed", some(range(2), 0))
def test_platforms_and_floating_bases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    end = 10.0 ** rng.uniform(0.0, 1.0)
    platform = shipped("gough_stewart_6ups.yaml")
    bounds = limited(6, velocity=0.5, effort=150.0, effort_rate=60.0)
    platform = Robot(platform.tree, bounds, closure=platform.closure)
    base = Cosines([0.03, 0.1], rng.uniform(1.0, 4.0, 2), duration=end)
    motion = RobotMotion.of_base(base, ["z", "yaw"], platform.home[1])
    assert_nothing_is_higher(platform, motion, np.linspace(0.0, end, 1501))
    flying = shipped("aerial_manipulator.yaml")
    flying = Robot(flying.model, limited(6, velocity=1.0, effort=3.0, effort_rate=2.0))
    joints = EasedStop(EasedStart(Cosines([0.4] * 6, rng.uniform(1.0, 4.0, 6), duration=end), 0.3), 0.3)
    base = EasedStart(Cosines([0.3, 0.5], rng.uniform(0.5, 3.0, 2), duration=joints.duration), 0.2)
    base = EasedStop(base, 0.2, stop=joints.duration - 0.1)
    motion = RobotMotion.of_base(base, ["x", "pitch"], joints=joints)
    assert_nothing_is_higher(flying, motion, dense_times(motion.trajectory, joints.duration)[::5])


@pytest.mark.parametrize(
    ("kind", "end"),
    some(product(KINDS, [1.0, 600.0]), ("fourier", 1.0), ("eased", 1.0), ("spline", 1.0), ("hidden", 1.0)),
)
def test_what_is_retimed_holds_and_touches_its_limit(kind: str, end: float) -> None:
    rng = np.random.default_rng([7, KINDS.index(kind), int(end)])
    trajectory, robot = smooth_motion(rng, kind, end), lever()
    path = np.abs(trajectory.sample(dense_times(trajectory, trajectory.duration), 1)).max(axis=(0, 2))
    limits = replace(
        robot.limits,
        position_lower=np.full(2, -1.1 * path[0]),
        position_upper=np.full(2, 1.1 * path[0]),
        velocity=np.full(2, rng.uniform(0.1, 0.9) * path[1]),
    )
    robot = Robot(robot.model, limits, drives=robot.drive_train)
    found = retime(robot, trajectory)
    assert found.speed < 1.0
    assert 1.0 - 1e-9 <= found.usage <= 1.0
    demand = LimitSet(robot)
    there = demand.relative(found.motion.sample(np.array([found.time]), demand.order)).values
    assert abs(there[0, demand.columns.index(found.column)]) == pytest.approx(found.usage, abs=1e-9)
    report = check(robot, found.trajectory)
    assert not report.violations
    timed = [finding.usage for finding in report.findings if finding.column.quantity != "position"]
    assert max(timed) == pytest.approx(1.0, abs=1e-9)
    assert check(robot, ScaledTime(trajectory, min(1.0, 1.001 * found.speed))).violations
