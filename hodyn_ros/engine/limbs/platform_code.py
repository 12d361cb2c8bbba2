"""What is computed for the platform and for the whole robot, over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.allowed import allowed_twists, distance_from_allowed
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.orthogonal import Column
from hodyn_ros.engine.series.series import Series
from hodyn_ros.engine.series.series_system import SeriesSystem
from hodyn_ros.engine.series.validity import distance_from_rigid
from hodyn_ros.engine.series.vectors import (
    Scalar,
    Vector,
    add,
    cross,
    dot,
    halves,
    scale,
    subtract,
    taylor,
    twist_about,
)
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.parallel.model import ParallelModel
from hodyn_ros.model.parallel.platform import Platform

_TERMS = 10  # of the series of sine and cosine


def center(model: ParallelModel) -> Array:
    """Return the point (3,) in the world that levers are measured from, lest large ones cost digits."""
    point: Array = model.platform.placement[:3, 3].copy()
    return point


def basis_of(model: ParallelModel) -> Array:
    """Return a basis (6, delta) of the twists that the platform can have, in world axes about the center."""
    return allowed_twists(model.dof, model.platform.placement, model.length)


def platform_motion(
    model: ParallelModel, order: int, pose: Stack, twists: Stack, loads: Sequence[Stack] = ()
) -> tuple[list[Scalar], list[Column], Scalar]:
    """Return the motion that limbs take, the platform's wrench, and what is wrong with pose and twists.

    First pose (12,) and Taylor coefficients of the twist, in world axes about the center; then those of the
    wrench that moves the platform and holds its weight, (order + 1, 6) likewise; last a number that is zero
    for a rigid pose and twists that `platform_dof` allows. `loads`: wrenches by order, in the platform frame
    and in the world frame.
    """
    middle = center(model).tolist()
    seen = [[*row[:3], row[3] - x] for row, x in zip(pose, middle)]
    base = FloatingBase(seen, model.gravity.tolist(), "spatial")
    frames: tuple[BaseRepresentation, ...] = ("body_fixed", "spatial")
    acting = [AppliedWrench(0, kind) for _, kind in zip(loads, frames)]
    recursion = Recursion([_canonical(model.platform)], model.gravity.tolist(), base, acting)
    about = [twist_about(taylor(twist, k), middle) for k, twist in enumerate(twists)]
    scaled = [[*w, *v] for w, v in about]
    recursion.start((), (), scaled[0])
    recursion.inverse_dynamics(
        [()] * (order + 1),
        scaled[1:],
        [[_load(load[k], k, kind, middle) for load, kind in zip(loads, frames)] for k in range(order + 1)],
    )
    motion = [value for row in seen for value in row]
    for twist in scaled:
        motion += twist
    wrong = distance_from_rigid(pose)
    if model.delta < 6:
        wrong = wrong + distance_from_allowed(basis_of(model), model.length, scaled)
    return motion, [recursion.base_wrench(k) for k in range(order + 1)], wrong


def _load(
    values: Sequence[Scalar], k: int, frame: BaseRepresentation, middle: Sequence[float]
) -> list[Scalar]:
    """Return the Taylor coefficient of a wrench, about the center if it is one in the world frame."""
    moment, force = halves(taylor(values, k))
    return [*(subtract(moment, cross(middle, force)) if frame == "spatial" else moment), *force]


def drive_series(
    basis: Array,
    platform: Sequence[Column],
    limbs: Sequence[Sequence[Column]],
    drives: Sequence[Sequence[Column]],
    preload: Stack | None,
    reach: float,
) -> tuple[Stack, Scalar]:
    """Return Taylor coefficients of the driven forces, and nearness to singularity.

    `reach`: what motions of the drives are measured in, 1 for turns and a length [m] for slides.
    `platform`, `limbs[l]`, `drives[a]`: wrenches by order in the world frame as `platform_motion` and
    `limb_motion` give them. Balance on the platform: the wrenches of all drives together are those of
    platform and limbs, in the directions in which it can move.
    """
    orders, columns = range(len(platform)), basis.T.tolist()
    force = []
    for k in orders:
        total = list(platform[k])
        for limb in limbs:
            total = [a + b for a, b in zip(total, limb[k])]
        force.append([dot(column, total) for column in columns])
    rows = [[[dot(column, drive[k]) for drive in drives] for column in columns] for k in orders]
    balance = [[Series([row[i][a] for row in rows]) for a in range(len(drives))] for i in range(len(columns))]
    system = SeriesSystem(balance, len(orders))
    if preload is None or len(drives) == len(columns):
        return system.solve(force), system.singularity * reach**2
    missing = []
    for k in orders:
        held = [sum(dot(row, preload[k - l]) for l, row in enumerate(part)) for part in zip(*rows[: k + 1])]
        missing.append([value - part for value, part in zip(force[k], held)])
    forces = [[a + b for a, b in zip(*parts)] for parts in zip(preload, system.solve(missing))]
    return forces, system.singularity * reach**2


def moved_pose(pose: Sequence[Scalar], twist: Sequence[Scalar]) -> list[Scalar]:
    """Return a pose (12,) by rows after a motion by a twist, `exp(twist) pose`, both seen from one point.

    Right for turns of less than a radian. What rounding has left of a rotation goes no further.
    """
    w, v = halves(twist)
    x, terms = -dot(w, w), range(_TERMS)
    # sin(t) / t, (1 - cos(t)) / t^2 and (t - sin(t)) / t^3 of the angle t
    first, second, third = (
        _polynomial(x, [1.0 / factorial(2 * i + shift) for i in terms]) for shift in (1, 2, 3)
    )

    def turned(point: Vector, a: Scalar, b: Scalar) -> Vector:
        around = cross(w, point)
        return add(point, add(scale(a, around), scale(b, cross(w, around))))

    a, b, c = (turned((pose[i], pose[4 + i], pose[8 + i]), first, second) for i in range(3))
    place = add(turned((pose[3], pose[7], pose[11]), first, second), turned(v, second, third))
    columns = (a, b, c)
    # R (3 - R^T R) / 2 is a rotation but for the square of the error of R
    gaps = [[0.5 * (float(i == j) - dot(p, q)) for j, q in enumerate(columns)] for i, p in enumerate(columns)]
    right = [
        add(column, add(add(scale(gap[0], a), scale(gap[1], b)), scale(gap[2], c)))
        for column, gap in zip(columns, gaps)
    ]
    return [value for i in range(3) for value in (*(column[i] for column in right), place[i])]


def _polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    result: Scalar = 0.0
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def nearness(inverses: Sequence[Scalar], reach: float) -> Scalar:
    """Return the sum of 1 / l^2, l what each column of `J_IK` adds to those before it, without units."""
    return sum(inverses[1:], start=inverses[0]) * reach**2


def _canonical(platform: Platform) -> CanonicalBody:
    inertia, mass, com = platform.inertia, platform.mass, platform.com
    symmetric = 0.5 * (inertia + inertia.T)
    second = 0.5 * np.trace(symmetric) * np.eye(3) - symmetric + mass * np.outer(com, com)
    return CanonicalBody(
        parent=-1,
        joint=-1,
        rotation=np.eye(3),
        translation=np.zeros(3),
        offset=0.0,
        rotation_gain=0.0,
        translation_gain=0.0,
        mass=mass,
        first_moment=mass * com,
        second_moment=second,
        body_in_frame=np.eye(4),
    )
