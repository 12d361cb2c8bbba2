"""Feedforwards as a stream: checked against the clock and each other, and carried on by their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.feedforward.feedforward import Status, taylor
from hodyn_ros.guard.guard_config import GuardConfig, StreamError
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array

_VELOCITY = 10.0  # [1/s] by which what holds for steps of positions holds for those of velocities


class Acceptance(NamedTuple):
    """What a feedforward that was taken brings."""

    step: float  # in effort, from the one before to this one, at its instant [N.m or N]
    smooth: bool  # whether that is no more than its derivatives explain


class FeedforwardStream:
    """The last feedforward for `joint_names`, none faster than `fastest` (n,) [rad/s or m/s].

    Instants are in nanoseconds.
    """

    def __init__(self, joint_names: Sequence[str], config: GuardConfig, fastest: Array) -> None:
        self.stamp: int | None = None
        self.status = Status.OK
        self._names, self._config, self._fastest = tuple(joint_names), config, fastest
        self._nothing = np.zeros(len(joint_names))
        self._positions = self._efforts = np.zeros((0, len(joint_names)))
        self._motions: dict[int, Motion] = {}  # by instant, since the last feedforward

    @property
    def has_motion(self) -> bool:
        """Whether it says where the motors are to be."""
        return len(self._positions) > 0

    def take(self, now: int, stamp: int, reference: Reference, status: Status, following: bool) -> Acceptance:
        """Take a feedforward; raises StreamError for one that cannot be used.

        One that does not continue the one before raises, too; while it is not `following`, the new one is
        kept.
        """
        positions, efforts = reference
        if not np.isfinite(np.vdot(positions, positions) + np.vdot(efforts, efforts)):
            raise StreamError("it holds numbers that are not finite, or far too large")
        age, timeout = 1e-9 * (now - stamp) + self._config.lead, self._config.timeout
        if abs(age) > timeout:
            where = f"{age:.3g} s before" if age > 0.0 else f"{-age:.3g} s after"
            raise StreamError(
                f"its stamp lies {where} the clock of this node, and it serves for {timeout:g} s; let "
                "both run by the same clock (use_sim_time), or raise 'timeout'",
                clock=True,
            )
        since = np.inf if self.stamp is None else 1e-9 * (stamp - self.stamp)
        if since <= 0.0 and self.stamp is not None and 1e-9 * (self.stamp - now) <= timeout:
            raise StreamError("its stamp is not after that of the last one; stamps must increase", clock=True)
        accepted = Acceptance(0.0, True)
        if 0.0 < since <= 2.0 * timeout:
            jump = self._jump(positions, since)
            if jump is not None:
                if not following:
                    self._keep(stamp, reference, status)
                raise StreamError(jump)
            accepted = self._effort_step(efforts, since)
        self._keep(stamp, reference, status)
        return accepted

    def in_time(self, now: int) -> bool:
        """Whether the last feedforward serves for now."""
        return (
            self.stamp is not None
            and abs(1e-9 * (now - self.stamp) + self._config.lead) <= self._config.timeout
        )

    def motion(self, instant: int) -> Motion:
        """Return the motion at an instant; it stands at zero where none is known."""
        if instant not in self._motions:
            self._motions[instant] = self._evaluated(instant)
        return self._motions[instant]

    def _evaluated(self, instant: int) -> Motion:
        rows, h = self._positions, self._ahead(instant)
        position = rows[0] if len(rows) else self._nothing
        velocity = rows[1] if len(rows) > 1 else self._nothing
        acceleration = rows[2] if len(rows) > 2 else self._nothing
        if len(rows) > 1:
            position = position + h * velocity
        if len(rows) > 2:
            position, velocity = position + (0.5 * h * h) * acceleration, velocity + h * acceleration
        return Motion(position, velocity, acceleration)

    def effort(self, instant: int) -> Array:
        """Return the efforts (n,) at an instant; zero where there are none."""
        return taylor(self._efforts, self._ahead(instant)) if len(self._efforts) else self._nothing

    def _keep(self, stamp: int, reference: Reference, status: Status) -> None:
        self.stamp, self.status = stamp, status
        self._positions, self._efforts = reference.positions[:3], reference.efforts
        self._motions.clear()

    def _ahead(self, instant: int) -> float:
        """Return how far [s] to carry the series on: positions, speeds and efforts alike, either way."""
        h = 0.0 if self.stamp is None else 1e-9 * (instant - self.stamp)
        return min(max(h, -self._config.timeout), self._config.timeout)

    def _jump(self, positions: Array, h: float) -> str | None:
        """Return in words by how much a motion does not continue the last one, None where it does."""
        orders = min(len(positions), len(self._positions))
        for order, name, unit in ((0, "position", "rad or m"), (1, "velocity", "rad/s or m/s"))[:orders]:
            step = np.abs(positions[order] - taylor(self._positions[order:], h))
            tolerance = self._config.reference_step * (1.0, _VELOCITY)[order]
            if float(step.max()) <= tolerance:
                continue
            # what a changed derivative explains, but no more than the joint can do
            explained = np.minimum(
                _change(self._positions, positions, h, order), self._fastest * (h, 1.0)[order]
            )
            joint = int(np.argmax(step - explained))
            if step[joint] > tolerance + explained[joint]:
                return (
                    f"the {name} of joint {self._names[joint]!r} steps by {step[joint]:.3g} {unit} from one "
                    "feedforward to the next; is there a second publisher, or a jump in the desired motion?"
                )
        return None

    def _effort_step(self, efforts: Array, h: float) -> Acceptance:
        if not len(efforts) or not len(self._efforts):
            return Acceptance(0.0, True)
        step = np.abs(efforts[0] - taylor(self._efforts, h))
        largest = float(step.max())
        if largest <= self._config.effort_step:
            return Acceptance(largest, True)
        explained = self._config.effort_step + _change(self._efforts, efforts, h, 0)
        return Acceptance(largest, bool((step <= explained).all()))


def _change(last: Array, new: Array, h: float, order: int) -> Array:
    """Return by how much (n,) a derivative may change when the highest known one does on the way."""
    highest = min(len(last), len(new)) - 1
    power = highest - order
    if power <= 0:
        return np.zeros(last.shape[1])
    return np.asarray((np.abs(last[highest]) + np.abs(new[highest])) * (h**power / factorial(power)))
