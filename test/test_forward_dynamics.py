"""Forward dynamics of any order: against exact arithmetic, Pinocchio, and inverse dynamics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from oracles import mp_dynamics as mp
from oracles import pinocchio_models
from oracles.cases import Case, cases, make_case
from oracles.motions import random_stack
from oracles.random_trees import KINDS, Tree, random_tree

from hodyn_ros import Robot
from hodyn_ros.errors import InputError

Array = NDArray[np.float64]

ROUNDING = 2.0**-52

SLACK = 100.0
"""How many times the effect of one rounding of the input an error may be."""


@pytest.fixture(autouse=True, scope="module")
def no_kept_code() -> Iterator[None]:
    """Compile anew every time, and leave the user's folder of compiled robots alone."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HODYN_CACHE_DIR", "")
        yield


def bounded(examples: int) -> Any:
    """Return settings for a reproducible search without a clock."""
    return settings(max_examples=examples, deadline=None, derandomize=True)


def robot_of(tree: Tree) -> Robot:
    return Robot.from_screws(**tree.arguments())


def torques_of(case: Case) -> Array:
    """Return the exact torques of a motion, rounded to doubles."""
    return mp.to_float(mp.inverse_dynamics(case.tree, case.q).torques)


def exact_accelerations(tree: Tree, state: Array, torques: Array) -> Array:
    return mp.to_float(mp.forward_dynamics(tree, state, torques).joints)


def conditioning(tree: Tree, state: Array, torques: Array, expected: Array) -> Array:
    """Return how far each order (orders,) moves, at most, when every number of the problem is rounded once.

    Higher orders of forward dynamics amplify the rounding of their own input, so that no algorithm in doubles
    can promise a fixed number of digits: this is the honest unit of its error.
    """
    rng = np.random.default_rng(0)

    def rounded(values: Array) -> Array:
        return values * (1.0 + ROUNDING * rng.uniform(-1.0, 1.0, size=values.shape))

    moves = []
    for _ in range(2):
        near = replace(
            tree,
            masses=rounded(tree.masses),
            coms=rounded(tree.coms),
            inertias=rounded(tree.masses)[:, None, None] / tree.masses[:, None, None] * tree.inertias,
        )
        found = exact_accelerations(near, rounded(state), rounded(torques))
        moves.append(np.abs(found - expected).max(axis=1))
    return np.maximum(np.max(moves, axis=0), ROUNDING * np.abs(expected).max(axis=1))


def assert_solves(tree: Tree, state: Array, torques: Array, found: Array, expected: Array) -> None:
    assert found.shape == expected.shape
    errors = np.abs(found - expected).max(axis=1)
    unit = conditioning(tree, state, torques, expected)
    assert (errors <= SLACK * unit).all(), f"errors by order {errors}, effect of one rounding {unit}"


class TestAgainstExactArithmetic:
    @given(case=cases(8, orders=[0, 1, 2, 3], bases=[False], max_loads=0))
    @bounded(10)
    def test_orders_0_to_3_of_trees_up_to_8_bodies(self, case: Case) -> None:
        torques = random_stack(1, case.order + 1, case.tree.n_joints)
        state = case.q[:2]
        found = robot_of(case.tree).forward_dynamics(state, torques)
        expected = exact_accelerations(case.tree, state, torques)
        assert_solves(case.tree, state, torques, found, expected)

    @pytest.mark.parametrize("order", [4, 5, 6])
    def test_orders_4_to_6_of_a_chain(self, order: int) -> None:
        case = make_case(order, 5, order, branching=0.0)
        state, torques = case.q[:2], torques_of(case)
        found = robot_of(case.tree).forward_dynamics(state, torques)
        assert_solves(case.tree, state, torques, found, exact_accelerations(case.tree, state, torques))

    @pytest.mark.parametrize("kind", KINDS)
    def test_robots_of_one_joint_kind(self, kind: str) -> None:
        tree = random_tree(10, 5, kinds=(kind,))
        state, torques = random_stack(11, 2, 5), random_stack(12, 3, 5)
        found = robot_of(tree).forward_dynamics(state, torques)
        assert_solves(tree, state, torques, found, exact_accelerations(tree, state, torques))

    def test_a_tree_of_20_bodies(self) -> None:
        case = make_case(13, 20, 1)
        state, torques = case.q[:2], torques_of(case)
        found = robot_of(case.tree).forward_dynamics(state, torques)
        assert_solves(case.tree, state, torques, found, exact_accelerations(case.tree, state, torques))


@given(case=cases(12, orders=[0], bases=[False], max_loads=0))
@bounded(20)
def test_order_0_is_that_of_pinocchio(case: Case) -> None:
    torques = random_stack(2, 1, case.tree.n_joints, rate=1.0)
    _, expected = pinocchio_models.forward_dynamics(case.tree, case.q[:2], torques[0])
    matrix = pinocchio_models.mass_matrix(case.tree, case.q[0])
    found = robot_of(case.tree).forward_dynamics(case.q[:2], torques)
    assert found.shape == (1, case.tree.n_joints)
    allowed = 1e-15 * np.linalg.cond(matrix) + 1e-12
    assert np.abs(found[0] - expected).max() <= allowed * np.abs(expected).max()


@given(case=cases(7, orders=[0, 1, 2], bases=[False], max_loads=0))
@bounded(12)
def test_inverse_dynamics_gives_the_torques_back(case: Case) -> None:
    """The residual, unlike the accelerations, does not suffer from an ill-conditioned mass matrix."""
    robot = robot_of(case.tree)
    torques = robot.inverse_dynamics(case.q)
    accelerations = robot.forward_dynamics(case.q[:2], torques)
    back = robot.inverse_dynamics(np.concatenate([case.q[:2], accelerations]))
    assert (np.abs(back - torques).max(axis=1) <= 1e-12 * np.abs(torques).max(axis=1)).all()


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


STATE, TORQUES = random_stack(30, 2, 4), random_stack(31, 3, 4)


def spoiled(values: Array, value: float) -> Array:
    result = values.copy()
    result[1, 2] = value
    return result


@pytest.mark.parametrize(
    ("state", "torques", "words"),
    [
        (STATE[:, :3], TORQUES, [r"\(2, 4\)", r"\(2, 3\)"]),
        (STATE[:1], TORQUES, [r"\(2, 4\)", r"\(1, 4\)"]),
        (np.zeros((3, 4)), TORQUES, [r"\(2, 4\)", r"\(3, 4\)"]),
        (STATE[0], TORQUES, [r"\(2, 4\)", r"\(4,\)"]),
        (STATE, TORQUES[:, :3], [r"\(order \+ 1, 4\)", r"\(3, 3\)"]),
        (STATE, TORQUES[:0], [r"\(order \+ 1, 4\)", r"\(0, 4\)"]),
        (STATE, TORQUES[0], [r"\(order \+ 1, 4\)", r"\(4,\)"]),
        (spoiled(STATE, np.nan), TORQUES, ["NaN", r"\(1, 2\)"]),
        (STATE, spoiled(TORQUES, np.inf), ["infinite", r"\(1, 2\)"]),
        ([["a"] * 4] * 2, TORQUES, ["numbers"]),
        (STATE, [["a"] * 4], ["numbers"]),
        (STATE + 1j, TORQUES, ["real"]),
        (None, TORQUES, [r"\(2, 4\)"]),
    ],
)
def test_bad_input_is_refused_with_expected_and_found(state: Any, torques: Any, words: list[str]) -> None:
    robot = robot_of(random_tree(32, 4))
    with pytest.raises(InputError) as refusal:
        robot.forward_dynamics(state, torques)
    for word in words:
        assert refusal.match(word)
    assert robot.forward_dynamics(STATE, TORQUES).shape == (3, 4)
