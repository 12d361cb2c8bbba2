"""A load found from motion: against what was added to the robot, and against a convex program by SciPy."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from case_robots import panda
from refusals import assert_refused, unknown
from scipy.optimize import minimize

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.observers.payload import (
    NAMES,
    PayloadConfig,
    PayloadEstimator,
    _apart,
    parameters_of,
    pseudo_inertia,
)

PERIOD = 4e-3
LOAD = Payload(0.8, (0.02, -0.03, 0.12), (0.004, 0.0005, 0.0002, 0.005, -0.0003, 0.003))
FIGURES = np.array([0.8, 0.02, -0.03, 0.12, 0.004, 0.005, 0.003, 0.0005, 0.0002, -0.0003])
SENSED = Sensed(links=True, joint_torques=True)


@cache
def loaded() -> Robot:
    return panda().with_tree(LOAD.on_tree(panda()))


def moving(time: float, size: float = 1.0) -> Array:
    """Return a motion (3, 7)."""
    phases = np.arange(7.0)
    rows = [
        0.3 * 2.0**k * np.sin(2.0 * time + phases + k * np.pi / 2)
        + 0.15 * 5.0**k * np.sin(5.0 * time + 2.0 * phases + k * np.pi / 2)
        for k in range(3)
    ]
    rows[0] = rows[0] + np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]) / size
    return size * np.array(rows)


def observer_of(noise: float, **settings: float) -> MomentumObserver:
    config = ObserverConfig(
        effort_noise=(noise,), inertia_deviation=0.0, stiffness_deviation=0.0, bandwidth=60.0, **settings
    )
    return MomentumObserver(panda(), config, SENSED)


def found(
    estimator: PayloadEstimator,
    observer: MomentumObserver,
    seconds: float,
    noise: float = 0.0,
    seed: int = 0,
    robot: Robot | None = None,
    size: float = 1.0,
) -> None:
    """Let the robot move with its load."""
    random, carrying = np.random.default_rng(seed), robot or loaded()
    for i in range(round(seconds / PERIOD)):
        motion = moving(PERIOD * i, size)
        torque = carrying.inverse_dynamics(motion)[0] + noise * random.standard_normal(7)
        estimator.update(observer.update(PERIOD * i, np.array([*motion[:2], torque])))


def test_what_was_added_is_found() -> None:
    observer = observer_of(1e-3, smoothing=300.0)
    estimator = PayloadEstimator(observer)
    found(estimator, observer, 3.0)
    estimate = estimator.estimate
    assert np.abs(estimate.values - FIGURES).max() < 2e-4
    assert estimate.shown.all() and not estimate.hidden
    again = panda().with_tree(estimate.payload.on_tree(panda()))
    motion = moving(0.7)
    np.testing.assert_allclose(
        again.inverse_dynamics(motion), loaded().inverse_dynamics(motion), rtol=0, atol=5e-3
    )


def test_it_is_the_minimum_of_a_convex_program() -> None:
    """The objective written again on the normal equations of the motion, by SciPy on the roots of P."""
    observer = observer_of(0.5)
    estimator = PayloadEstimator(observer, PayloadConfig(forgetting=1e6))
    found(estimator, observer, 1.0)
    state = estimator._state.unpack(estimator._memory[0].tolist())
    total = np.zeros((11, 11))
    total[np.triu_indices(11)] = (1.0 / np.array(state["shares"])) @ np.reshape(state["reduced"], (7, -1))
    total = total + np.triu(total, 1).T
    information, pull = total[:10, :10], total[:10, 10]
    prior = np.diag([0.01, 0.01, 0.01, 1.0])
    lower = np.tril_indices(4)

    def objective(x: Array) -> float:
        root = np.zeros((4, 4))
        root[lower] = x
        pseudo = root @ root.T
        pi = parameters_of(pseudo)
        barrier = np.trace(np.linalg.solve(prior, pseudo)) - 2.0 * np.log(np.abs(np.diag(root))).sum()
        return float(0.5 * pi @ information @ pi - pull @ pi + barrier)

    start = np.linalg.cholesky(pseudo_inertia(state["parameters"]))[lower]
    best = minimize(objective, 1.05 * start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    ours = objective(start)
    assert ours <= best.fun + 1e-7 * abs(best.fun)
    root = np.zeros((4, 4))
    root[lower] = best.x
    np.testing.assert_allclose(parameters_of(root @ root.T), state["parameters"], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("stated", [1.0, 0.3])
def test_intervals_hold_what_they_promise_where_the_observer_says_too_little_of_noise(stated: float) -> None:
    """Noise whose samples say something new every two time constants."""
    quiet = observer_of(1.0)
    alone = []
    random = np.random.default_rng(1)
    for i in range(1000):
        motion = moving(PERIOD * i)
        torque = panda().inverse_dynamics(motion)[0] + 0.8 * random.standard_normal(7)
        result = quiet.update(PERIOD * i, np.array([*motion[:2], torque]))
        if result is not None:
            alone.append(result.efforts)
    deviation = float(np.std(alone[100:]))
    inside = []
    observer = observer_of(stated * deviation)
    estimator = PayloadEstimator(observer, PayloadConfig(error_time=2.0 / 60.0))
    for seed in range(24):
        observer.restart()
        estimator.restart()
        found(estimator, observer, 1.6, 0.8, seed)
        low, high = estimator.estimate.intervals.T
        inside.append((low <= FIGURES) & (high >= FIGURES))
    share = np.mean(inside)
    assert 0.9 <= share <= 1.0 and np.mean(inside, axis=0).min() >= 0.75
    # and they are not wide for that: half as wide, they would not do
    estimate = estimator.estimate
    assert estimate.deviations[0] < 0.05 and estimate.shown[:4].all()


def test_errors_that_last_are_in_its_intervals() -> None:
    """Gains of torque sensors that are 5 % off, the same all the time."""
    inside: dict[float, list[Array]] = {1e-6: [], 0.05: []}
    for deviation, counted in inside.items():
        config = ObserverConfig(
            effort_noise=(0.05,), inertia_deviation=0.0, stiffness_deviation=deviation, bandwidth=60.0
        )
        observer = MomentumObserver(panda(), config, SENSED)
        estimator = PayloadEstimator(observer)
        for seed in range(16):
            observer.restart()
            estimator.restart()
            random = np.random.default_rng(seed)
            gains = 1.0 + 0.05 * random.standard_normal(7)
            for i in range(400):
                motion = moving(PERIOD * i)
                torque = gains * loaded().inverse_dynamics(motion)[0] + 0.05 * random.standard_normal(7)
                estimator.update(observer.update(PERIOD * i, np.array([*motion[:2], torque])))
            low, high = estimator.estimate.intervals.T
            counted.append((low <= FIGURES) & (high >= FIGURES))
    assert np.mean(inside[1e-6]) < 0.7
    assert np.mean(inside[0.05]) >= 0.88 and np.mean(inside[0.05], axis=0)[:4].min() >= 0.8


def test_offsets_of_efforts_are_in_its_intervals() -> None:
    """Torque sensors that are off by some Nm all the time, as large as what the observer is told of noise."""
    inside: dict[float, list[Array]] = {0.0: [], 1.0: []}
    for deviation, counted in inside.items():
        observer = observer_of(0.5)
        estimator = PayloadEstimator(observer, PayloadConfig(offset_deviation=deviation))
        for seed in range(16):
            observer.restart()
            estimator.restart()
            random = np.random.default_rng(seed)
            offsets = 0.5 * random.standard_normal(7)
            for i in range(400):
                motion = moving(PERIOD * i)
                torque = offsets + loaded().inverse_dynamics(motion)[0] + 0.05 * random.standard_normal(7)
                estimator.update(observer.update(PERIOD * i, np.array([*motion[:2], torque])))
            low, high = estimator.estimate.intervals.T
            counted.append((low <= FIGURES) & (high >= FIGURES))
    without, with_offsets = inside.values()
    assert np.mean(without, axis=0)[:4].min() < 0.6, without
    assert np.mean(with_offsets) >= 0.88 and np.mean(with_offsets, axis=0)[:4].min() >= 0.8


@pytest.mark.parametrize("noise", [100.0, 1e4])
def test_every_step_is_a_body_that_can_be_whatever_comes(noise: float) -> None:
    observer = observer_of(0.05)
    estimator = PayloadEstimator(observer)
    random = np.random.default_rng(2)
    for i in range(400):
        motion = moving(PERIOD * i)
        torque = panda().inverse_dynamics(motion)[0] + noise * random.standard_normal(7)
        estimator.update(observer.update(PERIOD * i, np.array([*motion[:2], torque])))
        if i % 20 == 0:
            payload = estimator.estimate.payload  # which would refuse what no body has
            moments = np.linalg.eigvalsh(payload.tensor)
            assert payload.mass > 0.0 and moments[0] > 0.0 and moments[2] < moments[0] + moments[1]


def test_other_poles_of_the_observer_begin_anew() -> None:
    observer = observer_of(0.02)
    estimator = PayloadEstimator(observer)
    found(estimator, observer, 0.5)
    observer.config = replace(observer.config, smoothing=300.0)
    found(estimator, observer, 2.0)
    assert np.abs(estimator.estimate.values - FIGURES).max() < 2e-3


@pytest.mark.parametrize("poles", [(0.0125, 0.005, 0.025), (0.02, 0.0, 0.02), (0.3, 0.01, 0.001)])
def test_samples_are_as_far_apart_as_white_noise_behind_the_poles_asks_for(poles: tuple[float, ...]) -> None:
    """Against the energy of what they make of one impulse."""
    from scipy.signal import lfilter  # here, not in every worker that only reads the tests

    first, second, third = poles
    step = 1e-3 * min(time for time in poles if time)
    impulse = np.zeros(round(40.0 * max(poles) / step))
    impulse[0] = 1.0 / step
    for time in (first, second, third, third):
        share = np.exp(-step / time) if time else 0.0
        impulse = lfilter([1.0 - share], [1.0, -share], impulse)
    assert _apart(first, second, third) == pytest.approx(1.0 / (step * (impulse**2).sum()), rel=5e-3)


def test_what_a_motion_does_not_show_is_named() -> None:
    observer = observer_of(0.05)
    estimator = PayloadEstimator(observer)
    found(estimator, observer, 2.0, size=1e-9)  # stands upright: nothing turns the load
    hidden = estimator.estimate.hidden
    assert {"inertia xx", "inertia yy", "inertia zz"} <= set(hidden)
    assert any(name.startswith("centre") for name in hidden)
    restless = PayloadEstimator(observer_of(0.05))
    assert restless.estimate.hidden == NAMES


def test_an_empty_hand_weighs_nothing() -> None:
    observer = observer_of(0.02)
    estimator = PayloadEstimator(observer)
    found(estimator, observer, 2.0, robot=panda())
    estimate = estimator.estimate
    assert 0.0 < estimate.values[0] < 0.01
    assert estimate.intervals[0, 0] < 0.0 < estimate.intervals[0, 1]


def test_a_restart_forgets_and_a_gap_does_not() -> None:
    observer = observer_of(0.02)
    estimator = PayloadEstimator(observer)
    found(estimator, observer, 1.5)
    before = estimator.estimate.values
    motion = moving(9.0)
    torque = loaded().inverse_dynamics(motion)[0]
    for i in range(3):  # far later, and the poles are empty again
        estimator.update(observer.update(9.0 + PERIOD * i, np.array([*motion[:2], torque])))
    np.testing.assert_allclose(estimator.estimate.values, before, rtol=0.02, atol=1e-4)
    estimator.restart()
    np.testing.assert_allclose(estimator.estimate.values[:4], [1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_what_it_is_not_for_is_said() -> None:
    observer = observer_of(0.1)
    loops = Robot.load(share.find("config", "delta.yaml"))
    assert_refused(
        (lambda: PayloadEstimator(observer, body="hand"), unknown("body", "hand")),
        (lambda: PayloadEstimator(MomentumObserver(loops, ObserverConfig(), Sensed(motor_efforts=True))),
         "loops"),
    )  # fmt: skip
