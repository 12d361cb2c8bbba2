"""Momentum about the centre of mass and what takes velocities to it, over abstract scalars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from hodyn_ros.engine.recursions.composite import Composite, Rows, Spatial, plus
from hodyn_ros.engine.series.vectors import Scalar, Vector, cross, scale, subtract


def com_jacobian(tree: Composite) -> Rows:
    """Return the matrix (3, m) that takes velocities to that of the centre of mass, in world axes."""
    share = 1.0 / _mass(tree)
    return _by_rows(tree, [list(scale(share, force)) for _, force in _momenta(tree)])


def momentum_matrix(tree: Composite) -> Rows:
    """Return the matrix (6, m) that takes velocities to the momentum about the centre of mass."""
    com = _com(tree)
    return _by_rows(tree, [_about(com, momentum) for momentum in _momenta(tree)])


def momentum(tree: Composite) -> list[Scalar]:
    """Return the momentum (6,) about the centre of mass, in world axes, angular part first."""
    parts = (moments.times(own.twist) for moments, own in zip(tree.moments, tree.placed))
    return _about(_com(tree), reduce(plus, parts))


def _momenta(tree: Composite) -> list[Spatial]:
    """Return the momentum by unit velocity, about the point of reference, by column."""
    result: dict[int, Spatial] = {}
    for own, moments in zip(tree.placed, tree.total_moments()):
        result.update((column, moments.times(screw)) for column, screw in zip(own.columns, own.screws))
    return [result[column] for column in range(tree.size)]


def _by_rows(tree: Composite, columns: Sequence[Sequence[Scalar]]) -> Rows:
    return [list(row) for row in zip(*columns)]


def _mass(tree: Composite) -> float:
    return float(sum(body.mass for body in tree.constants))


def _com(tree: Composite) -> Vector:
    """Return the centre of mass, seen from the point of reference."""
    roots = (m for own, m in zip(tree.placed, tree.total_moments()) if own.parent < 0)
    x, y, z = zip(*(moments.first for moments in roots))
    return scale(1.0 / _mass(tree), (sum(x), sum(y), sum(z)))


def _about(com: Vector, momentum: Spatial) -> list[Scalar]:
    return [*subtract(momentum[0], cross(com, momentum[1])), *momentum[1]]
