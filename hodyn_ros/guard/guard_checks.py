"""What a guard judges: where the robot is, what is wrong, and why a motion cannot be joined.

No signal is believed alone: positions are held against velocities and both against the reference, and the
motion against the commanded efforts by the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.commanded_motion import CommandedMotion
from hodyn_ros.guard.effort_check import AT_ONCE, EffortWatch
from hodyn_ros.guard.effort_limiter import MILLISECOND, Limited
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.measured_motion import SWING, MeasuredMotion
from hodyn_ros.guard.reasons import Fault, Obstacle, Reason, State
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.lie.se3 import Array

_LIMITED_COMMANDS = 5  # in a row, a millisecond or more apart, whose steps may be cut
_EFFORT_STEPS = 3  # of the feedforward, one soon after the other
_AHEAD = 0.02  # [s] from now, when a motion has to keep its speed limit as well
_JUMPS = 2  # of measured positions, one after the other, that are no chance
_JUMPED_FOR = 0.03  # [s] without a measurement that could be taken, where all that come are jumps


class GuardChecks:
    """The checks of joints, none faster than `speeds` (n,) [rad/s or m/s]; with `feedback` or without."""

    def __init__(
        self,
        joint_names: Sequence[str],
        config: GuardConfig,
        speeds: Array,
        measured: MeasuredMotion,
        commanded: CommandedMotion,
        watch: EffortWatch,
        feedback: bool,
    ) -> None:
        n = len(joint_names)
        self.fresh = False  # whether it is known where the robot is
        self.contradiction: Reason | None = None  # of the measurements, since the motion was joined
        self.measured_jumps: list[Reason] = []  # of positions, since the last one that could be taken
        self.jump: Reason | None = None  # why the last feedforward does not continue the one before
        self.sound_since: float | None = None  # own time [s] from which on all was sound
        self.joined = False  # whether a motion ever was
        self._drives_follow = not feedback and not config.efforts_act
        self._names, self._config, self._feedback = tuple(joint_names), config, feedback
        self._speeds, self._fastest = speeds, config.speed_margin * speeds
        self._measured, self._commanded, self._watch = measured, commanded, watch
        self._desired, self._time = commanded.desired, commanded.time
        self._gaps = 0
        self._looked_at: int | None = None  # stamp of the last measurement that was looked at,
        self._taken_at = -np.inf  # and when that was [s] own time
        self._seen: int | None = None  # stamp of the last one that says anything of the speed of any joint,
        self._seen_at = -np.inf  # and when that was [s] own time
        self._position_then = np.full(n, np.nan)  # where a joint is that has not moved since,
        self._reference_then = np.zeros(n)  # and where it should have been
        self._effort_stepped_at = -np.inf
        self.begin()

    def begin(self) -> None:
        """Count anew, in another state."""
        self._saturated_for, self._limited_commands, self._effort_steps = 0.0, 0.0, 0

    def count(self, limited: Limited, since: float) -> tuple[bool, bool]:
        """Count a command, `since` [s] after the one before; return whether it and its step were cut."""
        saturated = bool(np.count_nonzero(limited.saturated))
        cut = bool(np.count_nonzero(limited.rate_limited))
        self._saturated_for = self._saturated_for + since if saturated else 0.0
        # one that comes sooner after the last could also do less: it counts by its share, as in the limiter
        share = min(since / MILLISECOND, 1.0)
        self._limited_commands = self._limited_commands + share if cut else 0.0
        return saturated, cut

    def count_effort_step(self) -> None:
        """Count a step of the efforts of feedforwards."""
        again = self._time.t < self._effort_stepped_at + self._config.fade
        self._effort_steps, self._effort_stepped_at = self._effort_steps * again + 1, self._time.t

    # where the robot is

    def measured_at(self) -> float:
        """Return the own time of the last measurement [s], no further back than a feedforward reaches."""
        return self._time.t - min(self._age(), self._config.timeout)

    def _age(self) -> float:
        """Return how old the last measurement is [s]; the clock may stand still."""
        return max(self._measured.age(self._time.clock), self._time.t - self._taken_at)

    def look(self, state: State, ended: bool, feeding: bool) -> None:
        """Find out whether the last measurement says where the robot is now.

        One that comes after a gap may be that of another place, and one that contradicts others anything.
        """
        measured, t, self.fresh = self._measured, self._time.t, False
        gap = measured.gaps != self._gaps and self._time.interrupted is None
        self._gaps = measured.gaps
        if measured.stamp != self._looked_at:
            self._taken_at = t
        if measured.seen != self._seen:
            self._seen, self._seen_at = measured.seen, t
        acts = state.follows or state is State.STOPPING or feeding
        if acts and len(self.measured_jumps) >= _JUMPS and t > self._taken_at + _JUMPED_FOR:
            self.contradiction = self.contradiction or self.measured_jumps[0]
            return
        old = t > self._taken_at + self._config.measurement_timeout
        if old or not measured.fresh(self._time.clock) or gap and state.follows:
            return
        contradiction = measured.contradiction() or self._frozen(state is State.WAITING or ended)
        self._looked_at = measured.stamp
        if self.contradiction is None or not acts:  # else signals that agree again are no proof
            self.contradiction = contradiction
        self.fresh = self.contradiction is None

    def _frozen(self, idle: bool) -> Reason | None:
        """Return which joint stays the same, bit for bit, while its reference moves on; or it is blocked."""
        if idle or not (self._desired.has_motion or self._commanded.braking):
            self._position_then = np.full_like(self._position_then, np.nan)
            return None
        if self._measured.stamp == self._looked_at:  # nothing new, which the age of measurements tells
            return None
        position, reference = self._measured.position, self._reference().position
        moved = position != self._position_then
        self._position_then = position
        self._reference_then = np.where(moved, reference, self._reference_then)
        return self._beyond(
            Fault.FROZEN, np.abs(reference - self._reference_then), 2.0 * self._config.resolution
        )

    def _reference(self) -> Motion:
        """Return what was to be followed when the last measurement was made."""
        return self._commanded.at(self.measured_at())

    @property
    def speed(self) -> Array:
        """The velocity (n,) in the middle of three: measured, of the positions, of the reference."""
        one, two, third = self._measured.velocity, self._measured.rate, self._reference().velocity
        return np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), third))

    def believed_velocity(self, reference: Array) -> Array:
        """Return the measured velocity (n,), near those of positions and reference.

        One that neither comes near is false, and soon shows to be.
        """
        rate, swing = self._measured.rate, SWING * self._fastest
        least, most = np.minimum(rate, reference) - swing, np.maximum(rate, reference) + swing
        return np.minimum(np.maximum(self._measured.velocity, least), most)

    # what is wrong

    def fault(self, state: State, issued: Motion | None) -> Reason | None:
        """Return the first check that fails, and what it has found; `issued`: the last command."""
        config, time, desired = self._config, self._time, self._desired
        jump, self.jump = self.jump, None
        if (cause := time.interrupted or self.contradiction) is not None:
            return cause
        if config.measured and not self.fresh:
            return Reason(Fault.NO_MEASUREMENT, limit=config.measurement_timeout)
        if self._feedback and self._measured.latency > config.latency:
            return Reason(Fault.LATE_MEASUREMENTS, value=self._measured.latency, limit=config.latency)
        if jump is not None:
            return jump
        if not desired.in_time(time.clock):
            return Reason(Fault.NO_FEEDFORWARD, limit=config.timeout)
        if beyond := self._beyond_limits():
            names = " | ".join(bit.name or "" for bit in Status if bit and bit in beyond)
            return Reason(Fault.STATUS, value=float(beyond), note=names)
        motion = desired.motion(time.instant(self.measured_at() if self.fresh else time.t))
        ahead = motion.velocity + _AHEAD * motion.acceleration
        fast = self._too_fast(np.maximum(np.abs(motion.velocity), np.abs(ahead)), "that is the motion")
        if (fast := fast or self.robot_too_fast()) is not None or not state.follows:
            return fast
        return self.mismatch() or self.mismatch(AT_ONCE) or self._fault_of_following(state, issued)

    def _fault_of_following(self, state: State, issued: Motion | None) -> Reason | None:
        config = self._config
        recent = self._measured.age(self._time.clock) <= config.timeout  # so far back the reference is known
        if self.fresh and recent and self._desired.has_motion:
            off = np.abs(self._reference().position - self._measured.position)
            if (lost := self._beyond(Fault.TRACKING, off, config.tracking_error)) is not None:
                return lost
        if (leap := self._leap(issued)) is not None:
            return leap
        if self._saturated_for > config.saturation_time:
            return Reason(Fault.SATURATION, value=self._saturated_for, limit=config.saturation_time)
        if state is State.FOLLOWING and self._limited_commands > _LIMITED_COMMANDS:
            note = (
                f"steps of the effort were cut in more than {_LIMITED_COMMANDS} commands in a row; let "
                "the motion keep the limits of the effort rates, or raise 'effort_step'"
            )
            return Reason(Fault.EFFORT_STEP, "", self._limited_commands, _LIMITED_COMMANDS, note=note)
        if self._effort_steps > _EFFORT_STEPS:
            note = (
                f"efforts have stepped {self._effort_steps} times within {config.fade:g} s each; is "
                "there a second publisher?"
            )
            return Reason(Fault.EFFORT_STEP, "", float(self._effort_steps), _EFFORT_STEPS, note=note)
        return None

    def mismatch(self, times: float = 1.0) -> Reason | None:
        """Return which joint moves otherwise than efforts say, by so many times what is allowed."""
        return self._watch.mismatch(self._time.t, times) if self.fresh else None

    @property
    def may_leap(self) -> bool:
        """Whether drives with a loop of their own have waited where they were sent last."""
        return self._drives_follow and self._time.late

    def _leap(self, issued: Motion | None) -> Reason | None:
        """Return how far the reference would leap from the last command."""
        if not self.may_leap or issued is None:
            return None
        leap = np.abs(self._commanded.at(self._time.t + self._config.lead).position - issued.position)
        note = "so far would the reference of its drive leap, as commands were held up"
        return self._beyond(Fault.REFERENCE_STEP, leap, self._config.join_within or np.inf, note)

    def _beyond_limits(self) -> Status:
        beyond = self._desired.status & self._config.stop_on
        if self._desired.status & Status.EFFORT_CLAMPED:
            beyond &= ~Status.EFFORT_LIMIT_EXCEEDED  # so it was asked for
        return beyond

    @property
    def whole(self) -> bool:
        """Whether it is known where the robot is, and no measurement was rejected for a joint since."""
        return self.fresh and self._measured.seen == self._measured.stamp

    def robot_too_fast(self, share: float = 1.0) -> Reason | None:
        """Return which joint is faster than a share of the speed that stops a robot.

        Where signals of some joint are false, by what each of the others says by itself.
        """
        measured, t = self._measured, self._time.t
        if self.whole:
            return self._too_fast(self.believed_velocity(self._reference().velocity), share=share)
        if t > self._seen_at + self._config.measurement_timeout or not measured.seen_lately(self._time.clock):
            return None
        return self._too_fast(measured.speed, share=share)

    def _too_fast(self, velocity: Array, note: str = "", share: float = 1.0) -> Reason | None:
        fast = np.abs(velocity) > share * self._fastest
        if not np.count_nonzero(fast):  # takes a fifth of the time of fast.any()
            return None
        joint = int(np.argmax(fast))
        speed, limit = float(velocity[joint]), float(share * self._speeds[joint])
        return Reason(Fault.VELOCITY, self._names[joint], speed, limit, note=note)

    def _beyond(self, cause: Fault | Obstacle, values: Array, most: float, note: str = "") -> Reason | None:
        """Return which joint is furthest beyond what is allowed, None where none is."""
        joint = int(np.argmax(values))
        if not values[joint] > most:
            return None
        return Reason(cause, self._names[joint], float(values[joint]), most, note=note)

    # why a motion cannot be joined

    def obstacle(self) -> Reason | None:
        """Return why the motion cannot be joined now although no check fails, None where it can."""
        config, measured = self._config, self._measured
        if self.sound_since is None or self._time.t < self.sound_since + config.settle:
            return Reason(Obstacle.SETTLING, limit=config.settle)
        if config.join_within and not self.fresh:
            return Reason(Obstacle.UNKNOWN_POSE)
        # what follows positions would go to zero
        if not self._desired.has_motion and (config.join_within or self._feedback or not config.efforts_act):
            return Reason(Obstacle.NO_POSITIONS)
        if not config.join_within:
            return None
        motion = self._desired.motion(self._time.instant(self.measured_at()))
        off, apart = (np.abs(a - b) for a, b in zip(motion[:2], (measured.position, measured.velocity)))
        pose = self._beyond(Obstacle.POSE, off, config.join_within)
        if (off_it := pose or self._beyond(Obstacle.SPEED, apart, config.join_speed)) is not None:
            return off_it
        # where it was before all was sound, as before brakes stopped it, is not where it stands
        before = self.joined and self._time.t - self._age() < self.sound_since - MILLISECOND
        return Reason(Obstacle.SETTLING, limit=config.settle) if before else None
