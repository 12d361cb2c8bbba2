"""Motions to test with, the same ones every time."""

from __future__ import annotations

from random import Random

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.lie.se3 import Array

COUNT = 5
REACH = 2.0  # of positions without limits, and of all derivatives [rad or m, /s^k]


def joint_motion(robot: Robot, rows: int, random: Random) -> Array:
    """Return positions within the limits and derivatives (rows, n) of the joints of a tree."""
    q = numbers(random, rows, robot.n_coordinates)
    lower = np.maximum(robot.limits.position_lower, -REACH)
    upper = np.minimum(robot.limits.position_upper, REACH)
    # limits that lie beyond the reach altogether are kept all the same
    lower, upper = (
        np.minimum(lower, robot.limits.position_upper),
        np.maximum(upper, robot.limits.position_lower),
    )
    q[0] = lower + (q[0] + REACH) / (2.0 * REACH) * (upper - lower)
    return q


def numbers(random: Random, rows: int, columns: int, reach: float = REACH) -> Array:
    """Return numbers up to `reach`, of three digits."""
    values = [[round(random.uniform(-REACH, REACH), 3) for _ in range(columns)] for _ in range(rows)]
    return np.array(values).reshape(rows, columns) * (reach / REACH)


def pose(random: Random) -> Array:
    """Return the pose (4, 4) of a base anywhere."""
    w, x, y, z = (random.gauss(0.0, 1.0) for _ in range(4))
    s = 2.0 / (w * w + x * x + y * y + z * z)
    result = np.eye(4)
    result[:3, :3] = [
        [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
        [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
        [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
    ]
    result[:3, 3] = numbers(random, 1, 3)[0]
    return result
