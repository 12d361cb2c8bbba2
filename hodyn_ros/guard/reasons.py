"""Why a guard is in its state: the states, what may fail, what may be missing, each with its words once.

`tools/guard_table.py` writes the same table for C++ (`ros2_control/guard/table.hpp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from hodyn_ros.errors import InputError


class State(str, Enum):
    """Where a guard is; see `command_guard`."""

    WAITING = "waiting"
    JOINING = "joining"
    FOLLOWING = "following"
    STOPPING = "stopping"
    STOPPED = "stopped"

    @property
    def follows(self) -> bool:
        """Whether a motion is joined or followed."""
        return self in (State.JOINING, State.FOLLOWING)


class Fault(str, Enum):
    """Which check has failed; the value is its name in logs and diagnostics."""

    SHUTDOWN = "shutdown"
    HELD_UP = "held up"
    CLOCK = "the clock has jumped"
    FROZEN = "measurement frozen"
    CONTRADICTION = "position and velocity disagree"
    NO_MEASUREMENT = "no measurement"
    LATE_MEASUREMENTS = "measurements too late"
    MISMATCH = "efforts and motion disagree"
    NO_FEEDFORWARD = "no feedforward"
    REFERENCE_STEP = "reference discontinuity"
    STATUS = "feedforward beyond limits"
    VELOCITY = "velocity violation"
    TRACKING = "tracking error"
    SATURATION = "effort saturated"
    EFFORT_STEP = "effort discontinuity"


class Obstacle(str, Enum):
    """Why a motion cannot be joined although no check fails."""

    NOTHING_CAME = "nothing has come yet"
    NOT_ASKED = "it has to be asked to start"
    NOT_LISTENING = "nobody takes the commands"
    SETTLING = "all has been sound for a moment only"
    UNKNOWN_POSE = "start pose invalid: where the robot stands is not known"
    NO_POSITIONS = "start pose invalid: the feedforward holds no motor positions"
    POSE = "start pose invalid"
    SPEED = "start pose invalid: the motion is under way"


class Progress(str, Enum):
    """Why a guard went on."""

    JOINED = "feedforward and robot fit together"
    ARRIVED = "the robot is on the motion"


START_POSE = (Obstacle.UNKNOWN_POSE, Obstacle.NO_POSITIONS, Obstacle.POSE, Obstacle.SPEED)

# What follows the name of a reason; {value} and {limit} are in rad, rad/s, N.m or s, or m, m/s, N.
SENTENCES: dict[Enum, str] = {
    Fault.SHUTDOWN: "it was asked to stop for good",
    Fault.HELD_UP: "{value:.3g} s passed between two commands, and drives do not hold one for longer than "
    "{limit:g} s, so nothing more is commanded",
    Fault.CLOCK: "it went on by {value:.3g} s between two commands",
    Fault.FROZEN: "the position of joint {joint!r} stays the same, bit for bit, while it should move by "
    "{value:.3g} rad or m; look after its encoder, or free the joint",
    Fault.CONTRADICTION: "the positions of joint {joint!r} have moved by {value:.3g} rad or m more than its "
    "velocities say; look after sign, scale and order of its encoder",
    Fault.NO_MEASUREMENT: "no sound one for {limit:g} s, or one after a gap",
    Fault.LATE_MEASUREMENTS: "they are {value:.3g} s old on average; feedback swings with more than "
    "{limit:g} s; bring them sooner, or lower the gains and raise 'latency'",
    Fault.MISMATCH: "joint {joint!r} moves as if {value:.3g} N.m or N acted besides, {limit:.3g} are "
    "allowed; look for a contact, a payload, a weak or turned motor, or raise uncertainty in its file",
    Fault.NO_FEEDFORWARD: "none for {limit:g} s",
    Fault.REFERENCE_STEP: "",
    Fault.STATUS: "the feedforward has the status",
    Fault.VELOCITY: "joint {joint!r} has {value:.3g} rad/s or m/s; the limit is {limit:g}",
    Fault.TRACKING: "joint {joint!r} is {value:.3g} rad or m off its reference, {limit:g} are allowed",
    Fault.SATURATION: "efforts at their limit for {limit:g} s",
    Fault.EFFORT_STEP: "",
    Obstacle.NOT_ASKED: "call the service ~/start, or set 'rejoin' to always",
    Obstacle.UNKNOWN_POSE: "publish joint states with stamps",
    Obstacle.NO_POSITIONS: "let dynamics_node have the drives of the robot, or set join_within to 0 where "
    "efforts act alone",
    Obstacle.POSE: "joint {joint!r} stands {value:.3g} rad or m from the motion, more than join_within "
    "({limit:g}); begin where the robot stands",
    Obstacle.SPEED: "joint {joint!r} is {value:.3g} rad/s or m/s slower or faster than the motion, more than "
    "join_speed ({limit:g}); begin at rest",
}


@dataclass(frozen=True)
class Reason:
    """Why a state was entered, or is not left; as text a line for the log.

    `joint`: whose it is, empty for none; `value`: what was found, and `limit`: what is allowed, in SI units.
    `tripped`: the motors let go at once, the one step of the effort that is allowed. `note`: more words.
    """

    cause: Fault | Obstacle | Progress
    joint: str = ""
    value: float = 0.0
    limit: float = 0.0
    tripped: bool = False
    note: str = ""

    @property
    def fault(self) -> Fault | None:
        """The check that has failed; None where none has."""
        return self.cause if isinstance(self.cause, Fault) else None

    @property
    def start_pose(self) -> bool:
        """Whether the robot does not stand where the motion begins, or that is not known."""
        return self.cause in START_POSE

    def __str__(self) -> str:
        """Return the name of the cause, and what was found."""
        sentence = SENTENCES.get(self.cause, "")
        said = sentence.format(joint=self.joint, value=self.value, limit=self.limit)
        more = " ".join(part for part in (said, self.note) if part)
        name = self.cause.value + (", so the motors let go" if self.tripped else "")
        return f"{name}: {more}" if more else name


class Transition(NamedTuple):
    """A change of state, and why."""

    before: State
    after: State
    reason: Reason


class StreamError(InputError):
    """A measurement or a feedforward cannot be used.

    `clock` tells wrong stamps from wrong numbers; `fault` is what it means to a guard that follows.
    """

    def __init__(
        self,
        message: str,
        *,
        clock: bool = False,
        fault: Fault = Fault.REFERENCE_STEP,
        joint: str = "",
        value: float = 0.0,
        limit: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.clock, self.reason = clock, Reason(fault, joint, value, limit, note=message)
