"""Exponential coordinates of a moving frame, and its twists, each from the other with all derivatives.

A frame `C = exp(X)` with coordinates X (6,) [rad, m] has the body-fixed twist `V = phi(ad_X) X'` with
`phi(A) = sum_k (-A)^k / (k + 1)!`, the right-trivialised differential of exp: A. Iserles, H. Z. Munthe-Kaas,
S. P. Norsett, A. Zanna, Lie-group methods, Acta Numerica 9 (2000), section 2.5. It is invertible while the
angle of X is below 2 pi.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import derivative, to_derivatives, to_taylor
from hodyn_ros.lie.se3 import Array, ad, matvec

# The series is summed until its terms vanish beside one; that of a full turn has 50.
_TERMS = 200
_VANISHED = 1e-18
_FULL_TURN = 2.0 * np.pi


def body_twists(coordinates: Array) -> Array:
    """Return the body-fixed twist of `exp(X(t))` and its derivatives (orders, 6) [rad, m, /s^k].

    `coordinates` (orders + 1, 6): X and its time derivatives.

    >>> body_twists(np.array([[0, 0, 0, 1.0, 0, 0], [0, 0, 2.0, 0, 0, 0]])).round(12)
    array([[0., 0., 2., 0., 1., 0.]])
    """
    jets = to_taylor(coordinates)
    rates = derivative(jets)
    if not len(rates):
        return np.empty((0, 6))
    matrices = _differential(jets[:-1])
    twists = [matvec(matrices[k::-1], rates[: k + 1]).sum(axis=0) for k in range(len(rates))]
    return to_derivatives(np.stack(twists))


def coordinate_rates(coordinates: Array, twists: Array) -> Array:
    """Return X', X'', ... (orders, 6) from X (6,) and the body-fixed twists (orders, 6) of `exp(X(t))`.

    Raises InputError where X is a full turn or more.
    """
    angle = float(np.linalg.norm(coordinates[:3]))
    if not angle < _FULL_TURN:
        raise InputError(f"exponential coordinates end at a full turn, found an angle of {angle:g} rad")
    jets = [np.asarray(coordinates, dtype=np.float64)]
    rates: list[Array] = []
    for k, twist in enumerate(to_taylor(twists)):
        matrices = _differential(np.stack(jets))
        for i, rate in enumerate(rates):
            twist = twist - matrices[k - i] @ rate
        rates.append(np.linalg.solve(matrices[0], twist))
        jets.append(rates[-1] / (k + 1))
    return to_derivatives(np.array(rates).reshape(-1, 6))


def differential(coordinates: Array) -> Array:
    """Return the matrix `phi(ad_X)` (6, 6) with `V = phi(ad_X) X'` for coordinates X (6,)."""
    matrix: Array = _differential(np.asarray(coordinates, dtype=np.float64)[None])[0]
    return matrix


def _differential(jets: Array) -> Array:
    """Return the jet (orders, 6, 6) of `phi(ad_X)` from that of X (orders, 6)."""
    orders = len(jets)
    bracket = np.zeros((orders, 6, orders, 6))  # multiplies a jet by that of ad_X: the Cauchy product
    for k, block in enumerate(ad(jets)):
        for i in range(orders - k):
            bracket[k + i, :, i] = block
    matrix = bracket.reshape(6 * orders, 6 * orders)
    term = np.zeros((6 * orders, 6))
    term[:6] = np.eye(6)
    total = term
    for k in range(1, _TERMS):
        term = matrix @ term / -(k + 1.0)
        total = total + term
        if np.abs(term).max() <= _VANISHED:
            break
    return total.reshape(orders, 6, 6)
