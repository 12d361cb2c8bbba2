"""One compiled kernel for trees of any size: a loop over bodies instead of straight-line code.

The recursion is traced for a single body of every kind of joint, with its constants and its parent's motion
in memory, and a small loop calls the right one body by body, outward and back inward. The code depends on the
order alone; it is compiled once, whatever the robot. It takes about twice the time of straight-line code per
body.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from math import factorial
from typing import Any

import numpy as np

from hodyn_ros.engine.base import FloatingBase
from hodyn_ros.engine.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.engine.emit import function_text, loop_text
from hodyn_ros.engine.kernel import Function, Shape
from hodyn_ros.engine.llvm import MachineCode, compile_text
from hodyn_ros.engine.object_cache import ObjectCache
from hodyn_ros.engine.recursion import Body, Recursion
from hodyn_ros.engine.sincos import sincos_function
from hodyn_ros.engine.tracer import Graph
from hodyn_ros.engine.turn import Turn
from hodyn_ros.engine.vectors import Vector, add, scale
from hodyn_ros.model.tree import JointKind, TreeModel
from hodyn_ros.motion import Frame

_KINDS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.HELICAL)
_PARENT, _OWN, _CONSTANTS = range(3)  # arguments of the traced functions
_N_CONSTANTS = 24


class _Record:
    """Where the series of a body lie in its record in memory."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.places: dict[str, int] = {}
        self.size = 0
        vectors = 3 * (order + 1)
        for name, size in {
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
        }.items():
            self.places[name] = self.size
            self.size += size

    def read(self, graph: Graph, argument: int, name: str, index: int) -> Any:
        return graph.input(argument, self.places[name] + index)

    def read_vectors(self, graph: Graph, argument: int, name: str, count: int) -> list[Vector]:
        scalars = [self.read(graph, argument, name, i) for i in range(3 * count)]
        return [(scalars[i], scalars[i + 1], scalars[i + 2]) for i in range(0, 3 * count, 3)]

    def write(self, argument: int, name: str, values: Sequence[Any]) -> list[tuple[int, int, Any]]:
        return [(argument, self.places[name] + i, value) for i, value in enumerate(values)]

    def write_vectors(self, argument: int, name: str, series: Sequence[Vector]) -> list[tuple[int, int, Any]]:
        return self.write(argument, name, [x for vector in series for x in vector])


def _constants_of(body: CanonicalBody) -> list[float]:
    """Lay out the constants of a body as `_traced_body` reads them."""
    s = body.second_moment
    return [
        *body.rotation.ravel(),
        *body.translation,
        body.offset,
        body.translation_gain,
        body.mass,
        *body.first_moment,
        *(s[0, 0], s[1, 1], s[2, 2], s[0, 1], s[0, 2], s[1, 2]),
    ]


def _traced_body(graph: Graph, kind: JointKind) -> CanonicalBody:
    """Return a body whose constants are read from memory, but for those that regrouping leaves zero."""
    c: list[Any] = [graph.input(_CONSTANTS, i) for i in range(_N_CONSTANTS)]
    revolute, prismatic, base = (kind is k for k in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.BASE))
    rotation = np.array(c[:9], dtype=object).reshape(3, 3)
    rotation[2, 0] = 0.0
    xx, yy, zz, xy, xz, yz = [0.0] * 6 if prismatic else c[18:24]
    x, y, z = c[15:18]
    if revolute:
        z = 0.0
    if not base:
        zz = 0.0
    return CanonicalBody(
        parent=-1 if base else 0,
        joint=-1 if base else 0,
        rotation=rotation,
        translation=np.array(c[9:12], dtype=object),
        offset=c[12],
        rotation_gain=0.0 if prismatic else 1.0,
        translation_gain=0.0 if revolute else 1.0 if prismatic else c[13],
        mass=0.0 if revolute else c[14],
        first_moment=np.array([x, y, z], dtype=object),
        second_moment=np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object),
        body_in_frame=np.eye(4),
    )


_NOTHING = CanonicalBody(
    -1, -1, np.eye(3), np.zeros(3), 0.0, 0.0, 0.0, 0.0, np.zeros(3), np.zeros((3, 3)), np.eye(4)
)


def _outward_text(kind: JointKind, record: _Record) -> tuple[str, set[int]]:
    """Write the step from the parent's motion to the body's, and to the wrench that moves it."""
    graph, orders = Graph(), range(record.order + 1)
    recursion = Recursion([_NOTHING, _traced_body(graph, kind)], (0.0, 0.0, 0.0))
    parent, body = recursion.bodies
    parent.angular = record.read_vectors(graph, _PARENT, "angular", record.order + 2)
    parent.linear = record.read_vectors(graph, _PARENT, "linear", record.order + 1)
    for k in orders:
        xx, yy, zz, xy, xz, yz = (record.read(graph, _PARENT, "products", 6 * k + i) for i in range(6))
        parent.products.append(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    q = [record.read(graph, _OWN, "q", k) for k in range(record.order + 3)]
    recursion.start_joint(body, q[0], q[1])
    for k in orders:
        recursion.move(body, k, q[k + 2] * (1.0 / factorial(k)))
    stores = [
        *_motion_stores(body, record),
        *record.write(_OWN, "turn", [body.turn.cosine, body.turn.sine]),
        *record.write(_OWN, "cosines", body.turn.cosines[: record.order + 1]),
        *record.write(_OWN, "sines", body.turn.sines[: record.order + 1]),
        *record.write(_OWN, "slide", body.slide[: record.order + 1]),
    ]
    return function_text(f"outward_{kind.value}", graph, stores, 3)


def _motion_stores(body: Body, record: _Record) -> list[tuple[int, int, Any]]:
    products = [(m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2]) for m in body.products]
    wrenches = [
        body.wrench(k, scale(k + 1.0, body.angular[k + 1]), body.linear[k]) for k in range(record.order + 1)
    ]
    return [
        *record.write_vectors(_OWN, "angular", body.angular),
        *record.write_vectors(_OWN, "linear", body.linear),
        *record.write(_OWN, "products", [x for row in products for x in row]),
        *record.write_vectors(_OWN, "moment", [moment for moment, _ in wrenches]),
        *record.write_vectors(_OWN, "force", [force for _, force in wrenches]),
    ]


def _inward_text(kind: JointKind, record: _Record) -> tuple[str, set[int]]:
    """Write the step from the wrench a joint transmits to its torque and to the parent's wrench."""
    graph, count = Graph(), record.order + 1
    recursion = Recursion([_NOTHING, _traced_body(graph, kind)], (0.0, 0.0, 0.0))
    body = recursion.bodies[1]
    cosine, sine = (record.read(graph, _OWN, "turn", i) for i in range(2))
    series = [
        [record.read(graph, _OWN, name, k) for k in range(count)] for name in ("cosines", "sines", "slide")
    ]
    body.turn = Turn.restored(cosine, sine, series[0], series[1])
    body.slide = series[2]
    body.moment = record.read_vectors(graph, _OWN, "moment", count)
    body.force = record.read_vectors(graph, _OWN, "force", count)
    moments = record.read_vectors(graph, _PARENT, "moment", count)
    forces = record.read_vectors(graph, _PARENT, "force", count)
    torques = []
    for k in range(count):
        torques.append(body.along_joint(body.moment[k], body.force[k]) * float(factorial(k)))
        moment, force = recursion.transmit(body, k, body.moment[k], body.force[k])
        moments[k], forces[k] = add(moments[k], moment), add(forces[k], force)
    stores = [
        *record.write(_OWN, "torque", torques),
        *record.write_vectors(_PARENT, "moment", moments),
        *record.write_vectors(_PARENT, "force", forces),
    ]
    return function_text(f"inward_{kind.value}", graph, stores, 3)


def _base_texts(record: _Record, frame: Frame) -> list[tuple[str, set[int]]]:
    """Write the first step outward, from the motion of a floating base, and the last inward, to its wrench.

    Both take the arguments (pose, own record, constants, twists or wrench); the constants end with gravity.
    """
    graph, order = Graph(), record.order
    pose = [[graph.input(_PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    gravity = [graph.input(_CONSTANTS, _N_CONSTANTS + i) for i in range(3)]
    twists = [[graph.input(3, 6 * k + i) * (1.0 / factorial(k)) for i in range(6)] for k in range(order + 2)]
    recursion = Recursion(
        [_traced_body(graph, JointKind.BASE)], (0.0, 0.0, 0.0), FloatingBase(pose, gravity, frame)
    )
    recursion.start([], [], twists[0])
    (body,) = recursion.bodies
    for k in range(order + 1):
        recursion.multiply_velocities(body, k)
        recursion.move_base(k, twists[k + 1])
    assert recursion.base is not None
    velocity = record.write_vectors(_OWN, "velocity", recursion.base.velocity[: order + 1])
    outward = function_text("outward_base", graph, [*_motion_stores(body, record), *velocity], 4)

    # the pose's series is found anew from the twist that is in the record
    graph = Graph()
    pose = [[graph.input(_PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    base = FloatingBase(pose, (0.0, 0.0, 0.0), "body")
    angular = record.read_vectors(graph, _OWN, "angular", order + 1)
    for w, v in zip(angular, record.read_vectors(graph, _OWN, "velocity", order + 1)):
        base.extend([*w, *v])
    moments = record.read_vectors(graph, _OWN, "moment", order + 1)
    forces = record.read_vectors(graph, _OWN, "force", order + 1)
    wrench = [
        (3, 6 * k + i, x * float(factorial(k)))
        for k in range(order + 1)
        for i, x in enumerate(base.wrench_to_world(moments, forces, k))
    ]
    return [outward, function_text("inward_base", graph, wrench, 4)]


@cache
def _tree_code(order: int, frame: Frame | None) -> MachineCode:
    """Compile the loops and steps of one order; kept on disk, as they serve every robot."""
    record = _Record(order)
    texts = [make(kind, record) for kind in _KINDS for make in (_outward_text, _inward_text)]
    if frame:
        texts += _base_texts(record, frame)
    widths = set().union(*(width for _, width in texts))
    steps = "".join(text for text, _ in texts) + "".join(sincos_function(width) for width in sorted(widths))
    return compile_text(_loops_text(record, frame) + steps, "hodyn_tree", ObjectCache.default())


def _loops_text(record: _Record, frame: Frame | None) -> str:
    """Write the loops over bodies.

    `@hodyn_tree(q, [pose, twists,] out, plan, constants, bodies, joints)`. The plan holds kind and parent's
    record of every body, the constants one block for the ground (minus gravity at its start) and one for
    every body. Records are those of the ground and of every body.
    """
    first, columns = (1, 6) if frame else (0, 0)
    base_arguments = "ptr %pose, ptr %twists, " if frame else ""
    block = _N_CONSTANTS + 3
    place = record.places
    lines = [
        f"define void @hodyn_tree(ptr %q, {base_arguments}ptr %out, ptr %plan, ptr %constants, i64 %bodies, "
        "i64 %joints) {",
        "entry:",
        "%records_count = add i64 %bodies, 1",
        f"%bytes = mul i64 %records_count, {8 * record.size}",
        "%records = call ptr @malloc(i64 %bytes)",
        f"call void @llvm.memset.p0.i64(ptr %records, i8 0, i64 {8 * record.size}, i1 false)",
        f"%ground = getelementptr double, ptr %records, i64 {place['linear']}",
        "call void @llvm.memcpy.p0.p0.i64(ptr %ground, ptr %constants, i64 24, i1 false)",
        f"%out_columns = add i64 %joints, {columns}",
    ]
    if frame:
        lines += [
            f"%base = getelementptr double, ptr %records, i64 {record.size}",
            f"%base_constants = getelementptr double, ptr %constants, i64 {block}",
            "call void @outward_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twists)",
        ]
    lines += [
        f"%none = icmp sle i64 %bodies, {first}",
        "br i1 %none, label %done, label %outward",
        *_loop_head("outward", "entry", str(first), first, record, block),
    ]
    for k in range(record.order + 3):
        lines += [
            f"%q{k}_row = mul i64 %joints, {k}",
            f"%q{k}_index = add i64 %q{k}_row, %outward_joint",
            f"%q{k}_from = getelementptr double, ptr %q, i64 %q{k}_index",
            f"%q{k} = load double, ptr %q{k}_from, align 8",
            f"%q{k}_to = getelementptr double, ptr %outward_own, i64 {place['q'] + k}",
            f"store double %q{k}, ptr %q{k}_to, align 8",
        ]
    lines += [
        *_switch("outward"),
        "outward_after:",
        "%outward_next = add i64 %outward_i, 1",
        "%outward_more = icmp slt i64 %outward_next, %bodies",
        "br i1 %outward_more, label %outward, label %turn_back",
        "turn_back:",
        "%last = sub i64 %bodies, 1",
        "br label %inward",
        *_loop_head("inward", "turn_back", "%last", first, record, block),
        *_switch("inward"),
        "inward_after:",
    ]
    for k in range(record.order + 1):
        lines += [
            f"%t{k}_from = getelementptr double, ptr %inward_own, i64 {place['torque'] + k}",
            f"%t{k} = load double, ptr %t{k}_from, align 8",
            f"%t{k}_row = mul i64 %out_columns, {k}",
            f"%t{k}_column = add i64 %inward_joint, {columns}",
            f"%t{k}_index = add i64 %t{k}_row, %t{k}_column",
            f"%t{k}_to = getelementptr double, ptr %out, i64 %t{k}_index",
            f"store double %t{k}, ptr %t{k}_to, align 8",
        ]
    lines += [
        "%inward_next = sub i64 %inward_i, 1",
        f"%inward_more = icmp sge i64 %inward_next, {first}",
        "br i1 %inward_more, label %inward, label %done",
        "done:",
    ]
    if frame:
        lines += [
            f"%wrench = alloca double, i64 {6 * (record.order + 1)}, align 8",
            "call void @inward_base(ptr %pose, ptr %base, ptr %base_constants, ptr %wrench)",
        ]
        for k in range(record.order + 1):
            lines += [
                f"%w{k}_from = getelementptr double, ptr %wrench, i64 {6 * k}",
                f"%w{k}_index = mul i64 %out_columns, {k}",
                f"%w{k}_to = getelementptr double, ptr %out, i64 %w{k}_index",
                f"call void @llvm.memcpy.p0.p0.i64(ptr %w{k}_to, ptr %w{k}_from, i64 48, i1 false)",
            ]
    lines += [
        "call void @free(ptr %records)",
        "ret void",
        "}",
        "declare ptr @malloc(i64)",
        "declare void @free(ptr)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ]
    return "\n".join(lines) + "\n"


def _loop_head(name: str, before: str, start: str, first: int, record: _Record, block: int) -> list[str]:
    """Open a loop over bodies, from the first with a joint, and find the memory of the body at hand."""
    return [
        f"{name}:",
        f"%{name}_i = phi i64 [{start}, %{before}], [%{name}_next, %{name}_after]",
        f"%{name}_joint = sub i64 %{name}_i, {first}",
        f"%{name}_number = add i64 %{name}_i, 1",
        f"%{name}_offset = mul i64 %{name}_number, {record.size}",
        f"%{name}_own = getelementptr double, ptr %records, i64 %{name}_offset",
        f"%{name}_block = mul i64 %{name}_number, {block}",
        f"%{name}_constants = getelementptr double, ptr %constants, i64 %{name}_block",
        f"%{name}_plan_index = mul i64 %{name}_i, 2",
        f"%{name}_kind_at = getelementptr i64, ptr %plan, i64 %{name}_plan_index",
        f"%{name}_kind = load i64, ptr %{name}_kind_at, align 8",
        f"%{name}_parent_at = getelementptr i64, ptr %{name}_kind_at, i64 1",
        f"%{name}_parent_number = load i64, ptr %{name}_parent_at, align 8",
        f"%{name}_parent_offset = mul i64 %{name}_parent_number, {record.size}",
        f"%{name}_parent = getelementptr double, ptr %records, i64 %{name}_parent_offset",
    ]


def _switch(name: str) -> list[str]:
    """Call the step for the kind of the joint at hand."""
    cases = " ".join(f"i64 {i}, label %{name}_{kind.value}" for i, kind in enumerate(_KINDS))
    lines = [f"switch i64 %{name}_kind, label %{name}_after [{cases}]"]
    for kind in _KINDS:
        lines += [
            f"{name}_{kind.value}:",
            f"call void @{name}_{kind.value}(ptr %{name}_parent, ptr %{name}_own, ptr %{name}_constants)",
            f"br label %{name}_after",
        ]
    return lines


class TreeKernel(Function):
    """Inverse dynamics by the generic code, with the arguments of `kernels.inverse_dynamics`."""

    def __init__(self, model: TreeModel, order: int, frame: Frame | None) -> None:
        arguments: list[tuple[str, Shape]] = [("q", (order + 3, model.n_joints))]
        if frame:
            arguments += [("pose", (4, 4)), ("twists", (order + 2, 6))]
        code = _tree_code(order, frame)
        bodies = canonical_bodies(model)
        plan = [
            (_KINDS.index(kind) if kind in _KINDS else -1, body.parent + 1)
            for kind, body in zip(model.kinds, bodies)
        ]
        gravity = model.gravity.tolist()
        ground = [-g for g in gravity] + [0.0] * _N_CONSTANTS
        constants = [ground, *[[*_constants_of(body), *gravity] for body in bodies]]
        self._data = (np.array(plan, dtype=np.int64), np.array(constants, dtype=np.float64), code)
        passed = ", ".join(f"ptr %a{i}" for i in range(len(arguments)))
        plan_at, constants_at = (ctypes.c_void_p(a.ctypes.data).value for a in self._data[:2])
        text = (
            f"define void @hodyn_kernel({passed}, ptr %out) {{\n"
            f"call void inttoptr (i64 {code.address} to ptr)({passed}, ptr %out, "
            f"ptr inttoptr (i64 {plan_at} to ptr), ptr inttoptr (i64 {constants_at} to ptr), "
            f"i64 {model.n_bodies}, i64 {model.n_joints})\nret void\n}}\n"
        )
        columns = model.n_joints + (6 if frame else 0)
        super().__init__(text, arguments, (order + 1, columns), cache=None)

    def _batch_text(self) -> str:
        return loop_text(
            self.code.address,
            [rows * columns for _, (rows, columns) in (*self.arguments, ("out", self.result))],
        )
