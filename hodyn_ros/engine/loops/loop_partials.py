"""Changes of the dynamics of robots with couplings and loops in one direction, over traced scalars.

The code of efforts and of accelerations is differentiated as it was traced. Positions of joints that follow
the coordinates change as the loops let them, by the implicit function theorem; platforms and bases by small
body-fixed displacements, and by derivatives of their body-fixed twist. Several directions are computed at a
time, in lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

from hodyn_ros.engine.codegen.differentiate import derivatives
from hodyn_ros.engine.codegen.kernel import LaneKernel, Shape, Stack
from hodyn_ros.engine.codegen.tracer import Graph
from hodyn_ros.engine.large_trees.inverse import load_arguments
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode, Step
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_matrices import base_velocity
from hodyn_ros.engine.loops.loop_motion import LoadPlaces, LoopCode, Velocity, taylor, to_derivatives
from hodyn_ros.engine.loops.loop_series import NOTHING
from hodyn_ros.engine.recursions.composite import plus, scaled
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.vectors import Scalar, cross, dot
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_LIMIT = 30_000  # operations; LLVM takes some seconds for them


def effort_changes(closure: Closure, chosen: Array, order: int, loads: LoadPlaces = ()) -> LaneKernel | None:
    """Compile by how much efforts (order + 1, efforts) change, the wrench on a prescribed base body-fixed.

    Arguments: `q (order + 3, k), [pose (4, 4), body-fixed twists (order + 2, 6),] wrenches (order + 1, 6)...,
    closed positions (1, leading), change (order + 3, coordinates)`. None where the code would be too long.
    """
    code = _EffortChanges(closure, chosen, order, loads)
    return _compiled(code, code.changes, order + 3, load_arguments(loads, order), [])


def acceleration_changes(
    closure: Closure, chosen: Array, order: int, loads: LoadPlaces = ()
) -> LaneKernel | None:
    """Compile by how much accelerations of the coordinates, and then of the drives, change by order.

    Arguments: `state (2, k), [pose (4, 4), body-fixed twist (1, 6),] efforts (order + 1, driven), [wrench on
    a base (order + 1, 6),] wrenches (order + 1, 6)..., closed positions (1, leading), change of the state (2,
    coordinates), of the efforts (order + 1, efforts)`. What changes of bases and platforms is body-fixed, the
    wrench on a base and its change spatial. None where the code would be too long.
    """
    code = _AccelerationChanges(closure, chosen, order, loads)
    others: list[tuple[str, Shape]] = [("the efforts", (order + 1, len(closure.driven)))]
    others += [("the base wrench", (order + 1, 6))] if closure.base_given else []
    others += load_arguments(loads, order)
    pushes = [("the change of the efforts", (order + 1, closure.n_efforts))]
    return _compiled(code, code.changes, 2, others, pushes)


def _compiled(
    code: LoopCode,
    trace: Any,
    rows: int,
    others: Sequence[tuple[str, Shape]],
    changes: Sequence[tuple[str, Shape]],
) -> LaneKernel | None:
    closure = code.closure
    arguments: list[tuple[str, Shape]] = [("the motion", (rows, len(closure.joints)))]
    if closure.leader is not None:
        arguments += [("the pose", (4, 4)), ("the twists", (rows - 1, 6))]
    arguments += [*others, ("the positions", (1, len(closure.leading)))]
    arguments += [("the change", (rows, closure.n_coordinates)), *changes]
    kernel = LaneKernel(trace, arguments)
    return kernel if kernel.operations <= _LIMIT else None


class _Change:
    """How the arguments of the code change, by node; `given` pose and spatial twists, and their series."""

    def __init__(self, code: LoopCode, q: Stack, given: Sequence[Stack], state: Stack, change: Stack) -> None:
        closure = code.closure
        first = 6 if closure.base_given else 0
        n = len(closure.joints)
        self._joints = [row[first : first + n] for row in change]
        self._rows = [row[:6] if first else row[n:] for row in change]
        self.by_node: dict[int, Scalar] = {}
        self.add(q, self._joints)
        self.base, self.given = None, list(given)
        if given:
            self.base = self._move(closure, given)
            twists = [self.base.twist(k) for k in range(len(given[1]))]
            self.given = [given[0], to_derivatives(twists)]
        leading = code.leading_positions(q[0], state[0])
        self._close(code, leading, state[0])

    def add(self, values: Stack, changes: Stack) -> None:
        """Let arguments change."""
        for row, new in zip(values, changes):
            self.by_node.update((x.number, change) for x, change in zip(row, new))

    def of(self, table: Stack) -> Stack:
        """Return how results change."""
        flat = [x for row in table for x in row]
        graph: Graph = next(x.graph for x in flat if hasattr(x, "graph"))
        found = iter(derivatives(graph, flat, self.by_node))
        return [[next(found) for _ in row] for row in table]

    def _move(self, closure: Closure, given: Sequence[Stack]) -> FloatingBase:
        """Displace a platform or base, and change its twists; return the series of its motion."""
        pose, twists = given
        base = FloatingBase(pose, (0.0, 0.0, 0.0), "body")
        for k, row in enumerate(twists):
            base.extend(taylor(row, k))
        base.frame = "world"
        turn, *rates = [[dot(way, row) for way in closure.directions.tolist()] for row in self._rows]
        self.add([row[:3] for row in pose[:3]], [list(cross(row[:3], turn[:3])) for row in pose[:3]])
        self.add([row[3:] for row in pose[:3]], [[dot(row[:3], turn[3:])] for row in pose[:3]])
        self.add(twists, rates)
        return base

    def _close(self, code: LoopCode, leading: Sequence[Scalar], state: Sequence[Scalar]) -> None:
        """Let the joints that are not coordinates follow."""
        closure, motions = code.closure, code.motions(leading, self.given)
        systems = [BlockSystem(code.system(m, columns)) for m, columns in zip(motions, code.columns_of)]
        known = {
            column: self._joints[0][place] * (1.0 / ratio) for column, (place, ratio) in code.known.items()
        }
        twist = NOTHING
        if self.base is not None and closure.tree.floating_base:
            turn = [dot(way, self._rows[0]) for way in closure.directions.tolist()]
            for i, x in enumerate(turn):
                twist = plus(twist, scaled(x, base_velocity(code, self.base, i, 0)))
        velocity = Velocity(code, motions, systems)
        velocity.extend(known, () if closure.tree.floating_base else self._rows[0], twist)
        for c in code.unknown:
            self.by_node[state[c].number] = velocity.leading[c][0]


class _EffortChanges(EffortCode):
    def changes(self, q: Stack, *others: Stack) -> Stack:
        """Return what `effort_changes` does."""
        n_given = 0 if self.closure.leader is None else 2
        given, (*loads, positions, change) = others[:n_given], others[n_given:]
        changed = _Change(self, q, given, positions, change)
        found = self.efforts(q, *changed.given, *loads, positions, [[*positions[0], 0.0]])[: self.order + 1]
        if self.closure.base_given and changed.base is not None:
            found = with_body_wrench(found, changed.base)
        return changed.of(found)


class _AccelerationChanges(AccelerationCode):
    def changes(self, q: Stack, *others: Stack) -> Stack:
        """Return what `acceleration_changes` does."""
        closure, n_given = self.closure, 0 if self.closure.leader is None else 2
        given, (*arguments, positions, change, pushed) = others[:n_given], others[n_given:]
        changed = _Change(self, q, given, positions, change)
        first = 6 if closure.base_given else 0
        changed.add(arguments[0], [row[first:] for row in pushed])
        if first:
            changed.add(arguments[1], [row[:6] for row in pushed])
        step, found = self.steps(q, *changed.given, *arguments, [[*positions[0], 0.0]])
        return changed.of(self._table(step, found, changed.base))

    def _table(self, step: Step, found: Stack, base: FloatingBase | None) -> Stack:
        """Return accelerations of the coordinates, and of the driven joints, by order."""
        drives = [
            [float(factorial(k)) * velocities[j] for j in self.closure.driven]
            for k, velocities in ((k, step.velocities(k)) for k in range(1, self.order + 2))
        ]
        if base is None:
            return [[*a, *b] for a, b in zip(found, drives)]
        now, rows = base.twist(0), []
        base.remember((now[0], now[1], now[2]), (now[3], now[4], now[5]))
        for k, (row, driven) in enumerate(zip(found, drives), 1):
            base.extend(taylor(row[:6], k))
            twist = [float(factorial(k)) * x for x in (*base.angular[k], *base.velocity[k])]
            of_rows = [dot(way, twist) for way in self.closure.directions.T.tolist()]
            parts = (of_rows, row[6:]) if self.closure.base_given else (row[6:], of_rows)
            rows.append([*parts[0], *parts[1], *driven])
        return rows


def with_body_wrench(efforts: Sequence[Sequence[Any]], base: FloatingBase) -> list[list[Any]]:
    """Return efforts whose first six columns are the base wrench in body axes, not spatial."""
    series = [[x * (1.0 / factorial(k)) for x in row[:6]] for k, row in enumerate(efforts)]
    moments = [(row[0], row[1], row[2]) for row in series]
    forces = [(row[3], row[4], row[5]) for row in series]
    result = []
    for k, row in enumerate(efforts):
        moment, force = base.wrench_to_body(moments, forces, k)
        result.append([*(x * float(factorial(k)) for x in (*moment, *force)), *row[6:]])
    return result
