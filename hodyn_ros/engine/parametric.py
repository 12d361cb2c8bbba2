"""One step of a simulation with the robot's parameters as arguments, and what passes back through it.

Bodies are those of `canonical_bodies` with their figures replaced by traced scalars, so that the recursions
run on them as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hodyn_ros.codegen.differentiate import gradient
from hodyn_ros.codegen.kernel import Shape, Stack, Traceable
from hodyn_ros.engine.kernels import runge_kutta
from hodyn_ros.engine.recursions.articulated import ArticulatedRecursion
from hodyn_ros.engine.series.canonical import CanonicalBody, canonical_bodies
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

DYNAMIC, PLACED = 10, 3  # figures of a body: m, m r, I; how far its joint is moved
RIGID, ELASTIC = 2, 5  # figures of a drive


def step(model: TreeModel, elastic: bool) -> Traceable:
    """Trace one Runge-Kutta step of fourth order: `state, effort, step, bodies, drives -> state`.

    `state (2, w)`: positions and velocities of n joints, and where drives are `elastic` of n motors after
    them; `effort (1, n)` of the motors, held over the `step (1, 1)` [s]. `bodies (bodies, 13)`: mass [kg],
    first moment (3) [kg m] and inertia (xx, yy, zz, xy, xz, yz) [kg m^2] of each, in its axes about its
    origin, and by how much its joint with all beyond is moved (3) [m], in axes of the parent's body.
    `drives`: rows (n,) of the motors' inertia and of viscous friction of the links; elastic ones go on with
    those of the motors' friction, of stiffness and of damping of the springs.
    """
    constants = canonical_bodies(model, regroup=False)
    transforms = [one.body_in_frame for one in constants]
    n = model.n_joints

    def trace(state: Stack, effort: Stack, h: Stack, bodies: Stack, drives: Stack) -> Stack:
        traced = [
            _with_figures(one, transforms[j], transforms[one.parent] if one.parent >= 0 else np.eye(4), row)
            for j, (one, row) in enumerate(zip(constants, bodies))
        ]
        inertia, friction, *springs = drives
        armature = [0.0] * n if elastic else inertia

        def rates(now: Stack, u: Sequence[Any]) -> Stack:
            q, speeds = now[0][:n], now[1][:n]
            torque, further = list(u), []
            if elastic:
                motor_friction, stiffness, damping = springs
                theta, motor_speeds = now[0][n:], now[1][n:]
                torque = [
                    k * (b - a) + d * (y - x)
                    for k, d, a, b, x, y in zip(stiffness, damping, q, theta, speeds, motor_speeds)
                ]
                further = [
                    (effort - spring - f * x) / b
                    for effort, spring, f, x, b in zip(u, torque, motor_friction, motor_speeds, inertia)
                ]
            torque = [x - f * speed for x, f, speed in zip(torque, friction, speeds)]
            recursion = ArticulatedRecursion(traced, model.gravity.tolist(), armature=armature)
            recursion.start(q, speeds)
            recursion.articulate()
            return [now[1], [*recursion.hybrid_dynamics(0, torque), *further]]

        return runge_kutta(rates)(state, effort, h)

    return trace, _arguments(model, elastic)


def step_back(model: TreeModel, elastic: bool) -> Traceable:
    """Trace what passes back through a step: `..., slope, own slope, totals -> one row`.

    After the arguments of `step` the derivatives of something by the next state (2, w), what it depends on
    this state besides (2, w), and sums of derivatives by bodies and drives (1, figures). The row holds the
    derivatives by this state and by the effort, and the sums with those of this step.
    """
    trace_of_step, arguments = step(model, elastic)

    def trace(*stacks: Stack) -> Stack:
        *of_step, slope, own, (totals,) = stacks
        state, effort, _, bodies, drives = of_step
        result = [x for row in trace_of_step(*of_step) for x in row]
        graph = of_step[0][0][0].graph
        inputs = [x for stack in (state, effort, bodies, drives) for row in stack for x in row]
        slopes = gradient(graph, result, [x for row in slope for x in row], inputs)
        width, n = 2 * len(state[0]), len(effort[0])
        before = [x + y for x, y in zip(slopes[:width], [x for row in own for x in row])]
        sums = [x + y for x, y in zip(slopes[width + n :], totals)]
        return [[*before, *slopes[width : width + n], *sums]]

    shape = arguments[0][1]
    further = [("the slope", shape), ("its own slope", shape), ("the sums", (1, figures(model, elastic)))]
    return trace, [*arguments, *further]


def figures(model: TreeModel, elastic: bool) -> int:
    """Return the number of figures of all bodies and drives."""
    return model.n_bodies * (DYNAMIC + PLACED) + (ELASTIC if elastic else RIGID) * model.n_joints


def _arguments(model: TreeModel, elastic: bool) -> list[tuple[str, Shape]]:
    n = model.n_joints
    return [
        ("the state", (2, 2 * n if elastic else n)),
        ("the effort", (1, n)),
        ("the step", (1, 1)),
        ("the bodies", (model.n_bodies, DYNAMIC + PLACED)),
        ("the drives", (ELASTIC if elastic else RIGID, n)),
    ]


def _with_figures(body: CanonicalBody, own: Array, above: Array, row: Sequence[Any]) -> CanonicalBody:
    """Return a body with traced figures; `own` and `above`: the user's frames of it and of its parent."""
    mass, first, (xx, yy, zz, xy, xz, yz), moved = row[0], row[1:4], row[4:10], row[10:]
    half = 0.5 * (xx + yy + zz)
    second = [[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]]
    pseudo = [[*line, x] for line, x in zip(second, first)] + [[*first, mass]]
    turned = _times(_times(own.tolist(), pseudo), own.T.tolist())
    shift = [sum(a * x for a, x in zip(line, moved)) for line in above[:3, :3].tolist()]
    translation = [x + y for x, y in zip(body.translation.tolist(), shift)]
    return replace(
        body,
        mass=turned[3][3],
        first_moment=_objects([line[3] for line in turned[:3]]),
        second_moment=_objects([line[:3] for line in turned[:3]]),
        translation=_objects(translation),
    )


def _times(a: Stack, b: Stack) -> Stack:
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def _objects(values: Any) -> Any:
    """Return an array whose `tolist` gives the scalars back."""
    result = np.empty(np.shape(values), dtype=object)
    result[...] = values
    return result
