"""References for drives with a loop of their own: positions, velocities and efforts of the motors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.command_stream import CommandStream, Ending
from hodyn_ros.control.extrapolation import motor_effort_series
from hodyn_ros.control.feedforward import Feedforward, taylor
from hodyn_ros.errors import InputError
from hodyn_ros.se3 import Array

# [s] A measured position that is older than this no longer says where the robot stands.
_OLDEST_MEASUREMENT = 0.5


class TooFarError(InputError):
    """A motion cannot be taken up, as the robot stands somewhere else, or nobody knows where."""


class MotorReference(NamedTuple):
    """What the drives are to follow at one instant, (n,) each, reflected to the link side."""

    position: Array  # [rad or m]
    velocity: Array  # [rad/s or m/s]
    effort: Array  # [N.m or N]


class MotorReferences:
    """Motor references between feedforwards and beyond the last one.

    After `timeout` [s] without a feedforward the motion brakes within `fade` [s] and stands; the efforts stay
    as they are then, so that they go on to carry the robot's weight. A motion is taken up, for the first time
    or again, only where its positions are within `join_within` [rad or m] of those measured, in every joint;
    with 0 wherever it is. Instants are in nanoseconds.
    """

    def __init__(self, joint_names: Sequence[str], timeout: float, fade: float, join_within: float) -> None:
        self._joint_names = tuple(joint_names)
        self.stream = CommandStream(timeout, fade, (Ending.BRAKE, Ending.HOLD))
        self._join_within = join_within
        self._started = False
        self._measured: Array | None = None
        self._measured_at = 0

    def measure(self, at: int, position: Array) -> None:
        """Take measured positions (n,) of the motors, or of the links, at an instant."""
        self._measured, self._measured_at = position, at

    def follow(self, instant: int, feedforward: Feedforward, now: int) -> Array:
        """Follow a feedforward about an instant; return the steps [rad or m, N.m or N] from the one before.

        Raises InputError where it has no motor efforts or no motor velocities, TooFarError where it is not to
        be taken up.
        """
        positions, efforts = feedforward.motor_positions, motor_effort_series(feedforward)
        if len(positions) < 2 or not len(efforts):
            raise InputError(
                f"the feedforward holds motor positions of {len(positions)} orders and motor efforts of "
                f"{len(efforts)}, but references need 2 and 1; let dynamics_node compute order 2 or more, "
                "of a robot with drives"
            )
        if not self.stream.following and self._join_within > 0.0:
            self._check_distance(taylor(positions, 1e-9 * (now - instant)), now)
        if not self._started:
            here = positions[0] if self._measured is None else self._measured
            self.stream.stand_at([here, np.zeros_like(here)])
            self._started = True
        return self.stream.follow(instant, (positions, efforts))

    def command(self, at: int) -> MotorReference | None:
        """Return the references for an instant; None before the first feedforward."""
        commands = self.stream.command(at)
        if not commands:
            return None
        motion, effort = commands
        return MotorReference(motion.value, motion.rate, effort.value)

    def _check_distance(self, positions: Array, now: int) -> None:
        if self._measured is None or 1e-9 * (now - self._measured_at) > _OLDEST_MEASUREMENT:
            raise TooFarError(
                "where the robot stands is not known, so no motion can be taken up; publish joint states, or "
                "set join_within to 0"
            )
        off = np.abs(positions - self._measured)
        joint = int(np.argmax(off))
        if off[joint] > self._join_within:
            raise TooFarError(
                f"joint {self._joint_names[joint]!r} stands {off[joint]:.3g} rad or m from the motion, more "
                f"than join_within ({self._join_within:g}); begin where the robot stands"
            )
