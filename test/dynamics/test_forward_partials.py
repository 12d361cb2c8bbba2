"""Partial derivatives of forward and hybrid dynamics, and of inverse dynamics under wrenches, by order."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracles import mp_dynamics as mp
from oracles.cases import make_case
from oracles.changes import HybridChanges
from oracles.differences import derivative
from oracles.motions import Frame
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Kernel
from hodyn_ros.engine import direction_lanes

pytestmark = pytest.mark.thorough


def assert_exact(found: Array, expected: Array, tolerance: float) -> None:
    """Compare (order + 1, order + 3, rows, columns), each block with the largest of its order."""
    assert found.shape == expected.shape
    scale = np.abs(expected).max(axis=(1, 2, 3), keepdims=True)
    worst = np.abs((found - expected) / scale).max(axis=(2, 3))
    assert (worst <= tolerance).all(), worst


def in_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be straight-line code, as of robots and orders that are too large."""
    monkeypatch.setattr(Kernel, "unless_long", lambda *_: None)


@cache
def exactly(*case: Any) -> tuple[HybridChanges, Array]:
    """Return a case and its exact derivatives, once for all code that finds them."""
    seed, bodies, order, floating, prescribed, held = case
    robot = make_case(seed, bodies, order, floating, branching=0.0, representation="body_fixed")
    exact = HybridChanges(robot, order, prescribed, held)
    return exact, partials(exact)


def partials(exact: HybridChanges) -> Array:
    """Return the partial derivatives (order + 1, order + 3, m, m)."""
    orders, m = exact.shape
    result = np.empty((exact.order + 1, orders, m, m))
    for k in range(orders):
        for i in range(m):
            unit = np.zeros(exact.shape, dtype=object) * mp.ONE
            unit[k, i] = mp.ONE
            result[:, k, :, i] = derivative(lambda step, unit=unit: exact.at(step * unit))
    return result


def found_by(exact: HybridChanges) -> Array:
    """Return what a robot finds."""
    robot = Robot.from_screws(**exact.case.tree.arguments())
    return exact.called(robot.hybrid_dynamics_derivatives)


def assert_is_exact(
    seed: int, bodies: int, order: int, floating: bool, prescribed: tuple[int, ...], held: bool = False
) -> None:
    exact, expected = exactly(seed, bodies, order, floating, prescribed, held)
    assert_exact(found_by(exact), expected, 1e-11)


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize(
    ("bodies", "order", "prescribed"),
    some([(2, 3, ()), (3, 1, (1,)), (2, 4, (0,))], (2, 3, ()), (3, 1, (1,))),
)
def test_on_the_ground_they_are_exact_up_to_order_four(
    bodies: int, order: int, prescribed: tuple[int, ...], lanes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lanes:
        in_lanes(monkeypatch)
    assert_is_exact(5, bodies, order, False, prescribed)


@pytest.mark.parametrize(
    ("order", "prescribed", "held", "lanes"),
    some(
        product((1, 2), ((), (0,)), (False, True), (False, True)),
        *((2, (0,), False, True), (1, (0,), False, False), (1, (), True, False), (1, (), True, True)),
    ),
)
def test_with_a_floating_base_they_are_exact(
    order: int, prescribed: tuple[int, ...], held: bool, lanes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lanes:
        in_lanes(monkeypatch)
    assert_is_exact(6, 2, order, True, prescribed, held)


@pytest.mark.skipif(not THOROUGH, reason="order 2 in lanes is exact above; make test-thorough runs it")
def test_order_four_of_a_floating_base_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    in_lanes(monkeypatch)
    exact = HybridChanges(make_case(6, 2, 4, True, branching=0.0, representation="body_fixed"), 4)
    assert_exact(found_by(exact), partials(exact), 1e-10)


@pytest.mark.parametrize(
    ("frame", "held"),
    some(
        [(None, False), ("body_fixed", False), ("spatial", False), ("body_fixed", True), ("spatial", True)],
        *((None, False), ("body_fixed", False), ("spatial", True)),
    ),
)
def test_every_way_finds_the_same_numbers(
    frame: Frame | None, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Straight-line code, lanes, what is partly compiled, and what is not."""
    order, rng = 1 if frame is None or THOROUGH else 0, np.random.default_rng(4)
    case = make_case(8, 3, order, frame is not None, representation=frame or "spatial")
    given, push = rng.normal(size=(order + 1, case.tree.n_joints)), None
    loads = [
        AppliedWrench(1, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
        AppliedWrench(2, rng.normal(size=6)),
    ]
    base = case.base and BaseMotion(case.base.pose, case.base.twists, representation=case.base.representation)
    if base is not None and not held:
        push = rng.normal(size=(order + 1, 6))
    batch = [np.array([x, 0.9 * x]) for x in (case.q, given)]

    def found() -> list[Array]:
        robot = Robot.from_screws(**case.tree.arguments())
        inverse, hybrid = robot.inverse_dynamics_derivatives, robot.hybrid_dynamics_derivatives
        pushes = None if push is None else np.array([push, push])
        prescribed: Any = {"prescribed": (0,), "prescribe_base": held}
        many = (
            inverse(batch[0], base, loads),
            hybrid(batch[0][:, :2], batch[1], base, pushes, loads, **prescribed),
        )
        one = inverse(case.q, base, loads), hybrid(case.q[:2], given, base, push, loads, **prescribed)
        for whole, first in zip(many, one):
            assert_exact(whole[0], first, 1e-12)
        assert not np.array_equal(one[0], inverse(case.q, base))
        return [*one, *(whole[1] for whole in many)]

    expected = found()
    in_lanes(monkeypatch)
    for limit in (STRAIGHT_LINE_LIMIT, 0):
        monkeypatch.setattr(direction_lanes, "STRAIGHT_LINE_LIMIT", limit)
        for one, right in zip(found(), expected, strict=True):
            assert_exact(one, right, 1e-12)


def test_inverse_dynamics_under_wrenches_is_exact() -> None:
    order = 2
    case = make_case(9, 3, order, branching=0.0)
    robot = Robot.from_screws(**case.tree.arguments())
    rng = np.random.default_rng(2)
    loads = [
        AppliedWrench(2, rng.normal(size=(order + 1, 6)), representation="body_fixed"),
        AppliedWrench(1, rng.normal(size=(order + 1, 6))),
    ]
    expected = np.empty((order + 1, order + 3, 3, 3))
    for k in range(order + 3):
        for i in range(3):

            def beside(step: Any, k: int = k, i: int = i) -> mp.Exact:
                q = mp.exact(case.q)
                q[k, i] += step
                return mp.inverse_dynamics(case.tree, q, loads=loads).torques

            expected[:, k, :, i] = derivative(beside)
    assert_exact(robot.inverse_dynamics_derivatives(case.q, wrenches=loads), expected, 1e-12)
