"""A robot as a shared object, which `hodyn_ros/FeedforwardController` of ros2_control loads."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_function import CFunction, checked, copied
from hodyn_ros.export.c_source import CSource, c_source, composed, robot_function
from hodyn_ros.export.c_text import number, string
from hodyn_ros.export.functions.motors import BOTH, left_out
from hodyn_ros.export.functions.observer import step_functions
from hodyn_ros.export.functions.traced import traced_function
from hodyn_ros.export.header import name_arrays
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.guard.guarded_robot import guard_limits, motor_trace, spring_stiffness, stiff_observer
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers.effort_observer import effort_equations
from hodyn_ros.observers.equations import ObserverEquations
from hodyn_ros.outputs import complete, write_text

TABLE = Path(__file__).with_name("robot_table.h")
SIDES = ("joint", "motor")  # whose efforts an observer is given
_MOTION = 3  # rows of a motion that is followed: position, velocity, acceleration


def shared_sources(robot: Robot, order: int, name: str | None, origin: str, digest: str) -> dict[str, str]:
    """Return the texts of the files that make a shared object, by their names.

    They hold the feedforward of `order`, the efforts of a motion, limits, names, and a self-test; the table
    of them is described in robot_table.h. `digest`: SHA-256 of the robot's file. Raises InputError for robots
    that a controller of one motor for each joint cannot command.
    """
    train, joints = robot.drive_train, robot.driven_joints
    if robot.moves_base:
        raise InputError(
            f"robot {robot.name!r} moves a base or a platform; a controller commands joints alone. Export it "
            "without --shared"
        )
    if train is not None and train.n_motors != train.n_joints:
        raise InputError(
            f"robot {robot.name!r} has joints with two motors; a controller commands one motor for each joint"
        )
    code = c_source(robot, ExportRequest(order, name), origin)
    if train is not None and (reason := left_out(robot, order, code.name)) is not None:
        raise InputError(f"no feedforward for the motors of robot {robot.name!r}: {reason}")
    sources = {f"{code.name}.h": code.header, f"{code.name}.c": code.source}
    efforts = _efforts(robot, code.name, origin) if robot.joint_names == joints else None
    observers = {} if efforts is None else _observers(robot, code.name, origin)
    for part in [] if efforts is None else [efforts, *observers.values()]:
        sources |= {f"{part.name}.h": part.header, f"{part.name}.c": part.source}
    sources[TABLE.name] = TABLE.read_text(encoding="ascii")
    sources[f"{code.name}_table.c"] = "\n".join(_table(robot, order, code, efforts, observers, digest)) + "\n"
    return sources


def build(sources: Mapping[str, str], out: Path, name: str, asked_by: str = "--shared") -> Path:
    """Write sources into a folder and compile them there to `lib<name>.so`; return its path.

    The compiler is `cc`, or what the environment variable CC says. Raises InputError with what it says.
    """
    compiler = os.environ.get("CC") or next(
        (result for result in map(shutil.which, ("cc", "gcc", "clang")) if result), None
    )
    if compiler is None:
        raise InputError(
            f"{asked_by} needs a C compiler (cc, gcc or clang) on the path, or in the variable CC"
        )
    for file, text in sources.items():
        write_text(out / file, text)
    library = out / f"lib{name}.so"
    c_files = [out / file for file in sources if file.endswith(".c")]
    flags = ["-std=c99", "-O2", "-fPIC", "-shared"]
    with complete(library) as part:
        command = [*compiler.split(), *flags, *map(str, c_files), "-o", str(part), "-lm"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise InputError(f"{' '.join(command)} failed:\n{ran.stderr.strip()}")
    return library


def _efforts(robot: Robot, name: str, origin: str) -> CSource:
    """Write the efforts of links and of motors, of motions of both."""
    train, tables, bare = robot.drive_train, Tables(), robot.with_drives(None)
    request = ExportRequest(0, f"{name}_efforts").of(bare)
    functions = [robot_function(bare, request, "inverse_dynamics", tables)]
    if train is not None:
        random = np.random.default_rng(1)
        calls = [[random.uniform(-1.0, 1.0, (rows, train.n_joints)) for rows in (3, 3, 1)] for _ in range(5)]
        about = [
            "links, motors: their positions, velocities and accelerations.",
            "torques: those that the links need.",
            "effort: of the motors, reflected to the links: their inertia, what rubs, and the torques.",
        ]
        functions.append(
            traced_function(
                request.prefix, "motors", motor_trace(train), ["links", "motors", "torques"], ["effort"],
                about, calls, tables,
            )
        )  # fmt: skip
    return composed(robot, request, functions, tables, f"Efforts of a motion of robot {robot.name!r}", origin)


def _observers(robot: Robot, name: str, origin: str) -> dict[str, CSource]:
    """Write what acts on joints beside efforts of joints and of motors, but for the efforts of links."""
    written = {}
    for side in SIDES:
        prefix, tables = f"{name}_{side}_observer", Tables()
        functions = step_functions(prefix, *_observer(robot, side), tables)
        title = f"The observer of robot {robot.name!r} by efforts of its {side}s"
        written[side] = composed(robot, ExportRequest(0, prefix), functions, tables, title, origin)
    return written


def _observer(robot: Robot, side: str) -> tuple[ObserverEquations, Array]:
    """Return the equations of an observer, and its figures (1, k)."""
    motor = side == "motor"
    drives, config, noise = stiff_observer(robot, robot.driven_joints, motor=motor)
    equations = effort_equations(drives, config, at_motors=motor)
    return equations, np.array([equations.filters.numbers(config, noise)])


def _table(
    robot: Robot,
    order: int,
    code: CSource,
    efforts: CSource | None,
    observers: Mapping[str, CSource],
    digest: str,
) -> list[str]:
    n, main = len(robot.driven_joints), _last(code)
    parts = [code, *([] if efforts is None else [efforts]), *observers.values()]
    remembering = [part.name for part in parts if any(one.memory for one in part.functions)]
    members = [f"  {name}_memory {name};" for name in remembering] or ["  int none;"]
    if observers:
        size = max(_last(one).results["after"][1] for one in observers.values())
        members.append(f"  double observed[2][{size}]; /* by an observer, in turn, */")
        members.append("  int newest;               /* and which one last */")
    rows = min(_MOTION, main.results["position"][0]) if main.name == BOTH else _MOTION
    driven, _ = name_arrays(robot, code.name)[-1]
    coordinates = f"{code.name}_joint_names" if robot.joint_names else "0"
    figures = [
        *("HODYN_ROBOT_ABI", "sizeof(hodyn_robot)", string(robot.name), string(digest)),
        *map(str, (order, robot.n_coordinates, n, rows, int(main.name == BOTH))),
        *(coordinates, driven),
        *(f"limit_{name}" for name in _LIMITS),
        *(
            "sizeof(memory_of_all)",
            "home",
            "feedforward",
            "0" if efforts is None else "motion_effort",
            *(_offered(side, observers.get(side)) for side in SIDES),
            "self_test",
        ),
    ]
    return [
        f"/* The table of robot_table.h for robot {code.name}, written by `hodyn export --shared`. */",
        '#include "robot_table.h"',
        *[f'#include "{part.name}.h"' for part in parts],
        "",
        "#include <math.h>",
        "",
        *["typedef struct {", *members, "} memory_of_all;", ""],
        *_limits(robot, efforts is not None),
        *["static void home(void *memory)", "{", "  (void)memory;"],
        *[f"  {name}_home(&((memory_of_all *)memory)->{name});" for name in remembering],
        *["}", ""],
        *_feedforward(robot, order, main, code.name, rows),
        *([] if efforts is None else _motion_effort(robot, efforts)),
        *[line for side, one in observers.items() for line in _observer_calls(robot, side, one)],
        *["static double self_test(void)", "{", "  double error = 0.0, other;"],
        *[
            line
            for part in parts
            for line in (f"  other = {part.name}_self_test();", "  error = other <= error ? error : other;")
        ],
        *["  return error;", "}", ""],
        "static const hodyn_robot table = {",
        *[f"  {figure}," for figure in figures],
        "};",
        "",
        *["const hodyn_robot *hodyn_robot_table(void)", "{", "  return &table;", "}"],
    ]


def _last(code: CSource) -> CFunction:
    """Return what does all: dynamics and motors, or the dynamics alone."""
    return code.functions[-1]


_LIMITS = (
    *("lower", "upper", "velocity", "effort", "effort_rate"),
    *("motor_velocity", "motor_effort", "motor_effort_rate"),
    *("mismatch", "motor_mismatch"),
)


def _limits(robot: Robot, guarded: bool) -> list[str]:
    """Write the limits, and with a model for the guard (`guarded`) how far efforts and motion may differ."""
    limits, train, n = robot.limits, robot.drive_train, len(robot.driven_joints)
    rows: list[Array] = [np.full(n, -np.inf), *(np.full(n, np.inf) for _ in _LIMITS[1:])]
    if limits is not None:
        rows[:5] = [
            *(limits.position_lower, limits.position_upper),
            *(limits.velocity, limits.effort, limits.effort_rate),
        ]
        rows[5:8] = rows[2:5]
    if train is not None:
        speeds = [drive.limits.speed for drive in train.drives]
        rows[5] = np.where(np.isfinite(speeds), speeds, rows[5])
        rows[6:8] = [train.effort_limits(rows[6]), train.effort_rate_limits(rows[7])]
    if guarded and limits is not None:
        for place, motor in ((8, False), (9, True)):
            mismatch = guard_limits(robot, robot.driven_joints, motor=motor).mismatch
            rows[place] = np.asarray(mismatch, dtype=np.float64)
    return [
        f"static const double limit_{name}[{n}] = {{{', '.join(_signed(x) for x in row.tolist())}}};"
        for name, row in zip(_LIMITS, rows)
    ] + [""]


def _signed(value: float) -> str:
    return f"-{number(-value)}" if value < 0.0 else number(value)


def _feedforward(robot: Robot, order: int, main: CFunction, name: str, rows: int) -> list[str]:
    """Write the call, and what of its results goes where."""
    n, motors = len(robot.driven_joints), main.name == BOTH
    motion = "motion" if "motion" in main.results else "q"
    own = {name: count * n for name, (count, _) in main.results.items() if name != "tau"}
    passed = {"tau": "torque"}
    return [
        "static int feedforward(void *memory, const double *q, double *joint_motion, double *joint_effort,",
        "                       double *motor_motion, double *motor_effort)",
        "{",
        *[f"  double {name}[{size}];" for name, size in own.items()],
        f"  double torque[{(order + 1) * n}];",
        "  int i, code = HODYN_OK;",
        "  (void)memory;",
        *_called(main, name, passed),
        *copied("joint_motion", motion, _MOTION * n),
        *copied("joint_effort", "torque", (order + 1) * n),
        *copied("motor_motion", "position" if motors else motion, rows * n),
        *copied("motor_effort", "torque", (order + 1) * n),
        *(copied("motor_effort", "effort", main.results["effort"][0] * n) if motors else []),
        "  return code;",
        "}",
        "",
    ]


def _motion_effort(robot: Robot, efforts: CSource) -> list[str]:
    (links, *motors), name = efforts.functions, efforts.name
    n = len(robot.driven_joints)
    own = {name: count * n for name, (count, _) in links.results.items() if name != "tau"}
    passed = {"links": "q", "motors": "theta", "torques": "torque", "effort": "motor_effort"}
    of_motors = [f"  {one.call(passed)};" for one in motors] or copied("motor_effort", "torque", n)
    return [
        "static int motion_effort(void *memory, const double *q, const double *theta, double *joint_effort,",
        "                         double *motor_effort)",
        "{",
        *[f"  double {name}[{size}];" for name, size in own.items()],
        f"  double torque[{n}];",
        "  int i, code = HODYN_OK;",
        "  (void)memory;",
        "  (void)theta;",
        *_called(links, name, {"tau": "torque"}),
        *copied("joint_effort", "torque", n),
        *of_motors,
        "  return code;",
        "}",
        "",
    ]


def _observer_calls(robot: Robot, side: str, code: CSource) -> list[str]:
    """Write the two calls of an observer."""
    n, figures = len(robot.driven_joints), _observer(robot, side)[1][0].tolist()
    springs = ", ".join(map(_signed, spring_stiffness(robot, robot.driven_joints).tolist()))
    stiffness = [f"static const double motor_stiffness[{n}] = {{{springs}}};", ""] if side == "motor" else []
    return [
        *stiffness,
        f"static const double {side}_figures[{len(figures)}] = {{{', '.join(map(number, figures))}}};",
        "",
        f"static void {side}_observer_start(void *memory, const double *sample)",
        "{",
        "  memory_of_all *own = (memory_of_all *)memory;",
        "  own->newest = 0;",
        f"  {code.name}_start(sample, {side}_figures, own->observed[0]);",
        *["}", ""],
        f"static int {side}_observer_step(void *memory, const double *sample, double period,",
        "                               double *efforts, double *deviations)",
        "{",
        "  memory_of_all *own = (memory_of_all *)memory;",
        "  const double *before = own->observed[own->newest];",
        "  double *after = own->observed[1 - own->newest];",
        f"  double motion[{6 * n}], needed[{2 * n}], motors[{n}];",
        "  int i, code;",
        f"  {code.name}_points(sample, &period, before, motion);",
        "  code = motion_effort(memory, motion, motion, needed, motors);",
        "  if (code != HODYN_FAILED) {",
        f"    code = motion_effort(memory, motion + {3 * n}, motion + {3 * n}, needed + {n}, motors);",
        "  }",
        "  if (code == HODYN_FAILED) {",
        "    return code;",
        "  }",
        f"  {code.name}_settle(sample, &period, before, {side}_figures, needed, after);",
        "  own->newest = 1 - own->newest;",
        *copied("efforts", "after", n),
        *copied("deviations", f"(after + {n})", n),
        "  return code;",
        *["}", ""],
    ]


def _offered(side: str, code: CSource | None) -> str:
    """Write an observer as a member of the table."""
    if code is None:
        return "{0, 0, 0}"
    stiffness = "motor_stiffness" if side == "motor" else "0"
    return f"{{{side}_observer_start, {side}_observer_step, {stiffness}}}"


def _called(function: CFunction, name: str, passed: Mapping[str, str]) -> Sequence[str]:
    call = function.call(passed, f"&((memory_of_all *)memory)->{name}")
    return checked(call, "hodyn") if function.fails else [f"  {call};"]
