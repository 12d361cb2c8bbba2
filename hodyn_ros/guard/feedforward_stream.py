"""Feedforwards as a stream: checked against clock, model and each other, carried on by derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.motor_pd import Reference
from hodyn_ros.feedforward.feedforward import Status, taylor
from hodyn_ros.guard.effort_check import EffortModel
from hodyn_ros.guard.guard_config import GuardConfig, GuardLimits
from hodyn_ros.guard.reasons import Fault, StreamError
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array

_VELOCITY = 10.0  # [1/s] by which what holds for steps of positions holds for those of velocities
_HORIZON = 0.05  # [s] over which no derivative may change what it is one of by more than the joint can do
_TWICE = 2.0  # what the joint can do, as limits are stated with care
_COMPARED_OVER = 0.1  # [s] that a derivative and what it is one of are compared over
_APART = 2.0  # times the step that two feedforwards may disagree by: so far may they go apart meanwhile
_UNEXPLAINED_OVER = 0.5  # [s] that changes of what the model does not explain are looked at over


class Acceptance(NamedTuple):
    """What a feedforward that was taken brings."""

    step: float  # in effort, from the one before to this one, at its instant [N.m or N]
    smooth: bool  # whether that is no more than its derivatives explain


class FeedforwardStream:
    """The last feedforward for `joint_names`, none faster than `fastest` (n,) [rad/s or m/s].

    With a `model` the efforts are held against those of the motion: what differs may not change by more than
    the `mismatch` of the limits within half a second, and where efforts act `alone`, without feedback, not be
    more before they are followed. Instants are in nanoseconds.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        config: GuardConfig,
        fastest: Array,
        limits: GuardLimits,
        model: EffortModel | None,
    ) -> None:
        n = len(joint_names)
        self.stamp: int | None = None
        self.status = Status.OK
        self.beside: Array | None = (
            None  # (n,) mean of the efforts that the model does not explain [N.m or N]
        )
        self._names, self._config, self._fastest = tuple(joint_names), config, fastest
        self._strongest = np.broadcast_to(np.asarray(limits.effort, dtype=np.float64), (n,))
        self._possible: dict[tuple[str, int], Array] = {}  # derivatives (1 to k, n), by what they are of
        self._mismatch = np.broadcast_to(np.asarray(limits.mismatch, dtype=np.float64), (n,))
        self._model = model if np.isfinite(self._mismatch).any() else None
        self._effort_steps = limits.effort_steps(config.effort_step)
        self._nothing = np.zeros(n)
        self._positions = self._efforts = self._deflections = np.zeros((0, n))
        self._apart = np.zeros((2, n))  # of positions and velocities from their derivatives, lately
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
        positions, efforts, _ = reference
        if not np.isfinite(sum(np.vdot(rows, rows) for rows in reference)):
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
        self._require_possible("velocity", positions[1:3], self._fastest)
        self._require_possible("effort", efforts, self._strongest)
        goes_on = 0.0 < since <= 2.0 * timeout
        if not goes_on:
            self.beside = None
        jump = (self._jump(positions, since) or self._parting(positions, since)) if goes_on else None
        # a robot with loops would look for a pose that is far away, or none, for longer than drives wait
        beside = self._unexplained(reference) if jump is None else None
        if (jump := jump or self._change_beside(beside, following)) is not None:
            if not following:  # what it says of efforts is no measure of the next one
                self._keep(stamp, reference, status, None, np.inf)
            raise jump
        accepted = self._effort_step(efforts, since) if goes_on else Acceptance(0.0, True)
        self._keep(stamp, reference, status, beside, since if goes_on else np.inf)
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
            self._motions[instant] = self._carried_on(self._positions, self._ahead(instant))
        return self._motions[instant]

    def deflection(self, instant: int) -> Motion | None:
        """Return by how much the motors are ahead of their links at an instant; None where they are not."""
        if not len(self._deflections):
            return None
        return self._carried_on(self._deflections, self._ahead(instant))

    def effort(self, instant: int) -> Array:
        """Return the efforts (n,) at an instant; zero where there are none."""
        return taylor(self._efforts, self._ahead(instant)) if len(self._efforts) else self._nothing

    def _carried_on(self, rows: Array, h: float) -> Motion:
        position = rows[0] if len(rows) else self._nothing
        velocity = rows[1] if len(rows) > 1 else self._nothing
        acceleration = rows[2] if len(rows) > 2 else self._nothing
        if len(rows) > 1:
            position = position + h * velocity
        if len(rows) > 2:
            position, velocity = position + (0.5 * h * h) * acceleration, velocity + h * acceleration
        return Motion(position, velocity, acceleration)

    def _keep(
        self, stamp: int, reference: Reference, status: Status, beside: Array | None, since: float
    ) -> None:
        self.stamp, self.status = stamp, status
        self._positions, self._efforts = reference.positions[:3], reference.efforts
        self._deflections = reference.deflections[:3]
        self._motions.clear()
        if np.isinf(since):
            self._apart = np.zeros_like(self._apart)
        if beside is None or self.beside is None or np.isinf(since):
            self.beside = beside
        else:
            share = 1.0 - np.exp(-since / _UNEXPLAINED_OVER)
            self.beside = self.beside + share * (beside - self.beside)

    def _ahead(self, instant: int) -> float:
        """Return how far [s] to carry the series on: positions, speeds and efforts alike, either way."""
        h = 0.0 if self.stamp is None else 1e-9 * (instant - self.stamp)
        return min(max(h, -self._config.timeout), self._config.timeout)

    def _require_possible(self, what: str, rows: Array, most: Array) -> None:
        """Reject derivatives that would take a joint within a moment beyond what it can do."""
        orders = len(rows) - 1
        if orders < 1:
            return
        if (what, orders) not in self._possible:
            h = min(self._config.timeout, _HORIZON)
            grows = [factorial(order) / h**order for order in range(1, orders + 1)]
            self._possible[what, orders] = np.outer(grows, _TWICE * most)
        allowed = self._possible[what, orders]
        beyond = np.abs(rows[1:]) > allowed
        if np.count_nonzero(beyond):
            order, joint = divmod(int(np.argmax(beyond)), len(self._names))
            value, limit = float(rows[order + 1, joint]), float(allowed[order, joint])
            raise StreamError(
                f"derivative {order + 1} of the {what} of joint {self._names[joint]!r} is {value:.3g}, "
                f"and none does more than {limit:.3g}; look at what computes the motion",
                joint=self._names[joint],
                value=abs(value),
                limit=limit,
            )

    def _jump(self, positions: Array, h: float) -> StreamError | None:
        """Return by how much a motion does not continue the last one, None where it does."""
        orders = max(len(positions), len(self._positions))  # what either leaves out is followed as zero
        for order, name, unit in ((0, "position", "rad or m"), (1, "velocity", "rad/s or m/s"))[:orders]:
            new = positions[order] if order < len(positions) else self._nothing
            carried_on = taylor(self._positions[order:], h) if order < len(self._positions) else self._nothing
            step = np.abs(new - carried_on)
            tolerance = self._config.reference_step * (1.0, _VELOCITY)[order]
            if float(step.max()) <= tolerance:
                continue
            # what a changed derivative explains, but no more than the joint can do
            explained = np.minimum(
                _change(self._positions, positions, h, order), self._fastest * (h, 1.0)[order]
            )
            joint = int(np.argmax(step - explained))
            if step[joint] > tolerance + explained[joint]:
                return StreamError(
                    f"the {name} of joint {self._names[joint]!r} steps by {step[joint]:.3g} {unit} from one "
                    "feedforward to the next; is there a second publisher, or a jump in the desired motion?",
                    joint=self._names[joint],
                    value=float(step[joint]),
                    limit=float(tolerance + explained[joint]),
                )
        return None

    def _parting(self, positions: Array, h: float) -> StreamError | None:
        """Return how far a motion has gone away from its own derivatives, None where it goes with them.

        By what steps are more, or less, than the derivatives at both of their ends say.
        """
        last, orders = self._positions, max(min(len(positions), len(self._positions)) - 1, 0)
        for order, name, unit in ((0, "position", "rad or m"), (1, "velocity", "rad/s or m/s"))[:orders]:
            step = positions[order] - last[order]
            least = h * np.minimum(last[order + 1], positions[order + 1])
            most = h * np.maximum(last[order + 1], positions[order + 1])
            outside = step - np.minimum(np.maximum(step, least), most)
            self._apart[order] = np.exp(-h / _COMPARED_OVER) * (self._apart[order] + outside)
            apart = np.abs(self._apart[order])
            tolerance = _APART * self._config.reference_step * (1.0, _VELOCITY)[order]
            if not np.count_nonzero(apart > tolerance):
                continue
            joint = int(np.argmax(apart))
            return StreamError(
                f"the {name} of joint {self._names[joint]!r} has gone {apart[joint]:.3g} {unit} away from "
                "what its derivative says; look at what computes the motion",
                joint=self._names[joint],
                value=float(apart[joint]),
                limit=tolerance,
            )
        return None

    def _unexplained(self, reference: Reference) -> Array | None:
        """Return the efforts (n,) that the model does not explain; None without a model or a motion."""
        if self._model is None or len(reference.positions) < 3 or not len(reference.efforts):
            return None
        bent = Motion(*reference.deflections[:3]) if len(reference.deflections) else None
        return reference.efforts[0] - self._model(Motion(*reference.positions[:3]), bent)

    def _change_beside(self, beside: Array | None, following: bool) -> StreamError | None:
        """Return by how much the efforts have changed without the motion, None where that may be."""
        before = self.beside if following else self._nothing
        if beside is None or before is None:
            return None
        change = np.abs(beside - before)
        if not np.count_nonzero(change > self._mismatch):
            return None
        joint = int(np.argmax(change - self._mismatch))
        return StreamError(
            f"{change[joint]:.3g} N.m or N of the effort of joint {self._names[joint]!r} are new, and no "
            f"motion explains them, {self._mismatch[joint]:.3g} are allowed; has a payload or gravity been "
            "set? Say in the robot file how large one may be (uncertainty)",
            fault=Fault.EFFORT_STEP,
            joint=self._names[joint],
            value=float(change[joint]),
            limit=float(self._mismatch[joint]),
        )

    def _effort_step(self, efforts: Array, h: float) -> Acceptance:
        if not len(efforts) or not len(self._efforts):
            return Acceptance(0.0, True)
        step = np.abs(efforts[0] - taylor(self._efforts, h))
        largest = float(step.max())
        if not np.count_nonzero(step > self._effort_steps):
            return Acceptance(largest, True)
        explained = self._effort_steps + _change(self._efforts, efforts, h, 0)
        return Acceptance(largest, bool((step <= explained).all()))


def _change(last: Array, new: Array, h: float, order: int) -> Array:
    """Return by how much (n,) a derivative may change when the highest known one does on the way."""
    highest = min(len(last), len(new)) - 1
    power = highest - order
    if power <= 0:
        return np.zeros(1)  # for each joint
    return np.asarray((np.abs(last[highest]) + np.abs(new[highest])) * (h**power / factorial(power)))
