"""What a guard between feedforwards and motors allows, each figure with its meaning, default and range."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.effort_limiter import FULL_WITHIN, MILLISECOND
from hodyn_ros.guard.reasons import Fault, State, StreamError, Transition
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.keys import check_ranges, key

__all__ = [
    "End",
    "Fault",
    "FirstEffort",
    "GuardConfig",
    "GuardLimits",
    "Rejoin",
    "State",
    "StreamError",
    "Transition",
]


class End(str, Enum):
    """What is commanded once the robot stands."""

    HOLD = "hold"  # the efforts, and the feedback where there is one, go on
    ZERO = "zero"  # efforts go to zero


class FirstEffort(str, Enum):
    """What the joints carry before the first command."""

    FEEDFORWARD = "feedforward"  # what the feedforward says: brakes or another controller hold the robot
    ZERO = "zero"  # nothing: the drives carry the weight, or are switched on later


class Rejoin(str, Enum):
    """When a robot that has stopped may join a motion by itself."""

    NEVER = "never"  # each time it has to be asked
    GAP = "gap"  # after an end or a gap of the stream of feedforwards alone
    ALWAYS = "always"


def _unlimited() -> Array:
    return np.array(np.inf)


@dataclass(frozen=True)
class GuardLimits:
    """What the joints may do, (n,) or one for all; infinite where it is not known."""

    velocity: ArrayLike = field(default_factory=_unlimited)  # [rad/s or m/s]
    effort: ArrayLike = field(default_factory=_unlimited)  # [N.m or N]
    effort_rate: ArrayLike = field(default_factory=_unlimited)  # [N.m/s or N/s]
    mismatch: ArrayLike = field(default_factory=_unlimited)  # of efforts and motion, allowed [N.m or N]
    lower: ArrayLike = -np.inf  # ends of the range of the joints [rad or m], which a stop keeps if it can
    upper: ArrayLike = np.inf

    def believed_effort_rate(self) -> Array:
        """Return how fast efforts may change (n,) or () [N.m/s or N/s]; hardly where no limit says it.

        Where no rate is known, it follows from the size of the drive: what lets a small robot through would
        cut the feedback of a large one, which then swings.
        """
        rate = np.where(np.isinf(self.effort_rate), self._rate_of_size(), self.effort_rate)
        return np.where(np.isinf(rate), np.finfo(float).tiny, rate)

    def effort_steps(self, least: float) -> Array:
        """Return by how much feedforwards may step (n,) or () [N.m or N]: `least`, more for large drives."""
        rate = self._rate_of_size()
        return np.maximum(least, np.where(np.isinf(rate), 0.0, MILLISECOND * rate))

    def _rate_of_size(self) -> Array:
        return np.asarray(self.effort, dtype=np.float64) / FULL_WITHIN


@dataclass(frozen=True)
class GuardConfig:
    """What a guard allows. Read m and N for rad and N.m where a joint is prismatic.

    `measured`: whether it goes on only while measurements come. With `join_within` 0 it joins wherever the
    robot is, and without measurements; those that come are checked all the same. `stop_on`: the bits of a
    feedforward's status that it does not follow. `efforts_act`: whether the efforts are all that the drives
    do, so that the motion has to agree with them; with feedback they always are. InputError for a figure out
    of its range.
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
    drive_timeout: float = key(
        "How long [s] drives carry out a command when no other follows, and then brake, or let go; after a "
        "hold-up of that length nothing is commanded.",
        default=0.1,
        within=(0.01, 10.0),
    )
    effort_step: float = key(
        "Largest change of a command in a millisecond [N.m or N], unless the rate of the effort in the robot "
        "file allows more; where it has none, 2 % of the largest effort are allowed as well.",
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
        "Largest deceleration [rad/s^2 or m/s^2] of the reference in a stop; 0: 7.5, or for fast joints what "
        "stops them from their highest speed within 0.65 s, and up to three times that before a joint "
        "leaves its range.",
        default=0.0,
        within=(0.0, 1e4),
    )
    shortest_stop: float = key(default=0.1, least=1e-3)  # [s]
    end: End = End.HOLD
    release_after: float = key(
        "How long [s] after standstill efforts fade to zero, with end: zero.", default=1.0, within=(0.0, 1e4)
    )
    first_effort: FirstEffort = FirstEffort.FEEDFORWARD
    rejoin: Rejoin = Rejoin.GAP
    efforts_act: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)
