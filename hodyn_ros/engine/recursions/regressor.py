"""The regressor of joint torques: what they are linear in, over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.recursions.composite import Axes, Composite, Rows, Spatial
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, dot

PER_BODY = 10


def regressor(tree: Composite, accelerations: Sequence[Scalar], screws: Sequence[Sequence[Spatial]]) -> Rows:
    """Return Y (m, 10 bodies) by rows, with `Q = Y pi`.

    The parameters of a body are those of Garofalo et al. (2013), eq. 9, in the frame that the user gave to
    it, in which `screws` are those of its own joint. Newton and Euler in that frame: with `B = w'~ + w~ w~`
    and the acceleration a of the origin, force `m a + B h` and moment `h × a + I w' + w × I w`.
    """
    rows: Rows = [[0.0] * (PER_BODY * len(tree.placed)) for _ in range(tree.size)]
    for j, motion in enumerate(tree.accelerations(accelerations)):
        axes, position = tree.frame(j)
        a, field, turning = _motion(tree.placed[j].twist, motion, axes, position)
        for i in tree.path(j):
            inner = tree.placed[i]
            for k, row in enumerate(inner.columns):
                angular, linear = screws[i][k] if i == j else _seen(inner.screws[k], axes, position)
                first = add(cross(a, angular), _transposed_times(field, linear))
                inertial = [dot(column, angular) for column in turning]
                rows[row][PER_BODY * j : PER_BODY * (j + 1)] = [dot(a, linear), *first, *inertial]
    return rows


def _seen(screw: Spatial, axes: Axes, position: Vector) -> Spatial:
    """Return a screw in a frame given by its axes and position."""
    return _components(screw[0], axes), _components(add(screw[1], cross(screw[0], position)), axes)


def _components(x: Vector, axes: Axes) -> Vector:
    return dot(axes[0], x), dot(axes[1], x), dot(axes[2], x)


def _motion(
    twist: Spatial, acceleration: Spatial, axes: Axes, position: Vector
) -> tuple[Vector, list[Vector], list[Vector]]:
    """Return a, the rows of B, and the columns of `I w' + w × I w` by parameter, in the body's frame."""
    w, spin = _components(twist[0], axes), _components(acceleration[0], axes)
    velocity = add(twist[1], cross(twist[0], position))
    a = add(add(acceleration[1], cross(acceleration[0], position)), cross(twist[0], velocity))
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    sx, sy, sz = spin
    field: list[Vector] = [
        (-(yy + zz), xy - sz, xz + sy),
        (xy + sz, -(xx + zz), yz - sx),
        (xz - sy, yz + sx, -(xx + yy)),
    ]
    turning: list[Vector] = [
        (sx, xz, -xy),
        (-yz, sy, xy),
        (yz, -xz, sz),
        (sy - xz, sx + yz, xx - yy),
        (sz + xy, zz - xx, sx - yz),
        (yy - zz, sz - xy, sy + xz),
    ]
    return _components(a, axes), field, turning


def _transposed_times(rows: Sequence[Vector], x: Vector) -> Vector:
    columns = list(zip(*rows))
    return dot(columns[0], x), dot(columns[1], x), dot(columns[2], x)
