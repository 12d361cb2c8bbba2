"""Checks of poses that public calls are given; a rejection says what is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.checks import check_finite, finite_array, real_array
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.se3 import pose, without_rounding

_ORTHOGONAL = 1e-9  # by which the columns of a rotation may fail to be orthonormal


def rigid_pose(name: str, values: ArrayLike) -> Array:
    """Return a homogeneous matrix (4, 4) with its rotation made exact, lest its rounding look like strain."""
    array = finite_array(name, values, (4, 4))
    rotation = array[:3, :3]
    orthogonal = np.abs(rotation.T @ rotation - np.eye(3)).max() <= _ORTHOGONAL
    if not orthogonal or np.linalg.det(rotation) < 0.0 or not np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)):
        raise InputError(f"{name} must be a homogeneous matrix: a rotation, a translation, and (0, 0, 0, 1)")
    return pose(without_rounding(rotation), array[:3, 3])


def rigid_poses(name: str, values: ArrayLike) -> Array:
    """Return homogeneous matrices (4, 4), or a batch (N, 4, 4), as `rigid_pose` does."""
    array = real_array(name, values, "(4, 4) or (N, 4, 4)")
    if array.ndim != 3:
        return rigid_pose(name, array)
    check_finite(name, array)
    rotation, last = array[:, :3, :3], np.array([0.0, 0.0, 0.0, 1.0])
    if array.shape[1:] != (4, 4) or not len(array):
        raise ShapeError(name, "(4, 4) or (N, 4, 4)", array.shape)
    strained = np.abs(np.swapaxes(rotation, 1, 2) @ rotation - np.eye(3)).max(axis=(1, 2)) > _ORTHOGONAL
    wrong = strained | (np.linalg.det(rotation) < 0.0) | (array[:, 3] != last).any(axis=1)
    if wrong.any():
        return rigid_pose(f"{name} of sample {int(np.argmax(wrong))}", array[np.argmax(wrong)])
    return pose(without_rounding(rotation), array[:, :3, 3])
