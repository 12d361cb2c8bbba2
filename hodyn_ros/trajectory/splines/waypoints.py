"""Waypoints with what is given of their derivatives, checked once for all interpolations between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.checks import frozen_array, unique_names

if TYPE_CHECKING:
    from typing_extensions import Self

Rows = Array | Sequence[ArrayLike | None] | None
# time_from_start [s], positions, velocities, accelerations
Point = tuple[float, ArrayLike, ArrayLike | None, ArrayLike | None]


@dataclass(frozen=True, eq=False)
class WaypointTrajectory(Trajectory):
    """A motion through waypoints; what happens between them is up to the subclass.

    `times` (m,) [s] increase from 0 or later; `positions` (m, n) [rad or m]. `velocities` and
    `accelerations` (m, n) are optional, also for each waypoint on its own: a row may be None or empty.
    Until `times[0]` the motion rests at the first waypoint.
    """

    times: Array
    positions: Array
    velocities: Rows = None
    accelerations: Rows = None
    joint_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    # for each waypoint what is given there, (1 to 3, n): position, velocity, acceleration
    _given: tuple[Array, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        positions = frozen_array("positions", self.positions, ("m", "n"))
        if len(positions) < 2:
            raise InputError(
                "a motion needs at least two waypoints, found one; "
                "put the present position before it, at time 0"
            )
        times = frozen_array("times", self.times, positions.shape[:1])
        if times[0] < 0.0:
            raise InputError(f"times[0] is {times[0]:g} s; times count from the start of the motion, at 0")
        late = np.flatnonzero(np.diff(times) <= 0.0) + 1
        if len(late):
            i = late[0]
            raise InputError(f"times must increase: times[{i}] = {times[i]:g} s follows {times[i - 1]:g} s")
        velocities = _checked_rows("velocities", self.velocities, positions.shape)
        accelerations = _checked_rows("accelerations", self.accelerations, positions.shape)
        for i, (velocity, acceleration) in enumerate(zip(velocities, accelerations, strict=True)):
            if velocity is None and acceleration is not None:
                raise InputError(f"accelerations[{i}] is given, but velocities[{i}] is not")
        waypoints = zip(positions, velocities, accelerations, strict=True)
        self._set(
            times=times,
            positions=positions,
            velocities=velocities,
            accelerations=accelerations,
            joint_names=unique_names(self.joint_names, positions.shape[1]),
            n_joints=positions.shape[1],
            duration=float(times[-1]),
            _departure=float(times[0]),
            _given=tuple(np.stack([row for row in rows if row is not None]) for rows in waypoints),
        )
        self._set_up()
        if times[0] > 0.0 and not self.starts_at_rest:
            raise InputError(
                f"the motion rests until times[0] = {times[0]:g} s, but its first waypoint is in motion; "
                "put a waypoint at time 0"
            )

    @property
    def breakpoints(self) -> Array:
        """The times of the waypoints."""
        return self.times

    @classmethod
    def from_joint_trajectory(
        cls, joint_names: Iterable[str] | None, points: Iterable[Point], **options: Any
    ) -> Self:
        """Build the motion from the fields of a trajectory_msgs/JointTrajectory.

        Each point is a tuple (time_from_start [s], positions (n,), velocities, accelerations), where
        velocities and accelerations are (n,), or empty or None if they are not given. `options` go to the
        constructor.

        >>> from hodyn_ros.trajectory import PiecewisePolynomial
        >>> points = [(0.0, [0.0], [0.0], []), (2.0, [1.0], [0.0], [])]
        >>> PiecewisePolynomial.from_joint_trajectory(["elbow"], points).sample(1.0, 1)[:, 0]
        array([0.5 , 0.75])
        """
        names = None if joint_names is None else tuple(joint_names)
        listed = list(points)
        if not listed:
            raise InputError("the joint trajectory has no points")
        times, positions, velocities, accelerations = zip(*listed, strict=True)
        width = "n" if names is None else len(names)
        first = frozen_array("positions of point 0", positions[0], (width,))
        rows = [frozen_array(f"positions of point {i}", row, first.shape) for i, row in enumerate(positions)]
        return cls(
            frozen_array("time_from_start", times, (len(listed),)),
            np.stack(rows),
            velocities,
            accelerations,
            joint_names=names,
            **options,
        )

    def _set_up(self) -> None:
        """Set `smoothness`, `starts_at_rest` and `ends_at_rest` from what is given."""
        raise NotImplementedError


def _checked_rows(name: str, rows: Rows, shape: tuple[int, ...]) -> tuple[Array | None, ...]:
    """Return for each waypoint its row (n,), or None."""
    if rows is None:
        return (None,) * shape[0]
    try:
        listed = list(rows)
    except TypeError as error:
        raise InputError(f"{name} must have shape {shape}, found {rows!r}") from error
    if len(listed) != shape[0]:
        raise InputError(f"{name} must have {shape[0]} rows, one per waypoint, found {len(listed)}")
    return tuple(
        None if row is None or np.size(row) == 0 else frozen_array(f"{name}[{i}]", row, shape[1:])
        for i, row in enumerate(listed)
    )
