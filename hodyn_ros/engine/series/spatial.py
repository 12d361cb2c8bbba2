"""Motions and wrenches over abstract scalars, as pairs of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.series.vectors import ZERO, Scalar, Vector, add, cross, dot, scale, subtract

Matrix = tuple[Vector, Vector, Vector]  # by rows
Axes = tuple[Vector, Vector, Vector]
Spatial = tuple[Vector, Vector]  # (angular; linear) of a motion, (moment; force) of a wrench

NOTHING: Spatial = (ZERO, ZERO)


def plus(a: Spatial, b: Spatial) -> Spatial:
    """Add two motions or two wrenches."""
    return add(a[0], b[0]), add(a[1], b[1])


def minus(a: Spatial, b: Spatial) -> Spatial:
    """Subtract two motions or two wrenches."""
    return subtract(a[0], b[0]), subtract(a[1], b[1])


def scaled(factor: Scalar, a: Spatial) -> Spatial:
    """Multiply a motion or a wrench by a scalar."""
    return scale(factor, a[0]), scale(factor, a[1])


def bracket(a: Spatial, b: Spatial) -> Spatial:
    """Return the Lie bracket `ad_a b` of two motions."""
    return cross(a[0], b[0]), add(cross(a[0], b[1]), cross(a[1], b[0]))


def dual_bracket(a: Spatial, wrench: Spatial) -> Spatial:
    """Return `-ad_a^T W`."""
    return add(cross(a[0], wrench[0]), cross(a[1], wrench[1])), cross(a[0], wrench[1])


def power(motion: Spatial, wrench: Spatial) -> Scalar:
    """Multiply a motion with a wrench."""
    return dot([*motion[0], *motion[1]], [*wrench[0], *wrench[1]])


def symmetric(numbers: Sequence[Scalar]) -> Matrix:
    """Return the symmetric matrix of (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = numbers
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)


def combine(vectors: Sequence[Vector], factors: Sequence[Scalar]) -> Vector:
    """Return the sum of vectors times factors."""
    result = scale(factors[0], vectors[0])
    for vector, factor in zip(vectors[1:], factors[1:]):
        result = add(result, scale(factor, vector))
    return result
