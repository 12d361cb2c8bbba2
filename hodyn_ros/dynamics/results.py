"""What calls of `Robot` return where a base or a platform moves besides the joints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array


class BaseAndJoints(NamedTuple):
    """Efforts or accelerations by order, those of the base first, as in the columns of all matrices.

    Of a batch with an axis of samples in front. `np.hstack` makes one array (order + 1, 6 + n) of the two.
    """

    base: Array  # (order + 1, 6) the wrench in the world frame, or derivatives of the twist
    joints: Array  # (order + 1, n)


class CoordinateMotion(NamedTuple):
    """The motion of the coordinates of a robot with loops."""

    base: BaseMotion | None  # of the platform, with spatial twists; None where all coordinates are joints
    joints: Array  # (orders, n) of the joints that are coordinates


class DriveState(NamedTuple):
    """What the drives do, by derivative order; of a batch with an axis of samples in front."""

    motion: Array  # (order + 3, driven) positions of the driven joints and their derivatives [rad or m, /s^k]
    efforts: Array  # (order + 1, driven) [N.m/s^k or N/s^k]
    base_wrench: Array | None  # (order + 1, 6) on a prescribed base, in the world frame
    near_singularity: (
        bool  # whether the pose, or one of them, is close to a singular one; efforts may be large
    )


def base_and_joints(table: Array) -> BaseAndJoints:
    """Split what a kernel returns for a floating base into the base's columns and those of the joints."""
    return BaseAndJoints(np.ascontiguousarray(table[..., :6]), np.ascontiguousarray(table[..., 6:]))
