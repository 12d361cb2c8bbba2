"""Kernels of matrices of dynamics: mass and Coriolis matrix, gravity, and partial derivatives of torques.

Every function returns None where straight-line code would take LLVM too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, factorial
from typing import Any

from hodyn_ros.engine.base import FloatingBase
from hodyn_ros.engine.canonical import canonical_bodies
from hodyn_ros.engine.composite import Composite
from hodyn_ros.engine.kernel import Kernel, Shape, Stack, traced
from hodyn_ros.engine.matrices import coriolis_matrix, gravity_forces, mass_matrix
from hodyn_ros.engine.partials import partial_derivatives
from hodyn_ros.engine.series import Series, coefficient
from hodyn_ros.model.tree import TreeModel

PARTS = ("mass", "coriolis", "gravity")

_STRAIGHT_LINE_LIMIT = 20_000  # operations; LLVM takes two or three seconds for them


def dynamic_matrices(model: TreeModel, order: int, parts: Sequence[str] = PARTS) -> Kernel | None:
    """Compile `q (order + 1 or 2, n), ... -> rows of M, of C and of Q_grav`, for one order after the other.

    With a floating base its pose (4, 4) and body-fixed twists (one less than rows of q) follow, and its six
    columns stand first. Velocities are needed beyond `order` where `parts` names "coriolis".
    """
    rates = order + 1 if "coriolis" in parts else order

    def trace(q: Stack, *others: Stack) -> Stack:
        tree = _composite(model, order, q, others, regroup=False)
        made = {
            "mass": lambda: mass_matrix(tree),
            "coriolis": lambda: coriolis_matrix(tree),
            "gravity": lambda: [gravity_forces(tree)],
        }
        rows = [row for part in parts for row in made[part]()]
        return [_derivatives(row, k) for k in range(order + 1) for row in rows]

    return _compiled(trace, _arguments(model, rates))


def inverse_dynamics_derivatives(model: TreeModel, order: int) -> Kernel | None:
    """Compile `q (order + 3, n) -> rows of dQ^(r)/dq^(k)`, fixed base: k within r, both from zero.

    Since Q^(r) is the r-th time derivative of Q(q, q', q''), the series in time of three matrices hold all:
    `dQ^(r)/dq^(k) = C(r,k) (dQ/dq)^(r-k) + C(r,k-1) (dQ/dq')^(r-k+1) + C(r,k-2) (dQ/dq'')^(r-k+2)`.
    """
    n = model.n_joints

    def trace(q: Stack) -> Stack:
        parts = _traced_partials(model, order, q, ())
        stack = []
        for r in range(order + 1):
            for k in range(order + 3):
                terms = [
                    (float(comb(r, k - shift)), part[r - k + shift])
                    for shift, part in enumerate(parts)
                    if 0 <= k - shift <= r
                ]
                for row in range(n):
                    stack.append([sum(c * matrix[row][i] for c, matrix in terms) for i in range(n)])
        return stack

    return _compiled(trace, _arguments(model, order + 2))


def partial_series(model: TreeModel, order: int) -> Kernel | None:
    """Compile `q (order + 3, n), ... -> rows of dQ/dq, dQ/dq', dQ/dq''`, for one order after the other."""

    def trace(q: Stack, *others: Stack) -> Stack:
        parts = _traced_partials(model, order, q, others)
        return [row for k in range(order + 1) for part in parts for row in part[k]]

    return _compiled(trace, _arguments(model, order + 2))


def _compiled(trace: Callable[..., Stack], arguments: Sequence[tuple[str, Shape]]) -> Kernel | None:
    """Compile a function, or return None where that would keep the caller waiting."""
    graph, outputs, _ = traced(trace, [shape for _, shape in arguments])
    if graph.count_operations(outputs) > _STRAIGHT_LINE_LIMIT:
        return None
    return Kernel(trace, arguments)


def _traced_partials(model: TreeModel, order: int, q: Stack, others: Sequence[Stack]) -> list[list[Stack]]:
    """Return dQ/dq, dQ/dq' and dQ/dq'' by order and rows."""
    tree = _composite(model, order, q, others, regroup=True)
    found = partial_derivatives(tree, _rates(order, 2, q, others))
    return [
        [[_derivatives(row, k) for row in part] for k in range(order + 1)]
        for part in (found.positions, found.velocities, found.accelerations)
    ]


def _composite(
    model: TreeModel, order: int, q: Stack, others: Sequence[Stack], *, regroup: bool
) -> Composite:
    bodies = canonical_bodies(model, regroup=regroup)
    gravity = model.gravity.tolist()
    positions = _series(q, 0, order)
    velocities = _rates(order, 1, q, others)
    if not others:
        return Composite(bodies, gravity, positions, velocities)
    pose, twists = others
    # from where the base is now, distances are short, wherever that is
    here = [[*row[:3], 0.0] for row in pose]
    base = FloatingBase(here, gravity, "body")
    for k in range(order):
        base.extend([value * (1.0 / factorial(k)) for value in twists[k]])
    rotation = tuple(
        tuple(Series([base.rotation[k][i][j] for k in range(order + 1)]) for j in range(3)) for i in range(3)
    )
    position = tuple(Series([base.position[k][i] for k in range(order + 1)]) for i in range(3))
    return Composite(bodies, gravity, positions, velocities, rotation, position)  # type: ignore[arg-type]


def _rates(order: int, derivative: int, q: Stack, others: Sequence[Stack]) -> list[Series]:
    """Return the series of q' or q'', those of the base before those of the joints; none if not given."""
    if len(q) < derivative + order + 1:
        return [Series([0.0] * (order + 1))] * (len(q[0]) + (6 if others else 0))
    base = _series(others[1], derivative - 1, order) if others else []
    return [*base, *_series(q, derivative, order)]


def _series(stack: Stack, first: int, order: int) -> list[Series]:
    """Return the series of the columns of a stack of derivatives, from derivative `first` on."""
    return [
        Series([stack[first + k][i] * (1.0 / factorial(k)) for k in range(order + 1)])
        for i in range(len(stack[0]))
    ]


def _derivatives(row: Sequence[Any], k: int) -> list[Any]:
    return [float(factorial(k)) * coefficient(value, k) for value in row]


def _arguments(model: TreeModel, rates: int) -> list[tuple[str, Shape]]:
    arguments: list[tuple[str, Shape]] = [("q", (rates + 1, model.n_joints))]
    if model.floating_base:
        arguments += [("pose", (4, 4)), ("twists", (rates, 6))]
    return arguments
