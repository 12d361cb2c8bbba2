"""Recorded repetitions of one motion as errors of its links, without what is not their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning.config import LearningConfig
from hodyn_ros.learning.response import Windows
from hodyn_ros.learning.screening import Screen, frozen, outlying, said_of_differing, unlike_expected
from hodyn_ros.learning.seen_links import seen_links
from hodyn_ros.trajectory.base import Trajectory

_AFTER = 0.1  # [s] after a drive was at its limit that are not as the response has it
_LEAST = 0.6  # share of a repetition that is of use
_OTHER_MOTION = 0.3  # of a joint's travel, and this [rad or m], by which it is off
_TIMING = 0.9  # share of the square of the errors that another speed or begin explains, to be one
_AROUND = 0.5  # [s] of a recording about its repetition that help to smooth it


@dataclass(frozen=True, eq=False)
class Errors:
    """What the links were off in repetitions under one correction; means over windows of time."""

    values: Array  # (windows, n) [rad or m]; zero where unknown
    known: NDArray[np.bool_]  # (windows, n)
    doubted: NDArray[np.bool_]  # (windows,) left out because they are larger than expected
    noise: float  # standard deviation of their RMS between repetitions [rad or m]
    used: int  # repetitions
    seen: tuple[str, ...]  # joints whose links are seen through the model
    load: tuple[float, ...]  # mass [kg] and first moments [kg m] that motors show where links are seen
    notes: tuple[str, ...]

    @property
    def rms(self) -> float:
        """Root of the mean square over windows and joints that are known."""
        return float(np.sqrt(np.mean(self.values[self.known] ** 2)))


@dataclass(frozen=True, eq=False)
class Expected:
    """What is known before a repetition."""

    errors: Array  # (windows, n) as the response predicts them
    before: Array  # (windows, n) as they were
    doubted: NDArray[np.bool_]  # (windows,) of which nothing is expected: what is larger there twice is true


def errors_of(
    robot: Robot,
    motion: Trajectory,
    recordings: Sequence[JointRecording],
    begins: Sequence[float],
    windows: Windows,
    config: LearningConfig,
    lag: float,
    expected: Expected | None = None,
) -> Errors:
    """Return the errors of repetitions that all ran under the same correction.

    `begins`: the stamp [s] at which the motion begins in each recording; `lag` [s] is what feedback of the
    motors lets a joint be behind at most. What is said in notes is left out: runs at another speed,
    gaps, signals that are frozen, drives at their limits, and stretches in which repetitions differ from each
    other, or a single one from what is `expected`, but not twice in the same place, and not where most of it
    differs: then it is worse. Raises InputError where nothing is left.
    """
    names, notes = robot.driven_joints, []
    kept: list[_Repetition] = []
    for recording, begin in zip(recordings, begins, strict=True):
        reader = _Reader(robot, motion, recording, begin, windows, config, lag)
        one = reader.repetition()
        notes += [note for note in reader.notes if note not in notes]
        if one is not None:
            kept.append(one)
    if not kept:
        raise InputError("no repetition is of use: " + "; ".join(notes))
    values, known = np.stack([one.values for one in kept]), np.stack([one.known for one in kept])
    noise = float(np.sqrt(np.mean([one.noise**2 for one in kept])))
    differs, why = np.zeros_like(known), "not as in the other repetitions"
    doubted, largest = np.zeros(windows.count, dtype=bool), 1.0
    if len(kept) > 1:
        differs, noise = outlying(values, known, noise)
    elif expected is not None:
        why, largest = "not as the repetition before says", 1.0 - _LEAST
        differs[0] = unlike_expected(values[0], expected.errors, expected.before, noise, windows) & known[0]
        differs[0, expected.doubted] = False
    for r, one in enumerate(kept):
        if not differs[r].any():
            continue
        out, note = said_of_differing(differs[r], one.source, names, windows, why)
        if out.mean() > largest:
            continue
        known[r, out] = False
        notes.append(note)
        if expected is not None and len(kept) == 1:
            doubted = out
    share = known.mean(axis=(1, 2))
    whole = share >= _LEAST
    for one, part in zip(kept, share):
        if part < _LEAST:
            notes.append(f"{one.source}: left out, {100.0 * part:.0f} % of it are of use")
    if not whole.any():
        raise InputError("no repetition is of use: " + "; ".join(notes))
    values, known = values[whole], known[whole]
    used = [one for one, of_use in zip(kept, whole) if of_use]
    count = known.sum(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    loads = [one.load for one in used if one.load]
    load = tuple(np.mean(loads, axis=0).tolist()) if loads else ()
    return Errors(mean, count > 0, doubted, noise, len(used), used[0].seen, load, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Repetition:
    source: str
    values: Array
    known: NDArray[np.bool_]
    noise: float
    seen: tuple[str, ...]
    load: tuple[float, ...]


class _Reader:
    """Makes errors of one recording; `notes` say what was left out of it."""

    def __init__(
        self,
        robot: Robot,
        motion: Trajectory,
        recording: JointRecording,
        begin: float,
        windows: Windows,
        config: LearningConfig,
        lag: float,
    ) -> None:
        self._robot, self._motion, self._recording = robot, motion, recording
        self._begin, self._windows, self._config, self._lag = begin, windows, config, lag
        self._names, self._duration = robot.driven_joints, motion.duration
        self._screen = Screen(windows, self._names, recording.source)
        self._values = np.zeros((windows.count, len(self._names)))
        self._noises: list[float] = []
        self.notes = list(recording.notes)

    def repetition(self) -> _Repetition | None:
        """Return the errors; None where the recording is of no use."""
        if not self._whole():
            return None
        recording, screen = self._recording, self._screen
        self._leave_out_limits()
        links, motors = recording.links, recording.motors
        has = np.zeros(len(self._names), dtype=bool) if links is None else links.measured
        if links is not None:
            self._look_at(links, "link", self._config.link_delay, depend=False)
            times = links.times - self._begin - self._config.link_delay
            errors = links.values - self._wanted(times)
            self._take(times, np.where(has, errors, np.nan), has)
            self._noises.append(_roughness(errors[:, has], times, self._duration))
        load: tuple[float, ...] = ()
        if motors is not None and not has.all():
            self._look_at(motors, "motor", 0.0, depend=True)
            load = self._see(motors, has)
        if self._of_another_motion() or self._at_another_time():
            return None
        self.notes += screen.notes
        share = float(screen.known.mean())
        if share < _LEAST:
            self.notes.append(f"{recording.source}: left out, {100.0 * share:.0f} % of it are of use")
            return None
        noise = float(np.sqrt(np.mean(np.square(self._noises))))
        seen = tuple(name for name, there in zip(self._names, has) if not there)
        return _Repetition(recording.source, self._values, screen.known, noise, seen, load)

    def _whole(self) -> bool:
        first, last = (each - self._begin for each in self._recording.interval)
        if min(last, self._duration) - max(first, 0.0) >= _LEAST * self._duration:
            return True
        self.notes.append(
            f"{self._recording.source}: left out, it has {first:.3g} to {last:.3g} s of a motion of "
            f"{self._duration:.3g} s; does the motion begin where --begin says?"
        )
        return False

    def _wanted(self, times: Array) -> Array:
        return self._motion.sample(np.clip(times, 0.0, self._duration), 0)[:, 0]

    def _leave_out_limits(self) -> None:
        efforts = self._recording.efforts
        limit = self._robot.require_drives().effort_limits(self._robot.limits.effort)
        beyond = self._recording.at_limits(limit)
        for j, name in enumerate(self._names):
            times = efforts.times[beyond[:, j]] - self._begin
            self._screen.leave_out(j, times, f"the drive of {name} at its limit", after=_AFTER)

    def _look_at(self, channel: Channel, what: str, late: float, depend: bool) -> None:
        """Leave out gaps and frozen signals; of all joints where one `depend`s on the others."""
        times = channel.times - self._begin - late
        wanted = self._wanted(times)
        for j in np.flatnonzero(channel.measured).tolist():
            dead = frozen(times, channel.values[:, j], wanted[:, j])
            which = slice(None) if depend else j
            self._screen.leave_out(which, times[dead], f"the {what} of {self._names[j]} frozen")
        self._screen.leave_out_gaps(times, what)

    def _take(self, times: Array, errors: Array, which: NDArray[np.bool_]) -> None:
        means, counts = self._windows.means(times, errors)
        self._values[:, which] = means[:, which]
        self._screen.known[:, which] &= counts[:, which] > 0

    def _see(self, motors: Channel, has: NDArray[np.bool_]) -> tuple[float, ...]:
        """Take errors of the links that have no encoder; return the load that motors show."""
        recording = self._recording
        times, position = motors.times - self._begin, motors.values
        if not motors.measured.all():  # a link stands for its motor where only that is measured
            assert recording.links is not None
            links = recording.links
            position = np.where(
                motors.measured, position, resampled(times, links.times - self._begin, links.values)
            )
        recorded = recording.efforts
        efforts = resampled(times, recorded.times - self._begin, np.nan_to_num(recorded.values))
        near = (times > -_AROUND) & (times < self._duration + _AROUND)
        times, position, efforts = times[near], position[near], efforts[near]
        band, used = self._config.bandwidth, self._screen.of_use(times)
        seen = seen_links(self._robot, times, position, efforts, band, used)
        self._take(times, seen.links - self._wanted(times), ~has)
        self._noises.append(_roughness(position - self._wanted(times), times, self._duration))
        return tuple(seen.load.tolist())

    def _of_another_motion(self) -> bool:
        travel = np.ptp(self._motion.sample(self._windows.edges, 0)[:, 0], axis=0)
        off = np.abs(np.where(self._screen.known, self._values, 0.0)).max(axis=0)
        other = (off > _OTHER_MOTION * travel) & (off > _OTHER_MOTION)
        if not other.any():
            return False
        j = int(other.argmax())
        self.notes.append(
            f"{self._recording.source}: left out, it is of another motion, or begins at another time: "
            f"{self._names[j]} is off by {off[j]:.3g} rad"
        )
        return True

    def _at_another_time(self) -> bool:
        """Whether it ran at another speed, or begins elsewhere, which is no error of the robot."""
        times = 0.5 * (self._windows.edges[1:] + self._windows.edges[:-1])
        known, share = self._screen.known, (times / self._duration)[:, None]
        positions, rates = self._motion.sample(times, 1).swapaxes(0, 1)
        columns = np.stack([(1.0 - share) * rates, share * rates], axis=-1)[known]
        ahead, rest = _fitted(columns, self._values[known])  # [s] at the begin, and at the end
        whole = float(np.sum(self._values[known] ** 2))
        # what a load, a spring or dry friction does to each joint, which looks alike at an even speed
        by_robot = np.stack([np.ones_like(rates), positions, np.sign(rates)], axis=-1)
        parts = zip(*(np.swapaxes(array, 0, 1) for array in (known, by_robot, self._values)))
        robots = sum(_fitted(each[seen], errors[seen])[1] for seen, each, errors in parts)
        if rest > min((1.0 - _TIMING) * whole, robots) or np.abs(ahead).max() < self._lag:
            return False
        most = float(ahead[np.abs(ahead).argmax()])
        self.notes.append(
            f"{self._recording.source}: left out, it ran at another speed, or begins at another time: it is "
            f"{1e3 * abs(most):.0f} ms {'ahead of' if most > 0.0 else 'behind'} the motion"
        )
        return True


def _fitted(columns: Array, values: Array) -> tuple[Array, float]:
    """Return the factors of columns (m, k) that come nearest to values (m,), and the square that is left."""
    factors: Array = np.linalg.lstsq(columns, values, rcond=None)[0].astype(np.float64)
    return factors, float(np.sum((values - columns @ factors) ** 2))


def resampled(instants: Array, times: Array, values: Array) -> Array:
    """Return values (N, n) at instants (N,), between those at `times` (M,) by straight lines."""
    return np.stack([np.interp(instants, times, column) for column in values.T], axis=1)


def _roughness(values: Array, times: Array, duration: float) -> float:
    """Return the standard deviation of samples about what is slow, by their second differences."""
    inside = values[(times >= 0.0) & (times <= duration)]
    return float(np.sqrt(np.mean(np.diff(inside, n=2, axis=0) ** 2) / 6.0))
