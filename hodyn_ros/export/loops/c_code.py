"""C code of robots with couplings or loops: Newton's method, straight-line code, and a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.codegen.kernel import traced
from hodyn_ros.codegen.program import Code, Copy, Put, Run, Statement, View, arrays
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.newton import newton
from hodyn_ros.engine.series.validity import SINGLE
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions
from hodyn_ros.export.c_function import (
    ALL_FINITE,
    NEAR_SINGULAR,
    OK,
    Cases,
    CFunction,
    Memory,
    rounded,
    rounding_error,
    static_function,
    unless,
)
from hodyn_ros.export.c_text import comment_block, number
from hodyn_ros.export.loops.operations import of_motion
from hodyn_ros.export.loops.plan import Plan
from hodyn_ros.export.program_c import statement_lines
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.small.wide import WideLine, wide_lines
from hodyn_ros.export.straight_line import StraightLine, Tables
from hodyn_ros.lie.se3 import Array

# On small processors the last step is taken by gaps of more digits than all else: a loop is open by what is
# left of lengths that are much longer. It follows where its square, as of `following_step`, is below this:
# what it leaves is then beyond 24 bits.
_GAPS, _CLOSING, _NEARLY = "gaps", "closing_step", 1e-8


def loop_function(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write a function of a robot with couplings or loops.

    It takes a memory and the motion of the coordinates, and returns a code.
    """
    operation = OPERATIONS[what]
    plan: Plan = (operation.law("loops_plan") if operation.loops_plan else of_motion)(robot, request, what)
    if request.target is not None:
        plan = replace(plan, tolerances=SINGLE)
    memory = _memory(plan)
    body = plan.body(f"{what} of robot {robot.name!r} at order {request.order}", tables)
    macro = request.prefix.upper()
    steps = _steps(plan, tables, macro)
    answer = f"{macro}_OK"
    if plan.singularity is not None:
        answer = f"({body.singularity} > {number(plan.singularity[1])}) ? {macro}_NEAR_SINGULAR : {macro}_OK"
    lines = [
        *_newton(plan, steps, macro),
        *body.lines,
        *unless([f"({body.defect} < 1.0)"], plan.inputs, macro),
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
        self_test_cases(plan, tables.small),
        remembers={plan.remembered: memory},
        fails=True,
        operations=body.operations + steps.operations,
        helpers={**steps.functions, **body.helpers, **ALL_FINITE},
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


def _newton(plan: Plan, steps: _Steps, macro: str) -> list[str]:
    """Write Newton's method for the positions, from those in the memory."""
    reached, memory, gaps = View("reached"), View(f"memory->{plan.remembered}"), View(_GAPS)
    error, arguments = reached.at(plan.n), arrays(_step_arguments(plan))
    repeated = [Run(Code(plan.step), [*arguments, reached])]
    arrived = _NEARLY if steps.rows else plan.tolerances.arrived
    begun: list[Statement] = [
        Copy(reached, memory, plan.n),
        newton(repeated, error, plan.law.iterations, arrived) if steps.functions else Put(error, 0.0),
    ]
    lines = [f"  double reached[{plan.n + 1}];"]
    if steps.rows:
        lines.append(f"  double {_GAPS}[{steps.rows}];")
        begun.append(Run(Code(f"find_{_GAPS}"), [*arguments, reached, gaps]))
        begun.append(Run(Code(_CLOSING), [*arguments, gaps, reached]))
    return [*lines, *statement_lines(begun, always=f"{macro}_CONSTANT_TIME")]


class _Steps(NamedTuple):
    """Functions that improve positions, by name, and the most operations that all steps take together.

    `rows`: how many gaps the last step is taken by, where it is another one.
    """

    functions: dict[str, list[str]]
    operations: int
    rows: int = 0


def _steps(plan: Plan, tables: Tables, macro: str) -> _Steps:
    """Write the steps of Newton's method; none where no positions are unknown."""
    arguments, names, law = _step_arguments(plan), _known(plan), plan.law
    shapes = [*(plan.inputs[name] for name in names), (1, plan.n + 1)]
    read = [*names, "reached"]
    graph, outputs, _ = traced(law.newton_step, shapes)
    operations = graph.count_operations(outputs)
    if not operations:
        return _Steps({}, 0)
    code = StraightLine(graph, read, outputs, tables)
    step = _step_function(plan.step, arguments, "reached", code, outputs)
    operations *= law.iterations
    if not tables.small:
        return _Steps({plan.step: step}, operations)
    assert law.steps_in_two
    graph, outputs, (_, rows) = traced(law.gaps, shapes)
    operations += graph.count_operations(outputs)
    code = WideLine(graph, read, outputs, tables)
    gaps = _step_function(f"find_{_GAPS}", [*arguments, "reached"], _GAPS, code, outputs)
    graph, outputs, _ = traced(law.closing_step, [*shapes, (1, rows)])
    operations += graph.count_operations(outputs)
    code = StraightLine(graph, [*read, _GAPS], outputs, tables)
    closing = _step_function(_CLOSING, [*arguments, _GAPS], "reached", code, outputs)
    functions = {plan.step: step, "wide": wide_lines(macro), f"find_{_GAPS}": gaps, _CLOSING: closing}
    return _Steps(functions, operations, rows)


def _step_function(
    name: str, arguments: Sequence[str], result: str, code: StraightLine, outputs: Sequence[Any]
) -> list[str]:
    stores = [f"  {result}[{i}] = {code.text(value)};" for i, value in enumerate(outputs)]
    return static_function(name, arguments, result, [*code.lines, *stores])


def _step_arguments(plan: Plan) -> list[str]:
    """Return the names of what positions follow from."""
    return [name for name in _known(plan) if np.prod(plan.inputs[name])]


def _known(plan: Plan) -> list[str]:
    """Return the names of the motion of the coordinates, and of the pose of platform or base."""
    return list(plan.inputs)[: 1 if plan.closure.leader is None else 2]


_ROUNDING = 1e-13  # share of the largest number
_NEAR_HOME = (0.1, 0.03, 0.01, 0.001)  # [rad or m] how far from home the tests are: the first that can be


def self_test_cases(plan: Plan, small: bool) -> Cases:
    """Choose motions near home that the kernel follows, from the first to the last and around again.

    `small`: in numbers of 24 bits.
    """
    for reach in _NEAR_HOME:
        cases = _near_home(plan, reach, small)
        if cases is not None:
            return cases
    raise InputError(
        f"robot {plan.closure.tree.name!r} cannot be exported: the poses near its home are singular, and "
        "there is nothing to test the code with"
    )


def _near_home(plan: Plan, reach: float, small: bool) -> Cases | None:
    """Return the calls, a motion that cannot be first; None where the kernel rejects one."""
    kernel, random, calls = plan.kernel, Random(1), []
    memory, home = np.zeros(kernel.arguments[-1][1]), plan.looped.memory.copy()
    memory[:, : home.shape[1]] = home[:, : memory.shape[1]]
    for _ in range(motions.COUNT):
        motion = plan.motion(random, reach)
        plan.looped.memory[:] = home
        rest = list(plan.inputs.values())[len(motion) :]
        calls.append([*motion, *(motions.numbers(random, *shape) for shape in rest)])
    nearest = [_rounded_inputs(plan, call) for call in calls]
    calls, other_calls = (nearest, calls) if small else (calls, nearest)
    *tables, again = [kernel.function(*call, memory) for call in [*calls, calls[0]]]
    other_tables = [kernel.function(*call, memory) for call in other_calls]
    if not all(table.item(kernel.defect_at) < 1.0 for table in [*tables, again]):
        return None
    parts = [{name: _rounded(values) for name, values in plan.results_in(table).items()} for table in tables]
    codes = []
    for table in tables:
        near = plan.singularity is not None and table.item(plan.singularity[0]) > plan.singularity[1]
        codes.append(NEAR_SINGULAR if near else OK)
    near_by = [plan.results_in(table) for table in other_tables]
    results, of_rounded = (
        {name: np.array([one[name] for one in each]) for name in plan.results} for each in (parts, near_by)
    )
    inputs = {name: np.array(values) for name, values in zip(plan.inputs, zip(*calls))}
    return Cases(
        inputs, results, tuple(codes), rounding_error=rounding_error(results, of_rounded)
    ).after_failure()


def _rounded_inputs(plan: Plan, call: Sequence[Array]) -> list[Array]:
    """Return inputs of 24 bits, but poses as they are: rounded ones are not those of rigid bodies."""
    return [x if name == "pose" else rounded(x) for name, x in zip(plan.inputs, call)]


def _rounded(rows: Array) -> Array:
    """Return numbers by rows, which are zero where they are nothing but rounding: they measure errors."""
    sizes = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    result: Array = np.where(sizes > _ROUNDING * sizes.max(initial=0.0), rows, 0.0)
    return result
