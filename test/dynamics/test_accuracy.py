"""Partial derivatives, and robots with loops, within eight times what rounding their input alone does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from linkages import motion_of, robot_of
from oracles import mechanisms, mp_loops
from oracles import mp_dynamics as mp
from oracles.cases import make_case
from oracles.differences import derivative
from oracles.random_trees import Tree
from sweeps import some

from hodyn_ros import Robot
from hodyn_ros.array import Array

pytestmark = pytest.mark.thorough


ROUNDING = 2.0**-52
SLACK = 8.0
DRAWS = 3


def assert_near(found: Array, exact: Callable[[np.random.Generator | None], Array]) -> None:
    """Compare by order (orders, ...); `exact` of the input, or of one that a generator rounds."""
    rng, right = np.random.default_rng(0), exact(None)
    rows = lambda x: np.abs(x).reshape(len(right), -1).max(axis=1)  # noqa: E731
    unit = np.max([ROUNDING * rows(right), *(rows(exact(rng) - right) for _ in range(DRAWS))], axis=0)
    errors = rows(found - right) / unit
    assert (errors <= SLACK).all(), f"errors by order, in roundings of the problem: {errors}"


def near(values: Array, rng: np.random.Generator | None) -> Array:
    """Round every number once, where a generator does."""
    return values if rng is None else values * (1.0 + ROUNDING * rng.uniform(-1.0, 1.0, values.shape))


@pytest.mark.parametrize("which", ["inverse", "forward"])
@pytest.mark.parametrize(
    ("seed", "bodies", "order"), some([(31, 4, 2), (32, 3, 4), (33, 2, 6)], (31, 4, 2), (33, 2, 6))
)
def test_partial_derivatives(which: str, seed: int, bodies: int, order: int) -> None:
    """Along one direction for each derivative of what is given."""
    case = make_case(seed, bodies, order, branching=0.0)
    robot = Robot.from_screws(**case.tree.arguments())
    given = case.q
    if which == "forward":
        given = np.vstack([case.q[:2], mp.to_float(mp.inverse_dynamics(case.tree, case.q).torques)])
    ways = np.random.default_rng(seed).normal(size=given.shape)

    def exact(rng: np.random.Generator | None) -> Array:
        tree: Tree = case.tree if rng is None else case.tree.rounded(rng, ROUNDING)
        start = near(given, rng)

        def beside(step: Any, k: int) -> mp.Exact:
            x = mp.exact(start)
            x[k] += step * mp.exact(ways[k])
            if which == "inverse":
                return mp.inverse_dynamics(tree, x).torques
            return mp.forward_dynamics(tree, x[:2], x[2:]).joints

        columns = [derivative(lambda step, k=k: beside(step, k)) for k in range(len(ways))]
        return np.stack(columns, axis=1)

    if which == "inverse":
        found = robot.inverse_dynamics_derivatives(given)
    else:
        found = robot.forward_dynamics_derivatives(given[:2], given[2:])
    assert_near(np.einsum("rkij,kj->rki", found, ways), exact)


LOOPS = [(name, *rest) for name in ("four_bar", "slider_crank", "palletiser") for rest in ((0, 2), (1, 6))]


@pytest.mark.parametrize(("name", "seed", "order"), some(LOOPS, LOOPS[2]))
def test_robots_with_loops(name: str, seed: int, order: int) -> None:
    """Efforts, and accelerations from them, also where the numbers that close the loops are rounded."""
    mechanism = getattr(mechanisms, name)()
    robot, (q, _) = robot_of(mechanism), motion_of(mechanism, order, seed)
    efforts = np.asarray(robot.inverse_dynamics(q))

    def rounded(rng: np.random.Generator | None) -> mechanisms.Mechanism:
        found: mechanisms.Mechanism = mechanism
        return found if rng is None else replace(found, tree=found.tree.rounded(rng, ROUNDING))

    assert_near(efforts, lambda rng: mp_loops.efforts(rounded(rng), near(q, rng), order))
    assert_near(
        np.asarray(robot.forward_dynamics(q[:2], efforts)),
        lambda rng: mp.to_float(
            mp_loops.exact_accelerations(rounded(rng), near(q[:2], rng), near(efforts, rng))
        ),
    )
