"""Turning series of vectors about z by an angle that is itself a Taylor series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.engine.series.vectors import Scalar, Vector, convolve


class Turn:
    """The turn of a joint about its z axis, extended coefficient by coefficient.

    The angle is split into its present value and the change from it: vectors are first turned by the present
    angle, and the series of cosine and sine of the change start with 1 and 0, which saves operations at every
    order.
    """

    def __init__(self, angle: Scalar) -> None:
        self.cosine, self.sine = np.cos(angle), np.sin(angle)
        self.rates: list[Scalar] = []  # coefficients of the angular rate of the joint
        self.cosines: list[Scalar] = [1.0]  # of the change
        self.sines: list[Scalar] = [0.0]

    @classmethod
    def restored(
        cls, cosine: Scalar, sine: Scalar, cosines: Sequence[Scalar], sines: Sequence[Scalar]
    ) -> Turn:
        """Return a turn, found before, to which nothing more is appended."""
        turn = cls(0.0)
        turn.cosine, turn.sine = cosine, sine
        turn.cosines, turn.sines = list(cosines), list(sines)
        return turn

    @property
    def series(self) -> list[list[Any]]:
        """Those that grow with the order."""
        return [self.rates, self.cosines, self.sines]

    def extend(self, coefficient: Scalar) -> None:
        """Append the next coefficient of the angle; from c' = -d' s and s' = d' c for the change d."""
        k = len(self.cosines)
        self.rates.append(float(k) * coefficient)
        self.cosines.append(convolve(self.rates, self.sines, k - 1) * (-1.0 / k))
        self.sines.append(convolve(self.rates, self.cosines, k - 1) * (1.0 / k))

    def inward(self, x: Sequence[Scalar]) -> Vector:
        """Express a vector given in the unturned frame in the turned one, at the present angle."""
        return (self.cosine * x[0] + self.sine * x[1], self.cosine * x[1] - self.sine * x[0], x[2])

    def outward(self, x: Sequence[Scalar]) -> Vector:
        """Express a vector given in the turned frame in the unturned one, at the present angle."""
        return (self.cosine * x[0] - self.sine * x[1], self.sine * x[0] + self.cosine * x[1], x[2])

    def inward_change(self, series: Sequence[Vector], k: int) -> Vector:
        """Return what the change adds to coefficient k of a series turned inward, from its lower ones."""
        return self._change(series, k, self.sines)

    def outward_change(self, series: Sequence[Vector], k: int) -> Vector:
        """Return what the change adds to coefficient k, before the present turn outward, from lower ones."""
        return self._change(series, k, [-s for s in self.sines])

    def _change(self, series: Sequence[Vector], k: int, sines: Sequence[Scalar]) -> Vector:
        x: Scalar = 0.0
        y: Scalar = 0.0
        for i in range(1, k + 1):
            past = series[k - i]
            x = x + (self.cosines[i] * past[0] + sines[i] * past[1])
            y = y + (self.cosines[i] * past[1] - sines[i] * past[0])
        return (x, y, 0.0)
