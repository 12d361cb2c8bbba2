"""Where a stream wants a robot to be, by the time of the stream, from all chunks that have come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array

_NEAR = 1e-6  # [s] for differences


@dataclass(frozen=True, eq=False)
class TargetPath:
    """Points by time of the stream; what lies before the first one and behind the last one stands.

    Between two points it goes straight on, or, with slopes, as a cubic through both.
    """

    times: Array  # (N,) [s], increasing
    points: Array  # (N, n) [rad or m]
    slopes: Array | None = None  # (N, n) [rad/s or m/s]

    @property
    def end(self) -> float:
        """The time of the last point [s]."""
        return float(self.times[-1])

    def at(self, times: Array) -> Array:
        """Return the targets (M, n) at times (M,)."""
        if len(self.times) == 1:
            return np.repeat(self.points, len(times), axis=0)
        inside = np.minimum(np.maximum(times, self.times[0]), self.times[-1])
        place = np.minimum(self.times.searchsorted(inside, side="right"), len(self.times) - 1) - 1
        start = self.times.take(place)
        width = (self.times.take(place + 1) - start)[:, None]
        u = (inside - start)[:, None] / width
        before, after = self.points.take(place, axis=0), self.points.take(place + 1, axis=0)
        if self.slopes is None:
            return np.asarray(before + u * (after - before))
        blended = u * u * (3.0 - 2.0 * u)
        ends = u * (1.0 - u) ** 2 * self.slopes[place] - u * u * (1.0 - u) * self.slopes[place + 1]
        return np.asarray(before + blended * (after - before) + width * ends)

    def one(self, time: float) -> Array:
        """Return the target (n,) at one time, in less time than `at` takes."""
        last = len(self.times) - 1
        place = int(self.times.searchsorted(time, side="right")) - 1
        if place < 0 or place >= last or self.slopes is not None:
            return np.asarray(self.at(np.array([time]))[0])
        start = self.times[place]
        u = (time - start) / (self.times[place + 1] - start)
        before = self.points[place]
        return np.asarray(before + u * (self.points[place + 1] - before))

    def beyond(self, times: Array) -> Array:
        """Return the targets (M, n); behind the last point they go straight on."""
        positions = self.at(times)
        if len(self.times) > 1:
            slope = (self.points[-1] - self.points[-2]) / (self.times[-1] - self.times[-2])
            positions = positions + np.maximum(times - self.end, 0.0)[:, None] * slope
        return positions

    def later(self, by: float) -> TargetPath:
        """Return the same path with other times [s]."""
        return TargetPath(self.times + by, self.points, self.slopes)

    def since(self, time: float) -> TargetPath:
        """Return the path from the last point at or before a time on, with one more before it."""
        first = max(int(np.searchsorted(self.times, time, side="right")) - 2, 0)
        slopes = None if self.slopes is None else self.slopes[first:]
        return TargetPath(self.times[first:], self.points[first:], slopes)

    def until(self, time: float) -> TargetPath:
        """Return the path up to a time, where it ends."""
        kept = self.times < time
        at = np.array([time])
        slopes = None
        if self.slopes is not None:
            slopes = np.concatenate([self.slopes[kept], self._slope(time)[None]])
        return TargetPath(
            np.append(self.times[kept], at), np.concatenate([self.points[kept], self.at(at)]), slopes
        )

    def joined(self, other: TargetPath, since: float, blend: float, step: float, stands: bool) -> TargetPath:
        """Return this path up to `since`, and the other one from there on, smoothly blended over `blend` [s].

        Where this path ends meanwhile it stands, or goes straight on. Where the other one begins after the
        end of this one, nothing is blended, and a straight line leads there.
        """
        if not stands and other.times[0] > self.end:
            kept, mixed = self, TargetPath(other.times[:0], other.points[:0])
            rest = other
        else:
            count = max(int(np.ceil(blend / step)), 1)
            window = since + blend * np.arange(count + 1) / count
            u = (window - since)[:, None] / blend
            share = u**4 * (35.0 - 84.0 * u + 70.0 * u**2 - 20.0 * u**3)
            old = self.at(window) if stands else self.beyond(window)
            mixed = TargetPath(window, (1.0 - share) * old + share * other.at(window))
            kept = self._between(-np.inf, since)
            # a point right behind the window would say nothing but how the two were rounded
            rest = other._between(float(window[-1]) + 0.5 * step, np.inf)
        times = np.concatenate([kept.times, mixed.times, rest.times])
        points = np.concatenate([kept.points, mixed.points, rest.points])
        if self.slopes is None:
            return TargetPath(times, points)
        slopes = slopes_of(times, points)
        slopes[: len(kept.times)] = self.slopes[: len(kept.times)]
        if len(mixed.times):  # what is known by now goes on without a kink
            slopes[len(kept.times)] = self._slope(since)
        return TargetPath(times, points, slopes)

    def _slope(self, time: float) -> Array:
        near = self.at(time + _NEAR * np.array([-1.0, 1.0]))
        return np.asarray((near[1] - near[0]) / (2.0 * _NEAR))

    def _between(self, after: float, before: float) -> TargetPath:
        inside = (self.times > after) & (self.times < before)
        return TargetPath(self.times[inside], self.points[inside])


def slopes_of(times: Array, points: Array) -> Array:
    """Return slopes (N, n) at points: of parabolas through three neighbours, at the ends too."""
    if len(times) == 1:
        return np.zeros_like(points)
    chords = np.diff(points, axis=0) / np.diff(times)[:, None]
    if len(times) == 2:
        return np.repeat(chords, 2, axis=0)
    widths = np.diff(times)[:, None]
    bends = np.diff(chords, axis=0) / (widths[1:] + widths[:-1])
    inner = chords[:-1] + widths[:-1] * bends
    return np.concatenate([[chords[0] - widths[0] * bends[0]], inner, [chords[-1] + widths[-1] * bends[-1]]])
