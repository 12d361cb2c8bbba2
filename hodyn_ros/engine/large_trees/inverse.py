"""One compiled kernel for trees of any size: a loop over bodies instead of straight-line code.

The recursion is traced for a single body of every kind of joint, with its constants and its parent's motion
in memory, and a small loop calls the right one body by body, outward and back inward. The code depends on the
order alone; it is compiled once, whatever the robot. It takes about twice the time of straight-line code per
body.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import Function, Shape
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.codegen.program import Code, Copy, Index, Program, Run, Statement, View, arrays
from hodyn_ros.codegen.program_llvm import compile_program, llvm_text
from hodyn_ros.codegen.sincos import sincos_function
from hodyn_ros.engine.kernel_spec import KernelSpec, tree_arguments
from hodyn_ros.engine.large_trees.steps import Steps
from hodyn_ros.engine.large_trees.tree_loads import (
    APPLIED,
    each_load,
    load_constants,
    load_plan,
    load_texts,
    scratch,
)
from hodyn_ros.engine.large_trees.tree_loops import (
    BASE_CONSTANTS,
    CONSTANTS,
    OUT,
    PLAN,
    Column,
    base_columns,
    base_of,
    each_body,
    tree_program,
)
from hodyn_ros.engine.large_trees.tree_memory import CONSTANTS as OF_BODY
from hodyn_ros.engine.large_trees.tree_memory import (
    KINDS,
    N_CONSTANTS,
    NOTHING,
    PARENT,
    Record,
    Text,
    constants_of,
    six,
    traced_body,
)
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import symmetric
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
    gravity = [graph.input(OF_BODY, N_CONSTANTS + i) for i in range(3)]
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


@lru_cache(maxsize=KEPT)
def _inverse_code(order: int, frame: BaseRepresentation | None, loaded: bool) -> Code:
    """Compile the loops and steps of inverse dynamics of one order, with applied wrenches or without."""
    record = _record(order)
    texts = [text for kind in KINDS for text in _body_texts(kind, record)]
    texts += _base_texts(record, frame) if frame else []
    first, columns = (1, 6) if frame else (0, 0)
    joints = Column(View("q"), record.places["q"], order + 3)
    torques = Column(OUT, record.places["torque"], order + 1, skipped=columns)
    body: list[Statement] = [each_body("outward", "outward", first, record, [joints])]
    if loaded:
        moment, force = (record.places[name] for name in ("moment", "force"))
        targets = [(k, moment + 3 * k, force + 3 * k) for k in range(order + 1)]
        texts += load_texts("load", record, order + 1, targets, frame is not None)
        body += each_load("load", record, frame is not None)
    body.append(each_body("inward", "inward", first, record, after=[torques]))
    arguments, local = [View("q")], scratch(order) if loaded else {}
    if frame:
        pose, twists, wrench = arrays(("pose", "twists", "wrench"))
        local |= {"wrench": 6 * (order + 1)}
        arguments += [pose, twists]
        base = [pose, base_of(record), BASE_CONSTANTS]
        body = [
            Run(Code("outward_base"), [*base, twists]),
            *body,
            Run(Code("inward_base"), [*base, wrench]),
            *base_columns(wrench, order + 1),
        ]
    arguments += APPLIED if loaded else []
    return tree_code(tree_program(arguments, local, record, body), texts)


def tree_code(program: Program, steps: Sequence[Text]) -> Code:
    """Compile loops with their steps; kept on disk, as they serve every robot."""
    widths = sorted(set().union(*(width for _, width in steps)))
    beside = [*(text for text, _ in steps), *(sincos_function(width) for width in widths)]
    code = compile_program(program, "".join(beside))
    return Code(program.name, code.address, alive=code)


class TreeFunction(Function):
    """A function of one robot through generic code, which gets the robot's plan and constants.

    The last arguments are applied wrenches where there are loads. Joints that are prescribed take the steps
    `PRESCRIBED`.
    """

    def __init__(
        self,
        model: TreeModel,
        arguments: Sequence[tuple[str, Shape]],
        order: int,
        code: Code,
        setting: KernelSpec,
    ) -> None:
        loads, columns = setting.loads, model.n_joints + (6 if setting.base else 0)
        bodies = canonical_bodies(model)
        plan = [
            (
                KINDS.index(kind) + len(KINDS) * (body.joint in setting.prescribed) if kind in KINDS else -1,
                body.parent + 1,
            )
            for kind, body in zip(model.kinds, bodies)
        ]
        gravity = model.gravity.tolist()
        ground = [-g for g in gravity] + [0.0] * N_CONSTANTS
        constants = [ground, *[[*constants_of(body), *gravity] for body in bodies]]
        data = {"plan": np.array(plan, dtype=np.int64), "constants": np.array(constants, dtype=np.float64)}
        inputs, passed = arrays(f"a{i}" for i in range(len(arguments))), []
        local, body = {}, list[Statement]()
        plain = len(inputs) - len(loads)
        if loads:
            size = 6 * (order + 1)
            local["applied"] = len(loads) * size
            data |= {
                "load_plan": load_plan(model, bodies, loads),
                "placements": load_constants(bodies, loads),
            }
            passed = arrays(("applied", "load_plan", "placements"))
            body = [Copy(passed[0].at(i * size), wrench, size) for i, wrench in enumerate(inputs[plain:])]
        everything = [*inputs[:plain], *passed, OUT, PLAN, CONSTANTS]
        body.append(Run(code, [*everything, Index.of(model.n_bodies), Index.of(model.n_joints)]))
        program = Program("hodyn_kernel", [*inputs, OUT], local, body, data)
        self._alive = program  # what its text points to
        super().__init__(
            compile_text(llvm_text(program), program.name, None), arguments, (order + 1, columns)
        )

    @cached_property
    def batch_code(self) -> MachineCode:
        """See `Function`."""
        return self._one_by_one()


class TreeKernel(TreeFunction):
    """Inverse dynamics by the generic code, with the arguments of `kernels.inverse_dynamics`."""

    def __init__(self, model: TreeModel, order: int, setting: KernelSpec) -> None:
        code = _inverse_code(order, setting.base, bool(setting.loads))
        super().__init__(model, tree_arguments(model, order + 3, setting.loads), order, code, setting)
