"""Whether a robot moves as the commanded efforts say, by the momentum observer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from hodyn_ros.errors import HodynError
from hodyn_ros.guard.reasons import Fault, Reason
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
TRIP = 1.75  # times the mismatch that stops a robot: no effort that is commanded does what it should
AT_ONCE = 4.0  # times as much as stops a robot, which gets it out of hand sooner
_MISMATCHED_FOR = 0.004  # [s] that efforts and motion have to disagree: signals that contradict show first
_AT_ONCE_FOR = 0.002  # [s] that more than this has to last
_LONGEST = 0.5  # [s] between two samples that are held together
_QUICKEST = 40.0  # [1/s] times the highest speed: no difference of two samples counts for more


class EffortCheck:
    """What acts on joints beside known efforts, and how much of it is no fault.

    An `EffortObserver` says both, `r' = L (tau_ext - r)` and its deviations, which follow the motion. What it
    is given comes from positions and efforts alone, as velocities may be false: positions through one pole of
    `RATE_OVER`, which are `x - T x'` with the rate x' of the measurements, and through the same efforts and
    how far springs should bend. What swings in springs besides is for whoever says how large the noise is.
    `fastest` (n,) [rad/s or m/s]: speeds of the joints.

    Attributes:
        value: What acts besides (n,) [N.m or N].
        allowed: How much of it is no fault (n,).
        stamp: Of the last sample [ns]; None where it begins anew.
    """

    def __init__(self, observer: EffortObserver, fastest: Array) -> None:
        self._observer, self._quickest = observer, _QUICKEST * fastest
        self._rate = self._effort = self._bends = self._nothing = np.zeros(observer.n)
        self.restart()

    def restart(self) -> None:
        """Forget what was, as where efforts have not acted for a while."""
        self.stamp: int | None = None
        self.value, self.allowed = np.zeros(self._observer.n), np.full(self._observer.n, np.inf)
        self._row: Array | None = None

    def update(
        self, stamp: int, position: Array, rate: Array, effort: Array, bent: Motion | None = None
    ) -> None:
        """Take a sample at an instant [ns].

        `rate` (n,): of the position, from its differences smoothed over RATE_OVER; `effort` (n,): the mean
        that has acted since the sample before; `bent`: by how much the motors should be ahead of their links.
        Where the model says nothing, as where loops do not close, it begins anew.
        """
        ahead, bends = (self._nothing, self._nothing) if bent is None else bent[:2]
        elapsed = np.inf if self.stamp is None else 1e-9 * (stamp - self.stamp)
        follows = 0.0 < elapsed < _LONGEST
        if follows:
            share = 1.0 - np.exp(-elapsed / RATE_OVER)
            self._effort = self._effort + share * (effort - self._effort)
            self._bends = self._bends + share * (bends - self._bends)
            most = elapsed * self._quickest
            self._rate = self._rate + np.minimum(np.maximum(rate - self._rate, -most), most)
        else:
            self.restart()
            self._effort, self._rate, self._bends = effort, rate, bends
        moved, bent_by = position - RATE_OVER * self._rate, ahead - RATE_OVER * self._bends
        sample = np.array([moved, self._rate, bent_by, self._bends, self._effort])
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


class EffortWatch:
    """For how long motion and efforts have disagreed by an `EffortCheck`; never without an `observer`."""

    def __init__(self, joint_names: Sequence[str], observer: EffortObserver | None, fastest: Array) -> None:
        self._names, self._borne = tuple(joint_names), np.zeros(len(joint_names))
        self._check = None if observer is None else EffortCheck(observer, fastest)
        self.restart()

    def restart(self) -> None:
        """Forget what was, as where nothing is commanded."""
        if self._check is not None:
            self._check.restart()
        self._since = dict.fromkeys((1.0, TRIP, AT_ONCE), np.inf)  # [s] own time, by times what is allowed
        self._acted, self._acted_for = np.zeros(len(self._names)), 0.0  # efforts times seconds since a sample

    def act(self, effort: Array, lasts: float) -> None:
        """Take efforts (n,) that have acted for some time [s]."""
        self._acted, self._acted_for = self._acted + lasts * effort, self._acted_for + lasts

    def look(
        self,
        t: float,
        stamp: int | None,
        position: Array,
        rate: Array,
        borne: Array,
        bent: Callable[[], Motion | None],
    ) -> None:
        """Hold a sample of `EffortCheck`, at an own time [s], against the efforts since the one before.

        `bent`: what says by how much motors should be ahead of their links then. `borne` (n,): what else
        carries of the efforts, such as brakes; it may be missing in the motion.
        """
        check, self._borne = self._check, borne
        if check is None or stamp is None or stamp == check.stamp or not self._acted_for > 0.0:
            return
        check.update(stamp, position, rate, self._acted / self._acted_for, bent())
        for times, since in self._since.items():
            beyond = np.count_nonzero(np.abs(check.value) > times * check.allowed + borne)
            self._since[times] = min(since, t) if beyond else np.inf
        self._acted, self._acted_for = np.zeros(len(self._names)), 0.0

    def mismatch(self, t: float, times: float = 1.0) -> Reason | None:
        """Return which joint moves as if much acted on it beside its effort, for a while."""
        lasts = _MISMATCHED_FOR if times == 1.0 else _AT_ONCE_FOR
        if self._check is None or t <= self._since[times] + lasts:
            return None
        return self._furthest(self._check.value, times * self._check.allowed + self._borne)

    def contradicted(self, more: Array) -> Reason | None:
        """Return which joint would move otherwise than its effort says if the robot needed `more` (n,)."""
        if self._check is None or self._check.stamp is None:
            return None
        value, allowed = self._check.value + more, self._check.allowed + self._borne
        return self._furthest(value, allowed) if (np.abs(value) > allowed).any() else None

    def _furthest(self, value: Array, allowed: Array) -> Reason:
        joint = int(np.argmax(np.abs(value) - allowed))
        return Reason(Fault.MISMATCH, self._names[joint], float(value[joint]), float(allowed[joint]))
