"""Regressors of any order, and derivatives of the dynamic matrices by parameter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from case_robots import closeness, robot_of
from hypothesis import given
from hypothesis import strategies as st
from oracles import mp_dynamics as mp
from oracles.cases import Case, make_case
from sweeps import examples

from hodyn_ros import BaseMotion, InputError, Robot, share
from hodyn_ros.dynamics.group_robot import GroupRobot
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.formulations.body_jacobians import joint_motion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import wrenches_to_body
from hodyn_ros.model.joint_tree import JointTree

pytestmark = pytest.mark.thorough

ORDER = 2


def room_matrices(robot: Robot, q: np.ndarray, base: BaseMotion | None) -> DynamicMatrices:
    """Return M, C and g in closed form, without compiling."""
    tree = JointTree.of(robot.model)
    return GroupRobot(tree).dynamic_matrices(joint_motion(tree, q, base))


def exact_forces(case: Case, base: BaseMotion | None) -> np.ndarray:
    """Return the forces (order + 1, m), the body-fixed base wrench first, from exact arithmetic."""
    efforts = case.exact_efforts()
    if base is None:
        return efforts
    motion = base.in_representation("body_fixed")
    return np.hstack([wrenches_to_body(motion.pose, motion.twists, efforts[:, :6]), efforts[:, 6:]])


@examples(25)
@given(
    seed=st.integers(0, 2**32 - 1), bodies=st.integers(1, 5), order=st.integers(0, 3), floating=st.booleans()
)
def test_regressor_times_parameters_is_exact(seed: int, bodies: int, order: int, floating: bool) -> None:
    case = make_case(seed, bodies, order, floating, representation="body_fixed")
    robot, base = robot_of(case)
    tree = JointTree.of(robot.model)
    published = GroupRobot(tree).regressor(joint_motion(tree, case.q, base))
    assert published.shape[0] == order + 1
    parameters, exact = robot.dynamic_parameters(), exact_forces(case, base)
    # forces may cancel to nearly nothing; what is summed is the measure
    summed = (np.abs(published) @ np.abs(parameters)).max(axis=-1, keepdims=True)
    assert np.abs((published @ parameters - exact) / summed).max() < 1e-13


@pytest.mark.parametrize(("seed", "floating"), [(1, False), (2, False), (3, True), (4, True)])
def test_compiled_regressor_is_that_of_the_published_form(seed: int, floating: bool) -> None:
    case = make_case(seed, 4, ORDER, floating)
    robot, base = robot_of(case)
    tree = JointTree.of(robot.model)
    published = GroupRobot(tree).regressor(joint_motion(tree, case.q, base))
    assert closeness(robot.regressor(case.q, base), published) < 1e-12
    assert (
        closeness(robot.regressor(case.q, base) @ robot.dynamic_parameters(), exact_forces(case, base))
        < 1e-12
    )


def test_parameters_are_moments_of_mass() -> None:
    case = make_case(1, 3, 0)
    robot, _ = robot_of(case)
    for body, found in enumerate(robot.dynamic_parameters().reshape(-1, 10)):
        second = mp.to_float(mp.second_moment(case.tree, body))
        inertia = np.trace(second[:3, :3]) * np.eye(3) - second[:3, :3]
        right = [second[3, 3], *second[:3, 3], *np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        np.testing.assert_allclose(found, right, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("floating", [False, True])
def test_slotine_li_regressor(floating: bool) -> None:
    case = make_case(7, 5, ORDER, floating, representation="body_fixed")
    robot, base = robot_of(case)
    rng = np.random.default_rng(1)
    reference = rng.uniform(-1.0, 1.0, size=case.q.shape)
    twists = rng.uniform(-1.0, 1.0, size=(ORDER + 2, 6)) if floating else None
    regressor = robot.slotine_li_regressor(case.q[:-1], reference, base, twists)
    mass, coriolis, gravity = room_matrices(robot, case.q[:-1], base)
    rates = reference[1:] if twists is None else np.hstack([twists, reference[1:]])
    right = [
        product_derivative(mass, rates[1:], r) + product_derivative(coriolis, rates, r) + gravity[r]
        for r in range(ORDER + 1)
    ]
    assert closeness(regressor @ robot.dynamic_parameters(), np.stack(right)) < 1e-12


@pytest.mark.parametrize("floating", [False, True])
def test_compiled_forms_are_the_published_ones(floating: bool) -> None:
    case = make_case(7, 4 - 2 * floating, ORDER, floating, representation="body_fixed")
    robot, base = robot_of(case)
    tree = JointTree.of(robot.model)
    room = GroupRobot(tree)
    motion = joint_motion(tree, case.q[:-1], base)
    for found, right in zip(
        robot.parameter_derivatives(case.q[:-1], base), room.parameter_derivatives(motion)
    ):
        assert closeness(found, right) < 1e-13
    reference = np.random.default_rng(2).uniform(-1.0, 1.0, (ORDER + 2, case.q.shape[1] + 6 * floating))
    joints = np.vstack([np.zeros((1, case.q.shape[1])), reference[:, 6 * floating :]])
    twists = reference[:, :6] if floating else None
    regressor = robot.slotine_li_regressor(case.q[:-1], joints, base, twists)
    assert closeness(regressor, room.slotine_li_regressor(motion, reference)) < 1e-13
    again = robot.slotine_li_regressor(case.q[:-1], joints, base, twists)
    np.testing.assert_array_equal(again, regressor)
    for name in ("parameter_derivatives", "slotine_li_regressor"):
        assert robot._matrix_kernels[name, ORDER] is not None


def test_batches_of_regressors_are_their_samples() -> None:
    case = make_case(3, 3, 1, True, representation="body_fixed")
    robot, base = robot_of(case)
    assert base is not None
    rng = np.random.default_rng(3)
    q, qr, twists = (rng.uniform(-1.0, 1.0, shape) for shape in ((9, 2, 2), (9, 3, 2), (9, 2, 6)))
    moving = BaseMotion(
        np.array([base.pose] * 9), rng.uniform(-1.0, 1.0, (9, 2, 6)), representation="body_fixed"
    )
    whole = robot.slotine_li_regressor(q, qr, moving, twists)
    parts = robot.parameter_derivatives(q, moving)
    for i in range(9):
        one = robot.slotine_li_regressor(q[i], qr[i], moving.one(i), twists[i])
        assert closeness(whole[i], one) < 1e-13
        for batch, alone in zip(parts, robot.parameter_derivatives(q[i], moving.one(i))):
            assert closeness(batch[i], alone) < 1e-13


def test_slotine_li_regressor_of_the_motion_itself_is_the_regressor() -> None:
    case = make_case(7, 4, ORDER)
    robot, _ = robot_of(case)
    regressor = robot.regressor(case.q)
    assert closeness(robot.slotine_li_regressor(case.q[:-1], case.q), regressor) < 1e-13


@pytest.mark.parametrize("floating", [False, True])
def test_parameter_derivatives_are_differences_of_robots(floating: bool) -> None:
    count = 4 - 2 * floating
    case = make_case(9, count, ORDER, floating, representation="body_fixed")
    robot, base = robot_of(case)
    other = make_case(10, count, ORDER, floating).tree
    changed = replace(case.tree, masses=other.masses, coms=other.coms, inertias=other.inertias)
    heavier = Robot.from_screws(**changed.arguments())
    change = heavier.dynamic_parameters() - robot.dynamic_parameters()
    found = robot.parameter_derivatives(case.q[:-1], base)
    before, after = (room_matrices(r, case.q[:-1], base) for r in (robot, heavier))
    for derivative, a, b in zip(found, after, before):
        right = a - b
        assert derivative.shape == (ORDER + 1, 10 * count, *right.shape[1:])
        assert closeness(np.moveaxis(derivative, 1, -1) @ change, right) < 1e-11


def test_panda_has_43_identifiable_parameters() -> None:
    # Gaz et al. (2019) count as many dynamic coefficients of this arm
    robot = Robot.load(share.find("config", "panda.yaml"))
    rng = np.random.default_rng(0)
    rows = [robot.regressor(rng.uniform(-1.0, 1.0, size=(3, 7)))[0] for _ in range(40)]
    assert np.linalg.matrix_rank(np.vstack(rows), tol=1e-9) == 43


def test_bad_references_are_refused() -> None:
    fixed, _ = robot_of(make_case(1, 3, 0))
    floating, base = robot_of(make_case(1, 3, 0, True))
    q = np.zeros((2, 3))
    with pytest.raises(InputError, match=r"one row more .* found \(4, 3\) beside \(2, 3\)"):
        fixed.slotine_li_regressor(q, np.zeros((4, 3)))
    with pytest.raises(InputError, match=r"the reference must have shape .*found \(3, 4\)"):
        fixed.slotine_li_regressor(q, np.zeros((3, 4)))
    with pytest.raises(InputError, match="base_reference does not apply"):
        fixed.slotine_li_regressor(q, np.zeros((3, 3)), None, np.zeros((2, 6)))
    with pytest.raises(InputError, match=r"give base_reference \(2, 6\)"):
        floating.slotine_li_regressor(q[:, :2], np.zeros((3, 2)), base)
    with pytest.raises(InputError, match=r"base_reference must have shape \(2, 6\), found \(3, 6\)"):
        floating.slotine_li_regressor(q[:, :2], np.zeros((3, 2)), base, np.zeros((3, 6)))
    with pytest.raises(InputError, match="accelerations at least"):
        fixed.regressor(q)
