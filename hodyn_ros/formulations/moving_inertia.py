"""Spatial inertias in frames that a body moves in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Ad, Array, ad, inverse


def inertia_derivatives(body_inertia: Array, pose: Array, twists: Sequence[Array]) -> list[Array]:
    """Return `M = Ad_C^{-T} M^b Ad_C^{-1}` and its derivatives, (..., 6, 6), one per twist.

    `body_inertia` (6, 6) is constant in a frame with pose C (..., 4, 4) that moves with the spatial `twists`
    (..., 6) by order: `M' = -M ad_V - ad_V^T M`. Mueller (2020), eqs. 13 and 14.
    """
    transport = Ad(inverse(pose))
    brackets = [ad(twist) for twist in twists]
    result: list[Array] = [np.swapaxes(transport, -1, -2) @ body_inertia @ transport]
    for r in range(len(twists) - 1):
        half = product_derivative(result, brackets, r, np.matmul)
        result.append(-half - np.swapaxes(half, -1, -2))
    return result
