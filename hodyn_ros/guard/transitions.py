"""Ways from one course to another: offsets that fade, and motions that brake, without a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.lie.se3 import Array


def within(values: Array, most: Array | float) -> Array:
    """Return values (n,) cut to what lies between `-most` and `most`."""
    return np.minimum(np.maximum(values, -most), most)


class Motion(NamedTuple):
    """Position, velocity and acceleration (n,) at one instant [rad or m, /s, /s^2]."""

    position: Array
    velocity: Array
    acceleration: Array


class Fading(NamedTuple):
    """An offset (n,) and its rate that go to zero within `duration` [s] from `start` [s] on.

    By the polynomial of fifth degree in s = (t - start) / duration whose acceleration is zero at both ends:
    `x = value (1 - 10 s^3 + 15 s^4 - 6 s^5) + rate duration (s - 6 s^3 + 8 s^4 - 3 s^5)`.
    """

    value: Array
    rate: Array
    start: float
    duration: float

    def over(self, t: float) -> bool:
        """Whether nothing is left at the time t [s]."""
        return t - self.start >= self.duration

    def at(self, t: float) -> Motion:
        """Return what is left at the time t [s]; before the start it goes on evenly."""
        elapsed = t - self.start
        if elapsed < 0.0:
            return Motion(self.value + self.rate * elapsed, self.rate, np.zeros_like(self.rate))
        s = elapsed / self.duration
        if s >= 1.0:
            nothing = np.zeros_like(self.value)
            return Motion(nothing, nothing, nothing)
        per, ramp = 1.0 / self.duration, self.rate * self.duration
        left = (1.0 - s) ** 2
        return Motion(
            self.value * (left * (1.0 - s) * (1.0 + 3.0 * s + 6.0 * s**2))
            + ramp * (s * left * (1.0 - s) * (1.0 + 3.0 * s)),
            (self.value * (-30.0 * s**2 * left) + ramp * (left * (1.0 + 2.0 * s - 15.0 * s**2))) * per,
            (
                self.value * (-60.0 * s + 180.0 * s**2 - 120.0 * s**3)
                + ramp * (-36.0 * s + 96.0 * s**2 - 60.0 * s**3)
            )
            * per**2,
        )


class Braking(NamedTuple):
    """A motion from `begin` to a standstill, from `start` [s] on; its acceleration has no step.

    The velocity goes to zero within `duration` [s], along `1 - 3 u^2 + 2 u^3`. What the motion was
    accelerated by goes within `relief` [s], which is short, lest the motion become much faster first.
    """

    begin: Motion
    start: float
    duration: float
    relief: float

    @classmethod
    def lasting(cls, begin: Motion, start: float, duration: float) -> Braking:
        """Brake for `duration` [s]."""
        return cls(begin, start, duration, min(duration, _RELIEF))

    @property
    def end(self) -> float:
        """When it stands [s]."""
        return self.start + self.duration

    def at(self, t: float) -> Motion:
        """Return the motion at the time t [s]; before the start it was even."""
        (position, velocity, acceleration), elapsed = self.begin, t - self.start
        if elapsed < 0.0:
            return Motion(position + velocity * elapsed, velocity, acceleration)
        u, w = min(elapsed / self.duration, 1.0), min(elapsed / self.relief, 1.0)
        way, eased = velocity * self.duration, acceleration * self.relief
        return Motion(
            position
            + way * (u - u**3 + 0.5 * u**4)
            + eased * self.relief * (w**2 * (0.5 - 2.0 / 3.0 * w + 0.25 * w**2)),
            velocity * (1.0 - 3.0 * u**2 + 2.0 * u**3) + eased * (w * (1.0 - w) ** 2),
            velocity * (6.0 * (u**2 - u) / self.duration) + acceleration * ((1.0 - w) * (1.0 - 3.0 * w)),
        )


def braking_time(begin: Motion, stated: float, highest_speed: Array, lower: Array, upper: Array) -> float:
    """Return how long [s] it takes to brake by no more than `stated` [rad/s^2 or m/s^2].

    Where that is 0: as gently as an arm is to, but fast joints within `_STANDS_WITHIN` of their highest
    speed: the arms of a Delta, which go at 12 rad/s, would leave its workspace. And harder, within reason,
    where a joint would leave its range (n,) [rad or m] otherwise: the way of a stop is half of that at full
    speed.
    """
    speed = np.abs(begin.velocity)
    if stated > 0.0:
        return _longest(speed, stated)
    of_speed = 1.5 * highest_speed / _STANDS_WITHIN
    gentle = _longest(speed, np.maximum(_GENTLE, np.where(np.isfinite(of_speed), of_speed, 0.0)))
    left = np.where(begin.velocity > 0.0, upper - begin.position, begin.position - lower)
    way = 0.5 * gentle * speed
    beyond = way > np.maximum(left, 0.0)
    way, left = way[beyond], left[beyond]
    return gentle / float((way / np.maximum(left, way / _HARDER)).max(initial=1.0))


def _longest(speed: Array, deceleration: Array | float) -> float:
    return float((1.5 * speed / deceleration).max(initial=0.0))


_RELIEF = 0.1  # [s]
_GENTLE = 7.5  # [rad/s^2 or m/s^2] by which joints brake where nothing else is stated,
_STANDS_WITHIN = 0.65  # [s] and what stops them from their highest speed within this, where that is more
_HARDER = 3.0  # times as hard it brakes at most before the end of a range
