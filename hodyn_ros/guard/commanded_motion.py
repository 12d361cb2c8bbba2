"""What is commanded before limits: the motion that is followed, the way to it, and that of a stop."""

from __future__ import annotations

import numpy as np

from hodyn_ros.guard.effort_check import EffortModel
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import FirstEffort, GuardConfig, GuardLimits
from hodyn_ros.guard.guard_time import GuardTime
from hodyn_ros.guard.reasons import Fault
from hodyn_ros.guard.transitions import Braking, Fading, Motion, braking_time, within
from hodyn_ros.lie.se3 import Array

_FIRST_STEP = 0.5  # share of a step of efforts that the first ones may be off the model, which is off itself
_BRAKED_FROM = 7.0  # [1/s] times the highest speed: no stop begins from a larger acceleration
_FALSE_EFFORTS = (Fault.EFFORT_STEP, Fault.MISMATCH, Fault.TRACKING, Fault.VELOCITY)  # it may be, of late


class CommandedMotion:
    """The reference of n joints and its efforts at own times [s], from the feedforwards that are `desired`.

    With a `model` the efforts of a stop are those of braking; without, they stay as they are.
    """

    def __init__(
        self,
        n: int,
        desired: FeedforwardStream,
        time: GuardTime,
        config: GuardConfig,
        limits: GuardLimits,
        model: EffortModel | None,
    ) -> None:
        self.desired, self.time, self._config, self._model = desired, time, config, model
        rows = (limits.velocity, limits.lower, limits.upper)
        self._ends = tuple(np.broadcast_to(np.asarray(row, dtype=np.float64), (n,)) for row in rows)
        self._step, self._nothing = limits.effort_steps(config.effort_step), np.zeros(n)
        self.braking: Braking | None = None
        self.release_from = np.inf  # when efforts begin to fade to zero
        self._offset: Fading | None = None  # of the reference while joining
        self._bent: Motion | None = None  # deflections of a stop, which stay what they are
        self._kept = self._nothing  # efforts of a stop beside those of the model
        self._standing: Array | None = None  # efforts once it stands

    def at(self, t: float) -> Motion:
        """Return the reference."""
        if self.braking is not None:
            return self.braking.at(t)
        motion = self.desired.motion(self.time.instant(t))
        if self._offset is None or self._offset.over(t):
            return motion
        return Motion(*(own + more for own, more in zip(motion, self._offset.at(t))))

    def effort(self, t: float) -> Array:
        """Return the efforts (n,) of the reference."""
        if self.braking is None:
            return self.desired.effort(self.time.instant(t))
        if self._model is None:
            return self._kept
        if t < self.braking.end:
            return self._kept + self._model(self.braking.at(t), self._bent)
        if self._standing is None:
            self._standing = self._kept + self._model(self.braking.at(t), self._bent)
        return self._standing

    def deflection(self, t: float) -> Motion | None:
        """Return by how much the motors should be ahead of their links; None where they are not."""
        return self.desired.deflection(self.time.instant(t)) if self.braking is None else self._bent

    def left(self, t: float) -> float:
        """Return the share of the efforts that is left."""
        if t <= self.release_from:
            return 1.0
        return float(Fading(np.ones(1), np.zeros(1), self.release_from, self._config.fade).at(t).position[0])

    def first_effort(self, start: Motion, t: float, most: Array) -> Array:
        """Return the efforts (n,) that the joints carry before the first command, within `most` (n,).

        Those of the feedforward, which may be false from the start: near those of the model, where the motion
        is known. They fade to it.
        """
        if self._config.first_effort is FirstEffort.ZERO:
            return self._nothing
        effort = self.desired.effort(self.time.instant(t))
        if self._model is not None and self.desired.has_motion:
            known = self._model(start, self._bent_by(t))
            effort = known + within(effort - known, _FIRST_STEP * self._step)
        return within(effort, most)

    def join(self, start: Motion, t: float) -> None:
        """Go from a start to the motion, and with it."""
        motion, self.braking, self.release_from = self.desired.motion(self.time.instant(t)), None, np.inf
        off, slow = start.position - motion.position, start.velocity - motion.velocity
        self._offset = Fading(off, slow, t, self._config.fade)

    def drop_offset(self) -> None:
        """Know of no way to the motion any more."""
        self._offset = None

    def reset(self) -> None:
        """Know of no way and no stop."""
        self._offset = self.braking = None

    def brake(self, fault: Fault, last: Motion, feedforward: Array, elsewhere: Motion | None) -> None:
        """Stop from the last command, whose efforts were `feedforward` (n,), or from `elsewhere`."""
        t = self.time.t + self._config.lead
        self._kept, self._standing = self._beside_the_model(fault, last, feedforward, t), None
        self._bent, self._offset = self._bent_by(t), None
        slow = within(last.acceleration, _BRAKED_FROM * self._ends[0])
        begin = last._replace(acceleration=slow) if elsewhere is None else elsewhere
        self.braking = Braking.lasting(begin, t, self._brakes_for(begin))
        self.release_from = np.inf

    def stands_after(self, last: Motion) -> float:
        """Return how long [s] it takes until the reference stands, where `last` was commanded last."""
        if self.braking is None:
            return self._config.lead + self._brakes_for(last)
        return max(self.braking.end - self.time.t, 0.0)

    def _brakes_for(self, begin: Motion) -> float:
        return max(self._config.shortest_stop, braking_time(begin, self._config.deceleration, *self._ends))

    def _bent_by(self, t: float) -> Motion | None:
        """Return by how much motors are ahead of links that stand, as far as the feedforward knows."""
        deflection = self.desired.deflection(self.time.instant(t))
        return None if deflection is None else Motion(deflection.position, self._nothing, self._nothing)

    def _beside_the_model(self, fault: Fault, motion: Motion, effort: Array, t: float) -> Array:
        """Return the efforts (n,) that the model does not explain, such as those of a payload."""
        at = self.time.instant(t)
        if self._model is None:
            return effort
        if fault in _FALSE_EFFORTS and self.desired.beside is not None:
            return self.desired.beside
        if fault is Fault.NO_FEEDFORWARD and self.desired.stamp is not None:
            # what was carried on for long is less certain than what it was carried on from
            at = self.desired.stamp
            motion, effort = self.desired.motion(at), self.desired.effort(at)
        return effort - self._model(motion, self.desired.deflection(at))
