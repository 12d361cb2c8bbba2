"""Motion with derivatives that fit together, from samples with irregular stamps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.interpolate import BSpline, PPoly
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded
from scipy.sparse import dia_array

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.recording import Channel

DEGREE = 7  # so that the acceleration, and the jerk of a torque rate, are smooth
BANDWIDTHS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # [Hz] that are tried where none is given
HARMONICS = 8.0  # of the motion's highest frequency that a bandwidth has room for
_LONGEST_GAP = 1.5  # periods of the bandwidth, three distances of knots, without a sample
_STIFF = 1e-3  # of the penalty on differences, beside what samples weigh
SAMPLES_PER_KNOT = 3.0  # samples between two knots, at least


@dataclass(frozen=True, eq=False)
class Smooth:
    """A least-squares spline through one channel; nothing was resampled on the way."""

    spline: BSpline
    bandwidth: float  # [Hz]
    measured: NDArray[np.bool_]  # (n,)

    def free(self, samples: int) -> float:
        """Return which share of the degrees of freedom of so many samples it does not follow."""
        return max(1.0 - len(self.spline.c) / samples, 1e-3)

    def sample(self, times: Array, order: int, delays: Array | None = None) -> Array:
        """Return derivatives 0 ... `order` (order + 1, N, n) at `times` (N,) [s]; NaN where not measured.

        Joint j is read `delays[j]` [s] later: where its stamps come that much too late.
        """
        result = np.full((order + 1, len(times), len(self.measured)), np.nan)
        columns = np.flatnonzero(self.measured)
        knots = self.spline.t[DEGREE:-DEGREE]
        late = np.zeros(len(self.measured)) if delays is None else delays
        for delay in set(late[columns].tolist()):
            places = np.flatnonzero(late[columns] == delay)
            alike = PPoly.construct_fast(np.ascontiguousarray(self._powers[:, :, places]), knots)
            instants = np.clip(times + delay, knots[0], knots[-1])
            for k in range(order + 1):
                result[k, :, columns[places]] = alike(instants, nu=k).T
        return result

    @cached_property
    def _powers(self) -> Array:
        """Coefficients (8, intervals, n) of powers of the time since the last knot, highest first.

        They take a quarter of the time that B-splines do at each instant or less; a search asks for many.
        """
        begins = self.spline.t[DEGREE : -DEGREE - 1]
        return np.stack([self.spline(begins, nu=k) / factorial(k) for k in range(DEGREE, -1, -1)])


class LowPass:
    """Least-squares projection of samples (N, ...) at stamps (N,) [s] onto what is slow.

    It is linear, so that a model may pass it with what was measured: filtered alike, both sides stay equal
    where they were (M. Gautier, Proc. IEEE ICRA 1997, "parallel filtering").
    """

    def __init__(
        self,
        times: Array,
        bandwidth: float,
        used: NDArray[np.bool_] | None = None,
    ) -> None:
        """Look at the samples that are `used` (N,) alone, as if the others had not been taken.

        Where none are, or stamps leave a gap, splines go straight on, as a small penalty on differences of
        their coefficients has it.
        """
        self.bandwidth = bandwidth
        self._everywhere = times
        self.used = np.ones(len(times), dtype=bool) if used is None else used
        knots = _knots(times, bandwidth)
        times = times[self.used]
        self._knots = knots
        self._basis = BSpline.design_matrix(times, self._knots, DEGREE)
        even = np.linspace(knots[0], knots[-1], 2 * (len(knots) - 2 * DEGREE) + 1)
        self.even = even = 0.5 * (even[1:] + even[:-1])  # instants, four a period of the bandwidth
        seen = np.abs(
            times[np.clip(np.searchsorted(times, even), 1, len(times) - 1) - [[1], [0]]] - even
        ).min(axis=0)
        self._said = (seen < even[1] - even[0]).astype(np.float64)  # nothing is said of gaps
        self._evenly = BSpline.design_matrix(even, self._knots, DEGREE)
        gram = (self._basis.T @ self._basis).tocsc()
        if not self.used.all() or _longest_gap(times) * bandwidth > _LONGEST_GAP:
            rough = _differences(gram.shape[0])
            gram = gram + _STIFF * gram.diagonal().mean() * (rough.T @ rough)
        bands = np.zeros((DEGREE + 1, gram.shape[0]))
        for k in range(DEGREE + 1):
            bands[k, : gram.shape[0] - k] = gram.diagonal(-k)
        self._factor = cholesky_banded(bands, lower=True)

    def spline(self, values: Array) -> BSpline:
        """Return the slow part of samples (N, n) as a spline."""
        return BSpline(
            self._knots, cho_solve_banded((self._factor, True), self._basis.T @ values[self.used]), DEGREE
        )

    def __call__(self, values: Array) -> Array:
        """Return the slow part of samples (N, ...), at the same stamps."""
        return np.asarray(self.spline(values)(self._everywhere))

    def spectrum(self, values: Array) -> Array:
        """Return the slow part of samples (N, ...) as m amplitudes of cosines (m, ...), slowest first.

        Noise is hardly alike at two frequencies, whatever its colour; amplitudes of the same noise may be
        much larger at one than at another.
        """
        columns = values.reshape(len(values), -1)
        return self.amplitudes(self._evenly @ self.spline(columns).c).reshape(-1, *values.shape[1:])

    def amplitudes(self, values: Array) -> Array:
        """Return amplitudes of cosines (m, k) of values at the instants `even` (2 m, k), slowest first."""
        said = self._said[:, None] * values
        return np.asarray(dct(said, axis=0, norm="ortho")[: len(self.even) // 2])


def smooth(channel: Channel, bandwidth: float | None = None, beyond_motion: bool = False) -> Smooth:
    """Fit a spline of degree 7 with evenly spaced knots, two a period of `bandwidth` [Hz].

    Without one, the bandwidth with the least generalised cross-validation is taken (Craven & Wahba, 1979),
    the sum over the joints of residual^2 / (1 - coefficients / samples)^2, but no more than a few
    harmonics of the motion need: what is above them is vibration, of which a model of rigid links knows
    nothing. With `beyond_motion` vibration counts as well. Raises InputError where the stamps leave gaps
    that are longer than the knots are apart.
    """
    tried = (
        [bandwidth]
        if bandwidth
        else [b for b in BANDWIDTHS if 2.0 * b * SAMPLES_PER_KNOT <= channel.rate] or [BANDWIDTHS[0]]
    )
    fitted = []
    for each in tried:
        try:
            fitted.append(_fit(channel, each))
        except InputError:
            if each == tried[-1] and not fitted:
                raise
    best = min(fitted, key=lambda pair: pair[0])[1]
    if bandwidth is None and not beyond_motion:
        wanted = HARMONICS * moving_frequency(best, channel.times)
        enough = next((b for b in tried if b >= wanted), tried[-1])
        if enough < best.bandwidth:
            return _fit(channel, enough)[1]
    return best


def moving_frequency(motion: Smooth, times: Array) -> float:
    """Return the frequency [Hz] below which 99 % of the power of the fastest joint's velocity lie."""
    even = np.linspace(times[0], times[-1], len(times))
    velocity = motion.spline(even, nu=1)
    power = (
        np.abs(np.fft.rfft((velocity - velocity.mean(axis=0)) * np.hanning(len(even))[:, None], axis=0)) ** 2
    )
    below = np.cumsum(power, axis=0) / power.sum(axis=0)
    places = (below < 0.99).sum(axis=0)
    return float(places.max() / (times[-1] - times[0]))


def _fit(channel: Channel, bandwidth: float) -> tuple[float, Smooth]:
    times, values = channel.times, channel.values[:, channel.measured]
    gap = _longest_gap(times)
    if gap * bandwidth > _LONGEST_GAP:
        raise InputError(
            f"stamps leave a gap of {gap:g} s, too long for a bandwidth of {bandwidth:g} Hz; take a lower "
            "--bandwidth, or a part of the recording without gaps"
        )
    try:
        spline = LowPass(times, bandwidth).spline(values)
    except LinAlgError:
        raise InputError(f"{len(times)} samples are too few for a bandwidth of {bandwidth:g} Hz") from None
    residuals = ((values - spline(times)) ** 2).mean(axis=0)
    scale, result = values.var(axis=0), Smooth(spline, bandwidth, channel.measured)
    return float((residuals / scale).sum() / result.free(len(times)) ** 2), result


def _longest_gap(times: Array) -> float:
    return float(np.diff(times).max())


def _differences(size: int) -> dia_array:
    """Return the differences of `size` coefficients, sparse."""
    return dia_array((np.repeat([[-1.0], [1.0]], size, axis=1), [0, 1]), shape=(size - 1, size))


def _knots(times: Array, bandwidth: float) -> Array:
    """Return evenly spaced knots, two a period of the bandwidth [Hz]."""
    intervals = max(1, round((times[-1] - times[0]) * 2.0 * bandwidth))
    inner = np.linspace(times[0], times[-1], intervals + 1)
    return np.r_[[times[0]] * DEGREE, inner, [times[-1]] * DEGREE]
