"""The motion between two samples, from positions and velocities at both.

A cubic polynomial of time fits both ends. At the two points of Gauss and Legendre its second derivative is
that of the motion but for the third power of the period (what is left of it, `(2 - 12 s + 12 s^2) h^2 / 24`
times the fourth derivative, is zero there), and errors of position and velocity are of opposite sign at
both. So the mean of a function of position, velocity and acceleration at these points is its mean over the
period but for an error of fourth order. All functions take numbers or scalars of the tracer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

from hodyn_ros.engine.series.vectors import Vector, add, cross, dot, scale, subtract, times

POINTS = (0.5 - sqrt(3.0) / 6.0, 0.5 + sqrt(3.0) / 6.0)  # of Gauss and Legendre, in shares of the period

Row = Sequence[Any]


class Motion(NamedTuple):
    """Positions, velocities and accelerations of joints or motors."""

    position: list[Any]
    velocity: list[Any]
    acceleration: list[Any]


class BasePoint(NamedTuple):
    """A floating base: pose, body-fixed twist and its derivative, as inverse dynamics takes them."""

    pose: list[list[Any]]  # (4, 4)
    twists: list[list[Any]]  # (2, 6)

    @property
    def origin(self) -> Vector:
        """Where it is in the world."""
        return tuple(row[3] for row in self.pose[:3])  # type: ignore[return-value]


def points_between(q0: Row, v0: Row, q1: Row, v1: Row, period: Any) -> list[Motion]:
    """Return the motion at both points, from positions and velocities at the ends of a period."""
    rate = 1.0 / period
    slopes = [(b - a) * rate for a, b in zip(q0, q1)]
    second = [3.0 * d - 2.0 * a - b for d, a, b in zip(slopes, v0, v1)]
    third = [a + b - 2.0 * d for d, a, b in zip(slopes, v0, v1)]
    motions = []
    for s in POINTS:
        elapsed = s * period
        motions.append(
            Motion(
                [q + elapsed * (v + s * (c + s * d)) for q, v, c, d in zip(q0, v0, second, third)],
                [v + s * (2.0 * c + (3.0 * s) * d) for v, c, d in zip(v0, second, third)],
                [rate * (2.0 * c + (6.0 * s) * d) for c, d in zip(second, third)],
            )
        )
    return motions


def base_between(base0: Row, base1: Row, period: Any) -> list[BasePoint]:
    """Return the motion of a floating base at both points.

    `base0`, `base1`: a pose (3, 4) by rows, and the body-fixed twist (6,), at the ends. The origin is
    interpolated in the world; the turn R since the first end by its Rodrigues parameters c, `R = (I - c~)^-1
    (I + c~)`, with `c' = (w + c x w + c c^T w) / 2` of the body-fixed angular velocity w.
    """
    (turn0, origin0, w0, v0), (turn1, origin1, w1, v1) = (_parts(row) for row in (base0, base1))
    across = [times(_transposed(turn0), column) for column in _transposed(turn1)]
    relative = _transposed(across)
    trace = relative[0][0] + relative[1][1] + relative[2][2]
    share = 1.0 / (1.0 + trace)
    c1 = (
        share * (relative[2][1] - relative[1][2]),
        share * (relative[0][2] - relative[2][0]),
        share * (relative[1][0] - relative[0][1]),
    )
    rate1 = scale(0.5, add(add(w1, cross(c1, w1)), scale(dot(c1, w1), c1)))
    turns = points_between((0.0, 0.0, 0.0), scale(0.5, w0), c1, rate1, period)
    moves = points_between(origin0, times(turn0, v0), origin1, times(turn1, v1), period)
    return [_base_point(turn0, turn, move) for turn, move in zip(turns, moves)]


def _base_point(start: Any, turn: Motion, move: Motion) -> BasePoint:
    c, d, e = (tuple(row) for row in turn)
    size = 1.0 / (1.0 + dot(c, c))
    spin = scale(2.0 * size, subtract(d, cross(c, d)))
    # w (1 + c^T c) = 2 (c' - c x c'), differentiated
    change = subtract(scale(2.0, subtract(e, cross(c, e))), scale(2.0 * dot(c, d), spin))
    spin_rate = scale(size, change)
    x, y, z = c
    rotation = [
        [1.0 - 2.0 * size * (y * y + z * z), 2.0 * size * (x * y - z), 2.0 * size * (x * z + y)],
        [2.0 * size * (x * y + z), 1.0 - 2.0 * size * (x * x + z * z), 2.0 * size * (y * z - x)],
        [2.0 * size * (x * z - y), 2.0 * size * (y * z + x), 1.0 - 2.0 * size * (x * x + y * y)],
    ]
    columns = [times(start, tuple(column)) for column in zip(*rotation)]
    world = _transposed(columns)
    into_body = _transposed(world)
    velocity = times(into_body, tuple(move.velocity))
    acceleration = subtract(times(into_body, tuple(move.acceleration)), cross(spin, velocity))
    pose = [[*row, x] for row, x in zip(world, move.position)]
    return BasePoint([*pose, [0.0, 0.0, 0.0, 1.0]], [[*spin, *velocity], [*spin_rate, *acceleration]])


def _parts(base: Row) -> tuple[Any, Vector, Vector, Vector]:
    rows = [base[4 * i : 4 * i + 4] for i in range(3)]
    turn = tuple(tuple(row[:3]) for row in rows)
    origin = tuple(row[3] for row in rows)
    return turn, origin, tuple(base[12:15]), tuple(base[15:18])  # type: ignore[return-value]


def _transposed(rows: Any) -> Any:
    return tuple(zip(*rows))
