"""Matrices of robots with loops in their coordinates, over abstract scalars.

With `z' = F y'` and the matrices of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, in
Taylor coefficients. Coordinates are in the order of the closure: the body-fixed twist of a prescribed base,
joints, and the rows of a platform, which are the body-fixed twist of one that is the base.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from hodyn_ros.codegen.kernel import Shape, Stack
from hodyn_ros.engine.loops.loop_motion import LoopCode, Velocity
from hodyn_ros.engine.loops.loop_series import NOTHING, ClusterMotion
from hodyn_ros.engine.recursions.composite import Composite, Spatial, plus, scaled
from hodyn_ros.engine.recursions.matrices import coriolis_matrix, gravity_forces, mass_matrix
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.engine.series.floating_base import FloatingBase, convolve_vectors
from hodyn_ros.engine.series.series import Series, by_order
from hodyn_ros.engine.series.validity import overflow
from hodyn_ros.engine.series.vectors import ZERO, Scalar, cross, dot, subtract, taylor
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

Matrix = Literal["mass_matrix", "coriolis_matrix", "gravity_torque"]
MATRICES: tuple[Matrix, ...] = get_args(Matrix)
Column = list[Series | float]  # of F: of a floating base's body-fixed twist, then of all joints


def distribution(
    code: LoopCode,
    motions: Sequence[ClusterMotion],
    systems: Sequence[BlockSystem],
    base: FloatingBase | None,
    terms: int,
) -> list[Column]:
    """Return F by columns, with as many coefficients; `base` and `motions` reach one less."""
    closure = code.closure
    of_base = []
    if base is not None:
        of_base = [_base_column(code, motions, systems, base, twist, terms) for twist in closure.directions.T]
    columns = {place: (column, ratio) for column, (place, ratio) in code.known.items()}
    joints = []
    for place in range(len(closure.joints)):
        column, ratio = columns[place]
        velocity = Velocity(code, motions, systems)
        for k in range(terms):
            velocity.extend({} if k else {column: 1.0 / ratio})
        joints.append(_column(code, velocity))
    if closure.base_given:
        return [*of_base, *joints]
    rows = [] if closure.platform is None or of_base else list(range(len(closure.platform.rows)))
    of_platform = []
    for row in rows:
        velocity = Velocity(code, motions, systems)
        for k in range(terms):
            velocity.extend({}, [] if k else [float(i == row) for i in rows])
        of_platform.append(_column(code, velocity))
    return [*joints, *of_platform, *of_base]


def base_velocity(code: LoopCode, base: FloatingBase, i: int, k: int) -> Spatial:
    """Return coefficient k of a body-fixed unit twist of the base, seen from the point of reference."""
    axes = [(m[0][i % 3], m[1][i % 3], m[2][i % 3]) for m in base.rotation[: k + 1]]
    if i >= 3:
        return ZERO, axes[k]
    levers = [subtract(p, code.center.tolist()) if not j else p for j, p in enumerate(base.position[: k + 1])]
    return axes[k], convolve_vectors(cross, levers, axes, k)


def _base_column(
    code: LoopCode,
    motions: Sequence[ClusterMotion],
    systems: Sequence[BlockSystem],
    base: FloatingBase,
    twist: Array,
    terms: int,
) -> Column:
    velocity = Velocity(code, motions, systems)
    for k in range(terms):
        moved = NOTHING
        for i in np.flatnonzero(twist):
            moved = plus(moved, scaled(float(twist[i]), base_velocity(code, base, int(i), k)))
        velocity.extend({}, (), moved)
    return [*twist.tolist(), *_column(code, velocity)[6:]]


def _column(code: LoopCode, velocity: Velocity) -> Column:
    first: Column = [0.0] * code.closure.first
    joints = [Series(code.joint_series(j, velocity.leading)) for j in range(len(code.coupling_matrix))]
    return [*first, *(0.0 if _vanishes(series) else series for series in joints)]


def _vanishes(series: Series) -> bool:
    return all(isinstance(x, float) and x == 0.0 for x in series.coefficients)


def tree_at(
    code: LoopCode,
    bodies: Sequence[CanonicalBody],
    leading: Sequence[Scalar],
    rates: Sequence[Sequence[Scalar]],
    base: FloatingBase | None,
    terms: int,
) -> Composite:
    """Return the sums of the tree, with as many coefficients; missing velocities end with zero."""

    def series(coefficients: Sequence[Scalar]) -> Series:
        return Series([*coefficients, *[0.0] * terms][:terms])

    velocities = [series(rate) for rate in rates]
    rotation = None
    if base is not None:
        twists = [[*w, *v] for w, v in zip(base.angular, base.velocity)]
        velocities = [*(series([twist[i] for twist in twists]) for i in range(6)), *velocities]
        rotation = base.rotation[0]
    gravity = code.closure.tree.gravity.tolist()
    return Composite(bodies, gravity, code.positions(leading), velocities, rotation)


def congruent(matrix: Stack, columns: Sequence[Column]) -> Stack:
    """Return `F^T A F` of a symmetric matrix."""
    n = len(columns)
    carried = times_columns(matrix, columns)
    result: Stack = [[0.0] * n for _ in range(n)]
    for i, column in enumerate(columns):
        for j in range(i, n):
            result[i][j] = result[j][i] = dot(column, [row[j] for row in carried])
    return result


def times_columns(matrix: Stack, columns: Sequence[Column]) -> Stack:
    """Return `A F`."""
    return [[dot(row, column) for column in columns] for row in matrix]


class Moved(NamedTuple):
    """What moves, by Taylor coefficients, from closed positions."""

    leader: Sequence[Stack]  # pose and spatial twists of platform or base, derivatives
    leading: list[Scalar]
    rates: list[list[Scalar]]  # velocities of all joints
    motions: list[ClusterMotion]
    systems: list[BlockSystem]
    base: FloatingBase | None
    inputs: Sequence[Stack] = ()  # the remaining arguments


class ProductCode(LoopCode):
    """What follows from the motion of the coordinates, and that alone, by order up to `order`.

    `further`: as many derivatives more are needed of the velocities. `shape`: rows and columns of one order,
    whose one row is a `vector`; not `stacked`, of all orders.
    """

    further = 0
    vector = False
    stacked = True
    shape: tuple[int, int]
    inputs: Sequence[tuple[str, Shape]] = ()  # arguments besides the motion

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        self.terms = order + 1
        self.count = order + self.further  # of velocities that are needed
        super().__init__(closure, chosen, self.count - 2, ())

    def matrices(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the rows of one order after the other, and what is wrong, from closed positions."""
        *leader, (memory,), (state,) = stacks
        leader, rest = leader[: self.closure.n_given], leader[self.closure.n_given :]
        leading = self.leading_positions(q[0], state)
        motions, systems, rates = self.move(q, leading, leader)
        base = None
        if self.closure.tree.floating_base:
            base = FloatingBase(leader[0], self.closure.tree.gravity.tolist(), "spatial")
            for k in range(self.count):
                base.extend(taylor(leader[1][k], k))
        rows, singularity = self.rows(Moved(leader, leading, rates, motions, systems, base, rest))
        singularity = singularity + sum(system.singularity for system in systems)
        defect = self.wrong(leading, state[-1], memory, motions, leader, singularity) + overflow(rows)
        return [*rows, [defect, *[0.0] * (self.shape[1] - 1)]]

    @abstractmethod
    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other, and how near drives are to failing, or zero."""

    def distribution(self, moved: Moved, terms: int) -> list[Column]:
        """Return F by columns, with as many coefficients."""
        return distribution(self, moved.motions, moved.systems, moved.base, terms)

    def tree(self, moved: Moved) -> Composite:
        """Return the sums of the tree; all mass stays on its body, or the Coriolis matrix is another one."""
        bodies = canonical_bodies(self.closure.tree, regroup=False)
        return tree_at(self, bodies, moved.leading, moved.rates, moved.base, self.terms)

    def by_order(self, result: Sequence[Sequence[Series | float]]) -> Stack:
        """Return the derivatives of a matrix, one order after the other."""
        return by_order(result, self.terms - 1)


class MatrixCode(ProductCode):
    """A matrix in the coordinates, and the gravity of them."""

    def __init__(self, closure: Closure, chosen: Array, order: int, part: Matrix) -> None:
        self.part, self.further = part, int(part == "coriolis_matrix")
        size = closure.n_coordinates
        self.vector = part == "gravity_torque"
        self.shape = (1 if self.vector else size), size
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other."""
        F = self.distribution(moved, self.count + 1)
        return self.by_order(self._part(self.tree(moved), F)), 0.0

    def _part(self, tree: Composite, F: Sequence[Column]) -> Stack:
        columns = [[part_of(x, 0, self.terms) for x in column] for column in F]
        if self.part == "gravity_torque":
            held = gravity_forces(tree)
            return [[dot(column, held) for column in columns]]
        mass = mass_matrix(tree)
        if self.part == "mass_matrix":
            return congruent(mass, columns)
        rates = [[part_of(x, 1, self.terms) for x in column] for column in F]
        turned = times_columns(coriolis_matrix(tree), columns)
        bent = times_columns(mass, rates)
        total = [[a + b for a, b in zip(*rows)] for rows in zip(turned, bent)]
        return [[dot(column, [row[j] for row in total]) for j in range(len(F))] for column in columns]


def part_of(value: Series | float, derivative: int, terms: int) -> Series | float:
    """Return a series, or its time derivative, with as many coefficients."""
    if not isinstance(value, Series):
        return 0.0 if derivative else value
    if not derivative:
        return Series(value.coefficients[:terms])
    return Series([(k + 1.0) * value.coefficients[k + 1] for k in range(terms)])
