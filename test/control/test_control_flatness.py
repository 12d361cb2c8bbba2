"""Feedback linearisation and regulation in closed loop, against the linear dynamics that were asked for."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from refusals import assert_refused, misshapen, refused
from sweeps import some

from hodyn_ros import ConvergenceError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.feedback_linearisation import (
    FeedbackLinearisation,
    butterworth_poles,
    gains_from_poles,
    relative_degree,
)
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.passivity_control import PassivityRegulator
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, VariableStiffnessSpec, series_elastic
from hodyn_ros.simulation.model_errors import with_scaled_inertia, with_stiffness
from hodyn_ros.simulation.plant import Plant
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.trajectory import read_trajectory

pytestmark = pytest.mark.thorough


POLES = [-12.0, -17.0 + 9.0j, -17.0 - 9.0j, -30.0]
FRICTION = FrictionSpec(1.0, 1.5, 0.2)
MOTION = read_trajectory(share.find("config", "panda_validation.yaml"))


def panda_with(**figures: object) -> Robot:
    robot = Robot.load(share.find("config", "panda.yaml"))
    specs = [DriveSpec(s.stiffness, s.motor_inertia, **figures) for s in robot.drive_train.specs]  # type: ignore[arg-type]
    return robot.with_drives(specs)


def rigid_panda() -> Robot:
    robot = Robot.load(share.find("config", "panda.yaml"))
    return robot.with_drives(series_elastic(np.full(7, np.inf), robot.drive_train.motor_inertia))


ROBOTS: dict[str, Callable[[], Robot]] = {
    "linear": panda_with,
    "hardening": lambda: panda_with(cubic_stiffness=1e6),
    "with friction": lambda: panda_with(motor_friction=FRICTION, link_friction=FRICTION),
    "damped": lambda: panda_with(spring_damping=30.0),
    "rigid": rigid_panda,
}
robot_named = cache(lambda name: ROBOTS[name]())


POLES_BY_DEGREE = {4: POLES, 3: POLES[:3], 2: POLES[1:3]}


@pytest.mark.parametrize("name", some(ROBOTS, "with friction", "damped"))
def test_with_exact_model_and_state_tracking_is_that_of_the_integrator(name: str) -> None:
    robot = robot_named(name)
    law = FeedbackLinearisation.from_poles(robot, POLES_BY_DEGREE[relative_degree(robot)])
    simulation = RobotSimulation(robot, MOTION.sample(0.0, 6))
    times = np.linspace(0.02, 0.28, 14)
    states = simulation.follow(
        lambda t, state: law.efforts(MOTION.sample(t, 4), state), 0.3, times, method="DOP853", rtol=1e-9
    )
    errors = states[:, :7] - MOTION.sample(times, 0)[:, 0]
    assert np.abs(errors).max() <= 1e-9  # rad


@pytest.mark.parametrize("name", some(ROBOTS, *(name for name in ROBOTS if name != "linear")))
def test_errors_have_the_poles_asked_for(name: str) -> None:
    """Disturb the start, and fit the response: its modes decay and turn as the poles say, to 1 %."""
    robot = robot_named(name)
    degree = relative_degree(robot)
    poles = POLES_BY_DEGREE[degree]
    law = FeedbackLinearisation.from_poles(robot, poles)
    simulation = RobotSimulation(robot, MOTION.sample(0.0, 6))
    state = simulation.state.copy()
    state[:7] += 1e-4 * np.array([1.0, -2.0, 1.5, 1.0, -1.0, 2.0, -1.5])  # links alone
    simulation.state = state
    step, count = 0.01, 24
    times = step * np.arange(1, count + 1)
    states = simulation.follow(
        lambda t, x: law.efforts(MOTION.sample(t, 4), x),
        times[-1] + 0.01,
        times,
        method="DOP853",
        rtol=1e-8,
        atol=1e-11,
    )
    errors = states[:, :7] - MOTION.sample(times, 0)[:, 0]
    # each sample is a linear combination of the `degree` ones before, with the same weights for all joints
    windows = np.concatenate([errors[i : count - degree + i].reshape(-1, 1) for i in range(degree)], axis=1)
    weights, *_ = np.linalg.lstsq(windows, errors[degree:].reshape(-1), rcond=None)
    roots = np.roots([1.0, *-weights[::-1]])
    measured = np.log(roots.astype(complex)) / step
    for pole in poles:
        assert np.abs(measured - pole).min() <= 0.01 * abs(pole)


def test_the_gains_are_those_of_the_polynomial() -> None:
    gains = gains_from_poles(POLES, 4)
    for pole in POLES:
        assert abs(pole**4 + sum(k * pole**i for i, k in enumerate(gains))) <= 1e-10 * abs(pole) ** 4
    circle = butterworth_poles(4, 10.0)
    assert np.allclose(np.abs(circle), 10.0, rtol=1e-14)
    # maximally flat: s^8 + w^8 is the polynomial times its mirror image
    mirrored = np.poly(np.concatenate([circle, -circle]))
    assert np.allclose(mirrored, [1, 0, 0, 0, 0, 0, 0, 0, 1e8], rtol=1e-12, atol=1e-6)


def test_drives_that_no_static_feedback_linearises_and_bad_poles_are_refused() -> None:
    robot = robot_named("linear")
    stiffness = robot.drive_train.stiffness.copy()
    stiffness[2] = np.inf
    mixed = robot.with_drives(series_elastic(stiffness, robot.drive_train.motor_inertia))
    pair, standing = VariableStiffnessSpec("agonist_antagonist", 1e5), Measurement(*np.zeros((4, 7)))
    assert_refused(
        (lambda: relative_degree(mixed), "joint 'panda_joint3' reacts in derivative 2"),
        (lambda: relative_degree(panda_with(variable_stiffness=pair)), "variable stiffness"),
        (lambda: relative_degree(Robot(robot.model)), "no drives"),
        (lambda: FeedbackLinearisation.from_poles(robot, [-1.0, -2.0]), "4 poles are needed"),
        (lambda: FeedbackLinearisation.from_poles(robot, [-1.0, -2.0, -3.0, 0.0]), "negative real parts"),
        (lambda: FeedbackLinearisation.from_poles(robot, [-1.0, -2.0, -3.0 + 1j, -4.0]), "conjugates"),
        (lambda: FeedbackLinearisation.from_poles(robot, [-1.0, -2.0, -3.0, np.nan]), "finite"),
        (lambda: FeedbackLinearisation.from_poles(robot, POLES).efforts(np.zeros((4, 7)), standing),
         misshapen("the desired motion", (4, 7), "(5, 7): positions and derivatives up to 4")),
    )  # fmt: skip


# regulation

GOAL = np.array([0.3, -0.4, 0.2, -1.7, 0.2, 1.4, 0.1])
START = np.array([0.1, -0.3, 0.2, -1.9, 0.1, 1.7, 0.3])


def soft_panda() -> Robot:
    """Return the Panda with springs so soft that gravity bends them by centimetres."""
    return with_stiffness(robot_named("linear"), 900.0)


def test_links_rest_exactly_at_their_goal_and_return_to_it() -> None:
    """By differences of the equations; with motors that are made to appear lighter, below as they are.

    test_loop_control.py lets a robot go there.
    """
    robot, at_rest = soft_panda(), np.zeros((5, 7))
    law, plant = PassivityRegulator(robot, stiffness=400.0, damping=60.0, motor_inertia=0.1), Plant(robot)
    at_rest[0] = GOAL

    def rates(x: Array) -> Array:
        return plant.rates(x, law.regulate(GOAL, plant.unpack(x)).effort)

    state, step = plant.consistent_state(at_rest), 1e-6
    assert np.abs(plant.unpack(state).motor_position - GOAL).max() > 0.01  # gravity bends the springs
    np.testing.assert_allclose(rates(state), 0.0, atol=1e-8)
    columns = [(rates(state + step * e) - rates(state - step * e)) / (2.0 * step) for e in np.eye(plant.size)]
    assert np.linalg.eigvals(np.stack(columns, axis=1)).real.max() < -2.0  # [1/s]


def test_regulation_takes_energy_out() -> None:
    """The storage function of the passivity proof never rises."""
    robot = soft_panda()
    law = PassivityRegulator(robot, stiffness=400.0, damping=60.0)
    compliance, inertia = 1.0 / robot.drive_train.stiffness, robot.drive_train.motor_inertia
    gravity_of = robot.compile(0)

    def torques(q: Array, qdd: Array, qd: Array) -> Array:
        return np.asarray(gravity_of(np.stack([q, qd, qdd]))[0])

    def storage(m: Measurement) -> float:
        zero = np.zeros(7)
        gravity = torques(m.position, zero, zero)
        momentum = np.array([torques(m.position, row, zero) - gravity for row in np.eye(7)]) @ m.velocity
        kinetic = 0.5 * m.velocity @ momentum + 0.5 * inertia @ m.motor_velocity**2
        spring = 0.5 / compliance @ (m.motor_position - m.position) ** 2
        # potential of gravity of the links, against that of the links at rest with these motors
        return float(kinetic + spring + potential(m.position) - resting(m.motor_position) + motors(m))

    def potential(q: Array) -> float:
        poses = robot.forward_kinematics(q[None]).poses
        centres = [p[:3, :3] @ c + p[:3, 3] for p, c in zip(poses, robot.model.coms)]
        return float(-sum(m * c @ robot.gravity for m, c in zip(robot.model.masses, centres)))

    def resting(theta: Array) -> float:
        q = law.resting_links(theta)
        return float(potential(q) + 0.5 / compliance @ (theta - q) ** 2)

    goal_motors = GOAL + compliance * torques(GOAL, np.zeros(7), np.zeros(7))

    def motors(m: Measurement) -> float:
        return float(0.5 * law.stiffness @ (goal_motors - m.motor_position) ** 2)

    simulation = RobotSimulation(robot, START)
    times = np.linspace(0.01, 0.29, 15)
    states = simulation.follow(
        lambda t, state: law.regulate(GOAL, state).effort, 0.3, times, rtol=1e-9, atol=1e-11
    )
    levels = np.array([storage(simulation.plant.unpack(state)) for state in states])
    assert levels[0] > 3.0 * levels[-1] > 0.0
    assert (np.diff(levels) <= 1e-8 * levels[0]).all()


def test_links_rest_where_springs_and_gravity_balance() -> None:
    robot = soft_panda()
    law = PassivityRegulator(robot, 400.0, 60.0)
    q = law.resting_links(GOAL)
    gravity = robot.inverse_dynamics(np.stack([q, np.zeros(7), np.zeros(7)]))[0]
    assert np.allclose(900.0 * (GOAL - q), gravity, rtol=1e-10, atol=1e-9)
    # which is what the regulator counts on, wherever the links are: gravity there would not be passive
    swinging = Measurement(GOAL - 0.2, np.ones(7), GOAL, np.zeros(7))
    found = law.regulate(GOAL, swinging)
    held = robot.inverse_dynamics(np.stack([GOAL, np.zeros(7), np.zeros(7)]))[0]
    assert np.allclose(found.gravity, gravity, rtol=1e-10, atol=1e-9)
    assert np.allclose(found.effort, 400.0 * held / 900.0 + gravity, rtol=1e-10, atol=1e-9)
    limp = with_stiffness(robot, 8.0)
    assert_refused(
        (lambda: PassivityRegulator(limp, 400.0, 60.0).resting_links(GOAL),
         "too soft for gravity", ConvergenceError),
        (lambda: PassivityRegulator(robot, 400.0, -1.0), "damping of joint 'panda_joint1' is -1"),
        (lambda: PassivityRegulator(robot_named("hardening"), 400.0, 60.0), "linear springs"),
    )  # fmt: skip


def test_other_inertias_make_another_robot() -> None:
    robot = robot_named("linear")
    heavier = with_scaled_inertia(robot, 1.05)
    q = MOTION.sample(0.4, 4)
    assert np.allclose(heavier.inverse_dynamics(q), 1.05 * robot.inverse_dynamics(q), rtol=1e-12)
    refused(lambda: with_scaled_inertia(robot, -1.0), "positive factors")
