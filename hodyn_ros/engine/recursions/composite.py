"""Sums over subtrees in world axes: mass and Coriolis matrices, gravity, and partial derivatives of torques.

Everything that the equations of motion and their first derivatives need of the bodies beyond a joint is a sum
of few numbers per body, seen from one point: mass, first and second moment, momentum and force. An entry for
joints i and j is then a product of screws with the sums of whichever joint lies further out. S. Singh, R.
Russell & P. Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra"
(2022), in which their matrix 2 B shrinks to a 6×3 one: `2 B (alpha; beta)` is the sum of x × f and of f over
mass points at x with velocity r, where `f = 2 alpha × r`.

Time derivatives come as series: poses are needed at the start only, from where everything moves with its
body, `S' = ad_V S` and likewise for moments of mass. Scalars are abstract, and so the terms of a series. The
point of reference is where the first body is at the start, whatever the distance from the world's origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hodyn_ros.engine.loops.loop_series import Cluster, ClusterMotion, moved
from hodyn_ros.engine.series.canonical import CanonicalBody, inward
from hodyn_ros.engine.series.series import Series, coefficient
from hodyn_ros.engine.series.spatial import (
    NOTHING,
    Axes,
    Matrix,
    Spatial,
    combine,
    plus,
    scaled,
    symmetric,
)
from hodyn_ros.engine.series.vectors import ZERO, Scalar, Vector, add, axes_of, cross, dot, scale, times
from hodyn_ros.model.frames import Frame

Rows = list[list[Scalar]]

_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # entries of a symmetric matrix


@dataclass
class Placed:
    """A body with its joint, by series in world axes."""

    parent: int
    columns: list[int]  # of its joint's velocities
    screws: list[Spatial]
    rates: list[Spatial]  # of the screws
    twist: Spatial


class Composite:
    """A robot that moves from `positions` (scalars) with `velocities` (series).

    The velocities are those of all joints, after the body-fixed twist of a floating base, whose axes at the
    start are the columns of `rotation`.
    """

    def __init__(
        self,
        bodies: Sequence[CanonicalBody],
        gravity: Sequence[float],
        positions: Sequence[Scalar],
        velocities: Sequence[Series],
        rotation: Sequence[Sequence[Scalar]] | None = None,
    ) -> None:
        self.constants, self._parents = list(bodies), [body.parent for body in bodies]
        self.ground: Spatial = (ZERO, (-float(gravity[0]), -float(gravity[1]), -float(gravity[2])))
        self.velocities = list(velocities)
        self.size = len(self.velocities)
        first = 0 if rotation is None else 6
        everything = Cluster(-1, tuple(range(len(bodies))), (), ())
        base = None if rotation is None else (axes_of(rotation), ZERO)
        center = bodies[0].translation.tolist()
        self._motion = ClusterMotion(everything, bodies, center, positions, base, None)
        speeds = [velocity.coefficients for velocity in velocities]
        for k in range(self.terms):
            twist = NOTHING
            for screws, speed in zip(self._motion.base_screws(k), speeds) if first else ():
                twist = plus(twist, moved(screws, speed, k))
            self._motion.extend(dict(enumerate(speeds[first:])), twist)
        self.placed = [self._placed(j, body, first) for j, body in enumerate(bodies)]
        self.moments = [self._moments(j) for j in range(len(bodies))]

    def _placed(self, j: int, body: CanonicalBody, first: int) -> Placed:
        """Return the series of a body; the joints' columns begin at `first`."""
        if body.joint < 0:
            columns, series = list(range(6)), self._motion.base_screws(self.terms)
            rates = [[scaled(k + 1.0, x) for k, x in enumerate(screw[1:])] for screw in series]
        else:
            columns = [first + body.joint]
            series, rates = [self._motion.screws[j]], [self._motion.screw_rates[j]]
        screws = [series_of(screw[: self.terms]) for screw in series]
        twist = series_of(self._motion.twists[j])
        return Placed(body.parent, columns, screws, [series_of(rate) for rate in rates], twist)

    def _moments(self, j: int) -> Moments:
        """Find the series of a body's moments of mass: `h' = m v + w × h`, `S' = D + D^T`."""
        body, own = self.constants[j], self.placed[j]
        first, second = _moments_at_start(body, *self._motion.places[j])
        firsts, seconds = [first], [second]
        for k in range(self.terms - 1):
            h = scale(body.mass, term(own.twist, k)[1])
            rows: Any = [[0.0] * 3 for _ in range(3)]  # D = v h^T + w~ S
            for i in range(k + 1):
                w, v = term(own.twist, k - i)
                h = add(h, cross(w, firsts[i]))
                columns = [
                    add(scale(firsts[i][b], v), cross(w, row)) for b, row in enumerate(symmetric(seconds[i]))
                ]
                rows = [[rows[a][b] + columns[b][a] for b in range(3)] for a in range(3)]
            step = 1.0 / (k + 1)
            firsts.append(scale(step, h))
            seconds.append(tuple(step * (rows[a][b] + rows[b][a]) for a, b in _PAIRS))
        x, y, z = (Series(list(values)) for values in zip(*firsts))
        return Moments(body.mass, (x, y, z), tuple(Series(list(values)) for values in zip(*seconds)))

    @property
    def terms(self) -> int:
        """Number of terms of all series."""
        return len(self.velocities[0].coefficients)

    def twist_of(self, j: int) -> Spatial:
        """Return the twist of a body, or of the world, -1."""
        return NOTHING if j < 0 else self.placed[j].twist

    def accelerations(self, rates: Sequence[Scalar]) -> list[Spatial]:
        """Return the spatial accelerations of all bodies, against gravity, from rates of the velocities."""
        result: list[Spatial] = []
        for own in self.placed:
            a = self.ground if own.parent < 0 else result[own.parent]
            for column, screw, screw_rate in zip(own.columns, own.screws, own.rates):
                a = plus(a, scaled(rates[column], screw))
                if len(own.columns) == 1:  # a twist by itself, as that of a base, has no rate: ad_V V = 0
                    a = plus(a, scaled(self.velocities[column], screw_rate))
            result.append(a)
        return result

    def frame(self, j: int) -> tuple[Axes, Vector]:
        """Return the series of the axes and of the position of the frame that the user gave to a body."""
        moving = self._motion.frame(Frame.of_body(j), self.terms - 1)
        x, y, z, position = (_vector(series[: self.terms]) for series in (*moving.axes, moving.point))
        return (x, y, z), position

    def accumulate(self, values: list[list[Scalar]]) -> list[list[Scalar]]:
        """Add to the numbers of every body those of the bodies beyond it."""
        totals = [list(own) for own in values]
        for j in reversed(range(len(totals))):
            parent = self.placed[j].parent
            if parent >= 0:
                totals[parent] = [a + b for a, b in zip(totals[parent], totals[j])]
        return totals

    def total_moments(self) -> list[Moments]:
        """Return the moments of mass of every body with all beyond it."""
        rows = self.accumulate([[m.mass, *m.first, *m.second] for m in self.moments])
        return [Moments(t[0], (t[1], t[2], t[3]), tuple(t[4:])) for t in rows]

    def path(self, j: int) -> list[int]:
        """Return body j and all inward of it."""
        return inward(self._parents, j)


@dataclass(frozen=True)
class Moments:
    """Mass, first moment (3,) and second moment (xx, yy, zz, xy, xz, yz) about the point of reference."""

    mass: Scalar
    first: Vector
    second: tuple[Scalar, ...]

    @property
    def second_rows(self) -> Matrix:
        """The second moment `integral of x x^T dm` by rows."""
        return symmetric(self.second)

    @property
    def inertia_rows(self) -> Matrix:
        """The rotational inertia by rows."""
        xx, yy, zz, xy, xz, yz = self.second
        return ((yy + zz, -xy, -xz), (-xy, xx + zz, -yz), (-xz, -yz, xx + yy))

    def at_start(self) -> Moments:
        """Return the first terms of the series."""
        x, y, z = (coefficient(value, 0) for value in self.first)
        return Moments(self.mass, (x, y, z), tuple(coefficient(value, 0) for value in self.second))

    def times(self, motion: Spatial) -> Spatial:
        """Multiply the spatial inertia with a motion."""
        w, v = motion
        moment = add(times(self.inertia_rows, w), cross(self.first, v))
        return moment, add(scale(self.mass, v), cross(w, self.first))


def _moments_at_start(body: CanonicalBody, axes: Axes, position: Vector) -> tuple[Vector, tuple[Scalar, ...]]:
    """Return the first and second moment of a body about the point of reference."""
    h = combine(axes, body.first_moment.tolist())
    rows: list[list[float]] = body.second_moment.tolist()
    turned = [combine(axes, row) for row in rows]  # rows of S R^T, for R S R^T
    half = add(h, scale(0.5 * body.mass, position))
    second = [
        dot([axis[a] for axis in axes], [row[b] for row in turned])
        + (position[a] * half[b] + position[b] * half[a])
        for a, b in _PAIRS
    ]
    return add(h, scale(body.mass, position)), tuple(second)


def term(motion: Spatial, k: int) -> Spatial:
    """Return a coefficient of the series that make up a motion."""
    (a, b, c), (d, e, f) = (tuple(coefficient(x, k) for x in vector) for vector in motion)
    return (a, b, c), (d, e, f)


def _vector(terms: Sequence[Vector]) -> Vector:
    """Return a vector of series from its coefficients."""
    x, y, z = (Series(list(values)) for values in zip(*terms))
    return x, y, z


def series_of(terms: Sequence[Spatial]) -> Spatial:
    """Return a motion by series from its coefficients."""
    return _vector([term[0] for term in terms]), _vector([term[1] for term in terms])
