"""What a path has to be for a fast motion along it."""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.retime import InfeasibleError
from hodyn_ros.trajectory.base import Trajectory, derivative_name
from hodyn_ros.trajectory.robot_motion import RobotMotion

_POINTS = 2001
_BESIDE = 1e-7  # of a path, to either side of a breakpoint
_KINK = 1e-4  # relative change of a derivative there that is none of rounding
_END = 1e-6  # of a path: places that near an end are this end


def require_path(path: RobotMotion, demand: LimitSet) -> None:
    """Raise InputError for a path without an end, with a kink, or too rough for the limits of a robot.

    InfeasibleError where it leaves the range of a joint.
    """
    trajectory = path.trajectory
    if not np.isfinite(trajectory.duration):
        raise InputError("the path has no end; give the motion a duration")
    if trajectory.smoothness < demand.order - 1:
        raise InputError(_kink(trajectory, demand.order - 1))
    _require_range(path, demand)


def place_of(u: float, begin: float, end: float) -> str:
    """Say where on a path, from its parameter `begin` to `end`, the parameter `u` is."""
    share = (u - begin) / (end - begin)
    if min(share, 1.0 - share) < _END:
        return "at the start of the path" if share < 0.5 else "at the end of the path"
    return f"after {100.0 * share:.3g} % of the path (at {u:.4g} of {end:.4g})"


def _kink(path: Trajectory, needed: int) -> str:
    name = derivative_name(int(path.smoothness) + 1)
    where = _jump(path, int(path.smoothness) + 1)
    at = "" if where is None else f" {place_of(where, path._departure, path.duration)}"
    return (
        f"there is a kink{at}: the {name} of the path jumps, and the limits of this robot need it to be "
        f"continuous up to its {derivative_name(needed)}; round its corners with a spline or a blend "
        f"(interpolation: blend), or {path._smoother(needed)}"
    )


def _jump(path: Trajectory, order: int) -> float | None:
    """Return where a derivative jumps most, None where that is not known."""
    points = path.breakpoints
    if points is None:
        return None
    begin, end = path._departure, path.duration
    inside = points[(points > begin) & (points < end)]
    before, after = (
        path.sample(inside + side * _BESIDE * (end - begin), order)[:, order] for side in (-1, 1)
    )
    at_ends = path.sample(np.array([begin, end]), order)[:, order]  # from rest, to rest
    jumps: Array = np.abs(np.concatenate([after - before, at_ends])).max(axis=1)
    largest = np.abs(np.concatenate([before, at_ends])).max()
    # where there is one inside, that of the ends is none to be mended
    for places, sizes in ((inside, jumps[:-2]), (np.array([begin, end]), jumps[-2:])):
        if sizes.max(initial=0.0) > _KINK * largest:
            return float(places[int(np.argmax(sizes))])
    return None


def _require_range(path: RobotMotion, demand: LimitSet) -> None:
    if demand.timed.all():
        return
    from hodyn_ros.planning.along import DemandAlong  # the peaks of positions, at any speed

    trajectory = path.trajectory
    peaks = DemandAlong(demand, path).position_peaks()
    worst = demand.position_beyond(peaks.sizes)
    if worst is not None:
        column = demand.columns[worst]
        raise InfeasibleError(
            f"joint {column.joint!r} leaves its range "
            f"{place_of(peaks.times[worst], trajectory._departure, trajectory.duration)}: it is at "
            f"{demand.absolute(peaks.values)[worst]:.9g} {column.unit}, allowed are {column.lower:g} to "
            f"{column.upper:g}"
        )
