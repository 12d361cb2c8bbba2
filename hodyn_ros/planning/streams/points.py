"""Points of a stream: checked when they come, and what has become of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.planning.streams.stream_config import PointsError, Trouble

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
