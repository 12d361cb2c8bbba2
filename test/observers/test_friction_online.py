"""Friction of rigid joints, corrected while the robot moves, and not by contacts."""

from dataclasses import replace

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.export import c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import ExternalEfforts, MomentumObserver, ObserverConfig, Sensed

PERIOD, N = 0.004, 7
FILE = FrictionSpec(viscous=4.0, coulomb=3.0, transition=0.02)
BY_MOTORS = Sensed(links=True, motor_efforts=True)
CONFIG = ObserverConfig(
    bandwidth=50.0, effort_noise=(0.3,), inertia_deviation=0.0, friction_deviation=0.3, friction_time=1.0
)
VISCOUS, COULOMB = -0.3, 0.25  # by which the truth differs, in shares


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    panda = Robot.load(share.find("config", "panda.yaml"))
    return panda.with_drives([DriveSpec(np.inf, 0.2, motor_friction=FILE)] * N)


def recorded(robot: Robot, duration: float, standing: bool = False) -> tuple[Array, Array]:
    """Return times (N,) and samples (N, 3, n) of a robot whose friction is not that of its file."""
    times = PERIOD * np.arange(round(duration / PERIOD))
    waves = [(0.0 if standing else size, rate * times[:, None] + rate * np.arange(N), rate)
             for size, rate in ((0.35, 2.0), (0.08, 6.2))]  # fmt: skip
    motion = np.stack(
        [
            sum(size * rate**k * np.sin(phase + k * np.pi / 2) for size, phase, rate in waves)
            for k in range(3)
        ],
        axis=1,
    )
    motion[:, 0] += np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    speed = motion[:, 1]
    friction = (1.0 + VISCOUS) * FILE.viscous * speed
    friction += (1.0 + COULOMB) * FILE.coulomb * speed / np.hypot(speed, FILE.transition)
    efforts = robot.inverse_dynamics(motion)[:, 0] + 0.2 * motion[:, 2] + friction
    efforts += 0.1 * np.random.default_rng(1).standard_normal(efforts.shape)
    return times, np.stack([motion[:, 0], motion[:, 1], efforts], axis=1)


def observed(
    robot: Robot, config: ObserverConfig, times: Array, samples: Array
) -> tuple[MomentumObserver, list[ExternalEfforts]]:
    observer = MomentumObserver(robot, config, BY_MOTORS)
    found = [observer.update(time, sample) for time, sample in zip(times.tolist(), samples)]
    return observer, [each for each in found if each is not None]


def corrections(observer: MomentumObserver) -> Array:
    """Return value and deviation of viscous and Coulomb friction (n, 2, 2)."""
    return np.array([[each["viscous"], each["coulomb"]] for each in observer.corrections.values()])


@pytest.fixture(name="moved", scope="module")
def make_moved(robot: Robot) -> tuple[MomentumObserver, list[ExternalEfforts], tuple[Array, Array]]:
    recording = recorded(robot, 60.0)
    return *observed(robot, CONFIG, *recording), recording


def test_friction_comes_out_with_deviations_and_the_residual_goes(
    robot: Robot, moved: tuple[MomentumObserver, list[ExternalEfforts], tuple[Array, Array]]
) -> None:
    observer, found, recording = moved
    values, deviations = np.moveaxis(corrections(observer), 2, 0)
    assert np.abs(values - [VISCOUS, COULOMB]).max() < 0.08
    assert (np.abs(values - [VISCOUS, COULOMB]) < 2.5 * deviations).all()
    assert deviations.max() < 0.6 * CONFIG.friction_deviation
    _, before = observed(robot, replace(CONFIG, friction_time=0.0), *recording)
    last = slice(-2000, None)
    left, whole = (np.array([each.efforts for each in some[last]]) for some in (found, before))
    assert (np.std(left, axis=0) < 0.35 * np.std(whole, axis=0)).all()
    narrow, wide = (np.mean([each.deviations for each in some[last]]) for some in (found, before))
    assert narrow < 0.7 * wide  # thresholds follow what was learnt


def test_standing_teaches_nothing(robot: Robot) -> None:
    observer, _ = observed(robot, CONFIG, *recorded(robot, 10.0, standing=True))
    values, deviations = np.moveaxis(corrections(observer), 2, 0)
    assert np.abs(values).max() < 1e-3
    assert deviations.min() > 0.99 * CONFIG.friction_deviation


def test_what_was_learnt_returns_when_nothing_shows_it(robot: Robot) -> None:
    config = replace(CONFIG, drift_time=10.0)
    (times, samples), (_, still) = recorded(robot, 30.0), recorded(robot, 40.0, standing=True)
    observer, _ = observed(robot, config, times, samples)
    learnt = corrections(observer)
    begin = float(times[-1])
    for i, sample in enumerate(still):
        observer.update(begin + PERIOD * (i + 1), sample)
    after = corrections(observer)
    assert (np.abs(after[..., 0]) < 0.05 * np.abs(learnt[..., 0]) + 0.02).all()
    assert after[..., 1].min() > 0.95 * config.friction_deviation


def test_a_contact_does_not_pass_for_friction(robot: Robot) -> None:
    """A push of five seconds, twice the Coulomb friction: it shows, and moves no figure by much."""
    times, samples = recorded(robot, 65.0)
    pushed = samples.copy()
    during = (times > 55.0) & (times < 60.0)
    pushed[during, 2, 3] -= 6.0
    free, (observer, found) = (
        observed(robot, CONFIG, times, samples)[0],
        observed(robot, CONFIG, times, pushed),
    )
    felt = np.array([each.efforts[3] for each in found])[during[1:]][200:]
    assert 0.85 * 6.0 < np.median(felt) < 1.1 * 6.0
    assert np.abs(corrections(observer) - corrections(free))[..., 0].max() < 0.1
    assert np.abs(np.delete(corrections(observer) - corrections(free), 3, axis=0)).max() < 1e-9


def test_a_push_that_never_ends_stays_within_the_stated_bounds(robot: Robot) -> None:
    """A motion in one direction tells friction from nothing, and 100 N·m may not become friction."""
    times = PERIOD * np.arange(5000)
    q = 0.02 * times[:, None] + np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    motion = np.stack([q, np.full_like(q, 0.02), np.zeros_like(q)], axis=1)
    efforts = robot.inverse_dynamics(motion)[:, 0] + 100.0
    config = replace(CONFIG, correction_limit=1.5)
    observer, found = observed(
        robot, config, times, np.stack([*np.moveaxis(motion[:, :2], 1, 0), efforts], axis=1)
    )
    assert np.abs(corrections(observer)[..., 0]).max() <= 1.5 * CONFIG.friction_deviation + 1e-12
    assert found[-1].contact and np.abs(found[-1].efforts).min() > 90.0


def test_it_is_left_alone_unless_asked_for(robot: Robot) -> None:
    observer = MomentumObserver(robot, replace(CONFIG, friction_time=0.0), BY_MOTORS)
    assert observer.corrections == {}
    observer.config = CONFIG
    assert set(observer.corrections) == set(robot.driven_joints)
    assert {"viscous", "coulomb"} == set(observer.corrections[robot.driven_joints[0]])
    assert "friction_time (0)" in c_source(robot, ExportRequest(0, "arm", what="momentum_observer")).header
