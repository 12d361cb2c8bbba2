"""Partial derivatives of forward and hybrid dynamics, of any order: how they answer small changes.

Named as future work by Ali et al.: where a motion changes by displacements eta and velocities dw, torques
change by `dQ = M dw' + P_v dw + P_q eta`, with the partial derivatives of inverse dynamics, and
`eta' = dw - [w, eta]`. All are series in time; coefficient by coefficient, with one factorisation of M for
all orders, what is not given (accelerations, torques of joints whose motion is given) follows from what is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.kernel_spec import KernelSpec, hybrid_arguments
from hodyn_ros.engine.kernels import solved_motion
from hodyn_ros.engine.matrix_kernels import bracket_rows
from hodyn_ros.engine.recursions.articulated import ArticulatedRecursion, factorise, solve
from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.recursions.partials import applied_loads, partial_derivatives
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.series import Series, by_order, coefficient
from hodyn_ros.engine.series.vectors import Scalar
from hodyn_ros.model.tree import TreeModel

Block = Rows | None  # by rows; None is zero


def responses(
    series: Sequence[Sequence[Rows]], brackets: Sequence[Rows], prescribed: Sequence[int]
) -> list[list[Rows]]:
    """Return `result[r][k]` (m, m): how derivative r of what is found changes with what is given.

    `series`: by Taylor coefficient the matrices P_q, P_v and M; `brackets`: those of `eta -> [w, eta]` of the
    first velocities, those of a floating base. k = 0 are displacements, k = 1 velocities, then derivative
    k - 2 of what is given: motions of the velocities `prescribed`, forces of the others.
    """
    order, m = len(series) - 1, len(series[0][0])
    free = [i for i in range(m) if i not in prescribed]
    factor = factorise([[series[0][2][i][j] for j in free] for i in free])
    unit = [[float(i == j) for j in range(m)] for i in range(m)]
    result: list[list[Rows]] = [[] for _ in range(order + 1)]
    for k in range(order + 3):
        shifts: list[Block] = [unit if k == 0 else None]
        speeds: list[Block] = [unit if k == 1 else None]
        for r in range(order + 1):
            shifts.append(_next_shift(shifts, speeds, brackets, r))
            if r < k - 2:
                speeds.append(None)
                result[r].append([[0.0] * m for _ in range(m)])
                continue
            known = _known(series, shifts, speeds, r, m)
            imposed = unit if r == k - 2 else None
            scaling = 1.0 / factorial(r)
            rates: Rows = [[0.0] * m for _ in range(m)]
            for i in prescribed if imposed is not None else ():
                rates[i][i] = scaling
            right = [[-known[i][c] for c in range(m)] for i in free]
            for row, i in zip(right, free):
                for c in range(m):
                    if imposed is not None and i == c:
                        row[c] = row[c] + scaling
                    for j in prescribed:
                        row[c] = row[c] - series[0][2][i][j] * rates[j][c]
            for c in range(m):
                for i, value in zip(free, solve(factor, [row[c] for row in right])):
                    rates[i][c] = value
            speeds.append([[x * (1.0 / (r + 1)) for x in row] for row in rates])
            answer = [list(row) for row in rates]
            for i in prescribed:
                answer[i] = [
                    known[i][c] + sum(series[0][2][i][j] * rates[j][c] for j in range(m)) for c in range(m)
                ]
            result[r].append([[float(factorial(r)) * x for x in row] for row in answer])
    return result


def _next_shift(shifts: Sequence[Block], speeds: Sequence[Block], brackets: Sequence[Rows], k: int) -> Block:
    """Return coefficient k + 1 of the displacements: `eta' = dw - [w, eta]`."""
    total = speeds[k]
    for i, bracket in enumerate(brackets[: k + 1]):
        shift = shifts[k - i]
        if shift is None:
            continue
        m = len(shift)
        rows: Rows = [[0.0] * m for _ in range(m)] if total is None else [list(row) for row in total]
        for a, row in enumerate(bracket):
            for c in range(m):
                rows[a][c] = rows[a][c] - _product(row, shift, c)
        total = rows
    return None if total is None else [[x * (1.0 / (k + 1)) for x in row] for row in total]


def _known(
    series: Sequence[Sequence[Rows]], shifts: Sequence[Block], speeds: Sequence[Block], r: int, m: int
) -> Rows:
    """Return coefficient r of the change of forces, without the change of accelerations that is sought."""
    total: Rows = [[0.0] * m for _ in range(m)]
    for i in range(r + 1):
        by_position, by_velocity, mass = series[i]
        factors: list[tuple[Rows, Block, float]] = [
            (by_position, shifts[r - i], 1.0),
            (by_velocity, speeds[r - i], 1.0),
        ]
        if i:
            factors.append((mass, speeds[r - i + 1], float(r - i + 1)))
        for matrix, change, scaling in factors:
            if change is None:
                continue
            for a in range(m):
                for c in range(m):
                    total[a][c] = total[a][c] + scaling * _product(matrix[a], change, c)
    return total


def _product(row: Sequence[Scalar], matrix: Rows, column: int) -> Scalar:
    """Return a row times a column, leaving out what is zero for sure."""
    total: Scalar = 0.0
    for x, other in zip(row, matrix):
        y = other[column]
        if not (isinstance(y, float) and y == 0.0):
            total = total + x * y
    return total


@dataclass(frozen=True)
class Responses:
    """What hybrid dynamics finds at a state, and how it changes with what it is given.

    `results[r][k]` (m, m): the derivatives of the results; `motion[r][k]` (m, m): those of derivative r of
    all rates of velocities, which for `prescribed` ones are given. `accelerations` (order + 1, n) are those
    of the joints.
    """

    setting: KernelSpec
    recursion: ArticulatedRecursion
    accelerations: Stack
    results: list[list[Rows]]
    prescribed: Sequence[int]

    @property
    def motion(self) -> list[list[Rows]]:
        """How the rates of velocities change."""
        return [
            [self._of_motion(r, k, rows) for k, rows in enumerate(row)] for r, row in enumerate(self.results)
        ]

    def _of_motion(self, r: int, k: int, rows: Rows) -> Rows:
        moved = [list(row) for row in rows]
        for i in self.prescribed:
            moved[i] = [float(i == j and k == r + 2) for j in range(len(rows))]
        return moved


def traced_responses(
    model: TreeModel, order: int, setting: KernelSpec | None, state: Stack, inputs: Stack, *stacks: Stack
) -> Responses:
    """Solve hybrid dynamics and differentiate it; arguments as of `hybrid_dynamics_derivatives`."""
    setting = setting or KernelSpec.of(model)
    first = 6 if setting.base else 0
    prescribed = [
        *(range(first) if setting.base_prescribed else ()),
        *(first + j for j in setting.prescribed),
    ]
    recursion, result = solved_motion(model, order, setting, state, inputs, stacks)
    velocities, accelerations = _motion(recursion, order, state, inputs, result, setting)
    pose = stacks[0] if setting.base else None
    bodies = canonical_bodies(model)
    tree = Composite(bodies, model.gravity.tolist(), state[0], velocities, pose)
    rest = stacks[3 if setting.base else 0 :]
    loads = list(setting.loads)
    wrenches = [_wrench_series(values, order) for values in rest]
    if setting.base and not setting.base_prescribed:  # it stays as it is where the base moves
        loads.append((0, "spatial"))
        wrenches.append(_wrench_series(stacks[2], order))
    center = None if pose is None else [row[3] for row in pose[:3]]
    applied = applied_loads(tree, loads, wrenches, center)
    parts = partial_derivatives(tree, accelerations, applied)
    matrices = [parts.positions, parts.velocities, parts.accelerations]
    series = [
        [[[coefficient(x, k) for x in row] for row in part] for part in matrices] for k in range(order + 1)
    ]
    twists = [[coefficient(w, k) for w in velocities[:first]] for k in range(order + 1)] if first else []
    answer = responses(series, [bracket_rows(twist) for twist in twists], prescribed)
    moved = by_order([accelerations[first:]], order)
    return Responses(setting, recursion, moved, answer, prescribed)


def hybrid_dynamics_derivatives(model: TreeModel, order: int, setting: KernelSpec | None = None) -> Traceable:
    """Trace `state (2, n), given (order + 1, n), ... -> rows of dx^(r)/dy^(k)`: k within r, from zero.

    x is what hybrid dynamics finds, y^(0) displacements, y^(1) velocities, y^(k + 2) derivative k of what is
    given. Arguments as of `hodyn_ros.engine.kernels.hybrid_dynamics`. With a floating base six entries of x
    and y stand before those of the joints: its body-fixed displacement, twist and the derivatives of that,
    and the body-fixed wrench on it. By default, of forward dynamics without applied wrenches.
    """

    def trace(state: Stack, inputs: Stack, *stacks: Stack) -> Stack:
        answer = traced_responses(model, order, setting, state, inputs, *stacks).results
        return [row for blocks in answer for block in blocks for row in block]

    return trace, hybrid_arguments(model, order, setting or KernelSpec.of(model))


def _motion(
    recursion: ArticulatedRecursion,
    order: int,
    state: Stack,
    inputs: Stack,
    result: Stack,
    setting: KernelSpec,
) -> tuple[list[Series], list[Series]]:
    """Return velocities and accelerations of base and joints as series of order + 1 coefficients."""
    rates: list[list[Any]] = []
    if recursion.base is not None:
        base = recursion.base
        rates += [
            [part[k][i] for k in range(order + 2)] for part in (base.angular, base.velocity) for i in range(3)
        ]
    for joint in range(len(state[0])):
        column = [state[1][joint]]
        for k in range(order + 1):
            moved = (
                inputs[k][joint] * (1.0 / factorial(k)) if joint in setting.prescribed else result[k][joint]
            )
            column.append(moved * (1.0 / (k + 1)))
        rates.append(column)
    velocities = [Series(column[: order + 1]) for column in rates]
    accelerations = [Series([(k + 1.0) * column[k + 1] for k in range(order + 1)]) for column in rates]
    return velocities, accelerations


def _wrench_series(values: Stack, order: int) -> list[Series]:
    return [Series([values[k][i] * (1.0 / factorial(k)) for k in range(order + 1)]) for i in range(6)]
