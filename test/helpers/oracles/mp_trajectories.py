"""Motions in exact arithmetic, written down from their formulas and not from the package."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from oracles.random_trees import Array

Function = Callable[[Any], Any]

DIGITS = 50


def derivatives(functions: Sequence[Function], times: Sequence[float], order: int) -> Array:
    """Return (N, order+1, n) of n functions of time by Taylor expansion at `DIGITS` digits."""
    with mpmath.workdps(DIGITS):
        stacks = [[mpmath.taylor(f, mpmath.mpf(float(t)), order) for f in functions] for t in times]
        return np.array(
            [
                [[float(c[k] * mpmath.factorial(k)) for c in columns] for k in range(order + 1)]
                for columns in stacks
            ]
        )


def fourier(w: float, a: Array, b: Array, q0: Array) -> list[Function]:
    """Return one function per joint: the series of Gaz et al. (2019)."""

    def joint(j: int) -> Function:
        def q(t: Any) -> Any:
            total = mpmath.mpf(float(q0[j]))
            for i in range(len(a)):
                lw = (i + 1) * mpmath.mpf(w)
                total += float(a[i, j]) / lw * mpmath.sin(lw * t) - float(b[i, j]) / lw * mpmath.cos(lw * t)
            return total

        return q

    return [joint(j) for j in range(a.shape[1])]


def eased_time(order: int, ramp: float, t: Any) -> Any:
    """Return the time passed after t, at a pace that rises as a smootherstep over `ramp`: its integral."""
    coefficients = [
        mpmath.binomial(order + k, k)
        * mpmath.binomial(2 * order + 1, order - k)
        * (-1) ** k
        / (order + 2 + k)
        for k in range(order + 1)
    ]
    x = t / mpmath.mpf(ramp)
    return mpmath.mpf(ramp) * x ** (order + 2) * _polynomial(coefficients, x)


def spline(times: Sequence[float], given: Sequence[Sequence[float]], order: int, at_rest: bool) -> list[Any]:
    """Return the monomial coefficients, lowest first, of each piece of the spline through its waypoints.

    Found from what defines it: pieces of degree 2 order + 1 that take the given values and are as continuous
    as these leave room for.
    """
    size = 2 * order + 2
    pieces = len(times) - 1
    with mpmath.workdps(DIGITS):
        knots = [mpmath.mpf(float(t)) for t in times]
        matrix, right = mpmath.zeros(size * pieces), mpmath.zeros(size * pieces, 1)
        row = 0

        def condition(terms: list[tuple[int, Any, int, int]], value: float) -> None:
            nonlocal row
            for piece, local, derivative, sign in terms:
                for k in range(derivative, size):
                    factor = mpmath.factorial(k) / mpmath.factorial(k - derivative)
                    matrix[row, piece * size + k] += sign * factor * local ** (k - derivative)
            right[row] = mpmath.mpf(float(value))
            row += 1

        for piece in range(pieces):
            for i, local in ((piece, mpmath.mpf(0)), (piece + 1, knots[piece + 1] - knots[piece])):
                for derivative, value in enumerate(given[i]):
                    condition([(piece, local, derivative, 1)], value)
        for i, piece in ((0, 0), (pieces, pieces - 1)):
            local = knots[i] - knots[piece]
            free = order + 1 - len(given[i])
            first = len(given[i]) if at_rest else order + 1
            for derivative in range(first, first + free):
                condition([(piece, local, derivative, 1)], 0.0)
        for i in range(1, pieces):
            for derivative in range(len(given[i]), size - len(given[i])):
                length = knots[i] - knots[i - 1]
                condition([(i - 1, length, derivative, 1), (i, mpmath.mpf(0), derivative, -1)], 0.0)
        solution = mpmath.lu_solve(matrix, right)
        return [[solution[piece * size + k] for k in range(size)] for piece in range(pieces)]


def evaluate_pieces(times: Sequence[float], pieces: list[Any], samples: Sequence[float], order: int) -> Array:
    """Return (N, order+1) of a piecewise polynomial as `spline` returns it."""
    with mpmath.workdps(DIGITS):
        result = np.zeros((len(samples), order + 1))
        for i, t in enumerate(samples):
            piece = min(int(np.searchsorted(times, t, side="right")) - 1, len(pieces) - 1)
            local = mpmath.mpf(float(t)) - mpmath.mpf(float(times[piece]))
            coefficients = list(pieces[piece])
            for k in range(order + 1):
                result[i, k] = float(_polynomial(coefficients, local))
                coefficients = [j * c for j, c in enumerate(coefficients)][1:]
        return result


def _polynomial(coefficients: Sequence[Any], x: Any) -> Any:
    """Evaluate a polynomial, its lowest coefficient first."""
    return mpmath.fsum(c * x**k for k, c in enumerate(coefficients))


def error(found: Array, exact: Array) -> float:
    """Return the largest error of (N, order+1, ...), each derivative relative to its largest value."""
    axes = (0, *range(2, exact.ndim))
    scale = np.abs(exact).max(axis=axes)
    off = np.abs(found - exact).max(axis=axes)
    return float(np.max(off / np.where(scale > 0.0, scale, 1.0)))
