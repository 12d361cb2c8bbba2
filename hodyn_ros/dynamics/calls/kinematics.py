"""The calls of `Robot` that return motions from motions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.kernel import Function, Kernel
from hodyn_ros.dynamics.calls.description import RobotProperties
from hodyn_ros.dynamics.kinematics.forward_kinematics import (
    Kinematics,
    checked_motion,
    forward_kinematics,
    unpacked,
)
from hodyn_ros.dynamics.kinematics.inverse_problem import Bodies, GoalCall, Method, Tasks
from hodyn_ros.dynamics.loops.coordinate_motion import drive_values, prescribed_base
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.motion_stack import HIGHEST_ORDER
from hodyn_ros.dynamics.results import CoordinateMotion
from hodyn_ros.engine.recursions.kinematics import frame_motion
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.frames import Frame


class KinematicCalls(RobotProperties):
    """Kinematics of bodies, joints and drives, both ways."""

    def forward_kinematics(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        representation: Representation = "spatial",
    ) -> Kinematics:
        """Compute poses, twists and joint screws of all bodies with their time derivatives.

        `q` (order + 1, n): positions and their derivatives [rad or m, /s^k]; a batch is (N, order + 1, n).
        `base`: the motion of a floating base with `order` twists. `representation` of twists and screws:
        "spatial", "body_fixed" or "hybrid". Look up bodies and named frames in the result with `pose_of`,
        `twists_of` and `jacobian_of`. Mueller (2020), Algorithm 1; Ali et al., Algorithm 1. Raises InputError
        saying what was expected. Compiled, but for robots too large to compile in seconds.
        """
        joints = self._dynamics.joint_motion_or_none(q, base)
        if type(joints) is np.ndarray:
            order, floats = len(joints) - 1, self._tree.floating_base
            compiled = self._moving.get((joints.shape, representation))
            fits = not floats or (type(base) is BaseMotion and not base.batch and base.orders >= order)
            if compiled is not None and fits:
                moving = (base.pose, base.twists_in("spatial", order)) if floats and base is not None else ()
                table = compiled(joints, *moving)
                return unpacked(self._tree, table, representation, self.frames)
        return self._forward_kinematics(q, base, representation)

    @finite_result
    def _forward_kinematics(
        self, q: ArrayLike | None, base: BaseMotion | None, representation: Representation
    ) -> Kinematics:
        check_representation(representation)
        q, base = self._dynamics.tree_motion(q, base)
        tree = self._tree
        stack, moving = checked_motion(tree, q, base, representation)
        order = stack.shape[-2] - 1
        kernel = self._screw_kernel(order, representation) if order <= HIGHEST_ORDER else None
        if kernel is None:
            return forward_kinematics(tree, stack, moving, representation, self.frames)
        if stack.ndim == 2:
            self._moving[stack.shape, representation] = kernel.function
        arrays = [] if moving is None else moving.in_representation("spatial").arrays(order, stack.shape[:-2])
        call = kernel.batch if stack.ndim == 3 else kernel.function
        table = call(np.ascontiguousarray(stack), *arrays)
        return unpacked(tree, table, representation, self.frames)

    def _screw_kernel(self, order: int, representation: Representation) -> Function | None:
        """Return the kernel of poses, twists and screws of all bodies; None where it compiles too long."""
        tree = self._tree
        bodies = [Frame(body, np.eye(4)) for body in range(tree.n_bodies)]
        return self._frame_kernels.made(
            (order, representation),
            lambda: Kernel.unless_long(*frame_motion(tree, order, bodies, representation, screws=True)),
        )

    def inverse_kinematics(
        self,
        pose: ArrayLike,
        twists: ArrayLike | None = None,
        base: BaseMotion | None = None,
        *,
        body: Bodies = None,
        representation: Representation = "spatial",
        seed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        method: Method | None = None,
        independent: Mapping[str | int, ArrayLike] | None = None,
        task: Tasks = "pose",
    ) -> Any:
        """Find the joint motion (order + 1, n) that moves bodies or named frames as given; compiled.

        `pose` (4, 4) in the world [m]; `twists` (order, 6): its twist `(omega; v)` [rad/s, m/s] and the
        derivatives, in `representation`. `body`: by default the last one; `task`: its "pose", "position" or
        "orientation". Positions by Newton's method from `seed` (n,), then derivatives order by order;
        `method` "solve", "pseudo_inverse" (least velocity, weighted with `weights` (n,), and its derivatives)
        or "decomposition" (`independent` joints follow motions of their own, by name). `base`: the motion of
        a floating base with `order` twists. Mueller (2020), Algorithm 2 and remark 2. With a list of F names
        as `body`, poses are (F, 4, 4), twists (F, order, 6), and `task` one for all or a list.
        `hodyn_ros.dynamics.kinematics.inverse_problem` explains the choices.

        Raises SingularError with the condition number at a singular pose, and near one where in a derivative
        more than a share of 1e-6 would be rounding; ConvergenceError with the distance left to a pose out of
        reach; InputError saying what was expected.

        Of a robot with loops the result is the motion of the joints that are coordinates, (order + 1, n), and
        so are seed, which is by default where the last call succeeded, and independent ones; `weights` are
        those of all coordinates but a prescribed base. Where a platform moves it is a `CoordinateMotion`:
        `.base` the motion of the platform with spatial twists, `.joints` that of the joints. Newton's method
        over the coordinates follows the loops from the last success and so keeps their branch; further calls
        go on from the result.
        """
        call = GoalCall(pose, twists, base, body, representation, seed, task, weights, method, independent)
        return self._dynamics.inverse_kinematics(call)

    def joint_motion(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the motion (order + 1, joints) of all joints of the tree from that of the coordinates.

        `q` (order + 1, k), None where no joint is a coordinate; `base`: the motion of base or platform with
        `order` twists. A batch of either has an axis of samples in front. `tree.joint_names` has their order.
        Errors as of `solve_loops`.
        """
        return self._dynamics.all_joints(q, base)

    def drive_jacobian(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute what the driven joints move by the coordinates, (order + 1, driven, coordinates).

        `J` with `q_a' = J y'`, and its time derivatives; `J^T u` is what the drives do to the coordinates.
        The rows y' of a platform are components of its body-fixed twist, those of a prescribed base its
        body-fixed twist: `J_IK` of Mueller et al., eq. 9. Compiled; arguments and errors as of
        `joint_motion`.
        """
        result: Array = self._need_loops("drive_jacobian").computed("drive_jacobian", q, base)
        return result

    def motion_from_drives(self, drives: ArrayLike, base: BaseMotion | None = None) -> CoordinateMotion:
        """Find the motion of the coordinates from that of the driven joints, of a robot with loops.

        `drives` (driven,) or (orders + 1, driven): positions and their derivatives; `base`: the motion of a
        prescribed base, of as many orders. `.joints` (orders + 1, n) is the motion of the joints that are
        coordinates, `.base` that of a platform with spatial twists, else None. Found from the last success,
        which selects the assembly mode. Raises ConvergenceError, SingularError, and InputError where
        redundant drives contradict each other.
        """
        looped = self._need_loops("motion_from_drives")
        if (
            base is None
            and type(drives) is np.ndarray
            and drives.ndim == 2
            and not looped.closure.base_prescribed
        ):
            result = looped.compiled_drive_motion(drives)
            if result is not None:
                return CoordinateMotion(result[1], result[0])
        return self._motion_from_drives(looped, drives, base)

    @finite_result
    def _motion_from_drives(
        self, looped: LoopedDynamics, drives: ArrayLike, base: BaseMotion | None
    ) -> CoordinateMotion:
        rows = drive_values("the motion of the drives", looped.closure, drives)
        leader = None
        if looped.closure.base_prescribed or base is not None:
            leader = prescribed_base(looped.closure, base, len(rows) - 1)
        joints, platform = looped.move_drives(rows, leader)
        return CoordinateMotion(platform, joints)
