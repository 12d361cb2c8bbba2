"""What the unknowns leave of measurements, with its noise by frequency, and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.smoothing import LowPass
from hodyn_ros.identification.springs.deflection import coefficients
from hodyn_ros.identification.torque_model import TorqueModel

_FIRST_GUESS = 0.1  # of the noise, beside what is measured
_NEIGHBOURS = 20  # frequencies on either side, that noise is averaged over, and a quarter of those below
_HUBER = 3.0  # standard deviations from which on a residual counts less


class Key(NamedTuple):
    """Whose samples they are: the run's, the joint's effort, or the deflection of its spring."""

    run: int
    joint: int
    spring: int | None = None


@dataclass(frozen=True, eq=False)
class Noise:
    """What is not explained of one joint, by frequency, and from where on a sample is an outlier."""

    deviations: Array  # (m,) of amplitudes, or (1,) where it is white
    largest: float = np.inf  # residual of a sample


@dataclass(frozen=True, eq=False)
class Rows:
    """What one joint was measured to do, against what the unknowns say of it; both pass the same filter."""

    measured: Array
    predicted: Array
    low_pass: LowPass
    noise: Noise

    def white_noise(self) -> Noise:
        """Return the noise of the residuals as if it were alike at all frequencies."""
        residual = self.low_pass.spectrum(self.measured - self.predicted)
        return Noise(np.array([max(float(np.sqrt(np.mean(residual**2))), 1e-12)]))

    def noise_by_frequency(self, leverage: Array) -> Noise:
        """Return the noise of the residuals, of which the fit has taken a share, `leverage` (m,)."""
        residual = self.measured - self.predicted
        scatter = 1.4826 * float(np.median(np.abs(residual - np.median(residual))))
        largest = _HUBER * max(scatter, 1e-3 * float(np.sqrt(np.mean(residual**2))), 1e-12)
        amplitudes = self.low_pass.spectrum(np.clip(residual, -largest, largest))
        places = np.arange(len(amplitudes))
        width = _NEIGHBOURS + places // 4
        first, last = np.maximum(places - width, 0), np.minimum(places + width + 1, len(places))
        power, left = np.cumsum(np.pad([amplitudes**2, 1.0 - leverage], ((0, 0), (1, 0))), axis=1)
        # what a model lacks is slow: above it nothing is known better
        power = np.maximum.accumulate(
            (power[last] - power[first]) / np.maximum(left[last] - left[first], 1.0)
        )
        return Noise(np.sqrt(np.maximum(power, 1e-24)), largest)

    @property
    def without_outliers(self) -> Array:
        """What was measured, outliers as far from the prediction as others are at most (Huber)."""
        return self.predicted + np.clip(
            self.measured - self.predicted, -self.noise.largest, self.noise.largest
        )

    @property
    def beyond(self) -> Array:
        """What is predicted beyond what was measured."""
        return self.predicted - self.measured

    @property
    def sigma(self) -> float:
        """Standard deviation of what is not explained."""
        return float(np.std(self.measured - self.predicted))


def residuals(
    model: TorqueModel, runs: Sequence[Data], now: Unknowns, noise: Mapping[Key, Noise]
) -> dict[Key, Rows]:
    """Return what the unknowns leave of efforts and deflections of all runs."""
    return {key: rows for key, rows, _ in _equations(model, runs, now, noise)}


def linearised(
    model: TorqueModel,
    runs: Sequence[Data],
    now: Unknowns,
    noise: Mapping[Key, Noise],
    whole: bool = False,
) -> tuple[dict[Key, Rows], list[tuple[Key, Array]]]:
    """Return residuals of all runs, and their rows: as triangles by QR, or the `whole` of them."""
    systems: list[tuple[Key, Array]] = []
    all_rows: dict[Key, Rows] = {}
    for key, rows, parts in _equations(model, runs, now, noise):
        # encoders are set to zero anew each time that a robot is switched on: later runs have means of their
        # own
        first = 1 if key.spring is not None and key.run > 0 and not whole else 0
        all_rows[key] = rows
        systems.append((key, _amplitudes(parts, rows, whole, first)))
    return all_rows, systems


def _equations(
    model: TorqueModel, runs: Sequence[Data], now: Unknowns, noise: Mapping[Key, Noise]
) -> Iterator[tuple[Key, Rows, list[Array]]]:
    """Yield residuals of each joint with the columns (N, k) that they follow from, what was measured last."""

    def rows_of(key: Key, samples: Array, modelled: Array, low_pass: LowPass) -> Rows:
        guess = Noise(np.array([_FIRST_GUESS * np.std(samples)]))
        return Rows(samples, modelled, low_pass, noise.get(key, guess))

    for run, data in enumerate(runs):
        motion = data.fast_motion(data.acted(now.effort_delay), data.late(now))
        at_motor = data.recording.at_motor
        columns = model.columns(motion, at_motor, now.friction_shape, now.parameters)
        turning = model.shape_columns(motion, at_motor, now.parameters, now.friction_shape)
        predicted = columns @ now.parameters
        rates, certain = _rates(model, data, columns, now.parameters, predicted)
        for j in np.flatnonzero(data.recording.efforts.measured).tolist():
            rows = rows_of(Key(run, j), data.efforts[:, j], predicted[:, j], data.slow_efforts[j])
            by_shape, rate = turning[:, j], certain[:, [j]]
            known = by_shape @ now.vector[now.of_shape] - rate[:, 0] * now.effort_delay
            target = rows.without_outliers + known
            yield Key(run, j), rows, [columns[:, j], by_shape, -rate, rate - rates[:, [j]], target[:, None]]
        for i, (j, part) in enumerate(zip(data.elastic, data.springs(model, now, fast=True))):
            modelled = part @ coefficients(model, now.parameters, now.springs[:, i], j)
            rows = rows_of(Key(run, j, i), data.deflections[:, j], modelled, data.slow_deflections[j])
            yield Key(run, j, i), rows, [part, rows.without_outliers[:, None]]


def _rates(
    model: TorqueModel, data: Data, columns: Array, parameters: Array, predicted: Array
) -> tuple[Array, Array]:
    """Return the rates of efforts (N, n), and certain ones (N, n): the instrumental variable of their delay.

    Where joints vibrate, controllers answer to the noise of encoders that is in the model as well, and the
    vibration that follows when friction turns over is smeared to before it by any filter. Then certain are
    slow rates of all but Coulomb friction (`Data.instrument_is_slow`). Else all are certain, or all slow ones
    where reversals are left out.
    """
    times = data.effort_times
    known = changing(model, data, columns, parameters, predicted)
    if not data.instrument_is_slow:
        certain = data.slow_effort(known) if data.reversals_left_out.any() else known
        rates = np.gradient(certain, times, axis=0)
        return rates, rates
    chosen = ~model.of_turnover
    slow = data.of_motion.spline(columns[..., chosen] @ parameters[chosen])
    return data.slow_effort.spline(known)(times, nu=1), slow(times, nu=1)


def changing(model: TorqueModel, data: Data, columns: Array, parameters: Array, predicted: Array) -> Array:
    """Return efforts (N, n) as they change at the samples that are used.

    Where reversals are left out, Coulomb friction is constant in between. Its step there is no rate of any
    sample, but a filter would smear it over those beside.
    """
    steady = np.where(model.of_turnover, 0.0, parameters)
    return np.where(data.reversals_left_out > 0.0, columns @ steady, predicted)


def _amplitudes(parts: list[Array], rows: Rows, whole: bool, first: int = 0) -> Array:
    """Return amplitudes of samples (N, k) from the `first` on, over the noise.

    All of them (m, k) where `whole`, else a triangle that tells the same of the unknowns.
    """
    samples = np.concatenate(parts, axis=1)
    used = np.flatnonzero(samples.any(axis=0) | (np.arange(samples.shape[1]) == samples.shape[1] - 1))
    amplitudes = rows.low_pass.spectrum(samples[:, used]) / rows.noise.deviations[:, None]
    small = amplitudes if whole else np.linalg.qr(amplitudes[first:], mode="r")
    result = np.zeros((len(small), samples.shape[1]))
    result[:, used] = small
    return result


def correlation_length(residual: Array) -> float:
    """Return by how many times the variance of a mean is larger than if samples were independent.

    One plus twice the sum of autocorrelations up to where they fall below 0.05 (Bartlett, 1946).
    """
    centred = residual - residual.mean()
    size = 1 << (2 * len(centred) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(power, size)[: len(centred)]
    if correlation[0] <= 0.0:
        return 1.0
    correlation = correlation / correlation[0]
    ends = np.flatnonzero(correlation < 0.05)
    until = int(ends[0]) if len(ends) else len(correlation)
    return float(1.0 + 2.0 * correlation[1:until].sum())
