"""Exponential coordinates and twists, each from the other with their derivatives."""

from functools import partial

import numpy as np
import pytest
from oracles.random_trees import unit_vector
from refusals import refused
from scipy.linalg import expm

from hodyn_ros.array import Array
from hodyn_ros.lie import se3
from hodyn_ros.lie.exponential import body_twists, coordinate_rates, differential
from hodyn_ros.lie.jets import derivative, to_taylor


def coordinates(seed: int, angle: float, orders: int = 5) -> Array:
    """Return X and its derivatives (orders, 6), with an angle of X."""
    rng = np.random.default_rng(seed)
    stack = rng.normal(size=(orders, 6))
    stack[0, :3] = angle * unit_vector(rng)
    return stack


def frame_jets(stack: Array) -> Array:
    """Return the jet (orders, 4, 4) of the pose exp(X), as the exponential of the matrix of a jet."""
    orders = len(stack)
    big = np.zeros((orders, 4, orders, 4))
    for k, x in enumerate(to_taylor(stack)):
        for i in range(orders - k):
            big[k + i, :3, i, :3], big[k + i, :3, i, 3] = se3.hat(x[:3]), x[3:]
    return expm(big.reshape(4 * orders, 4 * orders))[:, :4].reshape(orders, 4, 4)


@pytest.mark.parametrize("angle", [0.0, 1e-7, 0.5, 3.0, np.pi, 5.5])
def test_twists_are_those_of_the_moving_frame(angle: float) -> None:
    """Against `E' = E V`, order by order."""
    stack = coordinates(3, angle)
    frame = frame_jets(stack)
    rate, twists = derivative(frame), to_taylor(body_twists(stack))
    matrices = np.zeros((len(twists), 4, 4))
    matrices[:, :3, :3], matrices[:, :3, 3] = se3.hat(twists[:, :3]), twists[:, 3:]
    product = [sum(frame[i] @ matrices[k - i] for i in range(k + 1)) for k in range(len(rate))]
    np.testing.assert_allclose(product, rate, rtol=0.0, atol=1e-13 * np.abs(rate).max())


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, 3.1, 5.0])
@pytest.mark.parametrize("orders", [1, 2, 5, 8])
def test_each_follows_from_the_other(angle: float, orders: int) -> None:
    stack = coordinates(7, angle, orders + 1)
    twists = body_twists(stack)
    assert twists.shape == (orders, 6)
    found = coordinate_rates(stack[0], twists)
    scale = np.abs(twists).max(axis=1, keepdims=True)
    # near a full turn the differential is all but singular
    limit = 1e-9 if angle > np.pi else 1e-12
    np.testing.assert_allclose(found / scale, stack[1:] / scale, rtol=0.0, atol=limit)
    np.testing.assert_allclose(differential(stack[0]) @ stack[1], twists[0], rtol=1e-13)


def test_along_a_fixed_axis_twists_are_the_rates() -> None:
    axis = np.array([0.0, 0.0, 1.0, 0.1, -0.2, 0.3])
    rates = np.array([0.7, 1.0, -2.0, 3.0, 4.0])
    np.testing.assert_allclose(body_twists(rates[:, None] * axis), rates[1:, None] * axis, atol=1e-15)


def test_a_full_turn_is_refused_and_no_twists_give_no_rates() -> None:
    call = partial(coordinate_rates, np.array([0.0, 6.3, 0.0, 0.0, 0.0, 0.0]), np.zeros((1, 6)))
    refused(call, "found an angle of 6.3")
    assert coordinate_rates(np.zeros(6), np.zeros((0, 6))).shape == (0, 6)
    assert body_twists(np.zeros((1, 6))).shape == (0, 6)
    assert np.array_equal(se3.exp(np.zeros(6)), np.eye(4))
