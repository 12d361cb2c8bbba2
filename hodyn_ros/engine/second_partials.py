"""What is traced of second partial derivatives: in full, and contracted with a multiplier.

A law is traced and differentiated in its graph: once in reverse, which gives the gradient of `multiplier ·
results` by everything that the results depend on, then forward in every direction. Of two directions the one
that fewer operations depend on comes second; what both directions share is one node of the graph, and so are
entries that symmetry makes equal. Forward and hybrid dynamics follow from inverse dynamics along the motion
that they find, as `hodyn_ros.formulations.second_derivatives` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.differentiate import Scalar, derivatives, gradient
from hodyn_ros.codegen.kernel import Shape, Stack, Traceable
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.engine.kernel_spec import (
    KernelSpec,
    Loads,
    hybrid_arguments,
    motion_arguments,
    tree_arguments,
)
from hodyn_ros.engine.kernels import solved_efforts
from hodyn_ros.engine.partial_kernels import Responses, traced_responses
from hodyn_ros.engine.recursions.composite import Rows
from hodyn_ros.engine.recursions.kinematics import frame_motion
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.vectors import cross, dot, from_taylor, halves, taylor, to_derivatives
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.second_derivatives import answered, hybrid_weights
from hodyn_ros.lie.representations import Representation
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

Field = dict[int, Scalar]  # by how much nodes change where one coordinate does
Blocks = list[list[Rows]]  # of a symmetric matrix, by derivative orders of rows and of columns
# second derivatives of straight-line code, which compiles in a few seconds
_MOST_ENTRIES = {"inverse": 12_000, "hybrid": 4_000, "hybrid contracted": 4_000}


class Coordinates:
    """What derivatives are by: `fields[k][i]` says how nodes change with entry i of x^(k).

    x^(0) are positions, x^(k) derivative k of them. Displacements xi of a body, the entries `turning` of
    x^(0), move it from `pose` to `pose exp(xi)`, which second derivatives are of.
    """

    def __init__(self, fields: list[list[Field]], turning: Sequence[int] = ()) -> None:
        self.fields, self.turning = fields, turning

    @classmethod
    def of_tree(cls, q: Stack, pose: Stack | None = None, twists: Stack | None = None) -> Coordinates:
        """Return those of the motion of joints, after that of a floating base.

        Small body-fixed displacements of the base, and derivatives of its body-fixed twist.
        """
        fields = [[_unit(x) for x in row] for row in q]
        if pose is None:
            return cls(fields)
        units = [[float(i == j) for j in range(6)] for i in range(6)]
        fields[0] = [*(displaced(pose, unit) for unit in units), *fields[0]]
        for k, twist in enumerate(twists or [], 1):
            fields[k] = [*map(_unit, twist), *fields[k]]
        return cls(fields, range(6))

    @property
    def nodes(self) -> list[int]:
        """All nodes that change."""
        return list(dict.fromkeys(node for row in self.fields for field in row for node in field))

    def slopes(self, graph: Graph, results: Sequence[Scalar], weights: Sequence[Scalar]) -> Rows:
        """Return the derivatives of `weights · results` by every coordinate."""
        nodes = self.nodes
        result = gradient(graph, results, weights, [Traced(graph, node) for node in nodes])
        by_node = dict(zip(nodes, result))
        return [
            [_sum(x * by_node[node] for node, x in field.items()) for field in row] for row in self.fields
        ]


def hessian(
    graph: Graph,
    results: Sequence[Scalar],
    weights: Sequence[Scalar],
    by: Coordinates,
    held: Sequence[int] = (),
) -> Blocks:
    """Return the second derivatives of `weights · results` [k][l] (m, m), by x^(k) and x^(l).

    Nodes that are `held` do not change but by a coordinate of their own.
    """
    still: Field = dict.fromkeys([*by.nodes, *held], 0.0)
    slopes = by.slopes(graph, results, weights)
    size = len(by.fields[0])
    blocks: Blocks = [[[[0.0] * size for _ in range(size)] for _ in slopes] for _ in slopes]
    last = max(by.turning, default=-1)
    for l, row in enumerate(by.fields):
        for j, field in enumerate(row):
            # in a block on the diagonal, the entries of joints inward of it
            own = max(last, j) + 1 if l == 0 and j in by.turning else j + 1
            asked = [slopes[l][:own], *slopes[l + 1 :]]
            result = iter(derivatives(graph, [x for part in asked for x in part], still | field))
            for k, part in enumerate(asked, l):
                for i, x in enumerate([next(result) for _ in part]):
                    blocks[k][l][i][j] = x
                    if not (k == l == 0 and i in by.turning and j in by.turning):
                        blocks[l][k][j][i] = x
    first = blocks[0][0]
    for i in by.turning:  # of displacements the order counts; those of exp(xi) are between both
        for j in range(by.turning[0], i):
            first[i][j] = first[j][i] = (first[i][j] + first[j][i]) * 0.5
    return blocks


class TracedLaw:
    """Results of a law, with the coordinates that they are differentiated by."""

    def __init__(self, results: Stack, by: Coordinates) -> None:
        self.results, self.by = results, by
        self._numbers = [x for row in results for x in row]
        self.graph: Graph = next(x.graph for x in self._numbers if isinstance(x, Traced))

    def contracted(self, weights: Stack, held: Sequence[int] = ()) -> Blocks:
        """Return the second derivatives of `weights · results`."""
        return hessian(self.graph, self._numbers, [x for row in weights for x in row], self.by, held)

    def gradient(self, weights: Stack) -> Rows:
        """Return the derivatives of `weights · results`."""
        return self.by.slopes(self.graph, self._numbers, [x for row in weights for x in row])

    def along(self, values: Stack, change: Stack) -> Stack:
        """Return how values change where entry i of x^(k) does by `change[k][i]`."""
        field: Field = {}
        for row, factors in zip(self.by.fields, change, strict=True):
            for one, factor in zip(row, factors, strict=True):
                for node, x in one.items():
                    field[node] = field[node] + factor * x if node in field else factor * x
        return changed(values, field)

    def each(self, held: Sequence[int] = ()) -> list[list[Blocks]]:
        """Return the second derivatives of every entry of the results."""
        rows, columns = len(self.results), len(self.results[0])
        return [
            [self.contracted(_one(rows, columns, r, i), held) for i in range(columns)] for r in range(rows)
        ]


def changed(values: Stack, changes: Field) -> Stack:
    """Return how values change where nodes do."""
    outputs = [x for row in values for x in row]
    traced = (x for x in (*outputs, *changes.values()) if isinstance(x, Traced))  # outputs may be constants
    graph: Graph = next(traced).graph
    result = iter(derivatives(graph, outputs, changes))
    return [[next(result) for _ in row] for row in values]


def displaced(pose: Stack, change: Sequence[Scalar]) -> Field:
    """Return how a pose changes by a small body-fixed displacement: `dR = R w~, dp = R v`."""
    turn, shift = halves(change)
    moved = [[*cross(row, turn), dot(row[:3], shift)] for row in pose[:3]]
    return {x.number: new for row, changes in zip(pose[:3], moved) for x, new in zip(row, changes)}


def body_wrench(recursion: Recursion, k: int) -> list[Scalar]:
    """Return derivative k of the body-fixed wrench that moves a floating base; nothing without one."""
    if recursion.base is None:
        return []
    body = recursion.bodies[0]
    return from_taylor([*body.moment[k], *body.force[k]], k)


def _one(rows: int, columns: int, r: int, i: int) -> Stack:
    return [[float((k, j) == (r, i)) for j in range(columns)] for k in range(rows)]


Law = Literal["inverse", "hybrid", "hybrid contracted"]


def has_many_entries(model: TreeModel, order: int, of: Law) -> bool:
    """Say whether there are so many second derivatives that straight-line code takes long to compile."""
    size = size_of(model)
    results = 1 if of == "hybrid contracted" else (order + 1) * size
    return results * ((order + 3) * size) ** 2 > _MOST_ENTRIES[of]


def _few_entries(model: TreeModel, order: int, what: str, of: Law) -> None:
    if has_many_entries(model, order, of):
        raise InputError(
            f"robot {model.name!r} is too large to compile {what} of order {order} in seconds; the call "
            f"robot.{what}(...) computes it"
        )


# --- inverse dynamics


def inverse_dynamics_hessian(model: TreeModel, order: int, loads: Loads = ()) -> Traceable:
    """Trace `q (order + 3, n), ..., multiplier (order + 1, m) -> rows of d²(multiplier · Q)/dx^(k)dx^(l)`.

    k, then l, then rows, each from zero, (order + 3, order + 3, m) rows. With a floating base its pose and
    body-fixed twists follow q, and the body-fixed wrench on it stands before the torques; then applied
    wrenches (order + 1, 6) each, which stay as they are given.
    """

    def trace(q: Stack, *stacks: Stack) -> Stack:
        *inputs, multiplier = stacks
        return _rows(traced_inverse(model, order, loads, q, inputs).contracted(multiplier))

    return _with_multiplier(tree_arguments(model, order + 3, loads), order, size_of(model), trace)


def inverse_dynamics_second_derivatives(model: TreeModel, order: int, loads: Loads = ()) -> Traceable:
    """Trace `q (order + 3, n), ... -> rows of d²Q_i^(r)/dx^(k)dx^(l)`: i within l within k within r."""

    def trace(q: Stack, *inputs: Stack) -> Stack:
        return _all_rows(np.array(traced_inverse(model, order, loads, q, inputs).each(), dtype=object))

    _few_entries(model, order, "inverse_dynamics_second_derivatives", "inverse")
    return trace, tree_arguments(model, order + 3, loads)


def size_of(model: TreeModel) -> int:
    """Return the number of velocities."""
    return model.n_joints + (6 if model.floating_base else 0)


def _setting(model: TreeModel, loads: Loads) -> KernelSpec:
    return KernelSpec(base="body_fixed" if model.floating_base else None, loads=tuple(loads))


def traced_inverse(
    model: TreeModel, order: int, loads: Loads, q: Stack, inputs: Sequence[Stack]
) -> TracedLaw:
    """Return inverse dynamics, the body-fixed wrench on a floating base before the torques."""
    recursion, torques = solved_efforts(model, order, _setting(model, loads), q, inputs)
    results = [[*body_wrench(recursion, k), *row] for k, row in enumerate(torques)]
    return TracedLaw(results, Coordinates.of_tree(q, *(inputs[:2] if model.floating_base else ())))


# --- forward and hybrid dynamics


def hybrid_dynamics_hessian(model: TreeModel, order: int, setting: KernelSpec | None = None) -> Traceable:
    """Trace `state (2, n), inputs (order + 1, n), ..., multiplier (order + 1, m) -> rows`.

    Second derivatives of `multiplier · results` by y^(k) and y^(l), rows as of `inverse_dynamics_hessian`;
    arguments, results and y as of `hodyn_ros.engine.partial_kernels.hybrid_dynamics_derivatives`, but
    for wrenches that y adds on a base, which turn with it.
    """

    def trace(state: Stack, *stacks: Stack) -> Stack:
        *inputs, multiplier = stacks
        responses = traced_responses(model, order, setting, state, *inputs)
        weights = hybrid_weights(
            responses.results, np.array(multiplier, dtype=object), responses.prescribed
        ).tolist()
        held = [x.number for row in weights for x in row if isinstance(x, Traced)]
        blocks = np.array(_along(model, order, responses).contracted(weights, held), dtype=object)
        return _rows(answered(blocks, responses.results, responses.prescribed))

    _few_entries(model, order, "forward_dynamics_hessian", "hybrid contracted")
    arguments = hybrid_arguments(model, order, setting or KernelSpec.of(model))
    return _with_multiplier(arguments, order, size_of(model), trace)


def hybrid_dynamics_second_derivatives(
    model: TreeModel, order: int, setting: KernelSpec | None = None
) -> Traceable:
    """Trace `state (2, n), inputs (order + 1, n), ... -> rows of second derivatives` of all results."""
    size = size_of(model)

    def trace(state: Stack, *inputs: Stack) -> Stack:
        responses = traced_responses(model, order, setting, state, *inputs)
        each = np.array(_along(model, order, responses).each(), dtype=object)
        of_efforts = answered(each, responses.results, responses.prescribed).reshape((order + 1) * size, -1)
        units = [_one(order + 1, size, r, i) for r in range(order + 1) for i in range(size)]
        weights = hybrid_weights(responses.results, np.array(units, dtype=object), responses.prescribed)
        return _all_rows((weights.reshape(len(units), -1) @ of_efforts).reshape(each.shape))

    _few_entries(model, order, "forward_dynamics_second_derivatives", "hybrid")
    return trace, hybrid_arguments(model, order, setting or KernelSpec.of(model))


def _along(model: TreeModel, order: int, responses: Responses) -> TracedLaw:
    """Return inverse dynamics along the motion that results, what changes it being that motion alone."""
    return traced_inverse(model, order, responses.loads, responses.q, responses.inputs)


# --- kinematics


def frame_motion_derivatives(
    model: TreeModel, order: int, frames: Sequence[Frame], representation: Representation
) -> Traceable:
    """Trace `q (order + 1, n), ... -> rows (m,)` of derivatives of what forward kinematics returns.

    By x^(k), within the numbers of a frame, within frames: (frames, 16 + 6 order, order + 1) rows. With a
    floating base its pose and body-fixed twists (order, 6) follow q.
    """

    def trace(q: Stack, *inputs: Stack) -> Stack:
        law = _frames(model, order, frames, representation, q, inputs)
        outputs = [x for row in law.results for x in row]
        result = [[derivatives(law.graph, outputs, field) for field in row] for row in law.by.fields]
        return [[one[x] for one in row] for x in range(len(outputs)) for row in result]

    return trace, motion_arguments(order + 1, model.n_joints, model.floating_base)


def frame_motion_hessian(
    model: TreeModel, order: int, frames: Sequence[Frame], representation: Representation
) -> Traceable:
    """Trace `q (order + 1, n), ..., multiplier (frames, 16 + 6 order) -> rows of second derivatives`.

    Of `multiplier · result` of forward kinematics by x^(k) and x^(l): (order + 1, order + 1, m) rows (m,).
    """

    def trace(q: Stack, *stacks: Stack) -> Stack:
        *inputs, multiplier = stacks
        return _rows(_frames(model, order, frames, representation, q, inputs).contracted(multiplier))

    return trace, [
        *motion_arguments(order + 1, model.n_joints, model.floating_base),
        ("the multiplier", (len(frames), 16 + 6 * order)),
    ]


def _frames(
    model: TreeModel,
    order: int,
    frames: Sequence[Frame],
    representation: Representation,
    q: Stack,
    inputs: Sequence[Stack],
) -> TracedLaw:
    trace, _ = frame_motion(model, order, frames, representation)
    if not inputs:
        return TracedLaw(trace(q), Coordinates.of_tree(q))
    pose, twists = inputs
    base = FloatingBase(pose, (0.0, 0.0, 0.0), "body_fixed")
    for k, twist in enumerate(twists):
        base.extend(taylor(twist, k))
    base.frame = "spatial"
    spatial = to_derivatives([base.twist(k) for k in range(order)])
    return TracedLaw(trace(q, pose, spatial), Coordinates.of_tree(q, pose, twists))


# --- what all of them need


def _with_multiplier(
    arguments: Sequence[tuple[str, Shape]], order: int, size: int, trace: Callable[..., Stack]
) -> Traceable:
    return trace, [*arguments, ("the multiplier", (order + 1, size))]


def _rows(blocks: Blocks | NDArray[Any]) -> Stack:
    return [list(row) for line in blocks for block in line for row in block]


def _all_rows(each: NDArray[Any]) -> Stack:
    """Return rows by r, k, l and i of second derivatives (r, i, k, l, m, m)."""
    rows: Stack = np.moveaxis(each, 1, 3).reshape(-1, each.shape[-1]).tolist()
    return rows


def _unit(x: Traced) -> Field:
    return {x.number: -1.0 if x.negative else 1.0}


def _sum(terms: Any) -> Scalar:
    total: Scalar = 0.0
    for term in terms:
        total = total + term
    return total
