"""What torques and matrices of dynamics are linear in, over abstract scalars.

The parameters of a body are those of Garofalo et al. (2013), eq. 9, in the frame that the user gave to it;
`screws` of a call are those of each body's own joint in that frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.series.spatial import NOTHING, Axes, Spatial, plus, scaled
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, dot, subtract, times

PER_BODY = 10


def regressor(tree: Composite, accelerations: Sequence[Scalar], screws: Sequence[Sequence[Spatial]]) -> Rows:
    """Return Y (m, 10 bodies) by rows, with `Q = Y pi`.

    Newton and Euler in the frame of a body: with `B = w'~ + w~ w~` and the acceleration a of the origin,
    force `m a + B h` and moment `h × a + I w' + w × I w`.
    """
    rows: Rows = [[0.0] * (PER_BODY * len(tree.placed)) for _ in range(tree.size)]
    for j, motion in enumerate(tree.accelerations(accelerations)):
        axes, position = tree.frame(j)
        a, field, turning = _motion(tree.placed[j].twist, motion, axes, position)
        for i in tree.path(j):
            inner = tree.placed[i]
            for k, row in enumerate(inner.columns):
                angular, linear = screws[i][k] if i == j else _seen(inner.screws[k], axes, position)
                first = add(cross(a, angular), times(list(zip(*field)), linear))
                inertial = [dot(column, angular) for column in turning]
                rows[row][PER_BODY * j : PER_BODY * (j + 1)] = [dot(a, linear), *first, *inertial]
    return rows


def slotine_li_regressor(
    tree: Composite,
    reference: Sequence[Scalar],
    rates: Sequence[Scalar],
    screws: Sequence[Sequence[Spatial]],
) -> Rows:
    """Return Y (m, 10 bodies) by rows, with `M w_r' + C w_r + g = Y pi`, w_r the `reference`.

    Garofalo et al. (2013), eq. 16.
    """
    rows: Rows = [[0.0] * (PER_BODY * len(tree.placed)) for _ in range(tree.size)]
    moved: list[tuple[Spatial, Spatial]] = []
    for j, own in enumerate(tree.placed):
        twist, motion = (NOTHING, tree.ground) if own.parent < 0 else moved[own.parent]
        for column, screw, screw_rate in zip(own.columns, own.screws, own.rates):
            twist = plus(twist, scaled(reference[column], screw))
            motion = plus(motion, scaled(rates[column], screw))
            motion = plus(motion, scaled(reference[column], screw_rate))
        moved.append((twist, motion))
        frame = tree.frame(j)
        carried = _seen(own.twist, *frame)
        apparent = _seen(twist, *frame), _seen(motion, *frame)
        for row, screw, _ in _columns(tree, j, frame, screws):
            rows[row][PER_BODY * j : PER_BODY * (j + 1)] = _entries(screw, carried, *apparent)
    return rows


def parameter_derivatives(
    tree: Composite,
    screws: Sequence[Sequence[Spatial]],
    coordinates: Sequence[tuple[Sequence[Scalar], Sequence[Scalar]]] | None = None,
) -> tuple[list[Rows], list[Rows], Rows]:
    """Return the derivatives of M and C (10 bodies, m, m), and of g (10 bodies, m), by parameter.

    Garofalo et al. (2013), eqs. 13a-c. Those in `coordinates`, where they are not the velocities of the tree:
    by coordinate how these follow, and the time derivative of that.
    """
    count, size = PER_BODY * len(tree.placed), tree.size if coordinates is None else len(coordinates)
    mass, coriolis = ([[[0.0] * size for _ in range(size)] for _ in range(count)] for _ in range(2))
    gravity: Rows = [[0.0] * size for _ in range(count)]
    for j, own in enumerate(tree.placed):
        frame = tree.frame(j)
        carried, ground = _seen(own.twist, *frame), _seen(tree.ground, *frame)
        columns = _columns(tree, j, frame, screws)
        if coordinates is not None:
            columns = _in_coordinates(columns, coordinates)
        for row, screw, _ in columns:
            for p, value in enumerate(_entries(screw, NOTHING, NOTHING, ground), PER_BODY * j):
                gravity[p][row] = value
            for column, other, rate in columns:
                for p, value in enumerate(_entries(screw, NOTHING, NOTHING, other), PER_BODY * j):
                    mass[p][row][column] = value
                for p, value in enumerate(_entries(screw, carried, other, rate), PER_BODY * j):
                    coriolis[p][row][column] = value
    return mass, coriolis, gravity


def _columns(
    tree: Composite, j: int, frame: tuple[Axes, Vector], screws: Sequence[Sequence[Spatial]]
) -> list[tuple[int, Spatial, Spatial]]:
    """Return the velocities that move body j: column, screw and rate of the screw, in the body's frame."""
    result = []
    for i in tree.path(j):
        inner = tree.placed[i]
        for k, column in enumerate(inner.columns):
            screw = screws[i][k] if i == j else _seen(inner.screws[k], *frame)
            result.append((column, screw, _seen(inner.rates[k], *frame)))
    return result


def _in_coordinates(
    columns: Sequence[tuple[int, Spatial, Spatial]],
    coordinates: Sequence[tuple[Sequence[Scalar], Sequence[Scalar]]],
) -> list[tuple[int, Spatial, Spatial]]:
    """Return columns of coordinates; those that do not move the body are left out."""
    result = []
    for h, (follow, rates) in enumerate(coordinates):
        moved = NOTHING, NOTHING
        for column, screw, rate in columns:
            f, change = follow[column], rates[column]
            moved = (
                plus(moved[0], scaled(f, screw)),
                plus(moved[1], plus(scaled(f, rate), scaled(change, screw))),
            )
        if any(not isinstance(x, float) or x for part in moved for vector in part for x in vector):
            result.append((h, *moved))
    return result


def _entries(screw: Spatial, twist: Spatial, reference: Spatial, motion: Spatial) -> list[Scalar]:
    """Return by parameter the power of a screw with `A(motion) - ad_twist^T A(reference)`, in a body's frame.

    A as in Garofalo et al. (2013), eqs. 10-12: the momentum of a twist is `A(twist) pi`.
    """
    (s, t), (w, v), (wr, vr), (a, l) = screw, twist, reference, motion
    turned, slid = cross(s, w), cross(t, w)
    first = add(cross(l, s), cross(t, a))
    first = add(first, subtract(cross(add(cross(s, v), slid), wr), cross(turned, vr)))
    mass = dot(add(cross(s, v), slid), vr) + dot(t, l)
    pairs = ((0, 1), (0, 2), (1, 2))
    inertia = [
        *(a[i] * s[i] + wr[i] * turned[i] for i in range(3)),
        *(a[i] * s[k] + a[k] * s[i] + wr[i] * turned[k] + wr[k] * turned[i] for i, k in pairs),
    ]
    return [mass, *first, *inertia]


def _seen(screw: Spatial, axes: Axes, position: Vector) -> Spatial:
    """Return a screw in a frame given by its axes and position."""
    return times(axes, screw[0]), times(axes, add(screw[1], cross(screw[0], position)))


def _motion(
    twist: Spatial, acceleration: Spatial, axes: Axes, position: Vector
) -> tuple[Vector, list[Vector], list[Vector]]:
    """Return a, the rows of B, and the columns of `I w' + w × I w` by parameter, in the body's frame."""
    w, spin = times(axes, twist[0]), times(axes, acceleration[0])
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
    return times(axes, a), field, turning
