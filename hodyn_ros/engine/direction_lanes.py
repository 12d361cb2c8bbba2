"""Partial derivatives of trees beyond straight-line code: changes in one direction, many of them in lanes.

The code of inverse and of hybrid dynamics is differentiated as it was traced, in one direction, and runs over
all of them as over the samples of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Kernel, LaneKernel, Shape, Stack
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads, hybrid_arguments, tree_arguments
from hodyn_ros.engine.kernels import solved_motion
from hodyn_ros.engine.matrix_kernels import DYNAMIC_MATRICES, bracket_rows
from hodyn_ros.engine.second_partials import body_wrench, changed, displaced, size_of, traced_inverse
from hodyn_ros.engine.series.vectors import dot, from_taylor, to_derivatives
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_ROWS = 4096  # directions at a time, of all samples together


def inverse_dynamics_changes(model: TreeModel, order: int, loads: Loads = ()) -> LaneKernel | None:
    """Compile `q (order + 3, n), ..., change (order + 3, m) -> change of Q (order + 1, m)`.

    With a floating base its pose (4, 4) and body-fixed twists (order + 2, 6) follow q, its six entries stand
    before those of the joints: a body-fixed displacement, twist and derivatives, and the body-fixed wrench.
    Applied wrenches, (order + 1, 6) each, stay as they are. None where one direction has more
    operations than `STRAIGHT_LINE_LIMIT`.
    """

    def trace(q: Stack, *stacks: Stack) -> Stack:
        *inputs, change = stacks
        law = traced_inverse(model, order, loads, q, inputs)
        return law.along(law.results, change)

    return _compiled(model, order + 3, trace, tree_arguments(model, order + 3, loads))


def inverse_gradient_changes(model: TreeModel, order: int, loads: Loads = ()) -> LaneKernel | None:
    """Compile how the derivatives (order + 3, m) of `multiplier · Q` change.

    Arguments as above, the multiplier (order + 1, m) before the change. Of displacements of a base, half of
    what both orders of two give is the second derivative. None as above.
    """

    def trace(q: Stack, *stacks: Stack) -> Stack:
        *inputs, multiplier, change = stacks
        law = traced_inverse(model, order, loads, q, inputs)
        return law.along(law.gradient(multiplier), change)

    weights = "the multiplier", (order + 1, size_of(model))
    return _compiled(model, order + 3, trace, [*tree_arguments(model, order + 3, loads), weights])


def hybrid_dynamics_changes(model: TreeModel, order: int, setting: KernelSpec) -> LaneKernel | None:
    """Compile by how much what hybrid dynamics finds changes (order + 1, m).

    Arguments as of `hodyn_ros.engine.kernels.hybrid_dynamics`, the twists of a base body-fixed, then `change
    (order + 3, m)` of positions, velocities and derivatives of what is given. Of a base all are body-fixed;
    the wrench on it stays as it is in the world where the robot moves away. None as above.
    """
    assert setting.base != "spatial"

    def trace(state: Stack, inputs: Stack, *stacks: Stack) -> Stack:
        *rest, change = stacks
        recursion, solved = solved_motion(model, order, setting, state, inputs, rest)
        first = len(change[0]) - len(inputs[0])
        changes = _changes([*state, *inputs], [row[first:] for row in change])
        result = to_derivatives(solved)
        base = recursion.base
        if base is not None:
            pose, twist, of_base = rest[:3]
            pushed = [row[:6] for row in change[2:]]
            changes |= displaced(pose, change[0]) | _changes(twist, [change[1][:6]])
            changes |= _changes(
                of_base, pushed if setting.base_prescribed else base.wrenches_to_world(pushed)
            )
            for k, row in enumerate(result):
                rates = from_taylor(base.twist(k + 1), k + 1)
                row[:0] = body_wrench(recursion, k) if setting.base_prescribed else rates
        return changed(result, changes)

    return _compiled(model, order + 3, trace, hybrid_arguments(model, order, setting))


def matrix_changes(model: TreeModel, order: int) -> LaneKernel | None:
    """Compile `q (order + 2, n), ..., change (2, m) -> change of the rows of M, C and g`, order by order.

    Of positions, then velocities; with a floating base as above, its displacement being the same all the
    time: its twists w change by `[w, eta]` with all their derivatives. None as above.
    """
    trace_matrices, arguments = DYNAMIC_MATRICES.of_tree(model, order)

    def trace(q: Stack, *stacks: Stack) -> Stack:
        *inputs, (positions, velocities) = stacks
        result = trace_matrices(q, *inputs)
        first = len(positions) - len(q[0])
        changes = _changes(q[:2], [positions[first:], velocities[first:]])
        if first:
            pose, twists = inputs
            carried = [[dot(row, positions[:6]) for row in bracket_rows(twist)] for twist in twists]
            carried[0] = [a + b for a, b in zip(carried[0], velocities[:6])]
            changes |= displaced(pose, positions) | _changes(twists, carried)
        return changed(result, changes)

    return _compiled(model, 2, trace, arguments)


def in_all_directions(kernel: Kernel, arrays: Sequence[Array], batch: tuple[int, ...]) -> Array:
    """Return by how much results (..., i, j) change by row k of what changes, (..., i, k, j, m)."""
    rows, m = kernel.arguments[-1][1]
    directions = rows * m
    units = np.eye(directions).reshape(directions, rows, m)
    count = batch[0] if batch else 1
    result = np.empty((count, kernel.result[0], rows, m, m))
    for now, repeated in in_parts(count, arrays if batch else [array[None] for array in arrays], [units]):
        values = kernel.batch(*repeated).reshape(-1, rows, m, *kernel.result)
        result[now] = values.transpose(0, 3, 1, 4, 2)
    return result.reshape(*batch, *result.shape[1:])


def in_parts(
    count: int, shared: Sequence[Array], changes: Sequence[Array], most: int = _ROWS
) -> Iterator[tuple[slice, list[Array]]]:
    """Yield some of `count` samples at a time, that what they take stays in the cache, and their arrays.

    At `most` so many directions of all of them together. `shared` (N, ...) of each sample or (...) of all,
    `changes` (directions, ...) of all.
    """
    directions = len(changes[0])
    part = max(most // directions, 1)
    for start in range(0, count, part):
        now = slice(start, min(start + part, count))
        shape = now.stop - start, directions
        samples = [(array[now] if array.ndim == 3 else array[None])[:, None] for array in shared]
        repeated = [np.broadcast_to(array, (*shape, *array.shape[2:])) for array in samples]
        repeated += [np.broadcast_to(array, (*shape, *array.shape[1:])) for array in changes]
        rows = shape[0] * directions
        yield now, [np.ascontiguousarray(array).reshape(rows, *array.shape[2:]) for array in repeated]


def _compiled(
    model: TreeModel, rows: int, trace: Callable[..., Stack], arguments: Sequence[tuple[str, Shape]]
) -> LaneKernel | None:
    kernel = LaneKernel(trace, [*arguments, ("the change", (rows, size_of(model)))])
    return kernel if kernel.operations <= STRAIGHT_LINE_LIMIT else None


def _changes(values: Stack, changes: Sequence[Sequence[Any]]) -> dict[int, Any]:
    """Return how arguments change, by node."""
    return {x.number: change for row, new in zip(values, changes, strict=True) for x, change in zip(row, new)}
