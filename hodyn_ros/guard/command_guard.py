"""Between feedforwards and motors: nothing false is commanded, and whatever fails has a defined end.

One state machine for all that command a robot from feedforwards, in simulation as on a robot:

    WAITING    nothing has been commanded, and nothing is
    JOINING    feedforward and measurements are sound, and the robot stands where the motion is: the reference
               goes from where the robot is to the motion, the effort from the last one to that of the motion
    FOLLOWING  the reference is the motion
    STOPPING   a check has failed: the reference brakes from the last one that was commanded
    STOPPED    it stands; the efforts stay, or go to zero; the only way on is to join again, after a fault
               only when asked

`guard_checks` judges, `commanded_motion` says what is commanded in each state, `guard_time` when it is. What
contradicts the rest is not fed back, and no stop begins from it. It knows nothing of ROS and has no clock of
its own: the same calls give the same commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.commanded_motion import CommandedMotion
from hodyn_ros.guard.effort_check import TRIP, EffortModel, EffortWatch
from hodyn_ros.guard.effort_limiter import EffortLimiter
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_checks import GuardChecks
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, GuardLimits, Rejoin
from hodyn_ros.guard.guard_time import GuardTime
from hodyn_ros.guard.link_swing import LinkSwing
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.guard.reasons import Fault, Obstacle, Progress, Reason, State, StreamError, Transition
from hodyn_ros.guard.transitions import Fading, Motion, within
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers.effort_observer import EffortObserver

__all__ = ["CommandGuard", "EffortModel", "GuardedCommand"]

_RELAX = 0.1  # [s] in which feedback lets go where it loses its measurement or its reference
_DROP = 0.02  # [s] in which it lets go where what it has fed back was false
_TRIP_AFTER = 0.1  # [s] of a stop, from which on it must have slowed the robot down
_TRIP_MISMATCHED = 0.015  # [s] of a stop, from which on efforts have to do what they should
_RUNS_AWAY = 1.05  # times the speed that stops a robot: the stop makes it faster still
_FALLS = 0.1  # share of the highest speed of a robot that its fading efforts hold no more
_ASTRAY = (Fault.TRACKING, Fault.VELOCITY, Fault.MISMATCH)  # the robot is not where it was commanded to be
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
        self._time, self._gains, self._helpless = GuardTime(config), gains, gains is None and model is None
        self._commanded = CommandedMotion(n, self.desired, self._time, config, limits, model)
        watched = gains is not None or config.efforts_act
        self._watch = EffortWatch(joint_names, observer if watched else None, fastest)
        self._swing = None if observer is None else LinkSwing(observer.stiffness, observer.link_efforts)
        self._checks = GuardChecks(
            joint_names, config, velocity, self.measured, self._commanded, self._watch, gains is not None
        )
        self._limiter = EffortLimiter(effort, rate, config.effort_step)
        self._velocity_limit, self._nothing = velocity, np.zeros(n)
        self._issued: _Issued | None = None
        self._relax = Fading(self._nothing, self._nothing, 0.0, 1.0)
        self._relax_for: float | None = None  # the next effort goes on from the last one, and for how long
        self._borne = False  # whether something else carries what efforts do not yet, while they fade in
        self._entered = 0.0  # [s] own time
        self._fault: Fault | None = None
        self._asked = False  # to start, although a fault has stopped it
        self._shutdown = self._ends = self._tripped = self._feeding = False

    # what comes in; both raise StreamError for what cannot be used, and go on with what was there

    def measure(self, now: int, stamp: int, position: Array, velocity: Array | None = None) -> None:
        """Take positions and velocities (n,) that were measured at an instant; see `MeasuredMotion`."""
        try:
            self.measured.take(now, stamp, position, velocity)
        except StreamError as error:
            if error.reason.fault is Fault.CONTRADICTION:
                self._checks.measured_jumps.append(error.reason)
            raise
        self._checks.measured_jumps.clear()

    def follow(self, now: int, stamp: int, reference: Reference, status: Status = Status.OK) -> float:
        """Take a feedforward about an instant; return its step in effort from the one before [N.m or N].

        One that does not continue the one before ends the following.
        """
        before = self.desired.stamp
        try:
            accepted = self.desired.take(now, stamp, reference, status, self.state.follows)
        except StreamError as error:
            if not error.clock and before is not None:
                self._checks.jump, self._checks.sound_since = error.reason, None
            raise
        if not accepted.smooth and self.state.follows:
            # a payload or another setting has changed: go there smoothly
            self._checks.count_effort_step()
            self._relax_for = self.config.fade
        return accepted.step

    def stop(self, *, ends: bool = True) -> None:
        """Stop for good; `ends`: nobody looks after the robot once it stands, as the process shuts down."""
        self._shutdown, self._ends = True, ends

    @property
    def stop_takes(self) -> float:
        """How long [s] a stop that begins now takes until commands end."""
        if self._issued is None or self.ended or self._tripped:
            return 0.0
        stands = self._commanded.stands_after(self._issued.motion)
        if self.config.end is not End.ZERO:
            return stands
        fades_from = self._commanded.release_from - self._time.t
        if self.state.follows and self._helpless:
            fades_from = self.config.lead
        return max(stands, min(stands, fades_from) + self.config.fade)

    def start(self) -> bool:
        """Join a motion again although a fault has stopped the robot, once all checks pass.

        Return whether it has stopped at all; one that follows, or waits for its first motion, needs no start.
        """
        self._asked = self.state in (State.STOPPING, State.STOPPED) and not self._shutdown
        return self._asked

    def contradicted(self, before: EffortModel, after: EffortModel) -> Reason | None:
        """Return which joint moves otherwise than another model of the robot says, such as one with a load.

        `before`: the model that counts. None where the motion may be that of either, and nothing commanded.
        """
        if self._issued is None:
            return None
        motion = self._issued.motion
        return self._watch.contradicted(after(motion) - before(motion))

    # what goes out

    def command(self, now: int, elapsed: float | None = None) -> GuardedCommand | None:
        """Return the command for an instant [ns]; None before anything was joined, and after the end.

        `elapsed` [s]: the time since the call before by a clock that cannot be set; without it, a clock that
        is set forward looks like a process that was held up. The end is after `stop`, and where nobody can
        look after the robot any more: without measurements, after a hold-up as long as drives wait for a
        command, or when it did not slow down. Then `ended` says so, until a motion is joined again.
        """
        went_on, since = self._time.advance(now, elapsed, self.state is State.WAITING)
        if self._issued is not None:
            self._watch.act(self._issued.effort, went_on)
        self._look()
        last = None if self._issued is None else self._issued.motion
        fault = Reason(Fault.SHUTDOWN) if self._shutdown else self._checks.fault(self.state, last)
        self._change_state(fault)
        self.ended = self.ended or self._at_the_end()
        if self.state is State.WAITING or self.ended:
            self._feeding = False  # what contradicts itself now is no matter of the next motion
            return None
        acts = self._time.t + self.config.lead
        if self._checks.may_leap and self.state.follows and self._issued is not None:
            self._commanded.join(self._issued.motion, acts)
        motion, left = self._commanded.at(acts), self._commanded.left(acts)
        feedback = left * self._feedback()
        total = left * self._commanded.effort(acts) + feedback
        if self._relax_for is not None:
            # whatever has changed, the effort goes on from the last one
            before = total if self._issued is None else self._issued.effort
            self._relax, self._relax_for = Fading(before - total, self._nothing, acts, self._relax_for), None
        if not self._relax.over(acts):
            total = total + self._relax.at(acts).position
        if not np.isfinite(total).all():
            self._let_go(Reason(Fault.MISMATCH, value=np.inf))
        if self._tripped:
            self._limiter.last = total = self._nothing
        limited = self._limiter(total, since)
        self._issued = _Issued(motion, total - feedback, limited.effort)
        return GuardedCommand(
            motion.position, motion.velocity, limited.effort, *self._checks.count(limited, since)
        )

    def _look(self) -> None:
        """Look at the robot, and hold its motion against the efforts that have acted."""
        self._checks.look(self.state, self.ended, self._feeding)
        if self._issued is None or self.state is State.WAITING or self.ended:
            self._watch.restart()
        elif self._checks.fresh:
            borne = np.abs(self._relax.at(self._time.t).position) if self._borne else self._nothing
            seen, bent = self.measured, self._deflection
            self._watch.look(self._time.t, seen.stamp, seen.position, seen.rate, borne, bent)

    def _deflection(self) -> Motion | None:
        """Return by how much motors were to be ahead of their links when the last measurement was made.

        Links swing on in a stop, but not where the model is in doubt: that would hide a motor's fault longer.
        """
        seen, swings, stops = self.measured, None, self._commanded.braking is not None
        if self._swing and stops and seen.stamp is not None and self._fault is not Fault.MISMATCH:
            swings = self._swing.at(seen.stamp, seen.position)
        return swings or self._commanded.deflection(self._checks.measured_at())

    def _feedback(self) -> Array:
        """Return the efforts (n,) of the feedback; none without gains or without a fresh measurement."""
        checks, measured = self._checks, self.measured
        fresh = self._gains is not None and checks.fresh and self._fault not in _BLIND
        if self._feeding and not fresh:
            false = checks.contradiction is not None or self._fault is Fault.MISMATCH
            self._relax_for = _DROP if false else self._relax_for or _RELAX
        # one that has lost its measurement may find another robot: it comes back by joining alone
        self._feeding = fresh and (self._feeding or self.state.follows)
        if self._gains is None or not self._feeding:
            return self._nothing
        wanted = self._commanded.at(checks.measured_at())
        off = wanted.position - measured.position
        slow = wanted.velocity - checks.believed_velocity(wanted.velocity)
        return self._gains.proportional * off + self._gains.derivative * slow

    # the state machine

    def _change_state(self, fault: Reason | None) -> None:
        checks, t = self._checks, self._time.t
        if fault is not None or not self.listening:
            checks.sound_since = None
        elif checks.sound_since is None:
            checks.sound_since = t
        if not self.listening:
            self._wait()
        elif self.state.follows:
            if fault is not None:
                self._begin_to_stop(fault)
            elif self.state is State.JOINING and t >= self._entered + self.config.fade:
                self._borne = False  # what is left of an offset, as of a late command, still fades
                self._enter(State.FOLLOWING, Reason(Progress.ARRIVED))
        else:
            braking = self._commanded.braking
            if self.state is State.STOPPING and braking is not None and t >= braking.end:
                self._enter(State.STOPPED, self.reason)
            if self.state is State.STOPPED and self.config.end is End.ZERO:
                self._release()
            if self.state is not State.WAITING and not self.ended:
                self._let_go_where_it_has_to()
            if self._tripped and not self.ended:
                return  # efforts go to zero first
            obstacle = fault or checks.obstacle() or self._unasked()
            if self.state is State.STOPPING and self._fault is not Fault.NO_FEEDFORWARD:
                return  # only a stream that has been interrupted is taken up before the robot stands
            if obstacle is None:
                self._join()
            elif self.state is not State.STOPPING:
                self.reason = obstacle

    def _unasked(self) -> Reason | None:
        """Return that it has to be asked to start, None where it may go on by itself."""
        rejoin, stopped = self.config.rejoin, self._fault
        lost = self.ended or self._alone()  # since: what has stopped then is not the stream alone
        interrupted = stopped is Fault.NO_FEEDFORWARD and not lost
        alone = rejoin is Rejoin.ALWAYS or (rejoin is Rejoin.GAP and interrupted)
        if stopped is None or self._asked or alone:
            return None
        more = ", and was left to its drives since" if lost else ""
        return Reason(Obstacle.NOT_ASKED, note=f"(it has stopped: {stopped.value}{more})")

    def _enter(self, state: State, reason: Reason) -> None:
        self.transitions.append(Transition(self.state, state, reason))
        self.state, self.reason, self._entered = state, reason, self._time.t
        self._checks.begin()

    def _wait(self) -> None:
        reason = Reason(Obstacle.NOT_LISTENING)
        if self.state is not State.WAITING:
            self._issued = self._fault = None
            self._tripped = False  # nobody is left to take the efforts that were to go to zero
            self._commanded.reset()
            self._enter(State.WAITING, reason)
        self.reason = reason

    def _join(self) -> None:
        commanded, acts, first = self._commanded, self._time.t + self.config.lead, self.config.first_effort
        motion, anew = self.desired.motion(self._time.instant(acts)), self._issued is None or self.ended
        led = self._feeding or self._gains is None  # the reference is where the robot was commanded to be
        if not self.desired.has_motion:  # the way to one that is not known would be none
            start = motion
        elif not anew and led and self._time.t < commanded.release_from:
            start = commanded.at(acts)
        elif self._checks.fresh:
            start = Motion(self.measured.position, self.measured.velocity, motion.acceleration)
        else:
            start = motion
        if anew:
            if (np.abs(start.velocity) <= self.config.join_speed).all():  # it stands, and has yet to set off
                start = start._replace(acceleration=self._nothing)
            effort = commanded.first_effort(start, acts, self._limiter.limit)
            self._issued, self._limiter.last = _Issued(start, effort, effort), effort
        commanded.join(start, acts)
        self._fault, self._tripped, self.ended, self._asked = None, False, False, False
        self._checks.contradiction, self._checks.joined = None, True
        self._relax_for = self.config.fade
        self._borne = anew and first is not FirstEffort.FEEDFORWARD
        self._enter(State.JOINING, Reason(Progress.JOINED))

    def _begin_to_stop(self, reason: Reason) -> None:
        fault, checks = reason.fault, self._checks
        assert self._issued is not None and fault is not None  # there was a command since it has joined
        self.faults[fault] += 1
        self._fault, self._borne = fault, False
        if fault is Fault.HELD_UP:
            self._end_held_up(reason)
            return
        elsewhere = None
        if checks.whole and self._gains is not None and fault in _ASTRAY:  # feedback would pull at it
            speed = within(checks.speed, self._velocity_limit)
            elsewhere = Motion(self.measured.position, speed, self._nothing)
        self._begin_to_swing()
        self._commanded.brake(fault, self._issued.motion, self._issued.feedforward, elsewhere)
        if self.config.end is End.ZERO and self._helpless:  # nothing slows the robot down: no use to wait
            self._commanded.release_from = self._time.t + self.config.lead
        self._relax_for = _RELAX
        self._enter(State.STOPPING, reason)

    def _begin_to_swing(self) -> None:
        """Let links swing on from how they move, as nobody says from now on how far springs bend."""
        seen, at = self.measured, self._checks.measured_at()
        bent = self._commanded.deflection(at)
        if self._swing is None or seen.stamp is None:
            return
        motors = Motion(seen.position, self._checks.speed, self._commanded.at(at).acceleration)
        self._swing.begin(seen.stamp, motors, bent or Motion(*np.zeros((3, len(seen.position)))))

    def _end_held_up(self, reason: Reason) -> None:
        """Command nothing more: the drives have gone on without, and hold what nobody here knows."""
        self._enter(State.STOPPED, reason)
        self._commanded.drop_offset()
        self._feeding, self.ended = False, True

    def _release(self) -> None:
        """Let efforts go to zero from the next command on, or after a while where somebody looks on."""
        begin = self._time.t + self.config.lead + (0.0 if self._alone() else self.config.release_after)
        self._commanded.release_from = min(self._commanded.release_from, begin)

    def _let_go_where_it_has_to(self) -> None:
        """Let go at once where no command does any good.

        Where the robot is too fast although it should have slowed down, feedback swings, or the efforts that
        stay are those of a motion; where it moves otherwise than any effort would move it, a motor or its
        sensor does not do what it should.
        """
        checks, interrupted, t = self._checks, self._time.interrupted, self._time.t
        if interrupted is not None and interrupted.fault is Fault.HELD_UP:
            self._end_held_up(interrupted)
        if self._tripped or self.ended:
            return
        slow_by = self._entered + (_TRIP_AFTER if self.state is State.STOPPING else 0.0)
        reason = checks.mismatch(TRIP)
        if reason is None and t >= self._entered + _TRIP_MISMATCHED:
            reason = checks.mismatch()
        if reason is None and self._fault is Fault.MISMATCH:
            reason = checks.contradiction  # nobody can see any more whether motors do what they should
        if reason is None:
            fades = t > self._commanded.release_from
            reason = checks.robot_too_fast(_FALLS if fades else 1.0 if t >= slow_by else _RUNS_AWAY)
        if reason is not None:
            self._let_go(reason)

    def _let_go(self, reason: Reason) -> None:
        assert reason.fault is not None
        self.faults[reason.fault] += 1
        self._fault, self._tripped, self._asked = reason.fault, True, False
        self._enter(State.STOPPED, replace(reason, tripped=True))

    def _alone(self) -> bool:
        """Whether nobody looks after a robot that stands."""
        return self._ends or self._tripped or (self._gains is not None and not self._feeding)

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
            return self._time.t >= self._commanded.release_from + self.config.fade
        if self._gains is not None or not self._checks.fresh:
            return True
        # what is held may push a robot on that nothing here slows down; as long as it moves, it is watched
        return bool((np.abs(self.measured.velocity) <= self.config.join_speed).all())
