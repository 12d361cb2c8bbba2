"""The exact peaks of positions, velocities, accelerations and jerks of a motion made of polynomials."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.planning.extrema import Extrema, find_extrema, has_extrema
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.peaks import Peaks
from hodyn_ros.trajectory.robot_motion import RobotMotion


class MotionPeaks:
    """Peaks, up to a time `end` [s], of those columns of a demand that the motion alone says.

    Attributes:
        known: Which columns (columns,) these are; none where the motion is not made of polynomials.
    """

    def __init__(
        self, demand: LimitSet, motion: RobotMotion, end: float, some: NDArray[np.bool_] | None = None
    ) -> None:
        """Look at `some` of the columns (columns,), by default at all."""
        self._demand, self._motion, self._end = demand, motion, end
        own = [
            _coordinate(demand, column) if some is None or some[column] else None
            for column in range(len(demand.columns))
        ]
        self.known: NDArray[np.bool_] = np.array([number is not None for number in own], dtype=bool)
        orders = [place.derivative for place, number in zip(demand.places, own) if number is not None]
        numbers = [number for number in own if number is not None]
        self._orders = np.array(orders, dtype=np.intp)
        self._joints = len(motion.coordinates) + np.array(numbers, dtype=np.intp)
        if not has_extrema(motion.trajectory.pieces, self._orders.max(initial=0)):
            self.known[:] = False

    @cached_property
    def _extrema(self) -> Extrema:
        pieces = self._motion.trajectory.pieces
        assert pieces is not None
        return find_extrema(pieces, int(self._orders.max()), self._end)

    def joined(self, searched: Peaks | None, speed: float) -> Peaks:
        """Return peaks at a speed; `searched` are those of the columns that are not known.

        Times are those of the motion as given; nothing is said of columns that were not looked for.
        """
        if searched is None:
            nothing = np.zeros(len(self.known))
            searched = Peaks(nothing, nothing, nothing, nothing, 0)
        if not self.known.any():
            return searched
        extrema, at = self._extrema, (self._orders, self._joints)
        values = np.stack([extrema.highest[at], extrema.lowest[at]]) * speed**self._orders
        centre, span = self._demand.scale[:, self.known]
        relative = (values - centre) / span
        sizes = np.where(self._demand.one_sided[self.known], relative, np.abs(relative))
        higher = np.argmax(sizes, axis=0)[None]
        times = np.stack([extrema.highest_times[at], extrema.lowest_times[at]])

        def joined(of_search: Array, both: Array) -> Array:
            result = of_search.copy()
            result[self.known] = np.take_along_axis(both, higher, axis=0)[0]
            return result

        return Peaks(
            joined(searched.sizes, sizes),
            joined(searched.times, times),
            joined(searched.values, relative),
            joined(searched.errors, np.zeros_like(sizes)),
            searched.evaluations + extrema.evaluations,
        )


def _coordinate(demand: LimitSet, column: int) -> int | None:
    """Return the coordinate of the robot that a quantity is a derivative of; None where it is of none."""
    subject, place = demand.subject, demand.places[column]
    if place.stack == "coordinates":
        return place.number
    name = subject.joint_names[place.number] if place.stack == "motion" else None
    return subject.robot.joint_names.index(name) if name in subject.robot.joint_names else None
