"""Whether a robot moves as the commanded efforts say, by the momentum observer."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hodyn_ros.errors import HodynError
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers.effort_observer import EffortObserver


class EffortModel(Protocol):
    """The efforts of a motion, in the sense of those of a feedforward."""

    def __call__(self, motion: Motion, deflection: Motion | None = None, /) -> Array:
        """Return the efforts (n,) of a motion of the motors, which are ahead of their links by a deflection.

        None: where the links are, the motors are.
        """


GAIN = 60.0  # [1/s] L: what acts from one moment on shows by two thirds after 1 / L
THRESHOLD = 5.0  # deviations of what acts besides that are no fault
RATE_OVER = 0.01  # [s] that differences of positions are smoothed over, so efforts are as well
_LONGEST = 0.5  # [s] between two samples that are held together
_QUICKEST = 40.0  # [1/s] times the highest speed: no difference of two samples counts for more


class EffortCheck:
    """What acts on joints beside known efforts, and how much of it is no fault.

    An `EffortObserver` says both, `r' = L (tau_ext - r)` and its deviations, which follow the motion. What it
    is given comes from positions and efforts alone, as velocities may be false: positions through one pole of
    `RATE_OVER`, which are `x - T x'` with the rate x' of the measurements, and efforts through the same. What
    swings in springs is for whoever says how large the noise is. `fastest` (n,) [rad/s or m/s]: speeds of the
    joints.

    Attributes:
        value: What acts besides (n,) [N.m or N].
        allowed: How much of it is no fault (n,).
        stamp: Of the last sample [ns]; None where it begins anew.
    """

    def __init__(self, observer: EffortObserver, fastest: Array) -> None:
        self._observer, self._quickest = observer, _QUICKEST * fastest
        self._rate = self._effort = np.zeros(observer.n)
        self.restart()

    def restart(self) -> None:
        """Forget what was, as where efforts have not acted for a while."""
        self.stamp: int | None = None
        self.value, self.allowed = np.zeros(self._observer.n), np.full(self._observer.n, np.inf)
        self._row: Array | None = None

    def update(self, stamp: int, position: Array, rate: Array, effort: Array) -> None:
        """Take a sample at an instant [ns].

        `rate` (n,): of the position, from its differences smoothed over RATE_OVER; `effort` (n,): the mean
        that has acted since the sample before. Where the model says nothing, as where loops do not close, it
        begins anew.
        """
        elapsed = np.inf if self.stamp is None else 1e-9 * (stamp - self.stamp)
        follows = 0.0 < elapsed < _LONGEST
        if follows:
            self._effort = self._effort + (1.0 - np.exp(-elapsed / RATE_OVER)) * (effort - self._effort)
            most = elapsed * self._quickest
            self._rate = self._rate + np.minimum(np.maximum(rate - self._rate, -most), most)
        else:
            self.restart()
            self._effort, self._rate = effort, rate
        sample = np.array([position - RATE_OVER * self._rate, self._rate, self._effort])
        try:
            if follows and self._row is not None:
                n, self._row = self._observer.n, self._observer.step(sample, elapsed, self._row)
                self.value, self.allowed = self._row[0, :n], THRESHOLD * self._row[0, n : 2 * n]
            else:
                self._row = self._observer.start(sample)
        except HodynError:
            self.restart()
            return
        self.stamp = stamp
