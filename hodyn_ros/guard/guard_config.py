"""The words of the guard between feedforwards and motors: its states, what it checks, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.keys import key, said_of


class State(str, Enum):
    """Where a guard is; see `command_guard`."""

    WAITING = "waiting"
    JOINING = "joining"
    FOLLOWING = "following"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Fault(str, Enum):
    """Which check has failed; the value is its name in logs and diagnostics."""

    SHUTDOWN = "shutdown"
    HELD_UP = "held up, or the clock has jumped"
    NO_MEASUREMENT = "no measurement"
    LATE_MEASUREMENTS = "measurements too late"
    NO_FEEDFORWARD = "no feedforward"
    REFERENCE_STEP = "reference discontinuity"
    STATUS = "feedforward beyond limits"
    VELOCITY = "velocity violation"
    TRACKING = "tracking error"
    SATURATION = "effort saturated"
    EFFORT_STEP = "effort discontinuity"


class End(str, Enum):
    """What is commanded once the robot stands."""

    HOLD = "hold"  # the efforts, and the feedback where there is one, go on
    ZERO = "zero"  # efforts go to zero


class FirstEffort(str, Enum):
    """What the joints carry before the first command."""

    FEEDFORWARD = "feedforward"  # what the feedforward says: brakes or another controller hold the robot
    ZERO = "zero"  # nothing: the drives carry the weight, or are switched on later


class StreamError(InputError):
    """A measurement or a feedforward cannot be used; `clock` tells wrong stamps from wrong numbers."""

    def __init__(self, message: str, *, clock: bool = False) -> None:
        super().__init__(message)
        self.clock = clock


class Transition(NamedTuple):
    """A change of state, and why."""

    before: State
    after: State
    reason: str


def _unlimited() -> Array:
    return np.array(np.inf)


@dataclass(frozen=True)
class GuardLimits:
    """What the joints may do, (n,) or one for all; infinite where it is not known."""

    velocity: ArrayLike = field(default_factory=_unlimited)  # [rad/s or m/s]
    effort: ArrayLike = field(default_factory=_unlimited)  # [N.m or N]
    effort_rate: ArrayLike = field(default_factory=_unlimited)  # [N.m/s or N/s]


@dataclass(frozen=True)
class GuardConfig:
    """What a guard allows. Read m and N for rad and N.m where a joint is prismatic.

    `measured`: whether it goes on only while measurements come. With `join_within` 0 it joins wherever the
    robot is, and without measurements. `stop_on`: the bits of a feedforward's status that it does not follow.
    """

    timeout: float = key(
        "How long [s] a feedforward is extrapolated by its derivatives, and how early one may come; without "
        "a newer one the robot stops.",
        default=0.05,
        within=(0.001, 1.0),
    )
    measured: bool = False
    measurement_timeout: float = key(
        "How old [s] a measurement may be, with feedback and at the start.",
        default=0.05,
        within=(0.001, 10.0),
    )
    clock_tolerance: float = 0.005  # [s] that a measurement may be stamped ahead
    latency: float = 0.005  # [s] age of measurements on average up to which feedback is stable
    lead: float = key(
        "Time [s] from the computation of a command to the middle of its effect: the delay to the drive and "
        "half of its period.",
        default=0.0,
        within=(0.0, 0.1),
    )
    join_within: float = key(
        "A motion is joined if it is within this [rad or m] of the robot in every joint; 0: not checked, so "
        "that a robot that stands elsewhere jumps.",
        default=0.05,
        within=(0.0, 1.0),
    )
    join_speed: float = key(
        "A motion is joined if its velocity is within this [rad/s or m/s] of that of the robot.",
        default=0.1,
        within=(0.0, 100.0),
    )
    settle: float = key(
        "How long [s] all checks must pass before a motion is joined.", default=0.1, within=(0.0, 10.0)
    )
    fade: float = key(
        "How long [s] joining a motion takes, and the fade of efforts to zero.",
        default=0.5,
        within=(0.001, 10.0),
    )
    speed_margin: float = key(
        "The robot stops if a joint is faster than this times its limit.", default=1.1, within=(0.1, 10.0)
    )
    tracking_error: float = key(
        "The robot stops if a joint is farther than this [rad or m] from its reference.",
        default=0.1,
        within=(1e-4, 1e3),
    )
    resolution: float = 0.005  # [rad] by which measured positions may jump
    reference_step: float = 0.005  # [rad] by which two feedforwards may disagree, and ten times it in [rad/s]
    effort_step: float = key(
        "Largest change of a command in a millisecond [N.m or N], unless the rate of the effort in the robot "
        "file allows more.",
        default=2.0,
        within=(0.0, 1e6),
    )
    saturation_time: float = key(
        "How long [s] efforts may be at their limits before the robot stops.", default=0.1, within=(0.0, 1e3)
    )
    stop_on: Status = (
        Status.EFFORT_LIMIT_EXCEEDED
        | Status.VELOCITY_LIMIT_EXCEEDED
        | Status.POSITION_LIMIT_EXCEEDED
        | Status.NEAR_SINGULARITY
    )
    deceleration: float = key(
        "Largest deceleration [rad/s^2 or m/s^2] of the reference in a stop.", default=7.5, within=(0.1, 1e4)
    )
    shortest_stop: float = key(default=0.1, least=1e-3)  # [s]
    end: End = End.HOLD
    release_after: float = key(
        "How long [s] after standstill efforts fade to zero, with end: zero.", default=1.0, within=(0.0, 1e4)
    )
    first_effort: FirstEffort = FirstEffort.FEEDFORWARD

    def __post_init__(self) -> None:
        for entry in fields(self):
            least, given = said_of(entry).get("minimum"), getattr(self, entry.name)
            if least is not None and not (given > 0.0 if least else 0.0 <= given < np.inf):
                must = "positive" if least else "finite and not negative"
                raise InputError(f"{entry.name} must be {must}, found {given}")
