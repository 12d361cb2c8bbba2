"""One compiled kernel for trees of any size: a loop over bodies instead of straight-line code.

The recursion is traced for a single body of every kind of joint, with its constants and its parent's motion
in memory, and a small loop calls the right one body by body, outward and back inward. The code depends on the
order alone; it is compiled once, whatever the robot. It takes about twice the time of straight-line code per
body.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.codegen.emit import function_text, loop_text
from hodyn_ros.engine.codegen.kernel import Function, Shape
from hodyn_ros.engine.codegen.llvm import MachineCode, compile_text
from hodyn_ros.engine.codegen.object_cache import ObjectCache
from hodyn_ros.engine.codegen.tracer import Graph
from hodyn_ros.engine.large_trees.tree_loads import (
    ARGUMENTS,
    Loads,
    load_constants,
    load_lines,
    load_plan,
    load_texts,
    scratch_lines,
    traced_base,
)
from hodyn_ros.engine.large_trees.tree_loops import (
    base_lines,
    give_base,
    give_column,
    pass_lines,
    take_column,
    tree_text,
)
from hodyn_ros.engine.large_trees.tree_memory import (
    CONSTANTS,
    KINDS,
    N_CONSTANTS,
    NOTHING,
    OWN,
    PARENT,
    Record,
    Store,
    Text,
    constants_of,
    six,
    symmetric,
    traced_body,
)
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.sincos import sincos_function
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.engine.series.vectors import add, scale
from hodyn_ros.lie.motion import Frame
from hodyn_ros.model.tree import JointKind, TreeModel


def _record(order: int) -> Record:
    vectors = 3 * (order + 1)
    return Record(
        order,
        {
            "q": order + 3,
            "angular": vectors + 3,
            "linear": vectors,
            "products": 2 * vectors,
            "turn": 2,
            "cosines": order + 1,
            "sines": order + 1,
            "slide": order + 1,
            "moment": vectors,
            "force": vectors,
            "torque": order + 1,
            "velocity": vectors,
        },
    )


def _outward_text(kind: JointKind, record: Record) -> Text:
    """Write the step from the parent's motion to the body's, and to the wrench that moves it."""
    graph, orders = Graph(), range(record.order + 1)
    recursion = Recursion([NOTHING, traced_body(graph, kind)], (0.0, 0.0, 0.0))
    parent, body = recursion.bodies
    parent.angular = record.read_vectors(graph, PARENT, "angular", record.order + 2)
    parent.linear = record.read_vectors(graph, PARENT, "linear", record.order + 1)
    for k in orders:
        parent.products.append(
            symmetric([record.read(graph, PARENT, "products", 6 * k + i) for i in range(6)])
        )
    q = [record.read(graph, OWN, "q", k) for k in range(record.order + 3)]
    recursion.start_joint(body, q[0], q[1])
    for k in orders:
        recursion.move(body, k, q[k + 2] * (1.0 / factorial(k)))
    stores = [
        *_motion_stores(body, record),
        *record.write(OWN, "turn", [body.turn.cosine, body.turn.sine]),
        *record.write(OWN, "cosines", body.turn.cosines[: record.order + 1]),
        *record.write(OWN, "sines", body.turn.sines[: record.order + 1]),
        *record.write(OWN, "slide", body.slide[: record.order + 1]),
    ]
    return function_text(f"outward_{kind.value}", graph, stores, 3)


def _motion_stores(body: Body, record: Record) -> list[Store]:
    wrenches = [
        body.wrench(k, scale(k + 1.0, body.angular[k + 1]), body.linear[k]) for k in range(record.order + 1)
    ]
    return [
        *record.write_vectors(OWN, "angular", body.angular),
        *record.write_vectors(OWN, "linear", body.linear),
        *record.write(OWN, "products", [x for m in body.products for x in six(m)]),
        *record.write_vectors(OWN, "moment", [moment for moment, _ in wrenches]),
        *record.write_vectors(OWN, "force", [force for _, force in wrenches]),
    ]


def _inward_text(kind: JointKind, record: Record) -> Text:
    """Write the step from the wrench a joint transmits to its torque and to the parent's wrench."""
    graph, count = Graph(), record.order + 1
    recursion = Recursion([NOTHING, traced_body(graph, kind)], (0.0, 0.0, 0.0))
    body = recursion.bodies[1]
    cosine, sine = (record.read(graph, OWN, "turn", i) for i in range(2))
    series = [
        [record.read(graph, OWN, name, k) for k in range(count)] for name in ("cosines", "sines", "slide")
    ]
    body.turn = Turn.restored(cosine, sine, series[0], series[1])
    body.slide = series[2]
    body.moment = record.read_vectors(graph, OWN, "moment", count)
    body.force = record.read_vectors(graph, OWN, "force", count)
    moments = record.read_vectors(graph, PARENT, "moment", count)
    forces = record.read_vectors(graph, PARENT, "force", count)
    torques = []
    for k in range(count):
        torques.append(body.along_joint(body.moment[k], body.force[k]) * float(factorial(k)))
        moment, force = recursion.transmit(body, k, body.moment[k], body.force[k])
        moments[k], forces[k] = add(moments[k], moment), add(forces[k], force)
    stores = [
        *record.write(OWN, "torque", torques),
        *record.write_vectors(PARENT, "moment", moments),
        *record.write_vectors(PARENT, "force", forces),
    ]
    return function_text(f"inward_{kind.value}", graph, stores, 3)


def _base_texts(record: Record, frame: Frame) -> list[Text]:
    """Write the first step outward, from the motion of a floating base, and the last inward, to its wrench.

    Both take the arguments (pose, own record, constants, twists or wrench); the constants end with gravity.
    """
    graph, order = Graph(), record.order
    pose = [[graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    gravity = [graph.input(CONSTANTS, N_CONSTANTS + i) for i in range(3)]
    twists = [[graph.input(3, 6 * k + i) * (1.0 / factorial(k)) for i in range(6)] for k in range(order + 2)]
    recursion = Recursion(
        [traced_body(graph, JointKind.BASE)], (0.0, 0.0, 0.0), FloatingBase(pose, gravity, frame)
    )
    recursion.start([], [], twists[0])
    (body,) = recursion.bodies
    for k in range(order + 1):
        recursion.multiply_velocities(body, k)
        recursion.move_base(k, twists[k + 1])
    assert recursion.base is not None
    velocity = record.write_vectors(OWN, "velocity", recursion.base.velocity[: order + 1])
    outward = function_text("outward_base", graph, [*_motion_stores(body, record), *velocity], 4)

    graph = Graph()
    base = traced_base(graph, record, order + 1)
    moments = record.read_vectors(graph, OWN, "moment", order + 1)
    forces = record.read_vectors(graph, OWN, "force", order + 1)
    wrench = [
        (3, 6 * k + i, x * float(factorial(k)))
        for k in range(order + 1)
        for i, x in enumerate(base.wrench_to_world(moments, forces, k))
    ]
    return [outward, function_text("inward_base", graph, wrench, 4)]


@cache
def _inverse_code(order: int, frame: Frame | None, loaded: bool) -> MachineCode:
    """Compile the loops and steps of inverse dynamics of one order, with applied wrenches or without."""
    record = _record(order)
    texts = [make(kind, record) for kind in KINDS for make in (_outward_text, _inward_text)]
    first, columns = (1, 6) if frame else (0, 0)
    loads: list[str] = []
    if loaded:
        moment, force = (record.places[name] for name in ("moment", "force"))
        targets = [(k, moment + 3 * k, force + 3 * k) for k in range(order + 1)]
        texts += load_texts("load", record, order + 1, targets, frame is not None)
        loads = [*scratch_lines(order), *load_lines("load", record, frame is not None)]
    body = [
        *pass_lines("outward", "outward", first, record, take_column("q", record.places["q"], order + 3)),
        *loads,
        *pass_lines(
            "inward",
            "inward",
            first,
            record,
            after=give_column(record.places["torque"], 0, order + 1, columns),
        ),
    ]
    if frame:
        texts += _base_texts(record, frame)
        body = [
            f"%wrench = alloca double, i64 {6 * (order + 1)}, align 8",
            *base_lines(record),
            "call void @outward_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twists)",
            *body,
            "call void @inward_base(ptr %pose, ptr %base, ptr %base_constants, ptr %wrench)",
            *give_base("%wrench", 0, order + 1),
        ]
    arguments = ["q", *(["pose", "twists"] if frame else []), *(ARGUMENTS if loaded else [])]
    return tree_code(tree_text("hodyn_tree", arguments, record, body), texts)


def tree_code(loops: str, steps: Sequence[Text]) -> MachineCode:
    """Compile loops with their steps; kept on disk, as they serve every robot."""
    widths = sorted(set().union(*(width for _, width in steps)))
    parts = [loops, *(text for text, _ in steps), *(sincos_function(width) for width in widths)]
    return compile_text("".join(parts), "hodyn_tree", ObjectCache.default())


class TreeFunction(Function):
    """A function of one robot through generic code, which gets the robot's plan and constants.

    The last arguments are applied wrenches where there are `loads`. `prescribed` are the joints that take the
    steps `PRESCRIBED`.
    """

    def __init__(
        self,
        model: TreeModel,
        arguments: Sequence[tuple[str, Shape]],
        result: Shape,
        code: MachineCode,
        loads: Loads = (),
        prescribed: Collection[int] = (),
    ) -> None:
        bodies = canonical_bodies(model)
        plan = [
            (
                KINDS.index(kind) + len(KINDS) * (body.joint in prescribed) if kind in KINDS else -1,
                body.parent + 1,
            )
            for kind, body in zip(model.kinds, bodies)
        ]
        gravity = model.gravity.tolist()
        ground = [-g for g in gravity] + [0.0] * N_CONSTANTS
        constants = [ground, *[[*constants_of(body), *gravity] for body in bodies]]
        # what the code below points to has to live as long
        self._data = [np.array(plan, dtype=np.int64), np.array(constants, dtype=np.float64)]
        self._tree_code = code
        given = [f"ptr %a{i}" for i in range(len(arguments))]
        lines = [f"define void @hodyn_kernel({', '.join(given)}, ptr %out) {{"]
        passed = given
        if loads:
            plain = len(given) - len(loads)
            self._data += [load_plan(model, bodies, loads), load_constants(bodies, loads)]
            passed = [*given[:plain], "ptr %applied", *map(_pointer, self._data[2:])]
            lines.append(f"%applied = alloca ptr, i64 {len(loads)}, align 8")
            for i, wrench in enumerate(given[plain:]):
                lines += [
                    f"%load{i} = getelementptr ptr, ptr %applied, i64 {i}",
                    f"store {wrench}, ptr %load{i}, align 8",
                ]
        passed = [*passed, "ptr %out", *map(_pointer, self._data[:2])]
        lines += [
            f"call void inttoptr (i64 {code.address} to ptr)({', '.join(passed)}, i64 {model.n_bodies}, "
            f"i64 {model.n_joints})",
            "ret void",
            "}",
        ]
        super().__init__("\n".join(lines) + "\n", arguments, result, cache=None)

    def _batch_text(self) -> str:
        shapes = [shape for _, shape in self.arguments]
        return loop_text(self.code.address, [rows * columns for rows, columns in (*shapes, self.result)])


class TreeKernel(TreeFunction):
    """Inverse dynamics by the generic code, with the arguments of `kernels.inverse_dynamics`."""

    def __init__(self, model: TreeModel, order: int, frame: Frame | None, loads: Loads = ()) -> None:
        arguments: list[tuple[str, Shape]] = [("q", (order + 3, model.n_joints))]
        if frame:
            arguments += [("pose", (4, 4)), ("twists", (order + 2, 6))]
        arguments += load_arguments(loads, order)
        columns = model.n_joints + (6 if frame else 0)
        code = _inverse_code(order, frame, bool(loads))
        super().__init__(model, arguments, (order + 1, columns), code, loads)


def load_arguments(loads: Loads, order: int) -> list[tuple[str, Shape]]:
    """Return names and shapes of applied wrenches."""
    return [(f"wrench on body {body}", (order + 1, 6)) for body, _ in loads]


def _pointer(array: NDArray[Any]) -> str:
    return f"ptr inttoptr (i64 {array.ctypes.data} to ptr)"
