"""Small vectors over abstract scalars: floats, NumPy arrays (a batch), or scalars of the tracer."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Multiply a 3×3 matrix, given by rows, with a vector."""
    return (dot(matrix[0], x), dot(matrix[1], x), dot(matrix[2], x))


def convolve(a: Sequence[Scalar], b: Sequence[Scalar], k: int) -> Scalar:
    """Return the k-th Taylor coefficient of the product of two series."""
    return dot(a[: k + 1], b[k::-1])
