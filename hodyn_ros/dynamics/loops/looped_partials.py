"""Partial derivatives of dynamics of robots with couplings and loops.

Joints that follow the coordinates change as the loops let them, by the implicit function theorem; everything
else is explicit (`hodyn_ros.engine.loops.loop_partials`). All directions are computed in lanes or, where code
would be too long, on numbers that carry their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result, n_axes
from hodyn_ros.codegen.kernel import TooLong
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.call_arguments import HybridArguments, MotionArguments, check_prescribed
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs, drive_rows, looped_inputs
from hodyn_ros.dynamics.loops.looped_accelerations import LoopedAccelerations
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_efforts import LoopedEfforts
from hodyn_ros.dynamics.matrices import MatrixDerivatives
from hodyn_ros.dynamics.motion_stack import too_large
from hodyn_ros.dynamics.partials import multiplier_rows, of_each
from hodyn_ros.dynamics.results import BaseAndJoints
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_hessian import HessianCode
from hodyn_ros.engine.loops.loop_partials import PARTIALS, Differentiated
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.formulations.second_derivatives import answered, hybrid_weights
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, ad, inverse
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.loops import ROWS


class LoopedPartials(LoopedEfforts, LoopedAccelerations):
    """Partial derivatives in the independent coordinates.

    Platforms and prescribed bases change by small body-fixed displacements, and by derivatives of their
    body-fixed twist; a wrench on a base is body-fixed.
    """

    @finite_result
    def matrix_derivatives(self, q: ArrayLike | None, base: BaseMotion | None) -> MatrixDerivatives:
        """Compute what `Robot.matrix_derivatives` returns."""
        inputs = looped_inputs(self.closure, q, base, 1)
        if not inputs.n_samples:
            return self._matrix_partials(inputs)
        each = inputs.each(self._matrix_partials)
        return MatrixDerivatives(
            *(np.array([getattr(one, part.name) for one in each]) for part in fields(MatrixDerivatives))
        )

    @finite_result
    def inverse_dynamics_derivatives(self, arguments: MotionArguments) -> Array:
        """Compute what `Robot.inverse_dynamics_derivatives` returns."""
        inputs = self._inputs(arguments)
        order = inputs.orders - 2
        self.check_loads(inputs, order)
        result = by_order(self._changes("efforts", order, inputs), self.closure.n_coordinates)
        if not inputs.n_samples and not inputs.wrenches:
            call, name = self._arranged("efforts", order), ("inverse_dynamics_derivatives",)
            self.fast.note(inputs.y, arguments.base, name, call, result)
        return result

    @finite_result
    def forward_dynamics_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.forward_dynamics_derivatives` returns.

        With more efforts than coordinates, columns beyond these are zero for k < 2.
        """
        state, inputs, base, base_wrench, loads, *_ = arguments
        of_states = state is not None and n_axes(state) == 3
        batch = of_states or (isinstance(base, BaseMotion) and base.batch)
        if not batch and (each := arguments.one_by_one()):
            return one_by_one(len(each), lambda i: self.forward_dynamics_derivatives(each[i]))
        closure = self.closure
        checked = looped_inputs(closure, state, base, 1, loads)
        values = drive_rows(closure, inputs, base_wrench, checked.n_samples)
        first = closure.n_base
        push = values[..., :first] if first else None
        changes, _ = self._responses(checked, values[..., first:], push)
        result = by_order(changes, closure.n_coordinates)
        if not batch and not loads and base_wrench is None:
            torques = (len(values), len(closure.driven))
            call = self._arranged("accelerations", len(values) - 1)

            def compute(state: Array, torques: Array, *of_base: Array) -> Array:
                return call(state, *of_base[:2], torques, *of_base[2:][: closure.base_prescribed])

            y_shape = 2, len(closure.joints)
            self.fast.partials[y_shape, torques, base and "spatial"] = compute, result.shape
        return result

    @finite_result
    def hybrid_dynamics_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.hybrid_dynamics_derivatives` returns.

        With A the derivatives of the driven joints' accelerations q_a by the efforts, which are the same at
        every order, efforts of the prescribed joints p change by

            A_pp du_p^(k) = dq_p^(k+2) - what follows from all else that changes
        """
        check_prescribed(arguments.prescribed)
        if each := arguments.one_by_one():
            return one_by_one(len(each), lambda i: self.hybrid_dynamics_derivatives(each[i]))
        inputs, values, p = self._hybrid_problem(arguments)
        closure, leader, (orders, e) = self.closure, inputs.leader, values.shape
        solution, twists = self.moved_and_driven(inputs, values, p)
        efforts = values.copy()
        efforts[:, p] = solution[:, p]
        drives = efforts[:, e - len(closure.driven) :]
        if closure.base_prescribed and leader is not None and twists is not None:
            wrench, held = efforts[:, :6], set(range(6)) <= set(p)
            if held:  # the wrench found turns with the base
                wrench = BaseMotion(leader.pose, twists).wrenches_in_body(wrench)
            frame: Literal["body_fixed", "spatial"] = "body_fixed" if held else "spatial"
            on_base = AppliedWrench(0, wrench, representation=frame)
            inputs = inputs._replace(wrenches=[*inputs.wrenches, on_base])
        _, of_drives = self._responses(inputs, drives)
        c, size = closure.n_coordinates, of_drives.shape[2]
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

    def displacement_bracket(self, state: ArrayLike | None, base: BaseMotion | None) -> Array | None:
        """Return the matrix of `e -> [w, e]` in displacements e by the coordinates; None where it is zero."""
        closure = self.closure
        inputs, turns = looped_inputs(closure, state, base, 1), _turns_of(closure)
        leader = inputs.leader
        if leader is None:
            return None
        if closure.drifts:
            leader, turns = self._platform_as_it_moves(inputs.y, leader)
        part, rows = _platform_part(closure)
        result = np.zeros((closure.n_coordinates, closure.n_coordinates))
        result[part] = (ad(leader.twists_in("body_fixed", 1)[0]) @ turns)[rows]
        return result

    def inverse_dynamics_hessian(self, arguments: MotionArguments, multiplier: ArrayLike) -> Array:
        """Compute what `Robot.inverse_dynamics_hessian` returns."""
        inputs = self._inputs(arguments)
        order, batch = inputs.orders - 2, (inputs.n_samples,) if inputs.n_samples else ()
        weights = multiplier_rows(multiplier, (order + 1, self.closure.n_efforts), batch)
        call = self._hessian_call(order, self.places(inputs.wrenches))
        if call is None:
            raise too_large(self.closure.tree, "inverse_dynamics_hessian", order)

        def alone(one: LoopedInputs, weights: Array) -> Array:
            self.check_loads(one, order)
            result: Array = call.law.changes(call(*one.arrays(order), weights))
            return result

        if not inputs.n_samples:
            return alone(inputs, weights)
        return one_by_one(inputs.n_samples, lambda i: alone(inputs.one(i), weights[i]))

    def inverse_dynamics_second_derivatives(self, arguments: MotionArguments) -> Array:
        """Compute what `Robot.inverse_dynamics_second_derivatives` returns."""
        order, count = self._inputs(arguments).orders - 2, self.closure.n_efforts
        return of_each(order, count, lambda unit: self.inverse_dynamics_hessian(arguments, unit))

    def hybrid_dynamics_hessian(self, arguments: HybridArguments, multiplier: ArrayLike) -> Array:
        """Compute what `Robot.forward_dynamics_hessian` returns, by coordinates and efforts."""
        if len(arguments.prescribed) or arguments.prescribe_base:
            raise InputError("second derivatives of hybrid dynamics are of robots without loops")
        closure = self.closure
        if closure.n_efforts != closure.n_coordinates or closure.drifts:
            raise InputError(
                f"second derivatives of forward dynamics need as many drives as coordinates, and a platform "
                f"all of whose twist its rows say; robot {closure.tree.name!r} is not so"
            )
        if each := arguments.one_by_one():
            weights = multiplier_rows(multiplier, np.shape(multiplier)[-2:], (len(each),))
            return one_by_one(len(each), lambda i: self.hybrid_dynamics_hessian(each[i], weights[i]))
        state, base = arguments.state, arguments.base
        result = self.forward_dynamics(arguments)
        joints = result.joints if isinstance(result, BaseAndJoints) else result
        order, before = len(joints) - 1, np.empty((2, 0)) if state is None else np.asarray(state)
        q, moving = np.concatenate([before, joints]), base
        if base is not None and isinstance(result, BaseAndJoints):
            twists = np.concatenate([base.twists[:1], result.base])
            moving = BaseMotion(base.pose, twists, representation=base.representation)
        weights = multiplier_rows(multiplier, (order + 1, closure.n_coordinates), ())
        responses = self.forward_dynamics_derivatives(arguments)
        loads = list(arguments.wrenches)
        if arguments.base_wrench is not None:
            loads.append(AppliedWrench(0, np.asarray(arguments.base_wrench)))
        nu = hybrid_weights(responses, weights, ())
        along = MotionArguments(q, moving, loads)
        return answered(self.inverse_dynamics_hessian(along, nu), responses, ())

    def hybrid_dynamics_second_derivatives(self, arguments: HybridArguments) -> Array:
        """Compute what `Robot.forward_dynamics_second_derivatives` returns."""
        order, count = np.shape(arguments.inputs)[-2] - 1, self.closure.n_coordinates
        return of_each(order, count, lambda unit: self.hybrid_dynamics_hessian(arguments, unit))

    def _matrix_partials(self, inputs: LoopedInputs) -> MatrixDerivatives:
        """Return the derivatives of M, C and g by coordinate, with time derivatives; y (order + 2, k).

        Those of a platform or prescribed base by small body-fixed displacements.
        """
        order, closure, leader = inputs.orders - 1, self.closure, inputs.leader
        if closure.drifts:
            raise InputError(
                f"the rows of the platform of robot {closure.tree.name!r} leave the rest of its twist to "
                "follow, and matrix_derivatives takes no such platform; inverse_dynamics_derivatives does"
            )
        c, orders = closure.n_coordinates, range(order + 1)
        changes = self._changes("matrices", order, inputs).reshape(order + 1, 2 * c + 1, c, order + 2, c)
        brackets = None if leader is None else _displacement_brackets(_turns_of(closure), leader, order)
        # by order, derivative of the motion and coordinate
        parts = np.split(np.moveaxis(changes, (3, 4), (1, 2)), (c, 2 * c), axis=3)
        rates = [_in_time(list(part[:, 0]), brackets) for part in parts]
        # a velocity changes C^(r) as well by where it leads: d/dw C' = (d/dw C)' + d/dx C
        by_velocity = [parts[1][r, 1] - sum(rates[1][i][r - 1 - i] for i in range(r)) for r in orders]
        of_mass, of_coriolis, of_gravity = (np.array(table[0]) for table in rates)
        return MatrixDerivatives(of_mass, of_coriolis, np.array(by_velocity), of_gravity[..., 0, :])

    def compile_inverse_partials(self, order: int) -> Callable[..., Array]:
        """Return `f(q, [pose, twists])` of inverse dynamics, the rows of all matrices one after the other."""
        return _rows_of(self._arranged("efforts", order))

    def compile_forward_partials(self, order: int) -> Callable[..., Array]:
        """Return likewise `f(state, [pose, twist,] torques, [base wrench])` of forward dynamics."""
        return _rows_of(self._arranged("accelerations", order))

    def _arranged(self, of: Differentiated, order: int) -> Callable[..., Array]:
        """Return the code of `partial_call` with its results as calls of `Robot` have them."""
        call, c = self.partial_call(of, order), self.closure.n_coordinates
        rows = slice(c if of == "accelerations" else None)  # before those of the drives
        return lambda *arrays: by_order(call.law.changes(call(*arrays))[:, rows], c)

    def _responses(
        self, inputs: LoopedInputs, drives: Array, push: Array | None = None
    ) -> tuple[Array, Array]:
        """Return how accelerations of the coordinates and of the drives change, (order + 1, ..., directions).

        Directions are those of coordinates and their rates, then of all efforts by order; those on a base are
        body-fixed. `drives` (order + 1, driven): their efforts, of a batch (N, ...) too; `push`: a wrench
        (order + 1, 6) on a prescribed base in the world frame, which stays as it is where the base turns.
        """
        closure, order = self.closure, drives.shape[-2] - 1
        on_base = np.zeros((*drives.shape[:-1], 6)) if push is None else push
        pushes = [on_base] if closure.base_prescribed else []
        self.check_loads(inputs, 0)  # of higher orders, motion is not known yet
        state = inputs._replace(y=inputs.y[..., :2, :])
        result = self._changes("accelerations", order, state, drives, *pushes)
        c = closure.n_coordinates
        of_drives = result[..., c:, :]
        if closure.base_prescribed:
            of_drives = np.concatenate([result[..., :6, :], of_drives], axis=-2)
        return result[..., :c, :], of_drives

    def _changes(self, of: Differentiated, order: int, inputs: LoopedInputs, *drives: Array) -> Array:
        """Return changes (order + 1, rows, directions), of a batch (N, ...) one sample after the other."""
        call = self.partial_call(of, order, self.places(inputs.wrenches))
        table = call.run(inputs.n_samples, inputs.arrays(order, *drives), slice(0, call.code.result[0] - 1))
        result: Array = call.law.changes(table)
        return result

    @kept
    def partial_call(self, of: Differentiated, order: int, places: Loads = ()) -> LoopedCall:
        """Return the code of how efforts, accelerations or matrices change, of single calls."""
        if self.independence.idle and of == "accelerations":
            raise InputError(self.independence.idle)
        return self.call_of(partial(PARTIALS[of], order=order), order, places)

    @kept
    def _hessian_call(self, order: int, places: Loads) -> LoopedCall | None:
        """Return the code of second derivatives of efforts; None where that would be too long."""
        with suppress(TooLong):
            return self.call_of(partial(HessianCode, order=order), order, places)
        return None

    def _platform_as_it_moves(self, state: Array, leader: BaseMotion) -> tuple[BaseMotion, Array]:
        """Return the motion of a platform of which rows leave components to follow, and its displacements.

        These (6, coordinates) are body-fixed, by the coordinates.
        """
        closure, chosen = self.closure, self.independence.rows
        moved, _ = self.locate(state[0], leader, 3)
        moved.extend(embedding.next_rate(chosen, moved, state[1], leader.twists[0]))
        motion = moved.leader_motion
        assert motion is not None and closure.leader is not None
        there = LoopMotion(closure, moved.place, motion.pose)
        of_body = there.body_jacobian(closure.leader) @ embedding.distribution(chosen, there, 0)[0]
        return motion, Ad(inverse(motion.pose)) @ of_body


def by_order(changes: Array, count: int) -> Array:
    """Return derivatives (..., orders, rows, directions) as (..., orders, orders + 2, rows, columns).

    `count`: the coordinates; columns are these, or of forward dynamics as many as there are efforts.
    """
    *batch, orders, rows, size = changes.shape
    e = (size - 2 * count) // orders
    if e == count:
        return changes.reshape(*batch, orders, rows, orders + 2, e).swapaxes(-2, -3)
    result = np.zeros((*batch, orders, orders + 2, rows, e))
    of_state = changes[..., : 2 * count].reshape(*batch, orders, rows, 2, count)
    of_efforts = changes[..., 2 * count :].reshape(*batch, orders, rows, orders, e)
    result[..., :2, :, :count] = np.moveaxis(of_state, -2, -3)
    result[..., 2:, :, :] = np.moveaxis(of_efforts, -2, -3)
    return result


def _rows_of(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return the same call with the rows of all matrices of its result one after the other."""

    def compute(*arguments: Array) -> Array:
        whole = call(*arguments)
        return np.ascontiguousarray(whole.reshape(-1, whole.shape[-1]))

    return compute


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


def _platform_part(closure: Closure) -> tuple[slice, list[int]]:
    """Return which coordinates are rows of a platform or base, and which of its body-fixed twist they are."""
    if closure.base_prescribed:
        return slice(0, 6), list(range(6))
    first, platform = len(closure.joints), closure.platform
    rows = [] if platform is None else [ROWS.index(row) for row in platform.rows]
    return slice(first, first + len(rows)), rows


def _turns_of(closure: Closure) -> Array:
    """Return the body-fixed displacements (6, coordinates) of platform or base by the coordinates."""
    part, rows = _platform_part(closure)
    turns = np.zeros((6, closure.n_coordinates))
    if rows:
        turns[:, part] = closure.directions
    return turns


def _displacement_brackets(turns: Array, leader: BaseMotion, orders: int) -> Array:
    """Return the matrices of `e -> [w, e]` by order of w: displacements e, of base or platform."""
    brackets: Array = np.linalg.pinv(turns) @ ad(leader.twists_in("body_fixed", orders)) @ turns
    return brackets
