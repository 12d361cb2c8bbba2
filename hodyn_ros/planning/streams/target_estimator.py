"""Where a target is and how it moves, from noisy points of it: a Kalman filter for each joint.

Between two points the jerk of the target is white noise, and so is what each point is off:

    x = (q, q', q''),  x_k+1 = F(dt) x_k + w,  y_k = q_k + v,  var w = Q(dt),  var v = noise^2

Source: Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation (Wiley 2001),
sections 5.2 and 6.2.3 (white-noise jerk). A point far from what is expected begins a new place: a target
that is set anew, not one that has moved there.
"""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array

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
        spread = covariance[:, 0, 0] + self._variance
        error = position - state[0]
        far = np.abs(error) > _SURPRISE * np.sqrt(spread) + 0.5 * self._acceleration * step * step
        gain = covariance[:, :, 0] / spread[:, None]
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
