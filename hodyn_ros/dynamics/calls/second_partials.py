"""The calls of `Robot` that return second partial derivatives, in full and contracted with a multiplier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_result, real_array
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Kernel, LaneKernel
from hodyn_ros.codegen.sample_loop import one_by_one
from hodyn_ros.dynamics.calls.description import load_places
from hodyn_ros.dynamics.calls.forward_dynamics import HybridArguments, HybridProblem
from hodyn_ros.dynamics.calls.matrices import called, too_large
from hodyn_ros.dynamics.calls.partials import PartialCalls
from hodyn_ros.dynamics.calls.results import BaseAndJoints
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motions, sample_of
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.motion_stack import applied, motion_stack
from hodyn_ros.engine import second_partials as laws
from hodyn_ros.engine.direction_lanes import in_all_directions
from hodyn_ros.engine.kernels import KernelSpec
from hodyn_ros.engine.matrix_kernels import Loads
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.second_derivatives import answered, hybrid_weights, of_displacements
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_LAWS: dict[str, laws.Law] = {  # by which their numbers of entries are judged
    "inverse_dynamics_second_derivatives": "inverse",
    "forward_dynamics_hessian": "hybrid contracted",
    "forward_dynamics_second_derivatives": "hybrid",
}


class SecondPartialCalls(PartialCalls):
    """Second partial derivatives."""

    @finite_result
    def inverse_dynamics_hessian(
        self,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of `sum of multiplier[r] · Q^(r)`, as optimisers take them.

        `q` (order + 3, n), `multiplier` (order + 1, m) -> (order + 3, order + 3, m, m): entry [k, l] is by
        q^(k) and q^(l), the transpose of [l, k], and zero for k + l > order + 2. With a floating base k = 0
        means a small body-fixed displacement xi of it, which takes its pose to `pose exp(xi)`, and k > 0
        derivative k - 1 of its body-fixed twist; its body-fixed wrench comes before the torques. `wrenches`
        stay as they are given. A. Griewank & A. Walther (2008), sections 3.1 and 3.2: forward over reverse on
        the operations of inverse dynamics; compiled.
        """
        if self._looped is not None:
            return self._looped_hessian(self._looped, q, multiplier, base, self._loads(wrenches))
        stack = motion_stack(self.model, q, base, 2)
        order, loads = stack.order, self._loads(wrenches)
        weights = _multiplier(multiplier, (order + 1, self._m), stack.batch)
        places = load_places(self.model, loads)
        arrays = [*stack.arguments(), *applied(loads, order, stack.batch), weights]
        kernel = self._second_kernel("inverse_dynamics_hessian", order, *([places] if places else []))
        shape = (order + 3, order + 3, self._m, self._m)
        if kernel is not None:
            result = kernel.batch(*arrays) if stack.batch else kernel.function(*arrays)
            return result.reshape(*stack.batch, *shape)
        changes = self._matrix_kernel(_inverse_gradient_changes, order, places)
        if changes is None:
            raise too_large(self.model, "inverse_dynamics_hessian", order)
        return of_displacements(in_all_directions(changes, arrays, stack.batch), self.model.floating_base)

    @finite_result
    def inverse_dynamics_second_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of Q^(r) by the motion and all its derivatives.

        `q` (order + 3, n) -> (order + 1, order + 3, order + 3, m, m, m): entry [r, k, l, i] is the matrix of
        derivatives of Q_i^(r) by q^(k) and q^(l), as of `inverse_dynamics_hessian`, zero for k + l > r + 2.
        Of order 0 what S. Singh, R. Russell & P. Wensing (2022) give in closed form.
        """
        if self._looped is not None:
            each = self._looped.closure.n_efforts
            order = coordinate_motions(self._looped.closure, q, base, 2)[1].shape[-2] - 3
            return self._of_each(
                order, each, lambda unit: self.inverse_dynamics_hessian(q, unit, base, wrenches)
            )
        stack = motion_stack(self.model, q, base, 2)
        order, loads = stack.order, self._loads(wrenches)
        places = load_places(self.model, loads)
        kernel = self._second_kernel(
            "inverse_dynamics_second_derivatives", order, *([places] if places else [])
        )
        if kernel is not None:
            return self._all(called(kernel, stack, loads), order, stack.batch)
        return self._of_each(
            order, self._m, lambda unit: self.inverse_dynamics_hessian(q, unit, base, wrenches)
        )

    def forward_dynamics_hessian(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of `sum of multiplier[r] · accelerations^(r)`.

        `multiplier` (order + 1, m), other arguments as of `forward_dynamics` -> (order + 3, order + 3, m, m):
        entry [k, l] is by y^(k) and y^(l), which are positions, velocities, and then derivatives of the
        torques, as of `forward_dynamics_derivatives`. S. Singh, R. Russell & P. Wensing, "On second-order
        derivatives of rigid-body dynamics: theory & implementation" (2024), here of any order; compiled.
        """
        return self._hybrid_hessian(HybridArguments(state, torques, base, base_wrench, wrenches), multiplier)

    def forward_dynamics_second_derivatives(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array:
        """Compute the second partial derivatives of accelerations and their time derivatives.

        Arguments as of `forward_dynamics` -> (order + 1, order + 3, order + 3, m, m, m): entry [r, k, l, i]
        is of derivative r of acceleration i, as of `forward_dynamics_hessian`.
        """
        return self._hybrid_second(HybridArguments(state, torques, base, base_wrench, wrenches))

    def hybrid_dynamics_hessian(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the second partial derivatives of `multiplier · what hybrid_dynamics returns`.

        As `forward_dynamics_hessian`; of prescribed joints torques are found, and y^(k + 2) are derivatives
        of their accelerations; likewise of a prescribed base.
        """
        arguments = HybridArguments(state, inputs, base, base_wrench, wrenches, prescribed, prescribe_base)
        return self._hybrid_hessian(arguments, multiplier)

    @finite_result
    def _hybrid_hessian(self, arguments: HybridArguments, multiplier: ArrayLike) -> Array:
        if self._looped is not None:
            if len(arguments.prescribed) or arguments.prescribe_base:
                raise InputError("second derivatives of hybrid dynamics are of robots without loops")
            return self._looped_forward_hessian(self._looped, arguments, multiplier)
        problem = self._hybrid_problem(arguments)
        order, m = problem.order, self._m
        weights = _multiplier(multiplier, (order + 1, m), problem.batch)
        kernel = self._hybrid_kernel("forward_dynamics_hessian", problem)
        if kernel is not None:
            return problem.call(kernel, weights).reshape(*problem.batch, order + 3, order + 3, m, m)
        if arguments.base_wrench is not None and np.ndim(arguments.base_wrench) == 3:
            each = arguments.one_by_one()
            return one_by_one(len(each), lambda i: self._hybrid_hessian(each[i], weights[i]))
        # from the second derivatives of inverse dynamics along the motion that is found
        responses = self._hybrid_partials(arguments)
        stack, loads, known = self._inverse_problem(problem, arguments)
        nu = hybrid_weights(responses, weights, known)
        return answered(self.inverse_dynamics_hessian(stack.q, nu, stack.base, loads), responses, known)

    def hybrid_dynamics_second_derivatives(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array:
        """Compute the second partial derivatives of what `hybrid_dynamics` returns.

        As `forward_dynamics_second_derivatives`; what is found, and by what, as of `hybrid_dynamics_hessian`.
        """
        arguments = HybridArguments(state, inputs, base, base_wrench, wrenches, prescribed, prescribe_base)
        return self._hybrid_second(arguments)

    @finite_result
    def _hybrid_second(self, arguments: HybridArguments) -> Array:
        def hessian(multiplier: Array) -> Array:
            return self._hybrid_hessian(arguments, multiplier)

        if self._looped is not None:
            order = np.shape(arguments.inputs)[-2] - 1
            return self._of_each(order, self._looped.closure.n_coordinates, hessian)
        problem = self._hybrid_problem(arguments)
        kernel = self._hybrid_kernel("forward_dynamics_second_derivatives", problem)
        if kernel is not None:
            return self._all(problem.call(kernel), problem.order, problem.batch)
        return self._of_each(problem.order, self._m, hessian)

    @finite_result
    def forward_kinematics_derivatives(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        *,
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the partial derivatives of poses of frames, and of derivatives of their twists.

        `q` (order + 1, n) -> (frames, 16 + 6 order, order + 1, m): entry [f, x, k] says how number x of frame
        f changes with q^(k), the pose by rows before its twist and the derivatives of that, as
        `compile(order, "forward_kinematics")` returns them. `frames`: bodies and named frames, by default all
        bodies; `representation` of their twists. With a floating base columns are as of
        `inverse_dynamics_derivatives`.
        """
        stack, kernel = self._frame_kernel("forward_kinematics_derivatives", q, base, frames, representation)
        result = (kernel.batch if stack.batch else kernel.function)(*stack.arguments())
        rows = 16 + 6 * stack.order
        return result.reshape(*stack.batch, -1, rows, stack.order + 1, self._m)

    @finite_result
    def forward_kinematics_hessian(
        self,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None = None,
        *,
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the second partial derivatives of `multiplier · poses and twists of frames`.

        `q` (order + 1, n), `multiplier` (frames, 16 + 6 order) -> (order + 1, order + 1, m, m), by q^(k) and
        q^(l); numbers, frames and columns as of `forward_kinematics_derivatives`.
        """
        stack, kernel = self._frame_kernel("forward_kinematics_hessian", q, base, frames, representation)
        weights = _multiplier(multiplier, kernel.arguments[-1][1], stack.batch)
        result = (kernel.batch if stack.batch else kernel.function)(*stack.arguments(), weights)
        k, m = stack.order + 1, self._m
        return result.reshape(*stack.batch, k, k, m, m)

    def _frame_kernel(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        frames: Sequence[str | int] | None,
        representation: Representation,
    ) -> tuple[Any, Kernel]:
        self._need_tree(name)
        check_representation(representation)
        stack = motion_stack(self.model, q, base, 0)
        names = self._tree.body_names if frames is None else tuple(frames)
        kernel = self._traced_kernel(name, stack.order, names, representation)
        if kernel is None:
            raise too_large(self.model, name, stack.order)
        return stack, kernel

    def _hybrid_kernel(self, name: str, problem: HybridProblem) -> Kernel | None:
        plain = problem.setting == KernelSpec.of(self.model)
        return self._second_kernel(name, problem.order, *(() if plain else (problem.setting,)))

    def _second_kernel(self, name: str, order: int, *of: Any) -> Kernel | None:
        """Return the kernel of an operation as `_traced_kernel` does; None of too many entries as well."""
        law = _LAWS.get(name)
        many = law is not None and laws.has_many_entries(self.model, order, law)
        return None if many else self._traced_kernel(name, order, *of)

    def _looped_hessian(
        self,
        looped: LoopedDynamics,
        q: ArrayLike | None,
        multiplier: ArrayLike,
        base: BaseMotion | None,
        wrenches: Sequence[AppliedWrench],
    ) -> Array:
        """Return what `inverse_dynamics_hessian` does of a robot with loops, in its coordinates."""
        count, y, moving = coordinate_motions(looped.closure, q, base, 2)
        order = y.shape[-2] - 3
        batch = (count,) if count else ()
        weights = _multiplier(multiplier, (order + 1, looped.closure.n_efforts), batch)

        def alone(y: Array, weights: Array, moving: BaseMotion | None) -> Array:
            result = looped.efforts_hessian(y, moving, wrenches, weights)
            if result is None:
                raise too_large(self._tree, "inverse_dynamics_hessian", order)
            return result

        if not count:
            return alone(y, weights, moving)
        return one_by_one(count, lambda i: alone(y[i], weights[i], sample_of(moving, i)))

    def _looped_forward_hessian(
        self, looped: LoopedDynamics, arguments: HybridArguments, multiplier: ArrayLike
    ) -> Array:
        """Return what `forward_dynamics_hessian` does of a robot with loops, by coordinates and efforts."""
        closure = looped.closure
        if closure.n_efforts != closure.n_coordinates or closure.drifts:
            raise InputError(
                f"second derivatives of forward dynamics need as many drives as coordinates, and a platform "
                f"all of whose twist its rows say; robot {self.name!r} is not so"
            )
        if each := arguments.one_by_one():
            weights = _multiplier(multiplier, np.shape(multiplier)[-2:], (len(each),))
            return one_by_one(len(each), lambda i: self._looped_forward_hessian(looped, each[i], weights[i]))
        state, base = arguments.state, arguments.base
        result: Array | BaseAndJoints = self._looped_forward(arguments)
        joints = result.joints if isinstance(result, BaseAndJoints) else result
        order, before = len(joints) - 1, np.empty((2, 0)) if state is None else np.asarray(state)
        q, moving = np.concatenate([before, joints]), base
        if base is not None and isinstance(result, BaseAndJoints):
            twists = np.concatenate([base.twists[:1], result.base])
            moving = BaseMotion(base.pose, twists, representation=base.representation)
        weights = _multiplier(multiplier, (order + 1, closure.n_coordinates), ())
        responses = self._looped_partials(arguments)
        loads = list(self._loads(arguments.wrenches))
        if arguments.base_wrench is not None:
            loads.append(AppliedWrench(0, np.asarray(arguments.base_wrench)))
        nu = hybrid_weights(responses, weights, ())
        return answered(self.inverse_dynamics_hessian(q, nu, moving, loads), responses, ())

    def _of_each(self, order: int, m: int, hessian: Callable[[Array], Array]) -> Array:
        """Return second derivatives of all m results by order from those of one after the other."""
        units = np.eye((order + 1) * m).reshape(-1, order + 1, m)
        values = np.stack([hessian(unit) for unit in units], axis=-5)
        whole = values.reshape(*values.shape[:-5], order + 1, m, *values.shape[-4:])
        result: Array = np.ascontiguousarray(np.moveaxis(whole, -5, -3))
        return result

    def _all(self, result: Array, order: int, batch: tuple[int, ...]) -> Array:
        m = self._m
        return result.reshape(*batch, order + 1, order + 3, order + 3, m, m, m)


def _multiplier(values: ArrayLike, shape: tuple[int, ...], batch: tuple[int, ...]) -> Array:
    """Return a multiplier (shape), or one for every sample of a batch."""
    said = f"{shape}" + (f" or {(*batch, *shape)}" if batch else "")
    array = real_array("the multiplier", values, said)
    if array.shape not in (shape, (*batch, *shape)):
        raise InputError(f"the multiplier must have shape {said}, found {array.shape}")
    check_finite("the multiplier", array)
    return np.ascontiguousarray(np.broadcast_to(array, (*batch, *shape)))


def _inverse_gradient_changes(model: TreeModel, order: int, loads: Loads) -> LaneKernel | None:
    kernel = LaneKernel(*laws.inverse_dynamics_gradient_changes(model, order, loads))
    return kernel if kernel.operations <= STRAIGHT_LINE_LIMIT else None
