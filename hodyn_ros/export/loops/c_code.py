"""C code of robots with couplings or loops: Newton's method, straight-line code, and a check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hodyn_ros.codegen.kernel import traced
from hodyn_ros.codegen.program import Code, Copy, Put, Run, View, arrays
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.newton import newton
from hodyn_ros.engine.series.validity import SINGLE
from hodyn_ros.export.c_function import ALL_FINITE, CFunction, Memory, finite_conditions
from hodyn_ros.export.c_text import comment_block, number
from hodyn_ros.export.loops.cases import self_test_cases
from hodyn_ros.export.loops.operations import of_motion
from hodyn_ros.export.loops.plan import Plan
from hodyn_ros.export.program_c import statement_lines
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import StraightLine, Tables


def loop_function(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write a function of a robot with couplings or loops.

    It takes a memory and the motion of the coordinates, and returns a code.
    """
    operation = OPERATIONS[what]
    plan: Plan = (operation.make_loops_plan if operation.loops_plan else of_motion)(robot, request, what)
    if request.target is not None:
        plan = replace(plan, tolerances=SINGLE)
    memory = _memory(plan)
    body = plan.body(f"{what} of robot {robot.name!r} at order {request.order}", tables)
    step, more = _newton_step(plan, tables)
    macro = request.prefix.upper()
    answer = f"{macro}_OK"
    if plan.singularity is not None:
        answer = f"({body.singularity} > {number(plan.singularity[1])}) ? {macro}_NEAR_SINGULAR : {macro}_OK"
    counts = [f"({body.defect} < 1.0)", *finite_conditions(plan.inputs)]
    lines = [
        *_newton(plan, bool(step), macro),
        *body.lines,
        f"  if (!({' && '.join(counts)})) {{",
        f"    return {macro}_FAILED;",
        "  }",
        *statement_lines([Copy(View(f"memory->{plan.remembered}"), View("reached"), plan.n)]),
        *body.stores,
        f"  return {answer};",
    ]
    return CFunction(
        request.prefix,
        what,
        plan.inputs,
        plan.results,
        plan.about,
        lines,
        self_test_cases(plan),
        remembers={plan.remembered: memory},
        fails=True,
        operations=body.operations + more,
        helpers={plan.step: step, **body.helpers, **ALL_FINITE},
    )


def _memory(plan: Plan) -> Memory:
    """Return positions as they are remembered, at first those at which the loops are described."""
    names = ", ".join(plan.closure.tree.joint_names[joint] for joint in plan.closure.leading)
    function = "" if plan.remembered == "leading" else " of motion_from_drives"
    about = f"positions [rad or m] at the last success{function}, from which the next are found: {names}"
    home = plan.home
    return Memory(
        [*comment_block([about]), f"double {plan.remembered}[{plan.n}];"],
        [f"memory->{plan.remembered}[{i}] = {number(value)};" for i, value in enumerate(home)],
    )


def _newton(plan: Plan, iterates: bool, macro: str) -> list[str]:
    """Write Newton's method for the positions, from those in the memory."""
    reached, memory = View("reached"), View(f"memory->{plan.remembered}")
    error = reached.at(plan.n)
    step = Run(Code(plan.step), [*arrays(_step_arguments(plan)), reached])
    steps = (
        newton([step], error, plan.traces.iterations, plan.tolerances.arrived)
        if iterates
        else Put(error, 0.0)
    )
    begun = statement_lines([Copy(reached, memory, plan.n), steps], always=f"{macro}_CONSTANT_TIME")
    return [f"  double reached[{plan.n + 1}];", *begun]


def _newton_step(plan: Plan, tables: Tables) -> tuple[list[str], int]:
    """Write the function that improves positions, with the most operations that all steps together take.

    Nothing where no positions are unknown.
    """
    arguments, names = _step_arguments(plan), _known(plan)
    traces, shapes = plan.traces, [*(plan.inputs[name] for name in names), (1, plan.n + 1)]
    graph, outputs, _ = traced(traces.step, shapes)
    operations = graph.count_operations(outputs)
    if not operations:
        return [], 0
    code = StraightLine(graph, [*names, "reached"], outputs, tables)
    parameters = [*(f"const double *{name}" for name in arguments), "double *reached"]
    lines = [
        f"static void {plan.step}({', '.join(parameters)})",
        "{",
        *[f"  (void){name};" for name in arguments],
        *code.lines,
        *[f"  reached[{i}] = {code.text(value)};" for i, value in enumerate(outputs)],
        "}",
    ]
    return lines, operations * traces.iterations


def _step_arguments(plan: Plan) -> list[str]:
    """Return the names of what positions follow from."""
    return [name for name in _known(plan) if np.prod(plan.inputs[name])]


def _known(plan: Plan) -> list[str]:
    """Return the names of the motion of the coordinates, and of the pose of platform or base."""
    return list(plan.inputs)[: 1 if plan.closure.leader is None else 2]
