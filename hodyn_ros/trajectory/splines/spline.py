"""The smoothest motion through waypoints: a spline of high degree, continuous up to snap and beyond."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.checks import whole_number
from hodyn_ros.trajectory.splines.waypoints import WaypointTrajectory

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

HIGHEST_ORDER = 8

# The spline has to meet the waypoints to this part of the size of the motion, and does so by far unless their
# times are very uneven.
ROUNDING = 1e-9

_LOOKS, _MOST = 16, 20_000  # at a spline between two waypoints, and between all
# for each derivative 0, 1, ...: the waypoints where it is prescribed, with its values (n,) there
Conditions = list[list[tuple[int, Array]]]


@dataclass(frozen=True, eq=False)
class WaypointSpline(WaypointTrajectory):
    """A motion through waypoints whose derivatives are continuous up to `order`, by default up to snap.

    Of all such motions through the given positions (and velocities and accelerations, where given), it is
    the one with the least integral of its squared derivative `order + 1`. That is a spline of degree
    `2 order + 1` with as many knots at a waypoint as values are given there: with order 4, the degree is 9,
    and the motion passes the waypoints with continuous derivatives up to 8 if positions alone are given, 7
    with velocities, 6 with accelerations. Source: de Boor, A Practical Guide to Splines (Springer 2001),
    chapters IX and XIII.

    At the two ends, the derivatives up to `order` that are not given are zero, so that without velocities
    the motion starts and ends at rest. With `at_rest=False` they are left to the least integral instead.

    >>> motion = WaypointSpline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]])
    >>> abs(motion.sample([0.0, 1.0, 2.0], 4)[:, :, 0]).round(1)
    array([[  0. ,   0. ,   0. ,   0. ,   0. ],
           [  1. ,   0. ,  10.3,   0. , 259.2],
           [  0. ,   0. ,   0. ,   0. ,   0. ]])
    >>> motion.smoothness
    4
    """

    order: int = field(default=4, kw_only=True)
    at_rest: bool = field(default=True, kw_only=True)
    # over the time since times[0], from the first waypoint and from the last: at an end at rest, derivatives
    # that vanish there are then as exact as their own size, however near
    _splines: tuple[BSpline, BSpline] = field(init=False, repr=False)

    def _set_up(self) -> None:
        order = whole_number("order", self.order, 2, HIGHEST_ORDER)
        count = sum(len(rows) for rows in self._prescribed)
        if not self.at_rest and count <= order:
            raise InputError(
                f"without rest at the ends, a spline of order {order} needs at least {order + 1} given "
                f"positions, velocities and accelerations, found {count}"
            )
        first, *inside, last = self._prescribed
        starts_at_rest, ends_at_rest = (self.at_rest and not rows[1:].any() for rows in (first, last))
        # the lowest derivative that jumps at each waypoint inside, and at an end at rest
        jumps = [2 * order + 2 - len(rows) for rows in inside]
        if starts_at_rest or ends_at_rest:
            jumps.append(order + 1)
        self._set(
            order=order,
            starts_at_rest=starts_at_rest,
            ends_at_rest=ends_at_rest,
            smoothness=min(jumps, default=math.inf) - 1,
        )
        self._set(_splines=self._interpolate())

    @property
    def polynomial_degree(self) -> int:
        """That of the spline."""
        return 2 * self.order + 1

    def _smoother(self, order: int) -> str:
        if order > HIGHEST_ORDER:
            return f"a WaypointSpline can be continuous up to derivative {HIGHEST_ORDER}"
        return f"build it with order={order} or more"

    def swing(self) -> tuple[int, int, float]:
        """Return where it goes farthest off the straight ways between its waypoints, and by how much.

        The number of the waypoint before, the joint, and how far that is off there [rad or m]. Splines of a
        high degree swing where steps are uneven, or turn sharply.
        """
        looks = max(2, min(_LOOKS, _MOST // len(self.times)))
        shares = np.linspace(0.0, 1.0, looks + 1)[1:-1, None]
        times = self.times[:-1] + shares * np.diff(self.times)
        straight = self.positions[:-1] + shares[:, :, None] * np.diff(self.positions, axis=0)
        found = self._derivatives(times.ravel(), 0)[0].reshape(straight.shape)
        off = np.abs(found - straight).max(axis=0)
        step, joint = np.unravel_index(int(off.argmax()), off.shape)
        return int(step), int(joint), float(off[step, joint])

    def said_to_swing(self) -> str:
        """Say where it goes further off the straight way than its longest step; empty where it does not."""
        step, joint, off = self.swing()
        if off <= np.abs(np.diff(self.positions, axis=0)).max():
            return ""
        what = f"joint {self.joint_names[joint]!r}" if self.joint_names else f"coordinate {joint}"
        return (
            f"between points[{step}] and points[{step + 1}] the spline takes {what} {off:.3g} off the "
            "straight way, further than the longest step"
        )

    def _derivatives(self, times: Array, order: int) -> Array:
        elapsed = times - self.times[0]
        late = elapsed > 0.5 * (self.times[-1] - self.times[0])
        values = np.empty((order + 1, len(times), self.n_joints))
        for spline, which, origin in zip(self._splines, (~late, late), self.positions[[0, -1]]):
            if which.any():
                for k in range(order + 1):
                    values[k, which] = spline(elapsed[which], nu=k)
                values[0, which] += origin
        return values

    def _interpolate(self) -> tuple[BSpline, BSpline]:
        from scipy.interpolate import BSpline

        degree = 2 * self.order + 1
        elapsed = self.times - self.times[0]
        multiplicities = [degree + 1, *(len(rows) for rows in self._prescribed[1:-1]), degree + 1]
        knots = np.repeat(elapsed, multiplicities)
        try:
            coefficients = _coefficients(elapsed, knots, degree, self._conditions())
            spline = BSpline(knots, coefficients, degree)
            missed = np.abs(spline(elapsed) - self.positions).max()
        except (RuntimeError, ValueError):  # a singular matrix, or numbers beyond the range of float64
            missed = math.inf
        steps = np.diff(elapsed)
        size = max(
            np.abs(row).max() * steps.max() ** k for rows in self._prescribed for k, row in enumerate(rows)
        )
        if not missed <= ROUNDING * size:
            raise InputError(
                f"the waypoints are too uneven in time for a spline of degree {degree}: steps range from "
                f"{steps.min():g} s to {steps.max():g} s; space them more evenly, or lower the order"
            )
        alike = self.order + 1  # coefficients of an end at rest, but for rounding
        if self.starts_at_rest:
            coefficients[:alike] = self.positions[0]
        if self.ends_at_rest:
            coefficients[-alike:] = self.positions[-1]
        first, last = (BSpline(knots, coefficients - self.positions[i], degree) for i in (0, -1))
        return first, last

    def _conditions(self) -> Conditions:
        result: Conditions = [[] for _ in range(2 * self.order + 1)]
        for i, rows in enumerate(self._prescribed):
            for k, row in enumerate(rows):
                result[k].append((i, row))
        for i in (0, len(self._prescribed) - 1):
            count = len(self._prescribed[i])
            # for each derivative left free, the least integral makes one beyond `order` vanish
            free = self.order + 1 - count
            lowest = count if self.at_rest else self.order + 1
            for k in range(lowest, lowest + free):
                result[k].append((i, np.zeros(self.n_joints)))
        return result


def _coefficients(times: Array, knots: Array, degree: int, conditions: Conditions) -> Array:
    """Return the B-spline coefficients (N, n) that meet the conditions at the times (m,)."""
    from scipy.interpolate import BSpline
    from scipy.sparse import diags, vstack
    from scipy.sparse.linalg import splu

    differences = diags(np.ones(len(knots) - degree - 1), format="csr")
    rows, values = [], []
    for k, prescribed in enumerate(conditions):
        if k:
            # the derivative of a spline has one degree less, and lacks the outermost two knots
            spans = knots[degree + 1 : -1] - knots[1 : -degree - 1]
            # where all knots of a basis function coincide, there is no function left
            rates = np.divide(degree, spans, out=np.zeros_like(spans), where=spans > 0.0)
            shape = (len(rates), len(rates) + 1)
            differences = diags([-rates, rates], offsets=[0, 1], shape=shape).tocsr() @ differences
            knots, degree = knots[1:-1], degree - 1
        if prescribed:
            at = times[[i for i, _ in prescribed]]
            rows.append(BSpline.design_matrix(at, knots, degree) @ differences)
            values.append(np.stack([value for _, value in prescribed]))
    matrix = vstack(rows, format="csr")
    # conditions on different derivatives differ in size by powers of the time step
    scale = 1.0 / abs(matrix).max(axis=1).toarray().reshape(-1)
    factors = splu((diags(scale) @ matrix).tocsc())
    solution: Array = factors.solve(scale[:, None] * np.concatenate(values))
    return solution
