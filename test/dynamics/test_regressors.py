"""Regressors of any order, and derivatives of the dynamic matrices by parameter."""

import numpy as np
import pytest
from case_robots import closeness, robot_of
from oracles.cases import make_case
from oracles.mp_bodies import parameters

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.formulations.body_jacobians import joint_motion
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough

ORDER = 1


def test_parameters_are_moments_of_mass() -> None:
    case = make_case(1, 3, 0)
    robot, _ = robot_of(case)
    np.testing.assert_allclose(robot.dynamic_parameters(), parameters(case.tree), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("floating", [False, True])
def test_compiled_forms_are_the_published_ones(floating: bool) -> None:
    case = make_case(7, 3 - floating, ORDER, floating, representation="body_fixed")
    robot, base = robot_of(case)
    tree = JointTree.of(robot.model)
    group = GroupRobot(tree)
    motion = joint_motion(tree, case.q[:-1], base)
    for found, right in zip(
        robot.parameter_derivatives(case.q[:-1], base), group.parameter_derivatives(motion)
    ):
        assert closeness(found, right) < 1e-13
    reference = np.random.default_rng(2).uniform(-1.0, 1.0, (ORDER + 2, case.q.shape[1] + 6 * floating))
    joints = np.vstack([np.zeros((1, case.q.shape[1])), reference[:, 6 * floating :]])
    twists = reference[:, :6] if floating else None
    regressor = robot.slotine_li_regressor(case.q[:-1], joints, base, twists)
    assert closeness(regressor, group.slotine_li_regressor(motion, reference)) < 1e-13


def test_panda_has_43_identifiable_parameters() -> None:
    # Gaz et al. (2019) count as many dynamic coefficients of this arm
    robot = Robot.load(share.find("config", "panda.yaml"))
    rng = np.random.default_rng(0)
    rows = [robot.regressor(rng.uniform(-1.0, 1.0, size=(3, 7)))[0] for _ in range(40)]
    assert np.linalg.matrix_rank(np.vstack(rows), tol=1e-9) == 43
