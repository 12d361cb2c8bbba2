"""How forward and hybrid dynamics answer small changes of state, torques and motions given, by order.

Partial derivatives of forward dynamics at every order, named as future work by Ali et al.: where a motion
changes by displacements eta and velocities dw, torques change by `dQ = M dw' + P_v dw + P_q eta`, with the
partial derivatives of inverse dynamics, and `eta' = dw - [w, eta]`. All are series in time; coefficient by
coefficient, with one factorisation of M for all orders, what is not given follows from what is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from hodyn_ros.engine.recursions.articulated import factorise, solve
from hodyn_ros.engine.recursions.composite import Rows
from hodyn_ros.engine.series.vectors import Scalar

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
