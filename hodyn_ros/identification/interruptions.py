"""Where a recording breaks off: gaps, signals that hang, single wrong readings, encoders that slip.

An encoder that hangs repeats its last reading while the joint moves on, and is then far away at once; a joint
that stood still sets off slowly. So a signal hung where the step that ends its rest is many times those that
follow. Smoothed as it was read, such a rest is a motion that never was: 0.3 s in 14 s made the inertia of
a motor eighty deviations small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import LEAST_SAMPLES, Channel, JointRecording

_LONGEST_REST = 0.03, 6.0  # [s], and in usual times between two changes, from which on a signal may hang
_HUNG = 4.0  # times the steps that follow: the step after a rest, where the signal hung
_SLIPPED = 10.0  # times what the rates of three steps on either side differ: a step that no motion makes
_COUNTS, _SHARE = 20.0, 1e-3  # counts of an encoder, and share of the way, that such steps have at least
_LONGEST_GAP = 0.1, 9.0  # [s], and in usual times between two samples, that one spline goes across
_SHORTEST_PIECE = 2.0  # [s]


def without_interruptions(recording: JointRecording) -> tuple[list[JointRecording], list[str]]:
    """Return the pieces of a recording between its interruptions, the longest first, and what was left out.

    The pieces are recordings of their own; what the file of the whole lacks is said first. Raises InputError
    where an encoder slipped: then nobody knows which of both zeros is that of the robot file.
    """
    lines = list(recording.notes)
    channels: dict[str, Channel] = {}
    for name, what in (("efforts", "effort"), ("motors", "motor position"), ("links", "link position")):
        channel: Channel | None = getattr(recording, name)
        if channel is not None:
            channels[name] = _without_faults(channel, what, recording, lines)
    whole = replace(recording, **channels)  # type: ignore[arg-type]
    pieces, short = [], 0.0
    gaps = _gaps(channels.values())
    for begin, end in _between(gaps, *whole.interval):
        counts = [((c.times >= begin) & (c.times <= end)).sum() for c in channels.values()]
        if end - begin < _SHORTEST_PIECE or min(counts) < LEAST_SAMPLES:
            short += end - begin
        else:
            pieces.append(whole.between(begin, end))
    if not pieces:
        raise InputError(
            f"{whole.source}: gaps leave no {_SHORTEST_PIECE:g} s in one piece; record without gaps"
        )
    if short:
        lines.append(f"{whole.source}: pieces between gaps that are too short, {short:.3g} s, are left out")
    if len(pieces) > 1:
        where = ", ".join(f"{begin:.4g} to {end:.4g} s" for begin, end in gaps[:3])
        where += ", ..." if len(gaps) > 3 else ""
        lines.append(f"{whole.source}: what lies between gaps ({where}) counts as {len(pieces)} recordings")
    return sorted(pieces, key=lambda piece: piece.interval[0] - piece.interval[1]), lines


def _without_faults(channel: Channel, what: str, recording: JointRecording, lines: list[str]) -> Channel:
    """Return a channel without the samples at which a signal hung, or was far away for one sample."""
    out = np.zeros(len(channel.times), dtype=bool)
    for j in np.flatnonzero(channel.measured).tolist():
        signal = _Signal(channel.times, channel.values[:, j])
        of = f"{recording.source}: {what} of joint {recording.joint_names[j]!r}"
        for first, last in signal.hung():
            out[first:last] = True
            t = channel.times
            lines.append(f"{of} hung from {t[first]:.4g} to {t[last]:.4g} s, and is left out there")
        if what == "effort":
            continue
        glitches, slips = signal.glitches_and_slips()
        out[glitches] = True
        if len(glitches):
            lines.append(f"{of} was elsewhere for one sample, {len(glitches)} times; these are left out")
        if len(slips):
            i = int(slips[0])
            raise InputError(
                f"{of} steps by {channel.values[i, j] - channel.values[i - 1, j]:.4g} at "
                f"{channel.times[i]:.4g} s, as no motion does; did the encoder slip, or lose counts? "
                "Take the part of the recording with the right zero"
            )
    return Channel(channel.times[~out], channel.values[~out])


class _Signal:
    """One signal, by its changes: what is read again and again is one reading."""

    def __init__(self, times: Array, values: Array) -> None:
        self._changes = np.flatnonzero(np.diff(values)) + 1  # (m,) samples that differ from the ones before
        at = np.r_[0, self._changes]
        self._steps = np.diff(values[at])  # (m,)
        self._rests = np.diff(times[at])
        size = np.abs(self._steps)
        self._least = max(_COUNTS * float(size.min(initial=np.inf)), _SHARE * float(np.ptp(values)))
        self._large = size > self._least
        self._usual = float(np.median(self._rests)) if len(size) else 0.0
        self._starts = at[:-1]

    def hung(self) -> Iterator[tuple[int, int]]:
        """Yield the first sample that was repeated, and the first one that was not, of each such rest."""
        long = self._rests > max(_LONGEST_REST[0], _LONGEST_REST[1] * self._usual)
        for i in np.flatnonzero(long & self._large).tolist():
            after = np.abs(self._steps[i + 1 : i + 4])
            repeated = self._changes[i] - self._starts[i]
            if repeated > 3 and len(after) == 3 and abs(self._steps[i]) > _HUNG * after.max():
                yield int(self._starts[i]) + 1, int(self._changes[i])

    def glitches_and_slips(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return samples that are far from those on both sides, and the first ones after a lasting step."""
        rates = self._steps / np.maximum(self._rests, 0.5 * self._usual)
        if len(rates) < 8:
            return self._changes[:0], self._changes[:0]
        least = self._least / self._usual
        rows = sliding_window_view(rates, 8)  # the fourth one is looked at
        slipped = _beyond(rows[:, 3:4], rows[:, [0, 1, 2, 4, 5, 6]], least)
        back = (rows[:, 3] * rows[:, 4] < 0.0) & _beyond(rows[:, 3:5], rows[:, [0, 1, 2, 5, 6, 7]], least)
        return self._changes[3:][np.flatnonzero(back)], self._changes[3:][np.flatnonzero(slipped)]


def _beyond(rates: Array, around: Array, least: float) -> NDArray[np.bool_]:
    """Return which rates (N, k) are farther from those around (N, 6) than these are from each other."""
    middle = np.median(around, axis=1, keepdims=True)
    far = np.abs(rates - middle).min(axis=1)
    return np.asarray(far > np.maximum(least, _SLIPPED * np.abs(around - middle).max(axis=1)))


def _gaps(channels: Iterable[Channel]) -> list[tuple[float, float]]:
    """Return begin and end [s] of gaps between stamps, the first one first."""
    pauses = []
    for each in channels:
        steps = np.diff(each.times)
        for i in np.flatnonzero(steps > max(_LONGEST_GAP[0], _LONGEST_GAP[1] * np.median(steps))).tolist():
            pauses.append((float(each.times[i]), float(each.times[i + 1])))
    gaps: list[tuple[float, float]] = []
    for begin, end in sorted(pauses):
        if gaps and begin <= gaps[-1][1]:
            begin, end = gaps[-1][0], max(end, gaps.pop()[1])
        gaps.append((begin, end))
    return gaps


def _between(gaps: Iterable[tuple[float, float]], begin: float, end: float) -> Iterator[tuple[float, float]]:
    """Yield what lies between gaps, from `begin` to `end` [s]."""
    for first, last in gaps:
        if begin < first < end:
            yield begin, first
        begin = max(begin, last)
    if begin < end:
        yield begin, end
