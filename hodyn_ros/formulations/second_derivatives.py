"""Second partial derivatives of forward and hybrid dynamics from those of inverse dynamics.

Where the motion x changes by S dy, the equations of motion hold, and

    d²(multiplier · results) = S^T d²(nu · Q) S

with nu of the results themselves the multiplier, and else minus the multiplier times the first partial
derivatives by forces: S. Singh, R. Russell & P. Wensing, "On second-order derivatives of rigid-body dynamics:
theory & implementation" (2024), section IV, here of any order in time. Arrays are of numbers, or of scalars
that are traced.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.lie.se3 import Array


def of_displacements(changes: Array, floating: bool) -> Array:
    """Return second derivatives from changes (..., k, l, i, j) of the derivative by x_i^(k) along x_j^(l).

    Of displacements of a floating base the order counts; the second derivatives by xi where its pose becomes
    `pose exp(xi)` are the mean of both.
    """
    if floating:
        first = changes[..., 0, 0, :6, :6]
        changes[..., 0, 0, :6, :6] = 0.5 * (first + np.swapaxes(first, -1, -2))
    return changes


def hybrid_weights(responses: Array, multiplier: Array, prescribed: Sequence[int]) -> Array:
    """Return nu (..., order + 1, m): what second derivatives of Q are weighted with.

    `responses` (..., order + 1, order + 3, m, m): the first derivatives of what is found by what is given.
    """
    by_forces = np.moveaxis(responses[..., 2:, :, :], -4, -3)  # the result's order beside its rows
    *batch, orders, _, m, _ = by_forces.shape
    weights = multiplier.reshape(*multiplier.shape[:-2], 1, 1, orders * m)
    nu: Array = -(weights @ by_forces.reshape(*batch, orders, orders * m, m))[..., 0, :]
    nu[..., list(prescribed)] = multiplier[..., list(prescribed)]
    return nu


def answered(hessian: Array, responses: Array, prescribed: Sequence[int]) -> Array:
    """Return `S^T H S` of second derivatives H by the motion, which changes by S with what is given."""
    orders, m = hessian.shape[-4], hessian.shape[-1]
    moves, state = responses.copy(), slice(2 * m)  # which is given, and moves as it does
    for i in prescribed:
        moves[..., i, :] = 0.0
        for r in range(orders - 2):
            moves[..., r, r + 2, i, i] = 1.0
    rates = np.moveaxis(moves, -3, -2).reshape(*moves.shape[:-4], (orders - 2) * m, orders * m)
    square = np.moveaxis(hessian, -3, -2).reshape(*hessian.shape[:-4], orders * m, orders * m)
    half = square[..., 2 * m :] @ rates
    half[..., state] += square[..., state]
    values = np.swapaxes(rates, -1, -2) @ half[..., 2 * m :, :]
    values[..., state, :] += half[..., state, :]
    row, column = np.tril_indices(orders * m, -1)
    values[..., row, column] = values[..., column, row]
    blocks = values.reshape(*values.shape[:-2], orders, m, orders, m)
    result: Array = np.ascontiguousarray(np.moveaxis(blocks, -2, -3))
    return result
