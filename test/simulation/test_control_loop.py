"""Offline simulation: the plant, sensors, delays and limits."""

from itertools import product

import numpy as np
import pytest
from refusals import assert_refused, misshapen, refused
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.guard.effort_limiter import EffortLimiter
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, VariableStiffnessSpec, series_elastic
from hodyn_ros.simulation.closed_loop import run_loop
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.simulation.simulation import Method, RobotSimulation
from hodyn_ros.trajectory import read_trajectory

START = np.array([0.1, -0.3, 0.2, -1.9, 0.1, 1.7, 0.3])
PUSH = np.array([20.0, -15.0, 10.0, 8.0, 4.0, -3.0, 2.0])
FRICTION = FrictionSpec(0.5, 1.0, 0.1)
PAIR = VariableStiffnessSpec("agonist_antagonist", 3e4)
MIXTURE = [
    DriveSpec(np.inf, 0.6, motor_friction=FRICTION),
    DriveSpec(1e4, 0.6),
    DriveSpec(8e3, 0.4, spring_damping=20.0),
    DriveSpec(9e3, 0.4, cubic_stiffness=1e5, link_friction=FRICTION),
    DriveSpec(4e3, 0.2, variable_stiffness=PAIR),
    DriveSpec(3e3, 0.2, variable_stiffness=VariableStiffnessSpec("cam", 4e3, 0.8, 0.05)),
    DriveSpec(5e3, 0.2, motor_friction=FRICTION),
]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "rigid"),
    some(product(["LSODA", "Radau", "BDF"], [False, True]), ("LSODA", True), ("Radau", False)),
)
def test_the_plant_moves_as_the_compiled_simulation(panda: Robot, rigid: bool, method: Method) -> None:
    """Which is held against Pinocchio on its own."""
    stiffness = panda.drive_train.stiffness.copy()
    if rigid:
        stiffness[[0, 3]] = np.inf
    robot = panda.with_drives(series_elastic(stiffness, panda.drive_train.motor_inertia))
    compiled = RobotSimulation(robot, START, step_limit=0.05)
    effort = compiled.gravity_effort() + PUSH
    simulation = RobotSimulation(robot, START)
    simulation.follow(effort, 0.03, method=method)
    compiled.advance(0.03, effort)
    found = simulation.measurement
    assert np.allclose(found.position, compiled.position, rtol=0.0, atol=1e-7)
    assert np.allclose(found.motor_velocity, compiled.motor_velocity, rtol=0.0, atol=2e-5)


def test_the_feedforward_of_any_mixture_moves_its_plant(panda: Robot) -> None:
    """From a consistent start, feedforward alone keeps the motion: drive train and plant are inverse."""
    robot = panda.with_drives(MIXTURE)
    train = robot.drive_train
    trajectory = read_trajectory(share.find("config", "panda_validation.yaml"))
    inverse_dynamics = robot.compile(4)

    def feedforward(t: float, measured: Measurement) -> Array:
        q = trajectory.sample(t, 6)
        return train.feedforward(q, inverse_dynamics(q)).effort[0]

    simulation = RobotSimulation(robot, trajectory.sample(0.0, 6))
    times = np.linspace(0.02, 0.1, 5)
    states = simulation.follow(feedforward, 0.1 + 1e-6, times, rtol=1e-10, atol=1e-12)
    assert np.abs(states[:, :7] - trajectory.sample(times, 0)[:, 0]).max() <= 1e-6


@pytest.mark.parametrize(
    ("frequency", "damping", "grows"), [(80.0, 0.0, False), (120.0, 0.0, True), (120.0, 2e-4, False)]
)
def test_late_motor_feedback_drives_undamped_springs_of_a_period_below_four_times_its_latency(
    frequency: float, damping: float, grows: bool
) -> None:
    screw, link, motor = [0, 0, 1, 0, 0, 0], 0.35, 0.3
    stiffness = (2.0 * np.pi * frequency) ** 2 / (1.0 / link + 1.0 / motor)
    rigid = Robot.from_screws([-1], [screw], [np.eye(4)], [1.0], [[0, 0, 0]], [link * np.eye(3)])
    robot = rigid.with_drives([DriveSpec(stiffness, motor, spring_damping=damping * stiffness)])
    simulation = RobotSimulation(robot, [0.0], velocity=[0.1])
    simulation.advance(1e-3, [100.0])  # so that the spring swings
    gains = MotorGains.from_frequency([motor], 30.0, 1.0)

    def feedback(_: float, measured: Measurement) -> Array:
        at, speed = measured.motor_position, measured.motor_velocity
        return -gains.proportional * at - gains.derivative * speed

    # seen to act 2.5 ms later on the mean: the limit is 1 / (4 * 2.5 ms) = 100 Hz
    record = run_loop(simulation, feedback, 1.0, 1e-3, delay=2e-3)
    swing = np.abs(record.motor_positions - record.positions)
    early, late = swing[100:200].max(), swing[-100:].max()
    assert late > 2.0 * early if grows else late < 0.7 * early


def test_encoders_round_and_are_noisy() -> None:
    exact = np.linspace(-1.0, 1.0, 4001)
    random = np.random.default_rng(0)
    step = 2.0 * np.pi / 2000.0
    read = Encoder(resolution=step).read(exact, random)
    assert np.abs(read - exact).max() <= 0.5 * step * (1.0 + 1e-12)
    assert np.allclose(read / step, np.round(read / step), rtol=0.0, atol=1e-9)
    noisy = Encoder(noise=3e-4).read(exact, random) - exact
    assert np.std(noisy) == pytest.approx(3e-4, rel=0.05)
    assert abs(np.mean(noisy)) <= 5.0 * 3e-4 / np.sqrt(4001)
    refused(lambda: Encoder(noise=-1.0), "noise")


def test_velocities_come_from_differences() -> None:
    sensors = Sensors(Encoder(bandwidth=200.0), Encoder(), period=1e-3)
    found = []
    for k in range(200):
        q = np.array([0.5 * k * 1e-3])
        found.append(sensors.measure(Measurement(q, np.zeros(1), q, np.array([7.0]))))
    # a filter of first order: from 0 towards 0.5 rad/s
    expected = 0.5 * (1.0 - np.exp(-200.0 * 1e-3 * np.arange(200)))
    assert np.allclose([m.velocity[0] for m in found], expected, rtol=0.0, atol=1e-12)
    assert found[-1].motor_velocity[0] == 7.0  # exact sensors pass it on


def test_noise_is_repeatable() -> None:
    def run(seed: int) -> Array:
        sensors = Sensors(Encoder(noise=1e-3), Encoder(noise=1e-3), 1e-3, seed)
        state = Measurement(np.zeros(3), np.zeros(3), np.ones(3), np.zeros(3))
        return np.concatenate([np.concatenate(sensors.measure(state)) for _ in range(3)])

    assert np.array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


class Recorder:
    """Stands in for a robot: takes down which effort acted for how long."""

    def __init__(self) -> None:
        self.log: list[tuple[float, float]] = []

    @property
    def measurement(self) -> Measurement:
        return Measurement(*np.zeros((4, 1)))

    @property
    def coordinates(self) -> Array:
        return np.zeros(1)

    def advance(self, duration: float, effort: Array) -> None:
        self.log.append((duration, float(effort[0])))


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (0.0, [(1.0, 0.0), (1.0, 1.0), (1.0, 2.0)]),
        (0.25, [(0.25, 0.0), (0.75, 0.0), (0.25, 0.0), (0.75, 1.0), (0.25, 1.0), (0.75, 2.0)]),
        (2.0, [(1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]),
        (1.5, [(0.5, 0.0), (0.5, 0.0), (0.5, 0.0), (0.5, 0.0), (0.5, 0.0), (0.5, 1.0)]),
    ],
)
def test_efforts_act_when_their_delay_has_passed(delay: float, expected: list[tuple[float, float]]) -> None:
    recorder = Recorder()
    done: list[float] = []
    run_loop(recorder, lambda t, m: np.array([t]), 3.0, 1.0, delay=delay, progress=done.append)
    assert recorder.log == expected
    assert done == [0.25, 0.5, 0.75, 1.0]


def test_limits_are_kept_and_reported() -> None:
    limiter = EffortLimiter([10.0, 10.0], [100.0, np.inf])
    first = limiter(np.array([5.0, -30.0]), 0.01)
    assert first.effort.tolist() == [5.0, -10.0]
    assert first.saturated.tolist() == [False, True]
    second = limiter(np.array([9.0, 30.0]), 0.01)
    assert second.effort.tolist() == [6.0, 10.0]
    assert second.rate_limited.tolist() == [True, False]
    assert second.saturated.tolist() == [False, True]
    assert_refused(
        (lambda: limiter(np.array([1.0, np.nan]), 0.01), "joint 1 is not finite"),
        (lambda: EffortLimiter(1.0, 0.0), "rate limit"),
    )


def test_a_step_may_be_allowed_whatever_the_rate() -> None:
    limiter = EffortLimiter([50.0, 50.0], [100.0, 5000.0], step=2.0)
    limiter(np.zeros(2), 0.0)
    assert limiter(np.full(2, 30.0), 1e-3).effort.tolist() == [2.0, 5.0]
    assert limiter(np.full(2, 30.0), 1e-4).effort.tolist() == pytest.approx([2.2, 5.5])
    assert limiter(np.full(2, 30.0), 0.1).effort.tolist() == pytest.approx([12.2, 30.0])


def test_a_loop_counts_what_its_limiter_cuts(panda: Robot) -> None:
    simulation = RobotSimulation(panda, START)
    limiter = EffortLimiter(panda.limits.effort, panda.limits.effort_rate)
    record = run_loop(simulation, lambda t, m: np.full(7, 100.0 * (t > 5e-3)), 0.01, 1e-3, limiter=limiter)
    assert record.times.shape == (11,)
    assert record.saturated == record.rate_limited == 5
    assert np.abs(np.diff(record.efforts, axis=0)).max() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("period", "delay", "duration"), [(0.0, 0.0, 1.0), (1.0, -1.0, 1.0), (1.0, 0.0, np.inf)]
)
def test_impossible_times_are_refused(period: float, delay: float, duration: float) -> None:
    refused(lambda: run_loop(Recorder(), lambda t, m: np.zeros(1), duration, period, delay=delay), "period")


def test_a_state_must_fit(panda: Robot) -> None:
    simulation = RobotSimulation(panda, START)
    refused(lambda: setattr(simulation, "state", np.zeros(14)), misshapen("the state", (14,), "(28,)"))
    refused(lambda: RobotSimulation(panda, np.zeros((3, 7))), "snap")
