"""What the engine computes: recursions traced for one robot and one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hodyn_ros.codegen.kernel import Kernel, Stack, Traceable
from hodyn_ros.engine.finite_kernel import FiniteKernel, Refuse
from hodyn_ros.engine.kernel_spec import PLAIN, KernelSpec, hybrid_arguments, tree_arguments
from hodyn_ros.engine.large_trees.forward import TreeHybridKernel
from hodyn_ros.engine.large_trees.inverse import TreeKernel
from hodyn_ros.engine.recursions.articulated import ArticulatedRecursion
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.canonical import canonical_bodies
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.vectors import from_taylor
from hodyn_ros.model.tree import TreeModel

_STRAIGHT_LINE_LIMIT = 500
_STEEP = (
    14  # articulated inertias make forward dynamics long at any order: (order + 2)^2 counts as this at least
)


def fits_straight_line(model: TreeModel, order: int) -> bool:
    """Say whether straight-line code compiles in a second or two; it grows with bodies and order squared."""
    return model.n_bodies * (order + 2) ** 2 <= _STRAIGHT_LINE_LIMIT


def inverse_dynamics(model: TreeModel, order: int, setting: KernelSpec = PLAIN) -> Kernel | TreeKernel:
    """Compile `q (order + 3, n), ... -> torques (order + 1, n)`.

    Straight-line code, or the generic code where that would grow too long.

    With a floating base the arguments go on with its pose (4, 4) and twists (order + 2, 6), and six columns
    with the base wrench in the world frame stand before the torques. Applied wrenches follow, (order + 1, 6)
    each.
    """
    if fits_straight_line(model, order):
        return Kernel(*inverse_dynamics_trace(model, order, setting))
    return TreeKernel(model, order, setting)


def inverse_dynamics_trace(model: TreeModel, order: int, setting: KernelSpec = PLAIN) -> Traceable:
    """Return what `inverse_dynamics` compiles."""

    def trace(q: Stack, *stacks: Stack) -> Stack:
        recursion, torques = solved_efforts(model, order, setting, q, stacks)
        return [[*recursion.base_result(k), *row] for k, row in enumerate(torques)]

    return trace, tree_arguments(model, order + 3, setting.loads)


def solved_efforts(
    model: TreeModel, order: int, setting: KernelSpec, q: Stack, stacks: Sequence[Stack]
) -> tuple[Recursion, Stack]:
    """Solve inverse dynamics; returns the recursion, and the torques by derivative.

    Arguments as of the trace of `inverse_dynamics`.
    """
    base, twists, loads = _unpack(model, setting, stacks)
    recursion = Recursion(canonical_bodies(model), model.gravity.tolist(), base, _loads(setting))
    return recursion, recursion.torques(q, twists, loads)


def hybrid_dynamics(
    model: TreeModel, order: int, setting: KernelSpec = PLAIN, refuse: Refuse | None = None
) -> Kernel | TreeHybridKernel:
    """Compile `state (2, n), given (order + 1, n), ... -> found (order + 1, n)`.

    `given` are accelerations of prescribed joints and torques of the others by order, `found` the reverse:
    with none prescribed, forward dynamics. With a floating base the arguments go on with its pose (4, 4), its
    twist (1, 6) and the base wrench by order (order + 1, 6) in the world frame or, prescribed, the
    derivatives of the twist; six columns with the other of the two stand before `found`. Applied wrenches
    follow, (order + 1, 6) each. `refuse` raises for the arguments of a singular pose, where there are any.
    """
    fits = model.n_bodies * max((order + 2) ** 2, _STEEP) <= _STRAIGHT_LINE_LIMIT
    if not fits:
        return TreeHybridKernel(model, order, setting, refuse)
    trace, arguments = hybrid_dynamics_trace(model, order, setting)
    return (
        Kernel(trace, arguments) if refuse is None else FiniteKernel(trace, arguments, refuse=refuse, rows=1)
    )


def hybrid_dynamics_trace(model: TreeModel, order: int, setting: KernelSpec = PLAIN) -> Traceable:
    """Return what `hybrid_dynamics` compiles."""

    def trace(state: Stack, inputs: Stack, *stacks: Stack) -> Stack:
        recursion, result = solved_motion(model, order, setting, state, inputs, stacks)
        return [[*recursion.base_result(k), *from_taylor(row, k)] for k, row in enumerate(result)]

    return trace, hybrid_arguments(model, order, setting)


def solved_motion(
    model: TreeModel, order: int, setting: KernelSpec, state: Stack, inputs: Stack, stacks: Sequence[Stack]
) -> tuple[ArticulatedRecursion, Stack]:
    """Solve hybrid dynamics; returns the recursion, and by Taylor coefficient what is found at the joints.

    Arguments as of the trace of `hybrid_dynamics`.
    """
    base, twist, rest = _unpack(model, setting, stacks)
    base_inputs, loads = (rest[0], rest[1:]) if base else ([], rest)
    recursion = ArticulatedRecursion(
        canonical_bodies(model),
        model.gravity.tolist(),
        base,
        _loads(setting),
        prescribed=setting.prescribed,
        base_prescribed=setting.base_prescribed,
    )
    return recursion, recursion.solution(state, inputs, twist[0] if base else (), base_inputs, loads)


def _unpack(
    model: TreeModel, setting: KernelSpec, stacks: Sequence[Stack]
) -> tuple[FloatingBase | None, Stack, list[Stack]]:
    """Split the arguments behind the joints' into the base, its twists and the rest."""
    if setting.base is None:
        return None, [], list(stacks)
    pose, twists, *rest = stacks
    return FloatingBase(pose, model.gravity.tolist(), setting.base), twists, rest


def _loads(setting: KernelSpec) -> list[AppliedWrench]:
    return [AppliedWrench(body, frame) for body, frame in setting.loads]


# Takes positions and velocities of links and motors and the efforts; returns what is not needed, torques on
# the links, and accelerations of the motors that do not move with their links.
DriveCode = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Any], Sequence[Any]], Any]


def driven_step(
    model: TreeModel, drives: DriveCode, armature: Sequence[float], moving: int, motors: int
) -> Kernel:
    """Compile one Runge-Kutta step of fourth order of a robot with drives of any kind.

    `state (2, n + moving)`: positions of the links and of the motors that do not move with their links, then
    the velocities of both; `effort (1, motors)`, held over the step; `step (1, 1)` [s]. Returns the next
    state, and where drives have conditions (`Graph.conditions`) a row that is not zero where one fails.
    `armature` (n,) is the inertia of motors that do move with their links [kg m^2].
    """
    bodies, n = canonical_bodies(model), model.n_joints

    def rates(state: Stack, effort: Sequence[Any]) -> Stack:
        (q, theta), (qd, thetad) = [(row[:n], row[n:]) for row in state]
        _, torque, acceleration = drives(q, qd, theta, thetad, effort)
        recursion = ArticulatedRecursion(bodies, model.gravity.tolist(), armature=list(armature))
        recursion.start(q, qd)
        recursion.articulate()
        return [state[1], [*recursion.hybrid_dynamics(0, torque), *acceleration]]

    shapes = [("state", (2, n + moving)), ("effort", (1, motors)), ("step", (1, 1))]
    return Kernel(runge_kutta(rates), shapes)


def runge_kutta(rates: Callable[[Stack, Sequence[Any]], Stack]) -> Callable[..., Stack]:
    """Return the trace of one step, from the time derivative of a state under efforts that are held."""

    def moved(state: Stack, step: Any, slopes: Stack) -> Stack:
        return [[x + step * slope for x, slope in zip(*rows)] for rows in zip(state, slopes)]

    def trace(state: Stack, effort: Stack, step: Stack) -> Stack:
        h = step[0][0]
        first = rates(state, effort[0])
        second = rates(moved(state, 0.5 * h, first), effort[0])
        third = rates(moved(state, 0.5 * h, second), effort[0])
        fourth = rates(moved(state, h, third), effort[0])
        mean = [
            [(a + 2.0 * b + 2.0 * c + d) * (1.0 / 6.0) for a, b, c, d in zip(*rows)]
            for rows in zip(first, second, third, fourth)
        ]
        violation = h.graph.violation()
        failed = [[violation] * len(mean[0])] if h.graph.conditions else []
        return [*moved(state, h, mean), *failed]

    return trace
