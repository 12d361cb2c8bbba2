"""Efforts that a controller holds until its next period, recorded by a clock of its own.

A held effort is read some while after the controller changed it: between nothing and one period, and as the
two clocks drift past each other that while is a sawtooth in time, slow where both rates are nearly alike. Its
mean is a part of the delay of the efforts. What is left of it beats with the rate of the efforts: as slow as
the motion, alike in no two recordings, and larger than the noise of the efforts below 1 Hz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.identification.smoothing import LowPass

_HARMONICS = 6  # of the sawtooth, by which it is sought
_FINE = 0.25  # of a beat in the whole recording, by which frequencies that are tried differ
_FINER = 21  # frequencies about the best one
_PHASES = 96
_CLEAR = 25.0  # by how much less the square of the residual, over its noise, is than without holds
_SURER = 15.0  # by how much more than by any other sawtooth
_ALIKE = 0.6, 1.5  # size of the sawtooth that fits best, beside the period


@dataclass(frozen=True)
class Hold:
    """How clocks of recorder and controller drift past each other."""

    period: float  # [s] that an effort is held for
    beat: float  # [Hz] rate of the controller minus that of the recorder
    phase: float  # [turns] at time 0

    @property
    def line(self) -> str:
        """What was found, in words."""
        than = "faster" if self.beat > 0.0 else "slower"
        return (
            f"a controller held the efforts, at a rate {abs(self.beat):.2g} Hz {than} than that of the "
            "samples; they count as acting in the middle of their hold"
        )

    def since_middle(self, times: Array) -> Array:
        """Return how long after the middle of their hold efforts were read (N,) [s], those of `times`."""
        return np.asarray(self.period * ((self.beat * times + self.phase) % 1.0 - 0.5))


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Efforts of one joint: amplitudes as `LowPass.spectrum` has them, over their noise."""

    low_pass: LowPass
    rate: Array  # (2 m,) of the effort, at the instants `even` of the filter
    noise: Array  # (m,) or (1,)
    residual: Array  # (m,)
    derivatives: Array  # (m, unknowns) of the efforts by all that is sought

    def swinging(self, frequency: float) -> Array:
        """Return what the rate is times sines, then cosines of a sawtooth of so many [Hz] (m, 2 h)."""
        even = self.low_pass.even
        angles = 2.0 * np.pi * frequency * np.outer(even, np.arange(1, _HARMONICS + 1))
        waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        return self.low_pass.amplitudes(self.rate[:, None] * waves) / self.noise[:, None]


def seek_hold(joints: Sequence[HeldRows], period: float, fastest: float) -> Hold | None:
    """Return the hold that explains what is left of the efforts, or None where none clearly does.

    `period` [s] is that of the samples, of which the one of the controller differs by some per cent at most;
    beats up to `fastest` [Hz] are sought. What the unknowns could explain as well counts as explained. A
    sawtooth counts where no other explains nearly as much: one that is not there makes the delay of the
    efforts wrong, one that is not found makes it uncertain.
    """
    even = joints[0].low_pass.even
    once = 1.0 / float(even[-1] - even[0])  # slower ones would be any drift
    step = _FINE * once
    known = _span(np.concatenate([each.derivatives for each in joints]))
    residual = np.concatenate([each.residual for each in joints])
    residual = residual - known @ (known.T @ residual)
    phases = np.arange(_PHASES) / _PHASES
    order = np.arange(1, _HARMONICS + 1)
    sine, cosine = (f(2.0 * np.pi * np.outer(phases, order)) / (np.pi * order) for f in (np.sin, np.cos))
    shapes = {sign: period * np.concatenate([sign * cosine, sine], axis=1) for sign in (1.0, -1.0)}

    def best_first(frequencies: Array) -> list[tuple[float, float, Hold]]:
        """Return what is gained, the size of the sawtooth beside the period, and the hold of each beat."""
        candidates = []
        for frequency in frequencies.tolist():
            waves = np.concatenate([each.swinging(frequency) for each in joints])
            waves = waves - known @ (known.T @ waves)
            gram, right = waves.T @ waves, waves.T @ residual
            for sign, shape in shapes.items():
                seen, size = shape @ right, np.einsum("pi,ij,pj->p", shape, gram, shape)
                gain = 2.0 * seen - size
                k = int(np.argmax(gain))
                hold = Hold(period, sign * frequency, float(phases[k]))
                candidates.append((float(gain[k]), float(seen[k] / max(size[k], 1e-300)), hold))
        return sorted(candidates, key=lambda each: -each[0])

    coarse = best_first(np.arange(once, max(fastest, 1.1 * once), step))
    about = coarse[0][2].beat
    finer = np.maximum(abs(about) + step * np.linspace(-1.0, 1.0, _FINER), once)
    gain, size, hold = best_first(finer)[0]
    other = next((each for each, _, rival in coarse if abs(rival.beat - about) > once), 0.0)
    clear = gain > max(_CLEAR, other + _SURER)
    return hold if clear and _ALIKE[0] < size < _ALIKE[1] else None


def _span(columns: Array) -> Array:
    """Return an orthonormal basis (m, k) of columns, without those that follow from others."""
    size = np.linalg.norm(columns, axis=0)
    basis, values, _ = np.linalg.svd(columns[:, size > 0.0] / size[size > 0.0], full_matrices=False)
    return np.asarray(basis[:, values > 1e-6 * values[0]])
