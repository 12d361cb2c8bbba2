"""Poses as robot descriptions write them: roll-pitch-yaw and Denavit-Hartenberg parameters."""

from __future__ import annotations

import math

import numpy as np

from hodyn_ros.lie import se3
from hodyn_ros.lie.se3 import Array

# A right angle that is written as a decimal number has a cosine of about 6e-17. Reading it as zero keeps the
# structural zeros of a robot exact, on which the compiled engine folds; the angle itself moves by less than
# its own rounding.
_RIGHT_ANGLE_SLACK = 1e-15


def from_rpy(xyz: Array, rpy: Array) -> Array:
    """Return the pose (4, 4) of a URDF origin.

    `xyz` (3,) is the translation [m], `rpy` (3,) roll, pitch and yaw [rad]. The angles turn about
    the fixed axes x, y, z in this order: `R = Rz(yaw) Ry(pitch) Rx(roll)`.

    >>> from_rpy(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, np.pi / 2]))
    array([[ 0., -1.,  0.,  1.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  1.,  0.],
           [ 0.,  0.,  0.,  1.]])
    """
    roll, pitch, yaw = (float(angle) for angle in rpy)
    return se3.pose(_about(2, yaw) @ _about(1, pitch) @ _about(0, roll), xyz) + 0.0


def from_modified_dh(a: float, alpha: float, d: float) -> Array:
    """Return the pose (4, 4) of a joint frame at zero angle from modified Denavit-Hartenberg parameters.

    `RotX(alpha) TransX(a) TransZ(d)`, with `a`, `d` [m] and `alpha` [rad]; the joint then turns about its own
    z axis. Craig, Introduction to Robotics, eq. 3.6.
    """
    rotation = _about(0, float(alpha))
    return se3.pose(rotation, rotation @ np.array([a, 0.0, d])) + 0.0


def _about(axis: int, angle: float) -> Array:
    cosine, sine = math.cos(angle), math.sin(angle)
    if abs(cosine) < _RIGHT_ANGLE_SLACK:
        cosine, sine = 0.0, math.copysign(1.0, sine)
    elif abs(sine) < _RIGHT_ANGLE_SLACK:
        cosine, sine = math.copysign(1.0, cosine), 0.0
    rotation = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    rotation[i, i] = rotation[j, j] = cosine
    rotation[i, j], rotation[j, i] = -sine, sine
    return rotation
