"""How far springs bend in a stop, where no feedforward says it any more."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import HodynError
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers.effort_observer import LinkEfforts

_LEAST = 1e-9  # of the largest inertia: what is less is none
_STIFFEST = 1e4  # times the inertia over the square of a step: what is stiffer moves with its motor
_DIES_OUT = 0.2  # [s] in which links cease to swing besides, as nobody knows their phase for long


class LinkSwing:
    """Links behind motors whose positions are measured, by the springs between them.

        M q'' = T_0 + K (theta - q - delta_0) - Q(q, q', 0)

    A stop begins with torques T_0 and deflections delta_0; M stays what it is there. With both as the
    feedforward has them, a load that `links` do not know bends springs on as it did. Where a robot has more
    drives than it can move in directions, M has a rank, and links move in these. `stiffness` (n,) [N.m/rad
    or N/m] is infinite for rigid drives. By implicit steps of Euler, which are stable at any length.
    """

    def __init__(self, stiffness: Array, links: LinkEfforts) -> None:
        self._stiffness, self._efforts, self._units = stiffness, links, np.eye(len(stiffness))
        self._swings = bool(np.isfinite(stiffness).any())
        self._stamp: int | None = None

    def begin(self, stamp: int, motors: Motion, bent: Motion) -> None:
        """Begin at an instant [ns] with a motion of the motors, and how far they are ahead of their links."""
        self._stamp, self._bent, self._ahead = None, bent, bent.position  # where no motion of links is known
        if not self._swings:
            return
        self._link, self._speed, acceleration = (one - other for one, other in zip(motors, bent))
        try:
            still = self._torques(0.0 * acceleration)
            inertia = np.array([self._torques(unit) - still for unit in self._units])
        except HodynError:
            return
        if not np.isfinite(inertia).all():
            return
        values, directions = np.linalg.eigh(inertia)
        if not (np.diag(inertia) > _LEAST * values[-1]).all():  # a link without mass is where its spring is
            return
        self._free = directions[:, values > _LEAST * values[-1]]
        self._stamp, self._inertia, self._held = stamp, inertia, still + inertia @ acceleration

    def at(self, stamp: int, motor: Array) -> Motion | None:
        """Return how far motors, measured at `motor` (n,), are ahead of their links; None where unknown.

        At instants [ns] that do not go back. Of the rates, the second is left at zero.
        """
        if self._stamp is None or stamp <= self._stamp:
            return None if self._stamp is None else self._bent
        elapsed, inertia = 1e-9 * (stamp - self._stamp), self._inertia
        square = elapsed * elapsed
        stiffness = np.minimum(self._stiffness, _STIFFEST / square * np.diag(inertia))
        bends = motor - self._link - elapsed * self._speed - self._ahead
        try:
            driving = self._held + stiffness * bends - self._torques(0.0 * bends)
        except HodynError:
            driving = np.full_like(bends, np.nan)
        free = self._free
        moved = free.T @ (inertia + square * np.diag(stiffness)) @ free
        acceleration = free @ np.linalg.solve(moved, free.T @ driving)
        if not np.isfinite(acceleration).all():
            self._stamp = None
            return None
        self._speed = self._speed + elapsed * acceleration
        self._link = self._link + elapsed * self._speed
        rate = (motor - self._link - self._bent.position) / elapsed
        self._speed = self._speed + (1.0 - np.exp(-elapsed / _DIES_OUT)) * rate
        self._stamp, self._bent = stamp, Motion(motor - self._link, rate, 0.0 * rate)
        return self._bent

    def _torques(self, acceleration: Array) -> Array:
        return self._efforts(np.array([self._link, self._speed, acceleration]))
