"""Viscous and Coulomb friction, smooth, so that its time derivatives exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.actuation.transmission import require_not_negative, require_positive
from hodyn_ros.lie.jets import Array, multiply, power


@dataclass(frozen=True)
class Friction:
    """`f(v, Q) = d v + (c + m (sqrt(Q^2 + Q_s^2) - Q_s)) v / sqrt(v^2 + v_s^2)`.

    Odd in v, with any number of derivatives, and Coulomb's as v_s -> 0. What a gear carries, Q, presses its
    teeth on each other: Coulomb friction was found to be linear in |Q| (A. C. Bittencourt and S. Gunnarsson,
    Static friction in a robot joint, J. Dyn. Sys. Meas. Control 134(5), 2012). Here that is smooth, and c
    without load.
    """

    viscous: float = 0.0  # d [N.m s/rad]
    coulomb: float = 0.0  # c [N.m]
    transition: float = 0.01  # v_s [rad/s], the velocity at which 71 % of c act
    load: float = 0.0  # m
    load_transition: float = 1.0  # Q_s [N.m]

    def __post_init__(self) -> None:
        require_not_negative("viscous friction", self.viscous, "N·m·s/rad")
        require_not_negative("Coulomb friction", self.coulomb, "N·m")
        require_positive("transition velocity of the friction", self.transition, "rad/s")
        require_not_negative("Coulomb friction by load", self.load, "N·m/(N·m)")
        require_positive("load at which the friction by load turns over", self.load_transition, "N·m")

    def __bool__(self) -> bool:
        return self.fluid or self.dry

    @property
    def fluid(self) -> bool:
        """Whether it has friction that vanishes at rest."""
        return bool(self.viscous > 0.0)  # figures may be NumPy's

    @property
    def dry(self) -> bool:
        """Whether it has Coulomb friction, with or without load."""
        return bool(self.coulomb > 0.0 or self.load > 0.0)

    def torque(self, velocity: Array, load: Array | None = None) -> Array:
        """Return the jet (K+1, ...) of the friction torque from that of the velocity, and of the load Q."""
        fluid = self.fluid_torque(velocity)
        return fluid + self.dry_torque(velocity, load) if self.dry else fluid

    def fluid_torque(self, velocity: Array) -> Array:
        """Return the jet (K+1, ...) of the part that vanishes at rest and grows with the speed."""
        return self.viscous * velocity

    def dry_torque(self, velocity: Array, load: Array | None = None) -> Array:
        """Return the jet (K+1, ...) of the rest: what holds at rest, smooth."""
        direction = multiply(velocity, _smooth(velocity, self.transition, -0.5))
        result: Array = self.coulomb * direction
        if self.load > 0.0 and load is not None:
            result = result + self.load * multiply(self._pressed(load), direction)
        return result

    def dry_limit(self, load: Array) -> Array:
        """Return the jet (K+1, ...) of the most that the dry part resists at any speed, from that of Q.

        Near rest nothing more is known of it: a dry contact holds with anything up to that.
        """
        result: Array = self.load * (self._pressed(load) if self.load > 0.0 else load)
        result[0] += self.coulomb
        return result

    def largest(self, speed: float, load: float = 0.0) -> float:
        """Return the most that it resists [N.m] at speeds [rad/s] and loads [N.m] up to these.

        The guard allows for it.
        """
        return float(self.fluid_torque(np.array([speed]))[0] + self.dry_limit(np.array([load]))[0])

    def _pressed(self, load: Array) -> Array:
        """Return the jet (K+1, ...) of `sqrt(Q^2 + Q_s^2) - Q_s` from that of the load."""
        result = _smooth(load, self.load_transition, 0.5)
        result[0] -= self.load_transition
        return result


def _smooth(value: Array, small: float, exponent: float) -> Array:
    """Return the jet of `(x^2 + small^2)^exponent`."""
    square = multiply(value, value)
    square[0] += small**2
    return power(square, exponent)
