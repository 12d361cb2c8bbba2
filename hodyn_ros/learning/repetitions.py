"""Recorded repetitions of one motion as errors, without what is not its own: gaps, dead signals, contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, maximum_filter1d

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning.config import LearningConfig
from hodyn_ros.learning.response import Windows
from hodyn_ros.learning.seen_links import seen_links
from hodyn_ros.trajectory.base import Trajectory

_GAP = 5.0  # usual periods between two stamps
_FROZEN = 0.03  # [s] of a signal without a change
_STANDS = 0.01  # of a joint's travel that may be wanted of it meanwhile, which friction can hold
_AT_LIMIT = 0.98
_AFTER = 0.1  # [s] after a drive was at its limit that are not as the response has it
_OTHER = 6.0  # deviations by which repetitions differ
_ALIKE = 0.05  # of the errors, RMS, by which they may
_NEAR = 0.2  # [s] about an instant from which errors may have come
_LEAST = 0.6  # share of a repetition that is of use
_OTHER_MOTION = 0.3  # of a joint's travel, and this [rad or m], by which it is off


@dataclass(frozen=True, eq=False)
class Errors:
    """What the links were off in repetitions under one correction; means over windows of time."""

    values: Array  # (windows, n) [rad or m]; zero where unknown
    known: NDArray[np.bool_]  # (windows, n)
    noise: float  # standard deviation of their RMS between repetitions [rad or m]
    used: int  # repetitions
    seen: tuple[str, ...]  # joints whose links are seen through the model
    load: tuple[float, ...]  # mass [kg] and first moments [kg m] that the motors show, where links are seen
    notes: tuple[str, ...]

    @property
    def rms(self) -> float:
        """Root of the mean square over windows and joints that are known."""
        return float(np.sqrt(np.mean(self.values[self.known] ** 2)))


@dataclass(frozen=True, eq=False)
class Expected:
    """What a repetition before says of the next one."""

    errors: Array  # (windows, n) that the response predicts
    before: Array  # (windows, n) that there were


def errors_of(
    robot: Robot,
    motion: Trajectory,
    recordings: Sequence[JointRecording],
    begins: Sequence[float],
    windows: Windows,
    config: LearningConfig,
    expected: Expected | None = None,
) -> Errors:
    """Return the errors of repetitions that all ran under the same correction.

    `begins`: the stamp [s] at which the motion begins in each recording. What is said in notes is left out:
    gaps, signals that are frozen, drives at their limits, and stretches in which repetitions differ from each
    other, or a single one from what is `expected`. Raises InputError where nothing is left.
    """
    names = robot.driven_joints
    notes: list[str] = []
    found = [
        _read(robot, motion, recording, begin, windows, config, notes)
        for recording, begin in zip(recordings, begins, strict=True)
    ]
    kept = [one for one in found if one is not None]
    if not kept:
        raise InputError("no repetition is of use: " + "; ".join(notes))
    values = np.stack([one.values for one in kept])
    known = np.stack([one.known for one in kept])
    sources = [one.source for one in kept]
    floor = float(np.sqrt(np.mean([one.noise**2 for one in kept])))
    noise = _leave_out_differing(values, known, sources, names, floor, windows, expected, notes)
    share = known.mean(axis=(1, 2))
    whole = share >= _LEAST
    for source, part in zip(np.array(sources)[~whole], share[~whole]):
        notes.append(f"{source}: left out, {100.0 * (1.0 - part):.0f} % of it differ from the others")
    if not whole.any():
        raise InputError("no repetition is of use: " + "; ".join(notes))
    values, known = values[whole], known[whole]
    count = known.sum(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    seen = kept[int(np.flatnonzero(whole)[0])].seen
    loads = [one.load for one, of_use in zip(kept, whole) if of_use and one.load]
    load = tuple(np.mean(loads, axis=0).tolist()) if loads else ()
    return Errors(mean, count > 0, noise, int(whole.sum()), seen, load, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Repetition:
    source: str
    values: Array
    known: NDArray[np.bool_]
    noise: float
    seen: tuple[str, ...]
    load: tuple[float, ...]


def _read(
    robot: Robot,
    motion: Trajectory,
    recording: JointRecording,
    begin: float,
    windows: Windows,
    config: LearningConfig,
    notes: list[str],
) -> _Repetition | None:
    """Return the errors of one recording; None, and a note, where it is of no use."""
    source, names = recording.source, robot.driven_joints
    n, duration = len(names), motion.duration
    first, last = (each - begin for each in recording.interval)
    if min(last, duration) - max(first, 0.0) < _LEAST * duration:
        notes.append(
            f"{source}: left out, it has {first:.3g} to {last:.3g} s of a motion of {duration:.3g} s; does the "
            "motion begin where --begin says?"
        )
        return None
    efforts = recording.efforts
    stamps = efforts.times - begin
    limit = robot.require_drives().effort_limits(robot.limits.effort)
    at_limit = np.abs(np.nan_to_num(efforts.values)) >= _AT_LIMIT * limit
    left = _Left(windows, names, source, notes)
    for j, name in enumerate(names):
        inside = at_limit[:, j] & (stamps >= 0.0) & (stamps <= duration)
        left.out(j, stamps[inside], f"the drive of {name} at its limit", after=_AFTER)
    values, noises = np.zeros((windows.count, n)), []
    done = np.zeros(n, dtype=bool)
    links, motors = recording.links, recording.motors
    for channel, what in ((links, "link"), (motors, "motor")):
        if channel is None:
            continue
        late = config.link_delay if what == "link" else 0.0
        times = channel.times - begin - late
        wanted = motion.sample(np.clip(times, 0.0, duration), 0)[:, 0]
        there = channel.measured
        for j in np.flatnonzero(there & (~done | (what == "motor"))).tolist():
            frozen = _frozen(times, channel.values[:, j], wanted[:, j])
            left.out(j, times[frozen], f"the {what} of {names[j]} frozen", every=what == "motor" and not done.all())
        gap = _gaps(times)
        for begins, ends in gap:
            left.gap(begins, ends, what)
        if what == "link":
            error = np.where(there, channel.values - wanted, np.nan)
            means, counts = windows.means(times, error)
            values[:, there] = means[:, there]
            left.known[:, there] &= counts[:, there] > 0
            noises.append(_noise(times, error[:, there], duration))
            done = there.copy()
    load: tuple[float, ...] = ()
    if not done.all():
        assert motors is not None  # of a recording, each joint has a position on one side
        times = motors.times - begin
        moved = np.stack([np.interp(times, stamps, column) for column in np.nan_to_num(efforts.values).T], axis=1)
        position = motors.values
        if not motors.measured.all():  # a link stands for its motor where only that is measured
            assert links is not None
            other = [np.interp(times, links.times - begin, column) for column in links.values.T]
            position = np.where(motors.measured, position, np.stack(other, axis=1))
        used = left.of_use(times)
        inside = (times > -0.5) & (times < duration + 0.5)
        seen = seen_links(robot, times[inside], position[inside], moved[inside], config.bandwidth, used[inside])
        wanted = motion.sample(np.clip(times[inside], 0.0, duration), 0)[:, 0]
        error = seen.links - wanted
        means, counts = windows.means(times[inside], error)
        values[:, ~done] = means[:, ~done]
        left.known[:, ~done] &= counts[:, ~done] > 0
        rough = position[inside] - np.stack([np.convolve(c, [0.25, 0.5, 0.25], "same") for c in position[inside].T], 1)
        noises.append(float(np.sqrt(np.mean(rough[5:-5] ** 2))))
        load = tuple(seen.load.tolist())
    travel = np.ptp(motion.sample(windows.edges, 0)[:, 0], axis=0)
    off = np.abs(np.where(left.known, values, 0.0)).max(axis=0)
    other = (off > _OTHER_MOTION * travel) & (off > _OTHER_MOTION)
    if other.any():
        j = int(other.argmax())
        notes.append(f"{source}: left out, it is of another motion: {names[j]} is off by {off[j]:.3g} rad")
        return None
    left.say()
    share = left.known.mean()
    if share < _LEAST:
        notes.append(f"{source}: left out, {100.0 * share:.0f} % of it are of use")
        return None
    names_seen = tuple(name for name, has in zip(names, done) if not has)
    return _Repetition(source, values, left.known, float(np.sqrt(np.mean(np.square(noises)))), names_seen, load)


class _Left:
    """Windows that are left out of a repetition, and the words on it."""

    def __init__(self, windows: Windows, names: Sequence[str], source: str, notes: list[str]) -> None:
        self.known = np.ones((windows.count, len(names)), dtype=bool)
        self._windows, self._source, self._notes = windows, source, notes
        self._said: list[tuple[str, float, float]] = []

    def _places(self, begin: float, end: float) -> slice:
        width = self._windows.duration / self._windows.count
        return slice(max(0, int(begin / width)), max(0, int(np.ceil(end / width - 1e-9))))

    def out(self, joint: int, times: Array, why: str, after: float = 0.0, every: bool = False) -> None:
        """Leave out windows with some instants [s] of a joint, of every joint where others depend on it."""
        if not len(times):
            return
        for time in times.tolist():
            places = self._places(time, time + 1e-9 + after)
            self.known[places, slice(None) if every else joint] = False
        self._said.append((why, float(times[0]), float(times[-1])))

    def gap(self, begin: float, end: float, what: str) -> None:
        """Leave out the windows of a gap between two stamps [s] for all joints."""
        if end > 0.0 and begin < self._windows.duration:
            self.known[self._places(begin, end)] = False
            self._said.append((f"no {what} positions", begin, end))

    def of_use(self, times: Array) -> NDArray[np.bool_]:
        """Return which samples (N,) lie in windows of which all is known, or outside of the motion."""
        places = np.floor(times / self._windows.duration * self._windows.count).astype(int)
        inside = (places >= 0) & (places < self._windows.count)
        good = self.known.all(axis=1)
        return np.asarray(~inside | good[np.clip(places, 0, self._windows.count - 1)])

    def say(self) -> None:
        """Write what was left out."""
        for why in dict.fromkeys(why for why, _, _ in self._said):
            spans = [(begin, end) for other, begin, end in self._said if other == why]
            begin, end = min(spans)[0], max(end for _, end in spans)
            times = "" if len(spans) == 1 else f", {len(spans)} times"
            self._notes.append(f"{self._source}: {why} at {begin:.3g} to {end:.3g} s{times}; left out")


def _gaps(times: Array) -> list[tuple[float, float]]:
    steps = np.diff(times)
    return [(float(times[i]), float(times[i + 1])) for i in np.flatnonzero(steps > _GAP * np.median(steps))]


def _frozen(times: Array, values: Array, wanted: Array) -> NDArray[np.bool_]:
    """Return at which samples (N,) a signal stays what it is though it should have moved."""
    result = np.zeros(len(values), dtype=bool)
    changes = np.flatnonzero(np.diff(values) != 0.0)
    edges = np.r_[0, changes + 1, len(values)]
    for begin, end in zip(edges[:-1], edges[1:]):
        if times[end - 1] - times[begin] < _FROZEN:
            continue
        if np.ptp(wanted[begin:end]) > _STANDS * np.ptp(wanted):
            result[begin:end] = True
    return result


def _noise(times: Array, errors: Array, duration: float) -> float:
    """Return the standard deviation of samples about what is slow, by their second differences."""
    inside = errors[(times >= 0.0) & (times <= duration)]
    second = np.diff(inside, n=2, axis=0) / np.sqrt(6.0)
    return float(np.sqrt(np.nanmean(second**2)))


def _leave_out_differing(
    values: Array,
    known: NDArray[np.bool_],
    sources: Sequence[str],
    names: Sequence[str],
    floor: float,
    windows: Windows,
    expected: Expected | None,
    notes: list[str],
) -> float:
    """Leave out (in `known`) what differs between repetitions; return the noise of their errors."""
    count = len(values)
    rms = float(np.sqrt(np.mean(values[known] ** 2)))
    table = np.where(known, values, np.nan)
    if count == 1:
        if expected is None:
            return floor
        reach = 2 * round(_NEAR * windows.count / windows.duration) + 1
        near = maximum_filter1d(np.maximum(np.abs(expected.before), np.abs(expected.errors)), reach, axis=0)
        bound = near + _OTHER * floor + 0.5 * float(np.sqrt(np.mean(expected.before**2)))
        differs = (np.abs(values) > bound)[0] & known[0]
        _leave_out(known[:1], differs[None], sources, names, windows, "not as the repetition before says", notes)
        return floor
    with np.errstate(all="ignore"):
        middle = np.nanmedian(table, axis=0) if count > 2 else np.nanmean(table, axis=0)
        away = np.abs(table - middle)
        typical = 1.4826 * float(np.nanmedian(away)) * np.sqrt(count / max(count - 1, 1))
    noise = max(floor, typical)
    differs = (away > _OTHER * noise + _ALIKE * rms) & known
    _leave_out(known, differs, sources, names, windows, "not as in the other repetitions", notes)
    return noise


def _leave_out(
    known: NDArray[np.bool_],
    differs: NDArray[np.bool_],
    sources: Sequence[str],
    names: Sequence[str],
    windows: Windows,
    why: str,
    notes: list[str],
) -> None:
    reach = round(_NEAR * windows.count / windows.duration)
    for r, source in enumerate(sources):
        if not differs[r].any():
            continue
        when = differs[r].any(axis=1)
        joints = ", ".join(name for name, off in zip(names, differs[r].any(axis=0)) if off)
        first, last = windows.edges[np.flatnonzero(when)[0]], windows.edges[np.flatnonzero(when)[-1] + 1]
        notes.append(f"{source}: {joints} {why} at {first:.3g} to {last:.3g} s (a contact?); left out")
        known[r, binary_dilation(when, np.ones(2 * reach + 1, dtype=bool))] = False
