"""Predictive control against least squares with bounds by SciPy, on differences of inverse dynamics."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import assert_refused
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag, expm
from scipy.optimize import lsq_linear

from hodyn_ros import InputError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.control.predictive_control import PredictiveConfig, PredictiveControl
from hodyn_ros.errors import FigureWarning
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.simulation.closed_loop import run_loop
from hodyn_ros.simulation.predictive_loop import PredictiveLoop
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import WaypointSpline

pytest.importorskip("daqp")


PANDA = Robot.load(share.find("config", "panda.yaml"))
TRAIN = PANDA.require_drives()
HOME = [0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0]
MOTION = WaypointSpline([0.0, 0.8, 1.6], [HOME, [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5], HOME], order=6)
FEW = PredictiveConfig(period=1e-5, natural_frequency=40.0, steps=(10, 20, 40, 80))
NOW, PUSH = 0.5, 1e-3 * np.array([3.0, -5.0, 2.0, 4.0, 0.5, -0.3, 0.1])


def motor_torque(motion: Array) -> Array:
    q = PANDA.inverse_dynamics(motion)
    return np.asarray(q[0] + TRAIN.motor_inertia * (motion[2] + q[2] / TRAIN.stiffness))


def state_on(motion: Array) -> Measurement:
    torque = PANDA.inverse_dynamics(motion)
    return Measurement(*motion[:2], *(motion[:2] + torque[:2] / TRAIN.stiffness))


def disturbed(size: float) -> Measurement:
    random = np.random.default_rng(3)
    return Measurement(
        *(
            part + size * scale * random.normal(size=7)
            for part, scale in zip(state_on(MOTION.sample(NOW, 4)), (1.0, 5.0, 1.0, 5.0))
        )
    )


def led_on(measured: Measurement, effort: Array, period: float) -> Array:
    """Integrate links and motors for a period under the push; return q to q'''."""

    def springs(x: Array) -> Array:
        return np.asarray(TRAIN.stiffness * (x[2:] - x[:2]))

    def slope(_: float, y: Array) -> Array:
        x = y.reshape(4, 7)  # q, q', theta, theta'
        spring = TRAIN.stiffness * (x[2] - x[0])
        links = PANDA.forward_dynamics(x[:2], (spring + PUSH)[None])[0]
        return np.concatenate([x[1], links, x[3], (effort - spring) / TRAIN.motor_inertia])

    done = solve_ivp(slope, (0.0, period), np.concatenate(measured), rtol=1e-12, atol=1e-14)
    end = done.y[:, -1].reshape(4, 7)
    torques = springs(end) + [PUSH, 0.0 * PUSH]
    return np.concatenate([end[:2], PANDA.forward_dynamics(end[:2], torques)])


def best_efforts(measured: Measurement, effort: Array, limit: Array, config: PredictiveConfig) -> Array:
    """Return the efforts of the first node, with torques of all nodes as the unknowns of least squares."""
    n, count = 7, len(config.steps)
    starts = config.period * np.cumsum([0, *config.steps[:-1]])
    lengths = config.period * np.array(config.steps)
    begin = NOW + config.period
    state = led_on(measured, effort, config.period) - MOTION.sample(begin, 3)
    chain = np.diag(np.ones(4), 1)  # e, e', e'', e''', and a snap that stays
    errors = [(state, np.zeros((4, n, count * n)))]  # at each node, and by all snaps
    for k, length in enumerate(lengths):
        step = expm(chain * length)
        value, by = errors[-1]
        onward = np.einsum("ij,jab->iab", step[:4, :4], by)
        onward[:, np.arange(n), k * n + np.arange(n)] += step[:4, 4:]
        errors.append((step[:4, :4] @ value, onward))
    offsets, by_snaps, weights = [], [], []
    for k, (value, by) in enumerate(errors[:-1]):
        desired, size = MOTION.sample(begin + starts[k], 4), 1e-4
        slopes = np.empty((5, n, n))
        for i, j in np.ndindex(5, n):
            change = np.zeros((5, n))
            change[i, j] = size * 30.0**i
            up, down = motor_torque(desired + change), motor_torque(desired - change)
            slopes[i, :, j] = (up - down) / (2.0 * change[i, j])
        each = np.einsum("iab,ibc->ac", slopes[:4], by)
        each[:, k * n : (k + 1) * n] += slopes[4]
        by_snaps.append(each)
        offsets.append(np.einsum("iab,ib->a", slopes[:4], value))
        rigid = PANDA.mass_matrix(desired[:1])[0] + np.diag(TRAIN.motor_inertia)
        weights.append(np.sqrt(lengths[k]) * np.linalg.inv(rigid))
    torques = np.concatenate(by_snaps)
    snaps = np.linalg.inv(torques)  # what torques the snaps come from
    offset = np.concatenate(offsets)
    wanted = np.concatenate([motor_torque(MOTION.sample(begin + t, 4)) - PUSH for t in starts])
    w = config.natural_frequency
    rows, right = [block_diag(*weights)], [np.zeros(count * n)]
    for (value, by), length in zip(errors[1:-1], lengths[1:]):
        rows.append(w**2 * np.sqrt(length) * by[0] @ snaps)
        right.append(-(w**2) * np.sqrt(length) * (value[0] - by[0] @ snaps @ offset))
    value, by = errors[-1]
    root = np.linalg.cholesky(np.array([[2**0.5 * w**3, w**2], [w**2, 2**0.5 * w]])).T
    for row in root:
        rows.append(np.einsum("i,iab->ab", row, by[:2]) @ snaps)
        right.append(-(row @ value[:2]) + rows[-1] @ offset)
    bounds = np.tile(limit, count)
    least = lsq_linear(
        np.concatenate(rows),
        np.concatenate(right),
        (-bounds - wanted, bounds - wanted),
        method="bvls",
        tol=1e-15,
    )
    found: Array = (wanted + least.x)[:n]
    return found


def control(robot: Robot = PANDA, config: PredictiveConfig = FEW) -> PredictiveControl:
    return PredictiveControl(robot, MOTION, config)


def limited(limit: Array) -> Robot:
    return Robot(PANDA.model, replace(PANDA.limits, effort=limit), PANDA.drive_train, PANDA.frames)


@pytest.mark.parametrize("free", [True, False])
def test_the_first_efforts_are_those_of_least_squares_with_bounds(free: bool) -> None:
    """So near to the motion that torques are linear; without limits, and with some that it meets."""
    measured, effort = disturbed(1e-7), motor_torque(MOTION.sample(NOW, 4))
    ahead = motor_torque(MOTION.sample(NOW + FEW.period, 4)) - PUSH
    best = best_efforts(measured, effort, np.full(7, 1e9), FEW)
    limit = np.full(7, 1e9)
    if not free:
        more = np.abs(best) > np.abs(ahead)
        limit[more] = 0.5 * np.abs(best + ahead)[more]
    found = control(limited(limit)).compute(NOW, measured, effort, PUSH).efforts[0]
    expected = best_efforts(measured, effort, limit, FEW)
    spent = np.abs(expected - ahead).max()
    assert np.any(np.abs(np.abs(expected) - limit) <= 1e-12) != free
    assert np.abs(found - expected).max() <= 1e-4 * spent


def test_on_the_motion_the_motors_follow_the_elastic_feedforward() -> None:
    law = FeedforwardModel(PANDA, 4)
    wanted = motor_reference(FeedforwardMode.ELASTIC, TRAIN, law.compute(MOTION.sample(NOW, 6)))
    found = control().desired(NOW)
    np.testing.assert_allclose(found.positions, wanted.positions[:2], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.efforts[0], wanted.efforts[0], rtol=1e-13, atol=1e-12)


def test_differences_are_led_on_by_their_age() -> None:
    """Velocities half a period old, with their age, say what velocities of now do."""
    config = PredictiveConfig(velocity_lag=5e-4)
    now, effort = disturbed(1e-4), motor_torque(MOTION.sample(NOW, 4))
    spring = TRAIN.stiffness * (now.motor_position - now.position)
    links = PANDA.forward_dynamics(np.stack(now[:2]), (spring + PUSH)[None])[0]
    old = now._replace(
        velocity=now.velocity - 5e-4 * links,
        motor_velocity=now.motor_velocity - 5e-4 * (effort - spring) / TRAIN.motor_inertia,
    )
    right, lagged, late = (
        one.compute(NOW, measured, effort, PUSH).efforts[0]
        for one, measured in (
            (control(config=PredictiveConfig()), now),
            (control(config=config), old),
            (control(config=PredictiveConfig()), old),
        )
    )
    # accelerations of now and of then differ a little, by C q'
    assert np.abs(lagged - right).max() <= 0.02 * np.abs(late - right).max()


def test_where_no_solution_comes_the_motion_goes_on_without_one() -> None:
    """Pushed by more than the motors can ever hold."""
    one, measured = control(config=PredictiveConfig()), state_on(MOTION.sample(NOW, 4))
    effort, push = motor_torque(MOTION.sample(NOW, 4)), np.full(7, 1e6)
    found = one.compute(NOW, measured, effort, push)
    assert one.failures == 1
    assert (np.abs(found.efforts) <= one.limit).all() and np.isfinite(found.positions).all()


def test_a_disturbed_arm_returns_to_its_motion_behind_a_guard() -> None:
    start = MOTION.sample(0.0, 1)[0]
    simulation = RobotSimulation(PANDA, start + 1e-3)
    guard = GuardConfig(measured=True, settle=0.0, lead=5e-4, effort_step=100.0, fade=0.01)
    with pytest.warns(FigureWarning, match="weight of robot 'panda' tips it"):
        PredictiveLoop(PANDA, MOTION, MotorGains.of_drives(TRAIN, 3.0, 1.0), guard)
    loop = PredictiveLoop(PANDA, MOTION, MotorGains.of_drives(TRAIN, 30.0, 1.0), guard)
    record = run_loop(simulation, loop, 0.15, 1e-3)
    errors = np.abs(record.positions - MOTION.sample(record.times, 0)[:, 0]).max(axis=1)
    assert errors[0] == pytest.approx(1e-3) and errors.max() <= 2e-3 and errors[-1] <= 3e-5
    assert loop.control.failures == 0 and len(loop.seconds) == len(record.times)


def rigid() -> Robot:
    specs = [replace(spec, stiffness=np.inf) for spec in TRAIN.specs]
    return PANDA.with_drives(specs)


def test_other_robots_are_refused() -> None:
    assert_refused(
        (rigid(), "all joints on linear springs"),
        (PANDA.with_drives([replace(s, motor_friction=FrictionSpec(1.0, 0.0)) for s in TRAIN.specs]),
         "without friction"),
        (Robot.load(share.find("config", "delta.yaml")), "without loops"),
        by=lambda robot: PredictiveControl(robot, MOTION),
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"period": 0.0},
        {"natural_frequency": np.inf},
        {"velocity_lag": -1.0},
        {"steps": (1, 0)},
        {"steps": (3,)},
    ],
)
def test_figures_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        PredictiveConfig(**wrong)  # type: ignore[arg-type]


def test_a_motion_of_other_joints_and_figures_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="of 2 joints"):
        PredictiveControl(PANDA, WaypointSpline([0.0, 1.0], [[0.0, 0.0], [1.0, 1.0]], order=6))
    measured = state_on(MOTION.sample(NOW, 4))._replace(velocity=np.full(7, np.nan))
    with pytest.raises(InputError):
        control().compute(NOW, measured, np.zeros(7), PUSH)
