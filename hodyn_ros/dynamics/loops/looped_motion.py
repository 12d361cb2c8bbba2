"""Motions of a robot with couplings and loops, from those of its independent coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.dynamics.loops.grounded import SHIFT, loop_code, shifted
from hodyn_ros.dynamics.loops.looped_call import LoopedCall, kept
from hodyn_ros.dynamics.loops.looped_position import LoopedPosition
from hodyn_ros.dynamics.motion_stack import load_places
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.loops.loop_products import FrameMotionCode
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.engine.recursions.regressor import PER_BODY
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame


class LoopedMotion(LoopedPosition):
    """The motion of a robot with couplings and loops."""

    def __init__(self, closure: Closure, frames: Mapping[str, Frame] = MappingProxyType({})) -> None:
        super().__init__(closure)
        self.frames = frames  # besides the bodies, by name
        self._own = slice(-closure.tree.n_joints, None)  # columns of joints, after those of a drifting base

    def joint_motion(self, y: Array, base: BaseMotion | None) -> tuple[Array, BaseMotion | None]:
        """Return the motion of all joints of the tree, and of its base, up to the order of y (orders + 1, k).

        `base`: that of platform or base, with spatial twists. Of a batch too, y (N, orders + 1, k).
        """
        inputs = LoopedInputs(y, base)
        if self.drifts and inputs.n_samples:
            each = inputs.each(lambda one: self.joint_motion(one.y, one.leader))
            bases = [own for _, own in each if own is not None]
            poses, twists = np.array([own.pose for own in bases]), np.array([own.twists for own in bases])
            return np.array([joints for joints, _ in each]), BaseMotion(poses, twists)
        arrays = inputs.arrays(0)
        joints = self.joint_call(inputs.orders).run(inputs.n_samples, arrays)
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

        def make(closure: Closure, chosen: Array, loads: Loads) -> LoopCode:
            return FrameMotionCode(closure, chosen, order, [Frame(SHIFT, np.eye(4))], "spatial")

        return self.call_of(make, order)

    def quick_joint_motion(self, y: Array, *leader: Array) -> Array | None:
        """Return the motion of all joints by compiled code; None where that does not find it.

        `leader`: pose (4, 4) and spatial twists (orders, 6) of platform or base.
        """
        table = self.joint_call(len(y) - 1).quick(y, *leader)
        return None if table is None else table[:-1, self._own]

    def fastest(self, what: str, call: LoopedCall) -> Callable[..., Array]:
        """Return the fastest call of one sample of an operation, without q where that is left out."""
        operation = OPERATIONS[what]
        rows = slice(0, -2) if what == "drive_state" else call.law.batch_rows
        left_out = operation.q_left_out and not self.closure.joints
        still = [np.zeros(call.code.arguments[0][1])] if left_out else []
        return call.compiled((rows, self._columns(what)) if self.drifts else rows, *still)

    def _columns(self, what: str) -> slice:
        """Return those that are not of bodies and joints which hold a drifting base on the ground."""
        if what == "joint_motion":
            return self._own
        return slice(PER_BODY * SHIFT if self.drifts and OPERATIONS[what].by_parameter else 0, None)

    @kept
    def joint_call(self, order: int) -> LoopedCall:
        """Return the code of the motion of all joints."""
        return self.call_of(partial(LoopCode, order=order - 2), max(order - 2, 0), on_limbs=True)

    def places(self, wrenches: Sequence[AppliedWrench]) -> Loads:
        """Return where wrenches act: the bodies, and the frames that they are given in."""
        return load_places(self.closure.tree, wrenches)

    def call_of(
        self, make: Callable[..., LoopCode], order: int, loads: Loads = (), *, on_limbs: bool = False
    ) -> LoopedCall:
        """Return a call of an order by the law that `make(closure, chosen, loads=...)` returns."""
        chosen = self.independence.of_joints

        def law(closure: Closure, shift: int) -> LoopCode:
            return make(closure, chosen, loads=shifted(loads, shift))

        return LoopedCall(self, loop_code(self.closure, order, law, on_limbs=on_limbs))
