"""Linear systems whose matrix and right-hand sides change in time, over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.series import Series, coefficient
from hodyn_ros.engine.series.vectors import Scalar, dot

Rows = Sequence[Sequence[Series | Scalar]]


class SeriesSystem:
    """The solutions of `A x = b` at every time, those of least norm where A has more columns than rows.

    In Taylor coefficients: what lower ones of x contribute stands on the right. The solution of least norm is
    `x = A^T z`.
    """

    def __init__(self, rows: Rows, terms: int) -> None:
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
