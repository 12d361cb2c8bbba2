"""Measurements of a robot as a stream: checked against its clock, its speed, and each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.guard.guard_config import GuardConfig, StreamError
from hodyn_ros.lie.se3 import Array

_TURN = 2.0 * np.pi
_HUGE = 1e100  # [rad or m], which no product here takes beyond the numbers
_SPEED_UP = 0.2  # [s] within half of which no joint gets from rest to its highest speed
_MEAN_OVER = 0.1  # [s] that the mean age of measurements looks back


class MeasuredMotion:
    """The last sound measurement of `joint_names`, none faster than `fastest` (n,) [rad/s or m/s].

    Instants are in nanoseconds.
    """

    def __init__(self, joint_names: Sequence[str], config: GuardConfig, fastest: Array) -> None:
        self.position = np.zeros(len(joint_names))  # (n,) [rad or m], without the wraps of encoders
        self.velocity = np.zeros(len(joint_names))  # (n,) [rad/s or m/s], zero where it is not measured
        self.unknown: NDArray[np.bool_] = np.ones(len(joint_names), dtype=bool)  # whether it is not
        self.stamp: int | None = None
        self.unchanged_since = 0  # stamp of the first measurement with the same numbers, bit for bit
        self.gaps = 0  # how often measurements have come again after they had become too old
        self.wraps = 0  # full turns by which a position has jumped
        self.latency = 0.0  # [s] mean age
        self._names, self._config, self._fastest = tuple(joint_names), config, fastest
        self._turns = np.zeros(len(joint_names))

    def take(self, now: int, stamp: int, position: Array, velocity: Array | None) -> None:
        """Take a measurement; raises StreamError for one that cannot be right, and keeps the last one.

        `velocity` may hold NaN, or be left out. Jumps by a full turn are taken back: an encoder has wrapped.
        """
        age = 1e-9 * (now - stamp)
        if stamp == 0:
            raise StreamError(
                "its stamp is zero; let the driver stamp it with the time of the measurement", clock=True
            )
        wrong = ~(np.abs(position) < _HUGE)
        if np.count_nonzero(wrong):
            joint = int(np.argmax(wrong))
            raise StreamError(f"the position of joint {self._names[joint]!r} is {position[joint]}")
        if not self._is_fresh(age):
            where = f"{age:.3g} s before" if age > 0.0 else f"{-age:.3g} s after"
            raise StreamError(
                f"its stamp lies {where} the clock of this node; let driver and node run by the same clock",
                clock=True,
            )
        if not self.fresh(now):  # what was known is too old to say anything, or the clock has been set back
            self.latency = age
            self.gaps += self.stamp is not None
        else:
            elapsed = 1e-9 * (stamp - (self.stamp or 0))
            if elapsed <= 0.0:
                raise StreamError(
                    f"its stamp lies {-elapsed:.3g} s before that of the last one; stamps must increase",
                    clock=True,
                )
            self._turns += self._wrapped(position + self._turns - self.position, elapsed)
            self.latency += (age - self.latency) * min(1.0, elapsed / _MEAN_OVER)
        position = position + self._turns
        self.unknown = np.ones(len(self._names), dtype=bool) if velocity is None else ~np.isfinite(velocity)
        velocity = np.where(self.unknown, 0.0, 0.0 if velocity is None else velocity)
        if np.count_nonzero(position != self.position) or np.count_nonzero(velocity != self.velocity):
            self.unchanged_since = stamp
        self.stamp, self.position, self.velocity = stamp, position, velocity

    def forget(self) -> None:
        """Take the next measurement without holding it against the last one."""
        self.stamp = None

    def age(self, now: int) -> float:
        """Return how old the last measurement is [s]; infinite before the first."""
        return np.inf if self.stamp is None else 1e-9 * (now - self.stamp)

    def fresh(self, now: int) -> bool:
        """Whether the last measurement says where the robot is now."""
        return self._is_fresh(self.age(now))

    def _is_fresh(self, age: float) -> bool:
        return -self._config.clock_tolerance <= age <= self._config.measurement_timeout

    def _wrapped(self, step: Array, elapsed: float) -> Array:
        """Return the full turns (n,) to add to a position that has stepped; raises StreamError for a jump."""
        # where the speed is known, only its change is not
        within = np.where(self.unknown, elapsed, min(elapsed**2 / _SPEED_UP, 2.0 * elapsed))
        allowed = self._fastest * within + self._config.resolution
        step = step - self.velocity * elapsed
        far = np.abs(step) > allowed
        if not np.count_nonzero(far):
            return np.zeros(len(self._names))
        turns = np.where(far, -_TURN * np.clip(np.round(step / _TURN), -1.0, 1.0), 0.0)
        left = np.abs(step + turns) > allowed
        if left.any():
            joint = int(np.flatnonzero(left)[0])
            raise StreamError(
                f"joint {self._names[joint]!r} has jumped by {step[joint]:.3g} rad or m in {elapsed:.3g} s; "
                "look after its encoder"
            )
        self.wraps += int(np.count_nonzero(turns))
        return turns
