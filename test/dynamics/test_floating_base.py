"""Inverse dynamics of floating bases by compiled code, in every representation, on every kind of joint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case_robots import of_tree
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.cases import Case, make_case, relative_errors
from oracles.motions import Frame, random_base, random_loads, random_motion
from oracles.random_trees import Tree, random_tree, unit_vector
from sweeps import examples

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
    @given(
        seed=st.integers(0, 2**32 - 1),
        kinds=st.sampled_from([("helical",), ("prismatic",), ("prismatic", "helical")]),
        order=st.integers(0, 3),
        n_bodies=st.integers(2, 6),
        frame=st.sampled_from(["spatial", "body_fixed"]),
        n_loads=st.integers(0, 2),
    )
    @examples(12, shrink=False)
    def test_trees_whose_joints_slide(
        self, seed: int, kinds: tuple[str, ...], order: int, n_bodies: int, frame: Frame, n_loads: int
    ) -> None:
        tree = random_tree(seed, n_bodies, floating_base=True, kinds=kinds, branching=0.3)
        case = Case(
            tree,
            random_motion(seed, tree, order),
            random_base(seed + 1, order, frame),
            random_loads(seed + 2, tree, order, n_loads),
        )
        assert relative_errors(efforts_of(case), case.exact_efforts()).max() <= TOLERANCE

    @both_frames
    @pytest.mark.parametrize("seed", [1, 2])
    def test_joints_that_slide_and_turn_on_one_axis(self, seed: int, frame: Frame) -> None:
        tree = cylindric_tree(seed, 2)
        case = Case(
            tree, random_motion(seed, tree, 2), random_base(seed, 2, frame), random_loads(seed, tree, 2, 1)
        )
        assert relative_errors(efforts_of(case), case.exact_efforts()).max() <= TOLERANCE

    @pytest.mark.parametrize(("order", "n_bodies"), [(0, 7), (2, 4), (4, 3), (5, 1)])
    def test_compiled_functions(self, order: int, n_bodies: int) -> None:
        case = make_case(10 + order, n_bodies, order, True)
        base = motion_of(case)
        found = of_tree(case.tree).compile(order)(case.q, base.pose, base.twists)
        assert found.shape == (order + 1, 6 + n_bodies - 1)
        assert relative_errors(found, case.exact_efforts()).max() <= TOLERANCE


class TestCompiledFunctions:
    def test_it_is_what_inverse_dynamics_computes(self) -> None:
        case = make_case(20, 5, 2, True)
        robot, base = of_tree(case.tree), motion_of(case)
        f = robot.compile(2)
        out = np.empty((3, 10))
        assert f(case.q, base.pose, base.twists, out=out) is out
        np.testing.assert_array_equal(out, np.hstack(robot.inverse_dynamics(case.q, base)))

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


def numbers_of(result: Any) -> list[Array]:
    """Return the arrays of a result, whatever holds them."""
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, tuple):
        return list(result)
    names = ("poses", "twists", "screws") if hasattr(result, "screws") else vars(result)
    return [getattr(result, name) for name in names]


class TestCallsThatFollow:
    """The first call of a shape finds its kernel and checks all; those that follow go straight to it."""

    @both_frames
    @pytest.mark.parametrize("pushed", [False, True], ids=["free", "pushed"])
    def test_torques(self, frame: Frame, pushed: bool) -> None:
        rng = np.random.default_rng(41)
        robot = of_tree(random_tree(rng, 2, floating_base=True))
        state, torques = rng.standard_normal((2, 1)), rng.standard_normal((2, 1))
        wrench = rng.standard_normal((2, 6)) if pushed else None
        for seed in (1, 2):
            base = random_base_motion(seed, 1).in_representation(frame)
            careful = of_tree(Tree.of(robot.model))
            for name in ("forward_dynamics", "forward_dynamics_derivatives"):
                expected = getattr(careful, name)(state.tolist(), torques.tolist(), base, wrench)
                for _ in range(2):
                    found = getattr(robot, name)(state, torques, base, wrench)
                    for a, b in zip(numbers_of(found), numbers_of(expected), strict=True):
                        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12 * np.abs(b).max())


def random_base_motion(seed: int, orders: int) -> BaseMotion:
    base = random_base(seed, orders, "spatial")
    return BaseMotion(base.pose, base.twists, representation="spatial")
