"""What a stream of points may demand, how its motion follows, and what is wrong with points."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.model.keys import check_ranges, key


class Mode(str, Enum):
    """How the motion follows the points."""

    APPROXIMATE = "approximate"  # points are control points: the motion stays in their hull, with least delay
    INTERPOLATE = "interpolate"  # it passes through the points, later by `LOOKAHEAD` spacings
    LATEST = "latest"  # as approximate, but later by all of the delay that is allowed
    TRACK = "track"  # points are where a target is, with noise: it is followed as soon as the limits allow


class Trouble(str, Enum):
    """What is wrong with points; the value is its name in diagnostics."""

    TIMES = "times"
    LATE = "late"
    JUMP = "jump"
    LIMITS = "limits"
    NUMBERS = "numbers"


class PointsError(InputError):
    """Points cannot be followed; the motion before them goes on."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


@dataclass(frozen=True)
class StreamConfig:
    """How a stream is followed. Read m for rad where a joint is prismatic."""

    mode: Mode = Mode.APPROXIMATE
    spacing: float = key(
        "Time between two control points [s]: a longer one is smoother, a shorter one follows sooner; the "
        "motion answers after three to four of them.",
        default=0.04,
        within=(0.001, 0.5),
    )
    delay: float = key(
        "How far [s] the motion may be behind the stamps of the stream; mode latest is as far as that.",
        default=0.5,
        within=(0.0, 10.0),
    )
    blend: float = key(
        "How long [s] the motion takes from one chunk to the next one, where they disagree.",
        default=0.2,
        within=(0.0, 10.0),
    )
    stop: float = key(
        "How long [s] the motion takes to stop at the last point when the stream ends.",
        default=0.2,
        within=(0.01, 10.0),
    )
    jump: float = key(
        "How far [rad or m] points may lie from the motion that they continue; in mode track, until a third "
        "message says the same.",
        default=0.5,
        within=(0.0, 100.0),
    )
    noise: float = key(
        "Mode track: by how much [rad or m] single points are off what they mean, as a standard deviation.",
        default=0.001,
        within=(0.0, 0.1),
    )
    lag: float = key(
        "Mode track: how far [s] the motion is behind single points; less predicts more, and noise with it.",
        default=0.058,
        within=(0.0, 0.5),
    )
    stiffness_error: float = key(
        "Share by which springs may be stiffer or softer than modelled: torques bend so gently that they "
        "hardly swing for it.",
        default=0.0,
        within=(0.0, 0.99),
    )
    payload_error: float = key(
        "Payload [kg] that may be carried without being modelled; what swings for it stays as small.",
        default=0.0,
        within=(0.0, 1e4),
    )

    def __post_init__(self) -> None:
        check_ranges(self)


FURTHEST = 20.0  # [s] ahead that a point may be


class Taken(NamedTuple):
    """What has become of some points."""

    followed: bool  # False: no way to them keeps the limits, and the motion before them goes on to its end
    delay: float  # [s] from the stamp of a point to the motion there
    rate: float  # of the clock
    share: float  # of the rate that was wished for: below 1 where limits ask for it
    usage: float  # share of the most used limit, at most 1
    limit: str  # which one it is
    note: PointsError | None = None  # what was wrong with points that are followed nevertheless


def checked(
    times: ArrayLike, positions: ArrayLike, joint_names: tuple[str, ...], now: float
) -> tuple[Array, Array]:
    """Return times (N,) and positions (N, n) as arrays; PointsError for what cannot be meant."""
    when, where = np.array(times, dtype=np.float64), np.array(positions, dtype=np.float64)
    if when.ndim != 1 or not len(when) or where.shape != (len(when), len(joint_names)):
        raise PointsError(
            Trouble.NUMBERS,
            f"{when.shape} times and {where.shape} positions; send a position of each of the "
            f"{len(joint_names)} joints for each time",
        )
    if not np.isfinite(when).all():
        raise PointsError(Trouble.NUMBERS, "a time is not finite; send numbers")
    if not np.isfinite(where).all():
        point, joint = np.argwhere(~np.isfinite(where))[0]
        raise PointsError(
            Trouble.NUMBERS,
            f"point {point} holds {where[point, joint]} for joint {joint_names[joint]!r}; send "
            "finite numbers",
        )
    back = when[1:] <= when[:-1]
    if back.any():
        point = int(np.argmax(back)) + 1
        raise PointsError(Trouble.TIMES, f"point {point} is not after the one before it; times must increase")
    if when[-1] > now + FURTHEST:
        raise PointsError(
            Trouble.TIMES,
            f"the last point is for {when[-1] - now:.3g} s from now, and may be for {FURTHEST:g} s; let "
            "both run by the same clock, or send points later",
        )
    return when, where


def beyond_limits(
    where: Array, lower: Array, upper: Array, joint_names: tuple[str, ...]
) -> PointsError | None:
    """Return what is wrong with positions (N, n) beyond the limits (n,) of joints; None where nothing is."""
    over = (where < lower) | (where > upper)
    if not over.any():
        return None
    point, joint = np.argwhere(over)[0]
    return PointsError(
        Trouble.LIMITS,
        f"point {point} wants joint {joint_names[joint]!r} at {where[point, joint]:.6g}, and "
        f"its limits are {lower[joint]:g} and {upper[joint]:g}; keep within",
    )
