"""Euler angles of a floating base: coordinates (x, y, z, roll, pitch, yaw) by order, and its twists.

Roll, pitch and yaw turn about the fixed axes x, y and z in this order, `R = R_z(yaw) R_y(pitch) R_x(roll)`,
as in URDF. Six numbers instead of a pose are what polynomials and optimisers take; the price is a pitch of 90
degrees up or down, where the map Gamma from angular velocity to rates of the angles does not exist (Garofalo,
Ott & Albu-Schaeffer, 2013, remark 7 and eq. 33).
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.checks import check_finite, real_array
from hodyn_ros.digits import (
    DRAWS,
    Accuracy,
    accuracy,
    natural_rates,
    refuse_without_digits,
    rounded,
    sizes_by_order,
)
from hodyn_ros.errors import InputError, ShapeError, SingularError
from hodyn_ros.lie.jets import multiply, sin_cos, to_derivatives, to_taylor
from hodyn_ros.lie.leibniz import product_derivative, product_derivatives
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation

_SINGULAR = 1e-6  # of the cosine of the pitch
_ROUNDING = float(np.finfo(np.float64).eps)
_UNSURE = 1e-8  # share of a derivative from which on it is tried how much of it is rounding


def euler_base(coordinates: ArrayLike, representation: BaseRepresentation = "spatial") -> BaseMotion:
    """Return the motion of a base from its coordinates and their derivatives.

    `coordinates` (orders + 1, 6), or a batch (N, orders + 1, 6): x, y, z [m], roll, pitch, yaw [rad], then
    derivative by derivative. Returns `orders` twists in the representation `frame`. Raises InputError for
    wrong shapes and numbers that are not finite.
    """
    stack = _stack(coordinates)
    maps, rotation = _velocity_maps(stack)
    rates = stack[1:]
    twists = np.stack(product_derivatives(maps, rates, len(rates)))
    pose = np.zeros((*stack.shape[1:-1], 4, 4))
    pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = rotation, stack[0, ..., :3], 1.0
    return BaseMotion(pose, np.moveaxis(twists, 0, -2), representation="body_fixed").in_representation(
        representation
    )


def euler_coordinates(base: BaseMotion) -> Array:
    """Return coordinates (orders + 1, 6) of a base and their derivatives, of a batch (N, orders + 1, 6).

    Roll and yaw lie within ±pi, the pitch within ±pi/2. Raises SingularError where the pitch is ±90 degrees,
    and near it where fewer than six digits are left of a derivative, as `euler_accuracy` says.
    """
    cosine = _cosine_of_pitch(base)
    if (cosine < _SINGULAR).any():
        raise SingularError(
            "the pitch of the base is 90 degrees, where roll and yaw turn about one axis: its Euler angles "
            "have no rates; use its twist",
            float(1.0 / max(float(np.min(cosine)), 1e-300)),
            int(np.argmin(cosine)),
        )
    result = _coordinates(base)
    # each order divides by the cosine once more
    unsure = cosine ** (base.orders + 1) < factorial(base.orders) * _UNSURE
    for sample in np.flatnonzero(unsure):
        try:
            refuse_without_digits(
                _accuracy(base.one(int(sample)), result[sample]) if base.batch else _accuracy(base, result),
                "the motion in Euler angles, with a pitch near 90 degrees,",
                "use the twist",
            )
        except SingularError as error:
            error.sample = int(sample)
            raise
    return result


def euler_accuracy(base: BaseMotion) -> Accuracy:
    """Estimate how accurate `euler_coordinates` are, of one motion, positions and then angles.

    From what they are of a motion that differs by its rounding; see `hodyn_ros.digits`.
    """
    if base.batch:
        raise InputError("the accuracy is that of one motion, not of a batch")
    return _accuracy(base, _coordinates(base))


def _accuracy(base: BaseMotion, computed: Array) -> Accuracy:
    rng = np.random.default_rng(0)
    moved = []
    for _ in range(DRAWS):
        pose = base.pose * (1.0 + _ROUNDING * rng.uniform(-1.0, 1.0, base.pose.shape))
        off = _ROUNDING * rng.uniform(-1.0, 1.0, 3)
        beside = _coordinates(BaseMotion.computed(pose, rounded(base.twists, rng), base.representation), off)
        turns = 2.0 * np.pi * np.round((beside[0, 3:] - computed[0, 3:]) / (2.0 * np.pi))
        beside[0, 3:] -= turns
        moved.append([beside[:, :3], beside[:, 3:]])
    parts = [computed[:, :3], computed[:, 3:]]
    natural = [natural_rates(sizes_by_order(part)[1:], len(part)) for part in parts]
    return accuracy(parts, moved, natural)


def _cosine_of_pitch(base: BaseMotion) -> Array:
    result: Array = np.hypot(base.pose[..., 0, 0], base.pose[..., 1, 0])
    return result


def _coordinates(base: BaseMotion, off: Array | float = 0.0) -> Array:
    """Return what `euler_coordinates` does, whatever is left of it, with angles wrong by shares of `off`."""
    rotation, cosine = base.pose[..., :3, :3], _cosine_of_pitch(base)
    angles = [
        np.arctan2(rotation[..., 2, 1], rotation[..., 2, 2]),
        np.arctan2(-rotation[..., 2, 0], cosine),
        np.arctan2(rotation[..., 1, 0], rotation[..., 0, 0]),
    ]
    turns = np.stack(angles, axis=-1) * (1.0 + off)
    derivatives = [np.concatenate([base.pose[..., :3, 3], turns], axis=-1)]
    twists = np.moveaxis(base.in_representation("body_fixed").twists, -2, 0)
    for k in range(base.orders):
        # the next derivative counts with the map itself, which is known; what lower ones do is subtracted
        maps, _ = _velocity_maps(np.stack([*derivatives, np.zeros_like(derivatives[0])]))
        known = product_derivative(maps, [*derivatives[1:], np.zeros_like(derivatives[0])], k)
        missing = (twists[k] - known)[..., None]
        derivatives.append(np.linalg.solve(maps[0], missing)[..., 0])
    return np.stack(derivatives, axis=-2)


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
        raise ShapeError("the coordinates", f"{shapes}, two rows at least", array.shape)
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
    by_order = to_derivatives(maps)
    return list(by_order), np.swapaxes(by_order[0][..., 3:, :3], -1, -2)
