"""The subspaces of the joints that there are, as matrices of screws in the frame of the moved body.

Points are in that frame [m]; directions need not have unit length. Selig, Geometric Fundamentals of Robotics
(2005), section 3.5, lists the subgroups of SE(3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError

_ORIGIN = (0.0, 0.0, 0.0)


def revolute(axis: ArrayLike, point: ArrayLike = _ORIGIN, pitch: float = 0.0) -> Array:
    """Return the screw (6, 1) of a turn about an axis, with a `pitch` [m/rad] of a helical joint."""
    e = _unit(axis)
    return np.concatenate([e, np.cross(np.asarray(point), e) + pitch * e])[:, None]


def prismatic(axis: ArrayLike) -> Array:
    """Return the screw (6, 1) of a translation."""
    return np.concatenate([np.zeros(3), _unit(axis)])[:, None]


def cylindrical(axis: ArrayLike, point: ArrayLike = _ORIGIN) -> Array:
    """Return the screws (6, 2) of a turn about an axis and a translation along it."""
    return np.hstack([revolute(axis, point), prismatic(axis)])


def spherical(point: ArrayLike = _ORIGIN) -> Array:
    """Return the screws (6, 3) of turns about a point; the velocity is the angular one in body axes."""
    return np.hstack([revolute(axis, point) for axis in np.eye(3)])


def planar(normal: ArrayLike, first: ArrayLike) -> Array:
    """Return the screws (6, 3) of a turn about `normal` and translations along `first` and across both."""
    n, e = _unit(normal), _unit(first)
    if abs(n @ e) > 1e-9:
        raise ModelError(f"the first direction of a planar joint must lie in its plane, found {e} over {n}")
    return np.hstack([revolute(n), prismatic(e), prismatic(np.cross(n, e))])


def free() -> Array:
    """Return the screws (6, 6) of any motion; the velocity is the body-fixed twist."""
    return np.eye(6)


def _unit(direction: ArrayLike) -> Array:
    try:
        vector = np.asarray(direction, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"a direction must be three numbers: {error}") from error
    length = float(np.linalg.norm(vector))
    if vector.shape != (3,) or not np.isfinite(length) or length == 0.0:
        raise ModelError(f"a direction must be three numbers, not all zero; found {direction!r}")
    unit: Array = vector / length
    return unit
