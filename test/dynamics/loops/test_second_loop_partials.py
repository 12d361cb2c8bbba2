"""Second partial derivatives of dynamics with loops, beside differences at 60 digits."""

import numpy as np
import pytest
from linkages import robot_of
from oracles import mp_dynamics as mp
from oracles.mechanisms import MECHANISMS
from oracles.subjects import LoopSubject
from sweeps import some

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array

pytestmark = pytest.mark.thorough

CASES = [
    ("RSSR", 1),
    ("flying cam", 0),
    ("RSSR", 2),
    ("palletiser", 1),
    ("planar 3-RRR", 1),
    ("flying cam", 1),
    ("ankle", 1),
    ("held rows", 0),
]


def case(name: str, order: int) -> tuple[LoopSubject, Robot]:
    found = LoopSubject(MECHANISMS[name](), robot_of, order)
    return found, found.robot()


@pytest.mark.parametrize(("name", "order"), some(CASES, ("RSSR", 1)))
def test_those_of_inverse_dynamics_are_exact(name: str, order: int) -> None:
    (s, robot), rng = case(name, order), np.random.default_rng(2)
    weights = rng.normal(size=(order + 1, s.n_efforts))
    found = robot.inverse_dynamics_hessian(s.q, weights, s.base)
    assert found.shape == (order + 3, order + 3, s.shape[1], s.shape[1])
    assert np.array_equal(found, found.transpose(1, 0, 3, 2))
    along = np.einsum("ki,klij,lj->", s.way, found, s.way)
    error = abs(along - (weights * s.curvature(order)).sum())
    assert error <= 1e-12 * np.abs(found).max() * np.abs(s.way).sum() ** 2 / s.way.size


@pytest.mark.parametrize(
    ("name", "order"), some([("RSSR", 1), ("palletiser", 1), ("flying cam", 0)], ("palletiser", 1))
)
def test_those_of_forward_dynamics_are_differences_of_the_first(name: str, order: int) -> None:
    """By differences of sixth order of first partial derivatives, by state and efforts of the drives."""
    (s, robot), rng = case(name, order), np.random.default_rng(3)
    first, n = 6 * s.pushed, s.shape[1]
    efforts = mp.to_float(s.exact_efforts)
    base = s.base and BaseMotion(s.base.pose, s.base.twists[:1], representation="body_fixed")
    push = efforts[:, :6] if first else None
    weights = rng.normal(size=(order + 1, n))
    given = s.q[:2], efforts[:, first:]
    hessian = robot.forward_dynamics_hessian(*given, weights, base, push)
    full = robot.forward_dynamics_second_derivatives(*given, base, push)
    np.testing.assert_allclose(
        np.einsum("ri,rkliab->klab", weights, full), hessian, rtol=0, atol=1e-12 * np.abs(hessian).max()
    )
    change, step = rng.normal(size=(order + 3, n - first)), 1e-3

    def beside(at: float) -> Array:
        moved = given[0] + at * change[:2], given[1] + at * change[2:]
        return robot.forward_dynamics_derivatives(*moved, base, push)

    odd = [beside(i * step) - beside(-i * step) for i in (1, 2, 3)]
    right = (45.0 * odd[0] - 9.0 * odd[1] + odd[2]) / (60.0 * step)
    found = np.einsum("rkliab,lb->rkia", full[..., first:], change)
    scale = np.abs(found).max(axis=(1, 2, 3), keepdims=True)
    assert (np.abs(found - right) <= 1e-8 * scale).all(), np.abs((found - right) / scale).max(axis=(1, 2, 3))
