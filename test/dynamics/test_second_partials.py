"""Second partial derivatives of dynamics and kinematics, of any order, beside differences at 60 digits."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from case_robots import robot_of
from oracles import mp_dynamics as mp
from oracles.cases import make_case
from oracles.changes import HybridChanges, Place, forces_beside, second_derivatives
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, InputError
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.engine import direction_lanes
from hodyn_ros.engine import second_partials as laws

pytestmark = pytest.mark.thorough

COUNT = 100 if THOROUGH else 12  # pairs of entries that differences are taken of


def some_pairs(shape: tuple[int, int], highest: int) -> list[tuple[Place, Place]]:
    """Return pairs of entries of x^(k) and x^(l) that second derivatives may be other than zero by."""
    places = list(np.ndindex(*shape))
    pairs = [(a, b) for i, a in enumerate(places) for b in places[i:] if a[0] + b[0] <= highest]
    chosen = np.random.default_rng(5).permutation(len(pairs))[:COUNT]
    return [pairs[i] for i in chosen]


def assert_exact(full: Array, at: Callable[[mp.Exact], mp.Exact], tolerance: float) -> None:
    """Compare (order + 1, order + 3, order + 3, m, m, m), each entry with the largest of its order."""
    orders, m = full.shape[1], full.shape[-1]
    scale = np.abs(full).max(axis=(1, 2, 3, 4, 5))[:, None]
    pairs = some_pairs((orders, m), orders - 1)
    for ((k, i), (l, j)), right in zip(pairs, second_derivatives(at, (orders, m), pairs), strict=True):
        for found in (full[:, k, l, :, i, j], full[:, l, k, :, j, i]):
            assert (np.abs(found - right) <= tolerance * scale).all(), (k, i, l, j)
    beyond = np.add.outer(np.arange(orders), np.arange(orders)) > orders - 1
    assert not full[:, beyond].any()


def close(found: Array, expected: Array, tolerance: float = 1e-12) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def multiplier_of(orders: int, m: int) -> Array:
    return np.random.default_rng(3).normal(size=(orders, m))


def contracted(multiplier: Array, full: Array) -> Array:
    return np.einsum("ri,rkliab->klab", multiplier, full)


@pytest.mark.parametrize(("seed", "bodies", "order", "floating"), [(1, 3, 2, False), (3, 2, 1, True)])
def test_those_of_inverse_dynamics_are_exact(seed: int, bodies: int, order: int, floating: bool) -> None:
    case = make_case(seed, bodies, order, floating, representation="body_fixed")
    robot, base = robot_of(case)
    rng = np.random.default_rng(2)
    loads = [
        AppliedWrench(1, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
        AppliedWrench(bodies - 1, rng.normal(size=(order + 1, 6))),
    ]
    full = robot.inverse_dynamics_second_derivatives(case.q, base, loads)
    assert_exact(full, partial(forces_beside, case, loads=loads), 1e-12)
    weights = multiplier_of(order + 1, full.shape[-1])
    close(robot.inverse_dynamics_hessian(case.q, weights, base, loads), contracted(weights, full))
    assert not np.allclose(robot.inverse_dynamics_second_derivatives(case.q, base), full)


@pytest.mark.parametrize(
    ("bodies", "order", "floating", "prescribed", "held"),
    some(
        [
            (3, 1, False, (), False),
            (2, 1, False, (1,), False),
            (2, 0, True, (), False),
            (2, 1, True, (), False),
            (2, 1, True, (0,), True),
            (2, 2, True, (0,), False),
            (2, 3, False, (), False),
        ],
        (2, 1, False, (1,), False),
        (2, 0, True, (), False),
        (2, 1, True, (0,), True),
    ),
)
def test_those_of_forward_and_hybrid_dynamics_are_exact(
    bodies: int, order: int, floating: bool, prescribed: tuple[int, ...], held: bool
) -> None:
    case = make_case(6, bodies, order, floating, branching=0.0, representation="body_fixed")
    exact, (robot, _) = HybridChanges(case, order, prescribed, held), robot_of(case)
    full = exact.called(robot.hybrid_dynamics_second_derivatives)
    assert_exact(full, exact.at, 1e-11)
    weights = multiplier_of(order + 1, full.shape[-1])
    close(exact.called(robot.hybrid_dynamics_hessian, weights), contracted(weights, full))


@pytest.mark.parametrize("frame", some([None, "spatial", "body_fixed"], None, "spatial"))
def test_every_way_finds_the_same_numbers(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Straight-line code, changes in lanes, what follows from inverse dynamics, and batches of them."""
    orders = 1 if frame else 2
    case = make_case(8, 3 - bool(frame), orders - 1, frame is not None, representation=frame or "spatial")
    rng, m = np.random.default_rng(4), case.tree.n_joints + (6 if frame else 0)
    given, weights = rng.normal(size=(orders, case.tree.n_joints)), multiplier_of(orders, m)
    push = rng.normal(size=(orders, 6)) if frame else None
    many = np.array([case.q, 0.9 * case.q]), np.array([given, given])
    pushes = None if push is None else np.array([push, push])

    def found() -> list[Array]:
        robot, base = robot_of(case)
        hybrid: Any = {"prescribed": (0,)}
        whole = [
            robot.inverse_dynamics_hessian(many[0], weights, base),
            robot.inverse_dynamics_second_derivatives(many[0], base),
            robot.hybrid_dynamics_hessian(many[0][:, :2], many[1], weights, base, pushes, **hybrid),
            robot.hybrid_dynamics_second_derivatives(many[0][:, :2], many[1], base, pushes, **hybrid),
        ]
        alone = [
            robot.inverse_dynamics_hessian(case.q, weights, base),
            robot.inverse_dynamics_second_derivatives(case.q, base),
            robot.hybrid_dynamics_hessian(case.q[:2], given, weights, base, push, **hybrid),
            robot.hybrid_dynamics_second_derivatives(case.q[:2], given, base, push, **hybrid),
        ]
        for one, each in zip(alone, whole, strict=True):
            close(each[0], one)
        return [*alone, *(each[1] for each in whole)]

    expected = found()
    monkeypatch.setattr(laws, "has_many_entries", lambda *_, **__: True)
    monkeypatch.setattr(Kernel, "unless_long", lambda *_: None)
    for one, right in zip(found(), expected, strict=True):
        close(one, right)
    monkeypatch.setattr(direction_lanes, "STRAIGHT_LINE_LIMIT", 0)
    with pytest.raises(InputError, match="too large to compile inverse_dynamics_hessian"):
        robot_of(case)[0].inverse_dynamics_hessian(case.q, weights, robot_of(case)[1])
