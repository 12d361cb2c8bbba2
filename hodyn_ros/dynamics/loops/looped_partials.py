"""Partial derivatives of inverse, forward and hybrid dynamics of robots with couplings and loops.

The recursions of the engine are run on numbers that carry their derivatives; those of the joints that follow
the coordinates are `F`, by the implicit function theorem, and everything else is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.loops import compiled_partials
from hodyn_ros.dynamics.loops.compiled_partials import by_order
from hodyn_ros.dynamics.loops.coordinate_motion import sample_of
from hodyn_ros.dynamics.loops.directions import (
    Directions,
    displacement_brackets,
    platform_part,
    turns_of,
)
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode, Step
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_matrices import MATRICES, Matrix, MatrixCode
from hodyn_ros.engine.loops.loop_partials import with_body_wrench
from hodyn_ros.engine.series.dual import Dual
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.errors import InputError
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_world
from hodyn_ros.lie.se3 import Array, ad


def matrix_partials(looped: LoopedAccelerations, y: Array, given: BaseMotion | None) -> MatrixDerivatives:
    """Return the derivatives of M, C and g by coordinate, with time derivatives; y (order + 2, k).

    Those of a platform or prescribed base by small body-fixed displacements; `given` with `order` + 1 twists.
    """
    order, closure = len(y) - 2, looped.closure
    if closure.drifts:
        raise InputError(
            f"the rows of the platform of robot {closure.tree.name!r} leave the rest of its twist to follow, "
            "and matrix_derivatives takes no such platform; inverse_dynamics_derivatives does"
        )
    found = []  # (order + 1, derivative, h, rows, columns)
    for part in MATRICES:
        changes = compiled_partials.of_matrix(looped, part, y, given)
        found.append(_matrix_changes(looped, part, y, given) if changes is None else changes)
    brackets = None if given is None else displacement_brackets(turns_of(closure), given, order)
    mass, coriolis, gravity = ([part[r] for r in range(order + 1)] for part in found)
    rates = [_in_time([one[0] for one in part], brackets) for part in (mass, coriolis, gravity)]
    # a velocity changes C^(r) as well by where it leads: d/dw C' = (d/dw C)' + d/dx C
    by_velocity = [coriolis[r][1] - sum(rates[1][i][r - 1 - i] for i in range(r)) for r in range(order + 1)]
    of_mass, of_coriolis, of_gravity = (np.array(table[0]) for table in rates)
    return MatrixDerivatives(of_mass, of_coriolis, np.array(by_velocity), of_gravity[..., 0, :])


def _matrix_changes(looped: LoopedAccelerations, part: Matrix, y: Array, given: BaseMotion | None) -> Array:
    """Return what `compiled_partials.of_matrix` does, by numbers that carry their derivatives."""
    order = len(y) - 2
    moved, _ = looped.locate(y[0], given, len(y))
    columns = Directions(looped, moved, given, order + 2)
    code = MatrixCode(columns.closure, looped.independence.given, order, part)
    state, memory = columns.closed()
    motion, _ = columns.leader(code.count)
    values = code.matrices(columns.joints(y)[: code.count + 1], *motion, [memory], [state])[:-1]
    changes = columns.changes(values).reshape(order + 1, -1, columns.count, order + 2, columns.count)
    return np.moveaxis(changes, (3, 4), (1, 2))


def _in_time(values: Sequence[Array], brackets: Array | None) -> list[list[Array]]:
    """Return time derivatives [r][s] of the derivatives `values` of `A^(r)` by displacements.

    With `d/dx A' = (d/dx A)' - [w, .]^T d/dx A`, as displacements of a body do not commute with its motion;
    the first axis is that of the displacement, `brackets` the matrices of `[w, .]` by order, none of joints.
    """
    if brackets is None:
        return [list(values[r:]) for r in range(len(values))]
    table = [[one] for one in values]
    turned = [-one.T for one in brackets]
    for s in range(1, len(table)):
        for r in range(len(table) - s):
            bent = product_derivative(turned, table[r], s - 1, partial(np.tensordot, axes=1))
            table[r].append(table[r + 1][s - 1] - bent)
    return table


def inverse_dynamics_partials(
    looped: LoopedEfforts, y: Array, given: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()
) -> Array:
    """Return du^(r)/dy^(k) (order + 1, order + 3, efforts, coordinates) for a motion y (order + 3, k).

    `given`: the motion of a prescribed base or of a platform, whose coordinates are small body-fixed
    displacements (k = 0), and the derivatives of the body-fixed twist; a wrench on the base is body-fixed.
    """
    order = len(y) - 3
    looped.check_loads(given, wrenches, order)
    compiled = compiled_partials.of_efforts(looped, y, given, wrenches)
    if compiled is not None:
        return compiled
    moved, margins = looped.locate(y[0], given, len(y))
    looped.check_held(margins[1])
    columns = Directions(looped, moved, given, order + 3)
    state, memory = columns.closed()
    code = EffortCode(columns.closure, looped.independence.given, order, columns.places(wrenches))
    motion, base = columns.leader(order + 2)
    loads = [wrench.up_to(order).tolist() for wrench in wrenches]
    efforts = code.efforts(columns.joints(y), *motion, *loads, [memory], [state])[: order + 1]
    if looped.closure.base_given:
        assert base is not None
        efforts = with_body_wrench(efforts, base)
    found = columns.changes(efforts)
    return np.moveaxis(found.reshape(order + 1, -1, order + 3, columns.count), 2, 1)


def inverse_dynamics_partials_of_samples(
    looped: LoopedEfforts,
    count: int,
    y: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench] = (),
) -> Array:
    """Return what `inverse_dynamics_partials` does of a batch, y (count, order + 3, k)."""
    compiled = compiled_partials.of_efforts(looped, y, given, wrenches)
    if compiled is not None:
        return compiled

    def alone(i: int) -> Array:
        return inverse_dynamics_partials(looped, y[i], sample_of(given, i), wrenches)

    return one_by_one(count, alone)


def forward_dynamics_partials(
    looped: LoopedAccelerations,
    state: Array,
    efforts: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench] = (),
) -> Array:
    """Return the derivatives (order + 1, order + 3, coordinates, efforts) of accelerations by order.

    Entry [r, k] is by the coordinates (k = 0), their rates (k = 1), and derivative k - 2 of the efforts; with
    more efforts than coordinates, columns beyond these are zero for k < 2. Arguments as of
    `LoopedAccelerations.accelerations`; motion of base or platform, and wrenches on a base, are
    body-fixed, and wrenches given stay as they are.
    """
    compiled = _compiled_forward(looped, state, efforts, given, wrenches)
    if compiled is not None:
        return compiled
    drives = efforts
    if looped.closure.base_given:
        drives, wrenches = efforts[:, 6:], [*wrenches, AppliedWrench(0, efforts[:, :6])]
    found = _responses(looped, state, drives, given, wrenches)
    return by_order(found.of_coordinates, looped.closure.n_coordinates)


def _compiled_forward(
    looped: LoopedAccelerations,
    state: Array,
    efforts: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
) -> Array | None:
    """Return what `forward_dynamics_partials` does, of a batch too, where there is code."""
    if looped.independence.idle:
        return None
    first = 6 if looped.closure.base_given else 0
    push = efforts[..., :first] if first else None
    found = compiled_partials.of_accelerations(looped, state, efforts[..., first:], given, wrenches, push)
    return None if found is None else by_order(found[0], looped.closure.n_coordinates)


def forward_dynamics_partials_of_samples(
    looped: LoopedAccelerations,
    count: int,
    state: Array,
    efforts: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench] = (),
) -> Array:
    """Return what `forward_dynamics_partials` does of a batch, state (count, 2, k)."""
    compiled = _compiled_forward(looped, state, efforts, given, wrenches)
    if compiled is not None:
        return compiled

    def alone(i: int) -> Array:
        return forward_dynamics_partials(looped, state[i], efforts[i], sample_of(given, i), wrenches)

    return one_by_one(count, alone)


def hybrid_dynamics_partials(
    looped: LoopedAccelerations,
    state: Array,
    values: Array,
    prescribed: Sequence[int],
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench] = (),
) -> Array:
    """Return the derivatives (order + 1, order + 3, efforts, efforts) of what hybrid dynamics returns.

    Arguments as of `LoopedAccelerations.hybrid_dynamics`, columns as of `forward_dynamics_partials`. With A
    the derivatives of the driven joints' accelerations q_a by the efforts, which are the same at every order,
    efforts of the prescribed joints p change by

        A_pp du_p^(k) = dq_p^(k+2) - what follows from all else that changes
    """
    closure, (orders, e) = looped.closure, values.shape
    found, twists = looped.hybrid_dynamics(state, values, prescribed, given, wrenches)
    efforts = values.copy()
    efforts[:, list(prescribed)] = found[:, list(prescribed)]
    drives = efforts[:, e - len(closure.driven) :]
    if closure.base_given and given is not None and twists is not None:
        wrench, held = efforts[:, :6], set(range(6)) <= set(prescribed)
        if held:  # the wrench found turns with the base
            wrench = BaseMotion(given.pose, twists).wrenches_in_body(wrench)
        wrenches = [*wrenches, AppliedWrench(0, wrench, representation="body_fixed" if held else "spatial")]
    of_drives = _responses(looped, state, drives, given, wrenches).of_drives
    c, size, p = closure.n_coordinates, of_drives.shape[2], list(prescribed)
    response = of_drives[0, p, 2 * c : 2 * c + e][:, p]
    changes = np.eye(size)  # of what acts, by what is given
    result = np.zeros((orders, e, size))
    for k in range(orders):
        own = slice(2 * c + k * e, 2 * c + (k + 1) * e)
        wanted = changes[own][p]
        changes[own.start + np.array(p, dtype=int)] = 0.0
        if p:
            missing = wanted - of_drives[k, p] @ changes
            changes[own.start + np.array(p, dtype=int)] = np.linalg.solve(response, missing)
        result[k] = of_drives[k] @ changes
        result[k, p] = changes[own][p]
    return by_order(result, c)


def linearised(
    looped: LoopedAccelerations, state: Array, given: BaseMotion | None, efforts: Array
) -> LinearisedDynamics:
    """Return `dx' = A dx + B du`, x the coordinates and their rates, u the efforts (driven,) of the drives.

    `state` (2, k), `given` pose and twist of base or platform. Those that its motion is part of are small
    body-fixed displacements, and components of its body-fixed twist.
    """
    found = _responses(looped, state, efforts[None], given, ())
    closure = looped.closure
    c, turns = closure.n_coordinates, turns_of(closure)
    rates = np.eye(c, 2 * c, c)
    if closure.drifts:
        columns = Directions(looped, looped.locate(state[0], given, 3)[0], given, 2)
        columns.follow_platform(state[1])
        given, turns = columns.given, columns.turns
    if given is not None:  # displacements e change by e' = dw - [w, e]
        part, rows = platform_part(closure)
        rates[part, :c] -= (ad(given.in_representation("body_fixed").twists[0]) @ turns)[rows]
    accelerations = found.of_coordinates[0]
    B = np.concatenate([np.zeros((c, len(efforts))), accelerations[:, -len(efforts) :]])
    return LinearisedDynamics(np.concatenate([rates, accelerations[:, : 2 * c]]), B)


class _Responses(NamedTuple):
    """What accelerations change by, by derivative order: (order + 1, rows, directions).

    Directions are those of coordinates and their rates, then of all efforts by order.
    """

    of_coordinates: Array
    of_drives: Array  # after the body-fixed twist of a prescribed base


def _responses(
    looped: LoopedAccelerations,
    state: Array,
    drives: Array,
    given: BaseMotion | None,
    wrenches: Sequence[AppliedWrench],
) -> _Responses:
    """Return what accelerations change by where state and efforts do.

    `drives` (order + 1, driven): their efforts. Those on a base are body-fixed, and come in addition to
    `wrenches`, which hold what acts on it.
    """
    order, e = len(drives) - 1, looped.closure.n_efforts
    if looped.independence.idle:
        raise InputError(looped.independence.idle)
    compiled = compiled_partials.of_accelerations(looped, state, drives, given, wrenches)
    if compiled is not None:
        return _Responses(*compiled)
    moved, _ = looped.locate(state[0], given, order + 3)
    columns = Directions(looped, moved, given, 2, (order + 1) * e)
    columns.follow_platform(state[1])
    code = AccelerationCode(columns.closure, looped.independence.given, order, columns.places(wrenches))
    units = np.zeros((order + 1, e, columns.size))
    units[..., 2 * columns.count :] = np.eye((order + 1) * e).reshape(order + 1, e, -1)
    pushes, first = [], e - drives.shape[1]
    if given is not None and first:
        still = np.concatenate([np.zeros((order + 1, 6)), drives], axis=1)
        moving = looped.accelerations(state, still, given, wrenches)
        twists = np.concatenate([given.twists[:1], moving[:, :6]])
        in_body = np.swapaxes(units[:, :6], 1, 2)
        in_world = wrenches_to_world(given.pose, twists_to_body(given.pose, twists), in_body)
        pushes = [[[Dual(0.0, change) for change in row.T] for row in in_world]]
    pushed = [[Dual(float(u), x) for u, x in zip(row, unit[first:])] for row, unit in zip(drives, units)]
    motion, _ = columns.leader(1)
    loads = [wrench.up_to(order).tolist() for wrench in wrenches]
    step, found = code.steps(columns.joints(state), *motion, pushed, *pushes, *loads, [columns.closed()[0]])
    joints = [
        [x * float(factorial(k)) for x in map(step.velocities(k).__getitem__, columns.closure.driven)]
        for k in range(1, order + 2)
    ]
    if not motion:
        return _Responses(columns.changes(found), columns.changes(joints))
    of_pose = _body_fixed_rows(columns, motion[0], step, found)
    of_joints = [row[6:] for row in found]
    in_front = looped.closure.base_given
    rows = zip(of_pose, of_joints) if in_front else zip(of_joints, of_pose)
    if in_front:
        joints = [[*row, *others] for row, others in zip(of_pose, joints)]
    accelerations = columns.changes([[*a, *b] for a, b in rows])
    return _Responses(accelerations, columns.changes(joints))


def _body_fixed_rows(
    columns: Directions, pose: list[list[Dual]], step: Step, found: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Return derivatives 1 to order + 1 of the body-fixed twist of platform or base, those of its rows."""
    base = FloatingBase(pose, (0.0, 0.0, 0.0), "spatial")
    base.extend(step.leader_twist(0))
    result = []
    for k, row in enumerate(found, 1):
        base.extend([x * (1.0 / factorial(k)) for x in row[:6]])
        twist = [x * float(factorial(k)) for x in (*base.angular[k], *base.velocity[k])]
        result.append([twist[i] for i in columns.rows])
    return result
