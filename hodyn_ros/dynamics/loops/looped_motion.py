"""Motions of a robot with couplings and loops, from those of its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.codegen.kernel import Function
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.sample_loop import each_sample
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known, home, reach
from hodyn_ros.dynamics.loops.coordinate_motion import count_of, sample_of, spatial_arrays
from hodyn_ros.dynamics.loops.digit_check import DigitCheck, What, memory_of
from hodyn_ros.dynamics.loops.grounded import loop_code
from hodyn_ros.dynamics.loops.independence import conditions, find_independence
from hodyn_ros.dynamics.loops.looped_call import LoopCodes, LoopedCall, kept
from hodyn_ros.dynamics.loops.platform_dynamics import PlatformDynamics
from hodyn_ros.engine import kernels
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.engine.loops.loop_kernel import LoopFunction, LoopKernel, LoopProduct
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.engine.loops.loop_products import FrameMotionCode
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.errors import ConvergenceError, HodynError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only. Compiled code ends at the same distance, `SINGULAR_LENGTH`.
SINGULAR = 1e-5


class LoopedMotion:
    """The motion of a robot with couplings and loops; remembers where it was, to stay on its branch.

    `memory` (1, N): the positions of the leading joints at the last success, and the pose given then.
    """

    def __init__(self, closure: Closure, frames: Mapping[str, Frame] = MappingProxyType({})) -> None:
        self.closure = closure
        self.frames = frames  # besides the bodies, by name
        # whether components of the pose of a floating base follow from the others
        self.drifts = closure.drifts and closure.tree.floating_base
        self._own = slice(-closure.tree.n_joints, None)  # columns of joints, after those of a drifting base
        self.independence = find_independence(closure)
        self.platform = PlatformDynamics(closure) if is_on_limbs(closure) else None
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self._tree_kernels: Kept[tuple[int, kernels.KernelSpec], Function] = Kept()
        self.calls: Kept[tuple[Any, ...], Any] = Kept()  # by the method that makes them, and its arguments

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        return self._known_from(self.memory)

    @known.setter
    def known(self, known: Known) -> None:
        result = memory_of(self.closure, known)
        self.memory[:, : result.shape[1]] = result
        self._base = known.place.base

    def _known_from(self, memory: Array) -> Known:
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.coupling_matrix[closure.first :, closure.first :] @ memory[0, :n] + closure.offsets
        pose = memory[0, n:].reshape(4, 4).copy() if memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    def locate(
        self, y: Array, leader: BaseMotion | None, derivative: int
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        """
        if self.platform is not None and leader is not None:
            moved = self._reach_on_limbs(self.platform, y, leader.pose)
        else:
            moved = self.reach(self.known, y, leader.pose if leader else None)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self.check_margin(moved, margins[0])
        if self.platform is not None and leader is not None:
            self.platform.check_pose(moved.body_pose(0), leader.pose)
        return moved, margins

    def reach(self, known: Known, y: Array, pose: Array | None, most_steps: int = MOST_STEPS) -> LoopMotion:
        """Return the motion of order 0 at independent joints (k,) and a pose, on the branch of a known place.

        Whatever was found last; errors as of `hodyn_ros.dynamics.loops.closing.reach`.
        """
        return reach(self.closure, self.independence.rows, known, y, pose, most_steps)

    def _reach_on_limbs(self, platform: PlatformDynamics, y: Array, pose: Array) -> LoopMotion:
        """Reach a platform's pose, by kernels as far as these go, or say what is wrong there."""
        memory = self.memory.copy()
        platform.approach(pose, memory, self.joint_call(0).code)
        try:
            return self.reach(self._known_from(memory), y, pose, 0)
        except ConvergenceError as error:
            platform.check_limbs(pose, memory)
            there = self.reach(self._known_from(memory), y, pose, 0)
            margins = conditions(self.closure, there, self.independence.rows)
            self.check_margin(there, margins[0])
            self.check_held(margins[1])
            raise ConvergenceError(
                f"robot {self.closure.tree.name!r} does not get to that pose from the last one in short "
                "steps, as beside a singular pose on the way; give poses nearer to the last ones, and "
                "keep away from singular ones",
                error.angle,
                error.distance,
            ) from None

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Stay where the last success was where a computation fails."""
        before = self.known
        try:
            yield
        except HodynError:
            self.known = before
            raise

    def begin(self, y: Array, leader: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Find where the motion of the coordinates y (orders + 1, k) begins: its order 0, as of `locate`.

        `leader`: the motion of platform or base, with spatial twists.
        """
        if self.platform is not None and leader is not None:
            self.platform.check_twists(leader.pose, leader.twists[: len(y) - 1])
        return self.locate(y[0], leader, len(y) - 1)

    def check_prescribed(self, moved: LoopMotion, prescribed: Sequence[int]) -> None:
        """Refuse drives that cannot be moved as one likes; SingularError."""
        if not prescribed:
            return
        F = embedding.distribution(self.independence.rows, moved, 0)[0]
        moving = self.closure.effort_map[:, list(prescribed)].T @ F
        sized = moving / np.maximum(np.linalg.norm(moving, axis=1, keepdims=True), np.finfo(float).tiny)
        least = float(np.linalg.svd(sized, compute_uv=False)[-1]) if len(sized) <= sized.shape[1] else 0.0
        if least < SINGULAR:
            raise SingularError(
                f"the prescribed joints of robot {self.closure.tree.name!r} cannot all be moved freely there "
                f"(smallest singular value {least:.3g}); prescribe fewer",
                1.0 / max(least, 1e-300),
            )

    def remember(self, moved: LoopMotion, y: Array, leader: BaseMotion | None) -> None:
        """Start from there the next time."""
        pose = moved.place.base if leader is None or self.drifts else leader.pose
        self.known = Known(moved.place, y.copy(), pose)

    def joint_motion(self, y: Array, base: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of all joints of the tree, and of its base, up to the order of y (orders + 1, k).

        `base`: that of platform or base, with spatial twists. Of a batch too, y (N, orders + 1, k).
        """
        if self.drifts and y.ndim == 3:
            each = each_sample(len(y), lambda i: self.joint_motion(y[i], sample_of(base, i)))
            bases = [own for _, own in each if own is not None]
            poses, twists = np.array([own.pose for own in bases]), np.array([own.twists for own in bases])
            return np.array([joints for joints, _ in each]), BaseMotion(poses, twists)
        arrays = [y, *spatial_arrays(base, y.shape[-2] - 1)]
        joints = self.joint_call(y.shape[-2] - 1).run(count_of(y), arrays)
        if self.drifts:
            return joints[:, self._own], self._drifting_base(arrays)
        return joints, base if self.closure.tree.floating_base else None

    def _drifting_base(self, arrays: Sequence[Array]) -> BaseMotion:
        """Return the motion of a floating base, some of which follows; it was found just now."""
        order = len(arrays[0]) - 1
        row = self._base_call(order).function(*arrays, self.memory)[0]
        twists = row[POSE:].reshape(order, 6) if order else np.zeros((1, 6))
        return BaseMotion.computed(row[:POSE].reshape(4, 4), twists)

    @kept
    def _base_call(self, order: int) -> LoopedCall:
        """Return the code of the motion of a floating base."""
        chosen = self.independence.of_joints

        def code(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            law = FrameMotionCode(closure, chosen, order, [Frame(shift, np.eye(4))], "spatial")
            return LoopProduct(law, on_numbers=on_numbers)

        return LoopedCall(self, loop_code(self.closure, order, order, code))

    def quick_joint_motion(self, y: Array, *leader: Array) -> Array | None:
        """Return the motion of all joints by compiled code; None where that does not find it.

        `leader`: pose (4, 4) and spatial twists (orders, 6) of platform or base.
        """
        table = self.joint_call(len(y) - 1).found(y, *leader)
        return None if table is None else table[:-1, self._own]

    def compiled_joint_motion(self, q: ArrayLike | None, base: BaseMotion | None) -> Array | None:
        """Return what `joint_motion` does, of arguments that are not checked, if compiled code can."""
        if (base is None) is not (self.closure.leader is None) or not (q is None or type(q) is np.ndarray):
            return None
        if base is not None and (
            type(base) is not BaseMotion or base.representation != "spatial" or self.drifts
        ):
            return None
        order = len(q) - 1 if q is not None else 0 if base is None else len(base.twists)
        call: LoopedCall | None = self.calls.get(("joint_call", order))
        y = np.zeros((order + 1, 0)) if q is None else q
        if call is None or y.shape != call.code.arguments[0][1]:
            return None
        if base is None:
            table = call.found(y)
        elif base.twists.ndim == 2 and len(base.twists) >= order:
            table = call.found(y, base.pose, base.twists[:order])
        else:
            return None
        return None if table is None else table[:-1]

    def compile_joint_motion(self, order: int) -> Callable[..., Array]:
        """Return `f([y (order + 1, k),] [pose (4, 4), twists (order, 6)])` for all joints.

        Twists are spatial; y is left out where no joint is a coordinate.
        """
        still = [] if self.closure.joints else [np.zeros((order + 1, 0))]
        return self.joint_call(order).compiled((slice(0, -1), self._own), *still)

    @kept
    def joint_call(self, order: int) -> LoopedCall:
        """Return the code of the motion of all joints."""
        chosen = self.independence.of_joints

        def code(closure: Closure, shift: int, on_numbers: bool) -> LoopFunction:
            return LoopKernel(closure, chosen, order, (), "joints", on_numbers=on_numbers)

        made = loop_code(self.closure, max(order - 2, 0), order, code, on_limbs=True)
        return LoopedCall(self, made, self.check_of(made, "joints", lambda table: [table[:-1]]))

    def tree_efforts(
        self, joints: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()
    ) -> Array:
        """Return efforts (..., order + 1, 6 + n or n) of the tree, compiled: joints (..., order + 3, n)."""
        tree, order = self.closure.tree, joints.shape[-2] - 3
        setting = kernels.KernelSpec(
            base="spatial" if tree.floating_base else None, loads=self.places(wrenches)
        )
        kernel = self._tree_kernels.made(
            (order, setting), lambda: kernels.inverse_dynamics(tree, order, setting)
        )
        arrays = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: order + 2])]
        arrays += [load.up_to(order) for load in wrenches]
        motion = np.ascontiguousarray(joints)
        efforts: Array
        if motion.ndim == 2:
            efforts = kernel.function(motion, *arrays)
        else:
            efforts = kernel.batch(motion, *[np.tile(other, (len(motion), 1, 1)) for other in arrays])
        return efforts

    def check_loads(self, base: BaseMotion | None, wrenches: Sequence[AppliedWrench], order: int) -> None:
        """Refuse wrenches that would turn a platform where nothing holds it; InputError."""
        if self.platform is not None and wrenches and base is not None:
            self.platform.check_loads(base, wrenches, order)

    def places(self, wrenches: Sequence[AppliedWrench]) -> LoadPlaces:
        """Return where wrenches act: the bodies, and the frames that they are given in."""
        return tuple((self.closure.tree.body_index(load.body), load.representation) for load in wrenches)

    def check_margin(self, moved: LoopMotion, margin: float) -> None:
        """Refuse a pose at which coordinates do not determine the motion, from its margin; SingularError."""
        if margin >= SINGULAR:
            return
        raise self.singular(moved, margin)

    def singular(self, moved: LoopMotion, margin: float) -> SingularError:
        """Say that coordinates do not determine the motion."""
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_held(self, margin: float) -> None:
        """Refuse a pose at which drives do not hold the robot, from their margin; SingularError."""
        if margin < SINGULAR:
            raise self.not_held(margin)

    def not_held(self, margin: float) -> SingularError:
        """Say that drives do not hold the robot."""
        return SingularError(
            f"the pose of robot {self.closure.tree.name!r} is singular: its driven joints do not hold it "
            f"there (smallest singular value {margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_of(
        self,
        code: LoopCodes,
        what: What,
        parts: Callable[[Array], list[Array]],
        held: Sequence[int] = (),
    ) -> DigitCheck:
        """Return what refuses results of a code in which too few digits are left."""
        arguments = code.arguments[:-1]
        return DigitCheck(self.closure, what, code.function, arguments, code.defect_at, parts, held)

    def sure(self, check: DigitCheck) -> float:
        """Return below which number at `defect_at` results need no check of their digits."""
        place = self.independence.generic
        basis = np.eye(6) if self.platform is None else self.platform.model.dof
        return 0.0 if place is None else check.sure(place, basis)

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Names of the loops that are overconstrained: their loads depend on which rows were taken."""
        return self.independence.redundant
