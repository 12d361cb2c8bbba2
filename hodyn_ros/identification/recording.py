"""What was measured of a robot: positions on both sides of its gears, and efforts, each with its stamps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

LEAST_SAMPLES = 100
_SHORTEST_STEP, LONGEST_STEP = 1e-5, 0.5  # [s] between samples; a millisecond taken for a second is longer


@dataclass(frozen=True, eq=False)
class Channel:
    """One quantity of all joints: `values` (N, n) at `times` (N,) [s]; NaN all along where there is none."""

    times: Array
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", np.asarray(self.times, dtype=np.float64))
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which joints it has (n,)."""
        return np.asarray(~np.isnan(self.values).all(axis=0))

    def checked(self, what: str, joint_names: Sequence[str]) -> Channel:
        """Return it, or raise InputError that names what is wrong with it."""
        if self.times.ndim != 1 or self.values.shape != (len(self.times), len(joint_names)):
            raise InputError(
                f"{what}: {len(self.times)} stamps and {len(joint_names)} joints need values of shape "
                f"({len(self.times)}, {len(joint_names)}), found {self.values.shape}"
            )
        if len(self.times) < LEAST_SAMPLES:
            raise InputError(
                f"{what}: {len(self.times)} samples are too few; record {LEAST_SAMPLES} at least"
            )
        if not np.isfinite(self.times).all():
            i = int(np.flatnonzero(~np.isfinite(self.times))[0])
            raise InputError(f"{what}: stamp {i} is {self.times[i]}; leave such samples out")
        steps = np.diff(self.times)
        if not (steps > 0.0).all():
            i = int(np.flatnonzero(steps <= 0.0)[0]) + 1
            raise InputError(f"{what}: stamp {i} ({self.times[i]:g} s) is not later than the one before it")
        usual = float(np.median(steps))
        if not _SHORTEST_STEP <= usual <= LONGEST_STEP:
            raise InputError(
                f"{what}: stamps lie {usual:g} s apart, which is no sampling period of a robot; are they "
                "seconds? Give time_scale (1e-3 for milliseconds, 1e-9 for nanoseconds)"
            )
        for name, column, there in zip(joint_names, self.values.T, self.measured):
            if there and not np.isfinite(column).all():
                i = int(np.flatnonzero(~np.isfinite(column))[0])
                raise InputError(
                    f"{what} of joint {name!r}: sample {i} is {column[i]}; leave such samples out"
                )
            if there and np.ptp(column) == 0.0:
                raise InputError(
                    f"{what} of joint {name!r} is constant ({column[0]:g}); its sensor is dead, or the joint "
                    "did not move: move every joint, or leave the column out"
                )
        return self


@dataclass(frozen=True, eq=False)
class JointRecording:
    """A recording of n joints, in SI units, everything reflected to the link side.

    `motors` and `links`: positions [rad or m] of motors and links; `efforts` [N·m or N], of the motors where
    `at_motor`, of sensors behind the springs otherwise. Each joint has a position on one side at least.
    `transmission` T (n, n) where motors turn with more than their own joint, such as those of a wrist whose
    axes run through one another: velocities of motors are T times those of joints, with ones on the diagonal.
    Channels are those of the joints nevertheless, T^-1 times positions of motors and T^T times their efforts.
    `temperatures` [°C] are those of the gears, NaN of joints that tell none. `notes` say what its file lacks.
    Raises InputError naming the channel and the joint.
    """

    source: str
    joint_names: tuple[str, ...]
    efforts: Channel
    motors: Channel | None = None
    links: Channel | None = None
    at_motor: bool = True
    transmission: Array | None = None
    temperatures: Channel | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, channel in (("effort", self.efforts), ("motor position", self.motors)):
            if channel is not None:
                channel.checked(what, self.joint_names)
        if self.links is not None:
            self.links.checked("link position", self.joint_names)
        if self.temperatures is not None:
            self._check_temperatures(self.temperatures)
        there = np.zeros(len(self.joint_names), dtype=bool)
        for channel in (self.motors, self.links):
            if channel is not None:
                there |= channel.measured
        if not there.all():
            name = self.joint_names[int(np.flatnonzero(~there)[0])]
            raise InputError(f"joint {name!r} has neither a motor nor a link position in {self.source}")
        if not self.efforts.measured.any():
            raise InputError(f"{self.source} has no efforts; nothing but the motion is in it")

    def _check_temperatures(self, known: Channel) -> None:
        count = len(self.joint_names)
        if known.values.shape != (len(known.times), count) or not (np.diff(known.times) > 0.0).all():
            raise InputError(
                f"temperatures in {self.source} need rising stamps, and a column for each of {count} joints"
            )
        for name, column, there in zip(self.joint_names, known.values.T, known.measured):
            if there and not np.isfinite(column).all():
                raise InputError(f"a temperature of joint {name!r} in {self.source} is not finite")

    @property
    def both_sides(self) -> NDArray[np.bool_]:
        """Which joints (n,) have encoders on both sides of their gears."""
        none = np.zeros(len(self.joint_names), dtype=bool)
        if self.motors is None or self.links is None:
            return none
        return np.asarray(self.motors.measured & self.links.measured & ~self.coupled)

    @property
    def coupled(self) -> NDArray[np.bool_]:
        """Which joints (n,) share a motor's motion with others; their springs are not identified."""
        n = len(self.joint_names)
        shared = np.zeros((n, n), dtype=bool) if self.transmission is None else self.transmission != np.eye(n)
        return np.asarray(shared.any(axis=0) | shared.any(axis=1))

    @property
    def interval(self) -> tuple[float, float]:
        """First and last instant [s] at which every channel was being recorded."""
        channels = [c for c in (self.efforts, self.motors, self.links) if c is not None]
        begin, end = max(c.times[0] for c in channels), min(c.times[-1] for c in channels)
        if not begin < end:
            raise InputError(
                f"{self.source}: its channels have no time in common; were they stamped by different clocks?"
            )
        return float(begin), float(end)

    def warmth(self, times: Array) -> Array | None:
        """Return the temperatures of the gears [°C] at times (N,) [s]: (N, n)."""
        if self.temperatures is None:
            return None
        known = self.temperatures
        return np.stack([np.interp(times, known.times, column) for column in known.values.T], axis=1)

    def between(self, begin: float, end: float) -> JointRecording:
        """Return what was recorded from `begin` to `end` [s]."""

        def cut(channel: Channel) -> Channel:
            chosen = (channel.times >= begin) & (channel.times <= end)
            return Channel(channel.times[chosen], channel.values[chosen])

        return replace(self, **self._channels(cut))

    def of_joints(self, names: Sequence[str]) -> JointRecording:
        """Return the recording of some joints, in their order."""
        chosen = [self.joint_names.index(name) for name in names]
        shared = None if self.transmission is None else self.transmission[np.ix_(chosen, chosen)]
        channels = self._channels(lambda channel: Channel(channel.times, channel.values[:, chosen]))
        return replace(self, joint_names=tuple(names), transmission=shared, **channels)

    def _channels(self, changed: Callable[[Channel], Channel]) -> dict[str, Any]:
        """Return what becomes of the channels that there are, by name."""
        channels = {name: getattr(self, name) for name in ("efforts", "motors", "links", "temperatures")}
        return {name: changed(channel) for name, channel in channels.items() if channel is not None}
