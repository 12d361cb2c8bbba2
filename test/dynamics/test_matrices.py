"""Dynamic matrices, Jacobians, centre of mass and momentum, with time derivatives."""

import numpy as np
import pytest
from case_robots import closeness, robot_of
from oracles import mp_dynamics as mp
from oracles import mp_groups
from oracles.cases import Case, make_case
from sweeps import THOROUGH, some

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.formulations.body_jacobians import joint_motion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import wrenches_to_body
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model import joint_groups
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough

ORDER = 2


def forces(robot: Robot, q: np.ndarray, base: BaseMotion | None) -> np.ndarray:
    """Return the forces (order + 1, m), the body-fixed base wrench first, by the recursion of part 2."""
    if base is None:
        return robot.inverse_dynamics(q, formulation="body_fixed")
    wrench, torques = robot.inverse_dynamics(q, base, formulation="body_fixed")
    motion = base.in_representation("body_fixed")
    return np.hstack([wrenches_to_body(motion.pose, motion.twists, wrench), torques])


def velocities(q: np.ndarray, base: BaseMotion | None) -> np.ndarray:
    return (
        q[1:]
        if base is None
        else np.hstack([base.in_representation("body_fixed").twists[: len(q) - 1], q[1:]])
    )


CASES = [
    pytest.param(
        make_case(seed, 3, 1 if floating and not THOROUGH else ORDER, floating, representation=frame),
        id=f"{'floating' if floating else 'fixed'}{seed}",
    )
    for seed, floating, frame in (
        *some([(1, False, "spatial"), (2, False, "spatial"), (4, True, "body_fixed")], (2, False, "spatial")),
        (3, True, "spatial"),
    )
]


@pytest.mark.parametrize("case", CASES)
def test_coefficients_times_motion_are_the_torques_of_the_recursion(case: Case) -> None:
    (robot, base), order = robot_of(case), case.order
    coefficients = robot.coefficient_matrices(case.q[:-1], base)
    assert coefficients.shape[:2] == (order + 1, order + 3)
    rates = velocities(case.q, base)
    found = np.einsum("rkij,kj->ri", coefficients[:, 1:], rates)
    found += robot.gravity_torque(case.q[: order + 1], base)
    assert closeness(found, forces(robot, case.q, base)) < 1e-10
    assert not coefficients[:, 0].any()


@pytest.mark.parametrize("case", CASES)
def test_state_derivatives_add_up_to_time_derivatives(case: Case) -> None:
    robot, base = robot_of(case)
    found = robot.matrix_derivatives(case.q[:-1], base)
    tree = JointTree.of(robot.model)
    mass, coriolis, gravity = GroupRobot(tree).dynamic_matrices(joint_motion(tree, case.q, base))
    rates = velocities(case.q, base)
    for r in range(case.order + 1):
        along = [
            product_derivative([d.T for d in stack], rates, r, np.matmul).T
            for stack in (found.mass_by_position, found.gravity_by_position)
        ]
        assert closeness(along[0][None], mass[r + 1][None]) < 1e-11
        assert closeness(along[1][None], gravity[r + 1][None]) < 1e-11
        change = product_derivative([d.T for d in found.coriolis_by_position], rates, r, np.matmul).T
        change = (
            change + product_derivative([d.T for d in found.coriolis_by_velocity], rates[1:], r, np.matmul).T
        )
        assert closeness(change[None], coriolis[r + 1][None]) < 1e-11


def test_matrices_that_are_the_same_everywhere_do_not_change() -> None:
    """Of axes that slide, no matrix depends on positions, and none of the code on what it is given."""
    slides = [[0.0, 0.0, 0.0, *axis] for axis in np.eye(3)]
    robot = Robot.from_screws(
        [-1, 0, 1], slides, [np.eye(4)] * 3, np.ones(3), np.ones((3, 3)), [np.eye(3)] * 3
    )
    found = robot.matrix_derivatives(np.ones((3, 3)))
    assert [change.shape for change in vars(found).values()] == [*[(2, 3, 3, 3)] * 3, (2, 3, 3)]
    assert not any(change.any() for change in vars(found).values())


def test_large_trees_fall_back_on_the_published_form() -> None:
    case = make_case(8, 30, 1)
    robot, _ = robot_of(case)
    mass, coriolis, _ = robot.dynamic_matrices(case.q[:-1])
    compiled = robot.mass_matrix(case.q[:1])
    assert closeness(compiled, mass[:1]) < 1e-12
    skew = mass[1] - 2.0 * coriolis[0]
    assert np.abs(skew + skew.T).max() <= 1e-12 * np.abs(mass[1]).max()


@pytest.fixture(scope="module")
def group_robot() -> GroupRobot:
    rng = np.random.default_rng(5)
    subspaces = [
        joint_groups.free(),
        joint_groups.spherical([0.1, 0.2, 0.3]),
        joint_groups.planar([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
        joint_groups.revolute([1.0, 2.0, 3.0], [0.1, 0.0, 0.2], pitch=0.1),
        joint_groups.cylindrical([1.0, 0.0, 1.0], [0.0, 0.1, 0.2]),
        joint_groups.prismatic([0.0, 1.0, 2.0]),
    ]
    n = len(subspaces)
    roots = rng.normal(size=(n, 3, 3))
    return GroupRobot(
        JointTree.build(
            [-1, 0, 1, 1, 3, 2],
            subspaces,
            exp(rng.normal(size=(n, 6))),
            rng.uniform(1.0, 3.0, n),
            0.1 * rng.normal(size=(n, 3)),
            roots @ roots.transpose(0, 2, 1) + np.eye(3),
        )
    )


def group_motion(robot: GroupRobot, orders: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    m = robot.tree.n_velocities
    return robot.tree.joint_poses(rng.normal(size=m)), rng.uniform(-1.0, 1.0, size=(orders, m))


def test_joints_on_groups_are_exact(group_robot: GroupRobot) -> None:
    poses, rates = group_motion(group_robot, ORDER + 2)
    assert group_robot.tree.n_velocities == 16
    motion = group_robot.motion(poses, rates)
    right = mp.to_float(mp_groups.inverse_dynamics(group_robot.tree, poses, rates))
    assert closeness(group_robot.inverse_dynamics(motion), right) < 1e-12
    regressor = group_robot.regressor(motion)
    assert closeness(regressor @ group_robot.dynamic_parameters(), right) < 1e-12
    mass, coriolis, gravity = group_robot.dynamic_matrices(motion)
    skew = mass[1] - 2.0 * coriolis[0]
    assert np.abs(skew + skew.T).max() <= 1e-12 * np.abs(mass[1]).max()
    found = np.einsum(
        "rkij,kj->ri", group_robot.coefficient_matrices(motion)[: ORDER + 1, 1 : ORDER + 3], rates
    )
    assert closeness(found + gravity[: ORDER + 1], right) < 1e-12
    com, jacobian = group_robot.com(motion), group_robot.com_jacobian(motion)
    moved = np.stack([product_derivative(jacobian, rates, r) for r in range(len(rates))])
    assert closeness(moved, com[1:]) < 1e-12


def test_trees_of_simple_joints_are_robots() -> None:
    case = make_case(3, 3, 1, True, representation="body_fixed")
    robot, base = robot_of(case)
    assert base is not None
    tree = JointTree.of(robot.model)
    group = GroupRobot(tree)
    poses = [base.pose, *tree.joint_poses(np.concatenate([np.zeros(6), case.q[0]]))[1:]]
    motion = group.motion(np.array(poses), velocities(case.q, base))
    assert closeness(group.inverse_dynamics(motion), forces(robot, case.q, base)) < 1e-12
    for name in ("mass_matrix", "com", "centroidal_momentum", "regressor", "inverse_dynamics_derivatives"):
        assert closeness(getattr(group, name)(motion), getattr(robot, name)(case.q, base)) < 1e-11, name
    assert (
        closeness(group.jacobian(motion, body="body2"), robot.jacobian(case.q, body="body2", base=base))
        < 1e-12
    )
