"""Linear equations over abstract scalars, without branches: orthogonal columns instead of pivots.

Code that is traced once for all poses cannot choose pivots, and elimination without them breaks down. The
modified Gram-Schmidt method needs none; it is used here without square roots, `A = Q R` with `Q^T Q = D`.
Applied to the right-hand side as well, it is as stable as Householder's method (A. Bjorck, Numerical Methods
for Least Squares Problems, SIAM 1996, sections 2.4.2 and 2.4.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.series.vectors import Scalar, dot

Column = list[Scalar]


class Orthogonal:
    """The factors of a matrix given by its independent columns."""

    def __init__(self, columns: Sequence[Sequence[Scalar]]) -> None:
        self.columns: list[Column] = []  # of Q
        self.inverses: list[Scalar] = []  # 1 / D
        self.upper: list[Column] = []  # R by columns, without its unit diagonal
        self.nearness: Scalar = 0.0  # to a singular matrix: sum of 1 / (share of a column that others lack)^2
        for column in columns:
            rest, entries = list(column), []
            for q, inverse in zip(self.columns, self.inverses):
                entry = dot(q, rest) * inverse
                rest = _minus(rest, entry, q)
                entries.append(entry)
            self.columns.append(rest)
            self.upper.append(entries)
            square = dot(rest, rest)
            self.inverses.append(1.0 / square)
            self.nearness = self.nearness + dot(column, column) / square

    @property
    def inverse_square(self) -> Scalar:
        """The sum of the squares of all entries of the pseudo-inverse."""
        result: Scalar = 0.0
        for j, inverse in enumerate(self.inverses):
            column = self._back([float(i == j) for i in range(j + 1)])
            result = result + inverse * dot(column, column)
        return result

    def solve(self, right: Sequence[Scalar]) -> Column:
        """Return the x with least `|A x - b|`."""
        return self.solve_with_rest(right)[0]

    def solve_with_rest(self, right: Sequence[Scalar]) -> tuple[Column, Column]:
        """Return the x with least `|A x - b|`, and `b - A x`."""
        rest, x = list(right), []
        for q, inverse in zip(self.columns, self.inverses):
            part = dot(q, rest) * inverse
            rest = _minus(rest, part, q)
            x.append(part)
        return self._back(x), rest

    def solve_transposed(self, right: Sequence[Scalar]) -> Column:
        """Return the least y with `A^T y = b`."""
        parts = self._forward(right)
        y: Column = [0.0] * len(self.columns[0])
        for part, q, inverse in reversed(list(zip(parts, self.columns, self.inverses))):
            y = _minus(y, (dot(q, y) - part) * inverse, q)
        return y

    def solve_normal(self, right: Sequence[Scalar]) -> Column:
        """Return the x with `A^T A x = b`."""
        parts = self._forward(right)
        return self._back([part * inverse for part, inverse in zip(parts, self.inverses)])

    def _forward(self, right: Sequence[Scalar]) -> Column:
        parts: Column = []
        for value, entries in zip(right, self.upper):
            for entry, part in zip(entries, parts):
                value = value - entry * part
            parts.append(value)
        return parts

    def _back(self, x: Column) -> Column:
        x = list(x)
        for j in reversed(range(len(x))):
            for i, entry in enumerate(self.upper[j]):
                x[i] = x[i] - entry * x[j]
        return x


def _minus(a: Sequence[Scalar], factor: Scalar, b: Sequence[Scalar]) -> Column:
    return [x - factor * y for x, y in zip(a, b)]
