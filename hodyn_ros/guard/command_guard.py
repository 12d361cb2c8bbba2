"""Between feedforwards and motors: nothing false is commanded, and whatever fails has a defined end.

One state machine for all that command a robot from feedforwards, in simulation as on a robot:

    WAITING    nothing has been commanded, and nothing is
    JOINING    feedforward and measurements are sound, and the robot stands where the motion is: the reference
               goes from where the robot is to the motion, the effort from the last one to that of the motion
    FOLLOWING  the reference is the motion
    STOPPING   a check has failed: the reference brakes from the last one that was commanded
    STOPPED    it stands; the efforts stay, or go to zero; the only way on is to join again, after a fault
               only when asked

No signal is believed alone: positions are held against velocities and both against the reference, and the
motion against the commanded efforts by the model. What contradicts the rest is not fed back, and no stop
begins from it.

It knows nothing of ROS and has no clock of its own: the same calls give the same commands. Instants of the
outer clock are in nanoseconds; where that clock jumps, or the process was held up, the guard's own time goes
on evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.effort_check import EffortCheck, EffortModel
from hodyn_ros.guard.effort_limiter import MILLISECOND, EffortLimiter
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, GuardLimits, Rejoin
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.guard.reasons import Fault, Obstacle, Progress, Reason, State, StreamError, Transition
from hodyn_ros.guard.transitions import Braking, Fading, Motion, braking_time
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers.effort_observer import EffortObserver

__all__ = ["CommandGuard", "EffortModel", "GuardedCommand"]

_RELAX = 0.1  # [s] in which feedback lets go where it loses its measurement or its reference
_DROP = 0.02  # [s] in which it lets go where what it has fed back was false
_LIMITED_COMMANDS = 5  # in a row, a millisecond or more apart, whose steps may be cut
_FIRST_STEP = 0.5  # share of a step of efforts that the first ones may be off the model, which is off itself
_EFFORT_STEPS = 3  # of the feedforward, one soon after the other
_TRIP_AFTER = 0.1  # [s] of a stop, from which on it must have slowed the robot down
_MISMATCHED_FOR = 0.004  # [s] that efforts and motion have to disagree: signals that contradict show first
_TRIP_MISMATCHED = 0.015  # [s] of a stop, from which on efforts have to do what they should
_AT_ONCE_FOR = 0.002  # [s] that more than this has to last
_AT_ONCE = 4.0  # times as much as stops a robot, which gets it out of hand sooner
_TRIP = 1.75  # times the mismatch that stops a robot: no effort that is commanded does what it should
_RUNS_AWAY = 1.05  # times the speed that stops a robot: the stop makes it faster still
_AHEAD = 0.02  # [s] from now, when a motion has to keep its speed limit as well
_FALLS = 0.1  # share of the highest speed of a robot that its fading efforts hold no more
_SWING = 0.1  # share of the highest speed by which a velocity that is fed back may differ from the others
_BRAKED_FROM = 7.0  # [1/s] times the highest speed: no stop begins from a larger acceleration
_ASTRAY_OVER = 1.0  # [s] that the clock is compared with time over
_IN_TIME = 1.5  # times the usual time between commands, which efforts go on by where they come later
_LATE = 4.0  # times the usual time between commands: nothing goes on by more at once
_GROWS = 0.1  # share by which the mean time between commands becomes longer with one that is late
_EASES_OFF = 0.02  # share by which the mean time between commands becomes shorter with each
_JUMPS = 2  # of measured positions, one after the other, that are no chance
_JUMPED_FOR = 0.03  # [s] without a measurement that could be taken, where all that come are jumps
_FALSE_EFFORTS = (Fault.EFFORT_STEP, Fault.MISMATCH, Fault.TRACKING, Fault.VELOCITY)  # it may be, of late
# With these, what is measured is no place to brake from, and nothing to feed back.
_BLIND = (Fault.FROZEN, Fault.CONTRADICTION, Fault.NO_MEASUREMENT, Fault.LATE_MEASUREMENTS, Fault.MISMATCH)


class GuardedCommand(NamedTuple):
    """What is commanded for one instant, (n,) each."""

    position: Array  # of the reference [rad or m]
    velocity: Array  # of the reference [rad/s or m/s]
    effort: Array  # with the feedback where the guard has gains [N.m or N]
    saturated: bool  # an effort was cut to its limit
    rate_limited: bool  # the step of an effort was cut


class _Issued(NamedTuple):
    """The last command."""

    motion: Motion
    feedforward: Array  # what of the effort is not feedback, before the limits
    effort: Array  # after the limits


class CommandGuard:
    """Commands for `joint_names` from feedforwards and measurements.

    With `gains` (motors, reflected to the links) the efforts hold a feedback on the measured positions. With
    `model` the efforts of a stop are those of braking; without, efforts stay as they are, or go to zero. With
    an `observer` the motion has to agree with what is commanded, as far as its deviations say.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        config: GuardConfig,
        limits: GuardLimits | None = None,
        gains: MotorGains | None = None,
        model: EffortModel | None = None,
        observer: EffortObserver | None = None,
    ) -> None:
        n, limits = len(joint_names), GuardLimits() if limits is None else limits
        velocity, effort, rate = (
            np.broadcast_to(np.asarray(values, dtype=np.float64), (n,))
            for values in (limits.velocity, limits.effort, limits.believed_effort_rate())
        )
        fastest = config.speed_margin * velocity
        self.config = config
        self.state = State.WAITING
        self.reason = Reason(Obstacle.NOTHING_CAME)  # why it is in its state, and not in the next one
        self.transitions: list[Transition] = []  # for whoever reports them, and then clears
        self.faults: dict[Fault, int] = dict.fromkeys(Fault, 0)  # how often each has ended the following
        self.ended = False  # whether nothing more is commanded
        self.listening = True  # whether anybody takes the commands; otherwise nothing is commanded
        self.measured = MeasuredMotion(joint_names, config, fastest)
        self.desired = FeedforwardStream(joint_names, config, fastest, limits, model)
        self._names = tuple(joint_names)
        self._velocity_limit, self._fastest = velocity, fastest
        self._range = tuple(np.broadcast_to(end, (n,)) for end in (limits.lower, limits.upper))
        self._limiter = EffortLimiter(effort, rate, config.effort_step)
        self._effort_step = limits.effort_steps(config.effort_step)
        self._gains, self._model = gains, model
        watched = observer is not None and (gains is not None or config.efforts_act)
        self._check = EffortCheck(observer, fastest) if watched and observer is not None else None
        self._acted, self._acted_for = np.zeros(n), 0.0  # efforts times seconds since the last sample of it
        # [s] own time, by times what is allowed
        self._disagree_since = {1.0: np.inf, _TRIP: np.inf, _AT_ONCE: np.inf}
        self._nothing = np.zeros(n)
        self._t = 0.0  # [s] own time
        self._now: int | None = None
        self._period = MILLISECOND  # [s] between two commands, as it mostly is
        self._commanded = self._paced = False  # whether it was asked for commands before, and twice
        self._late = False  # whether the last two were much further apart
        self._astray = 0.0  # [s] by which the clock has gone otherwise than time, lately
        self._interrupted: Reason | None = None  # how the last two commands were apart
        self._fresh = False  # whether it is known where the robot is
        self._gaps = 0
        self._contradiction: Reason | None = None  # of the measurements, since the motion was joined
        self._looked_at: int | None = None  # stamp of the last measurement that was looked at,
        self._taken_at = -np.inf  # and when that was [s] own time
        self._jumps: list[Reason] = []  # of measured positions since then
        self._position_then = np.full(n, np.nan)  # where a joint is that has not moved since,
        self._reference_then = self._nothing  # and where it should have been
        self._jump: Reason | None = None  # why the last feedforward does not continue the one before
        self._sound_since: float | None = None
        self._issued: _Issued | None = None
        self._offset: Fading | None = None  # of the reference while joining
        self._braking: Braking | None = None
        self._bent: Motion | None = None  # deflections of a stop, which stay what they are
        self._kept = self._nothing  # efforts of a stop beside those of the model
        self._standing: Array | None = None  # efforts once it stands
        self._relax = Fading(self._nothing, self._nothing, 0.0, 1.0)
        self._relax_for: float | None = None  # the next effort goes on from the last one, and for how long
        self._borne = False  # whether something else carries what efforts do not yet, while they fade in
        self._entered = 0.0
        self._release_from = np.inf  # [s] own time
        self._fault: Fault | None = None
        self._asked = False  # to start, although a fault has stopped it
        self._shutdown = self._tripped = self._feeding = False
        self._saturated_for = 0.0
        self._limited_commands, self._effort_steps = 0.0, 0
        self._effort_stepped_at = -np.inf

    # what comes in; both raise StreamError for what cannot be used, and go on with what was there

    def measure(self, now: int, stamp: int, position: Array, velocity: Array | None = None) -> None:
        """Take positions and velocities (n,) that were measured at an instant; see `MeasuredMotion`."""
        try:
            self.measured.take(now, stamp, position, velocity)
        except StreamError as error:
            if error.reason.fault is Fault.CONTRADICTION:
                self._jumps.append(error.reason)
            raise
        self._jumps.clear()

    def follow(self, now: int, stamp: int, reference: Reference, status: Status = Status.OK) -> float:
        """Take a feedforward about an instant; return its step in effort from the one before [N.m or N].

        One that does not continue the one before ends the following.
        """
        before = self.desired.stamp
        try:
            accepted = self.desired.take(now, stamp, reference, status, self._following)
        except StreamError as error:
            if not error.clock and before is not None:
                self._jump, self._sound_since = error.reason, None
            raise
        if not accepted.smooth and self._following:
            # a payload or another setting has changed: go there smoothly
            again = self._t < self._effort_stepped_at + self.config.fade
            self._effort_steps, self._effort_stepped_at = self._effort_steps * again + 1, self._t
            self._relax_for = self.config.fade
        return accepted.step

    def stop(self) -> None:
        """Stop for good, as the process is shutting down."""
        self._shutdown = True

    def start(self) -> bool:
        """Join a motion again although a fault has stopped the robot, once all checks pass.

        Return whether it has stopped at all; one that follows, or waits for its first motion, needs no start.
        """
        self._asked = self.state in (State.STOPPING, State.STOPPED) and not self._shutdown
        return self._asked

    # what goes out

    def command(self, now: int, elapsed: float | None = None) -> GuardedCommand | None:
        """Return the command for an instant; None before anything was joined, and after the end.

        `elapsed` [s]: the time since the call before by a clock that cannot be set; without it, a clock that
        is set forward looks like a process that was held up. The end is after `stop`, and where nobody can
        look after the robot any more: without measurements, after a hold-up as long as drives wait for a
        command, or when it did not slow down. Then `ended` says so, until a motion is joined again.
        """
        since = self._advance(now, elapsed)
        self._fresh = self._has_measurement()
        self._watch_efforts()
        self._change_state(self._find_fault())
        self.ended = self.ended or self._at_the_end()
        if self.state is State.WAITING or self.ended:
            self._acted_for = 0.0
            return None
        acts = self._t + self.config.lead
        self._catch_up(acts)
        motion, left = self._motion(acts), self._released(acts)
        feedback = left * self._feedback()
        total = left * self._feedforward(acts) + feedback
        if self._relax_for is not None:
            # whatever has changed, the effort goes on from the last one
            before = total if self._issued is None else self._issued.effort
            self._relax, self._relax_for = Fading(before - total, self._nothing, acts, self._relax_for), None
        if acts < self._relax.start + self._relax.duration:
            total = total + self._relax.at(acts).position
        if not np.isfinite(total).all():
            self._let_go(Reason(Fault.MISMATCH, value=np.inf))
        if self._tripped:
            self._limiter.last = total = self._nothing
        limited = self._limiter(total, since)
        saturated = bool(np.count_nonzero(limited.saturated))
        cut = bool(np.count_nonzero(limited.rate_limited))
        self._saturated_for = self._saturated_for + since if saturated else 0.0
        # one that comes sooner after the last could also do less: it counts by its share, as in the limiter
        share = min(since / MILLISECOND, 1.0)
        self._limited_commands = self._limited_commands + share if cut else 0.0
        self._issued = _Issued(motion, total - feedback, limited.effort)
        return GuardedCommand(motion.position, motion.velocity, limited.effort, saturated, cut)

    # time: the guard's own in seconds, that of the clock in nanoseconds

    def _advance(self, now: int, elapsed: float | None) -> float:
        """Let the guard's own time go on; return for how long drives have held the last command [s].

        No longer than usual: efforts and a stop go on from where they were, however late a command is.
        """
        passed = self._period if self._now is None else 1e-9 * (now - self._now)
        real = passed if elapsed is None or self._now is None else elapsed
        self._now, self._interrupted = now, None
        known = real >= 0.0  # else nobody knows how much it was
        self._astray = (
            np.exp(-max(real, 0.0) / _ASTRAY_OVER) * self._astray + passed - real if known else np.inf
        )
        if real > self.config.drive_timeout:
            self._interrupted = Reason(Fault.HELD_UP, value=real, limit=self.config.drive_timeout)
        elif not abs(self._astray) <= self.config.clock_tolerance:
            self._interrupted = Reason(Fault.CLOCK, value=passed, limit=self.config.clock_tolerance)
            self._astray = 0.0
        real = real if known else self._period
        # by the slower of two clocks, unless it stands still
        real = min(real, passed) if min(real, passed) > 0.0 else max(real, passed)
        if not self._paced and real > 0.0 and self._interrupted is None and self.state is State.WAITING:
            self._period = real  # the first is the best guess
            self._paced = self._commanded
        self._commanded = True
        self._late = real > _LATE * self._period
        real = min(real, _LATE * self._period)
        since = real if real <= _IN_TIME * self._period else self._period
        self._period += (_GROWS if real > self._period else _EASES_OFF) * (real - self._period)
        self._t += real
        if self._issued is not None:
            self._acted, self._acted_for = self._acted + real * self._issued.effort, self._acted_for + real
        return since

    @property
    def _clock(self) -> int:
        return 0 if self._now is None else self._now

    def _instant(self, t: float) -> int:
        """Return the instant of the clock at the guard's own time, by a clock that goes as time does."""
        return self._clock + round(1e9 * (t - self._t - self._astray))

    def _measured_at(self) -> float:
        """Return the guard's own time of the last measurement, no further back than a feedforward reaches."""
        age = max(self.measured.age(self._clock), self._t - self._taken_at)  # the clock may stand still
        return self._t - min(age, self.config.timeout)

    def _has_measurement(self) -> bool:
        """Whether the last measurement says where the robot is now.

        One that comes after a gap may be that of another place, and one that contradicts others anything.
        """
        measured = self.measured
        gap = measured.gaps != self._gaps and self._interrupted is None
        self._gaps = measured.gaps
        if measured.stamp != self._looked_at:
            self._taken_at = self._t
        acts = self._following or self.state is State.STOPPING or self._feeding
        if acts and len(self._jumps) >= _JUMPS and self._t > self._taken_at + _JUMPED_FOR:
            self._contradiction = self._contradiction or self._jumps[0]
            return False
        old = not measured.fresh(self._clock) or self._t > self._taken_at + self.config.measurement_timeout
        if old or gap and self._following:
            return False
        contradiction = measured.contradiction() or self._frozen()
        self._looked_at = measured.stamp
        # as long as they act, signals that agree again are no proof
        self._contradiction = (
            contradiction if self._contradiction is None or not acts else self._contradiction
        )
        return self._contradiction is None

    def _frozen(self) -> Reason | None:
        """Return which joint stays the same, bit for bit, while its reference moves on; or it is blocked."""
        if self.state is State.WAITING or self.ended or not (self.desired.has_motion or self._braking):
            self._position_then = np.full_like(self._nothing, np.nan)
            return None
        if (
            self.measured.stamp == self._looked_at
        ):  # nothing new, which is for the age of measurements to tell
            return None
        position, reference = self.measured.position, self._motion(self._measured_at()).position
        moved = position != self._position_then
        self._position_then = position
        self._reference_then = np.where(moved, reference, self._reference_then)
        should = np.abs(reference - self._reference_then)
        if not np.count_nonzero(should > 2.0 * self.config.resolution):
            return None
        joint = int(np.argmax(should))
        return Reason(Fault.FROZEN, self._names[joint], float(should[joint]), 2.0 * self.config.resolution)

    def _watch_efforts(self) -> None:
        """Hold the motion against the efforts that were commanded since the last measurement."""
        check, stamp = self._check, self.measured.stamp
        if check is None:
            return
        if self._issued is None or self.state is State.WAITING or self.ended:
            check.restart()
            self._disagree_since = dict.fromkeys(self._disagree_since, np.inf)
        elif self._fresh and stamp is not None and stamp != check.stamp and self._acted_for > 0.0:
            effort = self._acted / self._acted_for
            check.update(stamp, self.measured.position, self.measured.rate, effort)
            for times, since in self._disagree_since.items():
                beyond = np.count_nonzero(np.abs(check.value) > self._allowed(check, times))
                self._disagree_since[times] = min(since, self._t) if beyond else np.inf
        else:
            return
        self._acted, self._acted_for = self._nothing, 0.0

    def _allowed(self, check: EffortCheck, times: float) -> Array:
        """Return by how much (n,) efforts and motion may disagree."""
        allowed = times * check.allowed
        if self._borne:  # brakes, or another controller
            allowed = allowed + np.abs(self._relax.at(self._t).position)
        return allowed

    def _mismatched(self, times: float = 1.0) -> Reason | None:
        """Return which joint moves as if much acted on it beside its effort, for a while."""
        lasts = _MISMATCHED_FOR if times == 1.0 else _AT_ONCE_FOR
        lately = self._t <= self._disagree_since[times] + lasts
        if self._check is None or not self._fresh or lately:
            return None
        allowed = self._allowed(self._check, times)
        joint = int(np.argmax(np.abs(self._check.value) - allowed))
        value = float(self._check.value[joint])
        return Reason(Fault.MISMATCH, self._names[joint], value, float(allowed[joint]))

    # the checks

    @property
    def _following(self) -> bool:
        return self.state in (State.JOINING, State.FOLLOWING)

    def _find_fault(self) -> Reason | None:
        """Return the first check that fails, and what it has found."""
        config = self.config
        jump, self._jump = self._jump, None
        if self._shutdown:
            return Reason(Fault.SHUTDOWN)
        if self._interrupted is not None:
            return self._interrupted
        if self._contradiction is not None:
            return self._contradiction
        if config.measured and not self._fresh:
            return Reason(Fault.NO_MEASUREMENT, limit=config.measurement_timeout)
        if self._gains is not None and self.measured.latency > config.latency:
            return Reason(Fault.LATE_MEASUREMENTS, value=self.measured.latency, limit=config.latency)
        if jump is not None:
            return jump
        if not self.desired.in_time(self._clock):
            return Reason(Fault.NO_FEEDFORWARD, limit=config.timeout)
        if beyond := self._beyond_limits():
            names = " | ".join(bit.name or "" for bit in Status if bit and bit in beyond)
            return Reason(Fault.STATUS, value=float(beyond), note=names)
        at = self._measured_at() if self._fresh else self._t
        motion = self.desired.motion(self._instant(at))
        ahead = motion.velocity + _AHEAD * motion.acceleration
        fast = self._too_fast(np.maximum(np.abs(motion.velocity), np.abs(ahead)), "that is the motion")
        if fast is not None or (fast := self._robot_too_fast()) is not None:
            return fast
        return self._find_fault_of_following() if self._following else None

    def _find_fault_of_following(self) -> Reason | None:
        config = self.config
        recent = self.measured.age(self._clock) <= config.timeout  # so far back the reference is known
        if (mismatch := self._mismatched() or self._mismatched(_AT_ONCE)) is not None:
            return mismatch
        if self._fresh and recent and self.desired.has_motion:
            off = np.abs(self._motion(self._measured_at()).position - self.measured.position)
            joint = int(np.argmax(off))
            if off[joint] > config.tracking_error:
                return Reason(Fault.TRACKING, self._names[joint], float(off[joint]), config.tracking_error)
        if (leap := self._leap()) is not None:
            return leap
        if self._saturated_for > config.saturation_time:
            return Reason(Fault.SATURATION, value=self._saturated_for, limit=config.saturation_time)
        if self.state is State.FOLLOWING and self._limited_commands > _LIMITED_COMMANDS:
            return Reason(
                Fault.EFFORT_STEP,
                value=self._limited_commands,
                limit=_LIMITED_COMMANDS,
                note=f"steps of the effort were cut in more than {_LIMITED_COMMANDS} commands in a row; let "
                "the motion keep the limits of the effort rates, or raise 'effort_step'",
            )
        if self._effort_steps > _EFFORT_STEPS:
            return Reason(
                Fault.EFFORT_STEP,
                value=float(self._effort_steps),
                limit=_EFFORT_STEPS,
                note=f"efforts have stepped {self._effort_steps} times within {config.fade:g} s each; is "
                "there a second publisher?",
            )
        return None

    def _leap(self) -> Reason | None:
        """Return how far the reference of drives with a loop of their own would leap after a hold-up.

        They have stayed where they were sent last, and would pull as hard as they can.
        """
        if not (self._drives_follow and self._late) or self._issued is None:
            return None
        leap = np.abs(self._motion(self._t + self.config.lead).position - self._issued.motion.position)
        joint, most = int(np.argmax(leap)), self.config.join_within or np.inf
        if not leap[joint] > most:
            return None
        note = "so far would the reference of its drive leap, as commands were held up"
        return Reason(Fault.REFERENCE_STEP, self._names[joint], float(leap[joint]), most, note=note)

    def _beyond_limits(self) -> Status:
        beyond = self.desired.status & self.config.stop_on
        if self.desired.status & Status.EFFORT_CLAMPED:
            beyond &= ~Status.EFFORT_LIMIT_EXCEEDED  # so it was asked for
        return beyond

    @property
    def _speed(self) -> Array:
        """The velocity (n,) in the middle of three: measured, of the positions, of the reference."""
        one, two = self.measured.velocity, self.measured.rate
        third = self._motion(self._measured_at()).velocity
        return np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), third))

    def _believed_velocity(self, reference: Array) -> Array:
        """Return the measured velocity (n,), near those of positions and reference.

        One that neither comes near is false, and soon shows to be.
        """
        rate, swing = self.measured.rate, _SWING * self._fastest
        least, most = np.minimum(rate, reference) - swing, np.maximum(rate, reference) + swing
        return np.minimum(np.maximum(self.measured.velocity, least), most)

    def _robot_too_fast(self, share: float = 1.0) -> Reason | None:
        if not self._fresh:
            return None
        reference = self._motion(self._measured_at()).velocity
        return self._too_fast(self._believed_velocity(reference), share=share)

    def _too_fast(self, velocity: Array, note: str = "", share: float = 1.0) -> Reason | None:
        fast = np.abs(velocity) > share * self._fastest
        if not np.count_nonzero(fast):  # takes a fifth of the time of fast.any()
            return None
        joint = int(np.argmax(fast))
        speed, limit = float(velocity[joint]), float(share * self._velocity_limit[joint])
        return Reason(Fault.VELOCITY, self._names[joint], speed, limit, note=note)

    def _obstacle(self, fault: Reason | None) -> Reason | None:
        """Return why the motion cannot be joined now, None where it can."""
        config, measured = self.config, self.measured
        if fault is not None:
            return fault
        if self._sound_since is None or self._t < self._sound_since + config.settle:
            return Reason(Obstacle.SETTLING, limit=config.settle)
        if config.join_within:
            if not self._fresh:
                return Reason(Obstacle.UNKNOWN_POSE)
            if not self.desired.has_motion:
                return Reason(Obstacle.NO_POSITIONS)
            motion = self.desired.motion(self._instant(self._measured_at()))
            off = np.abs(motion.position - measured.position)
            joint = int(np.argmax(off))
            if off[joint] > config.join_within:
                return Reason(Obstacle.POSE, self._names[joint], float(off[joint]), config.join_within)
            apart = np.abs(motion.velocity - measured.velocity)
            joint = int(np.argmax(apart))
            if apart[joint] > config.join_speed:
                return Reason(Obstacle.SPEED, self._names[joint], float(apart[joint]), config.join_speed)
        if self._fault is not None and not (self._asked or self._rejoins_after(self._fault)):
            return Reason(Obstacle.NOT_ASKED, note=f"(it has stopped: {self._fault.value})")
        return None

    def _rejoins_after(self, fault: Fault) -> bool:
        """Whether it may go on by itself."""
        rejoin = self.config.rejoin
        return rejoin is Rejoin.ALWAYS or (rejoin is Rejoin.GAP and fault is Fault.NO_FEEDFORWARD)

    # the state machine

    def _change_state(self, fault: Reason | None) -> None:
        if fault is not None or not self.listening:
            self._sound_since = None
        elif self._sound_since is None:
            self._sound_since = self._t
        if not self.listening:
            self._wait()
        elif self._following:
            if fault is not None:
                self._begin_to_stop(fault)
            elif self.state is State.JOINING and self._t >= self._entered + self.config.fade:
                self._borne = False  # what is left of an offset, as of a late command, still fades
                self._enter(State.FOLLOWING, Reason(Progress.ARRIVED))
        else:
            if self.state is State.STOPPING and self._braking is not None and self._t >= self._braking.end:
                self._stand()
            if self.state is not State.WAITING and not self.ended:
                self._let_go_where_it_has_to()
            if self._tripped and not self.ended:
                return  # efforts go to zero first
            obstacle = self._obstacle(fault)
            if self.state is State.STOPPING and self._fault is not Fault.NO_FEEDFORWARD:
                return  # only a stream that has been interrupted is taken up before the robot stands
            if obstacle is None:
                self._join()
            elif self.state is not State.STOPPING:
                self.reason = obstacle

    def _enter(self, state: State, reason: Reason) -> None:
        self.transitions.append(Transition(self.state, state, reason))
        self.state, self.reason, self._entered = state, reason, self._t
        self._saturated_for, self._limited_commands, self._effort_steps = 0.0, 0.0, 0

    def _wait(self) -> None:
        reason = Reason(Obstacle.NOT_LISTENING)
        if self.state is not State.WAITING:
            self._issued = self._offset = self._braking = self._fault = None
            self._enter(State.WAITING, reason)
        self.reason = reason

    def _join(self) -> None:
        acts = self._t + self.config.lead
        motion, anew = self.desired.motion(self._instant(acts)), self._issued is None or self.ended
        commanded = (
            self._feeding or self._gains is None
        )  # the reference is where the robot was commanded to be
        if not anew and commanded and self._t < self._release_from:
            start = self._motion(acts)
        elif self._fresh:
            start = Motion(self.measured.position, self.measured.velocity, motion.acceleration)
        else:
            start = motion
        if anew:
            if (np.abs(start.velocity) <= self.config.join_speed).all():  # it stands, and has yet to set off
                start = start._replace(acceleration=self._nothing)
            first = self._first_effort(start, acts)
            self._issued, self._limiter.last = _Issued(start, first, first), first
        self._offset, self._braking = self._fading_from(start, motion, acts), None
        self._release_from, self._fault, self._tripped, self.ended = np.inf, None, False, False
        self._asked, self._contradiction = False, None
        self._borne = anew and self.config.first_effort is not FirstEffort.FEEDFORWARD
        self._relax_for = self.config.fade
        self._enter(State.JOINING, Reason(Progress.JOINED))

    def _first_effort(self, start: Motion, acts: float) -> Array:
        """Return the efforts (n,) that the joints carry before the first command.

        Those of the feedforward, near those of the model, as it may be false from the start; they fade to it.
        """
        if self.config.first_effort is FirstEffort.ZERO:
            return self._nothing
        effort = self.desired.effort(self._instant(acts))
        if self._model is not None:
            known = self._model(start, self._bent_by(acts))
            effort = known + _within(effort - known, _FIRST_STEP * self._effort_step)
        return _within(effort, self._limiter.limit)

    def _begin_to_stop(self, reason: Reason) -> None:
        fault = reason.fault
        assert self._issued is not None and fault is not None  # there was a command since it has joined
        self.faults[fault] += 1
        self._fault, self._asked, self._borne = fault, False, False
        if fault is Fault.HELD_UP:
            self._end_held_up(reason)
            return
        begin, at, feedback_here = self._issued.motion, self._t + self.config.lead, self._gains is not None
        self._kept, self._standing = self._beside_the_model(fault, self._issued, at), None
        self._bent = self._bent_by(at)
        acceleration = _within(begin.acceleration, _BRAKED_FROM * self._velocity_limit)
        begin = begin._replace(acceleration=acceleration)
        if self._fresh and feedback_here and fault in (Fault.TRACKING, Fault.VELOCITY, Fault.MISMATCH):
            # feedback would pull at a robot that is not where it was commanded to be
            speed = _within(self._speed, self._velocity_limit)
            begin = Motion(self.measured.position, speed, self._nothing)
        lasts = braking_time(begin, self.config.deceleration, self._velocity_limit, *self._range)
        self._braking = Braking.lasting(begin, at, max(self.config.shortest_stop, lasts))
        self._offset, self._relax_for = None, _RELAX
        helpless = (
            self._model is None and not feedback_here
        )  # nothing here slows the robot down: no use to wait
        self._release_from = at if self.config.end is End.ZERO and helpless else np.inf
        self._enter(State.STOPPING, reason)

    def _end_held_up(self, reason: Reason) -> None:
        """Command nothing more: the drives have gone on without, and hold what nobody here knows."""
        self._enter(State.STOPPED, reason)
        self._offset, self._feeding, self.ended = None, False, True

    def _bent_by(self, t: float) -> Motion | None:
        """Return by how much motors are ahead of links that stand, as far as the feedforward knows."""
        deflection = self.desired.deflection(self._instant(t))
        return None if deflection is None else Motion(deflection.position, self._nothing, self._nothing)

    def _beside_the_model(self, fault: Fault, issued: _Issued, t: float) -> Array:
        """Return the efforts (n,) that the model does not explain, such as those of a payload."""
        motion, effort, at = issued.motion, issued.feedforward, self._instant(t)
        if self._model is None:
            return effort
        if fault in _FALSE_EFFORTS and self.desired.beside is not None:
            return self.desired.beside
        if fault is Fault.NO_FEEDFORWARD and self.desired.stamp is not None:
            # what was carried on for long is less certain than what it was carried on from
            at = self.desired.stamp
            motion, effort = self.desired.motion(at), self.desired.effort(at)
        return effort - self._model(motion, self.desired.deflection(at))

    def _stand(self) -> None:
        self._enter(State.STOPPED, self.reason)
        if self.config.end is End.ZERO:
            wait = 0.0 if self._alone() else self.config.release_after
            self._release_from = min(self._release_from, self._t + wait)

    def _let_go_where_it_has_to(self) -> None:
        """Let go at once where no command does any good.

        Where the robot is too fast although it should have slowed down, feedback swings, or the efforts that
        stay are those of a motion; where it moves otherwise than any effort would move it, a motor or its
        sensor does not do what it should.
        """
        if self._interrupted is not None and self._interrupted.fault is Fault.HELD_UP:
            self._end_held_up(self._interrupted)
        if self._tripped or self.ended:
            return
        slow_by = self._entered + (_TRIP_AFTER if self.state is State.STOPPING else 0.0)
        reason = self._mismatched(_TRIP) or self._mismatched(_AT_ONCE)
        if reason is None and self._t >= self._entered + _TRIP_MISMATCHED:
            reason = self._mismatched()
        if reason is None and self._fault is Fault.MISMATCH:
            reason = self._contradiction  # nobody can see any more whether motors do what they should
        if reason is None:
            share = _FALLS if self._t > self._release_from else 1.0 if self._t >= slow_by else _RUNS_AWAY
            reason = self._robot_too_fast(share)
        if reason is not None:
            self._let_go(reason)

    def _let_go(self, reason: Reason) -> None:
        assert reason.fault is not None
        self.faults[reason.fault] += 1
        self._fault, self._tripped, self._asked = reason.fault, True, False
        self._enter(State.STOPPED, replace(reason, tripped=True))

    def _alone(self) -> bool:
        """Whether nobody looks after a robot that stands."""
        return self._shutdown or self._tripped or (self._gains is not None and not self._feeding)

    def _at_the_end(self) -> bool:
        if self.state is State.WAITING:
            return self._shutdown
        if self.state is not State.STOPPED or not self._alone():
            return False
        if self._tripped:
            return self._issued is not None and not self._issued.effort.any()
        if self._gains is not None and not self._feeding:  # nobody would see a robot fall whose efforts fade
            return True
        if self.config.end is End.ZERO:
            return self._t >= self._release_from + self.config.fade
        if self._gains is not None or not self._fresh:
            return True
        # what is held may push a robot on that nothing here slows down; as long as it moves, it is watched
        return bool((np.abs(self.measured.velocity) <= self.config.join_speed).all())

    # the reference and the efforts, at the guard's own time

    @property
    def _drives_follow(self) -> bool:
        """Whether drives have a loop of their own, which follows the reference."""
        return self._gains is None and not self.config.efforts_act

    def _catch_up(self, acts: float) -> None:
        """Let a reference that is late go on from the last one: drives have stayed there, and would leap."""
        if not (self._drives_follow and self._late and self._following) or self._issued is None:
            return
        self._offset = self._fading_from(self._issued.motion, self.desired.motion(self._instant(acts)), acts)

    def _fading_from(self, start: Motion, motion: Motion, acts: float) -> Fading:
        """Return the offset of the reference that takes it from a start to the motion."""
        off, slow = start.position - motion.position, start.velocity - motion.velocity
        return Fading(off, slow, acts, self.config.fade)

    def _motion(self, t: float) -> Motion:
        if self._braking is not None:
            return self._braking.at(t)
        motion = self.desired.motion(self._instant(t))
        if self._offset is None:
            return motion
        off = self._offset.at(t)
        return Motion(*(own + more for own, more in zip(motion, off)))

    def _feedforward(self, t: float) -> Array:
        if self._braking is None:
            return self.desired.effort(self._instant(t))
        if self._model is None:
            return self._kept
        if t < self._braking.end:
            return self._kept + self._model(self._braking.at(t), self._bent)
        if self._standing is None:
            self._standing = self._kept + self._model(self._braking.at(t), self._bent)
        return self._standing

    def _feedback(self) -> Array:
        """Return the efforts (n,) of the feedback; none without gains or without a fresh measurement."""
        fresh = self._gains is not None and self._fresh and self._fault not in _BLIND
        if self._feeding and not fresh:
            false = self._contradiction is not None or self._fault is Fault.MISMATCH
            self._relax_for = _DROP if false else self._relax_for or _RELAX
        # one that has lost its measurement may find another robot: it comes back by joining alone
        self._feeding = fresh and (self._feeding or self._following)
        if self._gains is None or not self._feeding:
            return self._nothing
        wanted, measured = self._motion(self._measured_at()), self.measured
        off = wanted.position - measured.position
        slow = wanted.velocity - self._believed_velocity(wanted.velocity)
        return self._gains.proportional * off + self._gains.derivative * slow

    def _released(self, t: float) -> float:
        """Return the share of the efforts that is left."""
        if t <= self._release_from:
            return 1.0
        return float(Fading(np.ones(1), np.zeros(1), self._release_from, self.config.fade).at(t).position[0])


def _within(values: Array, most: Array | float) -> Array:
    return np.minimum(np.maximum(values, -most), most)
