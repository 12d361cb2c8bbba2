"""Observers of external efforts that others publish, written from their equations for any robot.

All take matrices of a robot and are of rigid joints: what they are told to be the torque may be that of the
springs, or of the motors, whose inertia then counts to the mass matrix and whose friction is taken off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from benchmarks.stopwatch import Array


class Terms(NamedTuple):
    """The equations of motion at a sample: `M q'' + C q' + g = torque + external`."""

    mass: Array  # (n, n)
    coriolis: Array  # (n, n), with M' = C + C^T
    gravity: Array  # (n,)
    torque: Array  # (n,) friction is taken off
    velocity: Array  # (n,)


class Peer(ABC):
    """An observer with one gain [1/s], called every `period` [s]."""

    def __init__(self, gain: float, period: float) -> None:
        self.gain, self.period = gain, period

    @abstractmethod
    def update(self, at: Terms) -> Array:
        """Return the external efforts (n,)."""


class KdlEstimator(Peer):
    """KDL's ChainExternalWrenchEstimator, its joint torques, with its low pass left out.

    First order, by Euler's rule: the integral of `torque - g - C q' + M' q' + r`, where M' is the difference
    of two mass matrices over the period.
    """

    _mass: Array | None = None

    def update(self, at: Terms) -> Array:
        """Return the external efforts (n,)."""
        momentum = at.mass @ at.velocity
        if self._mass is None:
            self._start, self._sum, self._found = momentum, 0.0 * momentum, 0.0 * momentum
            self._mass = at.mass
        change = (at.mass - self._mass) / self.period @ at.velocity
        self._mass = at.mass
        acting = at.torque - at.gravity - at.coriolis @ at.velocity + change
        self._sum = self._sum + self.period * (acting + self._found)
        self._found = self.gain * (momentum - self._sum - self._start)
        return self._found


class MomentumTrapezoid(Peer):
    """The momentum observer of mikhel1984/ext_observer: De Luca's, by the trapezoidal rule."""

    _before: Any = None

    def update(self, at: Terms) -> Array:
        """Return the external efforts (n,)."""
        momentum = at.mass @ at.velocity
        acting: Any = at.torque - at.gravity + at.coriolis.T @ at.velocity
        if self._before is None:
            self._sum, self._found = momentum, 0.0 * momentum
        else:
            acting = acting + self._found
            self._sum = self._sum + 0.5 * self.period * (acting + self._before)
        self._before = acting
        self._found = self.gain * (momentum - self._sum)
        return self._found


class DisturbanceObserver(Peer):
    """The disturbance observer there: of Mohammadi et al. (2013), by the implicit rule of Euler.

    `z' = -Y M^-1 (z + p + torque - C q' - g)`, `p = Y q'`; its gain is that of the lightest joint, as Y is a
    multiple of the unit matrix. Here Y is the gain times the diagonal of the first mass matrix, which treats
    heavy and light joints alike.
    """

    _z: Any = None

    def update(self, at: Terms) -> Array:
        """Return the external efforts (n,)."""
        if self._z is None:
            self._y = np.diag(self.gain * np.diag(at.mass))
            self._z = -self._y @ at.velocity
            return 0.0 * at.velocity
        pull = self.period * self._y @ np.linalg.inv(at.mass)
        p = self._y @ at.velocity
        drive = at.coriolis @ at.velocity + at.gravity - at.torque - p
        self._z = np.linalg.solve(np.eye(len(p)) + pull, self._z + pull @ drive)
        return self._z + p


class SlidingMode(Peer):
    """The sliding mode observer there: of Garofalo et al. (2019), by Euler's rule, with tanh for the sign.

    Its four gains follow from one, L, and what is the fastest change of a momentum M that it is to follow:
    the linear part has two poles at L; the others are those of a super-twisting observer for changes up to
    `10 L` [N.m/s].
    """

    _estimate: Any = None
    _STEEP = 50.0

    def update(self, at: Terms) -> Array:
        """Return the external efforts (n,)."""
        momentum = at.mass @ at.velocity
        if self._estimate is None:
            self._estimate, self._sigma = momentum, 0.0 * momentum
        gain, fastest = self.gain, 10.0 * self.gain
        t1, s1, t2, s2 = 1.5 * fastest**0.5, 1.1 * fastest, 2.0 * gain, gain**2
        error = self._estimate - momentum
        side = np.tanh(self._STEEP * error)
        rate = at.torque + at.coriolis.T @ at.velocity - at.gravity + self._sigma
        rate = rate - t2 * error - t1 * np.sqrt(np.abs(error)) * side
        found = self._sigma
        self._estimate = self._estimate + self.period * rate
        self._sigma = self._sigma + self.period * (-s1 * side - s2 * error)
        return found


PEERS: dict[str, type[Peer]] = {
    "KDL's estimator": KdlEstimator,
    "ext_observer, momentum": MomentumTrapezoid,
    "ext_observer, disturbance": DisturbanceObserver,
    "ext_observer, sliding mode": SlidingMode,
}
