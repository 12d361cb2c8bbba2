"""Time as a guard counts it: its own goes on evenly where the clock jumps, or the process was held up."""

from __future__ import annotations

import numpy as np

from hodyn_ros.guard.effort_limiter import MILLISECOND
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.reasons import Fault, Reason

_ASTRAY_OVER = 1.0  # [s] that the clock is compared with time over
_IN_TIME = 1.5  # times the usual time between commands, which efforts go on by where they come later
_LATE = 4.0  # times the usual time between commands: nothing goes on by more at once
_GROWS = 0.1  # share by which the mean time between commands becomes longer with one that is late
_EASES_OFF = 0.02  # share by which the mean time between commands becomes shorter with each


class GuardTime:
    """The guard's own time `t` [s], that of the clock [ns], and how the last two commands were apart."""

    def __init__(self, config: GuardConfig) -> None:
        self.t = 0.0
        self.clock = 0
        self.late = False  # whether the last two were much further apart than usual
        self.interrupted: Reason | None = None  # what was wrong with the time between them
        self._config = config
        self._begun = self._paced = False  # whether it was asked for commands before, and twice
        self._period = MILLISECOND  # [s] between two commands, as it mostly is
        self._astray = 0.0  # [s] by which the clock has gone otherwise than time, lately

    def advance(self, now: int, elapsed: float | None, waiting: bool) -> tuple[float, float]:
        """Go on; return by how much [s], and for how long drives have held the last command [s].

        No longer than usual: efforts and a stop go on from where they were, however late a command is.
        """
        passed = 1e-9 * (now - self.clock) if self._begun else self._period
        real = passed if elapsed is None or not self._begun else elapsed
        begun, self._begun, self.clock, self.interrupted = self._begun, True, now, None
        known = real >= 0.0  # else nobody knows how much it was
        faded = np.exp(-max(real, 0.0) / _ASTRAY_OVER) * self._astray
        self._astray = faded + passed - real if known else np.inf
        if real > self._config.drive_timeout:
            self.interrupted = Reason(Fault.HELD_UP, value=real, limit=self._config.drive_timeout)
        elif not abs(self._astray) <= self._config.clock_tolerance:
            self.interrupted = Reason(Fault.CLOCK, value=passed, limit=self._config.clock_tolerance)
            self._astray = 0.0
        real = real if known else self._period
        # by the slower of two clocks, unless it stands still
        real = min(real, passed) if min(real, passed) > 0.0 else max(real, passed)
        if not self._paced and real > 0.0 and self.interrupted is None and waiting:
            self._period, self._paced = real, begun  # the first is the best guess
        self.late = real > _LATE * self._period
        real = min(real, _LATE * self._period)
        since = real if real <= _IN_TIME * self._period else self._period
        self._period += (_GROWS if real > self._period else _EASES_OFF) * (real - self._period)
        self.t += real
        return real, since

    def instant(self, t: float) -> int:
        """Return the instant of the clock at an own time [s], by a clock that goes as time does."""
        return self.clock + round(1e9 * (t - self.t - self._astray))
