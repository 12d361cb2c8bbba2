"""What makes a result unusable, as numbers over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.engine.series.vectors import Scalar, dot


class Tolerances(NamedTuple):
    """What rounding leaves in numbers of a kind; the first two are of what `following_step` returns.

    Steps are in rad, or in the size of the robot.
    """

    arrived: float  # Newton's method has come to where rounding lets it
    closed: float  # results that come from farther away do not count
    rigid: float  # deviation of a pose from a rigid one
    held: float  # by which rows that hold a platform in what it cannot move may be open
    outside: float  # share of the twists of a platform outside of those that it can have
    agree: float  # share of the fastest drive, and of the robot's size, in which redundant drives may differ


DOUBLE = Tolerances(1e-34, 1e-26, rigid=1e-9, held=1e-8, outside=1e-9, agree=1e-9)
SINGLE = Tolerances(1e-16, 1e-12, rigid=1e-5, held=1e-4, outside=1e-5, agree=1e-5)  # of numbers of 24 bits
ARRIVED, CLOSED = DOUBLE.arrived, DOUBLE.closed
SINGULAR_LENGTH = 1e-5  # length, without units, of what a column of equations adds to those before it


def following_step(square: Scalar, singularity: Scalar) -> Scalar:
    """Return the square of the length of the step that Newton's method would take after one.

    As if the equations were curved as those of turns by a radian: `|J^-1| s^2` after a step of length s, with
    its `square`, and `singularity`, the square of the inverse.
    """
    return singularity * square * square


def distance_from_rigid(pose: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return the squared distance of `R^T R` from the identity; a reflection is far from every other pose."""
    result: Scalar = 0.0
    for i in range(3):
        for j in range(i + 1):
            entry = dot([row[i] for row in pose[:3]], [row[j] for row in pose[:3]]) - float(i == j)
            result = result + entry * entry
    return result


def singularity_of(defect: float) -> float:
    """Return how near a singular pose a result is, from the number that says whether it counts."""
    return defect / SINGULAR_LENGTH**2


def unless_small(wrong: Scalar) -> Scalar:
    """Return zero up to a half, and from there on a number that is one or more where `wrong` is.

    So what is added, which says how near a singular pose is, can be read from the sum.
    """
    return abs(wrong - 0.5) + wrong - 0.5


def unless_lost(share: Scalar) -> Scalar:
    """Return zero, but infinity or NaN where a share is so small, or negative, that it may be rounding alone.

    Where it is not seen beside 64: below 7e-15 of doubles, and 4e-6 of numbers with 24 bits. The derivatives
    are zero.
    """
    seen = (1.0 + share * (1.0 / 64.0)) - 1.0
    return np.floor(0.5 / np.sqrt(seen * 2.0**60))


def overflow(values: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return zero, but infinity or NaN where one of the values is."""
    result: Scalar = 0.0
    for row in values:
        for value in row:
            small = value * 1e-200
            result = result + small * small
    return result
