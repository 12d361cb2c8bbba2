"""Smooth starts from rest and stops to rest, as a time scaling around any trajectory."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie import jets
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.checks import real_number, whole_number
from hodyn_ros.trajectory.splines.piecewise import derivatives

if TYPE_CHECKING:
    from scipy.interpolate import BPoly

HIGHEST_ORDER = 10


class _Eased(Trajectory):
    """A trajectory q run through a time scaling s: the motion `q(s(t))`."""

    trajectory: Trajectory
    ramp_duration: float
    order: int
    _ramp_polynomial: BPoly

    def _smoother(self, order: int) -> str:
        if self.order < order:
            return f"build it with order={order} or more"
        return self.trajectory._smoother(order)

    def _set_up(self) -> None:
        from scipy.interpolate import BPoly

        ramp_duration = real_number("ramp_duration", self.ramp_duration, positive=True)
        order = whole_number("order", self.order, 1, HIGHEST_ORDER)
        # The Hermite polynomial with these derivatives 0 ... order at both ends. It is the integral of a
        # smootherstep, which by symmetry passes by half of the ramp's duration.
        standstill, unit_pace = np.zeros(order + 1), np.zeros(order + 1)
        unit_pace[:2] = 0.5 * ramp_duration, 1.0
        self._set(
            ramp_duration=ramp_duration,
            order=order,
            n_joints=self.trajectory.n_joints,
            joint_names=self.trajectory.joint_names,
            smoothness=min(self.trajectory.smoothness, order),
            _ramp_polynomial=BPoly.from_derivatives([0.0, ramp_duration], [standstill, unit_pace]),
        )

    @property
    def highest_frequency(self) -> float:
        """That of the trajectory [rad/s], as its time nowhere runs faster than its own."""
        return self.trajectory.highest_frequency

    @property
    def polynomial_degree(self) -> int | None:
        """That of the trajectory run through the ramp."""
        degree = self.trajectory.polynomial_degree
        return None if degree is None else degree * (len(self._ramp_polynomial.c) - 1)

    def _reached(self, elapsed: Array) -> Array:
        """Return the times (N,) since standstill at which as much of the trajectory [s] has passed."""
        from scipy.optimize import brentq

        times = elapsed + 0.5 * self.ramp_duration
        for i in np.flatnonzero(times < self.ramp_duration):
            times[i] = brentq(
                lambda t, goal: float(self._ramp_polynomial(t)) - goal,
                0.0,
                self.ramp_duration,
                args=(elapsed[i],),
                xtol=1e-15 * self.ramp_duration,
            )
        return times

    def _along(self, scaling: Array) -> Array:
        """Return the derivatives (order+1, N, n) of q(s(t)) from those of s, (order+1, N)."""
        path = self.trajectory._held_derivatives(scaling[0], len(scaling) - 1)
        ramping = (scaling[1:2] != 1.0).any(axis=0) | scaling[2:].any(axis=0)
        if ramping.any():
            outer, inner = (jets.to_taylor(one) for one in (path[:, ramping], scaling[:, ramping, None]))
            path = path.copy()
            path[:, ramping] = jets.to_derivatives(jets.compose(outer, inner))
        return path

    def _ramp(self, times: Array, order: int) -> Array:
        """Return the derivatives (order+1, N) of a time that goes from standstill at 0 to unit pace."""
        scaling = np.zeros((order + 1, len(times)))
        scaling[0] = times - 0.5 * self.ramp_duration
        scaling[1:2] = 1.0
        inside = times < self.ramp_duration
        scaling[:, inside] = derivatives(self._ramp_polynomial, times[inside], order)
        return scaling


@dataclass(frozen=True, eq=False)
class EasedStart(_Eased):
    """Start a trajectory from rest, at the position that it has at its time `start` [s].

    Over `ramp_duration` [s] the time of the trajectory speeds up from standstill to its own pace, and has
    then passed by half of the ramp: from there on, the sample at t is that of the trajectory at
    `start + t - ramp_duration / 2`. The path is the same. The time scaling is a polynomial whose derivatives
    up to `order` are continuous, and the chain rule of every order takes it to the joints.

    >>> from hodyn_ros.trajectory import Cosines
    >>> motion = EasedStart(Cosines([1.0], [2.0]), ramp_duration=1.0)
    >>> abs(motion.sample(0.0, 4)[:, 0])
    array([1., 0., 0., 0., 0.])
    >>> bool(np.allclose(motion.sample(3.0, 4), motion.trajectory.sample(2.5, 4)))
    True
    """

    trajectory: Trajectory
    ramp_duration: float
    start: float = 0.0
    order: int = field(default=6, kw_only=True)
    starts_at_rest: bool = field(init=False, repr=False, default=True)

    def __post_init__(self) -> None:
        self._set_up()
        start = real_number("start", self.start)
        latest = self.trajectory.duration - 0.5 * self.ramp_duration
        if not 0.0 <= start <= latest:
            raise InputError(
                f"start must lie between 0 and {latest:g} s, found {start:g}: the trajectory ends at "
                f"{self.trajectory.duration:g} s, and the ramp covers half of its {self.ramp_duration:g} s"
            )
        self._set(
            start=start,
            duration=self.trajectory.duration - start + 0.5 * self.ramp_duration,
            ends_at_rest=self.trajectory.ends_at_rest,
        )

    @property
    def breakpoints(self) -> Array | None:
        """The ends of the ramp, and where those of the trajectory are passed."""
        points = self.trajectory.breakpoints
        if points is None:
            return None
        passed = self._reached(points[points > self.start] - self.start)
        return np.unique(np.concatenate([[0.0, self.ramp_duration], passed]))

    def _derivatives(self, times: Array, order: int) -> Array:
        scaling = self._ramp(times, order)
        scaling[0] += self.start
        return self._along(scaling)


@dataclass(frozen=True, eq=False)
class EasedStop(_Eased):
    """Bring a trajectory to rest, at the position that it has at its time `stop` [s], by default at its end.

    The mirror image of EasedStart: the motion follows the trajectory until `stop - ramp_duration / 2`, then
    slows down, and rests from `stop + ramp_duration / 2` on.

    >>> from hodyn_ros.trajectory import Cosines
    >>> motion = EasedStop(Cosines([1.0], [2.0]), ramp_duration=1.0, stop=4.0)
    >>> motion.duration
    4.5
    >>> motion.sample(5.0, 2)[:, 0].round(6)
    array([-0.1455,  0.    ,  0.    ])
    """

    trajectory: Trajectory
    ramp_duration: float
    stop: float | None = None
    order: int = field(default=6, kw_only=True)
    ends_at_rest: bool = field(init=False, repr=False, default=True)
    # the resolved `stop`
    _stop: float = field(init=False, repr=False)
    _slows: float = field(init=False, repr=False)  # from when on it slows down

    def __post_init__(self) -> None:
        self._set_up()
        stop = self.trajectory.duration if self.stop is None else real_number("stop", self.stop)
        if math.isinf(stop):
            raise InputError("stop must be given, because the trajectory has no end")
        earliest = 0.5 * self.ramp_duration
        if not earliest <= stop <= self.trajectory.duration:
            raise InputError(
                f"stop must lie between {earliest:g} s, half of the ramp, and "
                f"{self.trajectory.duration:g} s, the end of the trajectory, found {stop:g}"
            )
        self._set(
            _stop=stop,
            _slows=stop - 0.5 * self.ramp_duration,
            duration=stop + 0.5 * self.ramp_duration,
            starts_at_rest=self.trajectory.starts_at_rest,
        )

    @property
    def breakpoints(self) -> Array | None:
        """The ends of the ramp, and where those of the trajectory are passed."""
        points = self.trajectory.breakpoints
        if points is None:
            return None
        before = points[points <= self._slows]
        passed = self.duration - self._reached(
            self._stop - points[(points > self._slows) & (points < self._stop)]
        )
        return np.unique(np.concatenate([before, passed, [self._slows, self.duration]]))

    def _derivatives(self, times: Array, order: int) -> Array:
        # a stop is a start run backwards: s(t) = stop - ramp(duration - t)
        scaling = self._ramp(self.duration - times, order)
        scaling[::2] *= -1.0
        scaling[0] += self._stop
        # before it s(t) = t, without the rounding of `duration`: a jump of the trajectory stays where it is
        scaling[0] = np.where(times <= self._slows, times, scaling[0])
        return self._along(scaling)
