"""Frames on bodies, and poses as descriptions write them: roll-pitch-yaw, Denavit-Hartenberg parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.arrays import frozen_array

# A right angle that is written as a decimal number has a cosine of about 6e-17. Reading it as zero keeps the
# structural zeros of a robot exact, on which the compiled engine folds; the angle itself moves by less than
# its own rounding.
_RIGHT_ANGLE_SLACK = 1e-15


class Frame(NamedTuple):
    """A frame that a body carries, or the ground: one with a name, or one in which a loop is measured."""

    body: int  # index of the body; -1 for the ground
    pose: Array  # (4, 4) in the frame of that body

    @classmethod
    def of_body(cls, body: int) -> Frame:
        """Return the frame of a body itself."""
        return cls(body, np.eye(4))

    @property
    def point(self) -> Array:
        """The origin (3,) in the frame of the body [m]."""
        return self.pose[:3, 3]

    @property
    def axes(self) -> Array:
        """The axes (3, 3): columns x, y, z in the frame of the body."""
        return self.pose[:3, :3]


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


def to_rpy(rotation: Array) -> Array:
    """Return roll, pitch and yaw (3,) of a rotation (3, 3), as `from_rpy` takes them [rad].

    At a pitch of a right angle, where only a sum or difference of roll and yaw is determined, yaw is zero.

    >>> to_rpy(from_rpy(np.zeros(3), np.array([0.3, -0.2, 0.1]))[:3, :3]).round(12)
    array([ 0.3, -0.2,  0.1])
    """
    from scipy.spatial.transform import Rotation

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Gimbal lock")
        angles: Array = Rotation.from_matrix(rotation).as_euler("xyz")
    return angles


DhConvention = Literal["standard", "modified"]


def from_dh(
    convention: DhConvention, a: float, alpha: float, d: float, theta: float = 0.0
) -> tuple[Array, Array]:
    """Return the pose (4, 4) of a body on the one before it, and that of its joint frame there.

    The joint turns about the z axis of its frame, or slides along it; the poses are those at zero. The
    parameters of Denavit and Hartenberg are `a`, `d` [m], `alpha` and `theta` [rad]. In the standard
    convention the body is at `RotZ(theta) TransZ(d) TransX(a) RotX(alpha)`, its joint at the frame of the
    body before it (Mueller 2020, eq. 5); in the modified one it is at `RotX(alpha) TransX(a) RotZ(theta)
    TransZ(d)`, and its joint there as well (Craig, Introduction to Robotics, eq. 3.6).
    """
    along_x = se3.pose(_about(0, float(alpha)), np.array([a, 0.0, 0.0]))
    along_z = se3.pose(_about(2, float(theta)), np.array([0.0, 0.0, d]))
    if convention == "standard":
        return along_z @ along_x + 0.0, np.eye(4)
    placement: Array = along_x @ along_z + 0.0
    return placement, placement


def dh_chain(table: ArrayLike, convention: DhConvention, kinds: Sequence[str]) -> tuple[Array, Array]:
    """Return unit joint screws (n, 6) and body frames (n, 4, 4), of a table as `Robot.from_dh` takes it."""
    rows = frozen_array("table", table, None)
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows):
        raise ModelError(
            f"table must have shape (n, 4), a row (a, alpha, d, theta) a joint; found {rows.shape}"
        )
    if convention not in get_args(DhConvention):
        raise ModelError(f"there is no convention {convention!r}; it is 'standard' or 'modified'")
    if len(kinds) != len(rows):
        raise ModelError(f"kinds must name {len(rows)} joints, found {len(kinds)}")
    screws, placements, before = [], [], np.eye(4)
    for number, (row, kind) in enumerate(zip(rows, kinds), start=1):
        if kind not in ("revolute", "prismatic"):
            raise ModelError(
                f"joint {number} has the kind {kind!r}; joints of a table are revolute or prismatic"
            )
        placement, joint = (before @ each for each in from_dh(convention, *row))
        axis, point = joint[:3, 2], joint[:3, 3]
        screws.append([*np.zeros(3), *axis] if kind == "prismatic" else [*axis, *np.cross(point, axis)])
        placements.append(placement)
        before = placement
    return np.array(screws), np.array(placements)


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
