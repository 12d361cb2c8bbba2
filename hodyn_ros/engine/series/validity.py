"""What makes a result unusable, as numbers over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.series.vectors import Scalar, dot


def distance_from_rigid(pose: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return the squared distance of `R^T R` from the identity; a reflection is far from every other pose."""
    result: Scalar = 0.0
    for i in range(3):
        for j in range(i + 1):
            entry = dot([row[i] for row in pose[:3]], [row[j] for row in pose[:3]]) - float(i == j)
            result = result + entry * entry
    return result


def overflow(values: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return zero, but infinity or NaN where one of the values is."""
    result: Scalar = 0.0
    for row in values:
        for value in row:
            small = value * 1e-200
            result = result + small * small
    return result
