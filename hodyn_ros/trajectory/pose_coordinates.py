"""Coordinates of a moving frame, and its pose and twists of any order from them.

The coordinates are x, y, z [m] and the angles roll, pitch, yaw [rad] about fixed axes, as in URDF:

    C = C_origin Trans(x, y, z) Rot_z(yaw) Rot_y(pitch) Rot_x(roll)

As a product of exponentials of smooth functions of time it is smooth wherever these are, also where pitch is
a right angle; the twists follow from them by Taylor arithmetic, exactly and at any order. Only the
way back, from twists to rates of the angles, ends at that pitch, and is not needed here.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import factorial
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.engine.series.series import Series, coefficient
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import Array, pose

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


def poses_and_twists(
    coordinates: Array, representation: BaseRepresentation = "body_fixed"
) -> tuple[Array, Array]:
    """Return poses (..., 4, 4), and twists `(omega; v)` (..., K, 6) by order [rad/s^k, m/s^k]; compiled.

    `coordinates` (..., K + 1, 6) and their time derivatives [m/s^k, rad/s^k]. The poses are relative to the
    origin, and so are twists of `frame` "spatial"; to body-fixed ones it does not matter.

    >>> moving = np.array([[0, 0, 0, 0, 0, np.pi / 2], [1.0, 0, 0, 0, 0, 2.0]])
    >>> poses_and_twists(moving)[1].round(12) + 0.0
    array([[ 0.,  0.,  2.,  0., -1.,  0.]])
    """
    batch, rows = coordinates.shape[:-2], coordinates.shape[-2]
    kernel = _kernel(rows, representation)
    if batch:
        many = np.ascontiguousarray(coordinates).reshape(-1, rows, len(COORDINATES))
        table = kernel.batch(many).reshape(*batch, *kernel.result)
    else:
        table = kernel.function(coordinates)
    upper = table[..., -2:, :].reshape(*batch, 3, 4)
    return pose(upper[..., :3], upper[..., 3]), np.ascontiguousarray(table[..., :-2, :])


@lru_cache(maxsize=KEPT)
def _kernel(rows: int, representation: BaseRepresentation) -> Kernel:
    return Kernel(partial(_trace, representation), [("the coordinates", (rows, len(COORDINATES)))])


def _trace(representation: BaseRepresentation, coordinates: Stack) -> Stack:
    """Return the twists by order, and the upper three rows of the pose in two rows."""
    place = coordinates[0]
    upper: list[list[Any]] = [[float(i == j) for j in range(3)] for i in range(3)]
    for axis in (2, 1, 0):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        sine, cosine = np.sin(place[3 + axis]), np.cos(place[3 + axis])
        for row in upper:
            row[i], row[j] = row[i] * cosine + row[j] * sine, row[j] * cosine - row[i] * sine
    numbers = [number for row, along in zip(upper, place) for number in (*row, along)]
    twists = [] if len(coordinates) == 1 else _twists(representation, coordinates)
    return [*twists, numbers[:6], numbers[6:]]


def _twists(representation: BaseRepresentation, coordinates: Stack) -> Stack:
    orders = range(len(coordinates) - 1)
    places = [Series([row[c] / factorial(k) for k, row in zip(orders, coordinates)]) for c in range(6)]
    rates = [Series([row[c] / factorial(k) for k, row in zip(orders, coordinates[1:])]) for c in range(6)]
    angular: list[Any] = [0.0, 0.0, 0.0]
    velocity: list[Any] = rates[:3]
    # turn by turn from fixed to body axes, or back
    for axis in (2, 1, 0) if representation == "body_fixed" else (0, 1, 2):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        cosine, sine = places[3 + axis].cos(), places[3 + axis].sin()
        for vector in (angular, velocity) if representation == "body_fixed" else (angular,):
            a, b = vector[i], vector[j]
            if representation == "body_fixed":
                vector[i], vector[j] = a * cosine + b * sine, b * cosine - a * sine
            else:
                vector[i], vector[j] = a * cosine - b * sine, b * cosine + a * sine
        angular[axis] = angular[axis] + rates[3 + axis]
    if representation == "spatial":  # at the origin
        x, y, z = places[:3]
        wx, wy, wz = angular
        lever = (y * wz - z * wy, z * wx - x * wz, x * wy - y * wx)
        velocity = [v + more for v, more in zip(velocity, lever)]
    return [[factorial(k) * coefficient(value, k) for value in (*angular, *velocity)] for k in orders]
