"""Where a desired motion is on the path of one that repeats, and the correction that belongs there."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.polynomial import Polynomial

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.learning.correction import Correction
from hodyn_ros.learning.learn import Learned
from hodyn_ros.trajectory.base import Trajectory

_SAME = 2e-3  # of the travel, by which a desired motion may be off the path
_STANDS = 1e-9  # of the largest speed of the path, below which a joint stands
_SLOW = 0.02  # of that speed, below which the velocity of the path says little about the place on it
_OWN_SPEED = 1e-2  # by which the speed of a repetition may differ from one to be learnt from
_EARLY, _TRIED = 10.0, 101  # samples within which a motion is seen to set off, and places that are tried
_CARRIED = 0.05  # [s] over which derivatives of the last efforts carry them on
_FADES = [  # of a value and its first two derivatives, to nothing at 1, with two continuous derivatives
    Polynomial([1.0, 0.0, 0.0, -10.0, 15.0, -6.0]),
    Polynomial([0.0, 1.0, 0.0, -6.0, 8.0, -3.0]),
    Polynomial([0.0, 0.0, 0.5, -1.5, 1.5, -0.5]),
]


class Phase(Enum):
    """What a desired motion is doing."""

    AWAY = "away from the path"
    STARTING = "at the start"
    RUNNING = "on the path"
    ENDED = "at the end"


class PathPlace:
    """Follows a desired motion along the path of another one, from its start to its end.

    `place` [s] is the time at which the path has the present position, `speed` and `change` are its first two
    time derivatives. It is found from one sample to the next by a step of Gauss-Newton with the place that
    goes on at its last speed as a prior, which is all that counts where the path stands still.
    """

    def __init__(self, path: Trajectory) -> None:
        self._path = path
        times = np.linspace(0.0, path.duration, max(200, round(200.0 * path.duration)))
        samples = path.sample(times, 1)
        self._near = _SAME * float(np.ptp(samples[:, 0], axis=0).max())
        fastest = float(np.sqrt((samples[:, 1] ** 2).sum(axis=1).max()))
        self._stands, self._slow = _STANDS * fastest, (_SLOW * fastest) ** 2
        self._ends = path.sample(np.array([0.0, path.duration]), 0)[:, 0]
        self.own_speed = True  # since the start
        self.moves = False  # fast enough for its velocity to say where it is
        self.leave()

    def leave(self) -> None:
        """Know nothing of the motion; it is followed again from the start of the path."""
        self.phase, self.place, self.speed, self.change = Phase.AWAY, 0.0, 0.0, 0.0

    def follow(self, motion: Array, step: float) -> Phase:
        """Take the next sample (3, n) of a desired motion, `step` [s] after the last one."""
        stands = bool(np.abs(motion[1]).max() <= self._stands)
        if self.phase is not Phase.RUNNING:
            if stands:
                self._stand(motion[0])
                return self.phase
            if self.phase is not Phase.STARTING:
                self.leave()
                return self.phase
            early = np.linspace(0.0, _EARLY * step, _TRIED)  # it has set off a few samples ago
            slow = self._path.sample(np.minimum(early, self._path.duration), 1)[:, 1]
            nearest = early[int(np.abs(slow - motion[1]).sum(axis=1).argmin())]
            self.phase, self.place, self.speed, self.own_speed = Phase.RUNNING, nearest - step, 1.0, True
        self._go_on(motion, step)
        if self.phase is Phase.RUNNING and self.place >= self._path.duration - 0.5 * step:
            self.phase = Phase.ENDED
            self.place, self.speed, self.change = self._path.duration, 0.0, 0.0
        return self.phase

    def after(self, h: float) -> tuple[float, float, float]:
        """Return place [s], speed and its change `h` [s] after the last sample."""
        return (
            self.place + h * (self.speed + 0.5 * h * self.change),
            self.speed + h * self.change,
            self.change,
        )

    def _stand(self, position: Array) -> None:
        off = np.abs(self._ends - position).max(axis=1)
        was, (start, end) = self.phase, (off <= self._near).tolist()
        self.leave()
        # a motion that ends where it begins has ended until it sets off again
        if end and was is Phase.ENDED:
            self.phase, self.place = Phase.ENDED, self._path.duration
            if start:
                self.phase, self.place = Phase.STARTING, 0.0
        elif start:
            self.phase = Phase.STARTING

    def _go_on(self, motion: Array, step: float) -> None:
        guess = min(max(self.place + step * self.speed, 0.0), self._path.duration)
        path = self._path.sample(guess, 2)
        along = path[1] / (path[1] @ path[1] + self._slow)
        self.place = min(max(guess + float((motion[0] - path[0]) @ along), 0.0), self._path.duration)
        self.speed += float((motion[1] - path[1] * self.speed) @ along)
        self.change = float((motion[2] - path[2] * self.speed**2) @ along)
        self.moves = bool(path[1] @ path[1] > 4.0 * self._slow)
        if self.moves:
            self.own_speed &= abs(self.speed - 1.0) <= _OWN_SPEED
        off = float(np.abs(motion[0] - self._path.sample(self.place, 0)[0]).max())
        if off > self._near or self.speed < -_OWN_SPEED:
            self.leave()


class Playback:
    """Efforts of a correction at places on its path, without a step wherever something changes.

    What changes - the correction, or whether one is played - leaves a difference of efforts and of their
    first two derivatives, which fades within `fade` [s].
    """

    def __init__(self, n_joints: int, fade: float) -> None:
        self.correction: Correction | None = None  # none is played
        self._fade = fade
        self._last: tuple[float, Array] | None = None  # time [s], efforts with two derivatives (3, n)
        self._rest, self._begun = np.zeros((3, n_joints)), -np.inf
        self._changed = False

    def change(self, correction: Correction | None) -> None:
        """Play another correction from the next efforts on, or none."""
        self.correction, self._changed = correction, True

    def moved(self) -> None:
        """Say that the place on the path does not go on from the last one."""
        self._changed = True

    def fading(self, time: float) -> bool:
        """Whether at a time [s] a change has not faded yet."""
        return self._changed or time < self._begun + self._fade

    def at(self, time: float, place: float, rates: tuple[float, float]) -> Array:
        """Return efforts of the motors and two derivatives (3, n) at a time [s], for a place on the path."""
        wanted = np.zeros_like(self._rest)
        if self.correction is not None:
            wanted = self.correction.at(place, rates, 2)
        if self._changed:
            self._rest, self._changed = self._carried(time) - wanted, False
            self._begun = time if self._rest.any() else -np.inf
        result = wanted + self._left(time - self._begun)
        self._last = (time, result)
        return result

    def _carried(self, time: float) -> Array:
        """Return the last efforts, carried on to a time."""
        if self._last is None:
            return np.zeros_like(self._rest)
        before, (value, rate, second) = self._last
        h = time - before
        if not 0.0 <= h <= _CARRIED:
            return np.array([value, 0.0 * rate, 0.0 * second])
        return np.array([value + h * (rate + 0.5 * h * second), rate + h * second, second])

    def _left(self, since: float) -> Array:
        share = since / self._fade
        if not 0.0 <= share < 1.0:
            return np.zeros_like(self._rest)
        weights = np.array(
            [
                [fade.deriv(k)(share) * self._fade ** (order - k) for order, fade in enumerate(_FADES)]
                for k in range(3)
            ]
        )
        return np.asarray(weights @ self._rest)


def check_fits(learned: Learned, joint_names: tuple[str, ...], path: Trajectory, limit: Array) -> None:
    """Raise InputError unless a correction is of these joints and this motion, within a limit (n,) [N·m].

    The best one that learning would take it back to has to keep the limit as well.
    """
    correction = learned.correction
    if correction.joint_names != joint_names:
        raise InputError(
            f"it is of the joints {list(correction.joint_names)}, the robot has {list(joint_names)}"
        )
    if abs(correction.duration - path.duration) > 1e-6 * path.duration:
        raise InputError(
            f"it was learnt along a motion of {correction.duration:g} s, and this one takes "
            f"{path.duration:g} s"
        )
    positions = path.sample(np.linspace(0.0, path.duration, len(learned.motion)), 0)[:, 0]
    off = np.abs(positions - learned.motion)
    j = int(off.max(axis=0).argmax())
    if off.max() > _SAME * float(np.ptp(positions, axis=0).max()):
        raise InputError(
            f"it was learnt along another motion: {joint_names[j]} is off by {off.max():.3g} rad or m"
        )
    for one in (correction, learned.best):
        size = np.abs(one.sampled(np.linspace(0.0, path.duration, 4 * len(one.coefficients)))).max(axis=0)
        if (size > limit).any():
            j = int((size > limit).argmax())
            raise InputError(
                f"it asks the drive of {joint_names[j]} for {size[j]:.3g} N.m or N, whose limit is "
                f"{limit[j]:.3g}"
            )
