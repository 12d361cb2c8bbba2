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

from hodyn_ros.codegen.emit import loop_text
from hodyn_ros.codegen.kernel import Function, Shape
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.codegen.sincos import sincos_function
from hodyn_ros.engine.large_trees.steps import Steps
from hodyn_ros.engine.large_trees.tree_loads import (
    ARGUMENTS,
    Loads,
    load_constants,
    load_lines,
    load_plan,
    load_texts,
    scratch_lines,
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
    PARENT,
    Record,
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
from hodyn_ros.engine.series.vectors import add, scale
from hodyn_ros.lie.motion import BaseRepresentation
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
        shared=("moment", "force"),
    )


def _body_texts(kind: JointKind, record: Record) -> list[Text]:
    """Write the steps of a body: outward to its motion and the wrench that moves it, inward to its torque."""
    steps, orders = Steps(kind.value, record), range(record.order + 1)
    recursion = Recursion([NOTHING, traced_body(steps.graph, kind)], (0.0, 0.0, 0.0))
    parent, body = recursion.bodies
    steps.begin("outward")
    parent.angular = steps.vectors("angular", record.order + 2, PARENT)
    parent.linear = steps.vectors("linear", record.order + 1, PARENT)
    for k in orders:
        parent.products.append(symmetric([steps.number("products", 6 * k + i, PARENT) for i in range(6)]))
    recursion.start_joint(body, steps.number("q"), steps.number("q", 1))
    for k in orders:
        recursion.move(body, k, steps.number("q", k + 2) * (1.0 / factorial(k)))
    _write_motion(steps, body)
    write_pose(steps, body)
    steps.begin("inward")
    body.moment, body.force = (steps.vectors(name, record.order + 1) for name in ("moment", "force"))
    moments, forces = (steps.vectors(name, record.order + 1, PARENT) for name in ("moment", "force"))
    for k in orders:
        steps.write("torque", [body.along_joint(body.moment[k], body.force[k]) * float(factorial(k))], k)
        moment, force = recursion.transmit(body, k, body.moment[k], body.force[k])
        moments[k], forces[k] = add(moments[k], moment), add(forces[k], force)
    steps.write_vectors("moment", moments, argument=PARENT)
    steps.write_vectors("force", forces, argument=PARENT)
    return steps.texts()


def write_pose(steps: Steps, body: Body) -> None:
    """Store what wrenches are carried through a joint by."""
    steps.write("turn", [body.turn.cosine, body.turn.sine])
    for name, series in (("cosines", body.turn.cosines), ("sines", body.turn.sines), ("slide", body.slide)):
        steps.write(name, series)


def _write_motion(steps: Steps, body: Body) -> None:
    wrenches = [
        body.wrench(k, scale(k + 1.0, body.angular[k + 1]), body.linear[k])
        for k in range(steps.record.order + 1)
    ]
    steps.write_vectors("angular", body.angular)
    steps.write_vectors("linear", body.linear)
    steps.write("products", [x for m in body.products for x in six(m)])
    steps.write_vectors("moment", [moment for moment, _ in wrenches])
    steps.write_vectors("force", [force for _, force in wrenches])


def _base_texts(record: Record, frame: BaseRepresentation) -> list[Text]:
    """Write the first step outward, from the motion of a floating base, and the last inward, to its wrench.

    Both take the arguments (pose, own record, constants, twists or wrench); the constants end with gravity.
    """
    steps, order = Steps("base", record, 4), record.order
    graph = steps.graph
    pose = [[graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    gravity = [graph.input(CONSTANTS, N_CONSTANTS + i) for i in range(3)]
    twists = [[graph.input(3, 6 * k + i) * (1.0 / factorial(k)) for i in range(6)] for k in range(order + 2)]
    base = FloatingBase(pose, gravity, frame)
    recursion = Recursion([traced_body(graph, JointKind.BASE)], (0.0, 0.0, 0.0), base)
    (body,) = recursion.bodies
    steps.begin("outward")
    recursion.start([], [], twists[0])
    for k in range(order + 1):
        recursion.multiply_velocities(body, k)
        recursion.move_base(k, twists[k + 1])
    _write_motion(steps, body)
    steps.write_vectors("velocity", base.velocity[: order + 1])
    steps.begin("inward")
    moments, forces = (steps.vectors(name, order + 1) for name in ("moment", "force"))
    for k in range(order + 1):
        wrench = [x * float(factorial(k)) for x in base.wrench_to_world(moments, forces, k)]
        steps.store([(3, 6 * k + i, x) for i, x in enumerate(wrench)])
    return steps.texts()


@cache
def _inverse_code(order: int, frame: BaseRepresentation | None, loaded: bool) -> MachineCode:
    """Compile the loops and steps of inverse dynamics of one order, with applied wrenches or without."""
    record = _record(order)
    texts = [text for kind in KINDS for text in _body_texts(kind, record)]
    texts += _base_texts(record, frame) if frame else []
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

    def __init__(
        self, model: TreeModel, order: int, frame: BaseRepresentation | None, loads: Loads = ()
    ) -> None:
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
