"""Euler angles of a floating base: coordinates (x, y, z, roll, pitch, yaw) by order, and its twists.

Roll, pitch and yaw turn about the fixed axes x, y and z in this order, `R = R_z(yaw) R_y(pitch) R_x(roll)`,
as in URDF. Six numbers instead of a pose are what polynomials and optimisers take; the price is a pitch of 90
degrees up or down, where the map Gamma from angular velocity to rates of the angles does not exist (Garofalo,
Ott & Albu-Schaeffer, 2013, remark 7 and eq. 33).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.lie.jets import multiply, sin_cos, to_derivatives, to_taylor
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, Frame
from hodyn_ros.lie.se3 import Array

_SINGULAR = 1e-6  # of the cosine of the pitch


def euler_base(coordinates: ArrayLike, frame: Frame = "world") -> BaseMotion:
    """Return the motion of a base from its coordinates and their derivatives.

    `coordinates` (orders + 1, 6), or a batch (N, orders + 1, 6): x, y, z [m], roll, pitch, yaw [rad], then
    derivative by derivative. Returns `orders` twists in the representation `frame`. Raises InputError for
    wrong shapes and numbers that are not finite.
    """
    stack = _stack(coordinates)
    maps, rotation = _velocity_maps(stack)
    rates = stack[1:]
    twists = np.stack([product_derivative(maps, rates, k) for k in range(len(rates))])
    pose = np.zeros((*stack.shape[1:-1], 4, 4))
    pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = rotation, stack[0, ..., :3], 1.0
    return BaseMotion(pose, np.moveaxis(twists, 0, -2), frame="body").in_frame(frame)


def euler_coordinates(base: BaseMotion) -> Array:
    """Return coordinates (orders + 1, 6) of a base and their derivatives, of a batch (N, orders + 1, 6).

    Roll and yaw lie within ±pi, the pitch within ±pi/2. Raises SingularError where the pitch is ±90 degrees.
    """
    rotation = base.pose[..., :3, :3]
    cosine = np.hypot(rotation[..., 0, 0], rotation[..., 1, 0])
    if (cosine < _SINGULAR).any():
        raise SingularError(
            "the pitch of the base is 90 degrees, where roll and yaw turn about one axis: its Euler angles "
            "have no rates; use its twist",
            float(1.0 / max(float(np.min(cosine)), 1e-300)),
        )
    angles = [
        np.arctan2(rotation[..., 2, 1], rotation[..., 2, 2]),
        np.arctan2(-rotation[..., 2, 0], cosine),
        np.arctan2(rotation[..., 1, 0], rotation[..., 0, 0]),
    ]
    found = [np.concatenate([base.pose[..., :3, 3], np.stack(angles, axis=-1)], axis=-1)]
    twists = np.moveaxis(base.in_frame("body").twists, -2, 0)
    for k in range(base.orders):
        # the next derivative counts with the map itself, which is known; what lower ones do is subtracted
        maps, _ = _velocity_maps(np.stack([*found, np.zeros_like(found[0])]))
        known = product_derivative(maps, [*found[1:], np.zeros_like(found[0])], k)
        missing = (twists[k] - known)[..., None]
        found.append(np.linalg.solve(maps[0], missing)[..., 0])
    return np.stack(found, axis=-2)


def euler_velocity_maps(coordinates: ArrayLike) -> Array:
    """Return T (orders, 6, 6) with `V = T x'`, V the body-fixed twist, and its time derivatives.

    `coordinates` x as in `euler_base`. Equations of motion in body-fixed velocities become those in x by `T^T
    M T`, forces by `T^T Q`; the inverse of its angular part is Gamma of Garofalo et al.
    """
    maps, _ = _velocity_maps(_stack(coordinates))
    return np.stack(maps, axis=-3)


def _stack(coordinates: ArrayLike) -> Array:
    """Return coordinates with the order on axis 0."""
    shapes = "(orders + 1, 6) or (N, orders + 1, 6)"
    array = real_array("the coordinates", coordinates, shapes)
    if array.ndim not in (2, 3) or array.shape[-1] != 6 or array.shape[-2] < 2:
        raise InputError(f"the coordinates must have shape {shapes}, two rows at least; found {array.shape}")
    check_finite("the coordinates", array)
    return np.moveaxis(array, -2, 0)


def _velocity_maps(stack: Array) -> tuple[list[Array], Array]:
    """Return T (..., 6, 6) by order, and the rotation (..., 3, 3) of the pose."""
    s, c = sin_cos(to_taylor(stack[:-1, ..., 3:]))
    (sr, sp, sy), (cr, cp, cy) = ([x[..., i] for i in range(3)] for x in (s, c))
    zero, one = np.zeros_like(sr), np.zeros_like(sr)
    one[0] = 1.0
    srsp, crsp = multiply(sr, sp), multiply(cr, sp)
    rotation = [
        [multiply(cy, cp), multiply(cy, srsp) - multiply(sy, cr), multiply(cy, crsp) + multiply(sy, sr)],
        [multiply(sy, cp), multiply(sy, srsp) + multiply(cy, cr), multiply(sy, crsp) - multiply(cy, sr)],
        [-sp, multiply(cp, sr), multiply(cp, cr)],
    ]
    angular = [[one, zero, -sp], [zero, cr, multiply(sr, cp)], [zero, -sr, multiply(cr, cp)]]
    maps = np.zeros((*sr.shape, 6, 6))
    for i in range(3):
        for j in range(3):
            maps[..., i, 3 + j] = angular[i][j]
            maps[..., 3 + j, i] = rotation[i][j]  # R^T
    found = to_derivatives(maps)
    return list(found), np.swapaxes(found[0][..., 3:, :3], -1, -2)
