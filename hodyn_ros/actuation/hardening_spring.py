"""A series elastic drive whose spring stiffens with its deflection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.actuation.series_solution import increasing_root, reverted
from hodyn_ros.actuation.transmission import Loads, Transmission, require_not_negative, require_positive
from hodyn_ros.jets import Array, multiply


@dataclass(frozen=True)
class HardeningSpring(Transmission):
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

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q + delta`, the deflection by Newton's method and series reversion."""
        theta: Array = (q[: len(torque)] + self._deflection_under(torque))[None]
        return theta

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torque `K1 delta + K3 delta^3` of the spring."""
        torque = cubic(self.deflection(q, theta), self.stiffness, self.cubic_stiffness)
        return Loads(torque, torque[None])

    def _deflection_under(self, torque: Array) -> Array:
        start = cubic_root(torque[0], np.asarray(self.stiffness), self.cubic_stiffness)
        slope = self.stiffness + 3.0 * self.cubic_stiffness * start**2
        return reverted(lambda x: cubic(x, self.stiffness, self.cubic_stiffness), torque, start, slope)


def cubic(x: Array, linear: float, third: float) -> Array:
    """Return the jet of `linear x + third x^3`."""
    result: Array = linear * x + third * multiply(x, multiply(x, x))
    return result


def cubic_root(torque: Array, linear: Array, third: float) -> Array:
    """Return x with `linear x + third x^3 = torque`; both coefficients not negative, linear above zero."""
    start = torque / linear
    if third > 0.0:
        start = np.sign(torque) * np.minimum(np.abs(start), np.cbrt(np.abs(torque) / third))
    return increasing_root(
        lambda x: (linear * x + third * x**3, linear + 3.0 * third * x**2), torque, start, "deflection"
    )
