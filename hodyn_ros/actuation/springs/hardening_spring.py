"""A series elastic drive whose spring stiffens with its deflection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.actuation.springs.series_spring import SeriesSpring, reverted
from hodyn_ros.actuation.transmission import Scalar, require, require_not_negative, require_positive, worst
from hodyn_ros.lie.jets import Array, multiply


@dataclass(frozen=True)
class HardeningSpring(SeriesSpring):
    """`Q = K1 delta + K3 delta^3` with the deflection `delta = theta - q`.

    >>> spring = HardeningSpring(100.0, 1e4)
    >>> spring.motor_positions(np.zeros(1), np.array([20.0]))[0]
    array([0.1])
    """

    stiffness: float  # K1 [N.m/rad], without deflection
    cubic_stiffness: float  # K3 [N.m/rad^3]

    def __post_init__(self) -> None:
        require_positive("stiffness", self.stiffness, "N·m/rad")
        require_not_negative("cubic stiffness", self.cubic_stiffness, "N·m/rad^3")

    def deflection_under(self, torque: Array) -> Array:
        """Return the jet of the deflection by Newton's method and series reversion."""
        start = cubic_root(torque[0], self.stiffness, self.cubic_stiffness)
        slope = self.stiffness + 3.0 * self.cubic_stiffness * (start * start)
        return reverted(self.torque_at, torque, start, slope)

    def torque_at(self, deflection: Array) -> Array:
        """Return the jet of `K1 delta + K3 delta^3`."""
        return cubic(deflection, self.stiffness, self.cubic_stiffness)


def cubic(x: Array, linear: float, third: float) -> Array:
    """Return the jet of `linear x + third x^3`."""
    result: Array = linear * x + third * multiply(x, multiply(x, x))
    return result


def cubic_root(torque: Scalar, linear: Scalar, third: float) -> Scalar:
    """Return x with `linear x + third x^3 = torque`; both coefficients not negative, linear above zero.

    With `x = s y`, `s^2 = linear / third` this is `y + y^3 = c`. `c (1 + c^2)^(-1/3)` is within 18 % of y
    for c up to 1e18, and each step of Halley's method cubes that; the roots are square ones, which compile.
    """
    if third == 0.0:
        return torque / linear
    scale = np.sqrt(linear / third)
    c = torque / (linear * scale)
    part = 1.0 + c * c
    third_root: Scalar = 1.0
    for _ in range(4):  # 1/4 + 1/16 + 1/64 + 1/256 of the exponent
        part = np.sqrt(np.sqrt(part))
        third_root = third_root * part
    y = c / third_root
    for _ in range(3):
        square = y * y
        value, slope = y * (1.0 + square) - c, 1.0 + 3.0 * square
        y = y - value * slope / (slope * slope - 3.0 * y * value)
    x = scale * y
    error = abs(linear * x + third * (x * x * x) - torque)
    require(
        1e-13 * abs(torque) - error, lambda: f"no deflection was found for a torque of {worst(torque)} N·m"
    )
    return x
