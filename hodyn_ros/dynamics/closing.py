"""Positions at which all loops are closed: Newton's method from known ones, in steps that keep the branch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.errors import ConvergenceError
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.model.closure import Closure
from hodyn_ros.se3 import Array, exp, inverse, log

_TOLERANCE = 1e-13  # [rad], and of the robot's size: open loops that a last step of Newton's closes
_ITERATIONS = 15
_STRIDE = 0.2  # [rad], and of the robot's size: the longest way of coordinates taken in one step
_MOST_STEPS = 240
_LONGEST = 1.0  # [rad], and of the robot's size: a step of Newton's that may end on another branch
_FORCED = 1e-3  # [rad], and of the robot's size: rows taken as redundant must not open farther


@dataclass(frozen=True)
class Known:
    """A place with the coordinates that it belongs to."""

    place: Place
    y: Array  # (independent joints,)
    pose: Array | None  # (4, 4) that was given of platform or base


def home(closure: Closure) -> Known:
    """Return the configuration at which the loops are described, zero by default."""
    tree = closure.tree
    base = tree.placements[0] if tree.floating_base else None
    joints = closure.home
    pose = None if closure.platform is None else tree.poses(joints)[closure.platform.body]
    return Known(Place(joints, base), joints[list(closure.joints)], base if closure.base_given else pose)


def step(closure: Closure, place: Place, change: Array) -> Place:
    """Return the place reached by a small change (m,) of z."""
    moved = closure.spread @ change
    base = place.base if place.base is None else exp(moved[:6]) @ place.base
    return Place(place.joints + moved[closure.first :], base)


def close(closure: Closure, chosen: Array, start: Place, y: Array, pose: Array | None) -> LoopMotion:
    """Find the place near `start` with independent joints y and the pose given of platform or base.

    Returns the motion that begins there, of order 0. Raises ConvergenceError naming the loop that stays open
    farthest.
    """
    place = start._replace(base=pose) if closure.base_given else start
    best, tolerance = np.inf, _TOLERANCE + _rounding(closure, pose)
    for _ in range(_ITERATIONS):
        moved = LoopMotion(closure, place, pose)
        sizes = moved.row_sizes
        loops = moved.residuals[chosen]
        base = np.zeros(6 if closure.base_given else 0)
        joints = place.joints[list(closure.joints)] - y
        open_by = np.concatenate([loops, base, joints, moved.platform_residuals])
        size = float(np.abs(_measured(closure, chosen, sizes, open_by)).max(initial=0.0))
        if not size < 2.0 * best:
            break
        best = min(best, size)
        matrix = np.concatenate([moved.J[0][chosen], moved.H[0]])
        try:
            change = -np.linalg.solve(matrix, open_by)
        except np.linalg.LinAlgError:
            break
        if not np.abs((change / closure.scale)[closure.searched]).max(initial=0.0) < _LONGEST:
            break
        place = step(closure, place, change)
        if size <= tolerance:
            found = LoopMotion(closure, place, pose)
            _check_redundant(closure, found)
            return found
    raise _open(closure, LoopMotion(closure, start, pose) if best == np.inf else moved)


def reach(closure: Closure, chosen: Array, known: Known, y: Array, pose: Array | None) -> LoopMotion:
    """Find the place for coordinates y and a pose, going there from a known one in short steps.

    Returns the motion that begins there, of order 0. Raises ConvergenceError as `close`.
    """
    way = y - known.y
    turn = None if pose is None or known.pose is None else log(inverse(known.pose) @ pose)
    longest = float(np.abs(way / _coordinate_sizes(closure)).max(initial=0.0))
    if turn is not None:
        part = turn * np.repeat([1.0, 1.0 / closure.size], 3)
        longest = max(longest, float(np.linalg.norm(part)))
    count = max(1, int(np.ceil(longest / _STRIDE)))
    while True:
        place = known.place
        try:
            for i in range(1, count):
                between = pose
                if turn is not None and known.pose is not None:
                    between = known.pose @ exp(turn * (i / count))
                place = close(closure, chosen, place, known.y + i / count * way, between).place
            return close(closure, chosen, place, y, pose)
        except ConvergenceError:
            count *= 4
            if count > _MOST_STEPS:
                raise


def _rounding(closure: Closure, pose: Array | None) -> float:
    """Return by how much of the robot's size closed loops seem open so far from the world origin."""
    farthest = max(
        float(np.abs(closure.tree.placements[:, :3, 3]).max()),
        float(np.abs(closure.tree.screws[:, 3:]).max()),
        0.0 if pose is None else float(np.abs(pose[:3, 3]).max()),
    )
    return 8.0 * float(np.finfo(np.float64).eps) * farthest / closure.size


def _measured(closure: Closure, chosen: Array, sizes: Array, rows: Array) -> Array:
    first = 6 if closure.base_given else 0
    loop_rows = len(sizes) - (0 if closure.platform is None else len(closure.platform.rows))
    measures = [sizes[chosen], np.ones(first), _coordinate_sizes(closure), sizes[loop_rows:]]
    result: Array = rows / np.concatenate(measures)
    return result


def _coordinate_sizes(closure: Closure) -> Array:
    tree = closure.tree
    screws = tree.screws[tree.first_jointed_body :][list(closure.joints)]
    return np.where(screws[:, :3].any(axis=1), 1.0, closure.size)


def _check_redundant(closure: Closure, moved: LoopMotion) -> None:
    if np.abs(moved.residuals / moved.row_sizes[: moved.n_loop_rows]).max(initial=0.0) > _FORCED:
        raise _open(closure, moved)


def _open(closure: Closure, moved: LoopMotion) -> ConvergenceError:
    """Name what stays open farthest: a loop, or the way of the platform to its pose."""
    parts = moved.named_rows
    if closure.platform is not None:
        name = closure.tree.body_names[closure.platform.body]
        parts.append((f"the way to the pose of {name!r}", slice(moved.n_loop_rows, None)))
    rows = np.concatenate([moved.residuals, moved.platform_residuals])
    sized = np.abs(rows / moved.row_sizes)
    what, part = max(parts, key=lambda item: float(sized[item[1]].max(initial=0.0)))
    lengths = moved.in_metres[part]
    angle = float(np.abs(rows[part][~lengths]).max(initial=0.0))
    distance = float(np.abs(rows[part][lengths]).max(initial=0.0))
    if sized.max(initial=0.0) <= _TOLERANCE:
        return ConvergenceError(
            f"the pose of robot {closure.tree.name!r} is singular there, or too far from the last one: its "
            "coordinates do not determine what follows them; choose others, or a pose beside it",
            angle,
            distance,
        )
    return ConvergenceError(
        f"{what} of robot {closure.tree.name!r} does not close there: it stays open by {angle:.3g} rad and "
        f"{distance:.3g} m; give coordinates within the workspace, or nearer to the last ones",
        angle,
        distance,
    )
