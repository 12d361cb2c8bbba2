"""Motions from rest to rest, which is what a robot can be asked to follow."""

from __future__ import annotations

import math

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.easing import EasedStart, EasedStop
from hodyn_ros.trajectory.splines.densify import REST, Waypoints, eased
from hodyn_ros.trajectory.splines.spline import WaypointSpline

_EASED_ORDER = 6  # continuity of the ramps at least; one order more costs nothing
_SPLINE_ORDER = 4  # continuity of a spline at least, what the torque of an elastic joint needs

# A first waypoint this near [rad or m] to where the robot is held is taken to be there.
_SAME_POSITION = 1e-6


def rest_to_rest(
    trajectory: Trajectory, ramp: float, duration: float | None = None, order: int = 0
) -> Trajectory:
    """Return a trajectory with a smooth start from rest and a smooth stop, where it has none of its own.

    `ramp` [s] is the length of the start and of the stop, whose derivatives are continuous up to `order`, or
    6; 0 leaves out both. `duration` [s] is how long the motion goes at its own pace between them, None for
    all of it. Raises InputError when there is less of it, or no ramp to stop it early.
    """
    order = max(order, _EASED_ORDER)
    eased, lead = trajectory, 0.0
    if ramp > 0.0 and not trajectory.starts_at_rest:
        eased, lead = EasedStart(trajectory, ramp, order=order), ramp
    if duration is not None and lead + duration < eased.duration:
        if ramp == 0.0:
            raise InputError(f"to stop the motion after {duration:g} s it needs a ramp longer than 0 s")
        own = eased.duration - lead
        if duration + 0.5 * ramp > own:
            raise InputError(
                f"the motion is asked to last {duration:g} s before it stops within {ramp:g} s, but there "
                f"are {own:g} s of it; let it last {max(own - 0.5 * ramp, 0.0):g} s at most, or all of them"
            )
        return EasedStop(eased, ramp, lead + duration + 0.5 * ramp, order=order)
    if duration is not None and lead + duration > eased.duration:
        raise InputError(
            f"the motion is asked to last {duration:g} s, but there are {eased.duration - lead:g} s of it"
        )
    if ramp > 0.0 and not eased.ends_at_rest and math.isfinite(eased.duration):
        return EasedStop(eased, ramp, order=order)
    return eased


def through_points(
    times: Array,
    positions: Array,
    velocities: Array | None = None,
    accelerations: Array | None = None,
    *,
    present: Array | None = None,
    order: int = 0,
    ease: float = 0.0,
) -> WaypointSpline:
    """Return a spline through waypoints that starts where a robot is held, and both starts and ends at rest.

    `times` (m,) [s], the others (m, n) in rad (or m) and s; `present` (n,) is the position the robot is held
    at, None where it is not held yet. A first time above 0 is the time to get from there to the first
    waypoint. The derivatives are continuous up to `order`, or 4; `ease` [s] as in `densify.eased`. Raises
    InputError for a jump at the start, and for an end in motion.
    """
    if present is not None and times[0] > 0.0:
        nothing = np.zeros((1, positions.shape[1]))
        times, positions = np.concatenate([[0.0], times]), np.vstack([present, positions])
        velocities = None if velocities is None else np.vstack([nothing, velocities])
        accelerations = None if accelerations is None else np.vstack([nothing, accelerations])
    elif present is not None:
        distance = float(np.abs(positions[0] - present).max())
        if not distance <= _SAME_POSITION:
            raise InputError(
                f"the first point is {distance:.3g} rad (or m) from where the robot is held; start there, or "
                "give it a time_from_start in which to get there"
            )
    if velocities is not None:
        velocities = velocities.copy()
        for end in (0, -1):
            velocities[end, np.abs(velocities[end]) <= REST] = 0.0
    points = eased(Waypoints(times, positions, velocities, accelerations), ease)
    _require_rest("velocities", points.velocities)
    _require_rest("accelerations", points.accelerations)
    return WaypointSpline(*points, order=max(order, _SPLINE_ORDER))


def _require_rest(name: str, rows: Array | None) -> None:
    for i, which in ((0, "first"), (-1, "last")):
        if rows is not None and rows[i].any():
            raise InputError(f"the {name} of the {which} point must be zero: the motion is from rest to rest")
