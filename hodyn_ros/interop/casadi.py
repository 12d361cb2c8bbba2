"""Robots as functions of CasADi, with exact Jacobian, directional derivatives and Hessian."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.engine.traced_function import TracedFunction
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import checked_name, comment_block, name_from, string
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length
from hodyn_ros.extras import needed
from hodyn_ros.interop.casadi_functions import Block, External, externals
from hodyn_ros.interop.casadi_library import library, makes_libraries, write_library
from hodyn_ros.interop.robot_functions import function_of
from hodyn_ros.lie.representations import Representation
from hodyn_ros.outputs import write_text

# A Hessian costs about as much as so many of its directions.
_DIRECTIONS = 2


def function(
    robot: Robot,
    what: str = "inverse_dynamics",
    order: int = 0,
    *,
    frames: Sequence[str | int] | None = None,
    representation: Representation = "spatial",
    name: str | None = None,
    samples: int = 1,
) -> Any:
    """Return a `casadi.Function` of one operation of a robot without loops, as machine code.

    `what`: "inverse_dynamics", "forward_dynamics", "forward_kinematics", "jacobian", "com", "mass_matrix",
    "coriolis_matrix" or "gravity_torque", with arguments and results of one order as of `Robot.compile`,
    transposed: a column for each derivative order. Inverse dynamics of order 0 takes q (n, 3), the positions,
    velocities and accelerations, and gives tau (n, 1). `jac`, `fwd`, `adj` and the Hessian of a sum are exact
    and compiled along; all numbers of the arguments count as independent, entries of a pose too. `name`
    begins with a letter; by default it is made of the robot's. `samples`: a function of so many motions side
    by side, as `map` makes one, that computes several in the lanes of vector registers.

    The function is a shared object in the cache of machine code, which no compiler or linker makes: code that
    CasADi generates can be linked with it. Raises InputError for what is not offered.
    """
    casadi = needed("casadi")
    traced = function_of(robot, what, order, frames, representation)
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise InputError(f"samples must be a positive whole number, found {samples!r}")
    called = checked_name(f"{name_from(robot.name)}_{what}_{order}" if name is None else name)
    path = write_library(library(externals(traced, called, samples)))
    return casadi.external(called, str(path), _derivative_options(traced, samples))


def _derivative_options(traced: TracedFunction, samples: int) -> dict[str, Any]:
    """Return the options of `casadi.external` with which solvers call the compiled Hessian.

    CasADi differentiates expressions in several directions at a time, gradients by one call of `fwd1_adj1_f`
    for each, unless the Jacobian `jac_adj1_f` counts as cheaper: if there are more directions than
    `jac_penalty` times the inputs, or twice as many as that times the outputs. Not so of the function itself,
    whose directions cost little: what CasADi does with its Jacobian costs as much.
    """
    outputs = samples * sum(traced.sizes)
    inputs = outputs + 2 * samples * traced.size
    return {"reverse_options": {"jac_penalty": max(_DIRECTIONS / outputs, 2.0 * _DIRECTIONS / inputs)}}


def export_casadi(choice: RobotChoice, request: ExportRequest, out: Path) -> list[Path]:
    """Write `<name>_<what>_<order>.c` for acados and code that CasADi generates, and `.so` for CasADi.

    Both hold the external function of that name with its derivatives, as `function` returns it, one file for
    each operation. The shared object is written where one can be made without a compiler (x86-64, Linux).
    Returns the paths. Raises InputError for what is not offered, ModelError or OSError.
    """
    robot, order = choice.robot(), request.order
    prefix = name_from(robot.name) if request.name is None else request.name
    paths = []
    out.mkdir(parents=True, exist_ok=True)
    for each in request.what:
        traced = function_of(robot, each, order, request.frames_of(each), request.representation)
        called = checked_name(f"{prefix}_{each}_{order}")
        functions = externals(traced, called)
        subject = each.replace("_", " ").capitalize()
        title = [
            f"{subject} of robot {robot.name!r} of order {order} as an external function of CasADi with "
            "exact derivatives, written by `hodyn export --lang casadi`. Do not edit; export again.",
            "",
            "Matrices are by columns, one for each derivative order. A shared object of it:",
            f"  cc -std=c99 -O2 -fPIC -shared {called}.c -lm -o {called}.so",
        ]
        paths.append(out / f"{called}.c")
        write_text(paths[-1], source(functions, title))
        if makes_libraries():
            paths.append(out / f"{called}.so")
            paths[-1].write_bytes(library(functions))
    return paths


def source(functions: Sequence[External], title: Sequence[str]) -> str:
    """Return the text of one file with external functions; InputError where one would be too long."""
    tables = Tables()
    written = [_function(function, tables) for function in functions]
    most = max([1, *(block.size for function in functions for block in function.inputs)])
    patterns = dict.fromkeys(
        tuple(block.sparsity) for function in functions for block in (*function.inputs, *function.outputs)
    )
    names = {pattern: f"sparsity{i}" for i, pattern in enumerate(patterns)}
    lines = [
        *comment_block(title),
        "#include <math.h>",
        "",
        "#ifndef casadi_int",
        "#define casadi_int long long int",
        "#endif",
        "",
        *(line for pattern, name in names.items() for line in _pattern(name, pattern)),
        "",
        f"static const double zeros[{most}] = {{0.0}};",
        "",
        *tables.lines(),
    ]
    for function, body in zip(functions, written):
        lines += [*body, "", *_about(function, names), ""]
    return "\n".join(lines)


def _function(function: External, tables: Tables) -> list[str]:
    numbers = [value for values in function.values for value in values]
    checked_length(function.graph, numbers, function.name)
    inputs = [f"in{i}" for i in range(len(function.inputs))]
    code = StraightLine(function.graph, inputs, numbers, tables)
    lines = [
        f"int {function.name}(const double **arg, double **res, casadi_int *iw, double *w, int mem)",
        "{",
        *[f"  const double *const {name} = arg[{i}] ? arg[{i}] : zeros;" for i, name in enumerate(inputs)],
        *code.lines,
        *[f"  (void){name};" for name in (*inputs, "iw", "w", "mem")],
    ]
    for j, values in enumerate(function.values):
        if values:
            lines.append(f"  if (res[{j}]) {{")
            lines += [f"    res[{j}][{i}] = {code.text(value)};" for i, value in enumerate(values)]
            lines.append("  }")
    return [*lines, "  return 0;", "}"]


def _about(function: External, patterns: dict[tuple[int, ...], str]) -> list[str]:
    """Write the functions that say what a function takes and gives."""
    name, sizes = function.name, (len(function.inputs), len(function.outputs))
    lines = [
        f"casadi_int {name}_n_in(void) {{ return {sizes[0]}; }}",
        f"casadi_int {name}_n_out(void) {{ return {sizes[1]}; }}",
        f"void {name}_incref(void) {{}}",
        f"void {name}_decref(void) {{}}",
        f"int {name}_work(casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w)",
        "{",
        *[
            f"  if ({argument}) *{argument} = {size};"
            for argument, size in zip(("arg", "res", "iw", "w"), (*sizes, 0, 0))
        ],
        "  return 0;",
        "}",
    ]
    for end, blocks in (("in", function.inputs), ("out", function.outputs)):
        lines += _switch(f"const char *{name}_name_{end}", [string(one.name) for one in blocks])
        lines += _switch(
            f"const casadi_int *{name}_sparsity_{end}", [_named(one, patterns) for one in blocks]
        )
    return lines


def _named(block: Block, patterns: dict[tuple[int, ...], str]) -> str:
    return patterns[tuple(block.sparsity)]


def _switch(head: str, values: Sequence[str]) -> list[str]:
    cases = [f"    case {i}: return {value};" for i, value in enumerate(values)]
    return [f"{head}(casadi_int i)", "{", "  switch (i) {", *cases, "    default: return 0;", "  }", "}"]


def _pattern(name: str, values: Sequence[int]) -> list[str]:
    rows = [", ".join(map(str, values[i : i + 24])) for i in range(0, len(values), 24)]
    return [f"static const casadi_int {name}[{len(values)}] = {{", *[f"  {row}," for row in rows], "};"]
