"""What is exported of a robot without couplings and loops: straight-line code that always gives a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, Traceable
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import Cases, CFunction, rounded, rounding_error
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables, TracedLines
from hodyn_ros.lie.se3 import Array


@dataclass(frozen=True, eq=False)
class _Plan:
    """A traced function, with its arguments and parts of its result as C has them, and numbers to test it.

    `results`: shapes by name and the columns of the engine's matrix that they take.
    """

    traceable: Traceable
    inputs: Sequence[str]
    results: dict[str, tuple[Shape, int]]
    about: Sequence[str]
    compute: Callable[..., Array]
    choose: Callable[[Random, list[Shape]], list[Array]]


def tree_function(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> CFunction:
    """Write one of the functions that `Robot.compile` offers, or the partial derivatives."""
    plan = _planned(robot, request, what)
    trace, arguments = plan.traceable
    inputs = {name: shape for name, (_, shape) in zip(plan.inputs, arguments)}
    code = TracedLines(trace, inputs, f"{what} of robot {robot.name!r} at order {request.order}", tables)
    places = _parts(plan, np.arange(len(code.outputs)).reshape(code.shape))
    return CFunction(
        request.prefix,
        what,
        inputs,
        {name: shape for name, (shape, _) in plan.results.items()},
        plan.about,
        [*code.lines, *code.stores(places)],
        _cases(plan, list(inputs.values()), tables.small),
        operations=code.operations,
    )


def _parts(plan: _Plan, matrix: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Cut the engine's matrix into the results."""
    ends = np.cumsum([columns for _, columns in plan.results.values()])
    cut = np.split(matrix, ends[:-1], axis=-1)
    return {name: part.reshape(shape) for (name, (shape, _)), part in zip(plan.results.items(), cut)}


def _cases(plan: _Plan, shapes: list[Shape], small: bool) -> Cases:
    """Choose calls; `small`: in numbers of 24 bits."""
    random = Random(1)
    calls = [plan.choose(random, shapes) for _ in range(motions.COUNT)]
    nearest = [[rounded(values) for values in call] for call in calls]
    calls, other_calls = (nearest, calls) if small else (calls, nearest)
    inputs = {name: np.array(values) for name, values in zip(plan.inputs, zip(*calls))}
    results, other_results = (_results_of(plan, batch) for batch in (calls, other_calls))
    return Cases(inputs, results, rounding_error=rounding_error(results, other_results))


def _results_of(plan: _Plan, calls: Iterable[Iterable[Array]]) -> dict[str, Array]:
    parts = [_parts(plan, np.asarray(plan.compute(*call))) for call in calls]
    return {name: np.array([one[name] for one in parts]) for name in plan.results}


def _planned(robot: Robot, request: ExportRequest, what: str) -> _Plan:
    """Plan an operation by its law."""
    model, order, operation = robot.model, request.order, OPERATIONS[what]
    of = request.of_frames(what, model.body_names)
    if operation.kernel:
        setting = KernelSpec.of(model, request.loads(model))
        law: Sequence[Any] = [setting]
        compute = operation.law("kernel")(model, order, setting).function
    else:
        request = replace(request, wrenches=())
        law = placed(model, robot.frames, of)
        compute = robot.compile(order, what, request.frames_of(what), request.representation)
    inputs, about, choose = (_state if operation.takes == "state" else _motion)(robot, request, operation)
    m = robot.n_coordinates + (6 if model.floating_base else 0)
    about += words.result(operation, request, of, m=m, efforts=m, bodies=model.n_bodies)
    if model.floating_base and operation.about_base:
        about += words.result_of_base(operation, request)
    weighted = ["multiplier"] if operation.weighted else []
    return _Plan(
        operation.law("tree")(model, order, *law),
        [*inputs, *request.wrench_names, *weighted],
        _results(robot, request, operation, of),
        [*about, *words.wrenches(request)],
        compute,
        _weighted(choose) if weighted else choose,
    )


def _weighted(
    choose: Callable[[Random, list[Shape]], list[Array]],
) -> Callable[[Random, list[Shape]], list[Array]]:
    """Return what chooses a multiplier after what another chooses."""
    return lambda random, shapes: [*choose(random, shapes[:-1]), motions.numbers(random, *shapes[-1])]


def _results(
    robot: Robot, request: ExportRequest, operation: Operation, of: tuple[Any, ...]
) -> dict[str, tuple[Shape, int]]:
    """Return shapes by name of what an operation gives, and the columns that they take."""
    order, n, first = request.order, robot.n_coordinates, 6 if robot.model.floating_base else 0
    frames = len(of[0]) if operation.frames == "several" else 0
    if not operation.in_c:  # poses and twists of frames
        twists = {"frame_twists": ((frames, 6 * order), 6 * order)} if order else {}
        return {"frame_poses": ((frames, 16), 16), **twists}
    if operation.shape == ("n",):
        parts = {operation.base_in_c: first, operation.in_c: n}
        return {name: ((order + 1, columns), columns) for name, columns in parts.items() if columns}
    symbols = {"m": first + n, "efforts": first + n, "10 bodies": 10 * robot.model.n_bodies, "frames": frames}
    symbols |= {"order + 1": order + 1, "order + 3": order + 3, "16 + 6 order": 16 + 6 * order}
    rows, *sizes = operation.sizes(**symbols)
    return {operation.in_c: ((rows, int(np.prod(sizes))), sizes[-1])}


def _motion(
    robot: Robot, request: ExportRequest, operation: Operation
) -> tuple[list[str], list[str], Callable[[Random, list[Shape]], list[Array]]]:
    """Return the names of what a motion consists of, what is said of it, and what chooses one."""
    rates, floats = request.order + operation.rates, robot.model.floating_base

    def choose(random: Random, shapes: list[Shape]) -> list[Array]:
        chosen = [motions.joint_motion(robot, shapes[0][0], random)]
        if floats:
            chosen += [motions.pose(random), motions.numbers(random, shapes[2][0], 6)]
        return [*chosen, *(motions.numbers(random, *shape) for shape in request.wrench_shapes().values())]

    about = [words.motion(rates), *(words.base(rates - 1, frame=operation.base) if floats else [])]
    return ["q", *(["pose", "twists"] if floats else [])], about, choose


def _state(
    robot: Robot, request: ExportRequest, operation: Operation
) -> tuple[list[str], list[str], Callable[[Random, list[Shape]], list[Array]]]:
    """Return likewise of a state and efforts.

    Those of a motion: efforts by chance would move light bodies beyond all measure.
    """
    model, order, n = robot.model, request.order, robot.n_coordinates
    efforts = OPERATIONS["inverse_dynamics"]
    setting = KernelSpec.of(model, request.loads(model))
    torques = efforts.law("kernel")(model, order, setting).function
    _, _, motion = _motion(robot, request, efforts)

    def choose(random: Random, shapes: list[Shape]) -> list[Array]:
        q, *rest = motion(random, [(order + 3, n), (4, 4), (order + 2, 6)])
        result = torques(q, *rest)
        if not model.floating_base:
            return [q[:2], result, *rest]
        pose, twists, *loads = rest
        return [q[:2], result[:, 6:], pose, twists[:1], result[:, :6], *loads]

    inputs, about = ["state", "tau"], ["state: positions and velocities."]
    about += words.result(efforts, request, ())
    if model.floating_base:
        inputs += ["pose", "twist", "base_wrench"]
        about += [*words.twist(), *words.result_of_base(efforts, request)]
    return inputs, about, choose
