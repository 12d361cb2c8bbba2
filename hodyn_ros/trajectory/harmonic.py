"""Motions made of sines and cosines: every derivative is analytic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hodyn_ros.lie.jets import Array
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.checks import duration_or_endless, frozen_array, real_number, unique_names


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
    n_joints: int = field(init=False, repr=False)

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
    n_joints: int = field(init=False, repr=False)

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
