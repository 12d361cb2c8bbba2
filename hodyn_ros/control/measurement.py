"""What a controller knows of a robot with elastic joints at one instant."""

from __future__ import annotations

from typing import NamedTuple

from hodyn_ros.array import Array


class Measurement(NamedTuple):
    """Positions and velocities of links (n,) and motors (motors,), all reflected to the link side."""

    position: Array  # [rad or m]
    velocity: Array  # [rad/s or m/s]
    motor_position: Array  # [rad or m]
    motor_velocity: Array  # [rad/s or m/s]
