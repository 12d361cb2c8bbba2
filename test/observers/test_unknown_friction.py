"""Dry friction that falls with the speed, which no law of a robot file has: what it makes observers say."""

from dataclasses import replace

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed

PERIOD, DURATION, LEARNING = 0.001, 8.0, 3.0  # [s]
SLOW = 0.1  # [rad/s] about which friction falls
SHARE = 0.04  # of the effort limits that dry friction is


@pytest.fixture(name="panda", scope="module")
def make_panda() -> Robot:
    """The Panda with friction of its motors."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    drives = zip(robot.require_drives().specs, SHARE * robot.limits.effort)
    return robot.with_drives(
        [replace(spec, motor_friction=FrictionSpec(most, most, 0.02)) for spec, most in drives]
    )


def largest_ratio(robot: Robot, fall: float, noise: float | None, links: bool) -> float:
    """Return the largest effort in deviations that an observer finds where nothing acts from outside.

    Dry friction is higher by a share `fall` where motors are slow than the model has it. Motions are exact.
    """
    train = robot.require_drives()
    times = np.arange(0.0, DURATION, PERIOD)
    waves = [(0.35, 1.3 + 0.1 * np.arange(7)), (0.08, 4.1 + 0.3 * np.arange(7))]
    q = np.stack(
        [
            sum(a * w**k * np.sin(w * times[:, None] + np.arange(7) + k * np.pi / 2) for a, w in waves)
            for k in range(5)
        ],
        axis=1,
    )
    q[:, 0] += np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    torque = robot.inverse_dynamics(q)
    motor = q[:, :3] + torque / train.stiffness
    speed, dry = motor[:, 1], SHARE * robot.limits.effort
    rubs = dry * (speed + np.tanh(speed / 0.005) * (1.0 + fall * np.exp(-((speed / SLOW) ** 2))))
    effort = train.motor_inertia * motor[:, 2] + torque[:, 0] + rubs
    config = ObserverConfig() if noise is None else ObserverConfig(effort_noise=(noise,))
    observer = MomentumObserver(robot, config, Sensed(links=links, motors=True, motor_efforts=True))
    rows = [*([q[:, 0], q[:, 1]] if links else []), motor[:, 0], speed, effort]
    found = [observer.update(*each) for each in zip(times.tolist(), np.stack(rows, axis=1))]
    late = [each for each in found[round(LEARNING / PERIOD) :] if each is not None]
    return float(max(np.abs(each.efforts / each.deviations).max() for each in late))


@pytest.mark.parametrize("links", [True, False], ids=["links and motors", "motors alone"])
def test_by_default_dry_friction_twice_as_high_at_slow_speed_is_no_contact(panda: Robot, links: bool) -> None:
    assert largest_ratio(panda, 1.0, None, links) < (1.0 if links else 4.5)


def test_a_finer_threshold_with_encoders_at_links_bears_it(panda: Robot) -> None:
    assert largest_ratio(panda, 1.0, 0.2, links=True) < 4.0


def test_a_finer_threshold_by_motors_alone_does_not(panda: Robot) -> None:
    """As docs/observers.md says."""
    assert largest_ratio(panda, 0.0, 0.2, links=False) < 5.0 < largest_ratio(panda, 1.0, 0.2, links=False)
