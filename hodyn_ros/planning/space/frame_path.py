"""Paths of a frame in space: straight lines and arcs, turned by the shortest way, with rounded corners.

The parameter u is the way along lines and arcs [m]. Each of them, k, adds its displacement and its rotation
with a share sigma_k(u) of its own, which goes from 0 to 1:

    p(u) = p_0 + sum_k d_k(sigma_k(u)),    R(u) = R_0 prod_k exp(phi_k sigma_k(u))

Around a corner the share before still ends while the next one begins, both by smooth steps over the same
stretch; so the frame leaves its line `blend` [m] before the corner and is on the next one as far behind it,
and p and R have five continuous derivatives. Source of such overlaps: Biagiotti and Melchiorri, Trajectory
Planning for Automatic Machines and Robots (Springer 2008), section 9.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie import jets

# a smooth step from 0 to 1 with four derivatives that vanish at its ends, and its integral, by powers
_STEP = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0])
_INTEGRAL = np.append(0.0, _STEP / np.arange(1, len(_STEP) + 1))
_TURN = 0.2  # [m] along the path for each rad, where the frame turns more than it goes
_SAME = 1e-9  # [m or rad]


class Waypoint(NamedTuple):
    """Where a piece of a path leads to."""

    position: ArrayLike  # (3,) [m]
    rotation: ArrayLike | None = None  # (3, 3); None: as before
    through: ArrayLike | None = None  # (3,) [m] a point of an arc on the way; None: a straight line
    blend: float | None = None  # [m] from which distance on the corner there is rounded


@dataclass(frozen=True)
class _Piece:
    """A line or an arc: where it begins and ends along the path, and how it leads on."""

    begin: float  # [m]
    end: float
    turn: Array  # (3,) rotation vector in the frame at its beginning [rad]
    way: Array  # (3,) [m] of a line
    axis: Array | None = None  # (3,) of an arc
    radius: Array | None = None  # (3,) from its centre to its beginning [m]
    angle: float = 0.0  # [rad]


class FramePath:
    """A path of a frame from a pose (4, 4) along waypoints, in the world.

    `blend` [m] is that of corners whose waypoint has none. Raises InputError where a piece has no length, an
    arc is a line, or corners are nearer to each other than their blends.
    """

    def __init__(self, start: ArrayLike, waypoints: Sequence[Waypoint], blend: float = 0.02) -> None:
        self.start = np.array(start, dtype=np.float64)
        if not waypoints:
            raise InputError("a path needs a waypoint at least")
        pieces: list[_Piece] = []
        pose = self.start
        for i, waypoint in enumerate(waypoints):
            piece, pose = _piece(pose, waypoint, pieces[-1].end if pieces else 0.0, f"waypoint {i}")
            pieces.append(piece)
        self.pieces, self.length = pieces, pieces[-1].end
        blends = [blend if waypoint.blend is None else waypoint.blend for waypoint in waypoints[:-1]]
        self.blends = np.array([0.0, *blends, 0.0])
        for i, piece in enumerate(pieces):
            length = piece.end - piece.begin
            if i and not self.blends[i] > 0.0:
                raise InputError(f"the blend at waypoint {i - 1} must be positive, found {self.blends[i]:g}")
            if self.blends[i] + self.blends[i + 1] > length:
                raise InputError(
                    f"the way to waypoint {i} is {length:.4g} m long, and its blends take "
                    f"{self.blends[i]:g} m and {self.blends[i + 1]:g} m of it; give smaller ones"
                )

    @property
    def breakpoints(self) -> Array:
        """Where derivatives beyond the fifth may jump (N,) [m]."""
        corners = np.array([piece.begin for piece in self.pieces] + [self.length])
        return np.unique(np.concatenate([corners - self.blends, corners + self.blends]))

    def at(self, places: ArrayLike, order: int) -> tuple[Array, Array]:
        """Return poses (N, 4, 4), and hybrid twists with their derivatives (N, order, 6) by u, at u (N,)."""
        u = np.asarray(places, dtype=np.float64)
        count = order + 1
        position = np.zeros((count, len(u), 3))
        position[0] = self.start[:3, 3]
        rotation = np.zeros((count, len(u), 3, 3))
        rotation[0] = self.start[:3, :3]
        for i, piece in enumerate(self.pieces):
            share = self._share(i, u, order)
            position += _displacement(piece, share)
            if piece.turn.any():
                rotation = _product(rotation, _turned(piece.turn, share))
        poses = np.tile(np.eye(4), (len(u), 1, 1))
        poses[:, :3, :3], poses[:, :3, 3] = rotation[0], position[0]
        if not order:
            return poses, np.zeros((len(u), 0, 6))
        rates = _product(jets.derivative(rotation), np.swapaxes(rotation[:-1], -1, -2))
        omega = np.stack([rates[..., 2, 1], rates[..., 0, 2], rates[..., 1, 0]], axis=-1)
        twists = np.concatenate([omega, jets.derivative(position)], axis=-1)
        return poses, np.ascontiguousarray(np.moveaxis(jets.to_derivatives(twists), 0, 1))

    def speeds(self, places: ArrayLike) -> Array:
        """Return how far the frame goes for each m of u (N,), at u (N,): 1, less where it turns or rounds."""
        return np.asarray(np.linalg.norm(self.at(places, 1)[1][:, 0, 3:], axis=1))

    def _share(self, i: int, u: Array, order: int) -> Array:
        """Return the jet (order + 1, N) of sigma_i."""
        piece = self.pieces[i]
        gone = _ramp(u - piece.begin, self.blends[i], order) - _ramp(u - piece.end, self.blends[i + 1], order)
        if i == len(self.pieces) - 1:  # nothing ends the last one
            gone = _ramp(u - piece.begin, self.blends[i], order)
        return gone / (piece.end - piece.begin)


def _ramp(off: Array, blend: float, order: int) -> Array:
    """Return the jet (order + 1, N) of what begins to grow evenly at 0, by a smooth step around it."""
    result = np.zeros((order + 1, len(off)))
    if blend > 0.0:
        x = np.clip((off + blend) / (2.0 * blend), 0.0, 1.0)
        powers, scale = _INTEGRAL * 2.0 * blend, 1.0
        for k in range(order + 1):
            result[k] = np.polynomial.polynomial.polyval(x, powers) / scale
            powers = powers[1:] * np.arange(1, len(powers))
            scale *= 2.0 * blend
    behind = off >= blend
    result[:, behind] = 0.0
    result[0, behind] = off[behind]
    if order:
        result[1, behind] = 1.0
    if blend == 0.0:  # the start of the path, which goes on evenly before it
        result[0] = off
        if order:
            result[1] = 1.0
    return jets.to_taylor(result)


def _piece(pose: Array, waypoint: Waypoint, begin: float, name: str) -> tuple[_Piece, Array]:
    """Return the piece that leads from a pose to a waypoint, and the pose there."""
    there = pose.copy()
    there[:3, 3] = waypoint.position
    if waypoint.rotation is not None:
        there[:3, :3] = waypoint.rotation
    turn = Rotation.from_matrix(pose[:3, :3].T @ there[:3, :3]).as_rotvec()
    way = there[:3, 3] - pose[:3, 3]
    rotated = _TURN * float(np.linalg.norm(turn))
    if waypoint.through is None:
        length = max(float(np.linalg.norm(way)), rotated)
        if length < _SAME:
            raise InputError(f"{name} is where the path is already; leave it out")
        return _Piece(begin, begin + length, turn, way), there
    through = np.array(waypoint.through, dtype=np.float64) - pose[:3, 3]
    normal = np.cross(through, way)
    size = float(normal @ normal)
    if size <= (1e-6 * max(through @ through, way @ way)) ** 2:
        raise InputError(
            f"the arc to {name} is none: its beginning, `through` and end lie on a line, or two of them are "
            "the same; leave `through` out, or make a circle of two arcs"
        )
    # the centre of the circle through 0, `through` and `way`
    centre = (np.cross(normal, through) * (way @ way) + np.cross(way, normal) * (through @ through)) / (
        2.0 * size
    )
    axis, radius = normal / np.sqrt(size), -centre
    across = np.cross(axis, radius)
    angle = float(np.arctan2((way - centre) @ across, (way - centre) @ radius)) % (2.0 * np.pi)
    length = max(angle * float(np.linalg.norm(radius)), rotated)
    return _Piece(begin, begin + length, turn, way, axis, radius, angle), there


def _displacement(piece: _Piece, share: Array) -> Array:
    """Return the jet (order + 1, N, 3) of how far a piece has led."""
    if piece.axis is None or piece.radius is None:
        return share[:, :, None] * piece.way
    sine, cosine = jets.sin_cos(piece.angle * share)
    cosine[0] -= 1.0
    return cosine[:, :, None] * piece.radius + sine[:, :, None] * np.cross(piece.axis, piece.radius)


def _turned(turn: Array, share: Array) -> Array:
    """Return the jet (order + 1, N, 3, 3) of exp(turn share)."""
    angle = float(np.linalg.norm(turn))
    x, y, z = turn / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, cosine = jets.sin_cos(angle * share)
    result = sine[:, :, None, None] * cross - cosine[:, :, None, None] * (cross @ cross)
    result[0] += np.eye(3) + cross @ cross
    return np.asarray(result)


def _product(a: Array, b: Array) -> Array:
    """Return the jet of the product of two matrices (K, N, 3, 3)."""
    return np.stack([sum(a[i] @ b[k - i] for i in range(k + 1)) for k in range(len(a))])
