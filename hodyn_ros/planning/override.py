"""How fast a motion that is under way may change its speed: as fast as the limits of the robot allow.

The clock is a uniform spline of degree 5, so it has four continuous derivatives whatever is asked for and
when: of its control points only those are changed that the present does not need. Their differences are
rates, and the rate of the clock is never outside of what these are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie import jets
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_evaluator import SampleError
from hodyn_ros.planning.streams.uniform_spline import DEGREE, LAG, evaluate_needed
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion
from hodyn_ros.trajectory.sampling import BLOCK, Sampler

STEP = 0.01  # [s] between two control points
_KEPT = 40  # control points of the past


@dataclass(frozen=True, eq=False)
class PathClock:
    """The time s(t) [s] of a motion that lasts `duration` [s], t [s] being zero when it begins.

    Before 0 and behind `duration` the time of the motion stands: motions rest there. Behind its control
    points the clock goes on at `rate`, in seconds of the motion by second; negative: back.
    """

    duration: float
    rate: float
    first: int  # number of the first control point
    controls: Array  # (c,)

    @classmethod
    def running(cls, duration: float, rate: float = 1.0) -> PathClock:
        """Return a clock that runs evenly, from 0 at the time 0."""
        first = -_KEPT
        even = np.arange(first, DEGREE + 1, dtype=np.float64) - LAG
        return cls(duration, rate, first, np.asarray(rate * STEP * even, dtype=np.float64))

    def changed(self, now: float, rate: float, lasts: float, wait: float = 0.0) -> PathClock:
        """Return the clock that goes on for `wait` [s], and then goes over to another rate in `lasts` [s]."""
        frozen = int(np.floor(now / STEP)) + DEGREE
        waits = int(np.ceil(wait / STEP))
        count = waits + int(np.ceil(lasts / STEP)) + 1
        place = float(self._free(np.array([now]), 0)[0, 0])
        kept = np.arange(frozen - _KEPT, frozen + 1)
        if not 0.0 < place < self.duration:  # it stands at an end: there it goes on
            past, before = np.full(len(kept), np.clip(place, 0.0, self.duration)), np.zeros(count)
        else:
            past = self._controls(kept)
            before = np.diff(self._controls(np.arange(frozen, frozen + count + 1))) / STEP
        u = np.maximum(np.arange(1, count + 1) - waits, 0) / (count - waits)
        share = u**4 * (35.0 - 84.0 * u + 70.0 * u**2 - 20.0 * u**3)
        rates = before + share * (rate - before)
        return PathClock(
            self.duration, rate, int(kept[0]), np.concatenate([past, past[-1] + STEP * np.cumsum(rates)])
        )

    def at(self, times: Array, order: int) -> Array:
        """Return s and its derivatives (order + 1, N) at times (N,)."""
        result = self._free(times, order)
        stands = (result[0] < 0.0) | (result[0] > self.duration)
        result[0] = np.clip(result[0], 0.0, self.duration)
        result[1:, stands] = 0.0
        return result

    def along(self, path: Array, scaling: Array) -> Array:
        """Return derivatives (N, order + 1, n) by time from those by s of the motion, (N, order + 1, n)."""
        taylor = jets.to_taylor(np.moveaxis(path, 1, 0))
        composed = jets.compose(taylor, jets.to_taylor(scaling[:, :, None]))
        return np.ascontiguousarray(np.moveaxis(jets.to_derivatives(composed), 0, 1))

    @property
    def steady(self) -> float:
        """From when on [s] the rate does not change any more."""
        return (self.first + len(self.controls) - 1) * STEP

    @property
    def ends(self) -> float:
        """When [s] the motion has come to its end; infinite where it does not."""
        low, high = self.steady - len(self.controls) * STEP, self.steady
        reached = float(self._free(np.array([high]), 0)[0, 0])
        if reached < self.duration:
            return high + (self.duration - reached) / self.rate if self.rate > 0.0 else np.inf
        while high - low > 1e-9 * max(1.0, abs(high)):
            middle = 0.5 * (low + high)
            beyond = self._free(np.array([middle]), 0)[0, 0] >= self.duration
            low, high = (low, middle) if beyond else (middle, high)
        return high

    def _free(self, times: Array, order: int) -> Array:
        """Return s and its derivatives as if the motion had no ends."""
        values = evaluate_needed(lambda number: self._controls(number)[:, None], times, STEP, order)
        return np.ascontiguousarray(values[:, :, 0].T)

    def _controls(self, number: NDArray[np.intp]) -> Array:
        """Return control points by number; behind the last one they go on at the rate."""
        place = number - self.first
        beyond = np.maximum(place - (len(self.controls) - 1), 0)
        return self.controls[np.clip(place, 0, len(self.controls) - 1)] + self.rate * STEP * beyond


SHORTEST, LONGEST = 0.05, 6.0  # [s] that a change takes
HOLDS = 1.0 + 5e-4  # of limits: a motion that is at one of them all the time could hardly change otherwise
_LONGER = 1.35  # times as long is the next try
_WAITS = (0.0, 0.1, 0.25, 0.5)  # [s] until the change begins, where the motion brakes as much as it may
_APART = 0.002  # [s] between two instants of a change that are looked at


class Change(NamedTuple):
    """A change of the speed of a motion."""

    clock: PathClock
    usage: float  # of the most used limit meanwhile; NaN where no limits are known
    limit: str  # which one


def override(
    motion: RobotMotion,
    clock: PathClock,
    now: float,
    rate: float,
    limits: LimitSet | None,
    shortest: float = SHORTEST,
    insist: bool = False,
) -> Change:
    """Let a motion that is under way go on at `rate` times its speed, 0 to stop it, negative to go back.

    `now` [s] by the clock of the motion; the change takes no less than `shortest` [s] and as long as the
    limits ask for, and these hold to 1.0005; what the motion itself exceeds meanwhile may be exceeded as
    much. Without limits it takes `shortest`. Raises InputError for a rate that is not from -1 to 1, and where
    no change keeps the limits, unless you `insist`: then it is the one that exceeds them least.
    """
    if not -1.0 <= rate <= 1.0:
        raise InputError(f"the speed of a motion may be from -1 to 1 times its own, found {rate:g}")
    if limits is None:
        return Change(clock.changed(now, rate, shortest), np.nan, "")
    least = None
    for wait in _WAITS:
        lasts = shortest
        while lasts <= LONGEST:
            change = _looked_at(motion, clock, clock.changed(now, rate, lasts, wait), now, limits)
            if change.usage <= HOLDS:
                return change
            least = change if least is None or change.usage < least.usage else least
            lasts *= _LONGER
    assert least is not None
    if not insist:
        raise InputError(
            f"no change to {rate:g} times the speed within {LONGEST:g} s keeps the limits; the best one uses "
            f"{least.usage:.4g} times the {least.limit}, so nothing changes; ask for a lower speed, for 0, "
            "or again elsewhere on the path"
        )
    return least


def _looked_at(
    motion: RobotMotion, before: PathClock, clock: PathClock, now: float, limits: LimitSet
) -> Change:
    """Return the change with its use of limits, until the rate stays."""
    lasts = clock.steady - now
    times = np.linspace(now, clock.steady, int(lasts / _APART) + 2)
    try:
        sizes = _sizes(motion, clock, times, limits)
    except SampleError as error:
        return Change(clock, np.inf, str(error))
    usage = limits.usage(sizes)
    if (usage > 1.0).any():  # where the motion itself is beyond a limit, it may stay so
        same = limits.usage(_sizes(motion, before, times, limits))
        usage = np.where(usage <= same, np.minimum(usage, 1.0), usage)
    worst = int(np.argmax(usage))
    column = limits.columns[worst]
    return Change(clock, float(usage[worst]), f"{column.quantity} of {column.joint!r}")


def _sizes(motion: RobotMotion, clock: PathClock, times: Array, limits: LimitSet) -> Array:
    """Return the largest relative quantities (columns,) at times (N,)."""
    values = limits.relative(motion.of_columns(moved(motion, clock, times, limits.order))).values
    return np.asarray(np.where(limits.one_sided, values, np.abs(values)).max(axis=0))


def moved(motion: RobotMotion, clock: PathClock, times: Array, order: int) -> Array:
    """Return the columns (N, order + 1, n) of a motion at times (N,) [s] of its clock."""
    scaling = clock.at(times, order)
    return clock.along(motion.trajectory.sample(scaling[0], order), scaling)


class OverridableSampler(Sampler):
    """The samples of a motion that may be slowed down, stopped and turned back on its way.

    `speed` times its own it begins with; see `Sampler` for the rest.
    """

    def __init__(self, motion: RobotMotion, rate: float, order: int, speed: float = 1.0) -> None:
        super().__init__(motion, rate, order)
        self.begin_at(speed)

    @property
    def count(self) -> float:
        """Number of samples from the start to the end, both included; infinite where there is no end."""
        return super().count if self._even else self._count

    def begin_at(self, speed: float) -> None:
        """Begin at a speed, times that of the motion; no sample has been asked for but the first."""
        self.follow(PathClock.running(self.duration, speed))
        self._even = speed == 1.0

    def follow(self, clock: PathClock) -> None:
        """Go on by another clock; samples from its change on are not to have been asked for."""
        self.clock, self._even, self._block = clock, False, None
        ends = clock.ends
        self._count = math.inf if math.isinf(ends) else math.ceil(round(ends * self.rate, 6)) + 1

    def __getitem__(self, k: int) -> MotionSample:
        """Return the sample at k / rate; read its arrays, do not write to them."""
        if self._even:
            return super().__getitem__(k)
        if self._block is None or not 0 <= k - self._first < BLOCK:
            times = np.asarray(np.arange(k, k + BLOCK) / self.rate, dtype=np.float64)
            self._block = self.motion.of_columns(moved(self.motion, self.clock, times, self.order))
            self._first = k
        return self._block.one(k - self._first)
