"""The fastest way of joints to rest under limits of velocity, acceleration and jerk, from any state.

Each joint goes to the speed at which it cruises, stays there, and goes to rest: two changes of speed, each of
them a ramp of the acceleration, a stretch of constant one and a ramp to none. How far that leads grows with
the speed of the cruise; so the speed is found that leads to the goal, or the highest one and how long it
lasts. Source: Haschke, Weitnauer, Ritter, On-Line Planning of Time-Optimal, Jerk-Limited Trajectories (IROS
2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array

_HALVINGS = 60  # of the range of cruising speeds at most
_PRECISION = 1e-12  # of positions


class State(NamedTuple):
    """Where joints are: position, velocity and acceleration, (n,) each [rad or m, s]."""

    position: Array
    velocity: Array
    acceleration: Array


class Bounds(NamedTuple):
    """What joints may do, (n,) each: `slowest` < 0 < `fastest`, and the sizes of acceleration and jerk."""

    slowest: Array
    fastest: Array
    acceleration: Array
    jerk: Array

    @classmethod
    def symmetric(cls, velocity: Array, acceleration: Array, jerk: Array) -> Bounds:
        """Return bounds that are the same in both directions."""
        return cls(-velocity, velocity, acceleration, jerk)


class Approach:
    """A motion of joints (n,) from a state at time 0 to rest at position 0, each as soon as a cruise allows.

    Where the state itself is beyond the bounds, the motion comes back within them first. One that already
    brakes and could brake less hard, without a cruise, may be there sooner: 3 of 2,000 random starts took
    19 to 28 % longer than those of ruckig 0.19, all others within the bounds as long.
    """

    def __init__(self, start: State, bounds: Bounds) -> None:
        cruise, lasts = _cruise(start, bounds)
        there = _change(start.velocity, start.acceleration, cruise, bounds)
        back = _change(cruise, np.zeros_like(cruise), np.zeros_like(cruise), bounds)
        still = np.zeros_like(cruise)
        durations = np.stack([*there.durations, lasts, *back.durations])
        jerks = np.stack([*there.jerks, still, *back.jerks])
        self._from(start, durations, jerks)

    @classmethod
    def to_a_stop(cls, start: State, bounds: Bounds) -> Approach:
        """Return the motion that comes to rest as soon as it can, wherever that is."""
        approach = cls.__new__(cls)
        still = np.zeros_like(start.velocity)
        change = _change(start.velocity, start.acceleration, still, bounds)
        approach._from(start, np.stack(change.durations), np.stack(change.jerks))
        return approach

    def _from(self, start: State, durations: Array, jerks: Array) -> None:
        """Lay segments of constant jerk (segments, n) behind each other; behind the last one joints stand."""
        states = [np.stack(start)]
        for duration, jerk in zip(durations, jerks):
            states.append(_moved(states[-1], duration, jerk))
        states[-1][1:] = 0.0  # to rounding
        self._states = np.stack(states)  # (segments + 1, 3, n) at the beginning of each
        self._begins = np.concatenate([np.zeros((1, len(start.position))), np.cumsum(durations, axis=0)])
        self._jerks = np.concatenate([jerks, np.zeros((1, len(start.position)))])
        self.duration = float(self._begins[-1].max())

    def at(self, times: Array) -> Array:
        """Return positions, velocities and accelerations (N, 3, n) at times (N,) [s]."""
        segment = (times[:, None, None] >= self._begins[1:]).sum(axis=1)  # (N, n)
        joint = np.arange(segment.shape[1])
        since = times[:, None] - self._begins[segment, joint]
        state = self._states[segment, :, joint]  # (N, n, 3)
        return np.moveaxis(_moved(np.moveaxis(state, 2, 0), since, self._jerks[segment, joint]), 0, 1)


class _Change(NamedTuple):
    """A change of speed: three segments, and how far they lead."""

    durations: tuple[Array, Array, Array]
    jerks: tuple[Array, Array, Array]
    distance: Array


def _moved(state: Array, time: Array, jerk: Array) -> Array:
    """Return the state (3, ...) after a time of constant jerk."""
    p, v, a = state
    return np.stack(
        [
            p + time * (v + time * (a / 2.0 + time * jerk / 6.0)),
            v + time * (a + time * jerk / 2.0),
            a + time * jerk,
        ]
    )


def _change(velocity: Array, acceleration: Array, to: Array, bounds: Bounds) -> _Change:
    """Return the fastest change to another velocity without acceleration."""
    most, jerk = bounds.acceleration, bounds.jerk
    # where the speed ends if the acceleration goes to zero at once
    ahead = velocity + acceleration * np.abs(acceleration) / (2.0 * jerk)
    sign = np.where(to >= ahead, 1.0, -1.0)
    begin, gain = sign * acceleration, sign * (to - velocity)
    peak = np.minimum(np.sqrt(np.maximum(jerk * gain + 0.5 * begin * begin, 0.0)), most)
    first, last = np.abs(peak - begin) / jerk, peak / jerk
    gained = 0.5 * (first * (begin + peak) + last * peak)
    between = np.where(peak > 0.0, np.maximum(gain - gained, 0.0) / np.where(peak > 0.0, peak, 1.0), 0.0)
    up = np.where(peak >= begin, sign * jerk, -sign * jerk)
    # the distance: speed is a polynomial in each segment
    v1 = velocity + 0.5 * first * (acceleration + sign * peak)
    v2 = v1 + between * sign * peak
    distance = (
        first * (velocity + first * (acceleration / 2.0 + first * up / 6.0))
        + between * 0.5 * (v1 + v2)
        + last * (v2 + last * sign * peak / 3.0)
    )
    return _Change((first, between, last), (up, np.zeros_like(up), -sign * jerk), distance)


def _stop_distance(velocity: Array, bounds: Bounds) -> Array:
    """Return how far a stop leads from a velocity without acceleration."""
    speed, most, jerk = np.abs(velocity), bounds.acceleration, bounds.jerk
    short = np.sqrt(speed / jerk)
    return np.asarray(
        velocity * np.where(speed > most * most / jerk, 0.5 * (speed / most + most / jerk), short)
    )


def _cruise(start: State, bounds: Bounds) -> tuple[Array, Array]:
    """Return the cruising velocities that lead to position 0, and how long each of them lasts [s]."""

    def missed(velocity: Array) -> Array:
        change = _change(start.velocity, start.acceleration, velocity, bounds)
        return np.asarray(start.position + change.distance + _stop_distance(velocity, bounds))

    low, high = bounds.slowest.copy(), bounds.fastest.copy()
    at_low, at_high = missed(low), missed(high)
    backward, forward = at_low >= 0.0, at_high <= 0.0  # even the highest speed is to last for some time
    # Beyond the speed that letting go leads to, the way does not grow evenly with that of the cruise, and
    # several lead to the goal: the nearest to that speed, or to none, is soonest.
    gone = start.velocity + start.acceleration * np.abs(start.acceleration) / (2.0 * bounds.jerk)
    for turn in (np.clip(gone, low, high), np.clip(np.zeros_like(low), low, high)):
        inside = (turn > low) & (turn < high)
        there = missed(turn)
        below, above = inside & (there > 0.0), inside & (there <= 0.0)
        high, at_high = np.where(below, turn, high), np.where(below, there, at_high)
        low, at_low = np.where(above, turn, low), np.where(above, there, at_low)
    scale = _PRECISION * (1.0 + np.abs(start.position))
    velocity, error = np.where(backward, low, high), np.where(backward, at_low, at_high)
    open_ = ~(backward | forward)
    moved = np.zeros(len(low))  # which end moved last: 1 the high one, -1 the low one
    for _ in range(_HALVINGS):
        if not open_.any():
            break
        # regula falsi; an end that stays twice counts half (Illinois)
        try_ = np.where(
            open_, high - at_high * (high - low) / np.where(open_, at_high - at_low, 1.0), velocity
        )
        miss = missed(try_)
        velocity, error = np.where(open_, try_, velocity), np.where(open_, miss, error)
        above = miss > 0.0
        at_low = np.where(above, np.where(moved > 0.0, 0.5, 1.0) * at_low, miss)
        at_high = np.where(above, miss, np.where(moved < 0.0, 0.5, 1.0) * at_high)
        low, high = np.where(above, low, try_), np.where(above, try_, high)
        moved = np.where(above, 1.0, -1.0)
        open_ = open_ & (np.abs(error) > scale) & (high - low > _PRECISION)
    beyond = backward | forward
    lasts = np.where(beyond, -error / np.where(beyond, velocity, 1.0), 0.0)
    return velocity, np.maximum(lasts, 0.0)


def within(controls: Array, step: float, bounds: Array) -> NDArray[np.bool_]:
    """Return which joints keep bounds (3, n) by their control points (N, n), `step` [s] apart."""
    kept, differences = np.ones(controls.shape[1], dtype=bool), controls
    for order, bound in enumerate(bounds, start=1):
        differences = np.diff(differences, axis=0)
        kept &= (np.abs(differences) <= bound * step**order).all(axis=0)
    return kept


def joining(off: Array, times: Array, join: float) -> Array:
    """Return how what is off (3, n), with derivatives, goes to zero in `join` [s]: (N, 3, n) at N times."""
    u = np.minimum(times / join, 1.0)[:, None]
    p, v, a = off[0], off[1] * join, off[2] * join * join
    coefficients = np.stack(
        [p, v, a / 2.0, -10 * p - 6 * v - 1.5 * a, 15 * p + 8 * v + 1.5 * a, -6 * p - 3 * v - 0.5 * a]
    )
    return _polynomials(coefficients, u, join)


def fading(off: Array, times: Array, join: float) -> Array:
    """Return what is off (N, 3, n) at times (N,), with a weight that goes from one to zero in `join` [s]."""
    u = np.minimum(times / join, 1.0)[:, None]
    coefficients = np.array([1.0, 0.0, 0.0, 0.0, -35.0, 84.0, -70.0, 20.0])[:, None]
    weight = np.moveaxis(_polynomials(coefficients, u, join), 1, 0)  # with its derivatives
    p, v, a = np.moveaxis(off, 1, 0)
    w, w1, w2 = weight
    return np.stack([w * p, w1 * p + w * v, w2 * p + 2.0 * w1 * v + w * a], axis=1)


def _polynomials(coefficients: Array, u: Array, duration: float) -> Array:
    """Return polynomials (powers, n) at u (N, 1), 0 to 1, with two derivatives by time: (N, 3, n)."""
    derivatives = []
    for _ in range(3):
        derivatives.append(np.asarray(u ** np.arange(len(coefficients)) @ coefficients))
        coefficients = coefficients[1:] * np.arange(1, len(coefficients))[:, None] / duration
    return np.stack(derivatives, axis=1)
