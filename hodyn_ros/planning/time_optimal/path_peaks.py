"""What is used of limits along a path at any speed of it, and the peaks of that.

A speed changes nothing of the path. So what the robot needs there (`PathDynamics`) is computed once for
every place that is looked at, and only the chain rule again for another speed. Places are where the search
for peaks samples first: what is known there, it knows already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.along import divided
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.peaks import (
    TOLERANCE,
    Peaks,
    RoughError,
    Samples,
    find_peaks,
    places_between,
    sampled_places,
)
from hodyn_ros.planning.time_optimal.frame_speed import Pace
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.speed_spline import DEGREE, Stations
from hodyn_ros.trajectory.robot_motion import RobotMotion

# Where pieces at the ends are cut, counted from there: there torque rates rise fast from rest.
AT_ENDS = (0.25, 0.5, 0.75, 1.5)


class PathPeaks:
    """A path between knots (m,) of its squared speed, with what a robot needs at many places.

    Attributes:
        u: The places (N,), in order.
        path: What is needed there.
        stations: What they see of the spline of the squared speed.
        usage: The limits.
    """

    def __init__(self, demand: LimitSet, motion: RobotMotion, knots: Array, pace: Pace | None = None) -> None:
        self._demand, self._motion, self._pace = demand, motion, pace
        self._padded = np.concatenate([np.full(DEGREE, knots[0]), knots, np.full(DEGREE, knots[-1])])
        ends = [np.interp(AT_ENDS, np.arange(len(three)), three) for three in (knots[:3], knots[:-4:-1])]
        self.edges = divided(motion.trajectory, np.unique(np.concatenate([knots, *ends])))
        sampled = sampled_places(self.edges)
        self.u = np.sort(sampled, axis=None)
        self._sampled = np.searchsorted(self.u, sampled)
        self.path, self.stations = self.at(self.u)
        self.usage = PathUsage(demand)
        self._at: dict[bytes, tuple[PathDynamics, Stations]] = {}  # by what the search has asked for

    def at(self, u: Array) -> tuple[PathDynamics, Stations]:
        """Return what is needed at places (N,), increasing, and what these see of the spline."""
        return PathDynamics.of(self._demand, self._motion, u, self._pace), Stations(self._padded, u)

    def find(self, coefficients: Array, precision: float) -> Peaks:
        """Return the peaks of what is used of each limit, their `times` being places along the path.

        Raises InputError where one cannot be followed.
        """
        first = self._samples(self.path, self.stations, coefficients)

        def samples(u: Array) -> Samples:
            rows = np.minimum(np.searchsorted(self.u, u), len(self.u) - 1)
            if (self.u[rows] == u).all():
                return _chosen(first, rows)
            order = np.argsort(u, kind="stable")
            key = u.tobytes()
            if key not in self._at:
                self._at[key] = self.at(u[order])
            return _chosen(self._samples(*self._at[key], coefficients), np.argsort(order))

        columns = self.usage.columns
        signed = self._demand.one_sided[columns]
        try:
            peaks = find_peaks(samples, self.edges, TOLERANCE, signed, precision=precision)
        except RoughError as error:
            column = self._demand.columns[columns[error.column]]
            share = (error.time - self.u[0]) / (self.u[-1] - self.u[0])
            raise InputError(
                f"the {column.quantity} of {column.joint} is too rough at {100.0 * share:.4g} % of the path "
                f"to find its peak: it is known to {100.0 * error.error:.2g} % of its limit only"
            ) from error
        used = np.zeros(len(self._demand.columns))
        used[columns] = peaks.sizes
        return peaks._replace(sizes=self._demand.usage(used)[columns])

    def between(self, coefficients: Array, least: float) -> Array:
        """Return places (K,) between others where more than the `least` is used of a limit."""
        values = self.usage.values(self.path, self.stations.speeds(coefficients))
        return places_between(self.edges, values[self._sampled, : len(self.usage.columns)], least)

    def _samples(self, path: PathDynamics, stations: Stations, coefficients: Array) -> Samples:
        y = stations.speeds(coefficients)
        return Samples(*self.usage.with_integrals(path, y), y[:, 0] ** -0.5)


def _chosen(samples: Samples, rows: NDArray[np.intp]) -> Samples:
    values, integrals, lasting = samples
    assert integrals is not None and lasting is not None
    return Samples(values[rows], integrals[rows], lasting[rows])
