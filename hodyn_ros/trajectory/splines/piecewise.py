"""The plain interpolation of ROS's joint trajectory controller, with its true smoothness."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.trajectory.splines.waypoints import WaypointTrajectory

if TYPE_CHECKING:
    from scipy.interpolate import BPoly


def derivatives(polynomial: BPoly, times: Array, order: int) -> Array:
    """Return the derivatives 0 ... order of a piecewise polynomial at times (N,): (order+1, N, ...).

    SciPy rejects the derivatives above the degree, which are zero.

    >>> from scipy.interpolate import BPoly
    >>> derivatives(BPoly([[0.0], [3.0]], [0.0, 1.0]), np.array([0.5]), 3)[:, 0]
    array([1.5, 3. , 0. , 0. ])
    """
    result = np.zeros((order + 1, len(times), *polynomial.c.shape[2:]))
    degree = len(polynomial.c) - 1
    for k in range(min(order, degree) + 1):
        result[k] = polynomial(times, nu=k)
    return result


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(WaypointTrajectory):
    """The motion that ROS's joint_trajectory_controller makes of the same waypoints.

    Between two waypoints it is linear where positions alone are given, cubic with velocities, quintic with
    accelerations too: then the velocity, the acceleration or the jerk jumps at the waypoints. It shows what
    becomes of a trajectory without a WaypointSpline, and `require_smoothness` tells where that does not
    suffice.

    >>> motion = PiecewisePolynomial([0.0, 1.0], [[0.0], [1.0]], [[0.0], [0.0]])
    >>> motion.sample(0.5, 3)[:, 0]
    array([  0.5,   1.5,   0. , -12. ])
    >>> motion.smoothness
    1
    """

    _polynomials: BPoly = field(init=False, repr=False)

    def _set_up(self) -> None:
        from scipy.interpolate import BPoly

        first, *inside, last = self._prescribed
        starts_at_rest, ends_at_rest = not first[1:].any(), not last[1:].any()
        joints = inside + [first] * starts_at_rest + [last] * ends_at_rest
        self._set(
            starts_at_rest=starts_at_rest,
            ends_at_rest=ends_at_rest,
            smoothness=min((len(rows) - 1 for rows in joints), default=math.inf),
            # copied, as SciPy 1.11 cannot evaluate over breakpoints that are read-only
            _polynomials=BPoly.from_derivatives(self.times.copy(), list(self._prescribed)),
        )

    @property
    def polynomial_degree(self) -> int:
        """That of the highest piece."""
        return len(self._polynomials.c) - 1

    def _smoother(self, order: int) -> str:
        return f"make a WaypointSpline of the same waypoints, with order={max(order, 4)}"

    def _derivatives(self, times: Array, order: int) -> Array:
        return derivatives(self._polynomials, times, order)
