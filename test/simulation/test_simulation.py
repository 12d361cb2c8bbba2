"""The simulated robot against SciPy's integrators over Pinocchio, and against what physics demands of it."""

import numpy as np
import pytest
from oracles import pinocchio_models
from oracles.random_trees import Tree, random_tree
from refusals import assert_refused, misshapen, refused
from scipy.integrate import solve_ivp

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.model.drive_spec import series_elastic
from hodyn_ros.simulation.simulation import RobotSimulation

pytestmark = pytest.mark.thorough


PANDA_START = np.array([0.1, -0.3, 0.2, -1.9, 0.1, 1.7, 0.3])
# Efforts beside gravity [N.m], large enough to turn the arm visibly in a tenth of a second.
PUSH = np.array([20.0, -15.0, 10.0, 8.0, 4.0, -3.0, 2.0])


def with_drives(robot: Robot, stiffness: Array, motor_inertia: Array) -> Robot:
    return robot.with_drives(series_elastic(stiffness, motor_inertia))


def accelerations(tree: Tree, robot: Robot, state: Array, effort: Array, damping: float) -> Array:
    """Return link and motor accelerations (2, n) by Pinocchio's matrices, independent of the recursions."""
    q, qd, theta, thetad = state
    stiffness, inertia = robot.require_drives().stiffness, robot.require_drives().motor_inertia
    elastic = np.isfinite(stiffness)
    spring = np.where(elastic, stiffness, 0.0) * (theta - q) + damping * (thetad - qd)
    spring = np.where(elastic, spring, effort)
    mass = pinocchio_models.mass_matrix(tree, q) + np.diag(np.where(elastic, 0.0, inertia))
    _, bias = pinocchio_models.inverse_dynamics(tree, np.stack([q, qd, np.zeros_like(q)]))
    qdd = np.linalg.solve(mass, spring - bias)
    motor = np.where(elastic, (effort - spring) / np.where(elastic, inertia, 1.0), qdd)
    return np.stack([qdd, motor])


def exact(robot: Robot, start: Array, effort: Array, duration: float, damping: float = 0.0) -> Array:
    """Integrate a state (4, n) with DOP853 at its tightest."""
    tree = Tree.of(robot.model)

    def rates(_: float, flat: Array) -> Array:
        state = flat.reshape(4, -1)
        qdd, motor = accelerations(tree, robot, state, effort, damping)
        return np.concatenate([state[1], qdd, state[3], motor])

    solution = solve_ivp(rates, (0.0, duration), start.ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
    assert solution.success
    return np.asarray(solution.y[:, -1].reshape(4, -1))


def state_of(simulation: RobotSimulation) -> Array:
    return np.stack(
        [simulation.position, simulation.velocity, simulation.motor_position, simulation.motor_velocity]
    )


def energy(robot: Robot, state: Array) -> float:
    """Return the energy of links, motors, springs and gravity [J], from the poses of the bodies."""
    import pinocchio

    q, qd, theta, thetad = state
    tree = Tree.of(robot.model)
    twin = pinocchio_models.build(tree)
    data = twin.model.createData()
    configuration = np.zeros(twin.model.nq)
    configuration[twin.columns] = q
    potential = pinocchio.computePotentialEnergy(twin.model, data, configuration)
    kinetic = 0.5 * qd @ pinocchio_models.mass_matrix(tree, q) @ qd
    motors = 0.5 * robot.drive_train.motor_inertia @ thetad**2
    springs = (
        0.5
        * np.where(np.isfinite(robot.drive_train.stiffness), robot.drive_train.stiffness, 0.0)
        @ (theta - q) ** 2
    )
    return float(potential + kinetic + motors + springs)


def test_panda_moves_as_the_integrator_of_scipy_says(panda: Robot) -> None:
    simulation = RobotSimulation(panda, PANDA_START, velocity=0.2 * PUSH / 20.0, step_limit=0.02)
    effort = simulation.gravity_effort() + PUSH
    expected = exact(panda, state_of(simulation), effort, 0.05)
    for _ in range(10):
        simulation.advance(0.005, effort)
    state = state_of(simulation)
    assert np.abs(state[0] - PANDA_START).max() > 0.01  # it has moved
    np.testing.assert_allclose(state[[0, 2]], expected[[0, 2]], rtol=0, atol=1e-9)
    np.testing.assert_allclose(state[[1, 3]], expected[[1, 3]], rtol=0, atol=1e-7)
    assert simulation.time == pytest.approx(0.05, rel=1e-12)


def test_rigid_joints_and_dampers_beside_springs(panda: Robot) -> None:
    rigid, train = [1, 4], panda.require_drives()
    stiffness = train.stiffness.copy()
    stiffness[rigid] = np.inf
    robot, expected = with_drives(panda, stiffness, train.motor_inertia), None
    for compiled in (True, False):
        simulation = RobotSimulation(robot, PANDA_START, damping=3.0, step_limit=0.02, compiled=compiled)
        effort = simulation.gravity_effort() + PUSH
        start = state_of(simulation)
        simulation.advance(0.02, effort)
        expected = exact(robot, start, effort, 0.02, damping=3.0) if expected is None else expected
        state = state_of(simulation)
        np.testing.assert_allclose(state[[0, 2]], expected[[0, 2]], rtol=0, atol=1e-9)
        np.testing.assert_allclose(state[[1, 3]], expected[[1, 3]], rtol=0, atol=1e-7)
        np.testing.assert_allclose(state[2:, rigid], state[:2, rigid], rtol=0, atol=1e-13)


def test_branched_robot_with_prismatic_joints() -> None:
    tree = random_tree(np.random.default_rng(11), 6, branching=0.5)
    robot = with_drives(
        Robot.from_screws(**tree.arguments()),
        np.array([900.0, np.inf, 400.0, 700.0, 500.0, np.inf]),
        np.array([0.5, 0.2, 0.3, 0.1, 0.4, 0.0]),
    )
    rng = np.random.default_rng(3)
    simulation = RobotSimulation(
        robot, 0.2 * rng.normal(size=6), velocity=0.2 * rng.normal(size=6), step_limit=0.01
    )
    effort = simulation.gravity_effort() + rng.normal(size=6)
    expected = exact(robot, state_of(simulation), effort, 0.2)
    simulation.advance(0.2, effort)
    np.testing.assert_allclose(state_of(simulation), expected, rtol=0, atol=1e-8)


def test_steps_are_of_fourth_order(panda: Robot) -> None:
    errors, expected = [], None
    for step_limit in (0.1, 0.05, 0.025):
        simulation = RobotSimulation(panda, PANDA_START, step_limit=step_limit)
        effort = simulation.gravity_effort() + PUSH
        start = state_of(simulation)
        simulation.advance(0.02, effort)
        expected = exact(panda, start, effort, 0.02) if expected is None else expected
        errors.append(np.abs(state_of(simulation) - expected).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ((ratios > 14.0) & (ratios < 18.0)).all(), f"halving the step divides the error by {ratios}"


def test_default_steps_follow_a_motion_of_a_real_arm(panda: Robot) -> None:
    """At 1 kHz with steps of torque a thousand times those of a smooth feedforward."""
    simulation = RobotSimulation(panda, PANDA_START)
    fine = RobotSimulation(panda, PANDA_START, step_limit=0.02)
    hold = simulation.gravity_effort()
    for k in range(300):
        effort = hold + PUSH * np.sin(0.02 * k)
        for each in (simulation, fine):
            each.advance(0.001, effort)
    assert np.abs(fine.position - PANDA_START).max() > 0.05
    np.testing.assert_allclose(simulation.position, fine.position, rtol=0, atol=1e-6)


def test_starts_at_rest_and_stays_there(panda: Robot) -> None:
    simulation = RobotSimulation(panda, PANDA_START)
    start = state_of(simulation)
    _, gravity = pinocchio_models.inverse_dynamics(
        Tree.of(panda.model), np.stack([PANDA_START, *np.zeros((2, 7))])
    )
    np.testing.assert_allclose(
        start[2] - start[0], gravity / panda.drive_train.stiffness, rtol=1e-9, atol=1e-12
    )
    effort = simulation.gravity_effort()
    np.testing.assert_allclose(effort, gravity, rtol=1e-11, atol=1e-11)
    for _ in range(1000):
        simulation.advance(0.001, effort)
    np.testing.assert_allclose(state_of(simulation), start, rtol=0, atol=1e-11)


def test_link_effort_is_the_spring_or_the_motor_effort(panda: Robot) -> None:
    stiffness = panda.drive_train.stiffness.copy()
    stiffness[0] = np.inf
    simulation = RobotSimulation(with_drives(panda, stiffness, panda.drive_train.motor_inertia), PANDA_START)
    effort = simulation.gravity_effort() + PUSH
    simulation.advance(0.002, effort)
    state = state_of(simulation)
    np.testing.assert_array_equal(simulation.motor_effort, effort)
    assert simulation.link_effort[0] == effort[0]
    spring = stiffness[1:] * (state[2] - state[0])[1:]
    np.testing.assert_allclose(simulation.link_effort[1:], spring, rtol=1e-12)


def test_highest_frequency_of_one_joint_by_hand() -> None:
    # a point mass of 2 kg at 0.5 m: M = 0.5 kg m^2; w^2 = K (1/B + 1/M) = 1000 (1/0.25 + 1/0.5)
    arm = Robot.from_screws(
        [-1], [[0, 0, 1, 0, 0, 0]], [np.eye(4)], [2.0], [[0.5, 0, 0]], [1e-9 * np.eye(3)], gravity=(0, 0, 0)
    )
    simulation = RobotSimulation(with_drives(arm, np.array([1000.0]), np.array([0.25])), [0.3])
    assert simulation.highest_frequency() == pytest.approx(np.sqrt(6000.0), rel=1e-8)
    rigid = RobotSimulation(arm, [0.3])
    assert rigid.highest_frequency() == 0.0
    rigid.advance(1.0, [0.1])
    assert rigid.position[0] == pytest.approx(0.3 + 0.5 * 0.1 / 0.5, rel=1e-7)


@pytest.mark.parametrize(
    ("duration", "effort", "words"),
    [
        (-0.001, np.zeros(7), "duration"),
        (np.nan, np.zeros(7), "duration"),
        (0.001, np.zeros(6), misshapen("motor_effort", (6,), "(7,)")),
        (0.001, np.array([0, 0, np.nan, 0, 0, 0, 0.0]), "panda_joint3"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    panda: Robot, duration: float, effort: Array, words: str
) -> None:
    simulation = RobotSimulation(panda, PANDA_START)
    before = state_of(simulation)
    refused(lambda: simulation.advance(duration, effort), words)
    np.testing.assert_array_equal(state_of(simulation), before)
    assert simulation.time == 0.0


def test_bad_starts_are_refused(panda: Robot) -> None:
    floating = random_tree(np.random.default_rng(0), 3, floating_base=True)
    assert_refused(
        (lambda: RobotSimulation(panda, np.zeros(6)), misshapen("position", (6,), "(7,)")),
        (lambda: RobotSimulation(panda, np.zeros(7), velocity=np.full(7, np.inf)), "velocity holds inf"),
        (lambda: RobotSimulation(panda, np.zeros(7), damping=[0, -1, 0, 0, 0, 0, 0]),
         "not negative, found -1 of joint 'panda_joint2'"),
        (lambda: RobotSimulation(panda, np.zeros(7), step_limit=0.0), "step_limit"),
        (lambda: RobotSimulation(Robot.from_screws(**floating.arguments()), np.zeros(2)), "floating base"),
    )  # fmt: skip
