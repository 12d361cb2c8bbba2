"""The dynamics of one robot and one order as a C99 file with its header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hodyn_ros.dynamics.operations import EXPORTED, OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_function import CFunction, Memory
from hodyn_ros.export.c_text import comment_block, string
from hodyn_ros.export.functions.motors import (
    BOTH,
    left_out,
    motor_functions,
    rotor_feedforward,
    turning_rotors,
)
from hodyn_ros.export.functions.observer import OBSERVER, observer_functions
from hodyn_ros.export.functions.propellers import THRUSTS, propeller_function
from hodyn_ros.export.header import Small, header_lines, name_arrays
from hodyn_ros.export.loops.c_code import loop_function
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.self_test import self_test
from hodyn_ros.export.small.single import in_single
from hodyn_ros.export.small.stack import find_target, stack_bytes
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.export.trees import tree_function

ALL = (*EXPORTED, THRUSTS, OBSERVER)
# What 24 bits are enough for.
_SINGLE = (
    *("inverse_dynamics", "forward_dynamics", "forward_kinematics", "jacobian", "com", "com_jacobian"),
    *("mass_matrix", "gravity_torque", "coriolis_matrix", "joint_motion", "drive_jacobian"),
)


@dataclass(frozen=True)
class CSource:
    """Texts of `<name>.h` and `<name>.c`, the operations of one call, and what was left out and why.

    `functions`: what they hold.
    """

    name: str
    header: str
    source: str
    operations: int
    notes: tuple[str, ...]
    functions: tuple[CFunction, ...] = field(default=(), compare=False, repr=False)


def c_source(robot: Robot, request: ExportRequest, origin: str = "") -> CSource:
    """Write what the engine computes of a robot as C99 without dependencies, which C++ compiles as well.

    The functions are straight-line code apart from `sin` and `cos` of math.h; those of robots with loops
    begin with Newton's method, and take a memory and return a code. `<name>_inverse_dynamics` takes `q`
    (order + 3, n) row by row and gives torques (order + 1, n); with a floating base it also takes pose (4, 4)
    and twists (order + 2, 6) in the world frame, and gives the base wrench (order + 1, 6) in the world frame.
    `<name>_motor_feedforward`, and `<name>_feedforward` that does both, come with it where the robot has
    drives and the order suffices.
    `<name>_self_test` returns the largest relative error against numbers computed here.

    For a small processor no library is called for sines and cosines, and the header says how much stack calls
    take. `origin` says in the comment where the robot comes from. Raises InputError for what cannot be
    exported.
    """
    if not robot.tree.n_joints:
        raise InputError(f"robot {robot.name!r} has no joints; there is nothing to export")
    _check(robot, request)
    request = request.of(robot)
    wanted, prefix, order, period = request.what, request.prefix, request.order, request.period
    tables = Tables(small=request.target is not None)
    functions: list[CFunction] = []
    notes = []
    for each in wanted:
        if each == OBSERVER:
            functions += observer_functions(robot, request, tables)
            continue
        write = propeller_function if each == THRUSTS else robot_function
        functions.append(write(robot, request, each, tables))
        if each == "inverse_dynamics" and robot.drive_train is not None:
            reason = left_out(robot, order, prefix)
            if reason is None:
                functions += motor_functions(robot, request, functions[-1], tables)
            else:
                notes.append(reason)
                if turning_rotors(robot, order):
                    functions.append(rotor_feedforward(robot, request, tables))
    if period is not None and not any("deflection" in function.remembers for function in functions):
        notes.append("the period counts for nothing: no damped spring remembers longer than that.")
    head = f"{_title(wanted)} of robot {robot.name!r} with time derivatives up to order {order}"
    return composed(robot, request, functions, tables, head, origin, notes)


def robot_function(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write one operation of a robot."""
    write = tree_function if robot.closure is None else loop_function
    return write(robot, request, what, tables)


def composed(
    robot: Robot,
    request: ExportRequest,
    functions: Sequence[CFunction],
    tables: Tables,
    title: str,
    origin: str,
    notes: Sequence[str] = (),
) -> CSource:
    """Return the texts that hold some functions; `title` says of what, `notes` what is left out."""
    prefix, order = request.prefix, request.order
    head = [
        f"{title}, written by `hodyn export`. Do not edit; export again.",
        *([f"From {origin}."] if origin else []),
    ]
    remembered: dict[str, Memory] = {}
    for function in functions:
        remembered.update(function.remembers)
    memory = [line for part in remembered.values() for line in part.members]
    code = _code(robot, prefix, functions, remembered, tables)
    small = None if request.target is None else _small(request.target, functions, code, memory)
    header = _text(header_lines(robot, order, prefix, functions, memory, [*head, *notes], small))
    tests = self_test(prefix, functions, small=small is not None)
    source = _text([*_head(robot, prefix, head, small), *code, *tests])
    if small is not None:
        header, source = in_single(header), in_single(source)
    operations = sum(one.operations for one in functions if one.name != BOTH or turning_rotors(robot, order))
    return CSource(prefix, header, source, operations, tuple(notes), tuple(functions))


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _check(robot: Robot, request: ExportRequest) -> None:
    """Raise InputError where a request asks for what there is not in C, or of other robots."""
    for each in request.what:
        if each not in ALL:
            raise InputError(f"there is no {each!r} to export; choose some of {', '.join(ALL)}")
    if not request.what:
        raise InputError(f"there is nothing to export; choose some of {', '.join(ALL)}")
    if request.wrenches and not {"inverse_dynamics", "forward_dynamics"} & set(request.what):
        raise InputError("wrenches are of inverse_dynamics and forward_dynamics; leave them out")
    own, kind = ("tree", "with couplings or") if robot.closure is None else ("loops", "without couplings and")
    wrong = [name for name in request.what if name in OPERATIONS and own not in OPERATIONS[name].exported]
    if wrong:
        raise InputError(f"{' and '.join(wrong)} are of robots {kind} loops; leave them out")
    double = [name for name in request.what if name not in _SINGLE]
    if request.target is not None and double:
        raise InputError(f"{' and '.join(double)} need float64; of float32 there are {', '.join(_SINGLE)}")


def _title(wanted: Sequence[str]) -> str:
    """Write a list of what is exported, beginning with a capital letter."""
    words = ", ".join(each.replace("_", " ") for each in wanted)
    return words[0].upper() + words[1:]


def _small(target: str, functions: Sequence[CFunction], code: Sequence[str], memory: Sequence[str]) -> Small:
    """Return what the header says for a small processor."""
    names = [function.full_name for function in functions]
    stack = stack_bytes("\n".join(code), names, find_target(target), memory)
    most = 16.0 * max(function.cases.rounding_error for function in functions)
    wide = any("wide" in function.helpers for function in functions)
    return Small(target, stack, max(1e-5, float(f"{most:.1g}")), wide)


def _head(robot: Robot, prefix: str, title: Sequence[str], small: Small | None) -> list[str]:
    macro = prefix.upper()
    printing = [f"#ifdef {macro}_MAIN", "#include <stdio.h>", "#include <time.h>", "#endif"]
    build = f"cc -std=c99 -O2 -D{macro}_MAIN {prefix}.c -lm -o {prefix}_test && ./{prefix}_test"
    lines = [
        *comment_block(
            [*title, "", "Conventions: see the header. A program that runs the self-test:", f"  {build}"]
        ),
        f'#include "{prefix}.h"',
        "",
        "#include <math.h>",
        *([] if small else printing),
        "",
    ]
    for (array, count), names in zip(name_arrays(robot, prefix), _names(robot)):
        lines += [
            f"const char *const {array}[{count}] = {{",
            *[f"  {string(name)}," for name in names],
            "};",
            "",
        ]
    return lines


def _names(robot: Robot) -> list[tuple[str, ...]]:
    return [names for names in (robot.joint_names, robot.driven_joints) if names]


def _code(
    robot: Robot,
    prefix: str,
    functions: Sequence[CFunction],
    remembered: Mapping[str, Memory],
    tables: Tables,
) -> list[str]:
    lines = []
    if robot.closure is not None:
        constant = f"{prefix.upper()}_CONSTANT_TIME"
        lines += [f"#ifndef {constant}", f"#define {constant} 0", "#endif", ""]
    if remembered:
        home = [f"  {line}" for part in remembered.values() for line in part.home]
        lines += [f"void {prefix}_home({prefix}_memory *memory)", "{", *home, "}", ""]
    lines += tables.lines()
    helpers = {name: text for function in functions for name, text in function.helpers.items()}
    for text in helpers.values():
        lines += [*text, ""] if text else []
    for function in functions:
        count = f"/* {function.operations} additions, subtractions, multiplications and divisions. */"
        lines += [count, *function.definition, ""]
    return lines
