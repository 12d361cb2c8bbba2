"""Matrices of robots with loops in their coordinates, over abstract scalars.

With `z' = F y'` and the matrices of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, in
Taylor coefficients. Coordinates are in the order of the closure: the body-fixed twist of a prescribed base,
joints, and the rows of a platform, which are the body-fixed twist of one that is the base.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Stack
from hodyn_ros.engine.loops.loop_motion import ClosingMotion, Judged, LoopCode, Velocity
from hodyn_ros.engine.matrix_kernels import (
    CORIOLIS_MATRIX,
    DYNAMIC_MATRICES,
    GRAVITY,
    MASS_MATRIX,
    Column,
    Law,
    Sums,
)
from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.recursions.regressor import PER_BODY
from hodyn_ros.engine.series.block_system import SeriesSystem
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase, convolve_vectors
from hodyn_ros.engine.series.series import Series, by_order, coefficient, of_orders
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, plus, scaled
from hodyn_ros.engine.series.validity import overflow
from hodyn_ros.engine.series.vectors import ZERO, Scalar, cross, dot, subtract, taylor
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


def distribution(
    code: LoopCode, motions: Sequence[ClosingMotion], base: FloatingBase | None, terms: int
) -> list[Column]:
    """Return F by columns, with as many coefficients; `base` and `motions` reach one less."""
    closure = code.closure
    of_base = []
    if base is not None:
        of_base = [_base_column(code, motions, base, twist, terms) for twist in closure.directions.T]
    columns = {place: (column, ratio) for column, (place, ratio) in code.known.items()}
    joints = []
    for place in range(len(closure.joints)):
        column, ratio = columns[place]
        velocity = Velocity(code, motions)
        for k in range(terms):
            velocity.extend({} if k else {column: 1.0 / ratio})
        joints.append(_column(code, velocity))
    if closure.base_prescribed:
        return [*of_base, *joints]
    rows = [] if closure.platform is None or of_base else list(range(len(closure.platform.rows)))
    of_platform = []
    for row in rows:
        velocity = Velocity(code, motions)
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
    code: LoopCode, motions: Sequence[ClosingMotion], base: FloatingBase, twist: Array, terms: int
) -> Column:
    velocity = Velocity(code, motions)
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


class Moved(NamedTuple):
    """What moves, by Taylor coefficients, from closed positions."""

    leader: Sequence[Stack]  # pose and spatial twists of platform or base, derivatives
    leading: list[Scalar]
    rates: list[list[Scalar]]  # velocities of all joints
    motions: list[ClosingMotion]
    base: FloatingBase | None
    inputs: Sequence[Stack] = ()  # the remaining arguments


class ProductCode(LoopCode):
    """What follows from the motion of the coordinates, and that alone, by order up to `order`.

    `further`: as many derivatives more are needed of the velocities. `size`: rows and columns of one order,
    whose one row is a `vector`; not `stacked`, of all orders. `function(q (order + further + 1, k), [pose (4,
    4), twists (order + further, 6),] memory)` returns the rows of one order after the other, and a last row.
    """

    limit = STRAIGHT_LINE_LIMIT
    judged: Judged | None = None

    regroups = False  # or the Coriolis matrix is another one
    further = 0
    vector = False
    stacked = True
    size: tuple[int, int]

    def __init__(self, closure: Closure, chosen: Array, order: int, *, from_ground: bool = False) -> None:
        self.terms = order + 1
        self.count = order + self.further  # of velocities that are needed
        super().__init__(closure, chosen, self.count - 2, from_ground=from_ground)
        rows, columns = self.size
        self.result = (self.terms if self.stacked else 1) * rows + 1, columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one order."""
        return self.size[1:] if self.vector else self.size

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the rows of one order after the other, and what is wrong, from closed positions."""
        leader, (*rest, (memory,), (state,)) = self.parted(stacks)
        leading = self.leading_positions(q[0], state)
        motions, rates = self.move(q, leading, leader)
        base = None
        if self.closure.tree.floating_base:
            base = FloatingBase(leader[0], self.closure.tree.gravity.tolist(), "spatial")
            for k in range(self.count):
                base.extend(taylor(leader[1][k], k))
        rows, singularity = self.rows(Moved(leader, leading, rates, motions, base, rest))
        singularity = singularity + sum(map(self.singularity_of, motions))
        defect = self.wrong(leading, state[-1], memory, motions, leader, singularity) + overflow(rows)
        return [*rows, [defect, *[0.0] * (self.size[1] - 1)]]

    @abstractmethod
    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other, and how near drives are to failing, or zero."""


class LoopSums(Sums):
    """Those of a robot with loops, with the columns of F in `z' = F y'`."""

    def __init__(self, code: SumsCode, moved: Moved) -> None:
        self.model, self.order, self.inputs = code.closure.tree, code.terms - 1, moved.inputs
        self.tree = tree_at(code, code.bodies, moved.leading, moved.rates, moved.base, code.terms)
        self.singularity: Scalar = 0.0
        self._code, self._moved = code, moved

    @cached_property
    def _distribution(self) -> list[Column]:
        code, moved = self._code, self._moved
        return distribution(code, moved.motions, moved.base, code.terms + code.law.bends)

    @cached_property
    def columns(self) -> list[Column]:
        """Those of F."""
        return [[part_of(x, 0, self._code.terms) for x in column] for column in self._distribution]

    @cached_property
    def rates(self) -> list[Column]:
        """Those of F'."""
        return [[part_of(x, 1, self._code.terms) for x in column] for column in self._distribution]

    @property
    def accelerations(self) -> list[Series]:
        """The rates of the velocities of the tree."""
        moved, terms = self._moved, range(self._code.terms)
        series = list(moved.rates)
        if moved.base is not None:
            twists = [[*w, *v] for w, v in zip(moved.base.angular, moved.base.velocity)]
            series = [*map(list, zip(*twists)), *series]
        return [Series([(k + 1.0) * one[k + 1] for k in terms]) for one in series]

    @property
    def reference(self) -> tuple[Column, Column]:
        """The velocities of the tree that follow from a reference of the coordinates, and their rates."""
        (speeds,) = of_orders(self.inputs[0], 1)
        of_tree = [dot(entries, speeds) for entries in zip(*self._distribution)]
        velocities, rates = ([part_of(x, i, self._code.terms) for x in of_tree] for i in range(2))
        return velocities, rates

    def of_efforts(self, rows: Rows) -> Rows:
        """Return what efforts are linear in, as `F^T S u = F^T Q`; redundant ones are those of least norm."""
        code, closure, F = self._code, self._code.closure, self.columns
        terms = range(code.terms)
        drives = [[column[closure.first + joint] for column in F] for joint in closure.driven]
        by_joint = np.linalg.norm(code.coupling_matrix * code.scale, axis=1)  # what they are measured in
        sizes = by_joint[list(closure.driven)].tolist()
        turns = closure.directions[:3].any(axis=0)  # of base or platform
        weights = np.where(turns, 1.0, closure.size).tolist() if closure.leader is not None else []
        of_joints = by_joint[list(closure.joints)].tolist()
        if closure.base_prescribed:
            drives = [*([column[i] for column in F] for i in range(6)), *drives]
            sizes, weights = [*weights, *sizes], [*weights, *of_joints]
        else:
            weights = [*of_joints, *weights]
        if len(sizes) > len(weights):  # all weigh the same
            sizes = [max(sizes)] * len(sizes)
        balance = [
            [drive[h] * (weight / size) for drive, size in zip(drives, sizes)]
            for h, weight in enumerate(weights)
        ]
        system = SeriesSystem(balance, code.terms)
        columns = []
        for forces in zip(*rows):
            acting = [weight * dot(column, forces) for weight, column in zip(weights, F)]
            result = system.solve([[coefficient(x, k) for x in acting] for k in terms])
            columns.append([Series([result[k][i] * (1.0 / s) for k in terms]) for i, s in enumerate(sizes)])
        self.singularity = system.singularity
        return [list(row) for row in zip(*columns)]


def sized(closure: Closure, shape: Sequence[str]) -> tuple[bool, tuple[int, int]]:
    """Return whether one order is a vector, and its rows and columns, from its shape in symbols.

    "m": coordinates, "efforts", "10 bodies": dynamic parameters; what else is in it is a number.
    """
    m, parameters = closure.n_coordinates, PER_BODY * closure.tree.n_bodies
    symbols = {"m": m, "efforts": closure.n_efforts, "10 bodies": parameters}
    symbols["2 m + 1"] = 2 * m + 1  # M, C and g below each other; also by parameter
    symbols["10 bodies (2 m + 1)"] = parameters * (2 * m + 1)
    *rows, columns = (symbols[one] if one in symbols else int(one) for one in shape)
    return not rows, (rows[0] if rows else 1, columns)


class SumsCode(ProductCode):
    """What a law finds, in the coordinates; `shape` of one order as in the table of operations."""

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        law: Law,
        shape: Sequence[str],
    ) -> None:
        self.law, self.further = law, law.further
        self.vector, self.size = sized(closure, shape)
        # what else the laws are of has numbers of each body, or tells where all mass is, that of feet too
        from_ground = law in (MASS_MATRIX, CORIOLIS_MATRIX, GRAVITY, DYNAMIC_MATRICES)
        super().__init__(closure, chosen, order, from_ground=from_ground)
        self.is_held = "efforts" in shape
        self.stacks = [("the reference", (order + 2, closure.n_coordinates))] if law.referred else []

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other, and how near the drives are to failing."""
        sums = LoopSums(self, moved)
        return by_order(self.law.rows(sums), self.terms - 1), sums.singularity


def part_of(value: Series | float, derivative: int, terms: int) -> Series | float:
    """Return a series, or its time derivative, with as many coefficients."""
    if not isinstance(value, Series):
        return 0.0 if derivative else value
    if not derivative:
        return Series(value.coefficients[:terms])
    return Series([(k + 1.0) * value.coefficients[k + 1] for k in range(terms)])
