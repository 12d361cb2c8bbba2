"""The inverse dynamics of one robot and one order as a C99 file with its header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel import traced
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import checked_name, comment_block, name_from, string
from hodyn_ros.export.header import header_lines
from hodyn_ros.export.interface import Interface
from hodyn_ros.export.motors import motors_of
from hodyn_ros.export.self_test import self_test
from hodyn_ros.export.straight_line import statements
from hodyn_ros.model.tree import TreeModel

_MOST_OPERATIONS = 40_000  # of one function; optimizing compilers take half a minute for it, and ever longer


@dataclass(frozen=True)
class CSource:
    """Texts of `<name>.h` and `<name>.c`, the operations of one call, and what was left out and why."""

    name: str
    header: str
    source: str
    operations: int
    notes: tuple[str, ...]


def c_source(robot: Robot, order: int, name: str | None = None, origin: str = "") -> CSource:
    """Write the compiled recursion of a robot as C99 without dependencies, which C++ compiles as well.

    The functions are straight-line code apart from `sin` and `cos` of math.h: no branches that depend on
    data, no memory but the stack, no state. `<name>_inverse_dynamics` takes `q` (order + 3, n) row by row and
    gives torques (order + 1, n); with a floating base it also takes pose (4, 4) and twists (order + 2, 6) in
    the world frame, and gives the base wrench (order + 1, 6) in the world frame. `<name>_motor_feedforward`
    is there where the robot has series elastic drives and the order suffices. `<name>_self_test` returns the
    largest relative error against numbers computed here by `Robot.compile`.

    `name` starts the names of all functions, by default it is made from the robot's; `origin` says in the
    comment where the robot comes from. Raises InputError for an order, a name or a robot that cannot be
    exported.
    """
    model = robot.model
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
        raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
    if not model.n_joints:
        raise InputError(f"robot {model.name!r} has no joints; there is nothing to export")
    chosen = checked_name(name_from(model.name) if name is None else name)
    interface = Interface(chosen, int(order), model, motors_of(robot, int(order)))
    body, operations = _recursion(model, interface)
    title = [
        f"Inverse dynamics of robot {model.name!r} with time derivatives up to order {order}, written by "
        "`hodyn export`. Do not edit; export again.",
        *([f"From {origin}."] if origin else []),
    ]
    notes = _notes(robot, interface)
    header = header_lines(interface, [*title, *notes])
    test = self_test(robot, interface)
    build = f"cc -std=c99 -O2 -D{interface.macro}_MAIN {chosen}.c -lm -o {chosen}_test && ./{chosen}_test"
    source = [
        *comment_block(
            [*title, "", "Conventions: see the header. A program that runs the self-test:", f"  {build}"]
        ),
        f'#include "{chosen}.h"',
        "",
        "#include <math.h>",
        f"#ifdef {interface.macro}_MAIN",
        "#include <stdio.h>",
        "#include <time.h>",
        "#endif",
        "",
        f"const char *const {chosen}_joint_names[{model.n_joints}] = {{",
        *[f"  {string(joint)}," for joint in model.joint_names],
        "};",
        "",
        f"/* {operations} additions, subtractions, multiplications and divisions. */",
        f"void {chosen}_inverse_dynamics({interface.parameters})",
        "{",
        *[f"  (void){argument};" for argument in interface.inputs],
        *body,
        "}",
        "",
        *([] if interface.motors is None else [*interface.motors.lines(chosen), ""]),
        *test.lines(),
    ]
    return CSource(chosen, "\n".join(header) + "\n", "\n".join(source) + "\n", operations, tuple(notes))


def _recursion(model: TreeModel, interface: Interface) -> tuple[list[str], int]:
    """Write the body of the inverse dynamics, and count its operations."""
    setting = kernels.Setting(base="world" if model.floating_base else None)
    trace, arguments = kernels.inverse_dynamics_trace(model, interface.order, setting)
    graph, outputs, (_, columns) = traced(trace, [shape for _, shape in arguments])
    operations = graph.count_operations(outputs)
    if operations > _MOST_OPERATIONS:
        raise InputError(
            f"robot {model.name!r} at order {interface.order} takes {operations} operations, and C compilers "
            f"cannot cope with more than about {_MOST_OPERATIONS} in one function; choose a lower order"
        )
    base_columns = columns - model.n_joints  # those of the base stand before those of the joints
    stores: list[tuple[str, Any]] = []
    for index, value in enumerate(outputs):
        row, column = divmod(index, columns)
        if column < base_columns:
            stores.append((f"base_wrench[{row * base_columns + column}]", value))
        else:
            stores.append((f"tau[{row * model.n_joints + column - base_columns}]", value))
    return statements(graph, [argument for argument, _ in arguments], stores), operations


def _notes(robot: Robot, interface: Interface) -> list[str]:
    if robot.drives is None or interface.motors is not None:
        return []
    if robot.actuation is None:
        return [
            f"{interface.name}_motor_feedforward is left out: the drives have friction, or springs that are "
            "damped or not linear."
        ]
    return [
        f"{interface.name}_motor_feedforward is left out: the motor efforts of elastic joints need order 2 "
        f"or higher, and this is order {interface.order}."
    ]
