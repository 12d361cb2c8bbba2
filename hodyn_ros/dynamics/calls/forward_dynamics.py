"""The calls of `Robot` that return accelerations from efforts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_result, finite_array, finite_result, real_array
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.codegen.sample_loop import each_sample
from hodyn_ros.digits import is_asked_for, refuse_without_digits
from hodyn_ros.dynamics.calls.accuracy import AccuracyCalls
from hodyn_ros.dynamics.calls.description import load_places
from hodyn_ros.dynamics.calls.results import BaseAndJoints, base_and_joints
from hodyn_ros.dynamics.loops.coordinate_motion import (
    coordinate_motion,
    coordinate_motions,
    drive_rows,
    samples,
)
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.mobility import check_pose
from hodyn_ros.dynamics.motion_stack import applied, check_order, fitting_base
from hodyn_ros.engine import kernels
from hodyn_ros.errors import InputError, SingularError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, BaseRepresentation, twists_to_body
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_SURE_ORDER = 6  # of trees, above which accelerations are refused where too few digits are left


class HybridArguments(NamedTuple):
    """What forward and hybrid dynamics are given, as it comes: `hybrid_dynamics` says what each of it is."""

    state: ArrayLike | None
    inputs: ArrayLike
    base: BaseMotion | None = None
    base_wrench: ArrayLike | None = None
    wrenches: Sequence[AppliedWrench] | None = None
    prescribed: Sequence[str | int] = ()
    prescribe_base: bool = False

    def one_by_one(self) -> list[HybridArguments]:
        """Return those of each sample of a batch; none of a single call."""
        each = samples(self.state, self.inputs, self.base, self.base_wrench)
        return [HybridArguments(*one, *self[len(one) :]) for one in each]


class HybridProblem(NamedTuple):
    """What a kernel of hybrid dynamics takes."""

    order: int
    setting: kernels.KernelSpec
    arrays: list[Array]
    batch: tuple[int, ...]  # () or (N,)

    def call(self, kernel: Function, *multiplier: Array) -> Array:
        """Call a kernel that takes the arrays, and what a Hessian is weighted with."""
        result: Array = (kernel.batch if self.batch else kernel.function)(*self.arrays, *multiplier)
        return result


class LoopedProblem(NamedTuple):
    """What hybrid dynamics of a robot with loops takes."""

    looped: LoopedDynamics
    state: Array  # (2, k)
    values: Array  # (order + 1, efforts)
    prescribed: list[int]  # of the efforts
    motion: BaseMotion | None  # of platform or base, spatial

    @property
    def arguments(self) -> tuple[Array, Array, list[int], BaseMotion | None]:
        """The arguments of `LoopedAccelerations.hybrid_dynamics`, but for wrenches."""
        return self.state, self.values, self.prescribed, self.motion


class ForwardDynamicsCalls(AccuracyCalls):
    """Forward dynamics, and what is moved and driven in parts."""

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> BaseAndJoints: ...

    def forward_dynamics(
        self,
        state: ArrayLike | None,
        torques: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
    ) -> Array | BaseAndJoints:
        """Compute accelerations and their time derivatives from a state, the torques and their derivatives.

        `state` (2, n) positions and velocities, None where no joint is a coordinate; `torques` (order + 1,
        n), of robots with loops those of the driven joints. Of a floating base or platform, `base` gives pose
        and twist, `base_wrench` (order + 1, 6) what acts on a floating base in the world frame, by default
        nothing. `wrenches` that the environment applies to bodies. A batch is (N, 2, n) and (N, order + 1,
        n), with base and its wrench one for all samples or one for each; of robots with loops each sample
        begins at the positions of the one before.

        Returns joint accelerations up to their derivative `order`, (order + 1, n) [rad/s^(k+2) or m/s^(k+2)];
        with a floating base a `BaseAndJoints`: these are `.joints`, and `.base` derivatives 1 to order + 1 of
        its twist, (order + 1, 6), in the representation of `base`. Ali et al., Algorithm 3. High orders
        amplify rounding in the torques, of which `accuracy` says what is left: orders above six of trees, and
        those of robots with loops near singular poses, raise SingularError where that is fewer than six
        digits. Raises InputError saying what was expected.
        """
        if base is None and wrenches is None and type(state) is np.ndarray and type(torques) is np.ndarray:
            compiled = self._forward.get((state.shape, torques.shape))
            if compiled is not None and base_wrench is None:
                accelerations: Array = compiled(state, torques)
                return accelerations
        elif wrenches is None and type(base) is BaseMotion and type(torques) is np.ndarray:
            with_base = self._forward_with_base.get((torques.shape, base.representation))
            if with_base is not None and not base.batch:
                return with_base(state, torques, base, base_wrench)
        arguments = HybridArguments(state, torques, base, base_wrench, wrenches)
        if self._looped is not None:
            return self._looped_forward(arguments)
        return self._tree_forward(arguments)

    def _tree_forward(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        result, base = self._hybrid(arguments), arguments.base
        order = result.shape[-2] - 1
        if order > _SURE_ORDER and not is_asked_for():
            self._refuse_amplified(arguments)
        elif arguments.wrenches is None and not self._massless and result.ndim == 2:
            setting = kernels.KernelSpec(base=None if base is None else base.representation)
            function = self._kernel("forward_dynamics", order, setting).function
            state, efforts = (2, self.n_coordinates), (len(result), self.n_coordinates)
            if base is None:
                self._forward[state, efforts] = function
            else:
                self._keep_forward_with_base(
                    state, efforts, base.representation, self._tree_forward, function
                )
        return result if base is None else base_and_joints(result)

    def _refuse_amplified(self, arguments: HybridArguments) -> None:
        """Refuse what rounding of torques is amplified to by high orders; SingularError."""
        for i, one in enumerate(arguments.one_by_one() or [arguments]):
            try:
                refuse_without_digits(
                    self.accuracy("forward_dynamics", *one[:5]),
                    f"the forward dynamics of robot {self.name!r}",
                    "take the motion from elsewhere: forward dynamics amplifies the rounding of torques",
                    "its dynamics is that much faster than its motion",
                )
            except SingularError as error:
                error.sample = i
                raise

    def hybrid_dynamics(
        self,
        state: ArrayLike | None,
        inputs: ArrayLike,
        base: BaseMotion | None = None,
        base_wrench: ArrayLike | None = None,
        wrenches: Sequence[AppliedWrench] | None = None,
        *,
        prescribed: Sequence[str | int],
        prescribe_base: bool = False,
    ) -> Array | BaseAndJoints:
        """Compute the torques of joints that are moved and the accelerations of those that are driven.

        `state` (2, n) positions and velocities; `prescribed`: names or indices of the joints whose motion is
        given; `inputs` (order + 1, n): for those the acceleration and its derivatives, for the others the
        torque and its derivatives. Of a floating base either the wrench is given, as in `forward_dynamics`,
        or with `prescribe_base=True` its motion, as in `inverse_dynamics` with order + 2 twists.

        Returns (order + 1, n): torques of the prescribed joints, accelerations of the others; with a floating
        base a `BaseAndJoints`: these are `.joints`, and `.base` (order + 1, 6) derivatives 1 to order + 1 of
        its twist in the representation of `base` or, where its motion is prescribed, the wrench on it in the
        world frame. Ali et al., Algorithm 4. Raises InputError saying what was expected.

        Of a robot with loops `state` is that of the coordinates, as in `forward_dynamics`, and all else is of
        the driven joints: those prescribed, inputs, and what comes back. SingularError where the
        joints prescribed cannot all be moved freely.
        """
        check_prescribed(prescribed)
        if prescribe_base and base_wrench is not None:
            raise InputError("give either the motion of the base or its wrench, not both")
        arguments = HybridArguments(state, inputs, base, base_wrench, wrenches, prescribed, prescribe_base)
        if self._looped is not None:
            return self._looped_hybrid(arguments)
        result = self._hybrid(arguments)
        return result if base is None else base_and_joints(result)

    @finite_result
    def _looped_forward(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        looped, closure = self._need_loops("this"), self._structure
        state, efforts, base, base_wrench, wrenches, *_ = arguments
        count, y, motion = coordinate_motions(closure, state, base, 1)
        if np.ndim(efforts) == 3 and not count:
            raise InputError(f"torques of shape {np.shape(efforts)} are a batch; give as many states")
        u = drive_rows(closure, efforts, base_wrench, count)
        table = np.ascontiguousarray(looped.accelerations(y, u, motion, self._loads(wrenches)))
        if wrenches is None and not count:
            self._keep_forward(looped, len(u) - 1)
        if motion is None or base is None:
            return table
        twists, joints = base_and_joints(table)
        if base.representation == "body_fixed":
            first = np.broadcast_to(motion.twists[..., :1, :], (*twists.shape[:-2], 1, 6))
            whole = np.moveaxis(np.concatenate([first, twists], axis=-2), -2, 0)
            twists = np.ascontiguousarray(np.moveaxis(twists_to_body(base.pose, whole)[1:], 0, -2))
        return BaseAndJoints(twists, joints)

    def _keep_forward(self, looped: LoopedDynamics, order: int) -> None:
        """Let further calls of an order, with arrays and a spatial base motion, find their code."""
        closure, call = looped.closure, looped.compile_forward(order)
        states, efforts = (2, len(closure.joints)), (order + 1, len(closure.driven))
        if closure.leader is None:
            self._forward[states, efforts] = call
        else:

            def function(state: Array, torques: Array, pose: Array, twist: Array, *push: Array) -> Array:
                return call(state, pose, twist, torques, *push)

            checked, pushed = self._looped_forward, closure.base_given
            self._keep_forward_with_base(states, efforts, "spatial", checked, function, pushed)

    def _keep_forward_with_base(
        self,
        states: tuple[int, int],
        efforts: tuple[int, int],
        frame: BaseRepresentation,
        checked: Callable[[HybridArguments], Any],
        function: Callable[..., Array],
        pushed: bool = True,
    ) -> None:
        """Let further calls with arrays of these shapes, and a base motion, find their code.

        `function(state, torques, pose, twist, wrench)` has the columns of the base first. It takes no wrench
        where the base is not `pushed`. Others are left to `checked`.
        """
        nothing, alone = (np.zeros((efforts[0], 6)),) if pushed else (), np.zeros(states)

        def with_base(
            state: Any, torques: Array, base: BaseMotion, base_wrench: ArrayLike | None
        ) -> BaseAndJoints:
            push = nothing if base_wrench is None else (np.asarray(base_wrench),)
            if state is None and not states[1]:
                state = alone
            if np.shape(state) != states or [p.shape for p in push] != [p.shape for p in nothing]:
                result: BaseAndJoints = checked(HybridArguments(state, torques, base, base_wrench))
                return result
            table = function(state, torques, base.pose, base.twists[:1], *push)
            return BaseAndJoints(table[:, :6].copy(), table[:, 6:].copy())

        self._forward_with_base[efforts, frame] = with_base

    @finite_result
    def _looped_hybrid(self, arguments: HybridArguments) -> Array | BaseAndJoints:
        if each := arguments.one_by_one():
            results = each_sample(len(each), lambda i: self._looped_hybrid(each[i]))
            if isinstance(results[0], tuple):
                return BaseAndJoints(*map(np.array, zip(*results)))
            return np.array(results)
        problem, base = self._looped_problem(arguments), arguments.base
        table, twists = problem.looped.hybrid_dynamics(*problem.arguments, self._loads(arguments.wrenches))
        first = 6 if problem.looped.closure.base_given else 0
        joints = np.ascontiguousarray(table[:, first:])
        if base is None or twists is None:
            return joints
        if arguments.prescribe_base:
            return BaseAndJoints(np.ascontiguousarray(table[:, :6]), joints)
        if base.representation == "body_fixed":
            twists = twists_to_body(base.pose, twists)
        return BaseAndJoints(np.ascontiguousarray(twists[1:]), joints)

    def _looped_problem(self, arguments: HybridArguments) -> LoopedProblem:
        """Check what hybrid dynamics of a robot with loops is given."""
        state, inputs, base, base_wrench, _, prescribed, prescribe_base = arguments
        looped = self._need_loops("this")
        closure, first = looped.closure, 6 if looped.closure.base_given else 0
        if prescribe_base and not first:
            raise InputError(f"robot {self.name!r} has no base to prescribe; name driven joints")
        y, motion = coordinate_motion(closure, state, base, 1)
        values = drive_rows(closure, inputs, base_wrench)
        moved = {first + self._driven_place(joint) for joint in prescribed}
        if prescribe_base and motion is not None:
            if len(motion.twists) < len(values) + 1:
                raise InputError(f"this needs {len(values) + 1} base twists, found {len(motion.twists)}")
            values[:, :6] = motion.twists[1 : len(values) + 1]
            moved |= set(range(6))
        return LoopedProblem(looped, y[:2], values, sorted(moved), motion)

    def _driven_place(self, joint: str | int) -> int:
        """Return where a joint, by name or by its index among the driven ones, stands among these."""
        names = self.driven_joints
        if isinstance(joint, str) and joint in names:
            return names.index(joint)
        if isinstance(joint, (int, np.integer)) and not isinstance(joint, bool) and 0 <= joint < len(names):
            return int(joint)
        raise InputError(f"prescribed names {joint!r}; the driven joints of {self.name!r} are {list(names)}")

    def _hybrid(self, arguments: HybridArguments) -> Array:
        problem = self._hybrid_problem(arguments)
        result = problem.call(self._kernel("forward_dynamics", problem.order, problem.setting))
        check_result(result)
        return result

    def _hybrid_problem(self, arguments: HybridArguments) -> HybridProblem:
        """Check what hybrid dynamics is given, one sample or a batch."""
        state, inputs, base, base_wrench, wrenches, names, prescribe_base = arguments
        prescribed = _prescribed_joints(self.model, names)
        n = self.n_coordinates
        shapes = f"(order + 1, {n}) or (N, order + 1, {n})"
        values = real_array("the torques", inputs, shapes)
        if values.ndim not in (2, 3) or values.shape[-1] != n or 0 in values.shape[:-1]:
            raise InputError(f"the torques must have shape {shapes}, found {values.shape}")
        batch, order = values.shape[:-2], values.shape[-2] - 1
        check_order(order, f"torques of shape {values.shape} have order")
        positions = finite_array("the state", state, (*batch, 2, n))
        motion = fitting_base(self.model, base, order + 2 if prescribe_base else 1, batch)
        loads = self._loads(wrenches)
        of_base: list[Array] = []
        if motion is not None:
            pose, twists = motion.arrays(order + 2 if prescribe_base else 1, batch)
            shape = (*batch, order + 1, 6)
            push = np.zeros(shape)
            if base_wrench is not None:
                one = real_array("base_wrench", base_wrench, str(shape))
                push += finite_array("base_wrench", one, shape if one.ndim == 3 else shape[-2:])
            first = np.ascontiguousarray(twists[..., :1, :])
            moved = np.ascontiguousarray(twists[..., 1:, :])
            of_base = [pose, first, moved if prescribe_base else push]
        elif base_wrench is not None or prescribe_base:
            raise InputError(
                f"robot {self.model.name!r} has a fixed base; neither motion nor wrench of a base applies"
            )
        setting = kernels.KernelSpec(
            base=motion.representation if motion else None,
            loads=load_places(self.model, loads),
            prescribed=prescribed,
            base_prescribed=prescribe_base,
        )
        for position in positions.reshape(-1, 2, n)[:, 0] if self._massless else ():
            check_pose(self.model, self._massless, position, prescribed)
        arrays = [positions, values, *of_base, *applied(loads, order, batch)]
        return HybridProblem(order, setting, arrays, batch)


def check_prescribed(prescribed: object) -> None:
    """Reject what is no list of joints."""
    if isinstance(prescribed, str) or not isinstance(prescribed, Iterable):
        raise InputError(f"prescribed must be a list of names or indices of joints, found {prescribed!r}")


def _prescribed_joints(model: TreeModel, prescribed: Sequence[str | int]) -> tuple[int, ...]:
    """Return the indices of joints whose motion is given, in order; InputError for unknown ones."""
    check_prescribed(prescribed)
    return tuple(sorted({model.joint_index(joint) for joint in prescribed}))
