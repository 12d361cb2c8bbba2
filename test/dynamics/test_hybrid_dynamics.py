"""Hybrid dynamics of any order: joints that are moved beside joints that are driven, bases likewise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.cases import Case, cases, make_case, relative_errors
from oracles.hybrid_problems import Answer, HybridProblem, errors_in_roundings
from oracles.motions import Frame, random_stack
from oracles.random_trees import KINDS, random_tree
from sweeps import examples

from hodyn_ros import AppliedWrench, BaseMotion, Robot

Array = NDArray[np.float64]

SLACK = 8.0
"""How many times the effect of rounding the problem once an error may be."""


def problem_of(case: Case, prescribed: Sequence[int], base_free: bool = True) -> HybridProblem:
    free = np.array([joint not in prescribed for joint in range(case.tree.n_joints)], dtype=bool)
    return HybridProblem.of_case(case, free, base_free)


def solve(problem: HybridProblem, robot: Robot | None = None) -> Answer:
    robot = Robot.from_screws(**problem.tree.arguments()) if robot is None else robot
    wrenches = [
        AppliedWrench(load.body, load.values, representation=load.representation) for load in problem.loads
    ]
    prescribed = np.flatnonzero(~problem.free).tolist()
    base = problem.base
    if base is None:
        found = robot.hybrid_dynamics(problem.state, problem.given, prescribed=prescribed, wrenches=wrenches)
        assert isinstance(found, np.ndarray)
        return Answer(found, None)
    twists = base.twists[:1] if problem.base_free else base.twists
    of_base, joints = robot.hybrid_dynamics(
        problem.state,
        problem.given,
        BaseMotion(base.pose, twists, representation=base.representation),
        problem.base_wrench,
        wrenches,
        prescribed=prescribed,
        prescribe_base=not problem.base_free,
    )
    return Answer(joints, of_base)


def assert_solves(problem: HybridProblem, found: Answer) -> None:
    errors = errors_in_roundings(problem, found)
    assert (errors <= SLACK).all(), f"errors by part and order, in roundings of the problem: {errors}"


@pytest.mark.thorough
class TestAgainstExactArithmetic:
    @given(case=cases(5, orders=[0, 1, 2], bases=[False]), choice=st.randoms(use_true_random=False))
    @examples(6, shrink=False)
    def test_orders_0_to_2_of_trees_on_the_ground(self, case: Case, choice: Any) -> None:
        prescribed = [joint for joint in range(case.tree.n_joints) if choice.random() < 0.5]
        problem = problem_of(case, prescribed)
        assert_solves(problem, solve(problem))

    @given(
        case=cases(4, orders=[0, 1, 2], bases=[True]),
        choice=st.randoms(use_true_random=False),
        base_free=st.booleans(),
    )
    @examples(8, shrink=False)
    def test_orders_0_to_2_of_floating_trees(self, case: Case, choice: Any, base_free: bool) -> None:
        prescribed = [joint for joint in range(case.tree.n_joints) if choice.random() < 0.5]
        problem = problem_of(case, prescribed, base_free)
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize("kind", KINDS)
    def test_robots_of_one_joint_kind(self, kind: str) -> None:
        """Outer joints that are moved, and inner ones, have different ways through the recursion."""
        tree = random_tree(10, 5, kinds=(kind,), branching=0.0)
        given = random_stack(12, 2, 5)
        robot = Robot.from_screws(**tree.arguments())
        for prescribed in ([0, 3], [1, 4]):
            free = np.array([joint not in prescribed for joint in range(5)])
            problem = HybridProblem(tree, random_stack(11, 2, 5), given, free)
            assert_solves(problem, solve(problem, robot))

    @pytest.mark.parametrize("order", [5, 6])
    def test_orders_5_and_6_of_a_chain(self, order: int) -> None:
        problem = problem_of(make_case(13, 3, order, branching=0.0), [1])
        assert_solves(problem, solve(problem))

    @pytest.mark.parametrize("order", [4, 6])
    def test_under_a_prescribed_base(self, order: int) -> None:
        problem = problem_of(
            make_case(14, 3, order, True, n_loads=1, representation="body_fixed"), [1], base_free=False
        )
        assert_solves(problem, solve(problem))


class TestAtTheEnds:
    """With everything prescribed it is inverse dynamics, with nothing forward dynamics."""

    @pytest.mark.parametrize("frame", [None, "spatial", "body_fixed"])
    def test_all_motion_prescribed(self, frame: Frame | None) -> None:
        case = make_case(20, 6, 2, frame is not None, n_loads=2, representation=frame or "spatial")
        robot = Robot.from_screws(**case.tree.arguments())
        wrenches = [
            AppliedWrench(load.body, load.values, representation=load.representation) for load in case.loads
        ]
        found = solve(problem_of(case, range(case.tree.n_joints), base_free=False), robot)
        base = case.base and BaseMotion(
            case.base.pose, case.base.twists, representation=case.base.representation
        )
        if base is None:
            expected = robot.inverse_dynamics(case.q, wrenches=wrenches)
        else:
            wrench, expected = robot.inverse_dynamics(case.q, base, wrenches)
            assert found.base is not None
            assert relative_errors(found.base, wrench).max() <= 1e-13
        assert relative_errors(found.joints, expected).max() <= 1e-13

    @pytest.mark.parametrize("frame", [None, "spatial", "body_fixed"])
    def test_no_motion_prescribed(self, frame: Frame | None) -> None:
        case = make_case(21, 5, 2, frame is not None, n_loads=1, representation=frame or "spatial")
        robot = Robot.from_screws(**case.tree.arguments())
        wrenches = [
            AppliedWrench(load.body, load.values, representation=load.representation) for load in case.loads
        ]
        problem = problem_of(case, [])
        found = solve(problem, robot)
        if case.base is None:
            joints = robot.forward_dynamics(problem.state, problem.given, wrenches=wrenches)
        else:
            base = BaseMotion(case.base.pose, case.base.twists[:1], representation=case.base.representation)
            rates, joints = robot.forward_dynamics(
                problem.state, problem.given, base, problem.base_wrench, wrenches
            )
            np.testing.assert_array_equal(found.base, rates)
        np.testing.assert_array_equal(found.joints, joints)


def test_joints_are_named_or_counted_in_any_order() -> None:
    tree = random_tree(30, 4)
    robot = Robot.from_screws(**tree.arguments())
    state, given = random_stack(31, 2, 4), random_stack(32, 3, 4)
    expected = robot.hybrid_dynamics(state, given, prescribed=[1, 3])
    for same in (["joint2", "joint4"], [3, "joint2", 3], (np.int64(1), 3), {3, 1}, np.array([3, 1])):
        np.testing.assert_array_equal(robot.hybrid_dynamics(state, given, prescribed=same), expected)


def test_a_driven_cart_carries_a_pendulum() -> None:
    """The cart's motion x is given: l q̈ = -cos(q) ẍ - g sin(q), and the cart's drive moves both masses."""
    slide = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    hinge = [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    cart, bob, length, tiny = 3.0, 2.0, 0.5, 1e-12
    robot = Robot.from_screws(
        [-1, 0],
        [slide, hinge],
        np.tile(np.eye(4), (2, 1, 1)),
        [cart, bob],
        [[0.0, 0.0, 0.0], [0.0, 0.0, -length]],
        [np.eye(3), tiny * np.eye(3)],
        gravity=(0.0, 0.0, -10.0),
    )
    q, rate, push = 0.3, 0.7, 4.0
    ((force, swing),) = robot.hybrid_dynamics([[0.1, q], [0.2, rate]], [[push, 0.0]], prescribed=[0])
    expected = -(np.cos(q) * push + 10.0 * np.sin(q)) / length
    np.testing.assert_allclose(swing, expected, rtol=1e-11)
    # the bob is at x + l sin q
    pull = (cart + bob) * push + bob * length * (np.cos(q) * expected - np.sin(q) * rate**2)
    np.testing.assert_allclose(force, pull, rtol=1e-11)
