"""The peaks of functions of time that are smooth between known instants, found to a tolerance.

Each stretch between two such instants is a panel. A function is sampled there at the 11 Chebyshev points of
an interpolating polynomial and at 4 points between them that the polynomial does not know of: twice the
largest miss at these is taken for its error. A panel is halved until the error is within the tolerance, and
further wherever the polynomial comes within its error of the highest value known; the highest polynomials
are followed to their maxima, and the function is evaluated there. Where a function comes with its integral,
the integral of the polynomial has to agree with it too, which shows spikes that fall between all samples. No
panel is halved for noise of rounding: where an error does not fall, the noise itself is measured.
Source: Trefethen, Approximation Theory and Approximation Practice (SIAM 2013), chapters 2 and 8.

Certain is that a peak is reached at its instant, as it is a value of the function itself. That none is higher
rests on errors estimated from samples; that is sound where panels are short beside what happens in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

TOLERANCE = 1e-3
PRECISION = 1e-10  # to which peaks themselves are known where rounding allows
_NODES = 11
_BLOCK = 256  # panels at a time
_MOST = 16384  # panels that a block may come to; beyond, what is looked at is noise
# In ulps of the last instant: what is near to 0 may follow from what is left until the end.
_GAP = 8  # between samples and the ends of a panel, where the function may jump
_SHORTEST = 4096  # a panel that is not halved any more
_STALLED = 0.75  # of the error of a panel: a half with more of it shows rounding
_NOTED = 3e-4  # by which what lies between samples is higher, to count beside them
_NEWTON = 4  # steps, from the best of a dense grid
_ENOUGH = _MOST // 2  # panels for the digits of peaks, once all is known to the tolerance

# Noise shows in high differences of samples that are too near to each other for anything else to show there.
# Source: More & Wild, Estimating Computational Noise, SIAM J. Sci. Comput. 33(3), 2011.
_DIFFERENCE = 6
_SPREAD = 1e-3 * np.arange(-4.0, 5.0)  # of a panel
_ASIDE = (-0.29, 0.37)  # two places of a panel: a spike that nobody knows of is at one of them at most
_OF_DIFFERENCE = math.factorial(_DIFFERENCE) / math.sqrt(math.factorial(2 * _DIFFERENCE))
_NOISY = 64.0  # standard deviations of noise as measured, which is from a few differences
_QUIET = 1e-5  # error that may be noise

# on [-1, 1]: nodes, and between some of them, at uneven distances, the points of the check
_AT_NODES = -np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))
_FIRST, _SECOND = _AT_NODES[[0, 3, 6, 8]], _AT_NODES[[1, 4, 7, 9]]
_AT_CHECKS = _FIRST + np.array([0.5, 0.46, 0.57, 0.5]) * (_SECOND - _FIRST)
_AT_ALL = np.concatenate([_AT_NODES, _AT_CHECKS])
SAMPLED = len(_AT_ALL)  # places of a panel
_AT_DENSE = np.linspace(-1.0, 1.0, 41)
_STEP = 0.05  # of the dense points
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_AT_NODES, _NODES - 1))
_TO_CHECKS = chebyshev.chebvander(_AT_CHECKS, _NODES - 1) @ _TO_SERIES
_TO_DENSE = chebyshev.chebvander(_AT_DENSE, _NODES - 1) @ _TO_SERIES
# over the first and the second half
_HALVES = [0, _NODES // 2, _NODES - 1]
_TO_INTEGRALS = np.diff(
    chebyshev.chebvander(_AT_NODES[_HALVES], _NODES) @ chebyshev.chebint(_TO_SERIES), axis=0
)


def sampled_places(edges: Array) -> Array:
    """Return where `find_peaks` samples every stretch between edges (M,) first, (M - 1, K), in its order."""
    return _places(edges[:-1], edges[1:], _GAP * _tick(edges))


def places_between(edges: Array, values: Array, least: float) -> Array:
    """Return where (K,) magnitudes are beyond the `least`, and higher than where they are sampled.

    By the polynomials through values (M - 1, K, columns) at the `sampled_places`, whose error is not looked
    at; one place for a stretch and a column.
    """
    nodes = values[:, :_NODES]
    series = _TO_SERIES @ nodes
    bounds = np.abs(series).sum(axis=1)
    known = np.maximum(np.abs(values).max(axis=1), least)
    rows, columns = np.nonzero(bounds > known)
    tops, at = _highest(np.abs(_TO_DENSE @ nodes[rows, :, columns].T))
    higher = tops > known[rows, columns] + _NOTED * least
    rows, at = rows[higher], at[higher]
    return np.unique(edges[rows] + 0.5 * (edges[rows + 1] - edges[rows]) * (1.0 + at))


class Samples(NamedTuple):
    """Values (N, columns) of several functions at N instants, and integrals of them over time.

    Integrals (N, columns) up to a constant, NaN in columns where they are not known; or None for all. Where
    functions are sampled along something else than time, `lasting` (N,) is how long a unit of it lasts.
    """

    values: Array
    integrals: Array | None = None
    lasting: Array | None = None


Function = Callable[[Array], Samples]


class RoughError(InputError):
    """A function cannot be followed: it is noise at the scale of the tolerance."""

    def __init__(self, column: int, time: float, error: float) -> None:
        super().__init__(f"function {column} is too rough near {time:.6g} s: known to {error:.2g} only")
        self.column = column
        self.time = time
        self.error = error


class Peaks(NamedTuple):
    """The largest magnitude of every function, or its largest value where that is asked for."""

    sizes: Array  # (columns,)
    times: Array  # (columns,) where it is reached
    values: Array  # (columns,) there, with sign
    errors: Array  # (columns,) by which the function may exceed it elsewhere, as estimated
    evaluations: int


def find_peaks(
    function: Function,
    edges: Array,
    tolerance: float = TOLERANCE,
    signed: NDArray[np.bool_] | None = None,
    progress: Callable[[float], None] | None = None,
    visit: Callable[[Array, Array], None] | None = None,
    passed_over: NDArray[np.bool_] | None = None,
    precision: float = PRECISION,
    enough: float = np.inf,
) -> Peaks:
    """Find the largest magnitudes of functions from the first to the last of some instants.

    `function` returns samples at times (N,) in any order; it is smooth between two `edges` (M,), which
    increase, and may jump at them: both sides are looked at. `tolerance`: every function is known everywhere
    to this, or to this share of its peak where that is above 1; peaks are known to the `precision`, where
    rounding allows. `signed` (columns,):
    functions whose largest value counts, not the magnitude. `visit(times, values)` gets what was sampled, in
    order of time. Functions that are `passed_over` (columns,) are sampled, but not searched. The search ends
    where one is beyond `enough`: other peaks may be higher then. Raises InputError for a function that is not
    finite, or noise.
    """
    search = _Search(function, _tick(edges), tolerance, signed, passed_over, precision, enough)
    count = len(edges) - 1
    for first in range(0, count, _BLOCK):
        block = edges[first : first + _BLOCK + 1]
        panels = search.block(block[:-1], block[1:])
        if visit is not None:
            order = np.argsort(panels.times, axis=None)
            visit(panels.times.ravel()[order], panels.values.reshape(order.size, -1)[order])
        if progress is not None:
            progress(min(1.0, (first + _BLOCK) / count))
        if search.ended:
            break
    return search.peaks()


@dataclass
class _Panels:
    """Stretches of time with what was sampled in them, and what the polynomials through that say."""

    begin: Array  # (P,)
    end: Array  # (P,)
    times: Array  # (P, K)
    values: Array  # (P, K, columns)
    errors: Array  # (P, columns) of the polynomials
    before: Array  # (P, columns) of the panels that were halved to make these
    stalled: NDArray[np.bool_]  # (P, columns) whether those had hardly smaller errors than theirs before
    tops: Array  # (P, columns) largest sizes of the polynomials, or a little more until they are `sharp`
    places: Array  # (P, columns) where, in [-1, 1]
    sharp: NDArray[np.bool_]  # (P, columns)
    done: NDArray[np.bool_]  # (P, columns) no more is to be learnt

    @property
    def bounds(self) -> Array:
        """What the functions reach at most (P, columns), as estimated."""
        return self.tops + self.errors

    def chosen(self, which: NDArray[np.bool_]) -> _Panels:
        return _Panels(*(array[which] for array in vars(self).values()))

    def joined(self, other: _Panels) -> _Panels:
        return _Panels(*map(np.concatenate, zip(vars(self).values(), vars(other).values())))


class _Search:
    """What is known of the peaks so far."""

    def __init__(
        self,
        function: Function,
        tick: float,
        tolerance: float,
        signed: NDArray[np.bool_] | None,
        passed_over: NDArray[np.bool_] | None,
        precision: float,
        enough: float,
    ) -> None:
        if not 0.0 < tolerance < 1.0:
            raise InputError(f"the tolerance must be above 0 and below 1, found {tolerance:g}")
        self._function = function
        self._gap, self._shortest = _GAP * tick, _SHORTEST * tick
        self._tolerance, self._precision, self._enough = tolerance, precision, enough
        self._signed = signed if signed is not None and signed.any() else None
        self._passed_over = passed_over
        self._evaluations = 0
        # by column; their number shows with the first samples
        self._sizes = np.array(-np.inf)
        self._times = np.array(0.0)
        self._values = np.array(0.0)
        self._ceilings = np.array(-np.inf)

    def peaks(self) -> Peaks:
        errors = np.maximum(self._ceilings - self._sizes, 0.0)
        return Peaks(self._sizes, self._times, self._values, errors, self._evaluations)

    def block(self, begin: Array, end: Array) -> _Panels:
        """Look into panels (P,) until nothing in them can be higher than what is known."""
        panels = self._sampled(begin, end)
        while not self.ended:
            rough = np.asarray((panels.errors > self._tolerance * self._scale).any(axis=1))
            if rough.any():
                panels = self._halved(panels, rough)
                continue
            higher = ~panels.done & (panels.bounds > self._sizes + self._precision * self._scale)
            if not higher.any() or len(panels.begin) > _ENOUGH:
                break
            if (higher & ~panels.sharp).any():
                self._sharpen(panels, higher & ~panels.sharp)
                continue
            unknown = self._follow(panels, higher)
            if unknown.any():
                panels = self._halved(panels, unknown)
        self._ceilings = np.maximum(self._ceilings, panels.bounds.max(axis=0))
        return panels

    @property
    def ended(self) -> bool:
        """Whether a function is beyond what is enough."""
        return bool(np.max(self._sizes) > self._enough)

    @property
    def _scale(self) -> Array:
        return np.maximum(self._sizes, 1.0)

    def _size(self, values: Array) -> Array:
        return np.abs(values) if self._signed is None else np.where(self._signed, values, np.abs(values))

    def _evaluated(self, times: Array) -> Samples:
        """Return samples at times (N,), and remember the highest."""
        samples = self._function(times)
        values = samples.values
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise InputError(f"at {times[row]:.6g} s of the motion a quantity is not finite")
        self._evaluations += len(times)
        sizes = self._size(values)
        rows, columns = np.argmax(sizes, axis=0), np.arange(values.shape[1])
        better = sizes[rows, columns] > self._sizes
        self._sizes = np.where(better, sizes[rows, columns], self._sizes)
        self._times = np.where(better, times[rows], self._times)
        self._values = np.where(better, values[rows, columns], self._values)
        return samples

    def _sampled(
        self, begin: Array, end: Array, before: Array | None = None, stalled: NDArray[np.bool_] | None = None
    ) -> _Panels:
        half = 0.5 * (end - begin)
        times = _places(begin, end, self._gap)
        samples = self._evaluated(times.ravel())
        values = samples.values.reshape(*times.shape, -1)
        nodes = values[:, :_NODES]
        errors = 2.0 * np.abs(_TO_CHECKS @ nodes - values[:, _NODES:]).max(axis=1)
        if samples.integrals is not None:
            integrals = samples.integrals.reshape(values.shape)[:, _HALVES]
            lasts = half
            weighted = nodes
            if samples.lasting is not None:
                lasting = samples.lasting.reshape(times.shape)[:, :_NODES]
                mean = lasting.mean(axis=1)
                lasts, weighted = half * mean, nodes * (lasting / mean[:, None])[:, :, None]
            missed = _disagreement(weighted, integrals, lasts)
            if before is not None:
                missed = self._without_noise(missed, before, begin, half, lasts)
            errors = np.fmax(errors, missed)
        tops, places = self._tops(nodes, errors)
        # between the sides of a jump, there is nothing
        shut = end - begin <= self._shortest
        errors[shut] = 0.0
        tops[shut] = self._size(values[shut]).max(axis=1)
        if self._passed_over is not None:
            errors[:, self._passed_over] = 0.0
            tops[:, self._passed_over] = -np.inf
        sharp = np.repeat(shut[:, None], tops.shape[1], axis=1)
        known = np.full(tops.shape, np.inf) if before is None else before
        if stalled is None:
            stalled = np.zeros(tops.shape, dtype=bool)
        return _Panels(begin, end, times, values, errors, known, stalled, tops, places, sharp, sharp.copy())

    def _tops(self, nodes: Array, errors: Array) -> tuple[Array, Array]:
        """Return the largest sizes (P, columns) of polynomials, and where.

        A polynomial is nowhere larger than the sum of the magnitudes of its coefficients. Where that is
        below what is known already, it takes the place of the size, and there is no place.
        """
        series = _TO_SERIES @ nodes
        deviations = np.abs(series[:, 1:]).sum(axis=1)
        tops = self._size(series[:, 0]) + deviations
        places = np.zeros_like(tops)
        rows, columns = np.nonzero(tops + errors > self._sizes)
        dense = _TO_DENSE @ nodes[rows, :, columns].T
        dense = (
            np.abs(dense) if self._signed is None else np.where(self._signed[columns], dense, np.abs(dense))
        )
        tops[rows, columns], places[rows, columns] = _highest(dense)
        return tops, places

    def _without_noise(self, missed: Array, before: Array, begin: Array, half: Array, lasts: Array) -> Array:
        """Return what integrals miss (P, columns), nothing where that is their noise over a short panel."""
        suspect = (missed > self._precision * self._scale) & (missed > _STALLED * before)
        rows = np.flatnonzero(suspect.any(axis=1))
        if not len(rows):
            return missed
        _, noise = self._noise(begin[rows], half[rows])
        missed = missed.copy()
        is_noise = suspect[rows] & (missed[rows] <= _NOISY * noise / lasts[rows, None])
        missed[rows] = np.where(is_noise, 0.0, missed[rows])
        return missed

    def _noise(self, begin: Array, half: Array) -> tuple[Array, Array]:
        """Return the noise of values and integrals in panels (P, columns), as standard deviations."""
        at = np.add.outer(np.array(_ASIDE), _SPREAD)
        times = begin[:, None, None] + half[:, None, None] * (1.0 + at)
        samples = self._evaluated(times.ravel())
        integrals = samples.values if samples.integrals is None else samples.integrals
        noise = []
        for values in (samples.values, integrals):
            high = np.diff(values.reshape(*times.shape, -1), _DIFFERENCE, axis=2)
            noise.append(_OF_DIFFERENCE * np.sqrt((high**2).mean(axis=2)).min(axis=1))
        return noise[0], noise[1]

    def _halved(self, panels: _Panels, which: NDArray[np.bool_]) -> _Panels:
        if len(panels.begin) > _MOST:
            row, column = np.unravel_index(int(np.argmax(panels.errors)), panels.errors.shape)
            raise RoughError(int(column), float(panels.begin[row]), float(panels.errors[row, column]))
        begin, end = panels.begin[which], panels.end[which]
        edges = np.stack([begin, 0.5 * (begin + end), end], axis=1)
        before = np.repeat(panels.errors[which], 2, axis=0)
        stalled = before > _STALLED * np.repeat(panels.before[which], 2, axis=0)
        halves = self._sampled(edges[:, :2].ravel(), edges[:, 1:].ravel(), before, stalled)
        return panels.chosen(~which).joined(halves)

    def _sharpen(self, panels: _Panels, which: NDArray[np.bool_]) -> None:
        """Find the maxima of polynomials by Newton's method."""
        rows, columns = np.nonzero(which)
        series = _TO_SERIES @ panels.values[rows, :_NODES, columns].T
        slope = chebyshev.chebder(series)
        bend = chebyshev.chebder(slope)
        start = panels.places[rows, columns]
        place = start
        for _ in range(_NEWTON):
            down, curved = (chebyshev.chebval(place, part, tensor=False) for part in (slope, bend))
            step = np.divide(down, curved, out=np.zeros_like(place), where=curved != 0.0)
            place = np.clip(place - step, np.maximum(start - _STEP, -1.0), np.minimum(start + _STEP, 1.0))
        signed = None if self._signed is None else self._signed[columns]
        sizes = []
        for at in (place, start):
            value = chebyshev.chebval(at, series, tensor=False)
            sizes.append(np.abs(value) if signed is None else np.where(signed, value, np.abs(value)))
        panels.places[rows, columns] = np.where(sizes[0] > sizes[1], place, start)
        panels.tops[rows, columns] = np.maximum(*sizes)
        panels.sharp[rows, columns] = True

    def _follow(self, panels: _Panels, higher: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Evaluate the functions where their polynomials are highest; return the panels to halve (P,)."""
        columns = np.flatnonzero(higher.any(axis=0))
        rows = np.argmax(np.where(higher, panels.bounds, -np.inf)[:, columns], axis=0)
        begin, end = panels.begin[rows], panels.end[rows]
        times = begin + 0.5 * (end - begin) * (1.0 + panels.places[rows, columns])
        times = np.clip(times, begin + self._gap, end - self._gap)
        sizes = self._size(self._evaluated(times).values)[np.arange(len(columns)), columns]
        missed = 2.0 * np.abs(sizes - panels.tops[rows, columns])
        errors = np.maximum(panels.errors[rows, columns], missed)
        panels.errors[rows, columns] = errors
        known = errors <= self._precision * self._scale[columns]
        # Once is not enough: a panel in which a narrow peak hides knows less of its error than its halves.
        stalled = errors > _STALLED * panels.before[rows, columns]
        known |= stalled & panels.stalled[rows, columns]
        suspect = ~known & (stalled | (errors <= _QUIET * self._scale[columns]))
        if suspect.any():
            some, own = rows[suspect], columns[suspect]
            noise, _ = self._noise(begin[suspect], 0.5 * (end - begin)[suspect])
            known[suspect] = panels.errors[some, own] <= _NOISY * noise[np.arange(len(some)), own]
        known |= end - begin <= self._shortest
        panels.done[rows[known], columns[known]] = True
        unknown = np.zeros(len(panels.begin), dtype=bool)
        unknown[rows[~known]] = True
        return unknown


def _tick(edges: Array) -> float:
    return float(np.spacing(np.abs(edges).max()))


def _places(begin: Array, end: Array, gap: float) -> Array:
    """Return where panels (P,) are sampled (P, K), apart from their ends by a gap."""
    half = 0.5 * (end - begin)
    places = (begin + half)[:, None] + half[:, None] * _AT_ALL
    return np.asarray(np.clip(places, (begin + gap)[:, None], (end - gap)[:, None]))


def _disagreement(nodes: Array, integrals: Array, half: Array) -> Array:
    """Return by how much (P, columns) means of polynomials over halves of panels miss the known ones.

    `integrals` (P, 3, columns) at the ends and in the middle, over panels that last twice `half` (P,). Less
    what rounding of the integrals may do; NaN where they are not known.
    """
    lasts = half[:, None, None]
    missed = np.abs(np.diff(integrals, axis=1) / lasts - _TO_INTEGRALS @ nodes)
    rounding = 64.0 * np.finfo(np.float64).eps * np.abs(integrals).max(axis=1, keepdims=True) / lasts
    return np.asarray((missed - rounding).max(axis=1))


def _highest(dense: Array) -> tuple[Array, Array]:
    """Return the maxima (K,) of sizes (dense points, K), and where they are.

    What a parabola through the highest point and its neighbours adds is counted twice.
    """
    highest, each = np.argmax(dense, axis=0), np.arange(dense.shape[1])
    inside = np.clip(highest, 1, len(_AT_DENSE) - 2)
    before, middle, after = (dense[inside + i, each] for i in (-1, 0, 1))
    bend = 2.0 * middle - before - after
    gain = np.divide((after - before) ** 2, 8.0 * bend, out=np.zeros_like(bend), where=bend > 0.0)
    return dense[highest, each] + 2.0 * np.minimum(gain, bend), _AT_DENSE[highest]
