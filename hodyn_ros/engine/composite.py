"""Sums over subtrees in world axes: mass and Coriolis matrices, gravity, and partial derivatives of torques.

Everything that the equations of motion and their first derivatives need of the bodies beyond a joint is a sum
of few numbers per body, seen from one point: mass, first and second moment, momentum and force. An entry for
joints i and j is then a product of screws with the sums of whichever joint lies further out. S. Singh, R.
Russell & P. Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra"
(2022), in which their matrix 2 B shrinks to a 6×3 one: `2 B (alpha; beta)` is the sum of x × f and of f over
mass points at x with velocity r, where `f = 2 alpha × r`.

Scalars are abstract; with `Series` all time derivatives come out as well. The point of reference is where the
first body is at the start, whatever the distance from the world's origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hodyn_ros.engine.canonical import CanonicalBody
from hodyn_ros.engine.vectors import ZERO, Scalar, Vector, add, cross, dot, scale, subtract, times

Matrix = tuple[Vector, Vector, Vector]
Spatial = tuple[Vector, Vector]  # (angular; linear) of a motion, (moment; force) of a wrench
Rows = list[list[Scalar]]


@dataclass
class Placed:
    """A body in world axes: frame axes as columns, position, and the screws of its joint."""

    axes: tuple[Vector, Vector, Vector]
    position: Vector
    columns: list[int]
    screws: list[Spatial]
    parent: int
    twist: Spatial = (ZERO, ZERO)


class Composite:
    """A robot at one instant, or in motion where scalars are series.

    `velocities` and, where partial derivatives are wanted, `accelerations` are those of all joints, after the
    body-fixed twist of a floating base, whose pose is `rotation` (rows) and `position`.
    """

    def __init__(
        self,
        bodies: Sequence[CanonicalBody],
        gravity: Sequence[float],
        positions: Sequence[Scalar],
        velocities: Sequence[Scalar],
        rotation: Matrix | None = None,
        position: Vector = ZERO,
    ) -> None:
        self.constants = list(bodies)
        self.ground: Spatial = (ZERO, (-float(gravity[0]), -float(gravity[1]), -float(gravity[2])))
        self.velocities = list(velocities)
        self.placed: list[Placed] = []
        first = 0 if rotation is None else 6
        for body in bodies:
            if body.joint < 0:
                assert rotation is not None
                self.placed.append(_placed_base(rotation, position))
            else:
                column = first + body.joint
                self.placed.append(self._place(body, column, positions[body.joint]))
            own = self.placed[-1]
            above = (ZERO, ZERO) if own.parent < 0 else self.placed[own.parent].twist
            own.twist = _sum([above, *(scaled(velocities[c], s) for c, s in zip(own.columns, own.screws))])
        self.size = len(self.velocities)
        self.moments = [self._moments(j) for j in range(len(bodies))]

    def _place(self, body: CanonicalBody, column: int, coordinate: Scalar) -> Placed:
        rotation: list[list[float]] = body.rotation.tolist()
        if body.parent < 0:
            origin = self.constants[0].translation
            above: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
            start: Vector = tuple((body.translation - origin).tolist())
        else:
            parent = self.placed[body.parent]
            above = parent.axes
            start = add(parent.position, _combine(above, body.translation.tolist()))
        x, y, z = (_combine(above, column_of) for column_of in zip(*rotation))
        angle = body.rotation_gain * coordinate + body.offset
        c, s = np.cos(angle), np.sin(angle)
        axes = (add(scale(c, x), scale(s, y)), subtract(scale(c, y), scale(s, x)), z)
        position = add(start, scale(body.translation_gain * coordinate, z))
        lever = scale(body.rotation_gain, cross(position, z))
        screw = (scale(body.rotation_gain, z), add(lever, scale(body.translation_gain, z)))
        return Placed(axes, position, [column], [screw], body.parent)

    def _moments(self, j: int) -> Moments:
        body, own = self.constants[j], self.placed[j]
        p, mass = own.position, body.mass
        h = _combine(own.axes, body.first_moment.tolist())
        rows: list[list[float]] = body.second_moment.tolist()
        # R S R^T of the symmetric S as a sum over columns
        turned = [_combine(own.axes, row) for row in rows]
        xx, yy, zz, xy, xz, yz = (
            dot([axis[a] for axis in own.axes], [t[b] for t in turned])
            for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        )
        half = add(h, scale(0.5 * mass, p))
        px, py, pz = p
        hx, hy, hz = half
        second = (
            xx + 2.0 * (px * hx),
            yy + 2.0 * (py * hy),
            zz + 2.0 * (pz * hz),
            xy + (px * hy + py * hx),
            xz + (px * hz + pz * hx),
            yz + (py * hz + pz * hy),
        )
        return Moments(mass, add(h, scale(mass, p)), second)

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
        flat = self.accumulate([[m.mass, *m.first, *m.second] for m in self.moments])
        return [Moments(t[0], (t[1], t[2], t[3]), tuple(t[4:])) for t in flat]

    def path(self, j: int) -> list[int]:
        """Return body j and all inward of it."""
        path = []
        while j >= 0:
            path.append(j)
            j = self.placed[j].parent
        return path

    def twist_above(self, j: int) -> Spatial:
        """Return the twist of a body's parent."""
        parent = self.placed[j].parent
        return (ZERO, ZERO) if parent < 0 else self.placed[parent].twist

    def screw_rates(self) -> list[list[Spatial]]:
        """Return the rates of all joint screws, which move with their bodies, body by body."""
        rates = []
        for j, own in enumerate(self.placed):
            # a single screw does not move under its own joint
            carrier = self.twist_above(j) if len(own.screws) == 1 else own.twist
            rates.append([bracket(carrier, screw) for screw in own.screws])
        return rates


@dataclass(frozen=True)
class Moments:
    """Mass, first moment (3,) and second moment (xx, yy, zz, xy, xz, yz) about the point of reference."""

    mass: Scalar
    first: Vector
    second: tuple[Scalar, ...]

    @property
    def second_rows(self) -> Matrix:
        """The second moment `integral of x x^T dm` by rows."""
        xx, yy, zz, xy, xz, yz = self.second
        return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))

    @property
    def inertia_rows(self) -> Matrix:
        """The rotational inertia by rows."""
        xx, yy, zz, xy, xz, yz = self.second
        return ((yy + zz, -xy, -xz), (-xy, xx + zz, -yz), (-xz, -yz, xx + yy))

    def times(self, motion: Spatial) -> Spatial:
        """Multiply the spatial inertia with a motion."""
        w, v = motion
        moment = add(times(self.inertia_rows, w), cross(self.first, v))
        return moment, add(scale(self.mass, v), cross(w, self.first))


def bracket(a: Spatial, b: Spatial) -> Spatial:
    """Return the Lie bracket `ad_a b` of two motions."""
    return cross(a[0], b[0]), add(cross(a[0], b[1]), cross(a[1], b[0]))


def dual_bracket(a: Spatial, wrench: Spatial) -> Spatial:
    """Return `-ad_a^T W`."""
    return add(cross(a[0], wrench[0]), cross(a[1], wrench[1])), cross(a[0], wrench[1])


def power(motion: Spatial, wrench: Spatial) -> Scalar:
    """Multiply a motion with a wrench."""
    return dot([*motion[0], *motion[1]], [*wrench[0], *wrench[1]])


def plus(a: Spatial, b: Spatial) -> Spatial:
    """Add two motions or two wrenches."""
    return add(a[0], b[0]), add(a[1], b[1])


def scaled(factor: Scalar, a: Spatial) -> Spatial:
    """Multiply a motion or a wrench by a scalar."""
    return scale(factor, a[0]), scale(factor, a[1])


def _sum(items: Sequence[Spatial]) -> Spatial:
    result = items[0]
    for item in items[1:]:
        result = plus(result, item)
    return result


def _combine(vectors: Sequence[Vector], factors: Sequence[Scalar]) -> Vector:
    result = scale(factors[0], vectors[0])
    for vector, factor in zip(vectors[1:], factors[1:]):
        result = add(result, scale(factor, vector))
    return result


def _placed_base(rotation: Matrix, position: Vector) -> Placed:
    axes = tuple(zip(*rotation))
    x, y, z = axes
    turns = [(axis, cross(position, axis)) for axis in (x, y, z)]
    shifts = [(ZERO, axis) for axis in (x, y, z)]
    return Placed((x, y, z), position, list(range(6)), [*turns, *shifts], -1)
