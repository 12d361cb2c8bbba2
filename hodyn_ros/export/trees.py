"""What is exported of a robot without couplings and loops: straight-line code that always gives a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, Traceable, traced
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine import kernels
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import Cases, CFunction
from hodyn_ros.export.request import Request
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length
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


def tree_function(robot: Robot, request: Request, what: str, tables: Tables) -> CFunction:
    """Write one of the functions that `Robot.compile` offers, or the partial derivatives."""
    plan = _OWN_PLANS.get(what, _of_motion)(robot, request, what)
    trace, arguments = plan.traceable
    shapes = [shape for _, shape in arguments]
    graph, outputs, matrix = traced(trace, shapes)
    operations = checked_length(graph, outputs, f"{what} of robot {robot.name!r} at order {request.order}")
    code = StraightLine(graph, plan.inputs, outputs, tables)
    parts = _parts(plan, np.arange(len(outputs)).reshape(matrix))
    stores = [
        f"  {name}[{i}] = {code.text(outputs[place])};"
        for name, places in parts.items()
        for i, place in enumerate(places.flat)
    ]
    return CFunction(
        request.prefix,
        what,
        dict(zip(plan.inputs, shapes)),
        {name: shape for name, (shape, _) in plan.results.items()},
        plan.about,
        [*code.lines, *stores],
        _cases(plan, shapes),
        operations=operations,
    )


def _parts(plan: _Plan, matrix: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Cut the engine's matrix into the results."""
    ends = np.cumsum([columns for _, columns in plan.results.values()])
    cut = np.split(matrix, ends[:-1], axis=-1)
    return {name: part.reshape(shape) for (name, (shape, _)), part in zip(plan.results.items(), cut)}


def _cases(plan: _Plan, shapes: list[Shape]) -> Cases:
    random = Random(1)
    calls = [plan.choose(random, shapes) for _ in range(motions.COUNT)]
    found = [_parts(plan, np.asarray(plan.compute(*call))) for call in calls]
    inputs = {name: np.array(values) for name, values in zip(plan.inputs, zip(*calls))}
    return Cases(inputs, {name: np.array([one[name] for one in found]) for name in plan.results})


def _inverse_dynamics(robot: Robot, request: Request, what: str) -> _Plan:
    model, order, n = robot.model, request.order, robot.n_coordinates
    setting = kernels.KernelSpec.of(model, request.loads(model))
    wrench = {"base_wrench": ((order + 1, 6), 6)} if model.floating_base else {}
    return _Plan(
        kernels.inverse_dynamics_trace(model, order, setting),
        [*_moved_inputs(robot), *request.wrench_names],
        {**wrench, "tau": ((order + 1, n), n)},
        [
            words.motion(order + 2),
            f"tau: joint torques (forces) on the link side and their derivatives up to order {order}.",
            *([*words.base(order + 1), words.base_wrench(order)] if wrench else []),
            *words.wrenches(request),
        ],
        kernels.inverse_dynamics(model, order, setting).function,
        _motion_chooser(robot, request),
    )


def _forward_dynamics(robot: Robot, request: Request, what: str) -> _Plan:
    model, order, n = robot.model, request.order, robot.n_coordinates
    floating = model.floating_base
    setting = kernels.KernelSpec.of(model, request.loads(model))
    torques, chosen = (
        kernels.inverse_dynamics(model, order, setting).function,
        _motion_chooser(robot, request),
    )

    def choose(random: Random, shapes: list[Shape]) -> list[Array]:
        """Take the torques of a motion: those by chance would move light bodies beyond all measure."""
        q, *others = chosen(random, [(order + 3, n), (4, 4), (order + 2, 6)])
        efforts = torques(q, *others)
        if not floating:
            return [q[:2], efforts, *others]
        pose, twists, *loads = others
        return [q[:2], efforts[:, 6:], pose, twists[:1], efforts[:, :6], *loads]

    rates = {"base_acceleration": ((order + 1, 6), 6)} if floating else {}
    about = [
        "state: positions and velocities.",
        f"tau: joint torques (forces) on the link side and their derivatives up to order {order}.",
        f"acceleration: of the joints, with derivatives up to order {order}.",
    ]
    if floating:
        pose, twist = words.base(0)
        about += [pose, twist.replace("twists:", "twist:"), words.base_wrench(order)]
        about.append(f"base_acceleration: derivatives 1 to {order + 1} of the twist.")
    about += words.wrenches(request)
    return _Plan(
        kernels.hybrid_dynamics_trace(model, order, setting),
        ["state", "tau", *(["pose", "twist", "base_wrench"] if floating else []), *request.wrench_names],
        {**rates, "acceleration": ((order + 1, n), n)},
        about,
        kernels.hybrid_dynamics(model, order, setting).function,
        choose,
    )


def _of_motion(robot: Robot, request: Request, what: str) -> _Plan:
    """Plan what follows from a motion alone, by its law."""
    model, order, operation = robot.model, request.order, OPERATIONS[what]
    of = request.of_frames(what, model.body_names)
    m = robot.n_coordinates + (6 if model.floating_base else 0)
    frames = len(of[0]) if operation.frames == "several" else 0
    results, about = frame_results(frames, order) if what == "forward_kinematics" else {}, []
    if not results:
        results = _results(robot, request, what, frames)
        about = [operation.about_base] if operation.about_base and model.floating_base else []
    rates = order + operation.rates
    weighted = ["multiplier"] if operation.weighted else []
    return _Plan(
        operation.tree_law(model, order, *placed(model, robot.frames, of)),
        [*_moved_inputs(robot), *weighted],
        results,
        [
            words.motion(rates),
            *(words.base(rates - 1, frame=operation.base) if model.floating_base else []),
            *words.result(operation, request, of, m=m, efforts=m, bodies=model.n_bodies),
            *about,
        ],
        robot.compile(order, what, request.frames or None, request.representation),
        _weighted(_motion_chooser(robot)) if weighted else _motion_chooser(robot),
    )


def _results(robot: Robot, request: Request, what: str, frames: int = 0) -> dict[str, tuple[Shape, int]]:
    """Return name, shape and columns of a result that C has as one array."""
    order, operation = request.order, OPERATIONS[what]
    m = robot.n_coordinates + (6 if robot.model.floating_base else 0)
    symbols = {"m": m, "efforts": m, "10 bodies": 10 * robot.model.n_bodies, "frames": frames}
    symbols |= {"order + 1": order + 1, "order + 3": order + 3, "16 + 6 order": 16 + 6 * order}
    first, *sizes = operation.sizes(**symbols)
    return {operation.in_c: ((first, int(np.prod(sizes))), sizes[-1])}


def _weighted(
    choose: Callable[[Random, list[Shape]], list[Array]],
) -> Callable[[Random, list[Shape]], list[Array]]:
    """Return what chooses a multiplier after what another chooses."""
    return lambda random, shapes: [*choose(random, shapes[:-1]), motions.numbers(random, *shapes[-1])]


def frame_results(count: int, order: int) -> dict[str, tuple[Shape, int]]:
    """Return shapes and columns of what forward kinematics gives of frames."""
    twists = {"frame_twists": ((count, 6 * order), 6 * order)} if order else {}
    return {"frame_poses": ((count, 16), 16), **twists}


def _forward_derivatives(robot: Robot, request: Request, what: str) -> _Plan:
    order, operation = request.order, OPERATIONS[what]
    floating = robot.model.floating_base
    m = robot.n_coordinates + (6 if floating else 0)
    given = _forward_dynamics(robot, replace(request, wrenches=()), what)
    about = [
        *given.about[:2],
        *(given.about[3:6] if floating else ()),
        *words.result(operation, request, (), m=m, efforts=m, bodies=robot.model.n_bodies),
        *([operation.about_base] if floating else ()),
    ]
    return _Plan(
        operation.tree_law(robot.model, order),
        [*given.inputs, *(["multiplier"] if operation.weighted else [])],
        _results(robot, request, what),
        about,
        robot.compile(order, what),
        _weighted(given.choose) if operation.weighted else given.choose,
    )


# of what takes more than a motion, or returns wrenches on a base besides
_OWN_PLANS: dict[str, Callable[[Robot, Request, str], _Plan]] = {
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": _forward_dynamics,
    "forward_dynamics_derivatives": _forward_derivatives,
    "forward_dynamics_hessian": _forward_derivatives,
    "forward_dynamics_second_derivatives": _forward_derivatives,
}


def _moved_inputs(robot: Robot) -> list[str]:
    return ["q", *(["pose", "twists"] if robot.model.floating_base else [])]


def _motion_chooser(
    robot: Robot, request: Request | None = None
) -> Callable[[Random, list[Shape]], list[Array]]:
    """Return what chooses a motion, and the wrenches that are asked for."""

    def choose(random: Random, shapes: list[Shape]) -> list[Array]:
        chosen = [motions.joint_motion(robot, shapes[0][0], random)]
        if robot.model.floating_base:
            chosen += [motions.pose(random), motions.numbers(random, shapes[2][0], 6)]
        loads = request.wrench_shapes().values() if request is not None else ()
        return [*chosen, *(motions.numbers(random, *shape) for shape in loads)]

    return choose
