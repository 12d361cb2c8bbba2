"""Motions that hardly swing where springs or payloads are not as modelled."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from case_robots import panda
from refusals import assert_refused
from scipy.interpolate import PPoly
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.cli.plan import rates_of, uncertainty_of
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.streams.stream_config import StreamConfig
from hodyn_ros.planning.streams.stream_planner import StreamPlanner
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.simulation.tracking_study import RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import RobotMotion, WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

PATH = WaypointSpline([0.0, 1.0], [[0.0], [0.5]])
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
MASS, STIFFNESS, INERTIA, EFFORT = 3.0, 2000.0, 0.4, 40.0


def slide(screw: tuple[float, ...] = (0, 0, 0, 1, 0, 0), **limits: float) -> Robot:
    """A mass that an elastic drive moves along x."""
    tree = Robot.from_screws([-1], [screw], [np.eye(4)], [MASS], [np.zeros(3)], [0.1 * np.eye(3)]).model
    bounds = {"velocity": 2.0, "effort": EFFORT, "effort_rate": 800.0, **limits}
    free = JointLimits.unlimited(1)
    table = replace(free, **{name: np.array([value]) for name, value in bounds.items()})
    return Robot(tree, table, [DriveSpec(motor_inertia=INERTIA, stiffness=STIFFNESS)])


def test_torques_bend_as_gently_as_the_formula_says() -> None:
    robot, uncertainty = slide(), Uncertainty(stiffness=0.2)
    bound = 1.5e-3 * EFFORT * 0.8 * STIFFNESS / INERTIA / 0.2
    np.testing.assert_allclose(
        uncertainty.torque_accelerations(robot, RobotMotion.of(PATH)), [bound], rtol=1e-14
    )
    found = time_optimal(PATH, robot, uncertainty=uncertainty, pieces=40)
    snaps = MASS * found.law.sample(np.linspace(0.0, found.duration, 4001), 4)[:, 4]
    assert 0.999 * bound < np.abs(snaps).max() < bound * (1.0 + 1e-6)


def test_a_payload_counts_by_its_share_of_what_is_accelerated() -> None:
    light, both = Uncertainty(stiffness=0.2), Uncertainty(stiffness=0.2, payload=0.6)
    bounds = [each.torque_accelerations(slide(), RobotMotion.of(PATH))[0] for each in (light, both)]
    assert bounds[0] / bounds[1] == pytest.approx((0.2 + 0.6 / MASS) / 0.2, rel=1e-12)


@cache
def planned(uncertainty: Uncertainty | None, of_panda: bool = False) -> Trajectory:
    """Return the fastest motion of the slide or the Panda, which several tests let swing."""
    if not of_panda:
        return time_optimal(PATH, slide(), uncertainty=uncertainty, pieces=60).law
    path = WaypointSpline([0.0, 1.0], [HOME, HOME + 0.3])
    return time_optimal(path, panda(), uncertainty=uncertainty, pieces=30).law


@pytest.mark.parametrize("error, payload", [(-0.2, 0.0), (0.2, 0.0), (0.0, 0.6)])
def test_a_spring_swings_by_no_more_than_was_promised(error: float, payload: float) -> None:
    plain, gentle = (
        swing(law.sample, law.duration, error, payload)
        for law in map(planned, (None, Uncertainty(abs(error), payload)))
    )
    assert gentle < 1.5e-3 * EFFORT
    assert gentle < 0.4 * plain


@pytest.mark.parametrize("error, payload", [(-0.2, 0.0), (0.2, 0.0), (0.0, 0.6)])
def test_streams_swing_by_less_than_promised_and_than_motions_whose_jerk_jumps(
    error: float, payload: float
) -> None:
    """Beside a motion of the least jerk that is as long as that of the stream."""
    config = StreamConfig(
        spacing=0.08, jump=1.0, delay=2.0, stiffness_error=abs(error), payload_error=payload
    )
    planner = StreamPlanner(slide(), [0.0], 0.0, config)
    u, goal = np.linspace(0.0, 1.0, 16), 0.1
    rise = u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
    taken = planner.take(0.08 + 1.2 * u, goal * rise[:, None], 0.0)
    assert taken.followed and taken.limit.startswith("torque acceleration")
    velocities = planner.sample(np.arange(0.0, planner.ends, 1e-3), 1)[:, 1]
    duration = 1e-3 * float((np.abs(velocities) > 1e-6).sum())
    jerk = 32.0 * goal / duration**3 * np.array([1.0, -1.0, 1.0, 0.0])
    turns = duration * np.array([0.0, 0.25, 0.75, 1.0, 2.0])
    law = PPoly(jerk[None], turns).antiderivative(3)

    def sample(times: Array, order: int) -> Array:
        return np.stack([law(times, nu=k) for k in range(order + 1)], axis=1)[:, :, None]

    left = swing(planner.sample, planner.ends, error, payload)
    assert left < 1.5e-3 * EFFORT
    assert left < 0.1 * swing(sample, duration, error, payload)


@pytest.mark.thorough
@pytest.mark.parametrize("error", some([-0.2, 0.2], 0.2))  # of a spring both signs are tested above
def test_a_panda_hardly_swings_where_its_springs_are_not_as_modelled(error: float) -> None:
    plain, gentle = (planned(each, of_panda=True) for each in (None, Uncertainty(0.2)))
    assert gentle.duration < 1.5 * plain.duration
    swings = swing_of(panda(), gentle, error).max()
    # drives let go of what swings by first order alone, links swing against each other, too
    assert swings < 3.0 * 1.5e-3
    assert swings < 0.2 * swing_of(panda(), plain, error).max()


def swing_of(robot: Robot, motion: Trajectory, error: float) -> Array:
    """Return by how much the torques of springs (n,) swing after the end, as shares of their limits."""
    run = TrackingStudy(robot, motion, StudyConfig(ramp=0.0, afterwards=0.2, settling=0.05)).run(
        RobotErrors(stiffness=error), FeedforwardMode.ELASTIC
    )
    bent = (run.positions - run.motor_positions)[run.times >= motion.duration]
    torques = np.ptp(bent, axis=0) / 2.0 * robot.require_drives().stiffness * (1.0 + error)
    return np.asarray(torques / robot.limits.effort)


def swing(
    sample: Callable[[Array, int], Array], duration: float, error: float, payload: float = 0.0
) -> float:
    """Return by how much the force of the spring swings after the end [N].

    About its mean over a period: what the feedback brings to its place meanwhile, far slower, is no swing.
    Of two masses and a spring with motor feedback of 10 rad/s, by the matrix exponential, under feedforward
    that believes the stiffness and knows of no payload.
    """
    from scipy.signal import lsim  # here, not in every worker that only reads the tests

    times = np.arange(0.0, duration + 0.2, 2e-4)
    q = sample(times, 4)[:, :, 0]
    motor, rate = (q[:, k] + MASS * q[:, k + 2] / STIFFNESS for k in (0, 1))
    drive = INERTIA * (q[:, 2] + MASS * q[:, 4] / STIFFNESS) + MASS * q[:, 2]
    gains = INERTIA * np.array([100.0, 20.0])
    push = drive + gains[0] * motor + gains[1] * rate
    k = STIFFNESS * (1.0 + error)
    a = np.zeros((4, 4))
    a[:2, 2:] = np.eye(2)
    a[2, :2] = np.array([-k, k]) / (MASS + payload)
    a[3] = np.array([k, -k - gains[0], 0.0, -gains[1]]) / INERTIA
    shape = np.array([[0.0], [0.0], [0.0], [1.0 / INERTIA]])
    _, force, _ = lsim((a, shape, [[-k, k, 0.0, 0.0]], [[0.0]]), push, times)
    after = force[times >= duration]
    window = round(2.0 * np.pi / np.sqrt(k * (1.0 / (MASS + payload) + 1.0 / INERTIA)) / 2e-4)
    mean = np.convolve(after, np.full(window, 1.0 / window), "valid")
    return float(np.abs(after[window // 2 :][: len(mean)] - mean).max())


def test_what_cannot_be_planned_for_is_refused() -> None:
    path = RobotMotion.of(PATH)
    rigid = Robot(slide().model, slide().limits, [DriveSpec(motor_inertia=INERTIA)])
    assert_refused(
        (lambda: Uncertainty(stiffness=1.2), "stiffness of 120 % cannot be planned for"),
        (lambda: Uncertainty(payload=-1.0), "payload of -1 kg"),
        (lambda: Uncertainty(swing=0.0), "must be positive and finite, found 0"),
        (lambda: Uncertainty(0.2).torque_accelerations(slide(effort=np.inf), path),
         "has no limit of torque to measure its swing by"),
        (lambda: Uncertainty(0.2).torque_accelerations(rigid, path), "no elastic drives, so nothing swings"),
    )  # fmt: skip
    assert np.isinf(Uncertainty().torque_accelerations(slide(), path)).all()


def test_shipped_robots_have_what_it_takes() -> None:
    path = RobotMotion.of(WaypointSpline([0.0, 1.0], [HOME, HOME + 0.1]))
    bounds = [Uncertainty(0.2, payload).torque_accelerations(panda(), path) for payload in (0.0, 0.5)]
    assert (bounds[1] < bounds[0]).all() and (bounds[1] > 0.0).all()


def test_the_command_line_says_what_may_be_wrong() -> None:
    assert uncertainty_of("20%", 0.5) == Uncertainty(stiffness=0.2, payload=0.5)
    assert uncertainty_of("0", 0.0) is None
    assert rates_of("start", "1, 0,0,-2") == [1.0, 0.0, 0.0, -2.0] and rates_of("end", None) is None
    assert_refused(
        (lambda: rates_of("end", "soon"), "--end takes four numbers such as 1,0,0,0, found 'soon'"),
        (lambda: uncertainty_of("much", 0.0), "'much' is no share"),
    )
