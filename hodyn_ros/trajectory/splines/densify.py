"""From the sparse waypoints of a planner to a motion as smooth as the torque of an elastic joint asks for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.splines.spline import WaypointSpline

# The motor torque of an elastic joint holds the snap.
_ORDER = 4

# Planners write a rest with rounding [rad/s or m/s].
REST = 1e-6


class Waypoints(NamedTuple):
    """Points of a motion: times (m,) [s], the others (m, n) in rad or m and s; None where not given."""

    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None


class Departure(NamedTuple):
    """Where a motion is farthest from another one."""

    distance: float  # [rad or m]
    joint: int
    time: float  # [s]


class DenseMotion(NamedTuple):
    """A smooth motion through waypoints, and the instants it is to be sampled at."""

    motion: WaypointSpline
    times: Array  # (N,) [s], those of the waypoints among them
    leads_to: NDArray[np.intp]  # (N,) the waypoint that each instant leads to, or lies at
    departure: Departure  # from what a joint trajectory controller makes of the same waypoints
    left_out: int  # waypoints that the motion does not pass, next to an end that is eased


def densify(waypoints: Waypoints, period: float, ease: float = 0.0) -> DenseMotion:
    """Return a spline through waypoints, continuous up to snap, with instants at most `period` [s] apart.

    It passes the positions, and the velocities and accelerations where these are given. Without velocities it
    starts and ends at rest. No elastic joint can follow a jump of the acceleration, so its ends are `eased`.
    Raises InputError for waypoints that make no motion.
    """
    if not 0.0 < period < math.inf:
        raise InputError(f"the period must be positive and finite, found {period} s")
    passed = eased(waypoints, ease)
    motion = WaypointSpline(*passed, order=_ORDER)
    instants, leads_to = _instants(waypoints.times, period)
    departure = _departure(motion, waypoints, instants)
    return DenseMotion(motion, instants, leads_to, departure, len(waypoints.times) - len(passed.times))


def eased(waypoints: Waypoints, ease: float) -> Waypoints:
    """Return the waypoints without a jump of the acceleration at an end at rest.

    Many planners start and end with one. There the acceleration becomes zero, and waypoints nearer to it than
    `ease` [s] are left out; 0: as they are given.
    """
    times, positions, velocities, given = waypoints
    if given is None or ease <= 0.0:
        return waypoints
    accelerations, passed = given.copy(), np.ones(len(times), dtype=bool)
    for end in (0, -1):
        at_rest = velocities is None or np.abs(velocities[end]).max() <= REST
        if at_rest and given[end].any():
            accelerations[end] = 0.0
            passed &= np.abs(times - times[end]) >= ease * (1.0 - 1e-9)
    passed[[0, -1]] = True
    return Waypoints(
        times[passed],
        positions[passed],
        None if velocities is None else velocities[passed],
        accelerations[passed],
    )


def _instants(times: Array, period: float) -> tuple[Array, NDArray[np.intp]]:
    """Divide each step between waypoints evenly into parts of at most `period`."""
    parts = np.maximum(1, np.ceil(np.diff(times) / period - 1e-6)).astype(np.intp)
    pieces = [
        start + (end - start) * np.arange(1, count + 1) / count
        for start, end, count in zip(times, times[1:], parts)
    ]
    # the last part of a step is the waypoint itself, without rounding
    for piece, end in zip(pieces, times[1:]):
        piece[-1] = end
    instants = np.concatenate([times[:1], *pieces])
    leads_to = np.concatenate([[0], np.repeat(np.arange(1, len(times)), parts)])
    return instants, leads_to.astype(np.intp)


def _departure(motion: WaypointSpline, waypoints: Waypoints, instants: Array) -> Departure:
    plain = PiecewisePolynomial(*waypoints)
    distances = np.abs(motion.sample(instants, 0) - plain.sample(instants, 0))[:, 0]
    row, joint = np.unravel_index(int(np.argmax(distances)), distances.shape)
    return Departure(float(distances[row, joint]), int(joint), float(instants[row]))
