"""Truncated Taylor series over abstract scalars: a computation of values becomes one of all orders."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from hodyn_ros.engine.series.vectors import Scalar, convolve


class Series:
    """A function of time by its Taylor coefficients `x_k = x^(k) / k!`; it adds and multiplies like a scalar.

    A recursion written for scalars runs on series as it stands, and yields the coefficients of its results.
    All series of a computation have the same number of coefficients.
    """

    __slots__ = ("coefficients",)

    def __init__(self, coefficients: Sequence[Scalar]) -> None:
        self.coefficients = coefficients

    def __add__(self, other: Series | Scalar) -> Series:
        if isinstance(other, Series):
            return Series([a + b for a, b in zip(self.coefficients, other.coefficients)])
        first, *rest = self.coefficients
        return Series([first + other, *rest])

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series([-a for a in self.coefficients])

    def __sub__(self, other: Series | Scalar) -> Series:
        return self + (-other)

    def __rsub__(self, other: Scalar) -> Series:
        return (-self) + other

    def __mul__(self, other: Series | Scalar) -> Series | float:
        if not isinstance(other, Series):
            if not np.ndim(other) and other == 0.0:
                return 0.0
            return Series([a * other for a in self.coefficients])
        a, b = self.coefficients, other.coefficients
        return Series([convolve(a, b, k) for k in range(len(a))])

    __rmul__ = __mul__

    def cos(self) -> Series:
        """Cosine; also reached through `numpy.cos`."""
        return self._turned()[0]

    def sin(self) -> Series:
        """Sine; also reached through `numpy.sin`."""
        return self._turned()[1]

    def _turned(self) -> tuple[Series, Series]:
        """Return cosine and sine, from c' = -x' s and s' = x' c."""
        cosines, sines = [np.cos(self.coefficients[0])], [np.sin(self.coefficients[0])]
        rates = [float(k) * a for k, a in enumerate(self.coefficients)][1:]
        for k in range(1, len(self.coefficients)):
            cosines.append(convolve(rates, sines, k - 1) * (-1.0 / k))
            sines.append(convolve(rates, cosines[:-1], k - 1) * (1.0 / k))
        return Series(cosines), Series(sines)


def coefficient(value: Series | Scalar, k: int) -> Scalar:
    """Return a Taylor coefficient of a series, or of a scalar that does not change."""
    if isinstance(value, Series):
        return value.coefficients[k]
    return value if k == 0 else 0.0


def derivative(value: Series | Scalar, k: int) -> Scalar:
    """Return the k-th derivative of a series, or of a scalar that does not change."""
    return float(factorial(k)) * coefficient(value, k)


def from_derivatives(values: Sequence[Scalar]) -> Series | float:
    """Return the series that has these derivatives by order, or zero where it always is."""
    if all(isinstance(x, float) and x == 0.0 for x in values):
        return 0.0
    return Series([x * (1.0 / factorial(k)) for k, x in enumerate(values)])


def by_order(rows: Sequence[Sequence[Series | Scalar]], order: int) -> list[list[Scalar]]:
    """Return the derivatives of a matrix, one order after the other."""
    return [[derivative(x, k) for x in row] for k in range(order + 1) for row in rows]


def of_orders(rows: Sequence[Sequence[Scalar]], count: int) -> list[list[Series | float]]:
    """Return a matrix of so many rows from its derivatives, one order after the other."""
    return [[from_derivatives(values) for values in zip(*rows[i::count])] for i in range(count)]
