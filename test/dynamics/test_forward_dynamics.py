"""Forward dynamics of any order: against exact arithmetic, Pinocchio, and inverse dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from oracles import pinocchio_models
from oracles.cases import Case, cases, make_case, relative_errors
from oracles.hybrid_problems import Answer, HybridProblem, errors_in_roundings
from oracles.motions import Base, Frame, random_stack
from oracles.random_trees import KINDS, Tree, random_pose, random_tree
from sweeps import examples

from hodyn_ros import AppliedWrench, BaseMotion, Robot

Array = NDArray[np.float64]

SLACK = 8.0
"""How many times the effect of rounding the problem once an error may be."""


def robot_of(tree: Tree) -> Robot:
    return Robot.from_screws(**tree.arguments())


def problem_of(case: Case) -> HybridProblem:
    """Return forward dynamics with the exact efforts of a motion, rounded to doubles."""
    return HybridProblem.of_case(case, np.ones(case.tree.n_joints, dtype=bool))


def solve(problem: HybridProblem, robot: Robot | None = None) -> Answer:
    robot = robot_of(problem.tree) if robot is None else robot
    wrenches = [
        AppliedWrench(load.body, load.values, representation=load.representation) for load in problem.loads
    ]
    base = problem.base
    if base is None:
        found = robot.forward_dynamics(problem.state, problem.given, wrenches=wrenches)
        return Answer(found, None)
    motion = BaseMotion(base.pose, base.twists[:1], representation=base.representation)
    base, joints = robot.forward_dynamics(problem.state, problem.given, motion, problem.base_wrench, wrenches)
    return Answer(joints, base)


def assert_solves(problem: HybridProblem, found: Answer) -> None:
    errors = errors_in_roundings(problem, found)
    assert (errors <= SLACK).all(), f"errors by part and order, in roundings of the problem: {errors}"


@pytest.mark.thorough
class TestAgainstExactArithmetic:
    @given(case=cases(6, orders=[0, 1, 2, 3], bases=[False]))
    @examples(6, shrink=False)
    def test_orders_0_to_3_of_trees_on_the_ground(self, case: Case) -> None:
        problem = problem_of(case)
        assert_solves(problem, solve(problem))

    @given(case=cases(4, orders=[0, 1, 2, 3], bases=[True]))
    @examples(6, shrink=False)
    def test_orders_0_to_3_of_floating_trees(self, case: Case) -> None:
        problem = problem_of(case)
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
    def test_a_floating_base_without_a_wrench_is_pushed_by_none(self, frame: Frame) -> None:
        problem = replace(problem_of(make_case(8, 4, 1, True, representation=frame)), base_wrench=None)
        robot = robot_of(problem.tree)
        found = solve(problem, robot)
        assert_solves(problem, found)
        same = solve(replace(problem, base_wrench=np.zeros((2, 6))), robot)
        np.testing.assert_array_equal(same.joints, found.joints)
        assert found.base is not None
        np.testing.assert_array_equal(same.base, found.base)

    def test_order_6_of_a_chain(self) -> None:
        problem = problem_of(make_case(6, 4, 6, branching=0.0))
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize(("order", "frame"), [(4, "spatial"), (5, "body_fixed"), (6, "spatial")])
    def test_orders_4_to_6_of_a_floating_base(self, order: int, frame: Frame) -> None:
        problem = problem_of(make_case(order, 2, order, True, n_loads=1, representation=frame))
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize("kind", KINDS)
    def test_robots_of_one_joint_kind(self, kind: str) -> None:
        tree = random_tree(10, 5, kinds=(kind,))
        problem = HybridProblem(tree, random_stack(11, 2, 5), random_stack(12, 2, 5), np.ones(5, dtype=bool))
        assert_solves(problem, solve(problem))

    def test_a_tree_of_10_bodies(self) -> None:
        problem = problem_of(make_case(13, 10, 1))
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
    def test_a_floating_body_without_joints(self, frame: Frame) -> None:
        """Euler's equations, and nothing for q: state (2, 0), torques (order + 1, 0)."""
        problem = problem_of(make_case(14, 1, 3, True, n_loads=2, representation=frame))
        found = solve(problem)
        assert found.joints.shape == (4, 0)
        assert_solves(problem, found)


@given(case=cases(12, orders=[0], bases=[False], max_loads=0))
@examples(12, shrink=False)
def test_order_0_is_that_of_pinocchio(case: Case) -> None:
    torques = random_stack(2, 1, case.tree.n_joints, rate=1.0)
    _, expected = pinocchio_models.forward_dynamics(case.tree, case.q[:2], torques[0])
    matrix = pinocchio_models.mass_matrix(case.tree, case.q[0])
    found = robot_of(case.tree).forward_dynamics(case.q[:2], torques)
    assert found.shape == (1, case.tree.n_joints)
    allowed = 1e-15 * np.linalg.cond(matrix) + 1e-12
    assert np.abs(found[0] - expected).max() <= allowed * np.abs(expected).max()


@given(case=cases(8, orders=[0], bases=[True], max_loads=0))
@examples(8, shrink=False)
def test_order_0_of_a_floating_base_is_that_of_pinocchio(case: Case) -> None:
    assert case.base is not None
    motion = BaseMotion(case.base.pose, case.base.twists[:1], representation=case.base.representation)
    base = Base(case.base.pose, motion.in_representation("body_fixed").twists, "body_fixed")
    torques = random_stack(2, 1, case.tree.n_joints, rate=1.0)
    twist_rate, expected = pinocchio_models.forward_dynamics(case.tree, case.q[:2], torques[0], base)
    matrix = pinocchio_models.mass_matrix(case.tree, case.q[0], base)
    found, joints = robot_of(case.tree).forward_dynamics(
        case.q[:2], torques, motion.in_representation("body_fixed")
    )
    assert twist_rate is not None
    allowed = 1e-15 * np.linalg.cond(matrix) + 1e-12
    for ours, theirs in ((joints[0], expected), (found[0], twist_rate)):
        assert np.abs(ours - theirs).max(initial=0.0) <= allowed * np.abs(theirs).max(initial=0.0)


def test_both_representations_describe_one_motion() -> None:
    """The derivatives of the twist that come back are in the frame in which the twist was given."""
    case = make_case(15, 5, 2, True)
    robot, torques = robot_of(case.tree), random_stack(16, 3, 4)
    assert case.base is not None
    twist = case.base.twists[:1]
    joints, twists = {}, {}
    for frame in ("spatial", "body_fixed"):
        base = BaseMotion(case.base.pose, twist, representation="spatial").in_representation(frame)
        rates, joints[frame] = robot.forward_dynamics(case.q[:2], torques, base)
        twists[frame] = BaseMotion(case.base.pose, np.vstack([base.twists, rates]), representation=frame)
    for k in range(3):
        assert relative_errors(joints["body_fixed"][k : k + 1], joints["spatial"][k : k + 1]).max() <= 1e-11
    assert (
        relative_errors(
            twists["body_fixed"].in_representation("spatial").twists, twists["spatial"].twists
        ).max()
        <= 1e-11
    )


@given(case=cases(6, orders=[0, 1, 2]))
@examples(10, shrink=False)
def test_inverse_dynamics_gives_the_torques_back(case: Case) -> None:
    """The residual, unlike the accelerations, does not suffer from an ill-conditioned mass matrix."""
    problem = problem_of(case)
    robot = robot_of(case.tree)
    wrenches = [
        AppliedWrench(load.body, load.values, representation=load.representation) for load in case.loads
    ]
    found = solve(problem, robot)
    q = np.concatenate([problem.state, found.joints])
    if case.base is None:
        back, given = robot.inverse_dynamics(q, wrenches=wrenches), problem.given
    else:
        assert problem.base_wrench is not None and found.base is not None
        twists = np.vstack([case.base.twists[:1], found.base])
        base = BaseMotion(case.base.pose, twists, representation=case.base.representation)
        back = np.hstack(robot.inverse_dynamics(q, base, wrenches))
        given = np.hstack([problem.base_wrench, problem.given])
    assert (np.abs(back - given).max(axis=1) <= 1e-12 * np.abs(given).max(axis=1)).all()


@pytest.mark.parametrize("frame", [None, "spatial", "body_fixed"])
def test_the_motion_behind_the_torques_comes_back(frame: Frame | None) -> None:
    """Inverse, then forward dynamics, both ours; errors only as large as rounded torques make them."""
    case = make_case(17, 4, 3, frame is not None, n_loads=2, representation=frame or "spatial")
    robot = robot_of(case.tree)
    wrenches = [
        AppliedWrench(load.body, load.values, representation=load.representation) for load in case.loads
    ]
    problem, motion = problem_of(case), Answer(case.q[2:], None)
    if case.base is None:
        problem = replace(problem, given=robot.inverse_dynamics(case.q, wrenches=wrenches))
    else:
        base = BaseMotion(case.base.pose, case.base.twists, representation=case.base.representation)
        wrench, torques = robot.inverse_dynamics(case.q, base, wrenches)
        problem = replace(problem, given=torques, base_wrench=wrench)
        motion = Answer(case.q[2:], case.base.twists[1:])
    errors = errors_in_roundings(problem, solve(problem, robot), motion)
    assert (errors <= SLACK).all(), f"errors by part and order, in roundings of the problem: {errors}"


@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_the_frame_of_the_world_does_not_matter(frame: Frame) -> None:
    case = make_case(18, 5, 2, True, representation=frame)
    assert case.base is not None
    pose = random_pose(np.random.default_rng(19), reach=2.0)
    torques = random_stack(20, 3, 4)
    there = case.base.moved(pose)
    results = [
        robot_of(tree).forward_dynamics(
            case.q[:2], torques, BaseMotion(base.pose, base.twists[:1], representation=frame)
        )
        for tree, base in ((case.tree, case.base), (case.tree.moved(pose), there))
    ]
    (rates, joints), (moved_rates, moved_joints) = results
    assert relative_errors(moved_joints, joints).max() <= 1e-11
    expected = Base(case.base.pose, rates, frame).moved(pose).twists
    assert relative_errors(moved_rates, expected).max() <= 1e-11


def test_a_push_on_a_free_body() -> None:
    """2 kg, pushed upward with 30 N and 4 N/s at its centre: a = F/m - g, and its rate is F'/m."""
    robot = Robot.from_screws(
        [-1], np.zeros((1, 6)), np.eye(4)[None], [2.0], np.zeros((1, 3)), [np.eye(3)], floating_base=True
    )
    wrench = np.zeros((2, 6))
    wrench[:, 5] = (30.0, 4.0)
    at_rest = BaseMotion(np.eye(4), np.zeros((1, 6)))
    rates, joints = robot.forward_dynamics(np.zeros((2, 0)), np.zeros((2, 0)), at_rest, wrench)
    assert joints.shape == (2, 0)
    np.testing.assert_allclose(rates[0], [0.0, 0.0, 0.0, 0.0, 0.0, 15.0 - 9.81], rtol=1e-14)
    np.testing.assert_allclose(rates[1], [0.0, 0.0, 0.0, 0.0, 0.0, 2.0], rtol=1e-14)
    by_environment = AppliedWrench(0, wrench)
    same, _ = robot.forward_dynamics(np.zeros((2, 0)), np.zeros((2, 0)), at_rest, wrenches=[by_environment])
    np.testing.assert_allclose(same, rates, rtol=1e-14, atol=1e-15)


def test_a_falling_mass_accelerates_with_gravity() -> None:
    """3 kg on a vertical slide: q̈ = f/m - g, and the jerk is the rate of the force over the mass."""
    robot = Robot.from_screws(
        [-1], [[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], np.eye(4)[None], [3.0], np.zeros((1, 3)), [np.eye(3)]
    )
    found = robot.forward_dynamics([[0.2], [0.5]], [[6.0], [1.5]])
    np.testing.assert_allclose(found, [[2.0 - 9.81], [0.5]], rtol=1e-14)


def test_the_input_stays_and_the_output_is_new() -> None:
    robot = robot_of(random_tree(20, 4))
    state, torques = random_stack(21, 2, 4), random_stack(22, 3, 4)
    before = state.copy(), torques.copy()
    first = robot.forward_dynamics(state, torques)
    kept = first.copy()
    robot.forward_dynamics(2.0 * state, 3.0 * torques)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(state, before[0])
    np.testing.assert_array_equal(torques, before[1])
    assert first.flags.c_contiguous
    same = robot.forward_dynamics(np.asfortranarray(state), torques.tolist())
    np.testing.assert_array_equal(same, kept)
