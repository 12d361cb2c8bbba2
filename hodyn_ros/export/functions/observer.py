"""The momentum observer as C: functions without a memory of their own, but for that of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.control.links import Links
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.export import motions
from hodyn_ros.export.c_function import ALL_FINITE, OK, Cases, CFunction, Memory, checked, sizes, unless
from hodyn_ros.export.c_text import comment_block, number
from hodyn_ros.export.functions.traced import Call, traced_function
from hodyn_ros.export.loops.c_code import loop_function
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.lie.se3 import Array, exp
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.observers.equations import ObserverEquations
from hodyn_ros.observers.redundant_drives import ARRIVED, ITERATIONS, FitEquations

OBSERVER = "momentum_observer"
_PERIOD = 1e-3  # [s] of the numbers that it is tested with


def observer_functions(robot: Robot, request: ExportRequest, tables: Tables) -> list[CFunction]:
    """Write `<prefix>_momentum_observer_start` and `<prefix>_momentum_observer`.

    What is measured: both sides of springs and the efforts of their motors; of rigid robots positions,
    velocities and efforts of motors; and a base that floats. With loops the second one takes a memory and
    returns a code, and what it consists of is written as well. InputError for robots without such code.
    """
    train = robot.drive_train
    elastic = train is not None and bool(train.elastic.any())
    observer = MomentumObserver(
        robot, ObserverConfig(smoothing=1000.0), Sensed(links=True, motors=elastic, motor_efforts=True)
    )
    if robot.closure is not None:
        return _of_loops(robot, observer, request, tables)
    samples, words = _samples(observer), _words(observer)
    base = ["base"] if observer.floats else []
    start = traced_function(
        request.prefix, f"{OBSERVER}_start", observer.start_trace(), ["sample", "figures", *base], ["memory"],
        [*words, "memory: at the first sample; what the next call takes as before."],
        [[sample, _figures(observer), *more] for sample, *more in samples], tables,
    )  # fmt: skip
    memory, calls = start.cases.results["memory"][0], list[Call]()
    step = Kernel(*observer.trace()).function
    for sample, *more in samples:
        call = [sample, np.full((1, 1), _PERIOD), memory, _figures(observer), *more]
        calls.append(call)
        memory = step(*call)
    update = traced_function(
        request.prefix, OBSERVER, observer.trace(), ["sample", "period", "before", "figures", *base],
        ["after"], [*words, *_about_step(observer)], calls, tables,
    )  # fmt: skip
    return [start, update]


def _of_loops(
    robot: Robot, observer: MomentumObserver, request: ExportRequest, tables: Tables
) -> list[CFunction]:
    """Write the same of a robot with loops, around functions that find the efforts of its links."""
    prefix, figures = request.prefix, _figures(observer)
    equations, n = observer.equations, len(robot.driven_joints)
    parts = step_functions(f"{prefix}_{OBSERVER}", equations, figures, tables, redundant=observer.redundant)
    parts = [replace(part, prefix=prefix, name=f"{OBSERVER}_{part.name}") for part in parts]
    efforts = (_fitted if observer.redundant else _located)(robot, request, tables)
    macro = prefix.upper()
    points, settle = parts[1:]
    last = {"moving": "next.fitted + " + str(efforts.moves)} if observer.redundant else {}
    lines = [
        f"  {prefix}_memory next;",
        f"  double moved[{6 * n}];",
        f"  double efforts[{2 * n}];",
        *[f"  double {name}[{size}];" for name, size in efforts.arrays.items()],
        f"  int i, code, worst = {macro}_OK;",
        "  next = *memory;",
        f"  {points.call({'motion': 'moved'})};",
        "  for (i = 0; i < 2; ++i) {",
        *[f"  {line}" for line in efforts.lines],
        "  }",
        f"  {settle.call(last)};",
        *unless([], {"after": settle.results["after"]}, prefix),
        "  *memory = next;",
        "  return worst;",
    ]
    update = CFunction(
        prefix,
        OBSERVER,
        {name: settle.inputs[name] for name in ("sample", "period", "before", "figures")},
        settle.results,
        [*_words(observer), *_about_step(observer), "Where it fails, the memory stays as it was."],
        lines,
        _cases_of_loops(observer, parts[0], figures),
        remembers={
            **efforts.remembers,
            **{name: part for one in efforts.functions for name, part in one.remembers.items()},
        },
        fails=True,
        operations=sum(one.operations for one in [points, settle]) + efforts.operations,
        helpers=ALL_FINITE,
    )
    return [*parts, *efforts.functions, update]


@dataclass(frozen=True, eq=False)
class _Efforts:
    """How C finds the efforts (n,) that links need at point i of a period, from `moved` into `efforts`."""

    functions: Sequence[CFunction]
    lines: Sequence[str]
    arrays: Mapping[str, int]  # that it needs, and their sizes
    operations: int
    remembers: Mapping[str, Memory] = field(default_factory=dict)
    moves: int = 0  # place in what is fitted of the matrix that takes efforts to what moves the robot


def _located(robot: Robot, request: ExportRequest, tables: Tables) -> _Efforts:
    """Find them where the driven joints say where the robot is."""
    n, wanted = len(robot.driven_joints), replace(request, order=0, wrenches=())
    functions = [_part(robot, wanted, "inverse_dynamics", tables)]
    if robot.joint_names != robot.driven_joints:
        functions.insert(0, _part(robot, replace(wanted, order=2), "motion_from_drives", tables))
    lines = []
    for function in functions:
        passed = {"tau": f"efforts + {n} * i", "pose": "platform_pose", "twists": "platform_twists"}
        if function is functions[0]:
            passed[next(iter(function.inputs))] = f"moved + {3 * n} * i"
        lines += _called(function, passed)
    arrays = {name: size for one in functions for name, size in _own(one).items()}
    return _Efforts(functions, lines, arrays, 2 * sum(one.operations for one in functions))


def _fitted(robot: Robot, request: ExportRequest, tables: Tables) -> _Efforts:
    """Find them where more drives than coordinates say so, by a fit (`observers.redundant_drives`)."""
    prefix, n, wanted = request.prefix, len(robot.driven_joints), replace(request, order=0, wrenches=())
    equations = FitEquations(robot.structure)
    home = equations.start(robot.home)
    layout = equations.memory
    dynamics = _part(robot, wanted, "inverse_dynamics", tables)
    jacobian = _part(robot, wanted, "drive_jacobian", tables)
    calls, random = list[Call](), np.random.default_rng(1)
    for _ in range(motions.COUNT):
        matrix = random.uniform(-1.0, 1.0, equations.trace()[1][2][1])
        calls.append([random.uniform(-0.1, 0.1, (3, n)), random.uniform(-0.1, 0.1, (3, n)), matrix, home])
    fit = traced_function(
        prefix, f"{OBSERVER}_fit", equations.trace(), ["wanted", "there", "jacobian", "fitted"], ["nearer"],
        ["wanted, there: motion of the driven joints as measured, and as of the motion in fitted, positions "
         "first. nearer: a step from fitted towards what is nearest to the measured one."],
        calls, tables,
    )  # fmt: skip
    passed = {
        name: f"next.fitted + {layout[name].start}" for name in ("q", "pose", "twists") if name in layout
    }
    passed |= {"tau": f"efforts + {n} * i", "motion": "there", "drive_jacobian": "jacobian"}
    dynamics_lines = _called(dynamics, passed)
    arrived = f"(nearer[{layout.size - 1}] < {number(ARRIVED)})"
    lines = [
        "  int round = 0;",
        "  do {",
        *[f"  {line}" for line in [*dynamics_lines, *_called(jacobian, passed)]],
        f"    {fit.call({'wanted': f'moved + {3 * n} * i', 'fitted': 'next.fitted'})};",
        f"    for (int k = 0; k < {layout.size}; ++k) {{",
        "      next.fitted[k] = nearer[k];",
        "    }",
        f"  }} while ((++round < {ITERATIONS}) && ({prefix.upper()}_CONSTANT_TIME || !{arrived}));",
        f"  if (!{arrived}) {{",
        f"    return {prefix.upper()}_FAILED;",
        "  }",
        *dynamics_lines,
    ]
    arrays = {"there": 3 * n, "jacobian": jacobian.results["drive_jacobian"][1], "nearer": layout.size}
    kept = Memory(
        [
            *comment_block(["where the robot was found to be from its drives"]),
            f"double fitted[{layout.size}];",
        ],
        [f"memory->fitted[{i}] = {number(value)};" for i, value in enumerate(home[0].tolist())],
    )
    each = dynamics.operations + jacobian.operations + fit.operations
    return _Efforts(
        [fit, dynamics, jacobian], lines, arrays, 2 * (ITERATIONS * each + dynamics.operations),
        {"fitted": kept}, layout["moves"].start,
    )  # fmt: skip


def _part(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write a function of a robot with loops as a part of its observer."""
    return replace(loop_function(robot, request, what, tables), name=f"{OBSERVER}_{what}")


def _called(function: CFunction, passed: Mapping[str, str]) -> list[str]:
    """Write a call, with what becomes of its code."""
    names = sizes({**function.inputs, **function.results})
    call = function.call({name: text for name, text in passed.items() if name in names}, "&next")
    return [*checked(call, function.prefix), "  worst = code > worst ? code : worst;"]


def _own(function: CFunction) -> dict[str, int]:
    """Return the arrays that results of a function are put into, but for the efforts."""
    return {name: size for name, size in sizes(function.results).items() if name != "tau"}


def _cases_of_loops(observer: MomentumObserver, start: CFunction, figures: Array) -> Cases:
    """Let a robot move near its home, as Python has it."""
    samples = [sample for (sample,) in _samples(observer)]
    memory = Kernel(*observer.start_trace()).function(samples[0], figures)
    inputs, results = list[Call](), []
    for sample in samples[1:]:
        call = [sample, np.full((1, 1), _PERIOD), memory, figures]
        inputs.append(call)
        memory = observer.step(*call)
        results.append(memory)
    names = ("sample", "period", "before", "figures")
    of_cases = {name: np.array(values) for name, values in zip(names, zip(*inputs))}
    return Cases(of_cases, {"after": np.array(results)}, (OK,) * len(results))


def step_functions(
    prefix: str,
    equations: ObserverEquations,
    figures: Array,
    tables: Tables,
    *,
    redundant: bool = False,
) -> list[CFunction]:
    """Write `<prefix>_start`, `<prefix>_points` and `<prefix>_settle`: a step in two parts.

    Between them the caller finds the efforts of the links at both points, of `redundant` drives with what of
    efforts moves the robot. `figures` (1, k) are tested with.
    """
    n, random = equations.n, np.random.default_rng(1)
    start = Kernel(*equations.start_trace()).function
    settle = Kernel(*equations.settle_trace(redundant)).function
    further = [np.eye(n)] if redundant else []
    phases, samples = np.arange(n), list[Array]()
    for i in range(motions.COUNT + 1):
        angles = 5.0 * _PERIOD * i + phases
        kinds = {"position": 0.3 * np.sin(angles), "velocity": 1.5 * np.cos(angles)}
        rows = [kinds.get(name.removeprefix("motor_")) for name in equations.rows]
        samples.append(np.array([random.uniform(-10.0, 10.0, n) if row is None else row for row in rows]))
    memory, begun, moved, settled = start(samples[0], figures), list[Call](), list[Call](), list[Call]()
    for sample in samples[1:]:
        state = [sample, np.full((1, 1), _PERIOD), memory]
        begun.append([sample, figures])
        moved.append(state)
        settled.append([*state, figures, random.uniform(-10.0, 10.0, (2, n)), *further])
        memory = settle(*settled[-1])
    words = f"sample: {', '.join(equations.rows)}, one row after the other."
    inputs = ["sample", "period", "before", "figures", "efforts", *(["moving"] if redundant else [])]
    moves = ["moving: a matrix that takes efforts to their part that moves the robot."] if redundant else []
    return [
        traced_function(
            prefix, "start", equations.start_trace(), ["sample", "figures"], ["after"],
            [words, "after: the row of a sample before which there is none."], begun, tables,
        ),
        traced_function(
            prefix, "points", equations.points_trace(), inputs[:3], ["motion"],
            [words, "motion: positions, velocities and accelerations at both points of the period."],
            moved, tables,
        ),
        traced_function(
            prefix, "settle", equations.settle_trace(redundant), inputs, ["after"],
            [words, "efforts: those that the links need at both points.", *moves,
             "after: the row of the sample."],
            settled, tables,
        ),
    ]  # fmt: skip


def _words(observer: MomentumObserver) -> list[str]:
    held, ends = [], np.cumsum([len(values) for values in observer.figures.values()])
    for (name, values), end in zip(observer.figures.items(), ends.tolist()):
        place = f"[{end - 1}]" if len(values) == 1 else f"[{end - len(values)} .. {end - 1}]"
        shown = sorted({f"{value:g}" for value in values})
        held.append(f"{place} {name} ({', '.join(shown)})")
    base = "base: pose in the world, three rows of a matrix (4, 4), and body-fixed twist (omega; v)."
    return [
        f"sample: {', '.join(observer.rows)} of all joints, one row after the other, reflected to the links.",
        f"figures, by default in brackets: {'; '.join(held)}. smoothing_time [s] is 0 for none; newest is 0 "
        "where efforts are held from their sample to the next, 0.5 where they are measured; variances are "
        "squares of deviations; a contact ends below release; drift_time [s] is 1e-30 to remember nothing. "
        "ObserverConfig explains them.",
        *([base] if observer.floats else []),
    ]


def _about_step(observer: MomentumObserver) -> list[str]:
    m = len(observer.names)
    first = "first the wrench (m; f) on the base about its origin, " if observer.floats else ""
    return [
        "period: since the sample before [s]. Where that is too long, start anew.",
        "before: what the call before has returned, or the start.",
        f"after: external efforts [0 .. {m - 1}] [N.m or N], {first}their standard deviations "
        f"[{m} .. {2 * m - 1}], [{2 * m}] the largest of their ratios, [{2 * m + 1}] one in a contact, else "
        f"zero, [{2 * m + 2}] zero unless a spring is beyond its table; the rest is for the next call. "
        "Before and after are two arrays.",
    ]


def _figures(observer: MomentumObserver) -> Array:
    return np.array([[value for values in observer.figures.values() for value in values]])


def _samples(observer: MomentumObserver) -> list[list[Array]]:
    """Return samples (rows, n) of a smooth motion near home, with the motion of a base that floats.

    Something pushes against the efforts.
    """
    robot, samples = observer.robot, []
    phases, random = np.arange(len(robot.driven_joints)), np.random.default_rng(1)
    home = np.zeros(len(phases))
    if robot.closure is not None:
        links = Links(robot)
        home = links.drives(np.stack([links.home, *np.zeros((2, links.size))])).motion[0]
    size = 0.3 if robot.closure is None else 0.01  # as far as loops of any robot close
    for i in range(motions.COUNT):
        angles = 5.0 * _PERIOD * i + phases
        q, v = home + size * np.sin(angles), 5.0 * size * np.cos(angles)
        torque = random.uniform(-5.0, 5.0, len(q))
        bent = np.zeros_like(q)
        if robot.drive_train is not None and observer.sensed.motors:
            bent = torque / robot.drive_train.stiffness  # which is infinite where rigid
        rows = {
            "position": q,
            "velocity": v,
            "motor_position": q + bent,
            "motor_velocity": v,
            "motor_effort": torque + 1.0,
        }
        base = []
        if observer.floats:
            twist = np.array([0.5, -1.0, 0.8, 0.3, 0.2, -0.4])
            base.append(np.concatenate([exp(_PERIOD * i * twist)[:3].ravel(), twist])[None])
        samples.append([observer.sample(**{name: rows[name] for name in observer.rows}), *base])
    return samples
