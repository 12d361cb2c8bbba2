"""Dynamics of any order at 40 digits: d'Alembert's principle on power series, no recursive Newton-Euler.

The motion q(t) is a polynomial with the given derivatives. Every body's pose C(t) follows as a truncated
power series from the product of exponentials. A body is a cloud of mass points with second moment
J = sum m ξ ξ^T (4×4, homogeneous coordinates), so its inertial forces less gravity are the columns of

    N(t) = (C''(t) - [0 0 0 g]) J C(t)^T ,

whose last column is the force and whose skew part is the moment about the world origin. A joint's torque is
the power of its screw on the wrenches of all bodies that it moves. Coefficient k of the torque times k! is
the exact k-th time derivative.

Numbers are those of MPFR, whose precision `digits` sets; `series` arrays have the power of t on axis 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import gmpy2
import numpy as np
from gmpy2 import cos, mpfr, sin, sqrt
from numpy.typing import ArrayLike, NDArray

from oracles.motions import Base, Frame, Load
from oracles.random_trees import Tree

Exact = NDArray[np.object_]
"""Array of numbers of many digits."""

ZERO, ONE = mpfr(0), mpfr(1)

_BITS = np.log2(10.0)  # a digit
gmpy2.get_context().precision = round(41 * _BITS)


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Power series of the bodies' poses and of the joint screws in the world frame."""

    poses: list[Exact]  # per body (terms, 3, 4)
    screws: list[Exact | None]  # per body (terms, 6), None for a floating base


@dataclass(frozen=True, eq=False)
class Efforts:
    """Derivatives of what a motion needs: joint torques, and the wrench at a floating base."""

    torques: Exact  # (order + 1, n)
    base_wrench: Exact | None  # (order + 1, 6), world axes, about the world origin


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Derivatives of what the torques cause."""

    joints: Exact  # (order + 1, n): q^(2) ... q^(order + 2)
    base: Exact | None  # (order + 1, 6): V^(1) ... V^(order + 1), in the frame of the base motion


@contextmanager
def digits(count: int) -> Iterator[None]:
    """Compute with another number of digits inside a with-block."""
    context = gmpy2.get_context()
    before = context.precision
    context.precision = round((count + 1) * _BITS)
    try:
        yield
    finally:
        context.precision = before


def exact(values: ArrayLike) -> Exact:
    """Turn floats into numbers of the same value."""
    array = np.asarray(values)
    result = np.empty(array.shape, dtype=object)
    result.reshape(-1)[:] = [mpfr(value) for value in array.ravel().tolist()]
    return result


def to_float(values: Exact) -> NDArray[np.float64]:
    """Round to doubles."""
    return np.array(values, dtype=np.float64)


def solve(matrix: Exact, right: Exact) -> Exact:
    """Solve `matrix @ x = right` for a square matrix (n, n); `right` (n,) or (n, m)."""
    n = len(matrix)
    rows = np.concatenate([matrix, right.reshape(n, -1)], axis=1)
    for i in range(n):
        pivot = i + int(np.argmax(np.abs(rows[i:, i])))
        rows[[i, pivot]] = rows[[pivot, i]]
        rows[i] = rows[i] / rows[i, i]
        for k in range(n):
            if k != i:
                rows[k] = rows[k] - rows[k, i] * rows[i]
    return rows[:, n:].reshape(right.shape)


# --- power series -------------------------------------------------------------------------------------------


def taylor(derivatives: Exact, terms: int) -> Exact:
    """Return the power series with the given derivatives, cut or filled with zeros to a number of terms."""
    series = _zeros((terms, *derivatives.shape[1:]))
    for k in range(min(terms, len(derivatives))):
        series[k] = derivatives[k] / factorial(k)
    return series


def derivatives(series: Exact) -> Exact:
    """Return the derivatives at t = 0 of a power series."""
    return np.array([factorial(k) * term for k, term in enumerate(series)], dtype=object).reshape(
        series.shape
    )


def derivative(series: Exact) -> Exact:
    """Differentiate a power series; one term is lost."""
    return np.array([(k + 1) * term for k, term in enumerate(series[1:])], dtype=object).reshape(
        (len(series) - 1, *series.shape[1:])
    )


def matmul(a: Exact, b: Exact) -> Exact:
    """Multiply two power series of matrices, of matrices and vectors, or of vectors."""
    terms = min(len(a), len(b))
    return np.array([sum(a[k - j] @ b[j] for j in range(k + 1)) for k in range(terms)], dtype=object)


def cross(a: Exact, b: Exact) -> Exact:
    """Return the cross product of two power series (terms, 3)."""
    terms = min(len(a), len(b))
    result = _zeros((terms, 3))
    for k in range(terms):
        for j in range(k + 1):
            u, v = a[k - j], b[j]
            result[k, 0] += u[1] * v[2] - u[2] * v[1]
            result[k, 1] += u[2] * v[0] - u[0] * v[2]
            result[k, 2] += u[0] * v[1] - u[1] * v[0]
    return result


def _zeros(shape: tuple[int, ...]) -> Exact:
    result = np.empty(shape, dtype=object)
    result.fill(ZERO)
    return result


def _cos_sin(angle: Exact) -> tuple[Exact, Exact]:
    """Return cosine and sine of a power series (terms,)."""
    c, s = _zeros(angle.shape), _zeros(angle.shape)
    c[0], s[0] = cos(angle[0]), sin(angle[0])
    for k in range(1, len(angle)):
        c[k] = -sum(j * angle[j] * s[k - j] for j in range(1, k + 1)) / k
        s[k] = sum(j * angle[j] * c[k - j] for j in range(1, k + 1)) / k
    return c, s


def compose(a: Exact, b: Exact) -> Exact:
    """Compose two series of poses (terms, 3, 4)."""
    result = matmul(a[:, :, :3], b)
    result[:, :, 3] += a[: len(result), :, 3]
    return result


def _carried(series: Exact, pose: Exact) -> Exact:
    """Compose a series of poses (terms, 3, 4) with a pose (3 or 4, 4) that does not move."""
    result: Exact = series[:, :, :3] @ pose[:3]
    result[:, :, 3] += series[:, :, 3]
    return result


def rigid(pose: ArrayLike) -> Exact:
    """Return a pose (4, 4) of doubles with its rotation made orthogonal to all digits, by Newton's iteration.

    Doubles are orthogonal to 16 digits only, and what is not rigid obeys no law of mechanics to more.
    """
    array = np.asarray(pose)
    if array.dtype == object:
        return _orthogonal(exact(array))
    return _rigid_of(array.astype(np.float64).tobytes(), gmpy2.get_context().precision)


@lru_cache(maxsize=1000)
def _rigid_of(pose: bytes, precision: int) -> Exact:
    result = _orthogonal(exact(np.frombuffer(pose).reshape(4, 4)))
    result.setflags(write=False)
    return result


def _orthogonal(pose: Exact) -> Exact:
    rotation = pose[:3, :3]
    for _ in range(4):
        rotation = (3 * rotation - rotation @ rotation.T @ rotation) / 2
    pose[:3, :3] = rotation
    return pose


@dataclass(frozen=True, eq=False)
class _Unit:
    """A screw (6,) of doubles scaled to unit length in all digits, and what its exponential is made of."""

    screw: Exact
    turn: Exact | None  # (3, 3) the matrix of its axis; None of a shift
    turn_twice: Exact | None  # the square of that

    @classmethod
    def of(cls, screw: ArrayLike) -> _Unit:
        return _unit_of(np.asarray(screw, dtype=np.float64).tobytes(), gmpy2.get_context().precision)


@lru_cache(maxsize=1000)
def _unit_of(screw: bytes, precision: int) -> _Unit:
    result = exact(np.frombuffer(screw))
    turns = any(result[:3])
    direction = result[:3] if turns else result[3:]
    result /= sqrt(direction @ direction)
    turn = _hat(result[:3]) if turns else None
    return _Unit(result, turn, None if turn is None else turn @ turn)


def _inverse(pose: Exact) -> Exact:
    result: Exact = pose.copy()
    result[:3, :3] = pose[:3, :3].T
    result[:3, 3] = -(result[:3, :3] @ pose[:3, 3])
    return result


def _hat(vector: Exact) -> Exact:
    x, y, z = vector
    return np.array([[ZERO, -z, y], [z, ZERO, -x], [-y, x, ZERO]], dtype=object)


def axis_of(matrices: Exact) -> Exact:
    """Return the vectors (..., 3) of the skew parts of matrices (..., 3, 3)."""
    apart = matrices - np.swapaxes(matrices, -1, -2)
    return np.stack([apart[..., 2, 1], apart[..., 0, 2], apart[..., 1, 0]], axis=-1) / 2


def _exponential(unit: _Unit, q: Exact) -> Exact:
    """Return the series (terms, 3, 4) of exp([Y] q(t)) for a unit screw Y = (e; y×e + h e) or (0; e)."""
    axis, linear = unit.screw[:3], unit.screw[3:]
    result = _zeros((len(q), 3, 4))
    if unit.turn is None:
        result[0, range(3), range(3)] = ONE
        result[:, :, 3] = q[:, None] * linear
        return result
    c, s = _cos_sin(q)
    versine = -c
    versine[0] += 1
    rotation = s[:, None, None] * unit.turn + versine[:, None, None] * unit.turn_twice
    rotation[0, range(3), range(3)] += ONE
    # (1 - R) y + h e q with the axis point y = e × v and the pitch h = e·v.
    point = unit.turn @ linear
    result[:, :, :3] = rotation
    result[:, :, 3] = (axis @ linear) * q[:, None] * axis - rotation @ point
    result[0, :, 3] += point
    return result


# --- kinematics ---------------------------------------------------------------------------------------------


def kinematics(tree: Tree, q: Exact, base: Exact | None = None) -> Kinematics:
    """Return poses and screws of a motion given as power series: q (terms, n), base poses (terms, 3, 4)."""
    motions: list[Exact] = []
    poses: list[Exact] = []
    screws: list[Exact | None] = []
    first = int(tree.floating_base)
    for i, parent in enumerate(tree.parents):
        placement = rigid(tree.placements[i])
        if i < first:
            if base is None:
                raise ValueError("a floating base needs its motion")
            poses.append(base)
            motions.append(_carried(base, _inverse(placement)))
            screws.append(None)
            continue
        unit = _Unit.of(tree.screws[i])
        screw, motion = unit.screw, _exponential(unit, q[:, i - first])
        if parent >= 0:
            motion = compose(motions[parent], motion)
        motions.append(motion)
        poses.append(_carried(motion, placement))
        axis = motion[:, :, :3] @ screw[:3]
        linear = motion[:, :, :3] @ screw[3:] + cross(motion[:, :, 3], axis)
        screws.append(np.concatenate([axis, linear], axis=1))
    return Kinematics(poses, screws)


def base_poses(base: Base, twists: Exact, terms: int) -> Exact:
    """Integrate a series of twists (terms - 1, 6) in the frame of the base to poses (terms, 3, 4)."""
    poses = _zeros((terms, 4, 4))
    poses[0] = rigid(base.pose)
    hats = _zeros((terms - 1, 4, 4))
    for k in range(terms - 1):
        hats[k, :3, :3] = _hat(twists[k, :3])
        hats[k, :3, 3] = twists[k, 3:]
    for k in range(terms - 1):
        pairs = ((hats[k - j], poses[j]) for j in range(k + 1))
        products = (hat @ pose if base.representation == "spatial" else pose @ hat for hat, pose in pairs)
        poses[k + 1] = sum(products) / (k + 1)
    return poses[:, :3]


def twists_of(poses: Exact, frame: Frame | str) -> Exact:
    """Return the twist series (terms - 1, 6) of a pose series: frame "spatial", "body_fixed" or "hybrid"."""
    rotation, position = poses[:-1, :, :3], poses[:-1, :, 3]
    rotation_rate, velocity = derivative(poses[:, :, :3]), derivative(poses[:, :, 3])
    transposed = rotation.transpose(0, 2, 1)
    if frame == "body_fixed":
        spin, linear = matmul(transposed, rotation_rate), matmul(transposed, velocity)
    else:
        spin, linear = matmul(rotation_rate, transposed), velocity
    angular = axis_of(spin)
    if frame == "spatial":
        linear = linear + cross(position, angular)
    return np.concatenate([angular, linear], axis=1)


# --- dynamics -----------------------------------------------------------------------------------------------


def inverse_dynamics(
    tree: Tree,
    q: ArrayLike,
    *,
    base: Base | None = None,
    loads: Sequence[Load] = (),
) -> Efforts:
    """Return the torques of a motion q (order + 3, n) and their derivatives, exactly.

    With a floating base, also the wrench that must act on the base, in the world frame about the world
    origin. Accepts floats or numbers of more digits.
    """
    stack = np.asarray(q)
    terms = len(stack)
    flyer = None if base is None else base_poses(base, taylor(exact(base.twists), terms - 1), terms)
    return _efforts(tree, kinematics(tree, taylor(exact(stack), terms), flyer), loads)


def mass_matrix(tree: Tree, q: ArrayLike, base: Base | None = None) -> Exact:
    """Return the mass matrix at q (n,); the twist of a floating base, in the frame of `base`, comes first."""
    matrix = _effort_of_acceleration(tree, exact(q), base)
    if base is not None and base.representation == "body_fixed":
        matrix[:6] = _wrench_to_body(rigid(base.pose)[:3]) @ matrix[:6]
    return matrix


def forward_dynamics(
    tree: Tree,
    state: ArrayLike,
    torques: ArrayLike,
    *,
    base: Base | None = None,
    base_wrench: ArrayLike | None = None,
    loads: Sequence[Load] = (),
) -> Accelerations:
    """Return accelerations and their derivatives from state (2, n) and torques (order + 1, n), exactly.

    With a floating base, `base` gives pose and first twist, and `base_wrench` (order + 1, 6) what acts on the
    base in the world frame about the world origin (nothing if None).
    """
    found, _ = hybrid_dynamics(
        tree,
        state,
        np.ones(tree.n_joints, dtype=bool),
        torques,
        np.zeros((len(np.asarray(torques)), tree.n_joints)),
        base=base,
        base_wrench=base_wrench,
        loads=loads,
    )
    return found


def hybrid_dynamics(
    tree: Tree,
    state: ArrayLike,
    free: ArrayLike,
    torques: ArrayLike,
    accelerations: ArrayLike,
    *,
    base: Base | None = None,
    base_free: bool = True,
    base_wrench: ArrayLike | None = None,
    loads: Sequence[Load] = (),
) -> tuple[Accelerations, Efforts]:
    """Return all motion and all efforts where some joints have their torque given and the others their
    motion.

    `free` (n,) is True where the torque (order + 1, n) is given, False where the acceleration (order + 1, n)
    is; the other entries are ignored. A floating base that is not `base_free` follows the twists of `base`.
    Order by order: Q^(k) = M q^(k+2) + terms of lower order, so each order is one linear solve with the same
    matrix.
    """
    start, given_torques = exact(state), exact(torques)
    order, n = len(given_torques) - 1, tree.n_joints
    first = 6 * int(tree.floating_base)
    unknown = np.concatenate([np.full(first, base_free), np.asarray(free, dtype=bool)])
    rows = np.flatnonzero(unknown)

    stack = np.concatenate([start, exact(accelerations)])
    stack[2:, unknown[first:]] = ZERO
    supplied = _zeros((order + 1, first + n))
    supplied[:, first:] = given_torques
    if base_wrench is not None:
        supplied[:, :first] = exact(base_wrench)
    twists = _zeros((order + 2, 6))
    if base is not None:
        known = exact(base.twists)[: 1 if base_free else order + 2]
        twists[: len(known)] = known

    def motion(orders: int) -> Base | None:
        return None if base is None else Base(base.pose, twists[:orders], base.representation)

    matrix = _effort_of_acceleration(tree, start[0], base)
    to_solve = matrix[np.ix_(rows, rows)]
    for k in range(order + 1 if len(rows) else 0):
        needed = _row(inverse_dynamics(tree, stack[: k + 3], base=motion(k + 2), loads=loads), k)
        change = _zeros((first + n,))
        change[rows] = solve(to_solve, (supplied[k] - needed)[rows])
        stack[k + 2] += change[first:]
        if first:
            twists[k + 1] += change[:6]
    found = Accelerations(joints=stack[2:], base=twists[1:] if first else None)
    return found, inverse_dynamics(tree, stack, base=motion(order + 2), loads=loads)


def _effort_of_acceleration(tree: Tree, position: Exact, base: Base | None) -> Exact:
    """Return d(base wrench in the world, torques) / d(base twist rate, joint accelerations), by columns."""
    n, first = tree.n_joints, 6 * int(tree.floating_base)
    weightless = tree.with_gravity(np.zeros(3))
    matrix = _zeros((first + n, first + n))
    for column in range(first + n):
        unit = _zeros((first + n,))
        unit[column] = ONE
        stack = _zeros((3, n))
        stack[0], stack[2] = position, unit[first:]
        moving = (
            None if base is None else Base(base.pose, np.stack([_zeros((6,)), unit[:6]]), base.representation)
        )
        matrix[:, column] = _row(inverse_dynamics(weightless, stack, base=moving), 0)
    return matrix


def _row(efforts: Efforts, order: int) -> Exact:
    if efforts.base_wrench is None:
        torques: Exact = efforts.torques[order]
        return torques
    return np.concatenate([efforts.base_wrench[order], efforts.torques[order]])


def _efforts(tree: Tree, motion: Kinematics, loads: Sequence[Load]) -> Efforts:
    orders = len(motion.poses[0]) - 2
    wrenches = [inertial_wrench(tree, body, pose) for body, pose in enumerate(motion.poses)]
    for load in loads:
        values = taylor(exact(load.values), orders)
        applied = (
            values if load.representation == "spatial" else wrench_to_world(motion.poses[load.body], values)
        )
        wrenches[load.body] = wrenches[load.body] - applied
    first = int(tree.floating_base)
    torques = _zeros((orders, tree.n_joints))
    for body in reversed(range(tree.n_bodies)):
        screw = motion.screws[body]
        if screw is not None:
            torques[:, body - first] = matmul(screw, wrenches[body])
        parent = tree.parents[body]
        if parent >= 0:
            wrenches[parent] = wrenches[parent] + wrenches[body]
    return Efforts(derivatives(torques), derivatives(wrenches[0]) if first else None)


def inertial_wrench(tree: Tree, body: int, pose: Exact) -> Exact:
    """Return inertial forces less gravity of one body (terms - 2, 6), about the world origin."""
    rate = derivative(derivative(pose))
    rate[0, :, 3] = rate[0, :, 3] - exact(tree.gravity)
    columns = rate @ second_moment(tree, body)
    force = columns[:, :, 3]
    moments = matmul(columns, pose.transpose(0, 2, 1))
    return np.concatenate([2 * axis_of(moments), force], axis=1)


def second_moment(tree: Tree, body: int) -> Exact:
    """Return the sum of m ξ ξ^T (4, 4) over the mass points of a body, in its frame; [3, 3] is the mass."""
    mass, com, inertia = (
        mpfr(float(tree.masses[body])),
        exact(tree.coms[body]),
        exact(tree.inertias[body]),
    )
    half_trace = (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / 2
    result = _zeros((4, 4))
    result[:3, :3] = mass * np.outer(com, com) - inertia
    for axis in range(3):
        result[axis, axis] += half_trace
    result[:3, 3] = result[3, :3] = mass * com
    result[3, 3] = mass
    return result


def wrench_to_world(pose: Exact, values: Exact) -> Exact:
    """Turn a series of wrenches in body axes about the body origin into world axes about the world origin."""
    moment = matmul(pose[:, :, :3], values[:, :3])
    force = matmul(pose[:, :, :3], values[:, 3:])
    return np.concatenate([moment + cross(pose[:, :, 3], force), force], axis=1)


def wrench_to_body(pose: Exact, values: Exact) -> Exact:
    """Turn a series of wrenches at the world origin into body axes at the body origin."""
    turned = pose[:, :, :3].transpose(0, 2, 1)
    moment = values[:, :3] - cross(pose[:, :, 3], values[:, 3:])
    return np.concatenate([matmul(turned, moment), matmul(turned, values[:, 3:])], axis=1)


def _wrench_to_body(pose: Exact) -> Exact:
    """Return the matrix (6, 6) that takes a wrench from the world origin and axes to those of a body."""
    turn, zero = pose[:, :3].T, _zeros((3, 3))
    return np.block([[turn, -turn @ _hat(pose[:, 3])], [zero, turn]])
