"""Coordinates of a moving frame, and its pose and twists of any order from them.

The coordinates are x, y, z [m] and the angles roll, pitch, yaw [rad] about fixed axes, as in URDF:

    C = C_origin Trans(x, y, z) Rot_z(yaw) Rot_y(pitch) Rot_x(roll)

As a product of exponentials of smooth functions of time it is smooth wherever these are, also where pitch is
a right angle; the twists follow from them by Taylor arithmetic (`jets`), exactly and at any order. Only the
way back, from twists to rates of the angles, ends at that pitch, and is not needed here.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.lie import jets
from hodyn_ros.lie.jets import Array

COORDINATES = ("x", "y", "z", "roll", "pitch", "yaw")


def poses(coordinates: Array) -> Array:
    """Return the poses (..., 4, 4) of coordinates (..., 6) relative to the origin.

    >>> poses(np.array([1.0, 2.0, 3.0, 0.0, 0.0, np.pi / 2])).round(12)[:3] + 0.0
    array([[ 0., -1.,  0.,  1.],
           [ 1.,  0.,  0.,  2.],
           [ 0.,  0.,  1.,  3.]])
    """
    result = np.zeros((*coordinates.shape[:-1], 4, 4))
    result[..., :3, :3] = np.eye(3)
    result[..., :3, 3] = coordinates[..., :3]
    result[..., 3, 3] = 1.0
    for axis in (2, 1, 0):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        sine, cosine = np.sin(coordinates[..., 3 + axis, None]), np.cos(coordinates[..., 3 + axis, None])
        turned = result[..., :3, i] * cosine + result[..., :3, j] * sine
        result[..., :3, j] = result[..., :3, j] * cosine - result[..., :3, i] * sine
        result[..., :3, i] = turned
    return result


def body_twists(coordinates: Array) -> Array:
    """Return the body-fixed twist and its time derivatives (K, ..., 6) [rad/s^k, m/s^k].

    `coordinates` (K + 1, ..., 6) and their derivatives. The origin does not matter to the twists.

    >>> body_twists(np.array([[0, 0, 0, 0, 0, np.pi / 2], [1.0, 0, 0, 0, 0, 2.0]])).round(12) + 0.0
    array([[ 0.,  0.,  2.,  0., -1.,  0.]])
    """
    series = jets.to_taylor(coordinates)
    rates = jets.derivative(series)
    if not len(rates):
        return rates
    sine, cosine = jets.sin_cos(series[:-1, ..., 3:])
    # angular velocity, and velocity of the body's origin, turn by turn from fixed to body axes
    vectors = np.zeros((*rates.shape[:-1], 2, 3))
    vectors[..., 1, :] = rates[..., :3]
    for axis in (2, 1, 0):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        pair = vectors[..., [i, j]]
        along = jets.multiply(pair, cosine[..., axis, None, None])
        across = jets.multiply(pair, sine[..., axis, None, None])
        vectors[..., i] = along[..., 0] + across[..., 1]
        vectors[..., j] = along[..., 1] - across[..., 0]
        vectors[..., 0, axis] += rates[..., 3 + axis]
    return jets.to_derivatives(vectors.reshape(rates.shape))
