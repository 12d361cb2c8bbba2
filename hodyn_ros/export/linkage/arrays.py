"""A linkage as arrays over a grid of its joints' positions, for simulators that know trees alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.export.linkage.shared import closure_of_linkage
from hodyn_ros.lie.se3 import Array

_MOST = 300_000  # points of a grid


@dataclass(frozen=True, eq=False)
class LinkageArrays:
    """Positions of the drives, Jacobian and inertia of a linkage over a grid of its joints' positions.

    `axes`: the positions of each of the n joints [rad or m], `sizes` of them. `drive_positions` (*sizes, n).
    `jacobian` (*sizes, n, n): velocities of drives by those of joints; `J^T u` is what efforts u of drives
    do to the joints. `armature` (*sizes, n, n): `J^T I J` of the drives' inertias, None where these are not
    known. NaN where the linkage cannot be. `error`: of the Jacobian between the points, interpolated
    linearly, relative to its largest number.
    """

    joint_names: tuple[str, ...]
    drive_names: tuple[str, ...]
    axes: tuple[Array, ...]
    drive_positions: Array
    jacobian: Array
    armature: Array | None
    error: float

    def save(self, path: Path) -> None:
        """Write all of them to a file of NumPy (.npz), axes as `axis_0`, `axis_1`, ..."""
        arrays: dict[str, Any] = {f"axis_{i}": axis for i, axis in enumerate(self.axes)}
        arrays |= {name: getattr(self, name) for name in ("joint_names", "drive_names", "drive_positions")}
        arrays |= {"jacobian": self.jacobian, "error": self.error}
        if self.armature is not None:
            arrays["armature"] = self.armature
        np.savez(path, **arrays)


def linkage_arrays(robot: Robot, points: int = 33) -> LinkageArrays:
    """Compute a linkage over as many positions of each joint, evenly from limit to limit.

    Raises InputError for robots that are no linkage, whose joints have no limits, and for too large grids.
    """
    closure = closure_of_linkage(robot)
    limits, n = robot.coordinate_limits, closure.n_coordinates
    lower, upper = limits.position_lower, limits.position_upper
    if not np.isfinite([lower, upper]).all():
        free = [name for name, low, up in zip(robot.joint_names, lower, upper) if not np.isfinite(up - low)]
        raise InputError(f"joints {', '.join(free)} have no limits; arrays lie between them")
    if points < 2 or (2 * points - 1) ** n > _MOST:
        raise InputError(
            f"a grid of {points} points for each of {n} joints: choose 2 or more, and fewer than so"
        )
    # every second point is between those that are kept, and says how wrong interpolation is
    axes = [np.linspace(low, up, 2 * points - 1) for low, up in zip(lower, upper)]
    positions, jacobian = _swept(robot, axes)
    kept = (slice(None, None, 2),) * n
    error = _between(jacobian, n)
    of_kept = jacobian[kept]
    train = robot.drive_train
    return LinkageArrays(
        robot.joint_names,
        robot.driven_joints,
        tuple(axis[::2] for axis in axes),
        positions[kept],
        of_kept,
        None if train is None else np.einsum("...ai,a,...aj->...ij", of_kept, train.motor_inertia, of_kept),
        error,
    )


def _swept(robot: Robot, axes: list[Array]) -> tuple[Array, Array]:
    """Return positions of drives and Jacobians over a grid, from point to neighbouring point."""
    closure = closure_of_linkage(robot)
    sizes, n = tuple(map(len, axes)), len(axes)
    positions, jacobian = np.full((*sizes, n), np.nan), np.full((*sizes, n, n), np.nan)
    robot.reset()
    for at in _snake(sizes):
        q = np.array([[axis[i] for axis, i in zip(axes, at)]])
        try:
            jacobian[at] = robot.drive_jacobian(q)[0]
            positions[at] = robot.joint_motion(q)[0, list(closure.driven)]
        except (ConvergenceError, SingularError):
            robot.reset()
    robot.reset()
    return positions, jacobian


def _snake(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the indices of all points of a grid, each beside the one before it."""
    if not sizes:
        return [()]
    ways = _snake(sizes[1:])
    return [(i, *way) for i in range(sizes[0]) for way in (ways if i % 2 == 0 else ways[::-1])]


def _between(jacobian: Array, n: int) -> float:
    """Return the error of linear interpolation at points in the middle of those that are kept."""
    wrong = 0.0
    for axis in range(n):
        kept = np.moveaxis(jacobian, axis, 0)
        middle = 0.5 * (kept[:-2:2] + kept[2::2])
        wrong = max(wrong, float(np.nanmax(np.abs(kept[1::2] - middle), initial=0.0)))
    return wrong / float(np.nanmax(np.abs(jacobian)))
