"""What is exported of a robot with couplings or loops: Newton's method, straight-line code, and a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.kernel import Shape, traced
from hodyn_ros.dynamics.loops.compiled_partials import by_order
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.loops.moved_by_drives import MovedByDrives
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.engine.limbs.direct_kinematics import DirectKinematics
from hodyn_ros.engine.loops.loop_kernel import (
    LoopAccelerations,
    LoopFunction,
    LoopKernel,
    LoopProduct,
    TooLong,
    compiles,
)
from hodyn_ros.engine.loops.loop_matrices import Matrix
from hodyn_ros.engine.loops.loop_partials import LoopPartials
from hodyn_ros.engine.loops.loop_products import FrameJacobian, FrameMotion, Product
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import InputError
from hodyn_ros.export import motions, words
from hodyn_ros.export.c_function import (
    ALL_FINITE,
    FAILED,
    NEAR_SINGULAR,
    OK,
    Cases,
    CFunction,
    Memory,
    copied,
    finite_conditions,
)
from hodyn_ros.export.c_text import comment_block, number
from hodyn_ros.export.loop_bodies import Body, Columns, along_directions, once
from hodyn_ros.export.request import Request
from hodyn_ros.export.straight_line import StraightLine, Tables
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Array, exp
from hodyn_ros.model.closure import Closure

_ROUNDING = 1e-13  # share of the largest number
_MOST_HUNG = 24  # positions of all limbs and their platform found at once; code grows with their cube
_NEAR_HOME = (0.1, 0.03, 0.01, 0.001)  # [rad or m] how far from home the tests are: the first that can be


@dataclass(frozen=True, eq=False)
class _Plan:
    """A kernel of loops, and where parts of the result stand in its table.

    `flat` is the place of the number that says how near a singular pose is, and from where on it is near;
    None where there is none.
    """

    looped: LoopedMotion
    kernel: LoopFunction | DirectKinematics
    inputs: dict[str, Shape]
    places: dict[str, NDArray[np.int_]]
    about: list[str]
    flat: tuple[int, float] | None = None
    remembered: str = "leading"  # name of the positions in the memory
    step = "newton_step"  # name of the function that improves positions

    @property
    def closure(self) -> Closure:
        return self.looped.closure

    @property
    def n(self) -> int:
        """Number of positions that the memory holds."""
        return len(self.closure.leading)

    @property
    def home(self) -> Array:
        """Positions that the memory holds at first."""
        return self.looped.memory[0, : self.n]

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion near home: that of the coordinates, and of a platform or base."""
        (rows, _), *shapes = self.inputs.values()
        orders = shapes[1][0] if self.closure.leader is not None else 0
        return _motion_near_home(self.looped, random, rows, orders, reach)

    @property
    def results(self) -> dict[str, Shape]:
        """Shapes of the arrays of results."""
        return {name: (len(places), places.shape[1]) for name, places in self.places.items()}

    @property
    def arguments(self) -> dict[str, Shape]:
        """Shapes of what follows from positions that were found, by name in C."""
        return {**self.inputs, f"memory->{self.remembered}": (1, self.n), "reached": (1, self.n + 1)}

    def body(self, what: str, tables: Tables) -> Body:
        """Write what is computed."""
        flat = None if self.flat is None else self.flat[0]
        end = self.kernel.traces.end
        return once(end, self.arguments, self.places, self.kernel.bad, flat, what, tables)

    def found(self, table: Array) -> dict[str, Array]:
        """Return results from what the kernel returns."""
        return {name: table.ravel()[places] for name, places in self.places.items()}


@dataclass(frozen=True, eq=False)
class _PartialsPlan(_Plan):
    """Partial derivatives `(order + 1, order + 3, rows, columns)`; `of`: whose changes they are."""

    of: str = ""
    shape: tuple[int, ...] = ()

    @property
    def results(self) -> dict[str, Shape]:
        """Shapes of the arrays of results."""
        return {"derivatives": (self.shape[0], int(np.prod(self.shape[1:])))}

    def body(self, what: str, tables: Tables) -> Body:
        """Write what is computed."""
        kernel, (orders, blocks, rows, columns) = self.kernel, self.shape
        assert isinstance(kernel, LoopPartials)
        per_order = kernel.shape[0] // orders
        of_row = [(r * blocks * rows + i) * columns for r in range(orders) for i in range(rows)]
        first = [self.closure.n_coordinates] * (blocks if self.of == "inverse" else 2)
        sizes = [*first, *[columns] * (blocks - len(first))]
        of_direction = [k * rows * columns + h for k, size in enumerate(sizes) for h in range(size)]
        kept = [r * per_order + i for r in range(orders) for i in range(rows)]
        places = Columns(of_direction, of_row, kept, kernel.shape[0], int(np.prod(self.shape)))
        near, name = self.flat is not None, f"{self.of}_changes"
        return along_directions(kernel.traces.end, self.arguments, places, near, name, what, tables)

    def found(self, table: Array) -> dict[str, Array]:
        """Return results from what the kernel returns."""
        assert isinstance(self.kernel, LoopPartials)
        changes = self.kernel.changes(table)[:, : self.shape[2]]
        if self.of == "inverse":
            changes = changes.reshape(*changes.shape[:2], self.shape[1], -1).swapaxes(1, 2)
        else:
            changes = by_order(changes, self.closure.n_coordinates)
        return {"derivatives": changes.reshape(len(changes), -1)}


@dataclass(frozen=True, eq=False, kw_only=True)
class _FromDrivesPlan(_Plan):
    """The motion of a robot from that of its drives, which are the coordinates of a twin, `looped`."""

    moved: MovedByDrives
    step = "newton_step_of_drives"

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion of the drives near home, and that of a base."""
        q, *given = super().motion(random, reach)
        return [self.moved.drives_of(q, _moving(given)), *given]


@dataclass(frozen=True, eq=False)
class _OnLimbsPlan(_Plan):
    """The motion of a platform on limbs from that of its drives."""

    step = "newton_step_of_drives"

    @property
    def n(self) -> int:
        """Number of positions that the memory holds: those of all joints, and the pose seen from a center."""
        return self._direct.n_positions

    @property
    def home(self) -> Array:
        """What the memory holds at first."""
        return np.array(self._direct.positions(self.looped.memory[0].tolist()))

    def motion(self, random: Random, reach: float) -> list[Array]:
        """Return a motion of the drives near home."""
        rows, _ = self.inputs["drives"]
        y, *given = _motion_near_home(self.looped, random, rows, rows - 1, reach)
        joints, _ = self.looped.joint_motion(y, _moving(given))
        return [np.ascontiguousarray(joints[:, list(self.closure.driven)])]

    @property
    def _direct(self) -> DirectKinematics:
        assert isinstance(self.kernel, DirectKinematics)
        return self.kernel


def loop_function(robot: Robot, request: Request, what: str, tables: Tables) -> CFunction:
    """Write a function of a robot with couplings or loops.

    It takes a memory and the motion of the coordinates, and returns a code.
    """
    if what not in _PLANS:
        raise InputError(
            f"{what} of robot {robot.name!r} cannot be exported: of robots with couplings or loops there are "
            f"{' and '.join(_PLANS)}"
        )
    plan = _PLANS[what](robot, request)
    memory = _memory(plan)
    body = plan.body(f"{what} of robot {robot.name!r} at order {request.order}", tables)
    step, more = _newton_step(plan, tables)
    macro = request.prefix.upper()
    answer = f"{macro}_OK"
    if plan.flat is not None:
        answer = f"{body.flat} > {number(plan.flat[1])} ? {macro}_NEAR_SINGULAR : {macro}_OK"
    counts = [f"{body.bad} < 1.0", *finite_conditions(plan.inputs)]
    lines = [
        *_newton(plan, bool(step), macro),
        *body.lines,
        f"  if (!({' && '.join(counts)})) {{",
        f"    return {macro}_FAILED;",
        "  }",
        *copied(f"memory->{plan.remembered}", "reached", plan.n),
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
        _cases(plan),
        remembers={plan.remembered: memory},
        fails=True,
        operations=body.operations + more,
        helpers={plan.step: step, **body.helpers, **ALL_FINITE},
    )


def _inverse_dynamics(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    _check_compiled(robot, compiles(closure, order), f"inverse dynamics of order {order}")
    looped = LoopedDynamics(closure)
    kernel = LoopKernel(closure, looped.independence.given, order, request.loads(robot.tree))
    first = 6 if closure.base_given else 0
    found = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)
    places = {"tau": found[kernel.efforts, first:], "motion": found[kernel.drives, first:]}
    about = [*_about(closure, order + 2)]
    if first:
        places = {"base_wrench": found[kernel.efforts, :6], **places}
        about.append(words.base_wrench(order))
    about += [
        *words.wrenches(request),
        f"tau: efforts of the driven joints on the link side and their derivatives up to order {order}.",
        f"motion: positions of the driven joints and their derivatives up to order {order + 2}.",
    ]
    return _Plan(
        looped,
        kernel,
        {**_inputs(closure, order + 2), **request.wrench_shapes()},
        places,
        about,
        (int(found[-1, 0]), looped.near_singular_from(order)),
    )


def _forward_kinematics(robot: Robot, request: Request) -> _Plan:
    order, tree = request.order, robot.tree
    names = request.frames or _frames_that_move(robot)
    motion = FrameMotion([find_frame(tree, robot.frames, name) for name in names], request.representation)
    plan = _product(robot, request, "forward_kinematics", motion, words.frame_motion(names, request))
    found = plan.places.pop("forward_kinematics").reshape(len(names), -1)
    plan.places["frame_poses"] = found[:, :POSE]
    if order:
        plan.places["frame_twists"] = found[:, POSE:]
    return plan


def _jacobian(robot: Robot, request: Request) -> _Plan:
    moving = _frames_that_move(robot)
    names = request.frames or moving[-1:]
    if len(names) != 1:
        raise InputError(f"a Jacobian is of one frame; found {list(names)}")
    frame = find_frame(robot.tree, robot.frames, names[0])
    if frame.body < 0 or robot.tree.body_names[frame.body] not in moving:
        raise InputError(f"loops hold {names[0]!r} where it is; choose a frame that moves")
    about = words.jacobian(names[0], _closure_of(robot).n_coordinates, request)
    return _product(
        robot, request, "jacobian", FrameJacobian(frame, request.representation), [about, *_velocities(robot)]
    )


def _joint_motion(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    _check_compiled(robot, compiles(closure, max(order - 2, 0), "joints"), f"joint motion of order {order}")
    looped = LoopedDynamics(closure)
    kernel = LoopKernel(closure, looped.independence.given, order, (), "joints")
    rows, n = kernel.result
    about = [*_about(closure, order), words.joints("joints", closure.tree.joint_names, order)]
    places = {"joints": np.arange((rows - 1) * n).reshape(-1, n)}
    return _Plan(looped, kernel, _inputs(closure, order), places, about)


def _motion_from_drives(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    looped, names = LoopedDynamics(closure), robot.tree.joint_names
    inputs = {"drives": (order + 1, len(closure.driven))}
    about = [words.joints("drives", [names[joint] for joint in closure.driven], order)]
    if looped.platform is not None and looped.platform.compiles(order):
        direct = looped.platform.direct_kinematics(order)
        places = _platform_places(closure, order, np.arange(direct.bad), about)
        return _OnLimbsPlan(looped, direct, inputs, places, about, remembered="led_by_drives")
    moved = MovedByDrives(looped)
    moved.follow()
    hung = moved.start is not None
    kernel = None if hung and len(moved.twin.closure.leading) > _MOST_HUNG else moved.code(order)
    if kernel is None:
        _check_compiled(robot, False, f"motion from drives of order {order}")
    assert kernel is not None
    inputs |= {name: shape for name, shape in _inputs(moved.twin.closure, order).items() if name != "q"}
    if closure.base_given:
        about += words.base(order - 1)
    found, places = np.arange(kernel.result[1]), {}
    if closure.platform is not None:
        behind = POSE + 6 * order
        places, found = _platform_places(closure, order, found[:behind], about), found[behind:]
    if closure.joints:
        places["q"] = found.reshape(order + 1, -1)
        about.append(words.motion(order))
    remembered = "led_by_drives" if hung else "leading"
    return _FromDrivesPlan(moved.twin, kernel, inputs, places, about, remembered=remembered, moved=moved)


def _platform_places(
    closure: Closure, order: int, found: NDArray[np.int_], about: list[str]
) -> dict[str, NDArray[np.int_]]:
    """Return where pose and twists of a platform stand in a row, and say so."""
    about += [f"platform_{line}" for line in words.base(order - 1, _leader(closure))]
    places = {"platform_pose": found[None, :POSE]}
    if order:
        places["platform_twists"] = found[POSE:].reshape(-1, 6)
    return places


def _frames_that_move(robot: Robot) -> tuple[str, ...]:
    """Return all bodies but feet, which loops hold where they are."""
    loops = _closure_of(robot).loops
    held = {loop.b.body for loop in loops if loop.kind == "weld" and loop.a.body < 0}
    return tuple(name for body, name in enumerate(robot.tree.body_names) if body not in held)


def _com(robot: Robot, request: Request) -> _Plan:
    return _product(robot, request, "com", "com", [words.com(request.order)])


def _matrix(what: Matrix) -> Callable[[Robot, Request], _Plan]:
    def plan(robot: Robot, request: Request) -> _Plan:
        about = words.by_order(what, _closure_of(robot).n_coordinates, request.order)
        return _product(robot, request, what.split("_")[0], what, [about, *_velocities(robot)])

    return plan


def _regressor(robot: Robot, request: Request) -> _Plan:
    closure = _closure_of(robot)
    about = [words.regressor(closure.n_efforts, closure.tree.n_bodies, request.order)]
    if closure.base_given:
        about.append("Six rows of the body-fixed wrench on the base stand first.")
    return _product(robot, request, "regressor", "regressor", about)


def _product(robot: Robot, request: Request, name: str, what: Product, about: Sequence[str]) -> _Plan:
    """Plan what follows from the motion of the coordinates alone, whose one result has a name."""
    closure, order = _closure_of(robot), request.order
    said = f"{name.replace('_', ' ')} of order {order}"
    _check_compiled(robot, compiles(closure, order), said)
    looped = LoopedDynamics(closure)
    try:
        kernel = LoopProduct(closure, looped.independence.given, order, what)
    except TooLong:
        _check_compiled(robot, False, said)
        raise
    rows, columns = kernel.result
    further = kernel.arguments[0][1][0] - 1  # the highest derivative of the motion
    return _Plan(
        looped,
        kernel,
        _inputs(closure, further),
        {name: np.arange((rows - 1) * columns).reshape(-1, np.prod(kernel.shape))},
        [*_about(closure, further), *about],
    )


def _velocities(robot: Robot) -> list[str]:
    """Say which velocities matrices take, or give forces of."""
    closure = _closure_of(robot)
    parts = ["of the body-fixed twist of the base"] if closure.base_given else []
    parts += ["of the coordinates in q"] if closure.joints else []
    if closure.platform is not None:
        parts.append(f"{' '.join(closure.platform.rows)} of the body-fixed twist of the platform")
    return [f"Velocities are those {', then '.join(parts)}."]


def _forward_dynamics(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    looped = LoopedDynamics(closure)
    inputs, about = _forward_inputs(robot, looped, order)
    what = f"forward dynamics of order {order}"
    try:
        kernel = LoopAccelerations(closure, looped.independence.given, order, request.loads(robot.tree))
    except TooLong:
        _check_compiled(robot, False, what)
        raise
    found = np.arange(kernel.result[0] * kernel.result[1]).reshape(kernel.result)[:-1]
    places = {}
    if closure.leader is not None:
        places["base_acceleration"], found = found[:, :6], found[:, 6:]
        about.append(f"base_acceleration: derivatives 1 to {order + 1} of the twist.")
    if closure.joints:
        places["acceleration"] = found
        about.append(f"acceleration: of the coordinates, with derivatives up to order {order}.")
    return _Plan(
        looped,
        kernel,
        {**inputs, **request.wrench_shapes()},
        places,
        [*about, *words.wrenches(request)],
    )


def _forward_inputs(robot: Robot, looped: LoopedDynamics, order: int) -> tuple[dict[str, Shape], list[str]]:
    """Return what forward dynamics follows from, and what is said about it."""
    closure = looped.closure
    if looped.independence.idle:
        raise InputError(looped.independence.idle)
    _check_compiled(robot, compiles(closure, order), f"forward dynamics of order {order}")
    inputs: dict[str, Shape] = {"state": (2, len(closure.joints))}
    about = ["state: positions and velocities of the coordinates."] if closure.joints else []
    if closure.leader is not None:
        inputs |= {"pose": (4, 4), "twist": (1, 6)}
        pose, twist = words.base(0, _leader(closure))
        about += [pose, twist.replace("twists:", "twist:")]
    inputs["tau"] = order + 1, len(closure.driven)
    about.append(f"tau: efforts of the driven joints and their derivatives up to order {order}.")
    if closure.base_given:
        inputs["base_wrench"] = order + 1, 6
        about.append(words.base_wrench(order))
    return inputs, about


def _inverse_derivatives(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    c, e = closure.n_coordinates, closure.n_efforts
    looped, kernel = _partials(robot, "efforts", order)
    about = [
        *_about(closure, order + 2),
        f"derivatives: matrix ({e}, {c}) by rows of effort derivative r (0 to {order}) by derivative k of "
        f"{_changed(closure)} (0 to {order + 2}), from [(r * {order + 3} + k) * {e * c}] on.",
        *_body_fixed(closure, "Six rows of the body-fixed wrench on the base stand first"),
    ]
    return _PartialsPlan(
        looped,
        kernel,
        _inputs(closure, order + 2),
        {},
        about,
        (kernel.bad + 1, looped.near_singular_from(order)),
        of="inverse",
        shape=(order + 1, order + 3, e, c),
    )


def _forward_derivatives(robot: Robot, request: Request) -> _Plan:
    closure, order = _closure_of(robot), request.order
    c, e = closure.n_coordinates, closure.n_efforts
    inputs, about = _forward_inputs(robot, LoopedDynamics(closure), order)
    looped, kernel = _partials(robot, "accelerations", order)
    about += [
        f"derivatives: matrix ({c}, {e}) by rows of acceleration derivative r (0 to {order}) by "
        f"{_changed(closure)} (k = 0), velocities (k = 1) and derivative k - 2 of the efforts, from "
        f"[(r * {order + 3} + k) * {c * e}] on.",
        *_body_fixed(closure, "Columns k > 1 are first of the body-fixed wrench on the base"),
    ]
    if e > c:
        about.append(f"Columns beyond the first {c} are zero for k < 2.")
    return _PartialsPlan(looped, kernel, inputs, {}, about, of="forward", shape=(order + 1, order + 3, c, e))


def _partials(
    robot: Robot, of: Literal["efforts", "accelerations"], order: int
) -> tuple[LoopedDynamics, LoopPartials]:
    """Compile partial derivatives; InputError where there is no such code."""
    closure = _closure_of(robot)
    said = f"partial derivatives of {'inverse' if of == 'efforts' else 'forward'} dynamics of order {order}"
    _check_compiled(robot, compiles(closure, order), said)
    looped = LoopedDynamics(closure)
    try:
        return looped, LoopPartials(closure, looped.independence.given, order, of)
    except TooLong:
        _check_compiled(robot, False, said)
        raise


def _changed(closure: Closure) -> str:
    """Say by what partial derivatives are."""
    return "the coordinates" if closure.leader is None else "coordinates and displacement"


def _body_fixed(closure: Closure, of_base: str) -> list[str]:
    """Say which derivatives are by displacements of base or platform."""
    if closure.leader is None:
        return []
    moved = "first by those of the base" if closure.base_given else "last by those of the platform"
    if closure.platform is not None and not closure.base_given:
        moved += f" in {' '.join(closure.platform.rows)}"
    said = f"Columns are {moved}: small body-fixed displacements (k = 0) and the body-fixed twist (k > 0)."
    return [said, f"{of_base}."] if closure.base_given else [said]


_PLANS: dict[str, Callable[[Robot, Request], _Plan]] = {
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": _forward_dynamics,
    "forward_kinematics": _forward_kinematics,
    "joint_motion": _joint_motion,
    "motion_from_drives": _motion_from_drives,
    "jacobian": _jacobian,
    "com": _com,
    "mass_matrix": _matrix("mass_matrix"),
    "coriolis_matrix": _matrix("coriolis_matrix"),
    "gravity_torque": _matrix("gravity_torque"),
    "regressor": _regressor,
    "inverse_dynamics_derivatives": _inverse_derivatives,
    "forward_dynamics_derivatives": _forward_derivatives,
}
OFFERED = tuple(_PLANS)


def _closure_of(robot: Robot) -> Closure:
    closure = robot.closure
    assert closure is not None
    return closure


def _check_compiled(robot: Robot, compiled: bool, what: str) -> None:
    if not compiled:
        raise InputError(
            f"robot {robot.name!r} has no compiled {what} that could be exported; docs/loops.md says which "
            "robots with loops have none"
        )


def _memory(plan: _Plan) -> Memory:
    """Return positions as they are remembered, at first those at which the loops are described."""
    names = ", ".join(plan.closure.tree.joint_names[joint] for joint in plan.closure.leading)
    function = "" if plan.remembered == "leading" else " of motion_from_drives"
    about = f"positions [rad or m] at the last success{function}, from which the next are found: {names}"
    home = plan.home
    return Memory(
        [*comment_block([about]), f"double {plan.remembered}[{plan.n}];"],
        [f"memory->{plan.remembered}[{i}] = {number(value)};" for i, value in enumerate(home)],
    )


def _inputs(closure: Closure, order: int) -> dict[str, Shape]:
    inputs: dict[str, Shape] = {"q": (order + 1, len(closure.joints))}
    if closure.leader is not None:
        inputs |= {"pose": (4, 4), "twists": (order, 6)}
    return inputs


def _newton(plan: _Plan, iterates: bool, macro: str) -> list[str]:
    """Write Newton's method for the positions, from those in the memory."""
    n, traces = plan.n, plan.kernel.traces
    start = [f"  double reached[{n + 1}];", "  int i;", *copied("reached", f"memory->{plan.remembered}", n)]
    if not iterates:
        return [*start, f"  reached[{n}] = 0.0;"]
    far = f"({macro}_CONSTANT_TIME || reached[{n}] > {number(traces.arrived)})"
    return [
        *start,
        "  i = 0;",
        "  do {",
        f"    {plan.step}({', '.join([*_step_arguments(plan), 'reached'])});",
        "    ++i;",
        f"  }} while (i < {traces.iterations} && {far});",
    ]


def _newton_step(plan: _Plan, tables: Tables) -> tuple[list[str], int]:
    """Write the function that improves positions, with the most operations that all steps together take.

    Nothing where no positions are unknown.
    """
    arguments, names = _step_arguments(plan), _known(plan)
    traces, shapes = plan.kernel.traces, [*(plan.inputs[name] for name in names), (1, plan.n + 1)]
    graph, outputs, _ = traced(traces.step, shapes)
    operations = graph.count_operations(outputs)
    if not operations:
        return [], 0
    code = StraightLine(graph, [*names, "reached"], outputs, tables)
    parameters = [*(f"const double *{name}" for name in arguments), "double *reached"]
    lines = [
        f"static void {plan.step}({', '.join(parameters)})",
        "{",
        *[f"  (void){name};" for name in arguments],
        *code.lines,
        *[f"  reached[{i}] = {code.text(value)};" for i, value in enumerate(outputs)],
        "}",
    ]
    return lines, operations * traces.iterations


def _step_arguments(plan: _Plan) -> list[str]:
    """Return the names of what positions follow from."""
    return [name for name in _known(plan) if np.prod(plan.inputs[name])]


def _known(plan: _Plan) -> list[str]:
    """Return the names of the motion of the coordinates, and of the pose of platform or base."""
    return list(plan.inputs)[: 1 if plan.closure.leader is None else 2]


def _about(closure: Closure, order: int) -> list[str]:
    """Say what is given, up to derivative `order` of positions."""
    lines = [words.motion(order)] if closure.joints else []
    if closure.leader is not None:
        lines += words.base(order - 1, _leader(closure))
    return lines


def _leader(closure: Closure) -> str:
    """Say whose motion is given."""
    return "base" if closure.base_given else f"platform (body {closure.tree.body_names[closure.leader or 0]})"


def _cases(plan: _Plan) -> Cases:
    """Choose motions near home that the kernel follows, from the first to the last and around again."""
    for reach in _NEAR_HOME:
        cases = _near_home(plan, reach)
        if cases is not None:
            return cases
    raise InputError(
        f"robot {plan.closure.tree.name!r} cannot be exported: the poses near its home are singular, and "
        "there is nothing to test the code with"
    )


def _near_home(plan: _Plan, reach: float) -> Cases | None:
    """Return the calls, a motion that cannot be first; None where the kernel rejects one."""
    kernel, random, calls = plan.kernel, Random(1), []
    memory, home = np.zeros(kernel.arguments[-1][1]), plan.looped.memory.copy()
    memory[:, : home.shape[1]] = home[:, : memory.shape[1]]
    for _ in range(motions.COUNT):
        motion = plan.motion(random, reach)
        plan.looped.memory[:] = home
        rest = list(plan.inputs.values())[len(motion) :]
        calls.append([*motion, *(motions.numbers(random, *shape) for shape in rest)])
    *tables, again = [kernel.function(*call, memory) for call in [*calls, calls[0]]]
    if not all(table.item(kernel.bad) < 1.0 for table in [*tables, again]):
        return None
    impossible = [np.full_like(values, np.inf) for values in calls[0]]
    found = [{name: _rounded(values) for name, values in plan.found(table).items()} for table in tables]
    found.insert(0, {name: np.zeros(shape) for name, shape in plan.results.items()})
    codes = [FAILED]
    for table in tables:
        near = plan.flat is not None and table.item(plan.flat[0]) > plan.flat[1]
        codes.append(NEAR_SINGULAR if near else OK)
    return Cases(
        {name: np.array(values) for name, values in zip(plan.inputs, zip(impossible, *calls))},
        {name: np.array([one[name] for one in found]) for name in plan.results},
        tuple(codes),
        failing=1,
    )


def _motion_near_home(
    looped: LoopedMotion, random: Random, rows: int, orders: int, reach: float
) -> list[Array]:
    """Return a motion (rows, k) of the coordinates, with that of platform or base to as many orders."""
    closure, start = looped.closure, looped.known
    q = motions.numbers(random, rows, len(closure.joints))
    q[0] = start.y + q[0] * (reach / motions.REACH)
    if start.pose is None:
        return [q]
    # a platform may have fewer freedoms than six
    sizes = np.where(closure.directions[:3].any(axis=0), 1.0, closure.size)
    shift = closure.directions @ (sizes * motions.numbers(random, 1, len(sizes), reach)[0])
    twists = motions.numbers(random, max(1, orders), len(sizes)) @ closure.directions.T
    moved = BaseMotion(start.pose @ exp(shift), twists, frame="body").in_frame("world")
    return [q, moved.pose, np.ascontiguousarray(moved.twists[:orders])]


def _moving(given: Sequence[Array]) -> BaseMotion | None:
    """Return pose and twists as the motion of a base."""
    if not given:
        return None
    pose, twists = given
    return BaseMotion(pose, twists if len(twists) else np.zeros((1, 6)))


def _rounded(rows: Array) -> Array:
    """Return numbers by rows, which are zero where they are nothing but rounding: they measure errors."""
    sizes = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    result: Array = np.where(sizes > _ROUNDING * sizes.max(initial=0.0), rows, 0.0)
    return result
