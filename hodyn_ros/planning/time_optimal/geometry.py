"""What a path has to be for a fast motion along it."""

from __future__ import annotations

import numpy as np

from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import Array
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.retime import InfeasibleError
from hodyn_ros.trajectory.base import Trajectory, derivative_name
from hodyn_ros.trajectory.robot_motion import RobotMotion

_POINTS = 2001
_BESIDE = 1e-7  # of a path, to either side of a breakpoint
_KINK = 1e-4  # relative change of a derivative there that is none of rounding


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


def _kink(path: Trajectory, needed: int) -> str:
    name = derivative_name(int(path.smoothness) + 1)
    where = _jump(path, int(path.smoothness) + 1)
    at = "" if where is None else f" at {where:.6g}"
    return (
        f"the path has a kink{at}: its {name} jumps there, and the limits of this robot need one that is "
        f"continuous up to its {derivative_name(needed)}; round its corners with a spline or a blend "
        f"(interpolation: blend), or {path._smoother(needed)}"
    )


def _jump(path: Trajectory, order: int) -> float | None:
    """Return where a derivative jumps most, None where that is not known."""
    points = path.breakpoints
    if points is None:
        return None
    length = path.duration - path._departure
    inside = points[(points > path._departure) & (points < path.duration)]
    if not len(inside):
        return None
    before, after = (path.sample(inside + side * _BESIDE * length, order)[:, order] for side in (-1, 1))
    jumps: Array = np.abs(after - before).max(axis=1)
    return float(inside[int(np.argmax(jumps))]) if jumps.max() > _KINK * np.abs(before).max() else None


def _require_range(path: RobotMotion, demand: LimitSet) -> None:
    if demand.timed.all():
        return
    from hodyn_ros.planning.along import DemandAlong  # the peaks of positions, at any speed

    peaks = DemandAlong(demand, path).peaks()
    worst = demand.position_beyond(peaks.sizes)
    if worst is not None:
        column = demand.columns[worst]
        raise InfeasibleError(
            f"the path leaves the range of joint {column.joint!r}: at {peaks.times[worst]:.6g} it is at "
            f"{demand.absolute(peaks.values)[worst]:g} {column.unit}, allowed are {column.lower:g} to "
            f"{column.upper:g}"
        )
