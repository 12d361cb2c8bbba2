"""Forward and hybrid dynamics of trees of any size: the articulated recursion in loops over bodies.

Compiled once per order, whatever the robot. Per order of the derivative there are three passes: outward for
the biases, inward to gather them, outward to solve. What the recursion has found so far stands in the records
of the bodies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from math import factorial
from typing import Any

from hodyn_ros.engine.codegen.emit import function_text
from hodyn_ros.engine.codegen.kernel import Shape
from hodyn_ros.engine.codegen.llvm import MachineCode
from hodyn_ros.engine.codegen.tracer import Graph
from hodyn_ros.engine.large_trees.inverse import TreeFunction, load_arguments, tree_code
from hodyn_ros.engine.large_trees.tree_loads import ARGUMENTS, Loads, load_lines, load_texts, scratch_lines
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
    FREE,
    KINDS,
    N_CONSTANTS,
    NOTHING,
    OWN,
    PARENT,
    PRESCRIBED,
    Record,
    Store,
    Text,
    six,
    symmetric,
    traced_body,
)
from hodyn_ros.engine.recursions.articulated import ArticulatedInertia, ArticulatedRecursion, factorise
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.lie.motion import Frame
from hodyn_ros.model.tree import JointKind, TreeModel

_REST = (0.0, 0.0, 0.0)


def _record(order: int) -> Record:
    vectors = 3 * (order + 1)
    sizes = {"state": 2, "given": order + 1, "found": order + 1, "turn": 2}
    sizes |= dict.fromkeys(("rates", "cosines", "sines", "slide"), order + 2)
    sizes |= dict.fromkeys(("angular", "angular_turned", "position", "velocity"), vectors + 3)
    sizes |= dict.fromkeys(
        ("linear", "linear_turned", "axis_field", "axis_velocity", "moment", "force", "joint_moment"), vectors
    )
    sizes |= {"products": 2 * vectors, "inertia": 21, "column": 6, "inverse": 1}
    sizes |= {"carried": 6, "motion": 6, "wrench": 6, "drive": 1, "rotation": 3 * vectors + 9, "factor": 21}
    return Record(order, sizes)


class _Step:
    """A step under construction: one body with its parent, as far as their records tell at order k."""

    def __init__(self, variant: str, record: Record) -> None:
        self.graph = Graph()
        self.variant = variant
        self.record = record
        self.prescribed = variant in PRESCRIBED
        kind = KINDS[(PRESCRIBED if self.prescribed else FREE).index(variant)]
        self.recursion = ArticulatedRecursion(
            [NOTHING, traced_body(self.graph, kind)], _REST, prescribed=[0] if self.prescribed else ()
        )
        self.parent, self.body = self.recursion.bodies
        self.above, self.state = self.recursion.states
        self.stores: list[Store] = []

    def given(self, k: int) -> Any:
        """Return coefficient k of the torque or, where it is prescribed, of the acceleration."""
        return self.number("given", k) * (1.0 / factorial(k))

    def number(self, name: str, index: int = 0, argument: int = OWN) -> Any:
        return self.record.read(self.graph, argument, name, index)

    def pair(self, name: str, argument: int = OWN) -> tuple[Any, Any]:
        first, second = self.record.read_vectors(self.graph, argument, name, 2)
        return first, second

    def series(self, name: str, count: int, argument: int = OWN) -> list[Any]:
        return self.record.read_vectors(self.graph, argument, name, count)

    def restore_pose(self) -> None:
        """Read what the present pose of the joint is."""
        self.body.turn = Turn.restored(self.number("turn"), self.number("turn", 1), [1.0], [0.0])
        self.body.slide = [self.number("slide")]

    def restore(self, k: int) -> None:
        """Read the motion of body and parent as it is known before order k is solved."""
        body, ones = self.body, range(1, k + 2)
        self.restore_pose()
        body.turn.cosines += [self.number("cosines", i) for i in ones]
        body.turn.sines += [self.number("sines", i) for i in ones]
        body.turn.rates = [self.number("rates", i) for i in range(k + 1)]
        body.slide += [self.number("slide", i) for i in ones]
        body.angular, body.angular_turned = (self.series(n, k + 1) for n in ("angular", "angular_turned"))
        body.linear, body.linear_turned, body.moment, body.force = (
            self.series(name, k) for name in ("linear", "linear_turned", "moment", "force")
        )
        body.axis_field, body.axis_velocity, body.joint_moment = (
            self.series(name, k) for name in ("axis_field", "axis_velocity", "joint_moment")
        )
        body.products = self.products(OWN, k)
        self.parent.angular = self.series("angular", k + 1, PARENT)
        self.parent.products = self.products(PARENT, k + 1)

    def restore_articulation(self) -> None:
        """Read what was found about the joint's articulated inertia."""
        self.state.inertia = _inertia(self.graph, self.record)
        self.state.column, self.state.inverse = self.pair("column"), self.number("inverse")

    def products(self, argument: int, count: int) -> list[Any]:
        return [
            symmetric([self.number("products", 6 * k + i, argument) for i in range(6)]) for k in range(count)
        ]

    def write(self, name: str, values: Sequence[Any], start: int = 0, argument: int = OWN) -> None:
        self.stores += self.record.write(argument, name, values, start)

    def write_pair(self, name: str, pair: tuple[Any, Any], argument: int = OWN) -> None:
        self.stores += self.record.write_vectors(argument, name, pair)

    def write_inertia(self, inertia: ArticulatedInertia, argument: int = OWN) -> None:
        self.write("inertia", _numbers(inertia), argument=argument)

    def write_next(self, name: str, series: Sequence[Any], index: int) -> None:
        """Store an element of a series of numbers, if its record has room for it."""
        if index <= self.record.order + 1:
            self.write(name, [series[index]], index)

    def text(self, name: str) -> Text:
        return function_text(f"{name}_{self.variant}", self.graph, self.stores, 3)


def _start_text(variant: str, record: Record) -> Text:
    step = _Step(variant, record)
    body = step.body
    step.parent.angular = step.series("angular", 1, PARENT)
    step.recursion.start_joint(body, step.number("state"), step.number("state", 1))
    step.write("turn", [body.turn.cosine, body.turn.sine])
    step.write("rates", body.turn.rates)
    step.write("cosines", body.turn.cosines)
    step.write("sines", body.turn.sines)
    step.write("slide", body.slide)
    step.write("angular", body.angular[0])
    step.write("angular_turned", body.angular_turned[0])
    step.write_inertia(step.state.inertia)
    return step.text("start")


def _articulate_text(variant: str, record: Record) -> Text:
    step = _Step(variant, record)
    step.restore_pose()
    step.state.inertia, step.above.inertia = (
        _inertia(step.graph, record),
        _inertia(step.graph, record, PARENT),
    )
    step.recursion.articulate_joint(step.body)
    if not step.prescribed:
        step.write_pair("column", step.state.column)
        step.write("inverse", [step.state.inverse])
    step.write_inertia(step.above.inertia, PARENT)
    return step.text("articulate")


def _bias_text(variant: str, record: Record, k: int) -> Text:
    step = _Step(variant, record)
    step.restore(k)
    step.above.wrench = step.pair("wrench", PARENT)
    step.recursion.bias(step.body, k, step.given(k) if step.prescribed else 0.0)
    step.write("products", six(step.body.products[k]), 6 * k)
    if step.body.slides:
        step.write("axis_velocity", step.body.axis_velocity[k], 3 * k)
    step.write_pair("carried", step.state.carried)
    step.write_pair("motion", step.state.motion)
    step.write_pair("wrench", step.state.wrench)
    if k > 0:
        step.write_pair("wrench", step.above.wrench, PARENT)
    return step.text(f"bias{k}")


def _gather_text(variant: str, record: Record, k: int) -> Text:
    step = _Step(variant, record)
    step.restore_pose()
    state = step.state
    step.restore_articulation()
    state.motion, state.wrench, step.above.wrench = (
        step.pair("motion"),
        step.pair("wrench"),
        step.pair("wrench", PARENT),
    )
    step.recursion.gather(step.body, step.given(k))
    step.write_pair("wrench", state.wrench)
    if not step.prescribed:
        step.write("drive", [state.drive])
    step.write_pair("wrench", step.above.wrench, PARENT)
    return step.text(f"gather{k}")


def _solve_text(variant: str, record: Record, k: int) -> Text:
    step = _Step(variant, record)
    step.restore(k)
    body, state = step.body, step.state
    body.products = step.products(OWN, k + 1)
    if body.slides:
        body.axis_velocity = step.series("axis_velocity", k + 1)
    step.parent.angular = step.series("angular", k + 2, PARENT)
    step.parent.linear = step.series("linear", k + 1, PARENT)
    step.restore_articulation()
    state.carried, state.wrench, state.drive = step.pair("carried"), step.pair("wrench"), step.number("drive")
    found = step.recursion.solve_joint(body, k, step.given(k))
    step.write("found", [found * float(factorial(k))], k)
    step.write("angular", body.angular[k + 1], 3 * (k + 1))
    step.write("angular_turned", body.angular_turned[k + 1], 3 * (k + 1))
    names = ["linear", "linear_turned", "moment", "force"]
    for name in [*names, "axis_field", "joint_moment"] if body.slides else names:
        step.write(name, getattr(body, name)[k], 3 * k)
    step.write_next("rates", body.turn.rates, k + 1)
    for name, series in (("cosines", body.turn.cosines), ("sines", body.turn.sines), ("slide", body.slide)):
        step.write_next(name, series, k + 2)
    return step.text(f"solve{k}")


def _inertia(graph: Graph, record: Record, argument: int = OWN) -> ArticulatedInertia:
    numbers = [record.read(graph, argument, "inertia", i) for i in range(21)]
    mixed = [numbers[i : i + 3] for i in range(12, 21, 3)]
    angular, linear = ([list(row) for row in symmetric(part)] for part in (numbers[:6], numbers[6:12]))
    return ArticulatedInertia(angular, mixed, linear)


def _numbers(inertia: ArticulatedInertia) -> list[Any]:
    return [*six(inertia.angular), *six(inertia.linear), *(x for row in inertia.mixed for x in row)]


class _BaseStep:
    """A step of a floating base, with the arguments (pose or what is given, own record, constants, more)."""

    def __init__(self, record: Record, frame: Frame, prescribed: bool = False) -> None:
        self.graph, self.record = Graph(), record
        gravity = [self.graph.input(CONSTANTS, N_CONSTANTS + i) for i in range(3)]
        pose = [[self.graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
        self.base = FloatingBase(pose, gravity, frame)
        constants = traced_body(self.graph, JointKind.BASE)
        self.recursion = ArticulatedRecursion([constants], _REST, self.base, base_prescribed=prescribed)
        self.body: Body = self.recursion.bodies[0]
        self.state = self.recursion.states[0]
        self.stores: list[Store] = []

    def restore(self, k: int) -> None:
        """Read the motion as it is known before order k is solved."""
        vectors = self.record.read_vectors
        rows = vectors(self.graph, OWN, "rotation", 3 * (k + 2))
        self.base.rotation = [(rows[i], rows[i + 1], rows[i + 2]) for i in range(0, len(rows), 3)]
        self.base.position = vectors(self.graph, OWN, "position", k + 2)
        self.base.velocity = vectors(self.graph, OWN, "velocity", k + 1)
        self.base.angular = vectors(self.graph, OWN, "angular", k + 1)
        self.body.angular = list(self.base.angular)
        self.body.linear = [_REST] * k  # the lower ones are not asked for

    def write(self, name: str, values: Sequence[Any], start: int = 0) -> None:
        self.stores += self.record.write(OWN, name, values, start)

    def write_motion(self, k: int) -> None:
        """Store what order k of the motion adds to its record."""
        self.write("angular", self.base.angular[k + 1], 3 * (k + 1))
        self.write("velocity", self.base.velocity[k + 1], 3 * (k + 1))
        self.write("linear", self.body.linear[k], 3 * k)
        self.write_pose(k + 2)

    def write_pose(self, index: int) -> None:
        """Store a coefficient of the pose, if its record has room for it."""
        if index <= self.record.order + 1:
            self.write("rotation", [x for row in self.base.rotation[index] for x in row], 9 * index)
            self.write("position", self.base.position[index], 3 * index)

    def text(self, name: str) -> Text:
        return function_text(f"{name}_base", self.graph, self.stores, 4)


def _base_texts(record: Record, frame: Frame, prescribed: bool) -> list[Text]:
    orders = range(record.order + 1)
    texts = [_base_start_text(record, frame), *(_base_bias_text(record, frame, k) for k in orders)]
    if prescribed:
        return texts + [
            make(record, frame, k) for k in orders for make in (_base_move_text, _base_close_text)
        ]
    return [*texts, _base_factor_text(record, frame), *(_base_release_text(record, frame, k) for k in orders)]


def _base_start_text(record: Record, frame: Frame) -> Text:
    start = _BaseStep(record, frame)
    start.recursion.start([], [], [start.graph.input(3, i) for i in range(6)])
    for index in (0, 1):
        start.write_pose(index)
    start.write("angular", start.base.angular[0])
    start.write("velocity", start.base.velocity[0])
    start.write("inertia", _numbers(start.state.inertia))
    return start.text("start")


def _base_factor_text(record: Record, frame: Frame) -> Text:
    step = _BaseStep(record, frame)
    factors = factorise(_inertia(step.graph, record).rows())
    step.write("factor", [factors[i][j] for i in range(6) for j in range(i + 1)])
    return step.text("factor")


def _base_bias_text(record: Record, frame: Frame, k: int) -> Text:
    step = _BaseStep(record, frame)
    step.body.angular = record.read_vectors(step.graph, OWN, "angular", k + 1)
    step.body.products = [symmetric([0.0] * 6)] * k  # the lower ones are not asked for
    step.recursion.multiply_velocities(step.body, k)
    step.write("products", six(step.body.products[k]), 6 * k)
    moment, force = step.body.wrench(k, _REST, _REST)
    step.write("wrench", [*moment, *force])
    return step.text(f"bias{k}")


def _base_release_text(record: Record, frame: Frame, k: int) -> Text:
    """Solve for the base; the first argument is the given base wrench by order, the last the result."""
    step = _BaseStep(record, frame)
    step.restore(k)
    graph, recursion, base = step.graph, step.recursion, step.base
    for i in range(k + 1):
        wrench = [graph.input(PARENT, 6 * i + j) * (1.0 / factorial(i)) for j in range(6)]
        recursion.base_wrenches.append(((wrench[0], wrench[1], wrench[2]), (wrench[3], wrench[4], wrench[5])))
    *lower, last = recursion.base_wrenches
    recursion.base_wrenches = lower
    numbers = iter([record.read(graph, OWN, "factor", i) for i in range(21)])
    recursion.base_factor = [[next(numbers) if j <= i else 0.0 for j in range(6)] for i in range(6)]
    moment, force = record.read_vectors(graph, OWN, "wrench", 2)
    recursion.release_base(k, (moment, force), [*last[0], *last[1]])
    step.write_motion(k)
    step.stores += [(3, 6 * k + i, x * float(factorial(k + 1))) for i, x in enumerate(base.twist(k + 1))]
    return step.text(f"release{k}")


def _base_move_text(record: Record, frame: Frame, k: int) -> Text:
    """Move a prescribed base; the first argument is its twist, the last the derivatives of it."""
    step = _BaseStep(record, frame, prescribed=True)
    step.restore(k)
    twists: list[list[Any]] = [[step.graph.input(PARENT, i) for i in range(6)]]
    for i in range(k + 1):
        scaling = 1.0 / factorial(i + 1)
        twists.append([step.graph.input(3, 6 * i + j) * scaling for j in range(6)])
    if frame == "world":
        for w0, w1, w2, v0, v1, v2 in twists[:-1]:
            step.base.remember((w0, w1, w2), (v0, v1, v2))
    step.recursion.move_base(k, twists[-1])
    step.write_motion(k)
    return step.text(f"move{k}")


def _base_close_text(record: Record, frame: Frame, k: int) -> Text:
    """Find the wrench of a prescribed base; the last argument is the result."""
    step = _BaseStep(record, frame, prescribed=True)
    step.restore(k)
    graph, body = step.graph, step.body
    body.angular = record.read_vectors(graph, OWN, "angular", k + 2)
    body.linear = record.read_vectors(graph, OWN, "linear", k + 1)
    body.moment, body.force = (record.read_vectors(graph, OWN, name, k) for name in ("moment", "force"))
    step.state.inertia = _inertia(graph, record)
    moment, force = record.read_vectors(graph, OWN, "wrench", 2)
    step.recursion.release_base(k, (moment, force), ())
    step.write("moment", body.moment[k], 3 * k)
    step.write("force", body.force[k], 3 * k)
    wrench = step.recursion.base_wrench(k)
    step.stores += [(3, 6 * k + i, x * float(factorial(k))) for i, x in enumerate(wrench)]
    return step.text(f"close{k}")


@cache
def _hybrid_code(
    order: int, frame: Frame | None, loaded: bool, prescribed: bool, base_prescribed: bool
) -> MachineCode:
    """Compile the loops and steps of one order, with applied wrenches and prescribed joints or without."""
    record = _record(order)
    places = record.places
    first, columns = (1, 6) if frame else (0, 0)
    variants = (*FREE, *PRESCRIBED) if prescribed else FREE
    texts = [make(variant, record) for variant in variants for make in (_start_text, _articulate_text)]
    take_state = take_column("state", places["state"], 2)
    take_given = take_column("given", places["given"], order + 1)
    body = [
        *pass_lines(
            "start",
            "outward",
            first,
            record,
            lambda step: take_state(step) + take_given(step),
            variants=variants,
        ),
        *pass_lines("articulate", "inward", first, record, variants=variants),
    ]
    if loaded:
        body = [*scratch_lines(order), *body]
    if frame:
        texts += _base_texts(record, frame, base_prescribed)
        body = [
            f"%found_base = alloca double, i64 {6 * (order + 1)}, align 8",
            *base_lines(record),
            "call void @start_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)",
            *body,
        ]
        if not base_prescribed:
            body.append("call void @factor_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)")
    for k in range(order + 1):
        texts += [
            make(variant, record, k)
            for variant in variants
            for make in (_bias_text, _gather_text, _solve_text)
        ]
        if frame:
            body.append(f"call void @bias{k}_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)")
        if base_prescribed:
            body.append(
                f"call void @move{k}_base(ptr %twist, ptr %base, ptr %base_constants, ptr %base_given)"
            )
        body += pass_lines(f"bias{k}", "outward", first, record, variants=variants)
        if loaded:
            target = k, places["wrench"], places["wrench"] + 3
            texts += load_texts(f"load{k}", record, k + 1, [target], frame is not None)
            body += load_lines(f"load{k}", record, frame is not None)
        body += pass_lines(f"gather{k}", "inward", first, record, variants=variants)
        if frame:
            solving = f"close{k}_base" if base_prescribed else f"release{k}_base"
            body.append(
                f"call void @{solving}(ptr %base_given, ptr %base, ptr %base_constants, ptr %found_base)"
            )
        given_back = give_column(places["found"] + k, k, 1, columns)
        body += pass_lines(f"solve{k}", "outward", first, record, after=given_back, variants=variants)
    if frame:
        body += give_base("%found_base", 0, order + 1)
    arguments = ["state", "given", *(["pose", "twist", "base_given"] if frame else [])]
    arguments += ARGUMENTS if loaded else []
    return tree_code(tree_text("hodyn_tree", arguments, record, body), texts)


class TreeHybridKernel(TreeFunction):
    """Forward and hybrid dynamics by the generic code, with the arguments of `kernels.hybrid_dynamics`."""

    def __init__(
        self,
        model: TreeModel,
        order: int,
        frame: Frame | None,
        loads: Loads = (),
        prescribed: Collection[int] = (),
        base_prescribed: bool = False,
    ) -> None:
        arguments = hybrid_arguments(model, order, frame, loads, base_prescribed)
        columns = model.n_joints + (6 if frame else 0)
        code = _hybrid_code(order, frame, bool(loads), bool(prescribed), base_prescribed)
        super().__init__(model, arguments, (order + 1, columns), code, loads, prescribed)


def hybrid_arguments(
    model: TreeModel, order: int, frame: Frame | None, loads: Loads, base_prescribed: bool
) -> list[tuple[str, Shape]]:
    """Return names and shapes of what hybrid dynamics takes."""
    n = model.n_joints
    arguments: list[tuple[str, Shape]] = [("state", (2, n)), ("given", (order + 1, n))]
    if frame:
        what = "base_twist_derivatives" if base_prescribed else "base_wrench"
        arguments += [("pose", (4, 4)), ("twist", (1, 6)), (what, (order + 1, 6))]
    return [*arguments, *load_arguments(loads, order)]
