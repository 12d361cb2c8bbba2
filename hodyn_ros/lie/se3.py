"""Rotations, poses, screws and their adjoints, on plain NumPy arrays.

Twists are `V = (omega; v)` and wrenches `W = (m; f)`, angular part first. Poses are homogeneous (4, 4)
matrices `C = (R, r)`. Every function takes leading batch axes, written `...`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hodyn_ros.array import Array as Array

_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # the cyclic permutations of x, y, z
_SMALL_ANGLE = 0.02  # [rad] where power series of three terms are exact to rounding, and quotients are not


def matvec(matrix: Array, vector: Array) -> Array:
    """Multiply matrices (..., i, j) with vectors (..., j)."""
    return np.einsum("...ij,...j->...i", matrix, vector)


def dot(a: Array, b: Array) -> Array:
    """Multiply vectors (..., j) with vectors (..., j) to numbers (...), such as screws with wrenches."""
    return np.einsum("...j,...j->...", a, b)


def cross(a: Array, b: Array) -> Array:
    """Return cross products (..., 3), several times as fast as NumPy's for a few vectors.

    >>> cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    product: Array = a.take(_NEXT, -1) * b.take(_LAST, -1) - a.take(_LAST, -1) * b.take(_NEXT, -1)
    return product


def hat(vector: Array) -> Array:
    """Return the skew-symmetric matrix `x~` (..., 3, 3) with `x~ y = x × y`.

    >>> hat(np.array([1.0, 2.0, 3.0])) @ np.array([0.0, 0.0, 1.0])
    array([ 2., -1.,  0.])
    """
    result = np.zeros((*vector.shape, 3), np.result_type(vector, np.float64))
    result[..., 2, 1] = vector[..., 0]
    result[..., 0, 2] = vector[..., 1]
    result[..., 1, 0] = vector[..., 2]
    return result - np.swapaxes(result, -1, -2)


def _blocks(upper_left: Array, lower_left: Array, lower_right: Array) -> Array:
    result = np.zeros((*upper_left.shape[:-2], 6, 6), np.result_type(upper_left, np.float64))
    result[..., :3, :3] = upper_left
    result[..., 3:, :3] = lower_left
    result[..., 3:, 3:] = lower_right
    return result


def pose(rotation: Array, translation: Array) -> Array:
    """Assemble homogeneous poses (..., 4, 4) from rotations (..., 3, 3) and translations (..., 3) [m]."""
    result = np.zeros((*rotation.shape[:-2], 4, 4), np.result_type(rotation, translation, np.float64))
    result[..., :3, :3] = rotation
    result[..., :3, 3] = translation
    result[..., 3, 3] = 1.0
    return result


def transposed(matrices: Iterable[Array]) -> list[Array]:
    """Return the transposes of stacks of matrices (..., i, j), such as those of each order."""
    return [np.swapaxes(matrix, -1, -2) for matrix in matrices]


def inverse(pose_matrix: Array) -> Array:
    """Invert poses (..., 4, 4)."""
    rotation = np.swapaxes(pose_matrix[..., :3, :3], -1, -2)
    return pose(rotation, -matvec(rotation, pose_matrix[..., :3, 3]))


def nearest_rotation(matrix: Array) -> Array:
    """Return the proper orthogonal matrices closest to almost orthogonal ones (..., 3, 3)."""
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def without_rounding(rotation: Array) -> Array:
    """Return rotations (..., 3, 3) that are orthogonal to half of all digits, orthogonal to all of them.

    One step of Newton's method towards the nearest rotation, `R (3 - R^T R) / 2`.
    """
    return rotation @ (1.5 * np.eye(3) - 0.5 * np.swapaxes(rotation, -1, -2) @ rotation)


def Ad(pose_matrix: Array) -> Array:
    """Return `Ad_C = [[R, 0], [r~ R, R]]` (..., 6, 6): twists in the frame of C go to its reference."""
    rotation = pose_matrix[..., :3, :3]
    return _blocks(rotation, hat(pose_matrix[..., :3, 3]) @ rotation, rotation)


def ad(twist: Array) -> Array:
    """Return `ad_V = [[omega~, 0], [v~, omega~]]` (..., 6, 6), the Lie bracket with a twist (..., 6)."""
    angular = hat(twist[..., :3])
    return _blocks(angular, hat(twist[..., 3:]), angular)


def exp_screw(screw: Array, coordinate: Array) -> Array:
    """Return the pose (..., 4, 4) of a motion by `coordinate` (...) [rad or m] along a unit screw (6,).

    Rodrigues' formula; the screw is a unit one: revolute or helical `|omega| = 1`, prismatic `omega = 0, |v|
    = 1`.

    >>> exp_screw(np.array([0, 0, 1.0, 0, 0, 0]), np.array(np.pi / 2))[:3, :3].round(12) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    coordinate = np.asarray(coordinate, dtype=float)[..., None, None]
    omega, v = screw[:3], screw[3:]
    if not omega.any():
        rotation = np.broadcast_to(np.eye(3), (*coordinate.shape[:-2], 3, 3))
        return pose(rotation, coordinate[..., 0] * v)
    W = hat(omega)
    W2 = W @ W
    sine, versine = np.sin(coordinate), 2.0 * np.sin(0.5 * coordinate) ** 2
    rotation = np.eye(3) + sine * W + versine * W2
    # integral of the rotation over the coordinate, applied to v
    translation = matvec(coordinate * np.eye(3) + versine * W + (coordinate - sine) * W2, v)
    return pose(rotation, translation)


def exp(twist: Array) -> Array:
    """Return the poses (..., 4, 4) reached by a constant twist (..., 6) [rad, m] in unit time.

    Murray, Li & Sastry (1994), proposition 2.9.

    >>> exp(np.array([0, 0, np.pi / 2, 0, 0, 0.2])).round(12)[:, 2:] + 0.0
    array([[0. , 0. ],
           [0. , 0. ],
           [1. , 0.2],
           [0. , 1. ]])
    """
    W = hat(twist[..., :3])
    W2 = W @ W
    angle = np.linalg.norm(twist[..., :3], axis=-1)[..., None, None]
    sine, versine, remainder = _exponential_coefficients(angle)
    rotation = np.eye(3) + sine * W + versine * W2
    return pose(rotation, matvec(np.eye(3) + versine * W + remainder * W2, twist[..., 3:]))


def log(pose_matrix: Array) -> Array:
    """Return the twists (..., 6) of least angle, at most pi, whose `exp` are the given poses (..., 4, 4).

    At an angle of pi the axis may come out with either sign. Murray, Li & Sastry (1994), proposition 2.9.

    >>> log(exp(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])))
    array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    """
    from scipy.spatial.transform import Rotation  # takes a moment

    rotation = pose_matrix[..., :3, :3]
    vector = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_rotvec().reshape(rotation.shape[:-1])
    half = 0.5 * np.linalg.norm(vector, axis=-1)[..., None, None]
    W = hat(vector)
    # (1 - x cot x) / (2 x)^2 with x = half the angle; a series where the numerator would cancel
    small = half < _SMALL_ANGLE
    x = np.where(small, 1.0, half)
    series = (1.0 + half**2 / 15.0 * (1.0 + half**2 * (2.0 / 21.0))) / 12.0
    coefficient = np.where(small, series, (1.0 - x / np.tan(x)) / (4.0 * x**2))
    linear = matvec(np.eye(3) - 0.5 * W + coefficient * (W @ W), pose_matrix[..., :3, 3])
    return np.concatenate([vector, linear], axis=-1)


def _exponential_coefficients(angle: Array) -> tuple[Array, Array, Array]:
    """Return `sin x / x`, `(1 - cos x) / x^2` and `(x - sin x) / x^3`, smooth through x = 0."""
    small = angle < _SMALL_ANGLE
    x = np.where(small, 1.0, angle)
    series = (1.0 - angle**2 / 20.0 * (1.0 - angle**2 / 42.0)) / 6.0
    remainder = np.where(small, series, (x - np.sin(x)) / x**3)
    return np.sinc(angle / np.pi), 0.5 * np.sinc(0.5 * angle / np.pi) ** 2, remainder


def spatial_inertia(mass: Array, com: Array, inertia: Array) -> Array:
    """Return spatial inertias (..., 6, 6) about the body origin, in body axes.

    `mass` (...) [kg], `com` (..., 3) [m] in the body frame, `inertia` (..., 3, 3) [kg m^2] about the centre
    of mass. Kumar & Mueller (2021), eq. 12.
    """
    mass = np.asarray(mass, dtype=float)[..., None, None]
    first_moment = mass * hat(com)
    result = np.empty((*inertia.shape[:-2], 6, 6))
    result[..., :3, :3] = inertia - first_moment @ hat(com)
    result[..., :3, 3:] = first_moment
    result[..., 3:, :3] = -first_moment
    result[..., 3:, 3:] = mass * np.eye(3)
    return result
