"""Partial derivatives of joint torques with respect to positions, velocities and accelerations.

S. Singh, R. Russell & P. Wensing, "Efficient analytical derivatives of rigid-body dynamics using spatial
vector algebra" (2022), eqs. 24-29 of the tree in world axes; here with sums over subtrees of few numbers (see
`composite`), and, over series, with all time derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.series.spatial import Spatial, bracket, combine, dual_bracket, plus, power, scaled
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, dot, halves, scale, times
from hodyn_ros.lie.motion import BaseRepresentation


@dataclass(frozen=True)
class Partials:
    """Matrices by rows: of the torques with respect to positions, velocities and accelerations."""

    positions: Rows
    velocities: Rows
    accelerations: Rows


@dataclass(frozen=True)
class Load:
    """A wrench that the environment applies to a body, seen from the point of reference, in world axes.

    `follows` says that it turns and moves with the body; else it stays as it is where the robot moves away.
    """

    body: int
    wrench: Spatial
    follows: bool


def partial_derivatives(
    tree: Composite, accelerations: Sequence[Scalar], loads: Sequence[Load] = ()
) -> Partials:
    """Return the partial derivatives of the torques of all joints.

    `accelerations` are the rates of `tree.velocities`. Of a floating base, positions mean a small body-fixed
    displacement at a constant body-fixed twist, and the torques are preceded by its body-fixed wrench.
    """
    motions = tree.accelerations(accelerations)
    bodies = range(len(tree.placed))
    forces = tree.accumulate([_force(tree, j, motions[j]) for j in bodies])
    operators = tree.accumulate([_doubled_operator(tree, j) for j in bodies])
    carried = [_carried(tree, j, motions) for j in bodies]
    rates = [placed.rates for placed in tree.placed]
    by_position, by_velocity, mass = ([[0.0] * tree.size for _ in range(tree.size)] for _ in range(3))
    for j, moments in enumerate(tree.total_moments()):
        force: Spatial = _vectors(forces[j])[0], _vectors(forces[j])[1]
        operator = _DoubledOperator(*_vectors(operators[j]))
        for k, (column, screw) in enumerate(zip(tree.placed[j].columns, tree.placed[j].screws)):
            momentum, transposed = moments.times(screw), operator.transposed_times(screw)
            velocity, acceleration = carried[j][k]
            # what a change of this joint asks of the joints inward of it
            moved = plus(operator.times(velocity), moments.times(acceleration))
            moved = plus(moved, dual_bracket(screw, force))
            sped = plus(operator.times(screw), moments.times(plus(velocity, rates[j][k])))
            for i in tree.path(j):
                inner = tree.placed[i]
                for row, inner_screw, (v, a), rate in zip(inner.columns, inner.screws, carried[i], rates[i]):
                    mass[row][column] = mass[column][row] = power(inner_screw, momentum)
                    by_position[column][row] = dot(transposed, v[0]) + power(a, momentum)
                    by_velocity[column][row] = dot(transposed, inner_screw[0]) + power(
                        plus(v, rate), momentum
                    )
                    if i != j:
                        by_position[row][column] = power(inner_screw, moved)
                        by_velocity[row][column] = power(inner_screw, sped)
    for load in loads:
        add_load(tree, load, by_position)
    return Partials(by_position, by_velocity, mass)


def applied_loads(
    tree: Composite,
    places: Sequence[tuple[int, BaseRepresentation]],
    wrenches: Sequence[Sequence[Scalar]],
    center: Sequence[Scalar] | None,
) -> list[Load]:
    """Return wrenches, given in the world or in the frames of their bodies, as they are seen by `tree`.

    `wrenches` (6,) of each, over series; `center`: where a floating base is, in the world.
    """
    at = tree.constants[0].translation.tolist() if center is None else list(center)
    loads = []
    for (body, frame), values in zip(places, wrenches):
        moment, force = halves(values)
        if frame == "spatial":
            seen: Spatial = add(moment, cross(force, at)), force
        else:
            axes, origin = tree.frame(body)
            force = combine(axes, force)
            seen = add(combine(axes, moment), cross(origin, force)), force
        loads.append(Load(body, seen, frame == "body_fixed"))
    return loads


def add_load(tree: Composite, load: Load, by_position: Rows) -> None:
    """Add to dQ/dq what a load W does, of which joint i feels `-S_i^T W`.

    Of a load that stays as it is, this changes with the joints j inward of i, which move `S_i' = ad_{S_j}
    S_i`; of one that follows its body with the joints j outward of i, `W' = -ad_{S_j}^T W`.
    """
    path = tree.path(load.body)
    for place, outer in enumerate(path):
        far = tree.placed[outer]
        # the screws of a base of several degrees of freedom move with each other
        itself = len(far.columns) > 1 and not load.follows
        for inner in path[place + (not itself) :]:
            near = tree.placed[inner]
            for i, screw in zip(far.columns, far.screws):
                for j, inner_screw in zip(near.columns, near.screws):
                    change = power(bracket(inner_screw, screw), load.wrench)
                    row, column = (j, i) if load.follows else (i, j)
                    by_position[row][column] = by_position[row][column] - change


def _carried(tree: Composite, j: int, motions: Sequence[Spatial]) -> list[tuple[Spatial, Spatial]]:
    """Return how the screws of a joint would change if they moved with the parent: once and twice."""
    own, above = tree.placed[j], tree.twist_of(tree.placed[j].parent)
    acceleration = tree.ground if own.parent < 0 else motions[own.parent]
    result = []
    for screw in own.screws:
        velocity = bracket(above, screw)
        result.append((velocity, plus(bracket(acceleration, screw), bracket(above, velocity))))
    return result


def _force(tree: Composite, j: int, acceleration: Spatial) -> list[Scalar]:
    """Return the wrench that a body by itself needs."""
    moments, twist = tree.moments[j], tree.placed[j].twist
    moment, force = plus(moments.times(acceleration), dual_bracket(twist, moments.times(twist)))
    return [*moment, *force]


class _DoubledOperator:
    """The matrix `2 B`: (alpha; beta) goes to (N alpha; alpha × p)."""

    def __init__(self, *rows: Vector) -> None:
        self.angular, self.momentum = rows[:3], rows[3]

    def times(self, screw: Spatial) -> Spatial:
        return times(self.angular, screw[0]), cross(screw[0], self.momentum)

    def transposed_times(self, screw: Spatial) -> Vector:
        """Return the angular part; the linear one is zero."""
        return add(times(list(zip(*self.angular)), screw[0]), cross(self.momentum, screw[1]))


def _doubled_operator(tree: Composite, j: int) -> list[Scalar]:
    """Return N = tr(D) 1 - D with D = 2 integral of r x^T dm by rows, then twice the momentum p."""
    moments = tree.moments[j]
    w, v = scaled(2.0, tree.placed[j].twist)
    h = moments.first
    columns = [add(scale(h[b], v), cross(w, row)) for b, row in enumerate(moments.second_rows)]
    (xx, yx, zx), (xy, yy, zy), (xz, yz, zz) = columns
    momentum = add(scale(moments.mass, v), cross(w, h))
    return [yy + zz, -xy, -xz, -yx, xx + zz, -yz, -zx, -zy, xx + yy, *momentum]


def _vectors(row: Sequence[Scalar]) -> list[Vector]:
    return [(row[i], row[i + 1], row[i + 2]) for i in range(0, len(row), 3)]
