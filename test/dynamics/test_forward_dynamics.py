"""Forward and hybrid dynamics of any order against exact arithmetic: joints driven and moved, bases too."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from case_robots import of_tree, wrenches_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.cases import Case, cases, make_case
from oracles.hybrid_problems import Answer, HybridProblem, errors_in_roundings
from oracles.motions import Frame, random_stack
from oracles.random_trees import KINDS, random_tree
from sweeps import examples

from hodyn_ros import BaseMotion, Robot

SLACK = 8.0
"""How many times the effect of rounding the problem once an error may be."""


def problem_of(case: Case, prescribed: Collection[int] = (), base_free: bool = True) -> HybridProblem:
    """Return the problem that the motion of a case solves, its exact efforts rounded to doubles."""
    free = np.array([joint not in prescribed for joint in range(case.tree.n_joints)], dtype=bool)
    return HybridProblem.of_case(case, free, base_free)


def solve(problem: HybridProblem, robot: Robot, hybrid: bool = False) -> Answer:
    """Solve by forward dynamics where all is free, else (or `hybrid` all the same) by hybrid dynamics."""
    forward = problem.free.all() and problem.base_free and not hybrid
    named: dict[str, Any] = {"wrenches": wrenches_of(problem.loads)}
    if not forward:
        named["prescribed"] = np.flatnonzero(~problem.free).tolist()
        named["prescribe_base"] = problem.base is not None and not problem.base_free
    call, base = robot.forward_dynamics if forward else robot.hybrid_dynamics, problem.base
    if base is None:
        return Answer(call(problem.state, problem.given, **named), None)
    twists = base.twists[:1] if problem.base_free else base.twists
    motion = BaseMotion(base.pose, twists, representation=base.representation)
    of_base, joints = call(problem.state, problem.given, motion, problem.base_wrench, **named)
    return Answer(joints, of_base)


def assert_solved(problem: HybridProblem, robot: Robot | None = None) -> Answer:
    found = solve(problem, robot or of_tree(problem.tree))
    errors = errors_in_roundings(problem, found)
    assert (errors <= SLACK).all(), f"errors by part and order, in roundings of the problem: {errors}"
    return found


@pytest.mark.thorough
@given(
    case=st.one_of(cases(6, orders=[0, 1, 2, 3], bases=[False]), cases(4, orders=[0, 1, 2, 3], bases=[True]))
)
@examples(12, shrink=False)
def test_forward_dynamics_of_trees(case: Case) -> None:
    assert_solved(problem_of(case))


@pytest.mark.thorough
@given(
    case=st.one_of(cases(5, orders=[0, 1, 2], bases=[False]), cases(4, orders=[0, 1, 2], bases=[True])),
    choice=st.randoms(use_true_random=False),
    base_free=st.booleans(),
)
@examples(14, shrink=False)
def test_hybrid_dynamics_of_trees(case: Case, choice: Any, base_free: bool) -> None:
    prescribed = [joint for joint in range(case.tree.n_joints) if choice.random() < 0.5]
    assert_solved(problem_of(case, prescribed, base_free or case.base is None))


# arguments of a case, prescribed joints, and whether the base is free
HIGH: dict[str, tuple[tuple[Any, ...], tuple[int, ...], bool]] = {
    "chain, order 6": ((6, 4, 6, False, 0, 0.0), (), True),
    "base, order 4": ((4, 2, 4, True, 1), (), True),
    "base in its own axes, order 5": ((5, 2, 5, True, 1, 0.3, "body_fixed"), (), True),
    "base, order 6": ((6, 2, 6, True, 1), (), True),
    "body without joints": ((14, 1, 3, True, 2), (), True),
    "body without joints in its own axes": ((14, 1, 3, True, 2, 0.3, "body_fixed"), (), True),
    "joint prescribed, order 5": ((13, 3, 5, False, 0, 0.0), (1,), True),
    "joint prescribed, order 6": ((13, 3, 6, False, 0, 0.0), (1,), True),
    "base prescribed, order 4": ((14, 3, 4, True, 1, 0.3, "body_fixed"), (1,), False),
    "base prescribed, order 6": ((14, 3, 6, True, 1, 0.3, "body_fixed"), (1,), False),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", HIGH)
def test_high_orders(name: str) -> None:
    arguments, prescribed, base_free = HIGH[name]
    problem = problem_of(make_case(*arguments), prescribed, base_free)
    assert assert_solved(problem).joints.shape == problem.given.shape


@pytest.mark.thorough
@pytest.mark.parametrize("prescribed", [(), (0, 3), (1, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_robots_of_one_joint_kind(kind: str, prescribed: tuple[int, ...]) -> None:
    """Outer joints that are moved, and inner ones, have different ways through the recursion."""
    tree = random_tree(10, 5, kinds=(kind,), branching=0.0 if prescribed else 0.3)
    free = np.array([joint not in prescribed for joint in range(5)])
    assert_solved(HybridProblem(tree, random_stack(11, 2, 5), random_stack(12, 2, 5), free))


@pytest.mark.thorough
@pytest.mark.parametrize("frame", ["spatial", "body_fixed"])
def test_a_floating_base_without_a_wrench_is_pushed_by_none(frame: Frame) -> None:
    case = make_case(8, 4, 1, True, representation=frame)
    pushed, robot = problem_of(case), of_tree(case.tree)
    none, zero = (HybridProblem(**{**vars(pushed), "base_wrench": x}) for x in (None, np.zeros((2, 6))))
    found, same = assert_solved(none, robot), solve(zero, robot)
    np.testing.assert_array_equal(same.joints, found.joints)
    np.testing.assert_array_equal(same.base, found.base)


@pytest.mark.parametrize("frame", [None, "spatial", "body_fixed"])
def test_with_nothing_prescribed_hybrid_dynamics_is_forward_dynamics(frame: Frame | None) -> None:
    problem = problem_of(
        make_case(21, 5, 2, frame is not None, n_loads=1, representation=frame or "spatial"), []
    )
    robot = of_tree(problem.tree)
    found, same = solve(problem, robot), solve(problem, robot, hybrid=True)
    np.testing.assert_array_equal(same.joints, found.joints)
    np.testing.assert_array_equal(same.base, found.base)


def test_joints_are_named_or_counted_in_any_order() -> None:
    robot = Robot.from_screws(**random_tree(30, 4).arguments())
    state, values = random_stack(31, 2, 4), random_stack(32, 3, 4)
    expected = robot.hybrid_dynamics(state, values, prescribed=[1, 3])
    for same in (["joint2", "joint4"], [3, "joint2", 3], (np.int64(1), 3), {3, 1}, np.array([3, 1])):
        np.testing.assert_array_equal(robot.hybrid_dynamics(state, values, prescribed=same), expected)
