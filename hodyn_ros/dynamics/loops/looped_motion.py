"""Motions of a robot with couplings and loops, from those of its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from hodyn_ros.checks import check_result, into
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.codegen.sample_loop import SampleLoop, one_by_one
from hodyn_ros.dynamics.loops.closing import MOST_STEPS, Known, home, reach
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, sample_of
from hodyn_ros.dynamics.loops.digit_check import (
    CheckedCall,
    DigitCheck,
    Kernel,
    What,
    memory_of,
    unsure_from,
)
from hodyn_ros.dynamics.loops.independence import conditions, find_independence
from hodyn_ros.dynamics.loops.platform_dynamics import PlatformDynamics
from hodyn_ros.engine import kernels
from hodyn_ros.engine.loops.loop_kernel import LoopKernel, LoopProduct, compiles
from hodyn_ros.engine.loops.loop_motion import LoadPlaces
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, SingularError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion, Place
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.readers.assembly import Frame

# Singular values, without units, below which nothing is computed: at a singular pose positions are known to
# half of their digits only. Compiled code ends at the same distance, `FLAT`.
SINGULAR = 1e-5
KEPT = 100  # compiled calls of a robot; one that walks meets many sets of contacts


class LoopedMotion:
    """The motion of a robot with couplings and loops; remembers where it was, to stay on its branch.

    `memory` (1, N): the positions of the leading joints at the last success, and the pose given then.
    """

    def __init__(self, closure: Closure, frames: Mapping[str, Frame] = MappingProxyType({})) -> None:
        self.closure = closure
        self.frames = frames  # besides the bodies, by name
        self.independence = find_independence(closure)
        on_limbs = closure.platform is not None and closure.platform.twists is not None
        self.platform = PlatformDynamics(closure) if on_limbs else None
        start = home(closure)
        self._base = start.place.base
        self.memory = np.zeros((1, len(closure.leading) + (0 if start.pose is None else 16)))
        self.known = start
        self._kernels: dict[tuple[int, kernels.KernelSpec], Function] = {}
        self._calls: dict[tuple[int, LoadPlaces, bool], Callable[..., Array]] = {}
        self._effort_loops: dict[tuple[int, LoadPlaces, bool], SampleLoop] = {}
        self._drive_loops: dict[tuple[int, LoadPlaces, bool], SampleLoop] = {}
        self._forward_loops: dict[tuple[int, LoadPlaces], SampleLoop] = {}
        self._flat_at_home: dict[tuple[int, LoadPlaces, bool], float] = {}
        self._solutions: dict[tuple[int, LoadPlaces, bool], CheckedCall[LoopKernel]] = {}
        self._joint_loops: dict[int, CheckedCall[LoopKernel]] = {}
        self._forward_calls: dict[tuple[int, LoadPlaces], Callable[..., Array]] = {}
        self._product_loops: dict[tuple[Any, ...], SampleLoop[LoopProduct] | None] = {}
        self._drive_calls: dict[int, Any] = {}
        self.partial_kernels: dict[tuple[str, int, LoadPlaces], Any] = {}

    @property
    def known(self) -> Known:
        """Where the last success was, from which the next positions are found."""
        return self._known_from(self.memory)

    @known.setter
    def known(self, known: Known) -> None:
        found = memory_of(self.closure, known)
        self.memory[:, : found.shape[1]] = found
        self._base = known.place.base

    def _known_from(self, memory: Array) -> Known:
        closure, n = self.closure, len(self.closure.leading)
        joints = closure.spread[closure.first :, closure.first :] @ memory[0, :n] + closure.offsets
        pose = memory[0, n:].reshape(4, 4).copy() if memory.shape[1] > n else None
        base = pose if closure.leader == 0 and closure.tree.floating_base else self._base
        return Known(Place(joints, base), joints[list(closure.joints)], pose)

    def locate(
        self, y: Array, given: BaseMotion | None, derivative: int
    ) -> tuple[LoopMotion, tuple[float, float]]:
        """Find the motion of order 0 for independent joints (k,) and the pose given, and its margins.

        `derivative`: the highest that will be taken of the motion, which couplings must be smooth enough for.
        """
        if self.platform is not None and given is not None:
            moved = self._reach_on_limbs(self.platform, y, given.pose)
        else:
            moved = self.reach(self.known, y, given.pose if given else None)
        self.closure.check_curves(moved.place.joints, derivative)
        margins = conditions(self.closure, moved, self.independence.rows)
        self.check_margin(moved, margins[0])
        if self.platform is not None and given is not None:
            self.platform.check_pose(moved.body_pose(0), given.pose)
        return moved, margins

    def reach(self, known: Known, y: Array, pose: Array | None, most_steps: int = MOST_STEPS) -> LoopMotion:
        """Return the motion of order 0 at independent joints (k,) and a pose, on the branch of a known place.

        Whatever was found last; errors as of `hodyn_ros.dynamics.loops.closing.reach`.
        """
        return reach(self.closure, self.independence.rows, known, y, pose, most_steps)

    def _reach_on_limbs(self, platform: PlatformDynamics, y: Array, pose: Array) -> LoopMotion:
        """Reach a platform's pose, by kernels as far as these go, or say what is wrong there."""
        memory = self.memory.copy()
        platform.approach(pose, memory)
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
    def _kept_on_error(self) -> Iterator[None]:
        """Stay where the last success was where a computation fails."""
        before = self.known
        try:
            yield
        except HodynError:
            self.known = before
            raise

    def move(self, y: Array, given: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Return the motion from that of the coordinates, y (orders + 1, k), and its margins.

        `given`: the motion of platform or base, with spatial twists.
        """
        moved, margins = self.begin(y, given)
        embedding.follow(self.independence.rows, moved, y, given)
        check_result(*moved.rates)
        self.remember(moved, y[0], given)
        return moved, margins

    def begin(self, y: Array, given: BaseMotion | None) -> tuple[LoopMotion, tuple[float, float]]:
        """Find where a motion as of `move` begins: its order 0 and margins, as of `locate`."""
        if self.platform is not None and given is not None:
            self.platform.check_twists(given.pose, given.twists[: len(y) - 1])
        return self.locate(y[0], given, len(y) - 1)

    def remember(self, moved: LoopMotion, y: Array, given: BaseMotion | None) -> None:
        """Start from there the next time."""
        pose = moved.place.base if given is None else given.pose
        self.known = Known(moved.place, y.copy(), pose)

    def joint_motion(self, y: Array, base: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of all joints of the tree, and of its base, up to the order of y (orders + 1, k).

        `base`: that of platform or base, with spatial twists.
        """
        given = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: len(y) - 1])]
        joints = self.quick_joint_motion(y, *given)
        if joints is not None:
            return joints, base if self.closure.tree.floating_base else None
        with self._kept_on_error():
            moved, margins = self.move(y, base)
            joints = moved.joint_motion()
            self.judge(
                "joints", margins[0], joints, lambda *given: self.move(*given)[0].joint_motion(), y, base
            )
        return joints, moved.base_motion

    def quick_joint_motion(self, y: Array, *given: Array) -> Array | None:
        """Return the motion of all joints by compiled code; None where that does not find it.

        `given`: pose (4, 4) and spatial twists (orders, 6) of platform or base.
        """
        checked = self._joint_call(len(y) - 1)
        return None if checked is None else self._moved_joints(checked, y, *given)

    def _moved_joints(self, checked: CheckedCall[LoopKernel], *motion: Array) -> Array | None:
        table: Array = checked.function(*motion, self.memory)
        if table.item(checked.bad) < checked.sure or checked.counts(table, motion, self.memory):
            return table[:-1]
        return None

    def joints_at_once(self, q: Array | None, base: BaseMotion | None) -> Array | None:
        """Return what `joint_motion` does, of arguments that are not checked, if compiled code can."""
        if (base is None) is not (self.closure.leader is None) or (
            base is not None and base.representation != "spatial"
        ):
            return None
        order = len(q) - 1 if q is not None else 0 if base is None else len(base.twists)
        checked = self._joint_loops.get(order)
        y = np.zeros((order + 1, 0)) if q is None else q
        if checked is None or y.shape != checked.call.arguments[0][1]:
            return None
        if base is None:
            return self._moved_joints(checked, y)
        if base.twists.ndim != 2 or len(base.twists) < order:
            return None
        return self._moved_joints(checked, y, base.pose, base.twists[:order])

    def compile_joint_motion(self, order: int) -> Callable[..., Array]:
        """Return `f([y (order + 1, k),] [pose (4, 4), twists (order, 6)], out=None)` for all joints.

        Twists are spatial; y is left out where no joint is a coordinate.
        """
        checked, closure = self._joint_call(order), self.closure
        still = [] if closure.joints else [np.zeros((order + 1, 0))]
        count = bool(closure.joints) + 2 * (closure.leader is not None)

        def call(*arguments: Array) -> Array:
            if len(arguments) != count:
                raise InputError(f"expected {count} arrays, found {len(arguments)}")
            found = None if checked is None else self._moved_joints(checked, *still, *arguments)
            if found is not None:
                return found
            y, *motion = still + list(arguments)
            base = BaseMotion(motion[0], motion[1] if order else np.zeros((1, 6))) if motion else None
            return self.joint_motion(*coordinate_motion(closure, y, base, 0))[0]

        return into(call)

    def joint_motion_of_samples(
        self, count: int, y: Array, base: BaseMotion | None
    ) -> tuple[Array, BaseMotion | None]:
        """Return what `joint_motion` does of a batch, y (count, orders + 1, k).

        Each sample stays on the branch of the one before, several at a time in lanes where there is code.
        """
        closure, order = self.closure, y.shape[1] - 1
        found: dict[int, BaseMotion | None] = {}

        def alone(i: int) -> Array:
            joints, found[i] = self.joint_motion(np.ascontiguousarray(y[i]), sample_of(base, i))
            return joints

        checked = self._joint_call(order)
        if checked is None:
            joints = one_by_one(count, alone)
            bases = [moving for moving in found.values() if moving is not None]
            if not bases:
                return joints, None
            poses, twists = np.array([one.pose for one in bases]), np.array([one.twists for one in bases])
            return joints, BaseMotion(poses, twists)
        given = [] if base is None else [base.pose, base.twists[..., :order, :]]
        joints = checked.samples.run(count, [y, *given], self.memory, alone)
        return joints, base if closure.tree.floating_base else None

    def _joint_call(self, order: int) -> CheckedCall[LoopKernel] | None:
        """Return the compiled motion of all joints."""
        if not compiles(self.closure, max(order - 2, 0), "joints"):
            return None
        if order not in self._joint_loops:
            kernel = LoopKernel(self.closure, self.independence.given, order, (), "joints")
            self._joint_loops[order] = self.checked(kernel, "joints", lambda table: [table[:-1]])
        return self._joint_loops[order]

    def tree_efforts(
        self, joints: Array, base: BaseMotion | None, wrenches: Sequence[AppliedWrench] = ()
    ) -> Array:
        """Return efforts (..., order + 1, 6 + n or n) of the tree, compiled: joints (..., order + 3, n)."""
        tree, order = self.closure.tree, joints.shape[-2] - 3
        setting = kernels.KernelSpec(
            base="spatial" if tree.floating_base else None, loads=self.places(wrenches)
        )
        if (order, setting) not in self._kernels:
            self._kernels[order, setting] = kernels.inverse_dynamics(tree, order, setting)
        others = [] if base is None else [base.pose, np.ascontiguousarray(base.twists[: order + 2])]
        others += [load.up_to(order) for load in wrenches]
        kernel, motion = self._kernels[order, setting], np.ascontiguousarray(joints)
        efforts: Array
        if motion.ndim == 2:
            efforts = kernel.function(motion, *others)
        else:
            efforts = kernel.batch(motion, *[np.tile(other, (len(motion), 1, 1)) for other in others])
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
        closure = self.closure
        raise SingularError(
            f"the pose of robot {closure.tree.name!r} is singular: its coordinates do not determine the "
            f"motion of {moved.idle_loops(self.independence.rows)} there (smallest singular value "
            f"{margin:.3g}); keep away from this pose",
            1.0 / max(margin, 1e-300),
        )

    def check_held(self, margin: float) -> None:
        """Refuse a pose at which drives do not hold the robot, from their margin; SingularError."""
        if margin < SINGULAR:
            raise SingularError(
                f"the pose of robot {self.closure.tree.name!r} is singular: its driven joints do not hold it "
                f"there (smallest singular value {margin:.3g}); keep away from this pose",
                1.0 / max(margin, 1e-300),
            )

    def judge(
        self,
        what: What,
        margin: float,
        found: Array,
        again: Callable[..., Array],
        y: Array,
        given: BaseMotion | None,
        others: Sequence[Array] = (),
    ) -> None:
        """Refuse a result (orders, ...) that is not compiled where too few of its digits are left.

        `again(y, given, *others)` computes it once more; `margin`: the smallest singular value there, without
        units.
        """
        if max(margin, 1e-9) ** -2 <= unsure_from(len(found) - 1, what):
            return
        names = ["the state" if what == "accelerations" else "the motion"]
        names += [] if given is None else ["the pose", "the twists"]
        names += ["the efforts"] * len(others)

        def rows(*arrays: Array) -> Array:
            y, *rest = arrays
            base = None if given is None else BaseMotion.computed(rest.pop(0), rest.pop(0))
            answer = again(y, base, *rest)
            return np.concatenate([answer, np.zeros((1, answer.shape[1]))])

        check = DigitCheck(
            self.closure, what, self.elsewhere(rows), names, -1, lambda table: [table[:-1]], ()
        )
        motion = [] if given is None else [given.pose, given.twists]
        whole = np.concatenate([found, np.zeros((1, found.shape[1]))])
        check.refuse(whole, [y, *motion, *others], self.memory)

    def elsewhere(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """Return `f(*arguments, memory)`, which begins at a memory and leaves the robot where it is.

        Where there is no answer, what it returns is not a number.
        """

        def call(*arguments: Array) -> Array:
            *others, memory = arguments
            here = self.memory.copy(), self._base
            self.memory[:] = memory
            try:
                return function(*others)
            except HodynError:
                return np.full((1, 1), np.nan)
            finally:
                self.memory[:], self._base = here

        return call

    def checked(
        self,
        kernel: Kernel,
        what: What,
        parts: Callable[[Array], list[Array]],
        held: Sequence[int] = (),
    ) -> CheckedCall[Kernel]:
        """Return a kernel whose results are refused where too few digits are left; see `DigitCheck`."""
        shapes = kernel.arguments[:-1]
        names = [name for name, _ in shapes]
        check = DigitCheck(self.closure, what, kernel.function, names, kernel.bad, parts, shapes, held)
        return CheckedCall(kernel, check, self.sure(check))

    def sure(self, check: DigitCheck) -> float:
        """Return below which number at `bad` results need no check of their digits."""
        place = self.independence.generic
        basis = np.eye(6) if self.platform is None else self.platform.model.dof
        return 0.0 if place is None else check.sure(place, basis)

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Names of the loops that are overconstrained: their loads depend on which rows were taken."""
        return self.independence.redundant
