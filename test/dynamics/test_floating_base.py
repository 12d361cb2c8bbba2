"""Inverse dynamics of floating bases by compiled code, in every representation, on every kind of joint."""

from __future__ import annotations

import numpy as np
import pytest
from case_robots import of_tree
from numpy.typing import NDArray
from oracles.cases import Case, make_case, relative_errors
from oracles.motions import Frame, random_base, random_loads, random_motion
from oracles.random_trees import Tree, random_tree, unit_vector

from hodyn_ros import AppliedWrench, BaseMotion, Robot

pytestmark = pytest.mark.thorough

Array = NDArray[np.float64]

TOLERANCE = 1e-12
"""Allowed error of orders 0 to 3, relative to the largest effort of the order."""

both_frames = pytest.mark.parametrize("frame", ["spatial", "body_fixed"])


def motion_of(case: Case) -> BaseMotion:
    assert case.base is not None
    return BaseMotion(case.base.pose, case.base.twists, representation=case.base.representation)


def efforts_of(case: Case, robot: Robot | None = None) -> Array:
    """Return what the default engine finds, the base wrench left of the torques."""
    robot = of_tree(case.tree) if robot is None else robot
    wrenches = [
        AppliedWrench(load.body, load.values, representation=load.representation) for load in case.loads
    ]
    return np.hstack(robot.inverse_dynamics(case.q, motion_of(case), wrenches))


def cylindric_tree(seed: int, n_pairs: int) -> Tree:
    """Return a floating base with pairs of joints that slide and turn on one axis, and screws in between."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 1 + 3 * n_pairs, floating_base=True, kinds=("helical",), branching=0.0)
    for pair in range(n_pairs):
        slide, turn = 1 + 3 * pair, 2 + 3 * pair
        axis, point = unit_vector(rng), tree.placements[slide, :3, 3]
        tree.screws[slide] = [0.0, 0.0, 0.0, *axis]
        tree.screws[turn] = [*axis, *np.cross(point, axis)]
    return tree


class TestAgainstExactArithmetic:
    @both_frames
    @pytest.mark.parametrize("seed", [1, 2])
    def test_joints_that_slide_and_turn_on_one_axis(self, seed: int, frame: Frame) -> None:
        tree = cylindric_tree(seed, 2)
        case = Case(
            tree, random_motion(seed, tree, 2), random_base(seed, 2, frame), random_loads(seed, tree, 2, 1)
        )
        assert relative_errors(efforts_of(case), case.exact_efforts()).max() <= TOLERANCE


class TestCompiledFunctions:
    def test_a_body_without_joints(self) -> None:
        """Arrays with no columns: q (order + 3, 0)."""
        case = make_case(21, 1, 2, True)
        f, base = of_tree(case.tree).compile(2), motion_of(case)
        found = f(np.zeros((5, 0)), base.pose, base.twists)
        assert relative_errors(found, case.exact_efforts()).max() <= TOLERANCE
        np.testing.assert_array_equal(f([[]] * 5, base.pose.tolist(), base.twists.tolist()), found)


class TestRepresentations:
    @both_frames
    def test_more_twists_than_needed_do_not_matter(self, frame: Frame) -> None:
        case = make_case(33, 4, 1, True, representation=frame)
        robot, base = of_tree(case.tree), motion_of(case)
        assert case.base is not None
        more = BaseMotion(case.base.pose, np.vstack([base.twists, np.ones((2, 6))]), representation=frame)
        for first, second in zip(robot.inverse_dynamics(case.q, base), robot.inverse_dynamics(case.q, more)):
            np.testing.assert_array_equal(first, second)
