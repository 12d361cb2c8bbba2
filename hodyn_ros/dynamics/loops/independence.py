"""Which rows of the loops are independent, and whether coordinates and drives fit what they leave free.

Rank is decided at generic poses near home, with rotations and shifts compared in the size of the robot:
singular values below a tolerance count as zero. Figures of a description are rounded: right angles written as
1.5708 rad tilt axes by 4e-6, and rows that depend on others in the machine that was meant then show singular
values of that size. The default takes these as redundant. Rows are chosen by QR with column pivoting (P.
Businger and G. H. Golub, Numerische Mathematik 7, 1965), which keeps them as far from dependent as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.dynamics.loops.closing import close, home, step
from hodyn_ros.errors import ConvergenceError, ModelError
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.formulations.transmission import inertia_derivatives
from hodyn_ros.lie.se3 import Array, hat, spatial_inertia
from hodyn_ros.model.closure import Closure

_REGULAR = 1e-6  # singular values of a square system below count as zero
_COSTS = 1e-12  # share of the largest inertia below which a motion counts as free of any
_MOVES = 1e-3  # of a free motion: joints that move less do not determine it
_PROBES = 4
_SPREAD = 0.3  # [rad], and of the robot's size: how far from home the probes are taken


@dataclass(frozen=True, eq=False)
class Independence:
    """The rows chosen of all loop rows, and what was found redundant."""

    rows: Array  # indices of the loop rows chosen
    of_joints: Array  # of those, the ones that determine the joints where a platform moves as given
    redundant: tuple[str, ...]  # names of loops with rows that depend on others
    tolerance: float
    smallest_kept: float  # singular value, relative to the largest
    generic: Place | None = None  # the place near home at which rows were chosen
    idle: str = ""  # says which joints move no mass; efforts do not determine their accelerations


@lru_cache(maxsize=KEPT)  # other drives or limits make another robot of the same closure
def find_independence(closure: Closure) -> Independence:
    """Choose the independent rows of all loops; ModelError says what does not fit together."""
    tolerance = closure.tolerance
    generic = _generic_place(closure, tolerance)
    moved = _at(closure, generic)
    chosen = _independent_rows(closure, moved, tolerance)
    _check_freedom(closure, moved, chosen)
    _check_drives(closure, moved, chosen)
    idle = _without_mass(closure, moved, chosen)
    if idle and closure.loops:
        raise ModelError(idle)
    start = home(closure)
    try:
        close(closure, chosen.rows, start.place, start.y, start.pose)
    except ConvergenceError as error:
        raise ModelError(f"at the zero configuration, {error}") from None
    return replace(chosen, generic=generic, idle=idle)


def choose_coordinates(closure: Closure, preferred: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """Choose joints whose positions determine the pose, preferred ones as far as they are independent.

    Among joints of one rank those that move most against each other at home, or near it where home is
    singular, by QR with column pivoting. Returns them in the order of the tree, and whether drives of the
    preferred joints alone hold the robot. The coordinates that the closure has do not matter, but whether its
    base is prescribed does.
    """
    near = LoopMotion(closure, _generic_place(closure, closure.tolerance))
    at_home = LoopMotion(closure, home(closure).place)
    ranks = [np.sum(_values(closure, moved) > closure.tolerance) for moved in (near, at_home)]
    moved = at_home if ranks[0] == ranks[1] else near
    rows = _loop_rows(closure, moved, _independent_rows(closure, moved, closure.tolerance).rows)
    base = closure.n_base
    still = np.concatenate([np.eye(closure.n_velocities)[:base], rows])
    free = np.linalg.svd(still)[2][len(still) :] if len(still) else np.eye(closure.n_velocities)
    joints = (
        _unit(closure.coupling_matrix[closure.first :] * closure.scale) @ free.T
    )  # of each, over the free motions
    chosen: list[int] = []
    holds = False
    for group in (list(preferred), list(closure.leading)):
        left = joints[group]
        if chosen:
            span = np.linalg.qr(joints[chosen].T)[0]
            left = left - left @ span @ span.T
        triangle, pivots = pivoted(left)
        count = int(np.sum(np.abs(np.diag(triangle)) > _MOVES))
        chosen += [group[i] for i in pivots[:count]]
        holds = holds or (group == list(preferred) and len(chosen) == len(free))
    return tuple(sorted(chosen)), holds


def conditions(closure: Closure, moved: LoopMotion, rows: Array) -> tuple[float, float]:
    """Return the smallest singular values of motion and drives, without units; zero where singular."""
    motion = np.linalg.svd(_motion_system(closure, moved, rows), compute_uv=False)
    drives = np.linalg.svd(_drive_system(closure, moved, rows), compute_uv=False)
    full = closure.n_velocities
    return (
        float(motion[-1]) if len(motion) == full else 0.0,
        float(drives[full - 1]) if len(drives) >= full else 0.0,
    )


def idle_names(closure: Closure, direction: Array) -> list[str]:
    """Return the joints that move along a direction (m,), measured in the scale of the velocities."""
    moved = np.abs(closure.coupling_matrix @ (direction * closure.scale))
    tree, first = closure.tree, closure.first
    names = [*([f"the base {tree.body_names[0]}"] if first and moved[:first].max() > 1e-3 else [])]
    turned = moved[first:] / closure.joint_sizes
    return [*names, *(n for n, part in zip(tree.joint_names, turned) if part > 1e-3)]


def _at(closure: Closure, place: Place) -> LoopMotion:
    if closure.platform is None:
        return LoopMotion(closure, place)
    return LoopMotion(closure, place, LoopMotion(closure, place).body_pose(closure.platform.body))


def _generic_place(closure: Closure, tolerance: float) -> Place:
    """Return the place near home at which the rows of the loops are farthest from dependent."""
    rng = np.random.default_rng(0)
    places: list[tuple[int, float, Place]] = []
    start = home(closure).place
    reach = _SPREAD
    for _ in range(8 * _PROBES):
        change = rng.uniform(-reach, reach, closure.n_velocities) * closure.scale
        place = _closed_near(closure, step(closure, start, change), tolerance)
        if place is None:
            reach *= 0.8
            continue
        values = _values(closure, LoopMotion(closure, place))
        rank = int(np.sum(values > tolerance))
        places.append((rank, float(values[rank - 1]) if rank else 1.0, place))
        if len(places) == _PROBES:
            break
    if not places:
        return start
    return max(places, key=lambda item: item[:2])[2]


def _closed_near(closure: Closure, place: Place, tolerance: float) -> Place | None:
    """Close all loops by the smallest changes of everything, no rows or coordinates chosen yet."""
    for _ in range(40):
        moved = LoopMotion(closure, place)
        sizes = moved.row_sizes[: moved.n_loop_rows]
        rows = moved.residuals / sizes
        if not np.isfinite(rows).all():
            return None
        if np.abs(rows).max(initial=0.0) < 1e-10:
            return place
        matrix = _loop_rows(closure, moved)
        change = -np.linalg.lstsq(matrix, rows, rcond=tolerance)[0] * closure.scale
        if not np.abs(change / closure.scale).max(initial=0.0) < 1.0:
            return None
        place = step(closure, place, change)
    # rows that are redundant but for rounded figures stay open by as much
    return place if np.abs(rows).max() < tolerance else None


def _values(closure: Closure, moved: LoopMotion) -> Array:
    matrix = _loop_rows(closure, moved)
    values = np.linalg.svd(matrix, compute_uv=False) if matrix.size else np.zeros(0)
    result: Array = values / (values[0] if len(values) and values[0] > 0.0 else 1.0)
    return result


def _independent_rows(closure: Closure, moved: LoopMotion, tolerance: float) -> Independence:
    values = _values(closure, moved)
    rank = int(np.sum(values > tolerance))
    matrix = _loop_rows(closure, moved)
    pivots = pivoted(matrix)[1]
    rows = np.sort(pivots[:rank]).astype(int)
    redundant: list[str] = []
    if rank < len(matrix):
        # combinations of rows that forbid nothing: multipliers along them are not determined
        idle = np.linalg.svd(matrix)[0][:, rank:]
        shares = np.abs(idle).max(axis=1)
        redundant = [
            loop.name
            for loop, part in zip(closure.loops, moved.loop_slices)
            if shares[part].max(initial=0.0) > 1e-3
        ]
    return Independence(
        rows,
        _rows_of_joints(closure, matrix, rows),
        tuple(redundant),
        tolerance,
        float(values[rank - 1]) if rank else 1.0,
    )


def _rows_of_joints(closure: Closure, matrix: Array, rows: Array) -> Array:
    """Leave out rows that hold a platform, whatever its joints do, in what it cannot move."""
    platform = closure.platform
    if platform is None or platform.twists is None or len(platform.rows) == 6:
        return rows
    of_joints = matrix[rows, 6:]
    return np.sort(rows[pivoted(of_joints)[1][: of_joints.shape[1]]])


def _check_freedom(closure: Closure, moved: LoopMotion, chosen: Independence) -> None:
    name = closure.tree.name
    free = closure.n_velocities - len(chosen.rows)
    coordinates = closure.n_coordinates
    loops = [loop.name for loop in closure.loops]
    if free < closure.n_base:
        raise ModelError(
            f"robot {name!r} floats, but its loops {loops} leave {free} degrees of freedom to its base and "
            "joints; name what the base has of them in `coordinates`, or let it stand (floating_base: false)"
        )
    if free == closure.n_base:
        raise ModelError(
            f"robot {name!r} cannot move: its loops {loops} leave no freedom; if axes were meant to be "
            f"parallel, give them with more digits, or a `tolerance` above {chosen.smallest_kept:.1e}"
        )
    system = _motion_system(closure, moved, chosen.rows)
    _, values, right = np.linalg.svd(system)
    rank = int(np.sum(values > _REGULAR))
    base = closure.n_base
    if rank < closure.n_velocities:
        idle = idle_names(closure, right[-1])
        raise ModelError(
            f"the coordinates of robot {name!r} do not determine its pose: it has {free - base} degrees of "
            f"freedom and {coordinates - base} coordinates, and with these at rest {idle} can still "
            "move; choose others (rods that spin between two balls need a loop of kind 'spin')"
        )
    if coordinates > free:
        raise ModelError(
            f"robot {name!r} has {free - base} degrees of freedom, but {coordinates - base} coordinates; "
            f"leave out {coordinates - free}"
        )


def _check_drives(closure: Closure, moved: LoopMotion, chosen: Independence) -> None:
    name = closure.tree.name
    system = _drive_system(closure, moved, chosen.rows)
    left, values, _ = np.linalg.svd(system)
    rank = int(np.sum(values > _REGULAR))
    if rank < closure.n_velocities:
        idle = idle_names(closure, left[:, rank])
        raise ModelError(
            f"the drives of robot {name!r} do not hold it: with all {len(closure.driven)} driven joints at "
            f"rest, {idle} can still move; name others in `driven`"
        )
    if closure.base_prescribed and system.shape[1] > closure.n_velocities:
        raise ModelError(
            f"robot {name!r} has a prescribed base and more drives than coordinates, so that the wrench on "
            "its base is not determined; drive fewer joints"
        )


def mass_of(closure: Closure, moved: LoopMotion) -> Array:
    """Return the mass matrix (m, m) of the tree over the velocities that no coupling determines."""
    tree = closure.tree
    inertias = spatial_inertia(tree.masses, tree.coms, tree.inertias)
    mass = np.zeros((closure.n_velocities, closure.n_velocities))
    for body in range(tree.n_bodies):
        jacobian = moved.body_jacobian(body)
        inertia = inertia_derivatives(inertias[body], moved.body_pose(body), [np.zeros(6)])[0]
        mass += jacobian.T @ inertia @ jacobian
    return mass


def _without_mass(closure: Closure, moved: LoopMotion, chosen: Independence) -> str:
    """Say which joints move nothing with mass, if any."""
    idle, cost = least_costly(closure, moved, chosen.rows)
    if cost > _COSTS:
        return ""
    return (
        f"joints {idle} of robot {closure.tree.name!r} can move together without moving any mass: no effort "
        "would determine their acceleration; add mass and inertia, or leave out one of the joints"
    )


def least_costly(closure: Closure, moved: LoopMotion, rows: Array) -> tuple[list[str], float]:
    """Return the joints of the motion that moves least mass, and how much, by that of the most.

    `rows`: the independent ones of the loops.
    """
    about = _about_base(closure, moved)
    rows = (moved.J[0] / moved.row_sizes[: moved.n_loop_rows, None])[rows] @ about
    free = np.eye(closure.n_velocities)
    if len(rows):
        free = np.linalg.svd(rows)[2][len(rows) :]
    mass = about.T @ mass_of(closure, moved) @ about
    values, vectors = np.linalg.eigh(free @ mass @ free.T)
    cost = float(values[0] / values[-1]) if values[-1] > 0.0 else 0.0
    return idle_names(closure, vectors[:, 0] @ free), cost


def _about_base(closure: Closure, moved: LoopMotion) -> Array:
    """Return the velocities (m, m) of unit size, by columns: those of a base are about where it stands."""
    result = np.diag(closure.scale)
    if closure.first:
        result[3:6, :3] = hat(moved.body_pose(0)[:3, 3])
    return result


def _motion_system(closure: Closure, moved: LoopMotion, rows: Array) -> Array:
    """Return `G` without units: loop rows in the size of the robot, those of coordinates of unit length.

    A row of a loop that vanishes is one that is lost at this pose, and stays small.
    """
    return np.concatenate([_loop_rows(closure, moved, rows), _unit(moved.H[0] * closure.scale)])


def _drive_system(closure: Closure, moved: LoopMotion, rows: Array) -> Array:
    """Return `(J^T S)` without units, the columns of drives of unit length."""
    drives = _unit(closure.effort_map.T * closure.scale)
    return np.concatenate([_loop_rows(closure, moved, rows), drives]).T


def _loop_rows(closure: Closure, moved: LoopMotion, rows: Array | None = None) -> Array:
    """Return the rows of all loops, or some, over velocities without units."""
    matrix: Array = moved.J[0] * closure.scale / moved.row_sizes[: moved.n_loop_rows, None]
    return matrix if rows is None else matrix[rows]


def _unit(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Array = rows / np.where(lengths > 0.0, lengths, 1.0)
    return result


def pivoted(rows: Array) -> tuple[Array, Array]:
    """Return the triangle of a QR decomposition of the transpose, and the rows by falling pivots."""
    if not rows.size:
        return np.zeros((0, 0)), np.zeros(0, dtype=int)
    from scipy.linalg import qr

    triangle, pivots = qr(rows.T, mode="r", pivoting=True)
    return triangle, pivots
