"""Small vectors over abstract scalars: floats, NumPy arrays (a batch), or scalars of the tracer."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

Scalar = Any
Vector = tuple[Scalar, Scalar, Scalar]

ZERO: Vector = (0.0, 0.0, 0.0)


def add(a: Sequence[Scalar], b: Sequence[Scalar]) -> Vector:
    """Add two vectors."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Sequence[Scalar], b: Sequence[Scalar]) -> Vector:
    """Subtract two vectors."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scale(factor: Scalar, a: Sequence[Scalar]) -> Vector:
    """Multiply a vector by a scalar."""
    return (factor * a[0], factor * a[1], factor * a[2])


def cross(a: Sequence[Scalar], b: Sequence[Scalar]) -> Vector:
    """Return the cross product a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return the scalar product of two sequences of the same length."""
    result = a[0] * b[0]
    for x, y in zip(a[1:], b[1:]):
        result = result + x * y
    return result


def times(matrix: Sequence[Sequence[Scalar]], x: Sequence[Scalar]) -> Vector:
    """Multiply a 3×3 matrix, by rows, with a vector; the axes of a frame give its components there."""
    return (dot(matrix[0], x), dot(matrix[1], x), dot(matrix[2], x))


def halves(values: Sequence[Scalar]) -> tuple[Vector, Vector]:
    """Return both vectors of a twist or wrench (6,)."""
    a, b, c, d, e, f = values[:6]
    return (a, b, c), (d, e, f)


def axes_of(pose: Sequence[Sequence[Scalar]]) -> tuple[Vector, Vector, Vector]:
    """Return the axes of a frame: the columns of the rotation of a pose that is given by rows."""
    x, y, z = zip(*(row[:3] for row in pose[:3]))
    return x, y, z


def twist_about(twist: Sequence[Scalar], point: Sequence[Scalar]) -> tuple[Vector, Vector]:
    """Return a twist in world axes about the world origin (6,) as it is about a point."""
    w, v = halves(twist)
    return w, add(v, cross(w, point))


def taylor(values: Sequence[Scalar], k: int) -> list[Scalar]:
    """Return derivative k as Taylor coefficient."""
    return [value * (1.0 / factorial(k)) for value in values]


def from_taylor(values: Sequence[Scalar], k: int) -> list[Scalar]:
    """Return Taylor coefficient k as derivative."""
    return [value * float(factorial(k)) for value in values]


def to_derivatives(coefficients: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Return the derivatives by order from the Taylor coefficients."""
    return [from_taylor(row, k) for k, row in enumerate(coefficients)]


def convolve(a: Sequence[Scalar], b: Sequence[Scalar], k: int) -> Scalar:
    """Return the k-th Taylor coefficient of the product of two series."""
    return dot(a[: k + 1], b[k::-1])
