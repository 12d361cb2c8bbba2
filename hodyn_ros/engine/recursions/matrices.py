"""Matrices, gravity and momentum of a tree from sums over subtrees, over abstract scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from hodyn_ros.engine.recursions.composite import Composite, Moments, Rows, series_of, term
from hodyn_ros.engine.recursions.kinematics import total_mass
from hodyn_ros.engine.series.series import coefficient
from hodyn_ros.engine.series.spatial import Spatial, plus, power, scaled
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, scale, subtract, times


def mass_matrix(tree: Composite) -> Rows:
    """Return `M_ij = S_i^T I_j S_j` with the inertia of body j and all beyond it, i inward of j."""
    matrix = _zeros(tree)
    for j, moments in enumerate(tree.total_moments()):
        for column, screw in zip(tree.placed[j].columns, tree.placed[j].screws):
            momentum = moments.times(screw)
            for i in tree.path(j):
                for row, inner in zip(tree.placed[i].columns, tree.placed[i].screws):
                    matrix[row][column] = matrix[column][row] = power(inner, momentum)
    return matrix


def gravity_forces(tree: Composite) -> list[Scalar]:
    """Return the forces that hold the bodies against gravity."""
    forces: list[Scalar] = [0.0] * tree.size
    for j, moments in enumerate(tree.total_moments()):
        weight = moments.times(tree.ground)
        for row, screw in zip(tree.placed[j].columns, tree.placed[j].screws):
            forces[row] = power(screw, weight)
    return forces


def coriolis_matrix(tree: Composite) -> Rows:
    """Return `C_ij = S_i^T (I S_j' + B S_j)` with I and B of the outer of both bodies and all beyond it.

    `B = -ad_V^T I` is summed over the bodies: the factorisation of Garofalo et al., eq. 6b, in world axes. As
    `I' = B + B^T`, products of B with screws also give the later terms of products with I.
    """
    matrix = _zeros(tree)
    orders = range(tree.terms)
    totals = zip(tree.total_moments(), tree.accumulate(_operators(tree)))
    for j, (moments, rows) in enumerate(totals):
        at_start = moments.at_start()
        operators = [_VelocityOperator(*_split([coefficient(x, k) for x in rows])) for k in orders]
        outer = tree.placed[j]
        for column, screw, rate in zip(outer.columns, outer.screws, outer.rates):
            S, R = ([term(x, k) for k in orders] for x in (screw, rate))
            turned = [_sum_of_products(operators, S, k, _VelocityOperator.times) for k in orders]
            inertial = _inertia_times(at_start, operators, R)
            momentum = series_of(_inertia_times(at_start, operators, S))
            force = series_of([plus(a, b) for a, b in zip(inertial, turned)])
            back = _VelocityOperator.transposed_times
            transposed = series_of([_sum_of_products(operators, S, k, back) for k in orders])
            for i in tree.path(j):
                inner = tree.placed[i]
                for row, inner_screw, inner_rate in zip(inner.columns, inner.screws, inner.rates):
                    matrix[row][column] = power(inner_screw, force)
                    if i != j:
                        matrix[column][row] = power(inner_rate, momentum) + power(inner_screw, transposed)
    return matrix


def _inertia_times(
    at_start: Moments, operators: Sequence[_VelocityOperator], x: Sequence[Spatial]
) -> list[Spatial]:
    """Return the terms of `I X` from I at the start and its rate `B + B^T`."""
    result = []
    for k, value in enumerate(x):
        product = at_start.times(value)
        for i in range(1, k + 1):
            operator, past = operators[i - 1], x[k - i]
            change = plus(operator.times(past), operator.transposed_times(past))
            product = plus(product, scaled(1.0 / i, change))
        result.append(product)
    return result


def _sum_of_products(
    operators: Sequence[_VelocityOperator],
    x: Sequence[Spatial],
    k: int,
    multiply: Callable[[_VelocityOperator, Spatial], Spatial],
) -> Spatial:
    """Return term k of a product of B or its transpose with X."""
    result = multiply(operators[k], x[0])
    for i in range(1, k + 1):
        result = plus(result, multiply(operators[k - i], x[i]))
    return result


def _zeros(tree: Composite) -> Rows:
    return [[0.0] * tree.size for _ in range(tree.size)]


class _VelocityOperator:
    """The matrix `B = -ad_V^T I` (6, 6) of bodies, by its different entries, which add up."""

    def __init__(
        self, angular: Sequence[Vector], mixed: Sequence[Vector], turning: Vector, moving: Vector
    ) -> None:
        self.angular = angular  # omega~ I - v~ h~
        self.mixed = mixed  # omega~ h~
        self.turning = turning  # m omega
        self.moving = moving  # m v

    def times(self, screw: Spatial) -> Spatial:
        w, v = screw
        moment = add(add(times(self.angular, w), times(self.mixed, v)), cross(self.moving, v))
        return moment, subtract(cross(self.turning, v), times(self.mixed, w))

    def transposed_times(self, screw: Spatial) -> Spatial:
        w, v = screw
        angular, mixed = list(zip(*self.angular)), list(zip(*self.mixed))
        upper = subtract(times(angular, w), times(mixed, v))
        lower = subtract(times(mixed, w), add(cross(self.moving, w), cross(self.turning, v)))
        return upper, lower


def _operators(tree: Composite) -> list[list[Scalar]]:
    """Return the entries of B of every body by itself, in a row."""
    result = []
    for placed, moments in zip(tree.placed, tree.moments):
        w, v = placed.twist
        h = moments.first
        turned = list(zip(*(cross(w, column) for column in moments.inertia_rows)))  # I is symmetric
        angular = [subtract(row, outer) for row, outer in zip(turned, _double_cross(v, h))]
        vectors = [*angular, *_double_cross(w, h), scale(moments.mass, w), scale(moments.mass, v)]
        result.append([x for vector in vectors for x in vector])
    return result


def _double_cross(a: Vector, b: Vector) -> list[Vector]:
    """Return the matrix `a~ b~ = b a^T - (a·b) 1` by rows."""
    (ax, ay, az), (bx, by, bz) = a, b
    xx, yy, zz = ax * bx, ay * by, az * bz
    return [
        (-(yy + zz), bx * ay, bx * az),
        (by * ax, -(xx + zz), by * az),
        (bz * ax, bz * ay, -(xx + yy)),
    ]


def _split(row: Sequence[Scalar]) -> tuple[list[Vector], list[Vector], Vector, Vector]:
    vectors = [(row[i], row[i + 1], row[i + 2]) for i in range(0, 24, 3)]
    return vectors[:3], vectors[3:6], vectors[6], vectors[7]


def com_jacobian(tree: Composite) -> Rows:
    """Return the matrix (3, m) that takes velocities to that of the centre of mass, in world axes."""
    share = 1.0 / _mass(tree)
    return _by_rows([scale(share, force) for _, force in _momenta(tree)])


def momentum_matrix(tree: Composite) -> Rows:
    """Return the matrix (6, m) that takes velocities to the momentum about the centre of mass."""
    com = _com(tree)
    return _by_rows([_about(com, momentum) for momentum in _momenta(tree)])


def momentum(tree: Composite) -> list[Scalar]:
    """Return the momentum (6,) about the centre of mass, in world axes, angular part first."""
    parts = (moments.times(own.twist) for moments, own in zip(tree.moments, tree.placed))
    return _about(_com(tree), reduce(plus, parts))


def _momenta(tree: Composite) -> list[Spatial]:
    """Return the momentum by unit velocity, about the point of reference, by column."""
    result: dict[int, Spatial] = {}
    for own, moments in zip(tree.placed, tree.total_moments()):
        result.update((column, moments.times(screw)) for column, screw in zip(own.columns, own.screws))
    return [result[column] for column in range(tree.size)]


def _by_rows(columns: Sequence[Sequence[Scalar]]) -> Rows:
    return [list(row) for row in zip(*columns)]


def _mass(tree: Composite) -> float:
    return total_mass(body.mass for body in tree.constants)


def _com(tree: Composite) -> Vector:
    """Return the centre of mass, seen from the point of reference."""
    roots = (m for own, m in zip(tree.placed, tree.total_moments()) if own.parent < 0)
    x, y, z = zip(*(moments.first for moments in roots))
    return scale(1.0 / _mass(tree), (sum(x), sum(y), sum(z)))


def _about(com: Vector, momentum: Spatial) -> list[Scalar]:
    return [*subtract(momentum[0], cross(com, momentum[1])), *momentum[1]]
