"""The words of the guard between feedforwards and motors: its states, what it checks, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.lie.se3 import Array


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

    timeout: float = 0.05  # [s] that a feedforward is carried on, either way
    measured: bool = False
    measurement_timeout: float = 0.05  # [s]
    clock_tolerance: float = 0.005  # [s] that a measurement may be stamped ahead
    latency: float = 0.005  # [s] age of measurements on average up to which feedback is stable
    lead: float = 0.0  # [s] from a command to the middle of the time it acts
    join_within: float = 0.05  # [rad] from the motion
    join_speed: float = 0.1  # [rad/s] from the motion's
    settle: float = 0.1  # [s] for which all has to be sound before
    fade: float = 0.5  # [s] that joining takes
    speed_margin: float = 1.1  # times the limit of the velocity
    tracking_error: float = 0.1  # [rad]
    resolution: float = 0.005  # [rad] by which measured positions may jump
    reference_step: float = 0.005  # [rad] by which two feedforwards may disagree, and ten times it in [rad/s]
    effort_step: float = 2.0  # [N.m] in a millisecond, that a command may always step
    saturation_time: float = 0.1  # [s]
    stop_on: Status = (
        Status.EFFORT_LIMIT_EXCEEDED
        | Status.VELOCITY_LIMIT_EXCEEDED
        | Status.POSITION_LIMIT_EXCEEDED
        | Status.NEAR_SINGULARITY
    )
    deceleration: float = 7.5  # [rad/s^2]
    shortest_stop: float = 0.1  # [s]
    end: End = End.HOLD
    release_after: float = 1.0  # [s] after the stop, for End.ZERO
    first_effort: FirstEffort = FirstEffort.FEEDFORWARD

    def __post_init__(self) -> None:
        positive = (
            "timeout",
            "measurement_timeout",
            "fade",
            "speed_margin",
            "tracking_error",
            "deceleration",
        )
        for name in (*positive, "shortest_stop"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} must be positive, found {getattr(self, name)}")
        for name in ("lead", "join_within", "join_speed", "settle", "effort_step", "release_after"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} must be finite and not negative, found {getattr(self, name)}")
