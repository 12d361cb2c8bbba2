"""Viscous and Coulomb friction, smooth, so that its time derivatives exist."""

from __future__ import annotations

from dataclasses import dataclass

from hodyn_ros.actuation.transmission import require_not_negative, require_positive
from hodyn_ros.lie.jets import Array, multiply, power


@dataclass(frozen=True)
class Friction:
    """`f(v) = d v + c v / sqrt(v^2 + v_s^2)`: odd, with any number of derivatives, Coulomb's as v_s -> 0."""

    viscous: float = 0.0  # d [N.m s/rad]
    coulomb: float = 0.0  # c [N.m]
    transition: float = 0.01  # v_s [rad/s], the velocity at which 71 % of c act

    def __post_init__(self) -> None:
        require_not_negative("viscous friction", self.viscous, "N·m·s/rad")
        require_not_negative("Coulomb friction", self.coulomb, "N·m")
        require_positive("transition velocity of the friction", self.transition, "rad/s")

    def __bool__(self) -> bool:
        return bool(self.viscous > 0.0 or self.coulomb > 0.0)  # figures may be NumPy's

    def largest(self, speed: float) -> float:
        """Return the most that it resists [N.m] at speeds up to this one [rad/s]; the guard allows for it."""
        return self.viscous * speed + self.coulomb

    def torque(self, velocity: Array) -> Array:
        """Return the jet (K+1, ...) of the friction torque from that of the velocity."""
        result: Array = self.viscous * velocity
        if self.coulomb > 0.0:
            square = multiply(velocity, velocity)
            square[0] += self.transition**2
            result = result + self.coulomb * multiply(velocity, power(square, -0.5))
        return result
