"""What is traced of matrices of dynamics: mass and Coriolis matrix, gravity, partial derivatives of torques.

Of a tree and an order: `q (order + 1, n), ... -> rows`, one order after the other. With a floating base its
pose (4, 4) and body-fixed twists (one less than rows of q) follow q, and its six columns stand first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.kernel_spec import Loads, tree_arguments
from hodyn_ros.engine.recursions import matrices
from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.recursions.kinematics import frame_jacobian
from hodyn_ros.engine.recursions.partials import Load, add_load, applied_loads, partial_derivatives
from hodyn_ros.engine.recursions.regressor import parameter_derivatives, regressor, slotine_li_regressor
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.series import Series, by_order, coefficient, derivative, of_orders
from hodyn_ros.engine.series.spatial import Spatial
from hodyn_ros.engine.series.vectors import dot, halves, taylor
from hodyn_ros.formulations.state_derivatives import assemble
from hodyn_ros.lie.representations import Representation
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel

Column = Sequence[Series | Any]  # velocities of a tree by one coordinate


class Sums:
    """What laws are of: the sums over a tree that moves, and how its velocities follow the coordinates."""

    inputs: Sequence[Stack]  # what is given besides the motion

    def __init__(self, model: TreeModel, order: int, q: Stack, inputs: Sequence[Stack]) -> None:
        base, self.inputs = _without_loads(model, inputs)
        self.model, self.order, self._motion = model, order, (q, base)
        self.tree = _composite(model, order, q, base, regroup=False)

    @property
    def columns(self) -> Sequence[Column] | None:
        """By coordinate how the velocities of the tree follow; None where these are the coordinates."""
        return None

    @property
    def rates(self) -> Sequence[Column] | None:
        """How the columns change."""
        return None

    @property
    def accelerations(self) -> list[Series]:
        """The rates of the velocities of the tree."""
        return _rates(self.order, 2, *self._motion)

    @property
    def reference(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """The velocities of the tree that are given as a reference, and their rates."""
        speeds, rates = (_series(self.inputs[0], shift, self.order, self.tree.size) for shift in (0, 1))
        return speeds, rates

    def of_velocities(self, rows: Rows) -> Rows:
        """Return what takes rates of the coordinates to something by what takes those of the tree to it."""
        return rows if self.columns is None else times_columns(rows, self.columns)

    def of_forces(self, rows: Rows) -> Rows:
        """Return forces on the coordinates, several in a row, by those on the tree."""
        if self.columns is None:
            return rows
        return [[dot(column, forces) for forces in zip(*rows)] for column in self.columns]

    def congruent(self, matrix: Rows) -> Rows:
        """Return a symmetric matrix by that of the tree."""
        return matrix if self.columns is None else congruent(matrix, self.columns)

    def coriolis_matrix(self) -> Rows:
        """Return `F^T (C F + M F')`, with F the columns."""
        turned = self.of_velocities(matrices.coriolis_matrix(self.tree))
        if self.rates is None:
            return turned
        bent = times_columns(matrices.mass_matrix(self.tree), self.rates)
        return self.of_forces([[a + b for a, b in zip(*rows)] for rows in zip(turned, bent)])

    def of_efforts(self, rows: Rows) -> Rows:
        """Return what efforts are linear in by that of the efforts of the tree."""
        return rows


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


@dataclass(frozen=True)
class Law:
    """What follows from the sums over a tree: `rows`, from so many derivatives `further` than are asked for.

    `bends`: whether it needs the rates of how velocities follow coordinates; `referred`: whether a reference
    motion (order + 2, m) is given, body-fixed velocities of a floating base, then those of the joints.
    """

    rows: Callable[[Sums], Rows]
    further: int = 0
    bends: bool = False
    referred: bool = False

    def of_tree(self, model: TreeModel, order: int) -> Traceable:
        """Trace `q (order + 1 + further, n), ... -> rows`, one order after the other."""

        def trace(q: Stack, *inputs: Stack) -> Stack:
            return by_order(self.rows(Sums(model, order, q, inputs)), order)

        size = model.n_joints + (6 if model.floating_base else 0)
        reference = [("the reference", (order + 2, size))] if self.referred else []
        return trace, [*tree_arguments(model, order + self.further + 1), *reference]


@dataclass(frozen=True)
class JacobianLaw:
    """What follows from the Jacobian of a frame alone: `rows` from those of J (6, m) and how many terms.

    Entries are series with as many terms, or numbers that do not change.
    """

    rows: Callable[[Rows, int], Rows]

    def of_tree(
        self, model: TreeModel, order: int, frame: Frame, representation: Representation
    ) -> Traceable:
        """Trace `q (order + 1, n), ... -> rows`, one order after the other; arguments as `frame_motion`."""
        trace, arguments = frame_jacobian(model, order, frame, representation)

        def of_jacobian(*stacks: Stack) -> Stack:
            return by_order(self.rows(of_orders(trace(*stacks), 6), order + 1), order)

        return of_jacobian, arguments


def _gravity(sums: Sums) -> Rows:
    """Return the forces that hold the coordinates against gravity, in one row."""
    return list(map(list, zip(*sums.of_forces([[force] for force in matrices.gravity_forces(sums.tree)]))))


def _dynamic_matrices(sums: Sums) -> Rows:
    """Return the rows of M, of C and of g; `M' = C + C^T` costs less than the derivatives of M."""
    mass, coriolis = sums.congruent(matrices.mass_matrix(sums.tree)), sums.coriolis_matrix()
    whole = [[_from_rate(x, a + b) for x, a, b in zip(*rows)] for rows in zip(mass, coriolis, zip(*coriolis))]
    return [*whole, *coriolis, *_gravity(sums)]


def _from_rate(start: Series | Any, rate: Series | Any) -> Series | Any:
    """Return the series with a rate, that begins as another one does."""
    first = coefficient(start, 0)
    if not isinstance(rate, Series):  # zero
        return first
    return Series([first, *(x * (1.0 / k) for k, x in enumerate(rate.coefficients[:-1], 1))])


def _regressor(sums: Sums) -> Rows:
    """Return Y (efforts, 10 bodies)."""
    return sums.of_efforts(regressor(sums.tree, sums.accelerations, screws_of(sums.model)))


def _slotine_li(sums: Sums) -> Rows:
    """Return Y (m, 10 bodies) of the reference."""
    return sums.of_forces(slotine_li_regressor(sums.tree, *sums.reference, screws_of(sums.model)))


def _by_parameter(sums: Sums) -> Rows:
    """Return the derivatives by parameter of M (10 bodies, m, m), of C, and of g (10 bodies, m)."""
    coordinates = None if sums.columns is None else list(zip(sums.columns, sums.rates or ()))
    mass, coriolis, gravity = parameter_derivatives(sums.tree, screws_of(sums.model), coordinates)
    return [row for matrix in (*mass, *coriolis, gravity) for row in matrix]


MASS_MATRIX = Law(lambda sums: sums.congruent(matrices.mass_matrix(sums.tree)))
CORIOLIS_MATRIX = Law(lambda sums: sums.coriolis_matrix(), 1, bends=True)
GRAVITY = Law(_gravity)
DYNAMIC_MATRICES = Law(_dynamic_matrices, 1, bends=True)
COM_JACOBIAN = Law(lambda sums: sums.of_velocities(matrices.com_jacobian(sums.tree)))
MOMENTUM = Law(lambda sums: [matrices.momentum(sums.tree)], 1)
MOMENTUM_MATRIX = Law(lambda sums: sums.of_velocities(matrices.momentum_matrix(sums.tree)))
REGRESSOR = Law(_regressor, 2)
SLOTINE_LI = Law(_slotine_li, 1, bends=True, referred=True)
BY_PARAMETER = Law(_by_parameter, 1, bends=True)
JACOBIAN = JacobianLaw(lambda jacobian, terms: jacobian)


def inverse_dynamics_derivatives(model: TreeModel, order: int, loads: Loads = ()) -> Traceable:
    """Trace `q (order + 3, n), ... -> rows of dQ^(r)/dq^(k)`: k within r, both from zero.

    With a floating base its pose and body-fixed twists follow, and k = 0 means a small body-fixed
    displacement of it. Applied wrenches come last, (order + 1, 6) each.
    """

    def trace(q: Stack, *inputs: Stack) -> Stack:
        result = partials_along(model, order, loads, q, inputs)
        rows: Stack = result.reshape(-1, result.shape[-1]).tolist()
        return rows

    return trace, tree_arguments(model, order + 3, loads)


def partials_along(
    model: TreeModel, order: int, loads: Loads, q: Stack, inputs: Sequence[Stack]
) -> NDArray[Any]:
    """Return dQ^(r)/dq^(k) (order + 1, order + 3, m, m), arguments as of `inverse_dynamics_derivatives`."""
    base, wrenches = _without_loads(model, inputs)
    tree = _composite(model, order, q, base, regroup=True)
    result = partial_derivatives(
        tree, _rates(order, 2, q, base), _applied(tree, order, base, loads, wrenches)
    )
    parts = result.positions, result.velocities, result.accelerations
    series = [[[[derivative(x, k) for x in row] for row in part] for part in parts] for k in range(order + 1)]
    brackets = []
    for twist in base[1][:order] if base else ():
        brackets.append(np.full((tree.size, tree.size), 0.0, dtype=object))
        brackets[-1][:6, :6] = bracket_rows(twist)
    return assemble(np.array(series, dtype=object), brackets)


def bracket_rows(twist: Sequence[Any]) -> Stack:
    """Return the matrix of `eta -> [w, eta]` of a twist (omega; v)."""
    spins = [[[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]] for x, y, z in (twist[:3], twist[3:])]
    return [*([*row, 0.0, 0.0, 0.0] for row in spins[0]), *([*a, *b] for a, b in zip(spins[1], spins[0]))]


def screws_of(model: TreeModel) -> list[list[Spatial]]:
    """Return the screws of each body's own joint in the frame that the user gave to it."""
    return [[halves(x) for x in subspace.T.tolist()] for subspace in JointTree.of(model).subspaces]


def load_series(model: TreeModel, order: int, loads: Loads) -> Traceable:
    """Trace what applied wrenches add to dQ/dq, arguments as of `inverse_dynamics_derivatives`."""
    size = model.n_joints + (6 if model.floating_base else 0)

    def trace(q: Stack, *inputs: Stack) -> Stack:
        base, wrenches = _without_loads(model, inputs)
        tree = _composite(model, order, q, base, regroup=False)
        total: Stack = [[0.0] * size for _ in range(size)]
        for load in _applied(tree, order, base, loads, wrenches):
            add_load(tree, load, total)
        return by_order(total, order)

    return trace, tree_arguments(model, order + 3, loads)


def _applied(
    tree: Composite, order: int, base: Sequence[Stack], loads: Loads, wrenches: Sequence[Stack]
) -> list[Load]:
    center = [row[3] for row in base[0][:3]] if base else None
    return applied_loads(tree, loads, [_series(values, 0, order, 6) for values in wrenches], center)


def _without_loads(model: TreeModel, inputs: Sequence[Stack]) -> tuple[list[Stack], list[Stack]]:
    """Split what follows the motion of the joints into that of the base, and wrenches."""
    count = 2 if model.floating_base else 0
    return list(inputs[:count]), list(inputs[count:])


def _composite(model: TreeModel, order: int, q: Stack, base: Sequence[Stack], *, regroup: bool) -> Composite:
    bodies = canonical_bodies(model, regroup=regroup)
    gravity = model.gravity.tolist()
    velocities = _rates(order, 1, q, base)
    return Composite(bodies, gravity, q[0], velocities, base[0] if base else None)


def _rates(order: int, derivative: int, q: Stack, of_base: Sequence[Stack]) -> list[Series]:
    """Return the series of q' or q'', those of the base before those of the joints.

    Where the last coefficient is not given, nothing depends on it, and it counts as zero.
    """
    base = _series(of_base[1], derivative - 1, order, 6) if of_base else []
    return [*base, *_series(q, derivative, order, len(q[0]))]


def _series(stack: Stack, first: int, order: int, columns: int) -> list[Series]:
    """Return the series of the columns of a stack of derivatives, from derivative `first` on."""
    terms = [taylor(row, k) for k, row in enumerate(stack[first : first + order + 1])]
    terms += [[0.0] * columns] * (order + 1 - len(terms))
    return [Series(column) for column in map(list, zip(*terms))]
