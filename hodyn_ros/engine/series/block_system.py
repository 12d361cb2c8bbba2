"""Square linear systems over abstract scalars, taken apart into blocks by the places of their zeros.

Entries that are zero whatever the pose are known when code is traced. Rows and columns are ordered so that a
system becomes lower triangular by blocks that cannot be taken apart further (A. L. Dulmage & N. S. Mendelsohn
1958; I. S. Duff & J. K. Reid, "An implementation of Tarjan's algorithm for the block triangularization of a
matrix" 1978); each is factorised by orthogonal columns. One factorisation serves all right-hand sides, and
all orders of systems that change in time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.series import Series, coefficient
from hodyn_ros.engine.series.vectors import Scalar, dot

Rows = Sequence[Sequence[Scalar]]


class BlockSystem:
    """The factors of a square matrix given by rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._blocks = _blocks([[_present(x) for x in row] for row in rows])
        self._factors = [
            Orthogonal([[rows[i][j] for i in block_rows] for j in columns])
            for block_rows, columns in self._blocks
        ]

    @property
    def singularity(self) -> Scalar:
        """The sum of 1 / l^2, l the length of what each column of a block adds to those before it.

        It grows without bounds where a block becomes singular; entries are without units.
        """
        result: Scalar = 0.0
        for factors in self._factors:
            for inverse in factors.inverses:
                result = result + inverse
        return result

    @property
    def nearness(self) -> Scalar:
        """The same whatever the lengths of columns: l is the share of a column that those before it lack."""
        return sum(factors.nearness for factors in self._factors)

    def solve(self, right: Sequence[Scalar]) -> list[Scalar]:
        """Return the x with `A x = b`."""
        x: list[Scalar] = [0.0] * len(right)
        for (rows, columns), factors in zip(self._blocks, self._factors):
            # columns of the blocks before are known, all others are zero in these rows or belong to x
            rest = [right[i] - dot(self._rows[i], x) for i in rows]
            if any(_present(value) for value in rest):
                for j, value in zip(columns, factors.solve(rest)):
                    x[j] = value
        return x

    def solve_transposed(self, right: Sequence[Scalar]) -> list[Scalar]:
        """Return the y with `A^T y = b`."""
        y: list[Scalar] = [0.0] * len(right)
        for (rows, columns), factors in reversed(list(zip(self._blocks, self._factors))):
            rest = [right[j] - dot([row[j] for row in self._rows], y) for j in columns]
            if any(_present(value) for value in rest):
                for i, value in zip(rows, factors.solve_transposed(rest)):
                    y[i] = value
        return y


class SeriesSystem:
    """The solutions of `A x = b` at every time, those of least norm where A has more columns than rows.

    In Taylor coefficients: what lower ones of x contribute stands on the right. The solution of least norm is
    `x = A^T z`.
    """

    def __init__(self, rows: Sequence[Sequence[Series | Scalar]], terms: int) -> None:
        self._rows = [[[coefficient(x, k) for x in row] for row in rows] for k in range(terms)]
        square = len(rows) == len(rows[0])
        self._square = BlockSystem(self._rows[0]) if square else None
        self._wide = None if square else Orthogonal(self._rows[0])

    @property
    def singularity(self) -> Scalar:
        """The sum of 1 / l^2, l the length of what each column, or row, adds to those before it."""
        return self._square.singularity if self._square else sum(self._wide.inverses) if self._wide else 0.0

    def solve(self, right: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """Return the coefficients of x from those of b."""
        x: list[list[Scalar]] = []
        z: list[list[Scalar]] = []
        for k, b in enumerate(right):
            rest = list(b)
            for i in range(1, k + 1):
                rest = [value - dot(row, x[k - i]) for value, row in zip(rest, self._rows[i])]
            if self._square:
                x.append(self._square.solve(rest))
            elif self._wide:
                near: list[Scalar] = [0.0] * len(self._rows[0][0])
                for i in range(1, k + 1):
                    columns = zip(*self._rows[i])
                    near = [value + dot(column, z[k - i]) for value, column in zip(near, columns)]
                rest = [value - dot(row, near) for value, row in zip(rest, self._rows[0])]
                x.append([a + b for a, b in zip(near, self._wide.solve_transposed(rest))])
                z.append(self._wide.solve_normal(rest))
        return x


def _present(value: Scalar) -> bool:
    """Whether an entry is other than zero, as far as that is known without numbers."""
    return not (isinstance(value, float) and value == 0.0)


def _blocks(present: Sequence[Sequence[bool]]) -> list[tuple[list[int], list[int]]]:
    """Return rows and columns of the blocks, in an order in which each needs only those before it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    n = len(present)
    if not n:
        return []
    pattern = csr_array(np.array(present, dtype=np.int8))
    column_of = maximum_bipartite_matching(pattern, perm_type="column")  # by row
    if (column_of < 0).any():
        raise ZeroDivisionError("a square system is singular whatever the numbers in it")
    row_of = np.argsort(column_of)
    needs = csr_array(np.array(present, dtype=np.int8)[:, column_of])  # row i needs what row k determines
    count, labels = connected_components(needs, directed=True, connection="strong")
    members = [[i for i in range(n) if labels[i] == block] for block in range(count)]
    uses = [
        {int(labels[row_of[j]]) for i in rows for j in range(n) if present[i][j]} - {block}
        for block, rows in enumerate(members)
    ]
    order: list[int] = []
    while len(order) < count:
        order.append(next(b for b in range(count) if b not in order and uses[b] <= set(order)))
    return [(members[b], [int(column_of[i]) for i in members[b]]) for b in order]
