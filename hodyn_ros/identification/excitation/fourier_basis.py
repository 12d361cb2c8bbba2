"""Fourier series that rest at their ends, as a linear function of free coordinates."""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.harmonic import FourierSeries

LEAST_HARMONICS = 4  # three rest up to the snap only where they do not move


class FourierBasis:
    """Series of one period whose derivatives 1 ... 4 vanish at its ends: `q_j^(k)(t) = B_k(t) x_j`.

    Free coordinates x (D, n): offsets, then amplitudes in the null space of what rest asks for, which is
    sum sine_l = sum l^2 sine_l = 0 and sum l cosine_l = sum l^3 cosine_l = 0.
    """

    def __init__(self, duration: float, harmonics: int) -> None:
        if harmonics < LEAST_HARMONICS:
            raise InputError(
                f"a motion from rest to rest needs {LEAST_HARMONICS} harmonics, found {harmonics}"
            )
        steps = np.arange(1.0, harmonics + 1)
        self.duration, self.harmonics = duration, harmonics
        self.frequency = 2.0 * np.pi / duration
        self._sine = null_space(np.stack([steps**0, steps**2 / harmonics**2]))
        self._cosine = null_space(np.stack([steps / harmonics, steps**3 / harmonics**3]))
        self.size = 1 + 2 * (harmonics - 2)

    def series(self, x: Array, joint_names: tuple[str, ...] | None = None) -> FourierSeries:
        """Return the motion of coordinates (D, n)."""
        half = self.harmonics - 2
        return FourierSeries(
            self.frequency,
            self._sine @ x[1 : 1 + half],
            self._cosine @ x[1 + half :],
            x[0],
            duration=self.duration,
            joint_names=joint_names,
            at_rest=True,
        )

    def sampled(self, times: Array, order: int) -> Array:
        """Return B (order + 1, N, D) at times (N,) [s]."""
        half, count = self.harmonics - 2, self.size
        sine = np.hstack([np.zeros((self.harmonics, 1)), self._sine, np.zeros((self.harmonics, half))])
        cosine = np.hstack([np.zeros((self.harmonics, 1 + half)), self._cosine])
        series = FourierSeries(self.frequency, sine, cosine, np.eye(1, count)[0], duration=self.duration)
        return np.moveaxis(series.sample(times, order), 1, 0)
