"""A rigid drive: the motor moves with the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hodyn_ros.actuation.transmission import Loads, Transmission
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError


@dataclass(frozen=True)
class Rigid(Transmission):
    """No spring: `theta = q`."""

    gained: ClassVar[int] = 2

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q`, two orders further than the torque."""
        return q[None, : len(torque) + self.gained]

    def loads(self, q: Array, theta: Array) -> Loads:
        """Reject: positions do not determine the torque of a rigid drive."""
        raise InputError("the torque of a rigid drive does not follow from positions")
