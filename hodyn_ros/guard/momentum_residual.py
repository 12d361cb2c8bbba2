"""What acts on the joints beside the commanded efforts, by the momentum of links and rotors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array

EffortModel = Callable[[Motion], Array]  # efforts (n,) of a motion, in the sense of those of the feedforward

GAIN = 60.0  # [1/s] L: what acts from one moment on shows by two thirds after 1 / L
RATE_OVER = 0.01  # [s] that differences of positions are smoothed over, so efforts are as well
_LONGEST = 0.5  # [s] between two samples that are held together
_QUICKEST = 40.0  # [1/s] times the highest speed: no difference of two samples counts for more


class MomentumResidual:
    """The residual `r` (n,) [N.m or N] of joints under known efforts, `r' = L (tau_ext - r)`.

    With the generalised momentum `p = M q'` of links and rotors,

        r = L (p - integral(tau + C^T q' - g + r)) = L / (s + L) (M q'' + C q' + g - tau),

    (De Luca et al. 2006; Haddadin, De Luca and Albu-Schaeffer 2017), as `M' = C + C^T`. From sample to sample
    the change of p at constant M is `M dq'`, so that the model gives the bracket in one call, with the
    difference of two velocities in place of an acceleration that nobody measures: all but its mean is
    filtered out. Velocities are those of the positions alone. Joints count as stiff; what swings in their
    springs is for whoever says how large r may be. `fastest` (n,) [rad/s or m/s]: speeds of the joints.
    """

    def __init__(self, model: EffortModel, fastest: Array) -> None:
        self.value = np.zeros(len(fastest))
        self._model, self._quickest = model, _QUICKEST * fastest
        self.stamp: int | None = None  # of the last sample [ns]
        self._rate = self._effort = self.value

    def restart(self) -> None:
        """Forget what was, as where efforts have not acted for a while."""
        self.value, self.stamp = np.zeros_like(self.value), None

    def update(self, stamp: int, position: Array, rate: Array, effort: Array) -> None:
        """Take a sample at an instant [ns].

        `rate` (n,): of the position, from its differences smoothed over RATE_OVER; `effort` (n,): the mean
        that has acted since the sample before.
        """
        elapsed = np.inf if self.stamp is None else 1e-9 * (stamp - self.stamp)
        if not 0.0 < elapsed < _LONGEST:
            self.value, self._effort = np.zeros_like(effort), effort
        else:
            self._effort = self._effort + (1.0 - np.exp(-elapsed / RATE_OVER)) * (effort - self._effort)
            change = (rate - self._rate) / elapsed
            acceleration = np.minimum(np.maximum(change, -self._quickest), self._quickest)
            beside = self._model(Motion(position, rate, acceleration)) - self._effort
            self.value = self.value + (1.0 - np.exp(-GAIN * elapsed)) * (beside - self.value)
        self.stamp, self._rate = stamp, rate
