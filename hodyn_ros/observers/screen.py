"""What a sample cannot be: readings of a sensor that repeats its last one, efforts that no drive gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.array import Array

_SIDES = (("position", "velocity"), ("motor_position", "motor_velocity"))
_FURTHER = 1e-6  # [rad or m] that a joint moves, at least, between two samples that differ


class SampleScreen:
    """Looks at the samples (rows, n) of an observer, one after the other.

    Attributes:
        saturated: Of how many samples drives were asked for more than they give.
    """

    def __init__(self, rows: Sequence[str], joint_names: Sequence[str], most: Array) -> None:
        """`rows` are those of a sample, `most` (n,) what drives give [N.m or N]."""
        self._sides = [(rows.index(a), rows.index(b)) for a, b in _SIDES if a in rows and b in rows]
        self._effort = rows.index("motor_effort") if "motor_effort" in rows else None
        self._rows, self._names, self._most = rows, joint_names, most
        self.saturated = 0
        self.forget()

    def forget(self) -> None:
        """Compare the next sample with none."""
        self._time, self._last = np.inf, np.empty(0)

    def repeats(self, time: float, sample: Array) -> str:
        """Return what repeats the sample before at a time [s], though it says that it moves; else nothing.

        A sensor or driver that hangs sends its last reading under new stamps. Positions and velocities of all
        joints, at links or at motors, are then what they were, to the bit, and at such velocities would be
        elsewhere. Where the robot stands they may be the same for as long as it does.
        """
        since, last = time - self._time, self._last
        if since > 0.0:
            for position, velocity in self._sides:
                both = [position, velocity]
                if (sample[both] == last[both]).all():
                    moved = np.abs(sample[velocity]) * since
                    j = int(np.argmax(moved))
                    if moved[j] > _FURTHER:
                        return (
                            f"all {self._rows[position]}s and velocities are those of the sample before, "
                            f"though joint {self._names[j]!r} would have moved by {moved[j]:.2g}"
                        )
        self._time, self._last = time, sample
        return ""

    def within_limits(self, sample: Array) -> Array:
        """Return a sample of commands, its motor efforts no larger than what drives give; counts such."""
        if self._effort is None or not (np.abs(sample[self._effort]) > self._most).any():
            return sample
        self.saturated += 1
        clipped = sample.copy()
        clipped[self._effort] = np.clip(sample[self._effort], -self._most, self._most)
        return clipped
