"""What springs between motor and link have in common: one law from deflection to torque, and its inverse."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from hodyn_ros.actuation.transmission import Loads, Transmission
from hodyn_ros.array import Array


class SeriesSpring(Transmission):
    """A spring whose torque follows from the jet of its deflection `delta = theta - q`."""

    @abstractmethod
    def deflection_under(self, torque: Array) -> Array:
        """Return the jet of the deflection (K+1, ...) [rad] under a torque (K+1, ...) [N.m]."""

    @abstractmethod
    def torque_at(self, deflection: Array) -> Array:
        """Return the jet of the torque [N.m] at a deflection (K+1, ...) [rad]; K orders of it if `damped`."""

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q + delta`, as many orders as the torque has."""
        theta: Array = (q[: len(torque)] + self.deflection_under(torque))[None]
        return theta

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torque of the spring, which holds link and motor alike."""
        torque = self.torque_at(self.deflection(q, theta))
        return Loads(torque, torque[None])


def reverted(function: Callable[[Array], Array], target: Array, start: Array, slope: Array) -> Array:
    """Return the jet x with `f(x(t), t) = target(t)`.

    `function` maps jets of x to jets of f(x(t), t), `target` (K+1, ...), `start` (...) the value of x at the
    instant, `slope` (...) the partial derivative of f there. The k-th coefficient enters the k-th coefficient
    of f only by the slope, so each order is one division; Griewank & Walther, section 13.3.
    """
    jet = np.zeros(np.broadcast_shapes(target.shape, (1, *np.shape(start))), dtype=target.dtype)
    jet[0] = start
    inverse = 1.0 / slope
    for k in range(1, len(target)):
        jet[k] = (target[k] - function(jet[: k + 1])[k]) * inverse
    return jet
