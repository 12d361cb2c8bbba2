"""Second partial derivatives of forward and hybrid dynamics from those of inverse dynamics, as numbers.

What `hodyn_ros.engine.second_partials` traces where code would not be too long; that says where from.
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
    by_forces = responses[..., 2:, :, :]
    nu: Array = -np.einsum("...ri,...rkij->...kj", multiplier, by_forces)
    nu[..., list(prescribed)] = multiplier[..., list(prescribed)]
    return nu


def answered(hessian: Array, responses: Array, prescribed: Sequence[int]) -> Array:
    """Return `S^T H S` of second derivatives H by the motion, which changes by S with what is given."""
    orders, m = hessian.shape[-4], hessian.shape[-1]
    moves = np.zeros((*responses.shape[:-4], orders, orders, m, m))
    moves[..., 0, 0, :, :] = moves[..., 1, 1, :, :] = np.eye(m)
    moves[..., 2:, :, :, :] = responses
    for i in prescribed:
        moves[..., 2:, :, i, :] = 0.0
        for r in range(2, orders):
            moves[..., r, r, i, i] = 1.0
    whole = np.moveaxis(moves, -3, -2).reshape(*moves.shape[:-4], orders * m, orders * m)
    square = np.moveaxis(hessian, -3, -2).reshape(*hessian.shape[:-4], orders * m, orders * m)
    values = np.swapaxes(whole, -1, -2) @ square @ whole
    blocks = values.reshape(*values.shape[:-2], orders, m, orders, m)
    result: Array = np.ascontiguousarray(np.moveaxis(blocks, -2, -3))
    return result
