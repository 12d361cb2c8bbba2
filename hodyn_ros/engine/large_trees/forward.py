"""Forward and hybrid dynamics of trees of any size: the articulated recursion in loops over bodies.

Compiled once per order, whatever the robot. Per order of the derivative there are three passes: outward for
the biases, inward to gather them, outward to solve. What the recursion has found so far stands in the records
of the bodies.
"""

from __future__ import annotations

from functools import lru_cache
from math import factorial
from typing import Any

from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.codegen.program import Code, Run, Statement, View, arrays
from hodyn_ros.engine.kernel_spec import KernelSpec, hybrid_arguments
from hodyn_ros.engine.large_trees.inverse import TreeFunction, tree_code, write_pose
from hodyn_ros.engine.large_trees.steps import Steps
from hodyn_ros.engine.large_trees.tree_loads import APPLIED, each_load, load_texts, scratch
from hodyn_ros.engine.large_trees.tree_loops import (
    BASE_CONSTANTS,
    OUT,
    Column,
    base_columns,
    base_of,
    each_body,
    tree_program,
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
    Text,
    six,
    traced_body,
)
from hodyn_ros.engine.recursions.articulated import ArticulatedInertia, ArticulatedRecursion, factorise
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import symmetric
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.model.tree import JointKind, TreeModel

_REST = (0.0, 0.0, 0.0)


def _record(order: int) -> Record:
    vectors = 3 * (order + 1)
    sizes = {"state": 2, "inputs": order + 1, "found": order + 1, "turn": 2}
    sizes |= dict.fromkeys(("cosines", "sines", "slide"), order + 2)
    sizes |= {"angular": vectors + 3, "velocity": vectors + 3, "linear": vectors, "products": 2 * vectors}
    return Record(order, sizes | {"inertia": 21, "wrench": 6}, shared=("inertia", "wrench"))


def _body_texts(variant: str, record: Record) -> list[Text]:
    """Write the steps of a body with a joint: its start, then for each order those of the three passes."""
    steps, prescribed = Steps(variant, record), variant in PRESCRIBED
    kind = KINDS[(PRESCRIBED if prescribed else FREE).index(variant)]
    bodies = [NOTHING, traced_body(steps.graph, kind)]
    recursion = ArticulatedRecursion(bodies, _REST, prescribed=[0] if prescribed else ())
    parent, body = recursion.bodies
    above, state = recursion.states
    steps.begin("start")
    parent.angular = steps.vectors("angular", 1, PARENT)
    recursion.start_joint(body, steps.number("state"), steps.number("state", 1))
    write_pose(steps, body)
    steps.write("angular", body.angular[0])
    steps.write("inertia", _numbers(state.inertia))
    steps.begin("articulate")
    state.inertia, above.inertia = _inertia(steps), _inertia(steps, PARENT)
    recursion.articulate_joint(body)
    steps.write("inertia", _numbers(above.inertia), argument=PARENT)
    for k in range(record.order + 1):
        steps.begin(f"bias{k}")
        parent.angular = steps.vectors("angular", k + 1, PARENT)
        parent.products = _products(steps, k + 1)
        above.wrench = _pair(steps, PARENT)
        recursion.bias(body, k, _input(steps, k) if prescribed else 0.0)
        steps.write("products", six(body.products[k]), 6 * k)
        steps.write_vectors("wrench", state.wrench)
        if k > 0:
            steps.write_vectors("wrench", above.wrench, argument=PARENT)
        steps.begin(f"gather{k}")
        state.inertia, state.wrench, above.wrench = _inertia(steps), _pair(steps), _pair(steps, PARENT)
        recursion.gather(body, _input(steps, k))
        steps.write_vectors("wrench", above.wrench, argument=PARENT)
        steps.begin(f"solve{k}")
        parent.angular = steps.vectors("angular", k + 2, PARENT)
        parent.linear = steps.vectors("linear", k + 1, PARENT)
        parent.products, state.inertia = _products(steps, k + 1), _inertia(steps)
        result = recursion.solve_joint(body, k, _input(steps, k))
        steps.write("found", [result * float(factorial(k))], k)
        steps.write("angular", body.angular[k + 1], 3 * (k + 1))
        steps.write("linear", body.linear[k], 3 * k)
        if k < record.order:
            steps.write("cosines", [body.turn.cosines[k + 2]], k + 2)
            steps.write("sines", [body.turn.sines[k + 2]], k + 2)
            steps.write("slide", [body.slide[k + 2]], k + 2)
    return steps.texts()


def _input(steps: Steps, k: int) -> Any:
    """Return coefficient k of the torque or, where it is prescribed, of the acceleration."""
    return steps.number("inputs", k) * (1.0 / factorial(k))


def _pair(steps: Steps, argument: int = OWN) -> tuple[Any, Any]:
    moment, force = steps.vectors("wrench", 2, argument)
    return moment, force


def _products(steps: Steps, count: int) -> list[Any]:
    """Return the products of the parent's velocities."""
    return [symmetric([steps.number("products", 6 * k + i, PARENT) for i in range(6)]) for k in range(count)]


def _inertia(steps: Steps, argument: int = OWN) -> ArticulatedInertia:
    numbers = [steps.number("inertia", i, argument) for i in range(21)]
    mixed = [numbers[i : i + 3] for i in range(12, 21, 3)]
    angular, linear = ([list(row) for row in symmetric(part)] for part in (numbers[:6], numbers[6:12]))
    return ArticulatedInertia(angular, mixed, linear)


def _numbers(inertia: ArticulatedInertia) -> list[Any]:
    return [*six(inertia.angular), *six(inertia.linear), *(x for row in inertia.mixed for x in row)]


def _base_texts(record: Record, frame: BaseRepresentation, prescribed: bool) -> list[Text]:
    """Write the steps of a floating base, with arguments (pose or given, own record, constants, more).

    Given are its wrench by order, `more` then being the result; or its twist, and by `move` the derivatives.
    """
    steps = Steps("base", record, 4)
    graph = steps.graph
    gravity = [graph.input(CONSTANTS, N_CONSTANTS + i) for i in range(3)]
    base = FloatingBase(
        [[graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)], gravity, frame
    )
    constants = traced_body(graph, JointKind.BASE)
    recursion = ArticulatedRecursion([constants], _REST, base, base_prescribed=prescribed)
    body, state = recursion.bodies[0], recursion.states[0]
    steps.begin("start")
    recursion.start([], [], [graph.input(3, i) for i in range(6)])
    steps.write("angular", base.angular[0])
    steps.write("velocity", base.velocity[0])
    steps.write("inertia", _numbers(state.inertia))
    if not prescribed:
        steps.begin("factor")
        recursion.base_factor = factorise(_inertia(steps).rows())
    for k in range(record.order + 1):
        steps.begin(f"bias{k}")
        recursion.multiply_velocities(body, k)
        steps.write("products", six(body.products[k]), 6 * k)
        steps.write_vectors("wrench", body.wrench(k, _REST, _REST))
        if prescribed:
            steps.begin(f"move{k}")
            recursion.move_base(k, [graph.input(3, 6 * k + j) * (1.0 / factorial(k + 1)) for j in range(6)])
            _write_base(steps, base, body, k)
            steps.begin(f"close{k}")
            state.inertia = _inertia(steps)
            recursion.release_base(k, _pair(steps), ())
            result = [x * float(factorial(k)) for x in recursion.base_wrench(k)]
        else:
            steps.begin(f"release{k}")
            inputs = [graph.input(PARENT, 6 * k + j) * (1.0 / factorial(k)) for j in range(6)]
            recursion.release_base(k, _pair(steps), inputs)
            _write_base(steps, base, body, k)
            result = [x * float(factorial(k + 1)) for x in base.twist(k + 1)]
        steps.store([(3, 6 * k + i, x) for i, x in enumerate(result)])
    return steps.texts()


def _write_base(steps: Steps, base: FloatingBase, body: Body, k: int) -> None:
    steps.write("angular", base.angular[k + 1], 3 * (k + 1))
    steps.write("velocity", base.velocity[k + 1], 3 * (k + 1))
    steps.write("linear", body.linear[k], 3 * k)


@lru_cache(maxsize=KEPT)
def _hybrid_code(
    order: int, frame: BaseRepresentation | None, loaded: bool, prescribed: bool, base_prescribed: bool
) -> Code:
    """Compile the loops and steps of one order, with applied wrenches and prescribed joints or without."""
    record = _record(order)
    places = record.places
    first, columns = (1, 6) if frame else (0, 0)
    variants = (*FREE, *PRESCRIBED) if prescribed else FREE
    texts = [text for variant in variants for text in _body_texts(variant, record)]
    texts += _base_texts(record, frame, base_prescribed) if frame else []
    state = Column(View("state"), places["state"], 2)
    inputs = Column(View("inputs"), places["inputs"], order + 1)
    body: list[Statement] = [
        each_body("start", "outward", first, record, [state, inputs], variants=variants),
        each_body("articulate", "inward", first, record, variants=variants),
    ]
    pose, twist, base_inputs, result = arrays(("pose", "twist", "base_inputs", "base_results"))
    own = [base_of(record), BASE_CONSTANTS]

    def base_step(name: str, before: View, after: View) -> list[Statement]:
        return [Run(Code(f"{name}_base"), [before, *own, after])]

    local = scratch(order) if loaded else {}
    if frame:
        local |= {result.buffer: 6 * (order + 1)}
        body = [*base_step("start", pose, twist), *body]
        if not base_prescribed:
            body += base_step("factor", pose, twist)
    for k in range(order + 1):
        if frame:
            body += base_step(f"bias{k}", pose, twist)
        if base_prescribed:
            body += base_step(f"move{k}", twist, base_inputs)
        body.append(each_body(f"bias{k}", "outward", first, record, variants=variants))
        if loaded:
            target = k, places["wrench"], places["wrench"] + 3
            texts += load_texts(f"load{k}", record, k + 1, [target], frame is not None)
            body += each_load(f"load{k}", record, frame is not None)
        body.append(each_body(f"gather{k}", "inward", first, record, variants=variants))
        if frame:
            body += base_step(f"close{k}" if base_prescribed else f"release{k}", base_inputs, result)
        solved = Column(OUT, places["found"] + k, 1, k, columns)
        body.append(each_body(f"solve{k}", "outward", first, record, after=[solved], variants=variants))
    if frame:
        body += base_columns(result, order + 1)
    arguments = [*arrays(("state", "inputs")), *([pose, twist, base_inputs] if frame else [])]
    arguments += APPLIED if loaded else []
    return tree_code(tree_program(arguments, local, record, body), texts)


class TreeHybridKernel(TreeFunction):
    """Forward and hybrid dynamics by the generic code, with the arguments of `kernels.hybrid_dynamics`."""

    def __init__(self, model: TreeModel, order: int, setting: KernelSpec) -> None:
        loaded, prescribed = bool(setting.loads), bool(setting.prescribed)
        code = _hybrid_code(order, setting.base, loaded, prescribed, setting.base_prescribed)
        super().__init__(model, hybrid_arguments(model, order, setting), order, code, setting)
