"""Partial derivatives of Q^(r) with respect to the motion and all its derivatives; linearised dynamics."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from case_robots import robot_of
from oracles import mp_dynamics as mp
from oracles import mp_groups
from oracles.cases import make_case
from oracles.differences import derivative
from oracles.motions import Base

from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model import joint_groups
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough

ORDER = 2


def assert_exact(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    """Compare partial derivatives (order + 1, order + 3, m, m), each block with the largest of its order."""
    assert found.shape == expected.shape
    scale = np.abs(expected).max(axis=(1, 2, 3), keepdims=True)
    assert (np.abs(found - expected) <= tolerance * scale).all(), np.abs((found - expected) / scale).max(
        axis=(2, 3)
    )


def test_partials_of_group_joints_are_exact() -> None:
    rng = np.random.default_rng(2)
    subspaces = [joint_groups.spherical([0.1, 0.0, 0.2]), joint_groups.planar([0, 0, 1], [1, 0, 0])]
    tree = JointTree.build(
        [-1, 0], subspaces, exp(rng.normal(size=(2, 6))), [1.0, 2.0], 0.1 * rng.normal(size=(2, 3)),
        [np.diag([1.0, 1.1, 1.2]), np.diag([0.5, 0.6, 0.7])],
    )  # fmt: skip
    robot, m = GroupRobot(tree), tree.n_velocities
    poses, rates = tree.joint_poses(rng.normal(size=m)), rng.uniform(-1.0, 1.0, size=(ORDER + 2, m))

    def beside(k: int, i: int, step: Any) -> mp.Exact:
        moved, changed = [mp.rigid(pose) for pose in poses], mp.exact(rates)
        if k > 0:
            changed[k - 1, i] += step
        else:
            body = next(b for b, columns in enumerate(tree.columns) if columns.start <= i < columns.stop)
            twist = np.zeros((12, 6), dtype=object) * mp.ONE
            twist[0] = mp.exact(tree.subspaces[body][:, i - tree.columns[body].start]) * step
            path = mp.base_poses(Base(np.eye(4), twist, "body_fixed"), twist, 12)
            moved[body] = moved[body] @ np.vstack([path.sum(axis=0), [0, 0, 0, 1]])
        return mp_groups.inverse_dynamics(tree, moved, changed)

    right = np.empty((ORDER + 1, ORDER + 3, m, m))
    for k in range(ORDER + 3):
        for i in range(m):
            right[:, k, :, i] = derivative(partial(beside, k, i))
    assert_exact(robot.inverse_dynamics_derivatives(robot.motion(poses, rates)), right)


@pytest.mark.parametrize("floating", [False, True])
def test_linearised_dynamics_are_the_first_of_the_partials(floating: bool) -> None:
    case = make_case(6, 3, 0, floating, representation="body_fixed")
    robot, base = robot_of(case)
    torques = np.linspace(-1.0, 1.0, case.tree.n_joints)
    A, B = robot.linearised_dynamics(case.q[:2], torques, base)
    by_position, by_rate, by_torque = robot.forward_dynamics_derivatives(case.q[:2], torques[None], base)[0]
    m = len(by_rate)
    np.testing.assert_array_equal(A[m:], np.hstack([by_position, by_rate]))
    np.testing.assert_array_equal(A[:m, m:], np.eye(m))
    np.testing.assert_array_equal(B[m:], by_torque[:, 6 * floating :])
    assert not B[:m].any() and (floating or not A[:m, :m].any())


def test_linearised_dynamics_of_group_joints_are_those_of_a_floating_robot() -> None:
    case = make_case(6, 3, 0, True, representation="body_fixed")
    robot, base = robot_of(case)
    assert base is not None
    torques = np.linspace(-1.0, 1.0, case.tree.n_joints)
    base_acceleration, accelerations = robot.forward_dynamics(case.q[:2], torques[None], base)
    group = GroupRobot(JointTree.of(robot.model))
    poses = [base.pose, *group.tree.joint_poses(np.concatenate([np.zeros(6), case.q[0]]))[1:]]
    rates = [
        np.concatenate([base.twists[0], case.q[1]]),
        np.concatenate([base_acceleration[0], accelerations[0]]),
    ]
    A, B = group.linearised_dynamics(group.motion(np.array(poses), np.array(rates)))
    expected_A, expected_B = robot.linearised_dynamics(case.q[:2], torques, base)
    np.testing.assert_allclose(A, expected_A, rtol=0.0, atol=1e-11 * np.abs(expected_A).max())
    np.testing.assert_allclose(B[:, 6:], expected_B, rtol=0.0, atol=1e-11 * np.abs(expected_B).max())
