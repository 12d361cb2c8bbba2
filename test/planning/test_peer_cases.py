"""Cases from the tests of toppra and ruckig, both under the MIT licence: their figures, held by ours.

toppra: `tests/tests/retime/robustness/problem_suite_1.yaml`; ruckig: `test/test_target.cpp` and
`test_target_known.cpp`. Theirs switch acceleration, or jerk, in steps; ours is continuous to the snap, and so
a little later. What does not apply: choice of solvers, wished durations, discrete durations, joints whose
limits are zero, targets that are not at rest, and limits that differ by direction.
"""

from dataclasses import replace

import numpy as np
import pytest

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.streams.approach import Approach, Bounds, State
from hodyn_ros.planning.time_optimal import time_optimal
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.base import Trajectory


def joints(**bounds: list[float]) -> Robot:
    """Return joints about vertical axes with limits of velocity and acceleration alone."""
    n = len(bounds["velocity"])
    model = Robot.from_screws(
        [-1] * n,
        np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (n, 1)),
        np.tile(np.eye(4), (n, 1, 1)),
        np.ones(n),
        np.tile([0.5, 0.0, 0.0], (n, 1)),
        np.tile(0.1 * np.eye(3), (n, 1, 1)),
    ).model
    return Robot(
        model, replace(JointLimits.unlimited(n), **{key: np.array(each) for key, each in bounds.items()})
    )


def fastest(points: Array, robot: Robot) -> tuple[float, Trajectory]:
    # as toppra's splines, not at rest at the ends: evenly spaced points would be overshot before them
    path = WaypointSpline(np.linspace(0.0, 1.0, len(points)), points, at_rest=len(points) < 4)
    found = time_optimal(path, robot)
    report = check(robot, found.motion)
    assert not report.violations
    assert report.tightest.usage > 0.999
    times = np.linspace(0.0, found.duration, 20001)
    velocity, acceleration = found.law.sample(times, 2)[:, 1:].swapaxes(0, 1)
    assert (np.abs(velocity) <= robot.limits.velocity * (1.0 + 1e-6)).all()
    assert (np.abs(acceleration) <= robot.limits.acceleration * (1.0 + 1e-6)).all()
    np.testing.assert_allclose(found.law.sample([0.0, found.duration], 0)[:, 0], points[[0, -1]], atol=1e-12)
    return found.duration, found.law


@pytest.mark.parametrize(
    ("way", "optimum"),
    [(1.0, 0.2), (1e-4, 0.002)],  # two_points_1 and _2: full speed up, full brakes
)
def test_toppra_two_points(way: float, optimum: float) -> None:
    robot = joints(velocity=[100.0] * 3, acceleration=[100.0] * 3)
    duration, _ = fastest(np.array([[0.0, 0.0, 0.0], [0.0, way, 0.0]]), robot)
    assert optimum < duration < 1.02 * optimum


@pytest.mark.parametrize(
    ("points", "velocity", "acceleration"),
    [
        # small_joint_1: as good as evenly along a line, 4.6 mrad
        (np.linspace(-0.00038593, 0.00425594, 10)[:, None] * np.ones(3), [100.0] * 3, [100.0] * 3),
        # small_joint_2 and _3: there and back
        (np.array([[0, 0, 0], [0, 1e-5, 0], [0, 0, 0]]), [100.0, 1e4, 100.0], [100.0, 1e4, 100.0]),
        (np.array([[0, 0, 0], [0, 1e-7, 0], [0, 0, 0]]), [100.0, 1e3, 100.0], [100.0, 1e3, 100.0]),
        # issue 26: 1.5 mrad, with limits that are never met
        (np.linspace(-0.00038593, 0.00116383, 10)[:, None] * np.ones(3), [1e3] * 3, [1e3, 2e3, 1e4]),
    ],
)
def test_toppra_small_ways(points: Array, velocity: list[float], acceleration: list[float]) -> None:
    """The least time by the joint with the least acceleration, as if it stopped at each turn."""
    robot = joints(velocity=velocity, acceleration=acceleration)
    duration, _ = fastest(points, robot)
    legs = np.diff(points[[0, -1]] if len(points) > 3 else points, axis=0)
    least = sum(float(np.sqrt(4.0 * np.abs(leg) / np.array(acceleration)).max()) for leg in legs)
    assert 0.6 * least < duration < 1.05 * least


# ruckig's: each joint as soon as it can, to rest


def last(position: float, velocity: float, acceleration: float, bounds: list[float]) -> Approach:
    start = State(*(np.array([each]) for each in (position, velocity, acceleration)))
    return Approach(start, Bounds.symmetric(*(np.array([each]) for each in bounds)))


@pytest.mark.parametrize(
    ("start", "bounds", "duration"),
    [
        ((-1.0, 0.0, 0.0), [1.0, 1.0, 1.0], 3.1748021039),  # "trajectory", "enabled"
        ((-2.0, 0.0, 0.0), [1.0, 1.0, 1.0], 4.0),
        ((0.0, 0.0, 0.0), [1.0, 1.0, 1.0], 0.0),
        # "known", those that end at rest
        ((-1.0, 0.0, 0.0), [1.0, 1.0, 2.0], 2.5615528128),
        ((-1.0, 0.0, 0.0), [0.6, 1.0, 2.0], 2.7666666667),
        ((-1.0, 0.0, 0.0), [0.4, 1.0, 2.0], 3.394427191),
        ((-1.0, 0.3, 0.0), [1.0, 1.0, 2.0], 2.2319602829),
        ((-1.0, 0.3, 0.0), [0.6, 1.0, 2.0], 2.410315834),
        ((1.0, 0.0, 0.0), [0.6, 1.0, 2.0], 2.7666666667),
        ((1.0, 0.2, 0.0), [10.0, 10.0, 2.0], 2.7338531701),
        ((-2.0, 0.2, 0.0), [0.4, 1.0, 2.0], 5.6053274785),
        ((0.02853333333333339, 0.6800000000000006, 7.999999999999993), [1.0, 10.0, 100.0], 0.58),
        ((-400.0, 0.0, 0.0), [1800.0, 2e4, 2e5], 0.4119588818),
        ((-40000.0, 0.0, 0.0), [180000.0, 2e6, 2e7], 0.4119588818),
        ((0.08763861305409726, -0.8169926404190487, 1.440254448401435), [0.85, 4.25, 85.0], 0.2281604414),
    ],
)
def test_ruckig_durations(start: tuple[float, float, float], bounds: list[float], duration: float) -> None:
    way = last(*start, bounds)
    assert way.duration == pytest.approx(duration, rel=1e-9, abs=1e-8)
    end = way.at(np.array([way.duration]))[0, :, 0]
    np.testing.assert_allclose(end, 0.0, atol=1e-9 * max(1.0, abs(start[0])))


def test_ruckig_a_start_that_is_faster_than_it_may_be() -> None:
    """Ours brakes to a speed that is allowed first, and is 17 % later than ruckig, which brakes once."""
    way = last(-100.0, 1200.0, 0.0, [800.0, 40000.0, 200000.0])
    assert 0.167347 < way.duration < 1.2 * 0.167347
    speeds = way.at(np.linspace(0.0, way.duration, 1001))[:, 1, 0]
    assert (np.diff(speeds) <= 1e-6).all()


def test_ruckig_a_motion_planned_anew_at_each_step_takes_the_same_time() -> None:
    """ "random-3": each state on the way is a start whose end is that of the first one."""
    random = np.random.default_rng(0)
    for _ in range(50):
        bounds = [float(each) for each in random.uniform(0.1, 10.0, 3)]
        first = last(*(float(each) for each in random.normal(size=3) * [4.0, 0.3 * bounds[0], 0.0]), bounds)
        for share in (0.2, 0.5, 0.9):
            now = share * first.duration
            again = last(*(float(each) for each in first.at(np.array([now]))[0, :, 0]), bounds)
            # what positions are known to, 1e-12, is a way that takes the third root of it
            unsure = (32e-12 * (1.0 + abs(float(first.at(np.zeros(1))[0, 0, 0]))) / bounds[2]) ** (1.0 / 3.0)
            assert again.duration <= first.duration - now + 2.0 * unsure
