"""A limit of the speed of a frame along its path, beside those of the robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.limit_set import Column
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.splines.spline import WaypointSpline
from hodyn_ros.trajectory.timed import eased_path


class FrameSpeed(NamedTuple):
    """How fast a frame may go along its path."""

    frame: str
    limit: float  # [m/s]
    # from parameters u (N,) of the path to the way by u of the frame (N,) [m]
    along: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Pace:
    """The limit of the speed of a frame, along an eased path."""

    column: Column
    along: Callable[[Array], Array]
    travel: Trajectory  # (1 column) the parameter of the path by that of the eased one

    def at(self, u: Array) -> Array:
        """Return which share of the limit is used at du/dt = 1 (N,)."""
        travel = self.travel.sample(u, 1)[:, :, 0]
        return np.asarray(self.along(travel[:, 0]) * travel[:, 1] / self.column.upper)


def pace_of(speed: FrameSpeed | None, eased: Trajectory, ease: tuple[float, float]) -> Pace | None:
    """Return the limit along an eased path, None where there is none; InputError for one that cannot be."""
    if speed is None:
        return None
    if not 0.0 < speed.limit < np.inf:
        raise InputError(f"the speed of {speed.frame!r} must be positive and finite, found {speed.limit:g}")
    length = eased.duration - 0.5 * sum(ease)
    places = np.linspace(0.0, length, 8)
    travel = eased_path(WaypointSpline(places, places[:, None], at_rest=False), ease)
    column = Column("speed", speed.frame, "m/s", -speed.limit, speed.limit, 1)
    return Pace(column, speed.along, travel)
