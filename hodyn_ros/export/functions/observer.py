"""The momentum observer as C: two functions without a memory of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.codegen.kernel import Kernel, Shape, Traceable, traced
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions
from hodyn_ros.export.c_function import Cases, CFunction
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length
from hodyn_ros.lie.se3 import Array
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed

OBSERVER = "momentum_observer"
_PERIOD = 1e-3  # [s] of the numbers that it is tested with


def observer_functions(robot: Robot, request: ExportRequest, tables: Tables) -> list[CFunction]:
    """Write `<prefix>_momentum_observer_start` and `<prefix>_momentum_observer`.

    What is measured: both sides of springs and the efforts of their motors; of rigid robots positions,
    velocities and efforts of motors. InputError for robots without straight-line code, and floating bases.
    """
    if robot.closure is not None or robot.moves_base:
        raise InputError(
            f"robot {robot.name!r} has loops or a base that moves, whose observer is not exported; use "
            "MomentumObserver"
        )
    train = robot.drive_train
    elastic = train is not None and bool(train.elastic.any())
    observer = MomentumObserver(
        robot, ObserverConfig(smoothing=1000.0), Sensed(links=True, motors=elastic, motor_efforts=True)
    )
    samples = _samples(robot, observer)
    start = _function(
        request, f"{OBSERVER}_start", observer.start_trace(), ["sample", "figures"], ["memory"],
        [*_words(observer), "memory: at the first sample; what the next call takes as before."],
        [[sample, _figures(observer)] for sample in samples], tables,
    )  # fmt: skip
    memory, calls = start.cases.results["memory"][0], []
    step = Kernel(*observer.trace()).function
    for sample in samples:
        call = [sample, np.full((1, 1), _PERIOD), memory, _figures(observer)]
        calls.append(call)
        memory = step(*call)
    m = len(observer.names)
    update = _function(
        request, OBSERVER, observer.trace(), ["sample", "period", "before", "figures"], ["after"],
        [
            *_words(observer),
            "period: since the sample before [s]. Where that is too long, start anew.",
            "before: what the call before has returned, or the start.",
            f"after: external efforts [0 .. {m - 1}] [N.m or N], their standard deviations "
            f"[{m} .. {2 * m - 1}], [{2 * m}] the largest of their ratios, [{2 * m + 1}] zero unless a "
            "spring is beyond its table; the rest is for the next call. Before and after are two arrays.",
        ],
        calls, tables,
    )  # fmt: skip
    return [start, update]


def _function(
    request: ExportRequest,
    name: str,
    traceable: Traceable,
    inputs: Sequence[str],
    results: Sequence[str],
    about: Sequence[str],
    calls: Sequence[Sequence[Array]],
    tables: Tables,
) -> CFunction:
    trace, arguments = traceable
    shapes: list[Shape] = [shape for _, shape in arguments]
    graph, outputs, matrix = traced(trace, shapes)
    operations = checked_length(graph, outputs, name)
    code = StraightLine(graph, list(inputs), outputs, tables)
    stores = [f"  {results[0]}[{i}] = {code.text(output)};" for i, output in enumerate(outputs)]
    expected = np.array([Kernel(trace, arguments).function(*call) for call in calls])
    of_cases = {name: np.array(values) for name, values in zip(inputs, zip(*calls))}
    return CFunction(
        request.prefix,
        name,
        dict(zip(inputs, shapes)),
        {results[0]: matrix},
        about,
        [*code.lines, *stores],
        Cases(of_cases, {results[0]: expected}),
        operations=operations,
    )


def _words(observer: MomentumObserver) -> list[str]:
    held, ends = [], np.cumsum([len(values) for values in observer.figures.values()])
    for (name, values), end in zip(observer.figures.items(), ends.tolist()):
        place = f"[{end - 1}]" if len(values) == 1 else f"[{end - len(values)} .. {end - 1}]"
        shown = sorted({f"{value:g}" for value in values})
        held.append(f"{place} {name} ({', '.join(shown)})")
    return [
        f"sample: {', '.join(observer.rows)} of all joints, one row after the other, reflected to the links.",
        f"figures, by default in brackets: {'; '.join(held)}. smoothing_time [s] is 0 for none; newest is 0 "
        "where efforts are held from their sample to the next, 0.5 where they are measured; variances are "
        "squares of deviations; drift_time [s] is 1e-30 to remember nothing. ObserverConfig explains them.",
    ]


def _figures(observer: MomentumObserver) -> Array:
    return np.array([[value for values in observer.figures.values() for value in values]])


def _samples(robot: Robot, observer: MomentumObserver) -> list[Array]:
    """Return samples (rows, n) of a smooth motion, with efforts that something pushes against."""
    samples = []
    for i in range(motions.COUNT):
        time, phases = _PERIOD * i, np.arange(robot.n_coordinates)
        q, v = 0.3 * np.sin(5.0 * time + phases), 1.5 * np.cos(5.0 * time + phases)
        torque = robot.inverse_dynamics(np.stack([q, v, -25.0 * q]))[0]
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
        samples.append(observer.sample(**{name: rows[name] for name in observer.rows}))
    return samples
