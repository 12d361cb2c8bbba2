"""A series elastic drive with a linear spring."""

from __future__ import annotations

from dataclasses import dataclass

from hodyn_ros.actuation.springs.series_spring import SeriesSpring
from hodyn_ros.actuation.transmission import require_positive
from hodyn_ros.array import Array


@dataclass(frozen=True)
class LinearSpring(SeriesSpring):
    """`Q = K (theta - q)`, so `theta = q + Q / K`; Mueller (2020), section I.

    >>> import numpy as np
    >>> LinearSpring(100.0).motor_positions(np.zeros(3), np.array([10.0, 0.0, 1.0]))[0]
    array([0.1 , 0.  , 0.01])
    """

    stiffness: float  # K [N.m/rad]

    def __post_init__(self) -> None:
        require_positive("stiffness", self.stiffness, "N·m/rad")

    def deflection_under(self, torque: Array) -> Array:
        """Return the jet of `Q / K`."""
        return torque / self.stiffness

    def torque_at(self, deflection: Array) -> Array:
        """Return the jet of `K delta`."""
        return self.stiffness * deflection
