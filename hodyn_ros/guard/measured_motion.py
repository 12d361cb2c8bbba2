"""Measurements of a robot as a stream: checked against its clock, its speed, and each other.

No signal is believed alone. A position is held against the one before, velocities against the differences of
positions, and a joint that moves by its velocity must not stay where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.guard.effort_check import RATE_OVER
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.reasons import Fault, Reason, StreamError
from hodyn_ros.guard.transitions import within
from hodyn_ros.lie.se3 import Array

_TURN = 2.0 * np.pi
_HUGE = 1e6  # [rad or m, and per s], which no joint has
_SPEED_UP = 0.2  # [s] within half of which no joint gets from rest to its highest speed
_MEAN_OVER = 0.1  # [s] that the mean age of measurements looks back
_COMPARED_OVER = 0.1  # [s] that positions and velocities are compared over
_STANDING_OVER = 1.0  # [s] that the velocities of a joint are added up over while its position stays the same
_SLACK = 0.05  # share of its speed by which the velocity of a joint may be wrong
_FASTEST = 2.0  # times its highest speed: no single velocity counts for more
_SEEN_OVER = 0.003  # [s] that the speed of a joint by its positions alone is smoothed over
SWING = 0.1  # share of its highest speed by which the velocity of a joint may differ from the others


class MeasuredMotion:
    """The last sound measurement of `joint_names`, none faster than `fastest` (n,) [rad/s or m/s].

    One that is false in a joint is rejected as a whole; only `speed` is known of each joint by itself, from
    all measurements whose stamps are right. Instants are in nanoseconds.
    """

    def __init__(self, joint_names: Sequence[str], config: GuardConfig, fastest: Array) -> None:
        self.position = np.zeros(len(joint_names))  # (n,) [rad or m], without the wraps of encoders
        self.velocity = np.zeros(len(joint_names))  # (n,) [rad/s or m/s], `rate` where it is not measured
        self.rate = np.zeros(len(joint_names))  # (n,) of the positions, from their differences [rad/s or m/s]
        self.unknown: NDArray[np.bool_] = np.ones(len(joint_names), dtype=bool)  # whether no velocity came
        self.standing = np.zeros(len(joint_names))  # (n,) way by velocities while a position stays the same
        self.disagreement = np.zeros(len(joint_names))  # (n,) of positions and velocities lately [rad or m]
        self.stamp: int | None = None
        self.speed = np.zeros(len(joint_names))  # (n,) of each joint by itself, 0 where nothing confirms it
        self.seen: int | None = None  # stamp of the last measurement that `speed` is from
        self.gaps = 0  # how often measurements have come again after they had become too old
        self.wraps = 0  # full turns by which a position has jumped
        self.latency = 0.0  # [s] mean age
        self._names, self._config, self._fastest = tuple(joint_names), config, fastest
        self._most = np.minimum(_FASTEST * fastest, _HUGE)
        self._turns = np.zeros(len(joint_names))
        self._seen_position = np.full(len(joint_names), np.nan)  # as it came, NaN where it is no number
        self._seen_rate = np.zeros(len(joint_names))

    def take(self, now: int, stamp: int, position: Array, velocity: Array | None) -> None:
        """Take a measurement; raises StreamError for one that cannot be right, and keeps the last one.

        `velocity` may hold NaN, or be left out. Jumps by a full turn are taken back: an encoder has wrapped.
        """
        age = 1e-9 * (now - stamp)
        if stamp == 0:
            raise StreamError(
                "its stamp is zero; let the driver stamp it with the time of the measurement", clock=True
            )
        if not self._is_fresh(age):
            where = f"{age:.3g} s before" if age > 0.0 else f"{-age:.3g} s after"
            raise StreamError(
                f"its stamp lies {where} the clock of this node; let driver and node run by the same clock",
                clock=True,
            )
        unknown = np.ones(len(self._names), dtype=bool) if velocity is None else np.isnan(velocity)
        fed_back = self.velocity if velocity is None else velocity
        no_position, huge = ~(np.abs(position) < _HUGE), ~(unknown | (np.abs(fed_back) < _HUGE))
        self._see(now, stamp, position, fed_back, ~(unknown | no_position | huge))
        self._require_possible("position", position, no_position)
        self._require_possible("velocity", fed_back, huge)
        if not self.fresh(now):  # what was known is too old to say anything, or the clock has been set back
            self.latency = age
            self.gaps += self.stamp is not None
            position = position + self._turns
            self.rate = np.where(unknown, 0.0, fed_back)
            self.standing, self.disagreement = 0.0 * position, 0.0 * position
        else:
            elapsed = 1e-9 * (stamp - (self.stamp or 0))
            if elapsed <= 0.0:
                raise StreamError(
                    f"its stamp lies {-elapsed:.3g} s before that of the last one; stamps must increase",
                    clock=True,
                )
            self._turns = self._turns + self._wrapped(position + self._turns - self.position, elapsed)
            self.latency += (age - self.latency) * min(1.0, elapsed / _MEAN_OVER)
            position = position + self._turns
            self._compare(position, np.where(unknown, np.nan, fed_back), elapsed)
        self.unknown, self.velocity = unknown, np.where(unknown, self.rate, fed_back)
        self.stamp, self.position = stamp, position

    def contradiction(self) -> Reason | None:
        """Return how the signals of a joint contradict each other, None where they agree."""
        config = self._config
        least = 2.0 * config.resolution + (_SLACK * _COMPARED_OVER) * np.abs(self.rate)
        beyond = np.abs(self.disagreement) - least
        if np.count_nonzero(beyond > 0.0):
            joint = int(np.argmax(beyond))
            off = abs(float(self.disagreement[joint]))
            return Reason(Fault.CONTRADICTION, self._names[joint], off, float(least[joint]))
        beyond = np.abs(self.standing) - config.resolution
        if np.count_nonzero(beyond > 0.0):
            joint = int(np.argmax(beyond))
            moved = abs(float(self.standing[joint]))
            return Reason(Fault.FROZEN, self._names[joint], moved, config.resolution)
        return None

    def age(self, now: int) -> float:
        """Return how old the last measurement is [s]; infinite before the first."""
        return np.inf if self.stamp is None else 1e-9 * (now - self.stamp)

    def fresh(self, now: int) -> bool:
        """Whether the last measurement says where the robot is now."""
        return self._is_fresh(self.age(now))

    def seen_lately(self, now: int) -> bool:
        """Whether `speed` is that of now."""
        return self.seen is not None and self._is_fresh(1e-9 * (now - self.seen))

    def _is_fresh(self, age: float) -> bool:
        return -self._config.clock_tolerance <= age <= self._config.measurement_timeout

    def _require_possible(self, what: str, values: Array, wrong: NDArray[np.bool_]) -> None:
        if np.count_nonzero(wrong):
            joint = int(np.argmax(wrong))
            raise StreamError(
                f"the {what} of joint {self._names[joint]!r} is {values[joint]:g}; look after its encoder",
                joint=self._names[joint],
                value=float(values[joint]),
                limit=_HUGE,
            )

    def _see(self, now: int, stamp: int, position: Array, velocity: Array, known: NDArray[np.bool_]) -> None:
        """Follow the speed of each joint whose signals are `known` (n,) by itself, whatever others say.

        It is its velocity where its positions went as fast lately, else the slower of the two: neither is
        believed alone, and no joint is taken to be faster than its velocity says. Positions that jump went
        nowhere.
        """
        elapsed = 1e-9 * (stamp - (self.seen or 0)) if self.seen_lately(now) else np.inf
        if elapsed <= 0.0:
            return
        position, velocity = np.where(known, position, np.nan), np.where(known, velocity, 0.0)
        step = position - self._seen_position
        went = np.abs(step) <= self._most * elapsed + self._config.resolution
        rate = np.where(went, step, 0.0) / elapsed
        rate = self._seen_rate + (1.0 - np.exp(-elapsed / _SEEN_OVER)) * (rate - self._seen_rate)
        slower = np.where(np.abs(velocity) < np.abs(rate), velocity, rate)
        alike = np.abs(velocity - rate) <= SWING * self._fastest
        self.speed = np.where(alike, velocity, slower)
        self.seen, self._seen_position, self._seen_rate = stamp, position, rate

    def _compare(self, position: Array, velocity: Array, elapsed: float) -> None:
        """Hold positions against the last ones, and both against velocities, NaN where none came.

        `e' = x' - v - e / T`: what positions have moved by more than velocities say, lately; the same alone
        for positions that stay the same bit for bit, over a longer time.
        """
        step = position - self.position
        self.rate = self.rate + (1.0 - np.exp(-elapsed / RATE_OVER)) * (step / elapsed - self.rate)
        mean = 0.5 * (within(self.velocity, self._most) + within(velocity, self._most))
        way = np.where(np.isnan(mean), step, mean * elapsed)
        self.disagreement = np.exp(-elapsed / _COMPARED_OVER) * (self.disagreement + step - way)
        self.standing = np.where(step == 0.0, np.exp(-elapsed / _STANDING_OVER) * (self.standing + way), 0.0)

    def _wrapped(self, step: Array, elapsed: float) -> Array:
        """Return the full turns (n,) to add to a position that has stepped; raises StreamError for a jump."""
        # where the speed is known, only its change is not
        went = step
        lasts = np.where(self.unknown, elapsed, min(elapsed**2 / _SPEED_UP, 2.0 * elapsed))
        allowed = self._fastest * lasts + self._config.resolution
        by_velocity = step - np.where(self.unknown, 0.0, within(self.velocity, self._most)) * elapsed
        by_rate = step - self.rate * elapsed
        step = np.where(np.abs(by_rate) < np.abs(by_velocity), by_rate, by_velocity)
        far = np.abs(step) > allowed
        if not np.count_nonzero(far):
            return np.zeros(len(self._names))
        # a joint that stands, as its velocity was false, has not wrapped
        wrapped = far & (np.abs(went) > 0.5 * _TURN)
        turns = np.where(wrapped, -_TURN * np.clip(np.round(step / _TURN), -1.0, 1.0), 0.0)
        left = np.abs(step + turns) > allowed
        if left.any():
            joint = int(np.flatnonzero(left)[0])
            raise StreamError(
                f"joint {self._names[joint]!r} has jumped by {step[joint]:.3g} rad or m in {elapsed:.3g} s; "
                "look after its encoder",
                fault=Fault.CONTRADICTION,
                joint=self._names[joint],
                value=float(step[joint]),
                limit=float(allowed[joint]),
            )
        self.wraps += int(np.count_nonzero(turns))
        return turns
