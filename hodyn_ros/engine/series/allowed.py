"""The twists that a platform can have, the same at every pose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.engine.series.vectors import Scalar, dot
from hodyn_ros.lie.se3 import Ad, Array
from hodyn_ros.model.arrays import rounded


def allowed_twists(dof: Array, placement: Array, length: float) -> Array:
    """Return a basis (6, delta) of the twists `dof` in the platform frame, in world axes about its origin.

    Its columns are orthonormal where lengths are measured in `length`. `placement` (4, 4): the platform at
    home. It serves every pose: the columns of `P_p` form a Lie algebra, which the motions of the platform
    leave as it is.
    """
    scale = np.repeat([1.0, length], 3)
    if dof.shape[1] == 6:
        return np.diag(scale)
    turned = placement.copy()
    turned[:3, 3] = 0.0
    basis, triangle = np.linalg.qr((Ad(turned) @ dof) / scale[:, None])
    result: Array = rounded(basis * np.where(np.diag(triangle) < 0.0, -1.0, 1.0)) * scale[:, None]
    return result


def closed_directions(basis: Array, length: float) -> Array:
    """Return orthonormal columns (6, 6 - delta) at right angles to a basis, lengths measured in `length`."""
    scale = np.repeat([1.0, 1.0 / length], 3)
    result: Array = np.linalg.svd(scale[:, None] * basis)[0][:, basis.shape[1] :]
    return result


def distance_from_allowed(basis: Array, length: float, twists: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return the sum of squares of what is outside of a basis, relative to that of the twists."""
    scale = np.repeat([1.0, 1.0 / length], 3)
    closed = closed_directions(basis, length)
    off: Scalar = 0.0
    whole: Scalar = 1e-300
    for twist in twists:
        measured = [value * factor for value, factor in zip(twist, scale.tolist())]
        for column in closed.T.tolist():
            part = dot(column, measured)
            off = off + part * part
        whole = whole + dot(measured, measured)
    return off / whole
