"""Positions at which all loops are closed: Newton's method from known ones, in steps that keep the branch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.engine.loops.loop_motion import FORCED
from hodyn_ros.errors import ConvergenceError, ModelError
from hodyn_ros.formulations.closure_rows import KIND_ROWS
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.se3 import Array, exp, inverse, log, pose
from hodyn_ros.model.closure import Closure

_TOLERANCE = 1e-13  # [rad], and of the robot's size: open loops that a last step of Newton's closes
_NEARLY = 1e-9  # likewise, that none of its steps closes farther: at singular poses
_ITERATIONS = 15
_STRIDE = 0.2  # [rad], and of the robot's size: the longest way of coordinates taken in one step
MOST_STEPS = 240
_FARTHEST = 1e6  # [rad], and of the robot's size: a way that nobody means
_LONGEST = 1.0  # [rad], and of the robot's size: a step of Newton's that may end on another branch
_ASSEMBLED = 1e-13  # [rad], and of the robot's size: open loops of an assembled robot
_ASSEMBLY_STEPS = 300
_DAMPING = 1e-3
_POSES = ("weld", "ball", "hinge", "cylinder", "slider")  # known from half a turn as well


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
    return Known(Place(joints, base), joints[list(closure.joints)], base if closure.base_prescribed else pose)


def assembled(closure: Closure) -> Closure:
    """Return a closure whose home is the configuration near its own at which all loops are closed.

    By small steps that close them, damped (K. Levenberg 1944); a floating base stays where it is. Raises
    ModelError naming the loop that stays open farthest.
    """
    place, damping = home(closure).place, _DAMPING
    moved = LoopMotion(closure, place)
    gaps = [_gap(moved, i) for i in range(len(closure.loops))]
    for _ in range(_ASSEMBLY_STEPS):
        rows = np.concatenate([gap.rows for gap in gaps])
        if np.abs(rows).max(initial=0.0) < _ASSEMBLED:
            break
        matrix = np.concatenate([gap.matrix for gap in gaps]) * closure.scale
        matrix[:, : closure.first] = 0.0
        change = -matrix.T @ np.linalg.solve(matrix @ matrix.T + damping * np.eye(len(rows)), rows)
        change *= min(1.0, _STRIDE / max(float(np.abs(change).max(initial=0.0)), 1e-300))
        trial = LoopMotion(closure, step(closure, place, change * closure.scale))
        arrays = [_gap(trial, i) for i in range(len(closure.loops))]
        if np.linalg.norm(np.concatenate([gap.rows for gap in arrays])) < np.linalg.norm(rows):
            place, moved, gaps, damping = trial.place, trial, arrays, max(damping / 10.0, 1e-15)
        else:
            damping *= 10.0
    sizes = [float(np.abs(gap.rows).max(initial=0.0)) for gap in gaps]
    worst = int(np.argmax(sizes))
    if sizes[worst] > FORCED:
        angle, distance = gaps[worst].angle, gaps[worst].distance * closure.size
        raise ModelError(
            f"loop {closure.loops[worst].name!r} of robot {closure.tree.name!r} does not close near its "
            f"home: it stays open by {angle:.3g} rad and {distance:.3g} m; give joint positions in `home` "
            "nearer to where it does"
        )
    return replace(closure, start=place.joints)


class _Gap(NamedTuple):
    """By how much a loop is open, without units, and what joints do about it."""

    rows: Array  # (r,)
    matrix: Array  # (r, m) derivatives by the velocities
    turns: int  # how many rows are angles; they come first

    @property
    def angle(self) -> float:
        return float(np.linalg.norm(self.rows[: self.turns]))

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(self.rows[self.turns :]))


def _gap(moved: LoopMotion, number: int) -> _Gap:
    """Return by how much a loop is open; other than rows of `LoopMotion`, from half a turn as well."""
    closure = moved.closure
    loop, part = closure.loops[number], moved.loop_slices[number]
    if loop.kind not in _POSES:
        order = np.argsort(moved.in_metres[part], kind="stable")
        sizes = moved.row_sizes[part][order]
        rows, matrix = moved.residuals[part][order] / sizes, moved.J[0][part][order] / sizes[:, None]
        return _Gap(rows, matrix, int(np.sum(~moved.in_metres[part])))
    ends = []
    for frame in (loop.a, loop.b):
        ground = frame.body < 0
        at = np.eye(4) if ground else moved.body_pose(frame.body)
        jacobian = np.zeros((6, closure.n_velocities)) if ground else moved.body_jacobian(frame.body)
        ends.append((at[:3, :3] @ frame.point + at[:3, 3], at[:3, :3] @ frame.axes, jacobian))
    (point_a, a, of_a), (point_b, b, of_b) = ends
    apart = point_b - point_a
    turning, turned = of_b[:3] - of_a[:3], np.zeros(3)
    if loop.kind in ("weld", "slider"):
        turned = log(pose(a.T @ b, np.zeros(3)))[:3]
    elif loop.kind in ("hinge", "cylinder"):
        normal = a.T @ np.cross(a[:, 2], b[:, 2])
        sine, cosine = float(np.linalg.norm(normal)), float(a[:, 2] @ b[:, 2])
        if sine == 0.0 and cosine < 0.0:
            normal, sine = np.array([1.0, 0.0, 0.0]), 1.0
        turned = normal * (np.arctan2(sine, cosine) / sine if sine else 1.0)
    shifts = [row.i for row in KIND_ROWS[loop.kind] if row.what == "point"]
    turns = [row.i for row in KIND_ROWS[loop.kind] if row.what != "point"]
    moving = (
        of_b[3:]
        - np.cross(point_b, of_b[:3], axisb=0).T
        - (of_a[3:] - np.cross(point_b, of_a[:3], axisb=0).T)
    )
    rows = np.concatenate([turned[turns], (a.T @ apart)[shifts] / closure.size])
    matrix = np.concatenate([(a.T @ turning)[turns], (a.T @ moving)[shifts] / closure.size])
    return _Gap(rows, matrix, len(turns))


def step(closure: Closure, place: Place, change: Array) -> Place:
    """Return the place reached by a small change (m,) of z."""
    moved = closure.coupling_matrix @ change
    base = place.base if place.base is None else exp(moved[:6]) @ place.base
    return Place(place.joints + moved[closure.first :], base)


def close(
    closure: Closure,
    chosen: Array,
    start: Place,
    y: Array,
    pose: Array | None,
    iterations: int = _ITERATIONS,
) -> LoopMotion:
    """Find the place near `start` with independent joints y and the pose given of platform or base.

    Returns the motion that begins there, of order 0. Raises ConvergenceError naming the loop that stays open
    farthest.
    """
    place = start._replace(base=pose) if closure.base_prescribed else start
    best, tolerance = np.inf, _TOLERANCE + _rounding(closure, pose)
    for _ in range(iterations):
        moved = LoopMotion(closure, place, pose)
        sizes = moved.row_sizes
        loops = moved.residuals[chosen]
        base = np.zeros(closure.n_base)
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
            result = LoopMotion(closure, place, pose)
            _check_redundant(closure, result)
            return result
    raise _open(closure, LoopMotion(closure, start, pose) if best == np.inf else moved)


class Way:
    """The straight way from a known place to coordinates y and a pose; `longest` of it [rad, robot sizes].

    Raises ConvergenceError for one beyond `farthest`, which nobody means.
    """

    def __init__(
        self, closure: Closure, known: Known, y: Array, pose: Array | None, farthest: float = _FARTHEST
    ) -> None:
        self._known, self._y, self._pose, self._change = known, y, pose, y - known.y
        sizes = closure.joint_sizes[list(closure.joints)]
        self.longest, self._turn = float(np.abs(self._change / sizes).max(initial=0.0)), None
        if pose is not None and known.pose is not None:
            self._turn = log(inverse(known.pose) @ pose)
            part = self._turn * np.repeat([1.0, 1.0 / closure.size], 3)
            self.longest = float(np.maximum(self.longest, np.linalg.norm(part)))
        if not self.longest < farthest:
            raise ConvergenceError(
                f"robot {closure.tree.name!r} does not get there: it is {self.longest:.3g} times its size, "
                "or rad, from the last coordinates; give nearer ones",
                self.longest,
                self.longest * closure.size,
            )

    def at(self, share: float) -> tuple[Array, Array | None]:
        """Return coordinates and pose after a share of the way."""
        if share == 1.0:
            return self._y, self._pose
        pose = self._pose
        if self._turn is not None and self._known.pose is not None:
            pose = self._known.pose @ exp(self._turn * share)
        return self._known.y + share * self._change, pose


def reach(
    closure: Closure,
    chosen: Array,
    known: Known,
    y: Array,
    pose: Array | None,
    most_steps: int = MOST_STEPS,
) -> LoopMotion:
    """Find the place for coordinates y and a pose, going there from a known one in short steps.

    In shorter ones from where one fails, none shorter than the way by `most_steps`, so that where no place is
    is known soon. Returns the motion that begins there, of order 0. Raises ConvergenceError as `close`.
    """
    way = Way(closure, known, y, pose)
    count, done, place = min(max(1, int(np.ceil(way.longest / _STRIDE))), MOST_STEPS), 0, known.place
    while True:
        try:
            moved = close(closure, chosen, place, *way.at((done + 1) / count))
        except ConvergenceError:
            count, done = 4 * count, 4 * done
            if count > most_steps:
                raise
        else:
            if done + 1 == count:
                return moved
            done, place = done + 1, moved.place


def _rounding(closure: Closure, pose: Array | None) -> float:
    """Return by how much of the robot's size closed loops seem open so far from the world origin."""
    farthest = max(
        float(np.abs(closure.tree.placements[:, :3, 3]).max()),
        float(np.abs(closure.tree.screws[:, 3:]).max()),
        0.0 if pose is None else float(np.abs(pose[:3, 3]).max()),
    )
    return 8.0 * float(np.finfo(np.float64).eps) * farthest / closure.size


def _measured(closure: Closure, chosen: Array, sizes: Array, rows: Array) -> Array:
    first = closure.n_base
    loop_rows = len(sizes) - (0 if closure.platform is None else len(closure.platform.rows))
    coordinates = closure.joint_sizes[list(closure.joints)]
    measures = [sizes[chosen], np.ones(first), coordinates, sizes[loop_rows:]]
    result: Array = rows / np.concatenate(measures)
    return result


def _check_redundant(closure: Closure, moved: LoopMotion) -> None:
    if np.abs(moved.residuals / moved.row_sizes[: moved.n_loop_rows]).max(initial=0.0) > FORCED:
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
    if sized.max(initial=0.0) <= _NEARLY:
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
