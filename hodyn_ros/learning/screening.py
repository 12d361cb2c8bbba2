"""What of a repetition does not count: gaps, frozen signals, drives at their limits, and what differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, maximum_filter1d

from hodyn_ros.array import Array
from hodyn_ros.learning.response import Windows

_GAP = 5.0  # usual periods between two stamps
_FROZEN = 0.03  # [s] of a signal without a change
_STANDS = 0.01  # of a joint's travel that may be wanted of it meanwhile: friction can hold as much
_OTHER = 6.0  # deviations by which repetitions differ
_ALIKE = 0.05  # of the errors, RMS, by which they may
_GROWS = 0.5  # of the errors before, RMS, by which one alone may be larger than expected
_NEAR = 0.2  # [s] about an instant from which its errors may have come


class Screen:
    """Which windows of a repetition are known (windows, n), and the words on those that are not."""

    def __init__(self, windows: Windows, names: Sequence[str], source: str) -> None:
        self.known = np.ones((windows.count, len(names)), dtype=bool)
        self._windows, self._source = windows, source
        self._said: list[tuple[str, float, float]] = []

    def leave_out(self, joint: int | slice, times: Array, why: str, after: float = 0.0) -> None:
        """Leave out the windows of some instants [s], and of a while after them, of a joint."""
        inside = times[(times >= 0.0) & (times < self._windows.duration)]
        for time in inside.tolist():
            self.known[self._places(time, time + after + 1e-9), joint] = False
        if len(inside):
            self._said.append((why, float(inside[0]), float(inside[-1])))

    def leave_out_gaps(self, times: Array, what: str) -> None:
        """Leave out, of all joints, the windows in which stamps are missing."""
        steps = np.diff(times)
        for i in np.flatnonzero(steps > _GAP * np.median(steps)).tolist():
            begin, end = float(times[i]), float(times[i + 1])
            if end > 0.0 and begin < self._windows.duration:
                self.known[self._places(begin, end)] = False
                self._said.append((f"no {what} positions", begin, end))

    def of_use(self, times: Array) -> NDArray[np.bool_]:
        """Return which instants (N,) lie outside of the motion, or where all joints are known."""
        places = np.floor(times / self._windows.duration * self._windows.count).astype(int)
        inside = (places >= 0) & (places < self._windows.count)
        good = np.asarray(self.known.all(axis=1))
        return np.asarray(~inside | good[np.clip(places, 0, self._windows.count - 1)])

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        notes = []
        for why in dict.fromkeys(why for why, _, _ in self._said):
            spans = [(begin, end) for other, begin, end in self._said if other == why]
            times = "" if len(spans) == 1 else f", {len(spans)} times"
            begin, end = min(spans)[0], max(end for _, end in spans)
            notes.append(f"{self._source}: {why} at {begin:.3g} to {end:.3g} s{times}; left out")
        return notes

    def _places(self, begin: float, end: float) -> slice:
        width = self._windows.duration / self._windows.count
        return slice(max(0, int(begin / width)), max(0, int(np.ceil(end / width))))


def frozen(times: Array, values: Array, wanted: Array) -> NDArray[np.bool_]:
    """Return at which samples (N,) a signal stays what it is though it should have moved."""
    result = np.zeros(len(values), dtype=bool)
    changes = np.flatnonzero(np.diff(values) != 0.0)
    edges = np.r_[0, changes + 1, len(values)].tolist()
    for begin, end in zip(edges[:-1], edges[1:]):
        lasts = times[end - 1] - times[begin] >= _FROZEN
        if lasts and np.ptp(wanted[begin:end]) > _STANDS * np.ptp(wanted):
            result[begin:end] = True
    return result


def unlike_expected(
    values: Array, expected: Array, before: Array, noise: float, windows: Windows
) -> NDArray[np.bool_]:
    """Return where errors (windows, n) are larger than those before and those expected, which is no learning.

    From one repetition to the next they shrink, or stay what they are; what touches a robot once makes
    them larger in one place.
    """
    reach = 2 * round(_NEAR * windows.count / windows.duration) + 1
    near = maximum_filter1d(np.maximum(np.abs(before), np.abs(expected)), reach, axis=0)
    bound = near + _OTHER * noise + _GROWS * float(np.sqrt(np.mean(before**2)))
    return np.asarray(np.abs(values) > bound)


def outlying(values: Array, known: NDArray[np.bool_], floor: float) -> tuple[NDArray[np.bool_], float]:
    """Return where repetitions (R, windows, n) differ from the others, and the noise between them.

    From their median; of two, both differ where they differ from each other. The noise is no less than a
    `floor`.
    """
    count = len(values)
    table = np.where(known, values, np.nan)
    unknown = ~known.any(axis=0)
    table[:, unknown] = 0.0
    middle = np.nanmedian(table, axis=0)
    away = np.abs(np.where(known, table - middle, 0.0))
    typical = 1.4826 * float(np.median(away[known])) * np.sqrt(count / (count - 1.0))
    noise = max(floor, typical)
    rms = float(np.sqrt(np.mean(values[known] ** 2)))
    return np.asarray((away > _OTHER * noise + _ALIKE * rms) & known), noise


def said_of_differing(
    differs: NDArray[np.bool_], source: str, names: Sequence[str], windows: Windows, why: str
) -> tuple[NDArray[np.bool_], str]:
    """Return the windows (windows,) to leave out about those that differ (windows, n), and words on it."""
    when = differs.any(axis=1)
    joints = ", ".join(names[j] for j in np.flatnonzero(differs.any(axis=0)).tolist())
    places = np.flatnonzero(when)
    first, last = windows.edges[places[0]], windows.edges[places[-1] + 1]
    reach = round(_NEAR * windows.count / windows.duration)
    note = f"{source}: {joints} {why} at {first:.3g} to {last:.3g} s (a contact?); left out"
    return np.asarray(binary_dilation(when, np.ones(2 * reach + 1, dtype=bool))), note
