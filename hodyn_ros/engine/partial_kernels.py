"""What is traced of the partial derivatives of forward and hybrid dynamics, of any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.kernel_spec import KernelSpec, hybrid_arguments
from hodyn_ros.engine.kernels import solved_motion
from hodyn_ros.engine.matrix_kernels import bracket_rows
from hodyn_ros.engine.recursions.articulated import ArticulatedRecursion
from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.recursions.partials import applied_loads, partial_derivatives
from hodyn_ros.engine.recursions.responses import responses
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.series import Series, by_order, coefficient
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True)
class Responses:
    """What hybrid dynamics finds at a state, and how it changes with what it is given.

    `results[r][k]` (m, m): the derivatives of the results; `motion[r][k]` (m, m): those of derivative r of
    all rates of velocities, which for `prescribed` ones are given. `accelerations` (order + 1, n) are those
    of the joints.
    """

    setting: KernelSpec
    recursion: ArticulatedRecursion
    accelerations: Stack
    results: list[list[Rows]]
    prescribed: Sequence[int]

    @property
    def motion(self) -> list[list[Rows]]:
        """How the rates of velocities change."""
        return [
            [self._of_motion(r, k, rows) for k, rows in enumerate(row)] for r, row in enumerate(self.results)
        ]

    def _of_motion(self, r: int, k: int, rows: Rows) -> Rows:
        moved = [list(row) for row in rows]
        for i in self.prescribed:
            moved[i] = [float(i == j and k == r + 2) for j in range(len(rows))]
        return moved


def traced_responses(
    model: TreeModel, order: int, setting: KernelSpec | None, state: Stack, inputs: Stack, *stacks: Stack
) -> Responses:
    """Solve hybrid dynamics and differentiate it; arguments as of `hybrid_dynamics_derivatives`."""
    setting = setting or KernelSpec.of(model)
    first = 6 if setting.base else 0
    prescribed = [
        *(range(first) if setting.base_prescribed else ()),
        *(first + j for j in setting.prescribed),
    ]
    recursion, result = solved_motion(model, order, setting, state, inputs, stacks)
    velocities, accelerations = _motion(recursion, order, state, inputs, result, setting)
    pose = stacks[0] if setting.base else None
    bodies = canonical_bodies(model)
    tree = Composite(bodies, model.gravity.tolist(), state[0], velocities, pose)
    rest = stacks[3 if setting.base else 0 :]
    loads = list(setting.loads)
    wrenches = [_wrench_series(values, order) for values in rest]
    if setting.base and not setting.base_prescribed:  # it stays as it is where the base moves
        loads.append((0, "spatial"))
        wrenches.append(_wrench_series(stacks[2], order))
    center = None if pose is None else [row[3] for row in pose[:3]]
    applied = applied_loads(tree, loads, wrenches, center)
    parts = partial_derivatives(tree, accelerations, applied)
    matrices = [parts.positions, parts.velocities, parts.accelerations]
    series = [
        [[[coefficient(x, k) for x in row] for row in part] for part in matrices] for k in range(order + 1)
    ]
    twists = [[coefficient(w, k) for w in velocities[:first]] for k in range(order + 1)] if first else []
    answer = responses(series, [bracket_rows(twist) for twist in twists], prescribed)
    moved = by_order([accelerations[first:]], order)
    return Responses(setting, recursion, moved, answer, prescribed)


def hybrid_dynamics_derivatives(model: TreeModel, order: int, setting: KernelSpec | None = None) -> Traceable:
    """Trace `state (2, n), given (order + 1, n), ... -> rows of dx^(r)/dy^(k)`: k within r, from zero.

    x is what hybrid dynamics finds, y^(0) displacements, y^(1) velocities, y^(k + 2) derivative k of what is
    given. Arguments as of `hodyn_ros.engine.kernels.hybrid_dynamics`. With a floating base six entries of x
    and y stand before those of the joints: its body-fixed displacement, twist and the derivatives of that,
    and the body-fixed wrench on it. By default, of forward dynamics without applied wrenches.
    """

    def trace(state: Stack, inputs: Stack, *stacks: Stack) -> Stack:
        answer = traced_responses(model, order, setting, state, inputs, *stacks).results
        return [row for blocks in answer for block in blocks for row in block]

    return trace, hybrid_arguments(model, order, setting or KernelSpec.of(model))


def _motion(
    recursion: ArticulatedRecursion,
    order: int,
    state: Stack,
    inputs: Stack,
    result: Stack,
    setting: KernelSpec,
) -> tuple[list[Series], list[Series]]:
    """Return velocities and accelerations of base and joints as series of order + 1 coefficients."""
    rates: list[list[Any]] = []
    if recursion.base is not None:
        base = recursion.base
        rates += [
            [part[k][i] for k in range(order + 2)] for part in (base.angular, base.velocity) for i in range(3)
        ]
    for joint in range(len(state[0])):
        column = [state[1][joint]]
        for k in range(order + 1):
            moved = (
                inputs[k][joint] * (1.0 / factorial(k)) if joint in setting.prescribed else result[k][joint]
            )
            column.append(moved * (1.0 / (k + 1)))
        rates.append(column)
    velocities = [Series(column[: order + 1]) for column in rates]
    accelerations = [Series([(k + 1.0) * column[k + 1] for k in range(order + 1)]) for column in rates]
    return velocities, accelerations


def _wrench_series(values: Stack, order: int) -> list[Series]:
    return [Series([values[k][i] * (1.0 / factorial(k)) for k in range(order + 1)]) for i in range(6)]
