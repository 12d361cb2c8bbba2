"""Forward dynamics of trees of any size: the articulated recursion in loops over bodies.

Compiled once per order, whatever the robot. Per order of the derivative there are three passes: outward for
the biases, inward to gather them, outward to solve. What the recursion has found so far stands in the records
of the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import factorial
from typing import Any

from hodyn_ros.engine.articulated import ArticulatedInertia, ArticulatedRecursion, factorise
from hodyn_ros.engine.base import FloatingBase
from hodyn_ros.engine.body import Body
from hodyn_ros.engine.emit import function_text
from hodyn_ros.engine.generic import TreeFunction, load_arguments, tree_code
from hodyn_ros.engine.kernel import Shape
from hodyn_ros.engine.llvm import MachineCode
from hodyn_ros.engine.tracer import Graph
from hodyn_ros.engine.tree_loads import ARGUMENTS, Loads, load_lines, load_texts, scratch_lines
from hodyn_ros.engine.tree_loops import base_lines, give_base, give_column, pass_lines, take_column, tree_text
from hodyn_ros.engine.tree_memory import (
    CONSTANTS,
    KINDS,
    N_CONSTANTS,
    NOTHING,
    OWN,
    PARENT,
    Record,
    Store,
    Text,
    six,
    symmetric,
    traced_body,
)
from hodyn_ros.engine.turn import Turn
from hodyn_ros.model.tree import JointKind, TreeModel
from hodyn_ros.motion import Frame

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

    def __init__(self, kind: JointKind, record: Record) -> None:
        self.graph = Graph()
        self.kind = kind
        self.record = record
        self.recursion = ArticulatedRecursion([NOTHING, traced_body(self.graph, kind)], _REST)
        self.parent, self.body = self.recursion.bodies
        self.above, self.state = self.recursion.states
        self.stores: list[Store] = []

    def number(self, name: str, index: int = 0, argument: int = OWN) -> Any:
        return self.record.read(self.graph, argument, name, index)

    def pair(self, name: str, argument: int = OWN) -> tuple[Any, Any]:
        first, second = self.record.read_vectors(self.graph, argument, name, 2)
        return first, second

    def series(self, name: str, count: int, argument: int = OWN) -> list[Any]:
        return self.record.read_vectors(self.graph, argument, name, count)

    def inertia(self, argument: int = OWN) -> ArticulatedInertia:
        numbers = [self.number("inertia", i, argument) for i in range(21)]
        mixed = [numbers[i : i + 3] for i in range(12, 21, 3)]
        angular, linear = ([list(row) for row in symmetric(part)] for part in (numbers[:6], numbers[6:12]))
        return ArticulatedInertia(angular, mixed, linear)

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

    def products(self, argument: int, count: int) -> list[Any]:
        return [
            symmetric([self.number("products", 6 * k + i, argument) for i in range(6)]) for k in range(count)
        ]

    def write(self, name: str, values: Sequence[Any], start: int = 0, argument: int = OWN) -> None:
        self.stores += self.record.write(argument, name, values, start)

    def write_pair(self, name: str, pair: tuple[Any, Any], argument: int = OWN) -> None:
        self.stores += self.record.write_vectors(argument, name, pair)

    def write_inertia(self, inertia: ArticulatedInertia, argument: int = OWN) -> None:
        mixed = [x for row in inertia.mixed for x in row]
        self.write("inertia", [*six(inertia.angular), *six(inertia.linear), *mixed], argument=argument)

    def write_next(self, name: str, series: Sequence[Any], index: int) -> None:
        """Store an element of a series of numbers, if its record has room for it."""
        if index <= self.record.order + 1:
            self.write(name, [series[index]], index)

    def text(self, name: str) -> Text:
        return function_text(f"{name}_{self.kind.value}", self.graph, self.stores, 3)


def _start_text(kind: JointKind, record: Record) -> Text:
    step = _Step(kind, record)
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


def _articulate_text(kind: JointKind, record: Record) -> Text:
    step = _Step(kind, record)
    step.restore_pose()
    step.state.inertia, step.above.inertia = step.inertia(), step.inertia(PARENT)
    step.recursion.articulate_joint(step.body)
    step.write_pair("column", step.state.column)
    step.write("inverse", [step.state.inverse])
    step.write_inertia(step.above.inertia, PARENT)
    return step.text("articulate")


def _bias_text(kind: JointKind, record: Record, k: int) -> Text:
    step = _Step(kind, record)
    step.restore(k)
    step.above.wrench = step.pair("wrench", PARENT)
    step.recursion.bias(step.body, k, 0.0)
    step.write("products", six(step.body.products[k]), 6 * k)
    if step.body.slides:
        step.write("axis_velocity", step.body.axis_velocity[k], 3 * k)
    step.write_pair("carried", step.state.carried)
    step.write_pair("motion", step.state.motion)
    step.write_pair("wrench", step.state.wrench)
    if k > 0:
        step.write_pair("wrench", step.above.wrench, PARENT)
    return step.text(f"bias{k}")


def _gather_text(kind: JointKind, record: Record, k: int) -> Text:
    step = _Step(kind, record)
    step.restore_pose()
    state = step.state
    state.inertia, state.column, state.inverse = step.inertia(), step.pair("column"), step.number("inverse")
    state.motion, state.wrench, step.above.wrench = (
        step.pair("motion"),
        step.pair("wrench"),
        step.pair("wrench", PARENT),
    )
    step.recursion.gather(step.body, step.number("given", k) * (1.0 / factorial(k)))
    step.write_pair("wrench", state.wrench)
    step.write("drive", [state.drive])
    step.write_pair("wrench", step.above.wrench, PARENT)
    return step.text(f"gather{k}")


def _solve_text(kind: JointKind, record: Record, k: int) -> Text:
    step = _Step(kind, record)
    step.restore(k)
    body, state = step.body, step.state
    body.products = step.products(OWN, k + 1)
    if body.slides:
        body.axis_velocity = step.series("axis_velocity", k + 1)
    step.parent.angular = step.series("angular", k + 2, PARENT)
    step.parent.linear = step.series("linear", k + 1, PARENT)
    state.inertia, state.column, state.inverse = step.inertia(), step.pair("column"), step.number("inverse")
    state.carried, state.wrench, state.drive = step.pair("carried"), step.pair("wrench"), step.number("drive")
    found = step.recursion.solve_joint(body, k, 0.0)
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


class _BaseStep:
    """A step of a floating base, with the arguments (pose or given wrench, own record, constants, more)."""

    def __init__(self, record: Record, frame: Frame) -> None:
        self.graph, self.record = Graph(), record
        gravity = [self.graph.input(CONSTANTS, N_CONSTANTS + i) for i in range(3)]
        pose = [[self.graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
        self.base = FloatingBase(pose, gravity, frame)
        constants = traced_body(self.graph, JointKind.BASE)
        self.recursion = ArticulatedRecursion([constants], _REST, self.base)
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

    def write_pose(self, index: int) -> None:
        """Store a coefficient of the pose, if its record has room for it."""
        if index <= self.record.order + 1:
            self.write("rotation", [x for row in self.base.rotation[index] for x in row], 9 * index)
            self.write("position", self.base.position[index], 3 * index)

    def text(self, name: str) -> Text:
        return function_text(f"{name}_base", self.graph, self.stores, 4)


def _base_texts(record: Record, frame: Frame) -> list[Text]:
    start = _BaseStep(record, frame)
    start.recursion.start([], [], [start.graph.input(3, i) for i in range(6)])
    for index in (0, 1):
        start.write_pose(index)
    start.write("angular", start.base.angular[0])
    start.write("velocity", start.base.velocity[0])
    inertia = start.state.inertia
    mixed = [x for row in inertia.mixed for x in row]
    start.write("inertia", [*six(inertia.angular), *six(inertia.linear), *mixed])

    factor = _BaseStep(record, frame)
    numbers = [record.read(factor.graph, OWN, "inertia", i) for i in range(21)]
    angular, linear = ([list(row) for row in symmetric(part)] for part in (numbers[:6], numbers[6:12]))
    rows = ArticulatedInertia(angular, [numbers[i : i + 3] for i in range(12, 21, 3)], linear).rows()
    factors = factorise(rows)
    factor.write("factor", [factors[i][j] for i in range(6) for j in range(i + 1)])
    texts = [start.text("start"), factor.text("factor")]
    for k in range(record.order + 1):
        texts += [_base_bias_text(record, frame, k), _base_release_text(record, frame, k)]
    return texts


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
    step.write("angular", base.angular[k + 1], 3 * (k + 1))
    step.write("velocity", base.velocity[k + 1], 3 * (k + 1))
    step.write("linear", step.body.linear[k], 3 * k)
    step.write_pose(k + 2)
    step.stores += [(3, 6 * k + i, x * float(factorial(k + 1))) for i, x in enumerate(base.twist(k + 1))]
    return step.text(f"release{k}")


@cache
def _forward_code(order: int, frame: Frame | None, loaded: bool) -> MachineCode:
    """Compile the loops and steps of forward dynamics of one order, with applied wrenches or without."""
    record = _record(order)
    places = record.places
    first, columns = (1, 6) if frame else (0, 0)
    texts = [make(kind, record) for kind in KINDS for make in (_start_text, _articulate_text)]
    take_state = take_column("state", places["state"], 2)
    take_given = take_column("given", places["given"], order + 1)
    body = [
        *pass_lines("start", "outward", first, record, lambda step: take_state(step) + take_given(step)),
        *pass_lines("articulate", "inward", first, record),
    ]
    if loaded:
        body = [*scratch_lines(order), *body]
    if frame:
        texts += _base_texts(record, frame)
        body = [
            f"%found_base = alloca double, i64 {6 * (order + 1)}, align 8",
            *base_lines(record),
            "call void @start_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)",
            *body,
            "call void @factor_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)",
        ]
    for k in range(order + 1):
        texts += [make(kind, record, k) for kind in KINDS for make in (_bias_text, _gather_text, _solve_text)]
        if frame:
            body.append(f"call void @bias{k}_base(ptr %pose, ptr %base, ptr %base_constants, ptr %twist)")
        body += pass_lines(f"bias{k}", "outward", first, record)
        if loaded:
            target = k, places["wrench"], places["wrench"] + 3
            texts += load_texts(f"load{k}", record, k + 1, [target], frame is not None)
            body += load_lines(f"load{k}", record, frame is not None)
        body += pass_lines(f"gather{k}", "inward", first, record)
        if frame:
            body.append(
                f"call void @release{k}_base(ptr %base_wrench, ptr %base, ptr %base_constants, "
                "ptr %found_base)"
            )
        given_back = give_column(places["found"] + k, k, 1, columns)
        body += pass_lines(f"solve{k}", "outward", first, record, after=given_back)
    if frame:
        body += give_base("%found_base", 0, order + 1)
    arguments = ["state", "given", *(["pose", "twist", "base_wrench"] if frame else [])]
    arguments += ARGUMENTS if loaded else []
    return tree_code(tree_text("hodyn_tree", arguments, record, body), texts)


class TreeForwardKernel(TreeFunction):
    """Forward dynamics by the generic code, with the arguments of `kernels.hybrid_dynamics`."""

    def __init__(self, model: TreeModel, order: int, frame: Frame | None, loads: Loads = ()) -> None:
        n = model.n_joints
        arguments: list[tuple[str, Shape]] = [("state", (2, n)), ("given", (order + 1, n))]
        if frame:
            arguments += [("pose", (4, 4)), ("twist", (1, 6)), ("base_wrench", (order + 1, 6))]
        arguments += load_arguments(loads, order)
        columns = n + (6 if frame else 0)
        code = _forward_code(order, frame, bool(loads))
        super().__init__(model, arguments, (order + 1, columns), code, loads)
