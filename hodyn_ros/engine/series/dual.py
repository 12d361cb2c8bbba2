"""Scalars that carry their derivatives along several directions, and so do the results of a computation."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.lie.se3 import Array


class Dual:
    """A number and its derivatives (directions,); A. Griewank & A. Walther (2008), section 3.1."""

    __slots__ = ("value", "change")

    def __init__(self, value: float, change: Array) -> None:
        self.value = np.float64(value)
        self.change = change

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.change)

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.change + other.change)
        return Dual(self.value + other, self.change)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dual:
        return self + (-other)

    def __rsub__(self, other: Any) -> Dual:
        return (-self) + other

    def __mul__(self, other: Any) -> Dual | float:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.value * other.change + other.value * self.change)
        return 0.0 if other == 0.0 else Dual(self.value * other, self.change * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual | float:
        if not isinstance(other, Dual):
            return self * (1.0 / other)
        quotient = self.value / other.value
        return Dual(quotient, (self.change - quotient * other.change) / other.value)

    def __rtruediv__(self, other: Any) -> Dual | float:
        if other == 0.0:
            return 0.0
        quotient = other / self.value
        return Dual(quotient, self.change * (-quotient / self.value))

    def __abs__(self) -> Dual:
        return -self if self.value < 0.0 else self

    def __floor__(self) -> float:
        return float(math.floor(self.value))

    def cos(self) -> Dual:
        """Cosine; also reached through `numpy.cos`."""
        return Dual(np.cos(self.value), self.change * -np.sin(self.value))

    def sin(self) -> Dual:
        """Sine; also reached through `numpy.sin`."""
        return Dual(np.sin(self.value), self.change * np.cos(self.value))

    def looked_up(self, starts: Sequence[float], rows: Sequence[Sequence[float]]) -> list[float]:
        """Return from each of `rows` (m,) the number of the interval that this scalar lies in."""
        piece = max(bisect_right(starts, float(self.value)) - 1, 0)
        return [row[piece] for row in rows]


def value_of(number: Any) -> Any:
    """Return a number without its derivatives."""
    return number.value if isinstance(number, Dual) else number
