"""Between feedforwards and motors: nothing false is commanded, and whatever fails has a defined end.

One state machine for all that command a robot from feedforwards, in simulation as on a robot:

    WAITING    nothing has been commanded, and nothing is
    JOINING    feedforward and measurements are sound, and the robot stands where the motion is: the reference
               goes from where the robot is to the motion, the effort from the last one to that of the motion
    FOLLOWING  the reference is the motion
    STOPPING   a check has failed: the reference brakes from the last one that was commanded
    STOPPED    it stands; the efforts stay, or go to zero; the only way on is to join again

It knows nothing of ROS and has no clock of its own: the same calls give the same commands. Instants of the
outer clock are in nanoseconds; where that clock jumps, or the process was held up, the guard's own time goes
on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.control.motor_pd import MotorGains, Reference
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.effort_limiter import MILLISECOND, EffortLimiter
from hodyn_ros.guard.feedforward_stream import FeedforwardStream
from hodyn_ros.guard.guard_config import (
    End,
    Fault,
    FirstEffort,
    GuardConfig,
    GuardLimits,
    State,
    StreamError,
    Transition,
)
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.guard.transitions import Braking, Fading, Motion
from hodyn_ros.lie.se3 import Array

EffortModel = Callable[[Motion], Array]  # efforts (n,) of a motion, in the sense of those of the feedforward
Found = tuple[Fault, str]  # a fault, and what was found

_RELAX = 0.1  # [s] in which feedback lets go where it loses its measurement or its reference
_LIMITED_COMMANDS = 5  # in a row, a millisecond or more apart, whose steps may be cut
_EFFORT_STEPS = 3  # of the feedforward, one soon after the other
_TRIP_AFTER = 0.1  # [s] of a stop, from which on it must have slowed the robot down


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
    feedforward: Array  # what of the effort is not feedback
    effort: Array  # after the limits


class CommandGuard:
    """Commands for `joint_names` from feedforwards and measurements.

    With `gains` (motors, reflected to the links) the efforts hold a feedback on the measured positions. With
    `model` the efforts of a stop are those of braking; without, they stay as they are, or go to zero.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        config: GuardConfig,
        limits: GuardLimits | None = None,
        gains: MotorGains | None = None,
        model: EffortModel | None = None,
    ) -> None:
        n, limits = len(joint_names), GuardLimits() if limits is None else limits
        velocity, effort, rate = (
            np.broadcast_to(np.asarray(values, dtype=np.float64), (n,))
            for values in (limits.velocity, limits.effort, limits.effort_rate)
        )
        self.config = config
        self.state = State.WAITING
        self.reason = "nothing has come yet"  # why it is in its state, and not in the next one
        self.transitions: list[Transition] = []  # for whoever reports them, and then clears
        self.faults: dict[Fault, int] = dict.fromkeys(Fault, 0)  # how often each has ended the following
        self.ended = False  # whether nothing more is commanded
        self.listening = True  # whether anybody takes the commands; otherwise nothing is commanded
        self.measured = MeasuredMotion(joint_names, config, config.speed_margin * velocity)
        self.desired = FeedforwardStream(joint_names, config, config.speed_margin * velocity)
        self._names = tuple(joint_names)
        self._velocity_limit, self._fastest = velocity, config.speed_margin * velocity
        # where no rate is known, the step that is always allowed is all that is
        known_rate = np.where(np.isinf(rate), np.finfo(float).tiny, rate)
        self._limiter = EffortLimiter(effort, known_rate, config.effort_step)
        self._gains, self._model = gains, model
        self._nothing = np.zeros(n)
        self._t = 0.0  # [s] own time
        self._now: int | None = None
        self._held_up = 0.0  # [s] between two commands
        self._woken_at = 0  # by the clock, after it was held up
        self._waits, self._wait_until = False, -np.inf  # for a measurement; [s] own time
        self._fresh = False  # whether it is known where the robot is
        self._gaps = 0
        self._unchanged_since = -1
        self._reference_then = self._nothing
        self._jump: str | None = None  # why the last feedforward does not continue the one before
        self._sound_since: float | None = None
        self._issued: _Issued | None = None
        self._offset: Fading | None = None  # of the reference while joining
        self._braking: Braking | None = None
        self._kept = self._nothing  # efforts of a stop beside those of the model
        self._standing: Array | None = None  # efforts once it stands
        self._relax = Fading(self._nothing, self._nothing, 0.0, 1.0)
        self._relax_for: float | None = None  # the next effort goes on from the last one, and for how long
        self._entered = 0.0
        self._release_from = np.inf  # [s] own time
        self._fault: Fault | None = None
        self._shutdown = self._tripped = self._feeding = False
        self._saturated_for = 0.0
        self._limited_commands, self._effort_steps = 0.0, 0
        self._effort_stepped_at = -np.inf

    # what comes in; both raise StreamError for what cannot be used, and go on with what was there

    def measure(self, now: int, stamp: int, position: Array, velocity: Array | None = None) -> None:
        """Take positions and velocities (n,) that were measured at an instant; see `MeasuredMotion`."""
        self.measured.take(now, stamp, position, velocity)

    def follow(self, now: int, stamp: int, reference: Reference, status: Status = Status.OK) -> float:
        """Take a feedforward about an instant; return its step in effort from the one before [N.m or N].

        One that does not continue the one before ends the following.
        """
        before = self.desired.stamp
        try:
            accepted = self.desired.take(now, stamp, reference, status, self._following)
        except StreamError as error:
            if not error.clock and before is not None:
                self._jump, self._sound_since = str(error), None
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

    # what goes out

    def command(self, now: int) -> GuardedCommand | None:
        """Return the command for an instant; None before anything was joined, and after the end.

        The end is after `stop`, and where nobody can look after the robot any more: without measurements, or
        when it did not slow down. Then `ended` says so, until a motion is joined again. None, too, while it
        has to be seen where a robot is that nobody has looked after for a while.
        """
        elapsed = self._advance(now)
        self._fresh = self._has_measurement()
        self._waits = self._waits_for_measurement()
        if self._waits:
            self.measured.forget()  # brakes stop a robot faster than the checks of the next one allow
            return None
        self._change_state(self._find_fault())
        self.ended = self.ended or self._at_the_end()
        if self.state is State.WAITING or self.ended:
            return None
        acts = self._t + self.config.lead
        motion, left = self._motion(acts), self._released(acts)
        feedback = left * self._feedback()
        total = left * self._feedforward(acts) + feedback
        if self._relax_for is not None:
            # whatever has changed, the effort goes on from the last one
            before = total if self._issued is None else self._issued.effort
            self._relax, self._relax_for = Fading(before - total, self._nothing, acts, self._relax_for), None
        if acts < self._relax.start + self._relax.duration:
            total = total + self._relax.at(acts).position
        if self._tripped:
            self._limiter.last = total = self._nothing
        limited = self._limiter(total, elapsed)
        saturated = bool(np.count_nonzero(limited.saturated))
        cut = bool(np.count_nonzero(limited.rate_limited))
        self._saturated_for = self._saturated_for + elapsed if saturated else 0.0
        # one that comes sooner after the last could also do less: it counts by its share, as in the limiter
        share = min(elapsed / MILLISECOND, 1.0)
        self._limited_commands = self._limited_commands + share if cut else 0.0
        self._issued = _Issued(motion, limited.effort - feedback, limited.effort)
        return GuardedCommand(motion.position, motion.velocity, limited.effort, saturated, cut)

    # time: the guard's own in seconds, that of the clock in nanoseconds

    def _advance(self, now: int) -> float:
        """Let the guard's own time go on with the clock; return by how much [s]."""
        passed = 0.0 if self._now is None else 1e-9 * (now - self._now)
        longest = 2.0 * self.config.timeout  # as it takes to see that feedforwards do not come any more
        elapsed = min(max(passed, 0.0), longest)
        self._now = now
        self._t += elapsed
        if not 0.0 <= passed <= longest:
            self._held_up, self._woken_at = passed, now
            if self._fresh and self._following:
                self._wait_until = self._t + self.config.timeout
        elif not self._waits:
            self._held_up = 0.0
        return elapsed

    def _waits_for_measurement(self) -> bool:
        """Whether the stop after a hold-up has to wait.

        Meanwhile the driver may have braked the robot. What was measured before, and lay in a queue, is no
        place to stop from: efforts of braking would set a robot at rest in motion.
        """
        if not self._held_up or self._t > self._wait_until or self._shutdown:
            return False
        return not self._fresh or self.measured.age(self._woken_at) > 0.0

    @property
    def _clock(self) -> int:
        return 0 if self._now is None else self._now

    def _instant(self, t: float) -> int:
        """Return the instant of the clock at the guard's own time."""
        return self._clock + round(1e9 * (t - self._t))

    def _measured_at(self) -> float:
        """Return the guard's own time of the last measurement, no further back than a feedforward reaches."""
        return self._t - min(self.measured.age(self._clock), self.config.timeout)

    def _has_measurement(self) -> bool:
        """Whether the last measurement says where the robot is now.

        One that comes after a gap may be that of another place. With feedback, those that stay the same, bit
        for bit, while the reference moves on, are those of a driver that has frozen; or a joint is blocked.
        After a hold-up they are those of a robot on its brakes.
        """
        measured, gap = self.measured, self.measured.gaps != self._gaps and not self._held_up
        self._gaps = measured.gaps
        if gap and self._following or not measured.fresh(self._clock):
            return False
        if not self._following or self._gains is None or self._held_up:
            return True
        if measured.unchanged_since != self._unchanged_since:
            self._unchanged_since = measured.unchanged_since
            self._reference_then = self._motion(self._measured_at()).position
            return True
        moved = np.abs(self._motion(self._measured_at()).position - self._reference_then)
        return not np.count_nonzero(moved > 2.0 * self.config.resolution)

    # the checks

    @property
    def _following(self) -> bool:
        return self.state in (State.JOINING, State.FOLLOWING)

    def _find_fault(self) -> Found | None:
        """Return the first check that fails, and what it has found."""
        config = self.config
        jump, self._jump = self._jump, None
        if self._shutdown:
            return Fault.SHUTDOWN, "the process is shutting down"
        if self._held_up:
            return Fault.HELD_UP, f"the clock went on by {self._held_up:.3g} s between two commands"
        if config.measured and not self._fresh:
            silent = f"no sound measurement for {config.measurement_timeout:g} s"
            wrong = "measurements were interrupted, or stand still while the robot should move"
            return Fault.NO_MEASUREMENT, wrong if self.measured.fresh(self._clock) else silent
        if self._gains is not None and self.measured.latency > config.latency:
            return Fault.LATE_MEASUREMENTS, (
                f"measurements are {1e3 * self.measured.latency:.1f} ms old on average; feedback swings "
                f"with more than {1e3 * config.latency:g} ms; bring them sooner, or lower the gains and "
                "raise 'latency'"
            )
        if jump is not None:
            return Fault.REFERENCE_STEP, jump
        if not self.desired.in_time(self._clock):
            return Fault.NO_FEEDFORWARD, f"no feedforward for {config.timeout:g} s"
        if beyond := self._beyond_limits():
            names = " | ".join(bit.name or "" for bit in Status if bit and bit in beyond)
            return Fault.STATUS, f"the feedforward has the status {names}"
        at = self._measured_at() if self._fresh else self._t
        fast = self._too_fast("the motion of joint", self.desired.motion(self._instant(at)).velocity)
        if fast is not None or (fast := self._robot_too_fast()) is not None:
            return Fault.VELOCITY, fast
        return self._find_fault_of_following() if self._following else None

    def _find_fault_of_following(self) -> Found | None:
        config = self.config
        recent = self.measured.age(self._clock) <= config.timeout  # so far back the reference is known
        if self._fresh and recent and self.desired.has_motion:
            off = np.abs(self._motion(self._measured_at()).position - self.measured.position)
            joint = int(np.argmax(off))
            if off[joint] > config.tracking_error:
                found = f"joint {self._names[joint]!r} is {off[joint]:.3g} rad or m off its reference"
                return Fault.TRACKING, found
        if self._saturated_for > config.saturation_time:
            return Fault.SATURATION, f"efforts at their limit for {config.saturation_time:g} s"
        if self.state is State.FOLLOWING and self._limited_commands > _LIMITED_COMMANDS:
            return Fault.EFFORT_STEP, (
                f"steps of the effort were cut in more than {_LIMITED_COMMANDS} commands in a row; let the "
                "motion keep the limits of the effort rates, or raise 'effort_step'"
            )
        if self._effort_steps > _EFFORT_STEPS:
            return Fault.EFFORT_STEP, (
                f"efforts have stepped {self._effort_steps} times within {config.fade:g} s each; is there a "
                "second publisher?"
            )
        return None

    def _beyond_limits(self) -> Status:
        beyond = self.desired.status & self.config.stop_on
        if self.desired.status & Status.EFFORT_CLAMPED:
            beyond &= ~Status.EFFORT_LIMIT_EXCEEDED  # so it was asked for
        return beyond

    def _robot_too_fast(self) -> str | None:
        return self._too_fast("joint", self.measured.velocity) if self._fresh else None

    def _too_fast(self, what: str, velocity: Array) -> str | None:
        fast = np.abs(velocity) > self._fastest
        if not np.count_nonzero(fast):  # takes a fifth of the time of fast.any()
            return None
        joint = int(np.argmax(fast))
        speed, limit = velocity[joint], self._velocity_limit[joint]
        return f"{what} {self._names[joint]!r} has {speed:.3g} rad/s or m/s; the limit is {limit:g}"

    def _obstacle(self, fault: Found | None) -> str | None:
        """Return why the motion cannot be joined now, None where it can."""
        config, measured = self.config, self.measured
        if fault is not None:
            return f"{fault[0].value}: {fault[1]}"
        if self._sound_since is None or self._t < self._sound_since + config.settle:
            return "all has been sound for a moment only"
        if not config.join_within:
            return None
        if not self._fresh:
            return "start pose invalid: where the robot stands is not known; publish joint states with stamps"
        if not self.desired.has_motion:
            return (
                "start pose invalid: the feedforward holds no motor positions; let dynamics_node have the "
                "drives of the robot, or set join_within to 0"
            )
        motion = self.desired.motion(self._instant(self._measured_at()))
        off = np.abs(motion.position - measured.position)
        joint = int(np.argmax(off))
        if off[joint] > config.join_within:
            return (
                f"start pose invalid: joint {self._names[joint]!r} stands {off[joint]:.3g} rad or m from the "
                f"motion, more than join_within ({config.join_within:g}); begin where the robot stands"
            )
        apart = np.abs(motion.velocity - measured.velocity)  # a speed that is not measured counts as rest
        joint = int(np.argmax(apart))
        if apart[joint] > config.join_speed:
            return (
                f"start pose invalid: joint {self._names[joint]!r} is {apart[joint]:.3g} rad/s or m/s slower "
                f"or faster than the motion, more than join_speed ({config.join_speed:g}); begin at rest"
            )
        return None

    # the state machine

    def _change_state(self, fault: Found | None) -> None:
        if fault is not None or not self.listening:
            self._sound_since = None
        elif self._sound_since is None:
            self._sound_since = self._t
        if not self.listening:
            self._wait()
        elif self._following:
            if fault is not None:
                self._begin_to_stop(*fault)
            elif self.state is State.JOINING and self._t >= self._entered + self.config.fade:
                self._offset = None
                self._enter(State.FOLLOWING, "the robot is on the motion")
        else:
            if self.state is State.STOPPING and self._braking is not None and self._t >= self._braking.end:
                self._stand()
            if self.state is not State.WAITING and not self.ended:
                self._trip_where_it_does_not_stop()
            obstacle = self._obstacle(fault)
            if self.state is State.STOPPING and self._fault is not Fault.NO_FEEDFORWARD:
                return  # only a stream that has been interrupted is taken up before the robot stands
            if obstacle is None:
                self._join()
            elif self.state is not State.STOPPING:
                self.reason = obstacle

    def _enter(self, state: State, reason: str) -> None:
        self.transitions.append(Transition(self.state, state, reason))
        self.state, self.reason, self._entered = state, reason, self._t
        self._saturated_for, self._limited_commands, self._effort_steps = 0.0, 0.0, 0

    def _wait(self) -> None:
        reason = "nobody takes the commands"
        if self.state is not State.WAITING:
            self._issued = self._offset = self._braking = None
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
            zero = self.config.first_effort is FirstEffort.ZERO
            first = self._nothing if zero else self.desired.effort(self._instant(acts))
            self._issued, self._limiter.last = _Issued(start, first, first), first
        off, slow = start.position - motion.position, start.velocity - motion.velocity
        self._offset, self._braking = Fading(off, slow, acts, self.config.fade), None
        self._release_from, self._fault, self._tripped, self.ended = np.inf, None, False, False
        self._relax_for = self.config.fade
        self._enter(State.JOINING, "feedforward and robot fit together")

    def _begin_to_stop(self, fault: Fault, found: str) -> None:
        assert self._issued is not None  # there was a command since it has joined
        self.faults[fault] += 1
        self._fault = fault
        begin, at, feedback_here = self._issued.motion, self._t + self.config.lead, self._gains is not None
        self._kept, self._standing = self._beside_the_model(fault, self._issued), None
        astray = fault is Fault.HELD_UP or (feedback_here and fault in (Fault.TRACKING, Fault.VELOCITY))
        if astray and self._fresh:
            # feedback would pull at a robot that is not where it was commanded to be
            least, most = -self._velocity_limit, self._velocity_limit
            if not feedback_here:  # the loop of a drive may be pulling it back
                least, most = np.minimum(begin.velocity, 0.0), np.maximum(begin.velocity, 0.0)
            speed = np.clip(self.measured.velocity, least, most)
            position = self.measured.position if feedback_here else begin.position
            begin = Motion(position, speed, self._nothing)
        self._braking = Braking.within(begin, at, self.config.deceleration, self.config.shortest_stop)
        self._offset, self._relax_for = None, _RELAX
        helpless = (
            self._model is None and not feedback_here
        )  # nothing here slows the robot down: no use to wait
        self._release_from = at if self.config.end is End.ZERO and helpless else np.inf
        self._enter(State.STOPPING, f"{fault.value}: {found}")

    def _beside_the_model(self, fault: Fault, issued: _Issued) -> Array:
        """Return the efforts (n,) that the model does not explain, such as those of a payload."""
        motion, effort = issued.motion, issued.feedforward
        if self._model is None:
            return effort
        if fault is Fault.NO_FEEDFORWARD and self.desired.stamp is not None:
            # what was carried on for long is less certain than what it was carried on from
            motion, effort = self.desired.motion(self.desired.stamp), self.desired.effort(self.desired.stamp)
        return effort - self._model(motion)

    def _stand(self) -> None:
        self._enter(State.STOPPED, self.reason)
        if self.config.end is End.ZERO:
            wait = 0.0 if self._alone() else self.config.release_after
            self._release_from = min(self._release_from, self._t + wait)

    def _trip_where_it_does_not_stop(self) -> None:
        """Let go at once where the robot is too fast although it should have slowed down.

        Feedback swings then, or the efforts that stay are those of a motion.
        """
        slow_by = self._entered + (_TRIP_AFTER if self.state is State.STOPPING else 0.0)
        if self._tripped or self._t < slow_by:
            return
        fast = self._robot_too_fast()
        if fast is not None:
            self.faults[Fault.VELOCITY] += 1
            self._tripped = True
            self._enter(
                State.STOPPED, f"{Fault.VELOCITY.value} although it stops, so the motors let go: {fast}"
            )

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
        if self.config.end is End.ZERO:
            return self._t >= self._release_from + self.config.fade
        if self._gains is not None or not self._fresh:
            return True
        # what is held may push a robot on that nothing here slows down; as long as it moves, it is watched
        return bool((np.abs(self.measured.velocity) <= self.config.join_speed).all())

    # the reference and the efforts, at the guard's own time

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
            return self._kept + self._model(self._braking.at(t))
        if self._standing is None:
            self._standing = self._kept + self._model(self._braking.at(t))
        return self._standing

    def _feedback(self) -> Array:
        """Return the efforts (n,) of the feedback; none without gains or without a fresh measurement."""
        fresh = self._gains is not None and self._fresh and self._fault is not Fault.LATE_MEASUREMENTS
        if self._feeding and not fresh and self._relax_for is None:
            self._relax_for = _RELAX
        # one that has lost its measurement may find another robot: it comes back by joining alone
        self._feeding = fresh and (self._feeding or self._following)
        if self._gains is None or not self._feeding:
            return self._nothing
        wanted, measured = self._motion(self._measured_at()), self.measured
        slow = np.where(measured.unknown, 0.0, wanted.velocity - measured.velocity)
        return (
            self._gains.proportional * (wanted.position - measured.position) + self._gains.derivative * slow
        )

    def _released(self, t: float) -> float:
        """Return the share of the efforts that is left."""
        if t <= self._release_from:
            return 1.0
        return float(Fading(np.ones(1), np.zeros(1), self._release_from, self.config.fade).at(t).position[0])
