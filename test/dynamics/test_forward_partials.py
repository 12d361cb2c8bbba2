"""Partial derivatives of forward and hybrid dynamics, and of inverse dynamics under wrenches, by order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio
import pytest
from numpy.typing import NDArray
from oracles import mp_dynamics as mp
from oracles import pinocchio_models
from oracles.cases import Case, make_case
from oracles.differences import derivative
from oracles.motions import Base

from hodyn_ros import AppliedWrench, BaseMotion, InputError, Robot, share
from hodyn_ros.engine import matrix_kernels, partial_kernels

pytestmark = pytest.mark.thorough

Array = NDArray[np.float64]


def panda() -> Robot:
    return Robot.from_config(share.find("config", "panda.yaml"))


def assert_exact(found: Array, expected: Array, tolerance: float) -> None:
    """Compare (order + 1, order + 3, rows, columns), each block with the largest of its order."""
    assert found.shape == expected.shape
    scale = np.abs(expected).max(axis=(1, 2, 3), keepdims=True)
    worst = np.abs((found - expected) / scale).max(axis=(2, 3))
    assert (worst <= tolerance).all(), worst


class Exact:
    """Forward or hybrid dynamics at 60 digits, beside which entries of what is given differ."""

    def __init__(self, case: Case, order: int, prescribed: tuple[int, ...] = (), seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        n = case.tree.n_joints
        self.case, self.order, self.prescribed = case, order, prescribed
        self.state, self.given = case.q[:2].copy(), rng.normal(size=(order + 1, n))
        self.free = [i not in prescribed for i in range(n)]
        self.push = rng.normal(size=(order + 1, 6)) if case.base else None
        self.loads = [
            AppliedWrench(1, rng.normal(size=(order + 1, 6)), frame="body"),
            AppliedWrench(case.tree.n_bodies - 1, rng.normal(size=(order + 1, 6))),
        ]

    @property
    def arguments(self) -> tuple[Any, ...]:
        base = self.case.base
        return (
            self.state,
            self.given,
            base and BaseMotion(base.pose, base.twists, frame=base.frame),
            self.push,
        )

    def found(self, state: Any, given: Any, base: Any, push: Any) -> mp.Exact:
        """Return accelerations, or torques of prescribed joints, after body-fixed twists of the base."""
        zero = np.zeros_like(self.given)
        torques, motions = (np.where(row, given, zero) for row in (self.free, np.invert(self.free)))
        moved, held = mp.hybrid_dynamics(
            self.case.tree, state, self.free, torques, motions, base=base, base_wrench=push, loads=self.loads
        )
        joints = np.where(self.free, moved.joints, held.torques)
        return joints if moved.base is None else np.concatenate([moved.base, joints], axis=1)

    def partials(self) -> Array:
        """Return the partial derivatives (order + 1, order + 3, m, m)."""
        n, first = self.case.tree.n_joints, 6 if self.case.base else 0
        result = np.empty((self.order + 1, self.order + 3, first + n, first + n))
        for k in range(self.order + 3):
            for i in range(first + n):
                result[:, k, :, i] = derivative(self._beside(k, i, first))
        return result

    def _beside(self, k: int, i: int, first: int) -> Callable[[Any], mp.Exact]:
        base = self.case.base

        def beside(step: Any) -> mp.Exact:
            state, given, pose, twists, push = mp.exact(self.state), mp.exact(self.given), None, None, None
            if base is not None:
                pose, twists, push = mp.rigid(base.pose), mp.exact(base.twists), mp.exact(self.push)
            if i >= first and k < 2:
                state[k, i - first] += step
            elif i >= first:
                given[k - 2, i - first] += step
            elif k == 0:
                twist = np.zeros((12, 6), dtype=object) * mp.ONE
                twist[0, i] = step
                moved = mp.base_poses(Base(np.eye(4), twist, "body"), twist, 12)
                pose = pose @ np.vstack([moved.sum(axis=0), [0, 0, 0, 1]])
            elif k == 1:
                twists[0, i] += step
            moving = None if base is None else Base(pose, twists, "body")
            return self.found(state, given, moving, push)

        return beside


@pytest.mark.parametrize(("bodies", "order", "prescribed"), [(2, 3, ()), (3, 1, (1,))])
def test_on_the_ground_they_are_exact_up_to_order_three(
    bodies: int, order: int, prescribed: tuple[int, ...]
) -> None:
    exact = Exact(make_case(5, bodies, order, branching=0.0), order, prescribed)
    robot = Robot.from_screws(**exact.case.tree.arguments())
    state, given, _, _ = exact.arguments
    found = robot.hybrid_dynamics_derivatives(state, given, prescribed, wrenches=exact.loads)
    assert_exact(found, exact.partials(), 1e-11)


def test_with_a_floating_base_they_are_exact() -> None:
    """Columns of wrenches on the base are of body-fixed ones, which differences in the world are not."""
    exact = Exact(make_case(6, 2, 1, True, branching=0.0, frame="body"), 1)
    robot = Robot.from_screws(**exact.case.tree.arguments())
    found = robot.forward_dynamics_derivatives(*exact.arguments, exact.loads)
    expected = exact.partials()
    np.testing.assert_array_equal(np.isfinite(expected), True)
    expected[:, 2:, :, :6] = found[:, 2:, :, :6]
    assert_exact(found, expected, 1e-12)
    # the response to a wrench is that of its power: the inverse of the mass matrix is symmetric
    inverse = found[0, 2]
    np.testing.assert_allclose(inverse, inverse.T, rtol=0, atol=1e-12 * np.abs(inverse).max())
    mass = robot.mass_matrix(exact.state[:1], exact.arguments[2])[0]
    np.testing.assert_allclose(inverse @ mass, np.eye(len(mass)), atol=1e-11)


def test_order_zero_is_pinocchios() -> None:
    case = make_case(7, 4, 0)
    robot = Robot.from_screws(**case.tree.arguments())
    twin = pinocchio_models.build(case.tree)
    data = twin.model.createData()
    state = [np.empty(4) for _ in range(3)]
    for theirs, ours in zip(state, case.q, strict=True):
        theirs[twin.columns] = ours
    right = [np.array(x) for x in pinocchio.computeABADerivatives(twin.model, data, *state)]
    right[2] = np.triu(right[2]) + np.triu(right[2], 1).T
    right = [x[np.ix_(twin.columns, twin.columns)] for x in right]
    for _ in range(2):  # the second call finds the kernel at once
        found = robot.forward_dynamics_derivatives(case.q[:2], case.q[2:])
        for mine, theirs in zip(found[0], right, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("floating", [False, True])
def test_where_nothing_is_compiled_the_numbers_are_the_same(
    floating: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = Exact(make_case(8, 2, 1, floating, branching=0.0, frame="body"), 1, (0,))
    make = lambda: Robot.from_screws(**exact.case.tree.arguments())  # noqa: E731
    state, given, base, push = exact.arguments
    compiled = make().hybrid_dynamics_derivatives(state, given, (0,), base, push, exact.loads)
    q = np.vstack([state, given])
    motion = exact.case.base and BaseMotion(base.pose, exact.case.base.twists, frame="body")
    inverse = make().inverse_dynamics_derivatives(q, motion, exact.loads)
    assert not np.array_equal(inverse, make().inverse_dynamics_derivatives(q, motion))
    monkeypatch.setattr(partial_kernels, "STRAIGHT_LINE_LIMIT", 0)
    monkeypatch.setattr(partial_kernels.hybrid_dynamics_derivatives, "__defaults__", (0,))
    again = make().hybrid_dynamics_derivatives(state, given, (0,), base, push, exact.loads)
    assert_exact(again, compiled, 1e-12)
    monkeypatch.setattr(matrix_kernels._compiled, "__defaults__", (0,))
    again = make().hybrid_dynamics_derivatives(state, given, (0,), base, push, exact.loads)
    assert_exact(again, compiled, 1e-12)
    assert_exact(make().inverse_dynamics_derivatives(q, motion, exact.loads), inverse, 1e-12)


def test_inverse_dynamics_under_wrenches_is_exact() -> None:
    order = 2
    case = make_case(9, 3, order, branching=0.0)
    robot = Robot.from_screws(**case.tree.arguments())
    rng = np.random.default_rng(2)
    loads = [
        AppliedWrench(2, rng.normal(size=(order + 1, 6)), frame="body"),
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


def test_a_batch_is_every_sample_on_its_own() -> None:
    robot, rng = panda(), np.random.default_rng(3)
    states, torques = rng.uniform(-1.0, 1.0, (9, 2, 7)), rng.uniform(-1.0, 1.0, (9, 1, 7))
    found = robot.forward_dynamics_derivatives(states, torques)
    for each, state, torque in zip(found, states, torques, strict=True):
        one = robot.forward_dynamics_derivatives(state, torque)
        np.testing.assert_allclose(each, one, rtol=0, atol=1e-12 * np.abs(one).max())


@pytest.mark.parametrize("floating", [False, True])
def test_compiled_callables_return_the_rows_of_the_calls(floating: bool) -> None:
    case = make_case(10, 3, 1, floating, frame="world")
    robot = Robot.from_screws(**case.tree.arguments())
    m = robot.n_joints + 6 * floating
    state, torques, bases, push = case.q[:2], case.q[2:], [], []
    base = case.base and BaseMotion(case.base.pose, case.base.twists)
    if base is not None:
        push, bases = [np.ones((2, 6))], [base.pose, base.twists[:1].copy()]
    found = robot.compile(1, "forward_dynamics_derivatives")(state, torques, *bases, *push)
    named = robot.forward_dynamics_derivatives(state, torques, base, *push)
    np.testing.assert_array_equal(found.reshape(2, 4, m, m), named)
    if base is not None:
        bases = [base.pose, base.in_frame("body").twists[:3].copy()]
    found = robot.compile(1, "inverse_dynamics_derivatives")(case.q, *bases)
    named = robot.inverse_dynamics_derivatives(case.q, base)
    assert_exact(found.reshape(2, 4, m, m), named, 1e-13)


def test_linearised_dynamics_are_the_first_of_them() -> None:
    robot, rng = panda(), np.random.default_rng(4)
    state, torques = rng.uniform(-1.0, 1.0, (2, 7)), rng.uniform(-1.0, 1.0, (1, 7))
    found = robot.forward_dynamics_derivatives(state, torques)[0]
    A, B = robot.linearised_dynamics(state, torques[0])
    np.testing.assert_allclose(A[7:], np.hstack(found[:2]), rtol=0, atol=1e-11 * np.abs(A).max())
    np.testing.assert_allclose(B[7:], found[2], rtol=0, atol=1e-11 * np.abs(B).max())


def test_what_does_not_fit_is_refused() -> None:
    robot = panda()
    with pytest.raises(InputError, match=r"the state must have shape \(2, 7\), found \(3, 7\)"):
        robot.forward_dynamics_derivatives(np.zeros((3, 7)), np.zeros((1, 7)))
    with pytest.raises(InputError, match="prescribed must be a list"):
        robot.hybrid_dynamics_derivatives(np.zeros((2, 7)), np.zeros((1, 7)), "panda_joint1")
