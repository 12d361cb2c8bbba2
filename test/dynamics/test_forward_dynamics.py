"""Forward dynamics of any order: against exact arithmetic, Pinocchio, and inverse dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from oracles.cases import Case, cases, make_case
from oracles.hybrid_problems import Answer, HybridProblem, errors_in_roundings
from oracles.motions import Frame, random_stack
from oracles.random_trees import KINDS, Tree, random_tree
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

    @pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
    def test_a_floating_body_without_joints(self, frame: Frame) -> None:
        """Euler's equations, and nothing for q: state (2, 0), torques (order + 1, 0)."""
        problem = problem_of(make_case(14, 1, 3, True, n_loads=2, representation=frame))
        found = solve(problem)
        assert found.joints.shape == (4, 0)
        assert_solves(problem, found)


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
