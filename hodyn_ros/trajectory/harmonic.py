"""Motions made of sines and cosines: every derivative is analytic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import Trajectory, derivative_name
from hodyn_ros.trajectory.checks import duration_or_endless, frozen_array, real_number, unique_names

_REST = 4  # derivatives that vanish at ends at rest: what the torque of an elastic joint needs
_ROUNDING = 1e-9  # of the largest that each of them comes to


class _Harmonic(Trajectory):
    """What these motions share: no derivative jumps, and they neither start nor end at rest."""

    smoothness = math.inf
    starts_at_rest = False
    ends_at_rest = False

    @property
    def breakpoints(self) -> Array:
        """None, as no derivative jumps."""
        return np.empty(0)

    def _smoother(self, order: int) -> str:
        return "every derivative of it is continuous"


@dataclass(frozen=True, eq=False)
class FourierSeries(_Harmonic):
    """A periodic motion, as used to excite the dynamics of an arm for its identification.

        q_j(t) = offsets_j + sum_l sine_lj / (l w) sin(l w t) - cosine_lj / (l w) cos(l w t),   l = 1 ... L

    `w` is the `angular_frequency` [rad/s]; `sine` and `cosine` (L, n), called a and b in the source, are
    the velocity amplitudes of the harmonics [rad/s]; `offsets` (n,) [rad]. The motion has no end unless
    `duration` [s] sets one. Source: Gaz et al., IEEE RA-L 4(4), 2019, Table II.

    With `at_rest` it starts and ends at rest: it holds its position before and after, which InputError
    rejects unless the amplitudes make its derivatives up to the snap vanish there.

    >>> motion = FourierSeries(2.0, sine=[[1.0]], cosine=[[0.0]], offsets=[0.5])
    >>> motion.sample(0.0, 3)[:, 0]
    array([ 0.5,  1. ,  0. , -4. ])
    """

    angular_frequency: float
    sine: Array
    cosine: Array
    offsets: Array
    duration: float = field(default=math.inf, kw_only=True)
    joint_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    at_rest: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        sine = frozen_array("sine", self.sine, ("L", "n"))
        self._set(
            angular_frequency=real_number("angular_frequency", self.angular_frequency, positive=True),
            sine=sine,
            cosine=frozen_array("cosine", self.cosine, sine.shape),
            offsets=frozen_array("offsets", self.offsets, sine.shape[1:]),
            duration=duration_or_endless(self.duration),
            joint_names=unique_names(self.joint_names, sine.shape[1]),
            n_joints=sine.shape[1],
        )
        if self.at_rest:
            self._rest()

    def _rest(self) -> None:
        """Hold the motion at its ends; InputError unless it rests there."""
        if math.isinf(self.duration):
            raise InputError("a Fourier series at rest needs a duration")
        ends = np.abs(self._derivatives(np.array([0.0, self.duration]), _REST)[1:]).max(axis=(1, 2))
        steps = self.angular_frequency * np.arange(1.0, len(self.sine) + 1)
        sizes = (np.abs(self.sine) + np.abs(self.cosine)).sum(axis=1)
        largest = (steps ** np.arange(_REST)[:, None]) @ sizes
        moving = np.flatnonzero(ends > _ROUNDING * largest)
        if len(moving):
            what = derivative_name(int(moving[0]) + 1)
            raise InputError(
                f"this Fourier series is not at rest at its ends: its {what} comes to {ends[moving[0]]:g} "
                "there; leave at_rest out, and put ramps around it"
            )
        self._set(starts_at_rest=True, ends_at_rest=True, smoothness=_REST)

    @property
    def breakpoints(self) -> Array:
        """Its ends, where it is at rest there; no derivative jumps elsewhere."""
        return np.array([0.0, self.duration]) if self.at_rest else np.empty(0)

    @property
    def highest_frequency(self) -> float:
        """Angular frequency of the last harmonic [rad/s]."""
        return self.angular_frequency * len(self.sine)

    def _derivatives(self, times: Array, order: int) -> Array:
        frequencies = self.angular_frequency * np.arange(1, len(self.sine) + 1)
        # one order more than asked for, as cos is the derivative of sin
        waves = _sine_derivatives(np.multiply.outer(times, frequencies), order + 1)
        powers = frequencies ** (np.arange(order + 1.0)[:, None, None] - 1.0)
        values: Array = (waves[:-1] * powers) @ self.sine - (waves[1:] * powers) @ self.cosine
        values[0] += self.offsets
        return values


@dataclass(frozen=True, eq=False)
class Cosines(_Harmonic):
    """One cosine per joint, `q_j(t) = amplitudes_j cos(w_j t)`.

    `amplitudes` (n,) [rad]; `angular_frequencies` w (n,) [rad/s]. The motion has no end unless `duration` [s]
    sets one. Source: Gaz et al., IEEE RA-L 4(4), 2019, eq. 31.

    >>> motion = Cosines(amplitudes=[0.5, 1.0], angular_frequencies=[2.0, 3.0])
    >>> motion.sample(0.0, 2)[2]
    array([-2., -9.])
    """

    amplitudes: Array
    angular_frequencies: Array
    duration: float = field(default=math.inf, kw_only=True)
    joint_names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        amplitudes = frozen_array("amplitudes", self.amplitudes, ("n",))
        self._set(
            amplitudes=amplitudes,
            angular_frequencies=frozen_array(
                "angular_frequencies", self.angular_frequencies, amplitudes.shape
            ),
            duration=duration_or_endless(self.duration),
            joint_names=unique_names(self.joint_names, len(amplitudes)),
            n_joints=len(amplitudes),
        )

    @property
    def highest_frequency(self) -> float:
        """The highest of the angular frequencies [rad/s]."""
        return float(np.abs(self.angular_frequencies).max())

    def _derivatives(self, times: Array, order: int) -> Array:
        waves = _sine_derivatives(np.multiply.outer(times, self.angular_frequencies), order + 1)
        powers = self.angular_frequencies ** np.arange(order + 1.0)[:, None, None]
        values: Array = self.amplitudes * powers * waves[1:]
        return values


def _sine_derivatives(phases: Array, order: int) -> Array:
    """Return the derivatives 0 ... order of the sine with respect to its phase, stacked on axis 0."""
    s, c = np.sin(phases), np.cos(phases)
    return np.stack([s, c, -s, -c])[np.arange(order + 1) % 4]
