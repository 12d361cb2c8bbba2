"""Truncated Taylor arithmetic against mpmath at 50 digits."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from oracles.mp_trajectories import DIGITS
from refusals import refused

from hodyn_ros.lie import jets

ORDER = 9
F, G = (lambda t: mpmath.exp(mpmath.sin(3 * t))), (lambda t: mpmath.log(2 + t * t) - mpmath.cos(t))


def taylor(function: Callable[[Any], Any], t: Any, order: int = ORDER) -> jets.Array:
    with mpmath.workdps(DIGITS):
        return np.array([float(c) for c in mpmath.taylor(function, mpmath.mpf(t), order)])


def close(found: jets.Array, exact: jets.Array) -> bool:
    return bool(np.allclose(found, exact, rtol=1e-12, atol=1e-13 * np.abs(exact).max()))


@pytest.mark.parametrize("t", [-0.7, 0.0, 0.3, 2.0])
def test_product(t: float) -> None:
    assert close(jets.multiply(taylor(F, t), taylor(G, t)), taylor(lambda x: F(x) * G(x), t))


@pytest.mark.parametrize("t", [-0.7, 0.0, 0.3, 2.0])
def test_composition(t: float) -> None:
    with mpmath.workdps(DIGITS):
        inner = G(mpmath.mpf(t))
    assert close(jets.compose(taylor(F, inner), taylor(G, t)), taylor(lambda x: F(G(x)), t))


@pytest.mark.parametrize("t", [-0.7, 0.0, 0.3, 2.0])
def test_sine_and_cosine(t: float) -> None:
    s, c = jets.sin_cos(taylor(G, t))
    assert close(s, taylor(lambda x: mpmath.sin(G(x)), t))
    assert close(c, taylor(lambda x: mpmath.cos(G(x)), t))


def test_derivatives_and_coefficients_are_factorials_apart() -> None:
    derivatives = taylor(F, 0.3) * [float(mpmath.factorial(k)) for k in range(ORDER + 1)]
    assert close(jets.to_taylor(derivatives), taylor(F, 0.3))
    assert np.allclose(jets.to_derivatives(jets.to_taylor(derivatives)), derivatives, rtol=1e-15)


def test_further_axes_are_independent_and_broadcast() -> None:
    times = [-0.7, 0.3]
    f = np.stack([np.stack([taylor(F, t), taylor(lambda x: 1 + x, t)], axis=1) for t in times], axis=1)
    g = np.stack([taylor(G, t) for t in times], axis=1)[:, :, None]
    product, composed = jets.multiply(f, g), jets.compose(f, g)
    sines, _ = jets.sin_cos(f)
    assert product.shape == composed.shape == (ORDER + 1, 2, 2)
    for i in range(2):
        for j in range(2):
            assert close(product[:, i, j], jets.multiply(f[:, i, j], g[:, i, 0]))
            assert close(composed[:, i, j], jets.compose(f[:, i, j], g[:, i, 0]))
            assert close(sines[:, i, j], jets.sin_cos(f[:, i, j])[0])


def test_arguments_are_not_written_to() -> None:
    f, g = taylor(F, 0.3), taylor(G, 0.3)
    before = f.copy(), g.copy()
    result = jets.compose(f, g)
    result[:] = 0.0
    jets.sin_cos(f)
    assert np.array_equal(f, before[0])
    assert np.array_equal(g, before[1])


def test_jets_that_do_not_fit_are_refused() -> None:
    refused(lambda: jets.multiply(np.zeros(3), np.zeros(4)), "found 3 and 4 coefficients")
    refused(lambda: jets.compose(np.zeros(3), np.zeros((3, 3))), "found shapes (3,) and (3, 3)")
