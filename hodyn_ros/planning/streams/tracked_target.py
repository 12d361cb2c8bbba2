"""What a motion is to follow from now on: a target that is expected to move on, or points that are known.

Both are continuous to their acceleration. Times are those of the motion; where a target is behind its stamps,
that is in the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.planning.streams.approach import State
from hodyn_ros.planning.streams.target_path import TargetPath
from hodyn_ros.planning.streams.uniform_spline import DEGREE, evaluate

_LAG = 2  # control point i of a uniform spline is nearest to it at knot i - 2


@dataclass(frozen=True, eq=False)
class ExpectedTarget:
    """A target that goes on as it did: its acceleration fades away over `fade` [s]."""

    since: float  # [s] from when on it counts
    until: float  # [s] behind which the motion comes to rest
    rest: Array  # (n,) where it does
    state: State  # at `since`
    fade: float

    def at(self, times: Array) -> Array:
        """Return positions, velocities and accelerations (N, 3, n)."""
        after = (times - self.since)[:, None]
        fading = np.minimum(after, self.fade)
        p, v, a = self.state
        slope = -a / self.fade
        speed = v + fading * (a + 0.5 * fading * slope)
        place = p + fading * (v + fading * (0.5 * a + fading * slope / 6.0)) + (after - fading) * speed
        return np.stack([place, speed, a + fading * slope], axis=1)

    def steady(self) -> ExpectedTarget:
        """Return the target without acceleration."""
        return replace(self, state=self.state._replace(acceleration=np.zeros_like(self.rest)))

    def standing(self) -> ExpectedTarget:
        """Return a target that stands where this one would come to rest."""
        still = np.zeros_like(self.rest)
        return replace(self, state=State(self.rest, still, still))


@dataclass(frozen=True, eq=False)
class KnownTarget:
    """A path of points that is known, as a uniform spline of degree 5 with control points on it.

    The path is followed from the time `begin` [s] of the stream on, `rate` times as fast as its points say.
    """

    since: float
    until: float
    rest: Array
    path: TargetPath
    begin: float
    rate: float
    spacing: float

    def timed(self, rate: float, bounds: Array) -> KnownTarget:
        """Return the target at another rate; it counts until joints must brake for its end.

        `bounds` (2 or more, n): what velocities and accelerations joints may have.
        """
        points, times = self.path.points, self.path.times
        speed = (
            np.zeros_like(self.rest)
            if len(times) < 2
            else (points[-1] - points[-2]) / (times[-1] - times[-2])
        )
        braking = 0.5 * rate * float((np.abs(speed) / bounds[1]).max())
        until = self.since + max(self.path.end - self.begin - rate * braking, 0.0) / rate
        return replace(self, rate=rate, until=until)

    def place(self, time: float) -> float:
        """Return the time [s] of the stream at which the target is at a time [s] of the motion."""
        return self.begin + self.rate * (time - self.since)

    def at(self, times: Array) -> Array:
        """Return positions, velocities and accelerations (N, 3, n)."""
        places = (self.begin + self.rate * (times - self.since) - self.path.times[0]) / self.spacing
        spans = np.floor(places).astype(int)
        first, last = int(spans.min()), int(spans.max())
        number = np.arange(first, last + DEGREE + 1)
        controls = self._mirrored(self.path.times[0] + self.spacing * (number - _LAG))
        found = evaluate(controls, spans - first, places - spans, self.spacing, 2)
        return found * (self.rate ** np.arange(3))[:, None]

    def _mirrored(self, times: Array) -> Array:
        """Return the path (N, n) at times (N,), and beyond its ends what keeps its direction there."""
        path, begin, end = self.path, self.path.times[0], self.path.times[-1]
        inside = np.where(times < begin, 2.0 * begin - times, np.where(times > end, 2.0 * end - times, times))
        found = path.at(inside)
        found = np.where((times < begin)[:, None], 2.0 * path.points[0] - found, found)
        return np.asarray(np.where((times > end)[:, None], 2.0 * path.points[-1] - found, found))
