"""Straight lines between waypoints with rounded corners."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.checks import real_number, whole_number
from hodyn_ros.trajectory.splines.piecewise import derivatives
from hodyn_ros.trajectory.splines.waypoints import WaypointTrajectory

if TYPE_CHECKING:
    from scipy.interpolate import BPoly

HIGHEST_ORDER = 8


@dataclass(frozen=True, eq=False)
class BlendedLines(WaypointTrajectory):
    """Straight lines between waypoints, each passed evenly, with corners rounded as smoothly as `order` says.

    A corner is rounded over the share `blend` of the shorter step beside it, to either side: 0.5 at most,
    where rounded corners meet. There the velocity changes by a polynomial whose derivatives up to `order` are
    continuous, so the motion cuts the corner, and stays within the hull of its waypoints. It starts and ends
    in motion: a path for `time_optimal`, or for EasedStart and EasedStop. Raises InputError for given
    velocities.

    >>> path = BlendedLines([0.0, 1.0, 2.0], [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], blend=0.25)
    >>> path.sample([0.5, 1.0, 1.5], 0)[:, 0].round(4)
    array([[0.5   , 0.    ],
           [0.9658, 0.0342],
           [1.    , 0.5   ]])
    """

    blend: float = field(default=0.25, kw_only=True)
    order: int = field(default=4, kw_only=True)
    starts_at_rest: bool = field(init=False, repr=False, default=False)
    ends_at_rest: bool = field(init=False, repr=False, default=False)
    _turns: tuple[tuple[float, float, Array], ...] = field(init=False, repr=False)
    _ramp: BPoly = field(init=False, repr=False)  # from standstill at 0 to unit pace at 1

    def _set_up(self) -> None:
        from scipy.interpolate import BPoly

        blend = real_number("blend", self.blend, positive=True)
        if blend > 0.5:
            raise InputError(
                f"blend is a share of a step, and two have to fit into it: at most 0.5, found {blend:g}"
            )
        if any(len(rows) > 1 for rows in self._prescribed):
            raise InputError("lines with rounded corners have no given velocities; leave them out")
        order = whole_number("order", self.order, 2, HIGHEST_ORDER)
        lasts = np.diff(self.times)
        velocities = np.diff(self.positions, axis=0) / lasts[:, None]
        widths = blend * np.minimum(lasts[:-1], lasts[1:])
        turns = zip(self.times[1:-1], widths, np.diff(velocities, axis=0), strict=True)
        still, pace = np.zeros(order + 1), np.zeros(order + 1)
        pace[:2] = 0.5, 1.0
        self._set(
            blend=blend,
            order=order,
            smoothness=np.inf if len(lasts) == 1 else order,
            _turns=tuple((float(time), float(width), turn) for time, width, turn in turns),
            _ramp=BPoly.from_derivatives([0.0, 1.0], [still, pace]),
        )

    @property
    def breakpoints(self) -> Array:
        """Where corners begin and end."""
        inside = [time + side * width for time, width, _ in self._turns for side in (-1.0, 1.0)]
        return np.unique([self.times[0], *inside, self.times[-1]])

    @property
    def polynomial_degree(self) -> int:
        """That of a rounded corner."""
        return len(self._ramp.c) - 1

    def _smoother(self, order: int) -> str:
        return f"build it with order={order} or more"

    def _derivatives(self, times: Array, order: int) -> Array:
        values = np.zeros((order + 1, len(times), self.n_joints))
        first = (self.positions[1] - self.positions[0]) / (self.times[1] - self.times[0])
        values[0] = self.positions[0] + (times - self.times[0])[:, None] * first
        values[1:2] = first
        for time, width, turn in self._turns:
            after = times - (time - width)
            inside = (after > 0.0) & (after < 2.0 * width)
            scale = 2.0 * width * (2.0 * width) ** -np.arange(order + 1.0)
            rise = derivatives(self._ramp, after[inside] / (2.0 * width), order) * scale[:, None]
            values[:, inside] += rise[:, :, None] * turn
            over = after >= 2.0 * width
            values[0, over] += (times[over] - time)[:, None] * turn
            values[1:2, over] += turn
        return values
