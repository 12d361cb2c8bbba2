"""Second partial derivatives of dynamics with loops, beside differences at 60 digits."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics.loops.test_exact_loop_partials import Case
from numpy.typing import NDArray
from oracles import mp_dynamics as mp
from sweeps import some

from hodyn_ros import BaseMotion, InputError

Array = NDArray[np.float64]
CASES = [
    ("rssr", 1),
    ("flying_cam", 0),
    ("rssr", 2),
    ("palletiser", 1),
    ("planar_3rrr", 1),
    ("flying_cam", 1),
    ("ankle", 1),
    ("held_rows", 0),
]


def curved(case: Case, change: Array, body: bool = True) -> Array:
    """Return the second derivative of the efforts along a direction (order + 3, coordinates)."""
    with mp.digits(60):
        step = mp.mpfr(10) ** -15
        there, here, back = (case.efforts(change, s, body) for s in (step, 0 * step, -step))
        return mp.to_float((there - 2 * here + back) / (step * step))


@pytest.mark.parametrize(("name", "order"), some(CASES, ("rssr", 1), ("flying_cam", 0)))
def test_those_of_inverse_dynamics_are_exact(name: str, order: int) -> None:
    case, rng = Case(name, order), np.random.default_rng(2)
    weights = rng.normal(size=(order + 1, case.closure.n_efforts))
    found = case.robot.inverse_dynamics_hessian(case.y, weights, case.base)
    assert found.shape == (order + 3, order + 3, case.closure.n_coordinates, case.closure.n_coordinates)
    assert np.array_equal(found, found.transpose(1, 0, 3, 2))
    for _ in range(2):
        change = rng.normal(size=(order + 3, case.closure.n_coordinates))
        along = np.einsum("ki,klij,lj->", change, found, change)
        error = abs(along - (weights * curved(case, change)).sum())
        assert error <= 1e-12 * np.abs(found).max() * np.abs(change).sum() ** 2 / change.size


@pytest.mark.parametrize(
    ("name", "order"), some([("rssr", 1), ("palletiser", 1), ("flying_cam", 0)], ("palletiser", 1))
)
def test_those_of_forward_dynamics_are_differences_of_the_first(name: str, order: int) -> None:
    """By differences of sixth order of first partial derivatives, by state and efforts of the drives."""
    case, rng = Case(name, order), np.random.default_rng(3)
    n, first = case.closure.n_coordinates, case.first
    efforts = mp.to_float(case.efforts(np.zeros((order + 3, n)), mp.ONE, body=False))
    base = case.base and BaseMotion(case.base.pose, case.base.twists[:1], representation="body_fixed")
    push = efforts[:, :6] if first else None
    weights = rng.normal(size=(order + 1, n))
    given = case.y[:2], efforts[:, first:]
    hessian = case.robot.forward_dynamics_hessian(*given, weights, base, push)
    full = case.robot.forward_dynamics_second_derivatives(*given, base, push)
    np.testing.assert_allclose(
        np.einsum("ri,rkliab->klab", weights, full), hessian, rtol=0, atol=1e-12 * np.abs(hessian).max()
    )
    change, step = rng.normal(size=(order + 3, n - first)), 1e-2

    def beside(s: float) -> Array:
        moved = given[0] + s * change[:2], given[1] + s * change[2:]
        return case.robot.forward_dynamics_derivatives(*moved, base, push)

    odd = [beside(i * step) - beside(-i * step) for i in (1, 2, 3)]
    right = (45.0 * odd[0] - 9.0 * odd[1] + odd[2]) / (60.0 * step)
    found = np.einsum("rkliab,lb->rkia", full[..., first:], change)
    scale = np.abs(found).max(axis=(1, 2, 3), keepdims=True)
    assert (np.abs(found - right) <= 1e-8 * scale).all(), np.abs((found - right) / scale).max(axis=(1, 2, 3))


def test_what_is_not_offered_says_so() -> None:
    case = Case("planar_3rrr", 0)
    weights = np.ones((1, 3))
    with pytest.raises(
        InputError, match="forward_dynamics_hessian is for robots without couplings and loops"
    ):
        case.robot.compile(0, "forward_dynamics_hessian")
    with pytest.raises(InputError, match="need as many drives as coordinates, and a platform all of whose"):
        case.robot.forward_dynamics_hessian(case.y[:2], np.zeros((1, 3)), weights, case.base)
    with pytest.raises(InputError, match="are of robots without loops"):
        Case("rssr", 0).robot.hybrid_dynamics_hessian(np.zeros((2, 1)), [[0.0]], [[1.0]], prescribed=(0,))
