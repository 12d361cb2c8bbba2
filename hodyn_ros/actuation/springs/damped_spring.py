"""A series elastic drive whose spring is damped, so that its deflection has a memory.

`phi` has the phi functions of exponential integration, which solve linear equations driven by polynomials
exactly:

`phi_k(-z) = integral from 0 to 1 of exp(-z (1 - s)) s^(k-1) / (k-1)! ds`, `phi_0(-z) = exp(-z)`; Hochbruck &
Ostermann, Exponential integrators, Acta Numerica 19 (2010), eqs. 2.10 and 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import ClassVar

import numpy as np

from hodyn_ros.actuation.springs.series_spring import SeriesSpring
from hodyn_ros.actuation.transmission import require_not_negative, require_positive
from hodyn_ros.array import Array
from hodyn_ros.lie.jets import derivative, to_derivatives, to_taylor

# Stiffness times time over damping, from which on exp(-z) is below the rounding of one.
SETTLED = 36.8


@dataclass(frozen=True)
class DampedSpring(SeriesSpring):
    """`Q = K delta + D delta'` with the deflection `delta = theta - q`.

    The deflection is the state of a stable equation of first order driven by Q. Where it is known at one
    instant, `from_deflection` continues it to all derivatives there, one more than the torque has, and
    `advanced` to the end of a sample, exactly for a torque given by its Taylor polynomial. Where it is not,
    `deflection_under` takes the motion on which all others settle within some D / K: the slow manifold
    `delta = sum_k (-D/K)^k Q^(k) / K`, as many derivatives as the torque has. As D -> 0 that is the
    deflection of the spring without damping.
    """

    stiffness: float  # K [N.m/rad]
    damping: float  # D [N.m s/rad]

    damped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("stiffness", self.stiffness, "N·m/rad")
        require_not_negative("damping of the spring", self.damping, "N·m·s/rad")

    def settles_within(self, duration: float) -> bool:
        """Return whether the deflection has forgotten its start after a `duration` [s]."""
        return self.stiffness * duration >= SETTLED * self.damping

    def deflection_under(self, torque: Array) -> Array:
        """Return the jet (K+1, ...) of the deflection on the slow manifold.

        Exact for a torque that is a polynomial of the order given; else the k-th derivative lacks terms from
        `(-D/K)^(order + 1 - k) Q^(order + 1) / K` on.
        """
        rates = to_derivatives(torque)
        result = rates / self.stiffness
        for k in range(len(rates) - 2, -1, -1):
            result[k] -= self.damping / self.stiffness * result[k + 1]
        return to_taylor(result)

    def from_deflection(self, torque: Array, deflection: Array) -> Array:
        """Return the jet (K+2, ...) of the deflection from its value (...) and the torque (K+1, ...).

        Its k-th derivative holds the error of the value times `(K/D)^k`: after `settles_within`, take
        `deflection_under`.
        """
        result = [np.asarray(deflection)]
        for k, coefficient in enumerate(torque):
            result.append((coefficient - self.stiffness * result[-1]) / (self.damping * (k + 1)))
        return np.stack(result)

    def advanced(self, torque: Array, deflection: Array, duration: float) -> Array:
        """Return the deflection (...) a `duration` [s] later.

        `torque` (K+1, ...) jet at the start, `deflection` (...) there. Exact to rounding for a torque that is
        this polynomial, whatever K and D, by exponential integration.
        """
        if self.damping == 0.0:
            powers = duration ** np.arange(len(torque))
            now: Array = np.tensordot(powers, torque, axes=1) / self.stiffness
            return now
        z = self.stiffness * duration / self.damping
        phi = phi_functions(z, len(torque) + 1)
        factors = [z * phi[k + 1] * factorial(k) * duration**k for k in range(len(torque))]
        driven = np.tensordot(np.array(factors), torque, axes=1) / self.stiffness
        result: Array = phi[0] * np.asarray(deflection) + driven
        return result

    def torque_at(self, deflection: Array) -> Array:
        """Return the jet of `K delta + D delta'`, one order less than the deflection has."""
        return self.stiffness * deflection[:-1] + self.damping * derivative(deflection)


# Gauss' quadrature with so many points is exact to rounding for z up to the bound; beyond it, the recurrence
# phi_{k+1} = (1/k! - phi_k) / z loses no digits that matter.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_BOUND = 30.0


def phi_functions(z: float, count: int) -> Array:
    """Return `phi_0(-z) ... phi_{count-1}(-z)` (count,) for z >= 0.

    >>> phi_functions(1.0, 2).round(6)
    array([0.367879, 0.632121])
    """
    result = np.empty(count)
    result[0] = np.exp(-z)
    if z <= _BOUND:
        s = 0.5 * (_NODES + 1.0)
        decay = 0.5 * _WEIGHTS * np.exp(-z * (1.0 - s))
        for k in range(1, count):
            result[k] = decay @ s ** (k - 1) / factorial(k - 1)
        return result
    for k in range(1, count):
        result[k] = (1.0 / factorial(k - 1) - result[k - 1]) / z
    return result
