"""What a motion is to follow from now on: a target that is expected to move on, or points that are known.

Both are continuous to their acceleration. Times are those of the motion; where a target is behind its stamps,
that is in the target.

Where a target is and how it moves, a Kalman filter for each joint tells from noisy points. Between two points
the jerk of the target is white noise, and so is what each point is off:

    x = (q, q', q''),  x_k+1 = F(dt) x_k + w,  y_k = q_k + v,  var w = Q(dt),  var v = noise^2

Source: Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation (Wiley 2001),
sections 5.2 and 6.2.3 (white-noise jerk). A point far from what is expected begins a new place: a target
that is set anew, not one that has moved there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.planning.streams.approach import State
from hodyn_ros.planning.streams.target_path import TargetPath
from hodyn_ros.planning.streams.uniform_spline import LAG, evaluate_needed


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
        begin = self.path.times[0]
        place = self.begin + self.rate * (times - self.since) - begin
        samples = evaluate_needed(
            lambda number: self._mirrored(begin + self.spacing * (number - LAG)), place, self.spacing, 2
        )
        return samples * (self.rate ** np.arange(3))[:, None]

    def _mirrored(self, times: Array) -> Array:
        """Return the path (N, n) at times (N,), and beyond its ends what keeps its direction there."""
        path, begin, end = self.path, self.path.times[0], self.path.times[-1]
        inside = np.where(times < begin, 2.0 * begin - times, np.where(times > end, 2.0 * end - times, times))
        points = path.at(inside)
        points = np.where((times < begin)[:, None], 2.0 * path.points[0] - points, points)
        return np.asarray(np.where((times > end)[:, None], 2.0 * path.points[-1] - points, points))


_JERK = 10.0  # density of the jerk of a target [rad²/s⁵]: hands and policies, up to about 2 Hz
_ABRUPT = 10.0  # [rad/s²] that a target is accelerated by at most, where joints allow more
_SURPRISE = 8.0  # standard deviations that no noise is off
_FIRST = np.array([0.1, 1.0])  # of velocity [rad/s] and acceleration [rad/s²] of a target that is set anew
_GAP, _REMEMBERED = 0.05, 0.2  # [s] between two points at first, and how much the newest one counts
_FARTHEST = 1.0  # [s] between two points, and what is known of the velocity is worth nothing


class TargetEstimator:
    """The state of a target of joints (n,) at the time of its last point."""

    def __init__(self, noise: float, acceleration: Array) -> None:
        """Take the standard deviation of points [rad or m], and the accelerations (n,) of joints."""
        self._variance, self._acceleration = max(noise, 1e-9) ** 2, np.minimum(acceleration, _ABRUPT)
        self.time = -np.inf  # [s]
        self.state = np.zeros((3, len(acceleration)))  # position, velocity, acceleration
        self.gap = _GAP  # [s] between two points, as a mean

    def begin(self, time: float, position: Array) -> None:
        """Take a point without regard to those before it: the target stands there."""
        self.time = time
        self.state = np.stack([position, np.zeros_like(position), np.zeros_like(position)])
        self._covariance = np.repeat(self._first()[None], len(position), axis=0)

    def take(self, time: float, position: Array) -> None:
        """Take a point at a later time [s] (n,)."""
        step = time - self.time
        if not 0.0 < step <= _FARTHEST:
            self.begin(time, position)
            return
        forward = np.array([[1.0, step, 0.5 * step * step], [0.0, 1.0, step], [0.0, 0.0, 1.0]])
        state = forward @ self.state
        covariance = forward @ self._covariance @ forward.T + _noise_of_motion(step)
        variance = covariance[:, 0, 0] + self._variance
        error = position - state[0]
        far = np.abs(error) > _SURPRISE * np.sqrt(variance) + 0.5 * self._acceleration * step * step
        gain = covariance[:, :, 0] / variance[:, None]
        self.time, self.gap = time, self.gap + _REMEMBERED * (step - self.gap)
        self.state = state + gain.T * np.where(far, 0.0, error)
        self._covariance = covariance - gain[:, :, None] * covariance[:, None, 0]
        if far.any():  # what is expected of the velocity stays, until more is known
            self.state[0, far], self.state[2, far] = position[far], 0.0
            self._covariance[far] = self._first()

    def _first(self) -> Array:
        return np.diag([self._variance, *(_FIRST * _FIRST)])


def _noise_of_motion(step: float) -> Array:
    """Return Q (3, 3) of a step [s]."""
    powers = [step**k for k in range(6)]
    return _JERK * np.array(
        [
            [powers[5] / 20.0, powers[4] / 8.0, powers[3] / 6.0],
            [powers[4] / 8.0, powers[3] / 3.0, powers[2] / 2.0],
            [powers[3] / 6.0, powers[2] / 2.0, powers[1]],
        ]
    )
