"""Rows of the closure of loops: what each kind of loop forbids, as wrenches with their derivatives.

A loop of a tree joins a frame on body a with one on body b. Each row of it is a function g of the two frames
that stays zero, and each has a wrench w(t), in spatial representation, with `g' = w^T (V_b - V_a)`:

    point i           g = a_i . (P_b - P_a)                        w = (P_b x a_i; a_i)
    turn i            g = (a_k . b_j - a_j . b_k) / 2              w = ((b_j x a_k - b_k x a_j) / 2; 0)
    normal (i, j)     g = a_i . b_j                                w = (b_j x a_i; 0)
    distance          g = (d . d - L^2) / (2 L), d = P_b - P_a     w = (P_a x d; d) / L
    spin              g' = b_z . (omega_b - omega_a)               w = (b_z; 0)

with P the point and a_i, b_i the axes of a frame, and (i, j, k) a cyclic permutation of (x, y, z). Near the
closed loop, "turn i" is the angle of b about a_i. Derivatives of w follow from `a_i' = omega x a_i` and `P' =
v + omega x P` by the product rule. The last row has no g: a rod between two balls may have any spin angle.

A joint j that follows another one, i, along a curve f has one row as well, over the velocities of both:

    follower          g = q_j - f(q_i)                             g' = q_j' - f'(q_i) q_i'

whose derivatives are those of f'(q_i(t)), by the chain rule of Taylor coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.lie import jets
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.se3 import Array, cross
from hodyn_ros.model.closure import PlacedLoop
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_function import JointFunction
from hodyn_ros.model.loops import LoopKind


class Row(NamedTuple):
    """One row: "point", "turn", "normal", "distance" or "spin", and the axes that it is about."""

    what: str
    i: int = 0
    j: int = 0


_POINT = tuple(Row("point", i) for i in range(3))
_TURN = tuple(Row("turn", i) for i in range(3))
_AXIS = (Row("normal", 0, 2), Row("normal", 1, 2))  # the axes z are parallel
KIND_ROWS: dict[LoopKind, tuple[Row, ...]] = {  # of "rows" the loop says them itself
    "weld": (*_TURN, *_POINT),
    "ball": _POINT,
    "universal": (*_POINT, Row("normal", 2, 2)),
    "hinge": (*_POINT, *_AXIS),
    "cylinder": (*_POINT[:2], *_AXIS),
    "slider": (*_POINT[:2], *_TURN),
    "rod": (Row("distance"),),
    "spin": (Row("spin"),),
}
PLATFORM_ROWS = dict(zip(("rx", "ry", "rz", "x", "y", "z"), (*_TURN, *_POINT)))


class ClosureFrame:
    """A frame on a moving body: `point[r]` (3,) and `axes[r]` (3, 3), rows x, y, z, by derivative order."""

    def __init__(self, frame: Frame, pose: Array) -> None:
        self._spins: list[Array] = []
        self.point: list[Array] = [pose[:3, :3] @ frame.point + pose[:3, 3]]
        self.axes: list[Array] = [(pose[:3, :3] @ frame.axes).T]

    def extend(self, twist: Array) -> None:
        """Go one order higher with the next derivative (6,) of the body's spatial twist."""
        r = len(self._spins)
        self._spins.append(twist[:3])
        self.point.append(twist[3:] + product_derivative(self._spins, self.point, r, cross))
        self.axes.append(product_derivative(self._spins, self.axes, r, cross))

    def some(self, i: NDArray[np.intp]) -> list[Array]:
        """Return some axes (len(i), 3) by derivative order."""
        return [axes[i] for axes in self.axes]


def rows_of(loop: PlacedLoop) -> tuple[Row, ...]:
    """Return the rows of a loop.

    Of the kind "rows" two turns become "normal" rows, which keep the axes of the third one parallel: they do
    not fail where b has turned half around it.
    """
    if loop.kind != "rows":
        return KIND_ROWS[loop.kind]
    rows = [PLATFORM_ROWS[name] for name in loop.rows]
    turns = [row.i for row in rows if row.what == "turn"]
    if len(turns) == 2:
        free = 3 - sum(turns)
        rows[:2] = [Row("normal", i, free) for i in turns]
    return tuple(rows)


def slope(function: JointFunction, motion: Array) -> float:
    """Return the derivative `order` of `f'(x(t))` of a motion x (order + 1,) by derivative order."""
    count = len(motion)
    rate = jets.derivative(function.taylor(float(motion[0]), count + 1))
    return float(jets.to_derivatives(jets.compose(rate, jets.to_taylor(motion)))[-1])


def residual(row: Row, a: ClosureFrame, b: ClosureFrame, length: float = 0.0) -> float:
    """Return by how much a row is open, g [m or rad]."""
    A, B = a.axes[0], b.axes[0]
    apart = b.point[0] - a.point[0]
    if row.what == "point":
        return float(A[row.i] @ apart)
    if row.what == "turn":
        j, k = (row.i + 1) % 3, (row.i + 2) % 3
        return float(A[k] @ B[j] - A[j] @ B[k]) / 2.0
    if row.what == "normal":
        return float(A[row.i] @ B[row.j])
    if row.what == "distance":
        return float(apart @ apart - length**2) / (2.0 * length)
    return 0.0


def wrenches(rows: Sequence[Row], a: ClosureFrame, b: ClosureFrame, order: int, length: float = 0.0) -> Array:
    """Return the derivative of one order of the wrenches (rows, 6) of rows between two frames."""
    groups = [(what, list(group)) for what, group in groupby(rows, key=lambda row: row.what)]
    return np.concatenate([_wrenches(what, group, a, b, order, length) for what, group in groups])


def _wrenches(
    what: str, rows: Sequence[Row], a: ClosureFrame, b: ClosureFrame, order: int, length: float
) -> Array:
    i = np.array([row.i for row in rows])
    if what == "point":
        axes = a.some(i)
        return _stack(_cross(b.point, axes, order), axes[order])
    if what == "turn":
        j, k = (i + 1) % 3, (i + 2) % 3
        couples = _cross(b.some(j), a.some(k), order) - _cross(b.some(k), a.some(j), order)
        return _stack(couples / 2.0, np.zeros_like(couples))
    if what == "normal":
        couples = _cross(b.some(np.array([row.j for row in rows])), a.some(i), order)
        return _stack(couples, np.zeros_like(couples))
    if what == "distance":
        apart = [q - p for p, q in zip(a.point, b.point)]
        return _stack(_cross(a.point, apart, order), apart[order])[None] / length
    return _stack(b.axes[order][2], np.zeros(3))[None]


def _cross(a: Sequence[Array], b: Sequence[Array], order: int) -> Array:
    return product_derivative(a, b, order, cross)


def _stack(moments: Array, forces: Array) -> Array:
    return np.concatenate([moments, forces], axis=-1)
