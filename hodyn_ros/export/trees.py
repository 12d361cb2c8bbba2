"""What is exported of a robot without couplings and loops: straight-line code that always gives a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Program, Shape, traced
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine import kernels, matrix_kernels, partial_kernels
from hodyn_ros.engine.recursions import kinematics
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import Cases, CFunction
from hodyn_ros.export.request import Request
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length
from hodyn_ros.lie.motion import BaseMotion, BaseRepresentation
from hodyn_ros.lie.se3 import Array


@dataclass(frozen=True, eq=False)
class _Plan:
    """A traced function, with its arguments and parts of its result as C has them, and numbers to test it.

    `results`: shapes by name and the columns of the engine's matrix that they take.
    """

    program: Program
    inputs: Sequence[str]
    results: dict[str, tuple[Shape, int]]
    about: Sequence[str]
    compute: Callable[..., Array]
    choose: Callable[[Random, list[Shape]], list[Array]]


def tree_function(robot: Robot, request: Request, what: str, tables: Tables) -> CFunction:
    """Write one of the functions that `Robot.compile` offers, or the partial derivatives."""
    plan = _PLANS[what](robot, request)
    trace, arguments = plan.program
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


def _inverse_dynamics(robot: Robot, request: Request) -> _Plan:
    model, order, n = robot.model, request.order, robot.n_coordinates
    setting = _setting(robot, request)
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


def _setting(robot: Robot, request: Request) -> kernels.KernelSpec:
    base: BaseRepresentation | None = "spatial" if robot.model.floating_base else None
    return kernels.KernelSpec(base=base, loads=request.loads(robot.model))


def _forward_dynamics(robot: Robot, request: Request) -> _Plan:
    model, order, n = robot.model, request.order, robot.n_coordinates
    floating = model.floating_base
    setting = _setting(robot, request)
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


def _forward_kinematics(robot: Robot, request: Request) -> _Plan:
    model, order, names = robot.model, request.order, request.frames or robot.model.body_names
    places = [find_frame(model, robot.frames, name) for name in names]
    return _Plan(
        kinematics.frame_motion_trace(model, order, places, request.representation),
        _moved_inputs(robot),
        frame_results(len(names), order),
        [words.motion(order), *_base(robot, order - 1), *words.frame_motion(names, request)],
        robot.compile(order, "forward_kinematics", names, request.representation),
        _motion_chooser(robot),
    )


def frame_results(count: int, order: int) -> dict[str, tuple[Shape, int]]:
    """Return shapes and columns of what forward kinematics gives of frames."""
    twists = {"frame_twists": ((count, 6 * order), 6 * order)} if order else {}
    return {"frame_poses": ((count, 16), 16), **twists}


def _jacobian(robot: Robot, request: Request) -> _Plan:
    model, order, m = robot.model, request.order, _velocities(robot)
    names = request.frames or model.body_names[-1:]
    if len(names) != 1:
        raise InputError(f"a Jacobian is of one frame; found {list(names)}")
    place = find_frame(model, robot.frames, names[0])
    return _Plan(
        kinematics.frame_jacobian_trace(model, order, place, request.representation),
        _moved_inputs(robot),
        {"jacobian": ((order + 1, 6 * m), m)},
        [words.motion(order), *_base(robot, order - 1), words.jacobian(names[0], m, request), *_first(robot)],
        robot.compile(order, "jacobian", names, request.representation),
        _motion_chooser(robot),
    )


def _com(robot: Robot, request: Request) -> _Plan:
    order = request.order
    return _Plan(
        kinematics.com_trace(robot.model, order),
        _moved_inputs(robot),
        {"com": ((order + 1, 3), 3)},
        [
            words.motion(order),
            *_base(robot, order - 1),
            words.com(order),
        ],
        robot.compile(order, "com"),
        _motion_chooser(robot),
    )


def _matrix(part: str, name: str, what: str) -> Callable[[Robot, Request], _Plan]:
    def plan(robot: Robot, request: Request) -> _Plan:
        order, m = request.order, _velocities(robot)
        rates = order + 1 if part == "coriolis" else order
        size = m if part == "gravity" else m * m
        return _Plan(
            matrix_kernels.dynamic_matrices_trace(robot.model, order, (part,)),
            _moved_inputs(robot),
            {name: ((order + 1, size), m)},
            [
                words.motion(rates),
                *_base(robot, rates - 1, "body_fixed"),
                words.by_order(what, m, order),
                *_first(robot),
            ],
            robot.compile(order, what),
            _motion_chooser(robot),
        )

    return plan


def _regressor(robot: Robot, request: Request) -> _Plan:
    order, m, columns = request.order, _velocities(robot), 10 * robot.model.n_bodies
    return _Plan(
        matrix_kernels.regressors_trace(robot.model, order),
        _moved_inputs(robot),
        {"regressor": ((order + 1, m * columns), columns)},
        [
            words.motion(order + 2),
            *_base(robot, order + 1, "body_fixed"),
            words.regressor(m, robot.model.n_bodies, order),
        ],
        robot.compile(order, "regressor"),
        _motion_chooser(robot),
    )


def _derivatives(robot: Robot, request: Request) -> _Plan:
    order, m = request.order, _velocities(robot)

    def compute(q: Array, *base: Array) -> Array:
        moving = BaseMotion(*base, representation="body_fixed") if base else None
        return robot.inverse_dynamics_derivatives(q, moving)

    about = [
        words.motion(order + 2),
        *_base(robot, order + 1, "body_fixed"),
        f"derivatives: matrix ({m}, {m}) by rows of torque derivative r (0 to {order}) by derivative k of q "
        f"(0 to {order + 2}), from [(r * {order + 3} + k) * {m * m}] on.",
    ]
    if robot.model.floating_base:
        about.append(
            "Six rows of the body-fixed wrench on the base stand first, and six columns: k = 0 is a small "
            "body-fixed displacement of the base, k > 0 derivative k - 1 of its body-fixed twist."
        )
    return _Plan(
        matrix_kernels.inverse_dynamics_derivatives_trace(robot.model, order),
        _moved_inputs(robot),
        {"derivatives": ((order + 1, (order + 3) * m * m), m)},
        about,
        compute,
        _motion_chooser(robot),
    )


def _forward_derivatives(robot: Robot, request: Request) -> _Plan:
    order, m = request.order, _velocities(robot)
    given = _forward_dynamics(robot, replace(request, wrenches=()))
    about = [
        *given.about[:2],
        *(given.about[3:6] if robot.model.floating_base else ()),
        f"derivatives: matrix ({m}, {m}) by rows of acceleration derivative r (0 to {order}) by positions "
        "(k = 0), velocities (k = 1) and derivative k - 2 of tau, from "
        f"[(r * {order + 3} + k) * {m * m}] on.",
    ]
    if robot.model.floating_base:
        about.append(
            "Six rows of derivatives of the body-fixed twist of the base stand first, and six columns: a "
            "small body-fixed displacement, the body-fixed twist, and the body-fixed wrench on the base."
        )
    return _Plan(
        partial_kernels.hybrid_dynamics_derivatives_trace(
            robot.model, order, _setting(robot, replace(request, wrenches=()))
        ),
        given.inputs,
        {"derivatives": ((order + 1, (order + 3) * m * m), m)},
        about,
        robot.compile(order, "forward_dynamics_derivatives"),
        given.choose,
    )


_PLANS: dict[str, Callable[[Robot, Request], _Plan]] = {
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": _forward_dynamics,
    "forward_kinematics": _forward_kinematics,
    "jacobian": _jacobian,
    "com": _com,
    "mass_matrix": _matrix("mass", "mass", "mass_matrix"),
    "coriolis_matrix": _matrix("coriolis", "coriolis", "coriolis_matrix"),
    "gravity_torque": _matrix("gravity", "gravity", "gravity_torque"),
    "regressor": _regressor,
    "inverse_dynamics_derivatives": _derivatives,
    "forward_dynamics_derivatives": _forward_derivatives,
}


def _velocities(robot: Robot) -> int:
    return robot.n_coordinates + (6 if robot.model.floating_base else 0)


def _first(robot: Robot) -> list[str]:
    """Say which velocities stand before those of the joints."""
    return ["Velocities are the body-fixed twist of the base, then those of the joints."] * (
        robot.tree.floating_base
    )


def _moved_inputs(robot: Robot) -> list[str]:
    return ["q", *(["pose", "twists"] if robot.model.floating_base else [])]


def _base(robot: Robot, order: int, frame: BaseRepresentation = "spatial") -> list[str]:
    return words.base(order, frame=frame) if robot.model.floating_base else []


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
