"""A series elastic drive with a linear spring."""

from __future__ import annotations

from dataclasses import dataclass

from hodyn_ros.actuation.transmission import Loads, Transmission, require_positive
from hodyn_ros.array import Array


@dataclass(frozen=True)
class LinearSpring(Transmission):
    """`Q = K (theta - q)`, so `theta = q + Q / K`; Mueller (2020), section I.

    >>> import numpy as np
    >>> LinearSpring(100.0).motor_positions(np.zeros(3), np.array([10.0, 0.0, 1.0]))[0]
    array([0.1 , 0.  , 0.01])
    """

    stiffness: float  # K [N.m/rad]

    def __post_init__(self) -> None:
        require_positive("stiffness", self.stiffness, "N·m/rad")

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q + Q / K`, as many orders as the torque has."""
        theta: Array = (q[: len(torque)] + torque / self.stiffness)[None]
        return theta

    def loads(self, q: Array, theta: Array) -> Loads:
        """Return the torque `K (theta - q)` of the spring."""
        torque = self.stiffness * self.deflection(q, theta)
        return Loads(torque, torque[None])
