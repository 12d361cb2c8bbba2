"""A recorded motion of a robot that was asked to follow a desired one, and how well it did."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import taylor

Stamps = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Recording:
    """What three topics carried from the start to the end of a motion; all instants in nanoseconds.

    N desired samples, M feedforwards, L measurements, n joints; each set in the order of its stamps.
    """

    joint_names: NDArray[np.str_]  # (n,)
    start: int  # stamp of the first sample of the motion
    end: int  # stamp of its last one
    samples_sent: int  # desired samples of the motion that were published, by its publisher's own count

    desired_stamps: Stamps  # (N,)
    desired: Array  # (N, orders, n) [rad/s^k]
    desired_sent: Stamps  # (N,) when they were published

    feedforward_stamps: Stamps  # (M,)
    efforts: Array  # (M, orders, n) [N.m/s^k]
    feedforward_received: Stamps  # (M,) when they arrived
    computation_times: Array  # (M,) [s]

    measured_stamps: Stamps  # (L,)
    measured: Array  # (L, n) link positions [rad]

    def save(self, path: Path) -> None:
        """Write everything to a NumPy archive."""
        np.savez(path, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read what `save` has written."""
        with np.load(path) as archive:
            values = {field.name: archive[field.name] for field in fields(cls)}
        values |= {name: int(values[name]) for name in ("start", "end", "samples_sent")}
        return cls(**values)

    def between(self, begin: float, end: float) -> NDArray[np.bool_]:
        """Return the mask (L,) of the measurements from `begin` to `end` [s] after the start."""
        elapsed = seconds(self.measured_stamps - self.start)
        return (begin <= elapsed) & (elapsed <= end)


class Tracking(NamedTuple):
    """Where the links were, compared with where they were wanted at the same instants."""

    times: Array  # (L,) [s] after the start of the motion
    errors: Array  # (L, n) measured minus desired [rad]

    @property
    def rms(self) -> float:
        """Root of the mean square over instants and joints [rad]."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def maximum(self) -> float:
        """Largest error of any joint at any instant [rad]."""
        return float(np.abs(self.errors).max())


def tracking(recording: Recording, begin: float, end: float) -> Tracking:
    """Compare measured with desired positions from `begin` to `end` [s] after the start of the motion.

    The desired position at a measurement comes from the nearest desired sample by its Taylor series. At 1 kHz
    and with derivatives up to snap that is exact to rounding. Raises InputError when nothing was recorded.
    """
    chosen = recording.between(begin, end)
    stamps = recording.measured_stamps[chosen]
    if not len(stamps) or not len(recording.desired_stamps):
        raise InputError(f"nothing was recorded between {begin:g} s and {end:g} s of the motion")
    nearest = nearest_places(recording.desired_stamps, stamps)
    apart = seconds(stamps - recording.desired_stamps[nearest])
    wanted = np.stack([taylor(recording.desired[i], h) for i, h in zip(nearest, apart)])
    return Tracking(seconds(stamps - recording.start), recording.measured[chosen] - wanted)


def latencies(recording: Recording) -> Array:
    """Return how long after each desired sample was published its feedforward arrived (N' <= N,) [s]."""
    _, sent, received = np.intersect1d(
        recording.desired_stamps, recording.feedforward_stamps, assume_unique=True, return_indices=True
    )
    return seconds(recording.feedforward_received[received] - recording.desired_sent[sent])


def seconds(nanoseconds: Stamps) -> Array:
    """Return nanoseconds as seconds."""
    return np.asarray(1e-9 * nanoseconds, dtype=np.float64)


def nearest_places(sorted_values: Stamps, values: Stamps) -> NDArray[np.intp]:
    """Return for each value the place of the nearest one in a sorted array."""
    right = np.clip(np.searchsorted(sorted_values, values), 1, max(1, len(sorted_values) - 1))
    if len(sorted_values) == 1:
        return np.zeros(len(values), dtype=np.intp)
    left_is_nearer = values - sorted_values[right - 1] <= sorted_values[right] - values
    return right - left_is_nearer.astype(np.intp)
