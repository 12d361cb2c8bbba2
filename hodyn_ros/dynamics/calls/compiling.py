"""The fastest callable that there is for a call of `Robot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hodyn_ros.checks import check_result, into
from hodyn_ros.codegen.kernel import Call, Function
from hodyn_ros.dynamics.calls.description import check_order
from hodyn_ros.dynamics.calls.kinematics import KinematicCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls, too_large
from hodyn_ros.dynamics.kinematics.carriers import last_body
from hodyn_ros.dynamics.loops import looped_partials
from hodyn_ros.dynamics.loops.compiled_partials import quick_call
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion, drive_rows
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.operations import COMPILED, OPERATIONS, PRODUCTS, RATES
from hodyn_ros.engine.kernels import KernelSpec
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.se3 import Array


class CompileCalls(KinematicCalls, MatrixCalls):
    """Compiled calls of one order."""

    def compile(
        self,
        order: int,
        what: str = "inverse_dynamics",
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
    ) -> Callable[..., Array]:
        """Compile one call of one order for this robot, and return the fastest callable there is.

        `f(q)` takes an array and returns one; `f(q, out=array)` writes it there. Of `what`:

        - "inverse_dynamics": q (order + 3, n) -> torques (order + 1, n). A robot with loops goes on from the
          positions of its last success, and one that is moved by a platform takes no q where no joint is a
          coordinate.
        - "drive_state", of a robot with couplings or loops: the same -> (2 order + 4, n): the efforts, then
          the motion of the driven joints up to derivative order + 2.
        - "joint_motion", likewise: q (order + 1, k) -> the motion of all joints of the tree (order + 1, n).
        - "motion_from_drives", likewise: motion of the driven joints (order + 1, driven) -> one row: pose
          of the platform by rows and its spatial twists, of a robot that has one, then the motion of the
          joints that are coordinates, one order after the other. No base is given but a prescribed one.
        - "forward_dynamics": state (2, n), torques (order + 1, n) -> accelerations (order + 1, n).
        - "forward_kinematics": q (order + 1, n) -> (frames, 16 + 6 order): the pose of each frame by rows,
          then its twist and the derivatives of that. `frames`: bodies and named frames, by default all
          bodies; `representation` of the twists.
        - "inverse_kinematics": seed (1, n), poses (4 frames, 4), twists (frames order, 6) in `representation`
          -> q (order + 1, n), as the call of that name; errors too. `frames`: by default the last body. Of a
          robot with loops n are the joints that are coordinates; not of one that a platform moves.
        - "jacobian": q (order + 1, n) -> ((order + 1) 6, m), one order after the other, of the one frame that
          `frames` names, by default the last body; takes velocities to its twist in `representation`.
        - "com", "mass_matrix", "gravity_torque": q (order + 1, n), "coriolis_matrix": q (order + 2, n),
          "regressor", "inverse_dynamics_derivatives": q (order + 3, n) -> the rows of what the calls of that
          name return.
        - "forward_dynamics_derivatives": arguments of "forward_dynamics" -> rows of what that call returns.
        - "inverse_dynamics_hessian", "forward_dynamics_hessian", "forward_kinematics_hessian", of a robot
          without loops: arguments of the operation that they are of, then a multiplier of the shape of its
          result, as "inverse_dynamics_second_derivatives", "forward_dynamics_second_derivatives" and
          "forward_kinematics_derivatives" without one -> the rows of what the calls of that name return.

        With a floating base q is followed by its pose (4, 4) and as many twists (order + 2 or less, 6) as q
        has rows beyond the first, in the world frame, those of matrices, regressors and partial derivatives
        body-fixed; forward
        dynamics takes its twist (1, 6) and the wrench on it (order + 1, 6) instead. Six columns of the base
        then stand before those of the joints: the wrench on it, or the derivatives of its twist. Robots with
        loops take all twists in the world frame, the wrench on a base whose motion else is prescribed after
        the torques, and motions of platforms as those of bases; matrices are in the coordinates.

        For C-contiguous float64 arrays everything is checked in compiled code; others are converted or
        rejected with InputError. Compiling takes a fraction of a second; the next process finds the machine
        code on disk.
        """
        order = self._checked_order(order, what, frames, representation)
        of = self._of_frames(what, frames, representation)
        if "tree" not in OPERATIONS[what].compiled:
            self._need_loops(what)
        if "loops" not in OPERATIONS[what].compiled:
            self._need_tree(what)
        if self._looped is not None:
            return self._compiled_of_loops(self._looped, order, what, of, frames)
        return self._kernel_for(order, what, of, frames).function

    def compile_batch(
        self,
        order: int,
        what: str = "inverse_dynamics",
        frames: Sequence[str | int] | None = None,
        representation: Representation = "spatial",
        *,
        dtype: DTypeLike = np.float64,
    ) -> Callable[..., Array]:
        """Compile one call of one order for batches, and return `f(*arrays, out=None, threads=None)`.

        Arguments as of `compile`, each with an axis of N samples in front, and so the result. All
        are C-contiguous arrays of `dtype`, float64 or float32: with four bytes a number, 1.1 times (order 0)
        to twice as many samples are computed in the same time. What float32 loses of 2000 random states of
        the Panda, up to order 4, is less than 1e-6 of the largest number of an order (Coriolis matrix of
        order 3: 1.3e-6), and 1e-5 for forward dynamics and its derivatives; more near singular states. It
        takes no numbers from 2^31 on. Of robots with loops batches are of float64, in one thread, each sample
        on the branch of the one before; arrays that are no such arrays are converted.
        `threads`: by default as many as there are processors. Raises InputError for other arrays, and for
        numbers that are not finite.
        """
        order = self._checked_order(order, what, frames, representation)
        kind = np.dtype(dtype)
        if kind not in (np.float64, np.float32):
            raise InputError(f"batches are of float64 or float32, found {kind.name}")
        if not OPERATIONS[what].batched:
            raise InputError(f"there are no compiled batches of {what}")
        of = self._of_frames(what, frames, representation)
        if "loops" not in OPERATIONS[what].batched:
            self._need_tree(what)
        if self._looped is not None:
            if kind != np.float64:
                raise InputError(f"robot {self.name!r} has loops, which batches of float64 are for")
            if what == "motion_from_drives":
                return _in_one_thread(self._looped.compile_drives_of_samples(order))
            return _in_one_thread(self._batches_of_loops(self._looped, order, what, of))
        if "tree" not in OPERATIONS[what].batched:
            self._need_loops(what)
        kernel = self._kernel_for(order, what, of, frames)
        assert isinstance(kernel, Function)

        def batch(*arrays: Array, out: Array | None = None, threads: int | None = None) -> Array:
            if len(arrays) != len(kernel.arguments) or np.ndim(arrays[0]) != 3 or not len(arrays[0]):
                raise InputError(
                    f"expected batches of {[name for name, _ in kernel.arguments]}, (N, rows, columns) each"
                )
            for (name, shape), array in zip(kernel.arguments, arrays):
                expected = (len(arrays[0]), *shape)
                fits = isinstance(array, np.ndarray) and array.dtype == kind and array.shape == expected
                if not (fits and array.flags.c_contiguous and array.flags.aligned):
                    found = f"{getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}"
                    raise InputError(
                        f"{name} must be a C-contiguous {kind.name} array of shape {expected}, found {found}"
                    )
            return kernel.batch(*arrays, out=out, threads=threads)

        return batch

    def _checked_order(
        self, order: int, what: str, frames: Sequence[str | int] | None, representation: str
    ) -> int:
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        check_order(int(order), "the order is")
        order = int(order)
        check_representation(representation)
        if what not in COMPILED:
            raise InputError(f"there is no {what!r} to compile; choose one of {list(COMPILED)}")
        if frames is not None and OPERATIONS[what].frames == "none":
            raise InputError(f"{what} has no frames; leave them out")
        return order

    def _of_frames(
        self, what: str, frames: Sequence[str | int] | None, representation: Representation
    ) -> tuple[Any, ...]:
        """Return the frames that an operation is of by name, and the representation of their twists."""
        kind = OPERATIONS[what].frames
        if kind == "none":
            return ()
        names = self._tree.body_names if frames is None else tuple(frames)
        if kind == "several":
            return names, representation
        names = names[-1:] if frames is None else names
        if len(names) != 1:
            raise InputError(f"{what} is of one frame; found {list(names)}")
        return names[0], representation

    def _kernel_for(
        self, order: int, what: str, of: tuple[Any, ...], frames: Sequence[str | int] | None
    ) -> Call:
        """Return the code of an operation of a tree: by its law, or what takes no motion alone by its own."""
        if what == "inverse_dynamics":
            return self._kernel("inverse", order, KernelSpec.of(self.model))
        if what == "forward_dynamics":
            return self._kernel("hybrid", order, KernelSpec.of(self.model))
        kernel: Call | None
        if what == "inverse_kinematics":
            kernel = self._inverse_kinematics.compiled(order, frames, of[1])
        else:
            kernel = self._traced_kernel(what, order, *of)
        if kernel is None:
            raise too_large(self.model, what, order)
        return kernel

    def _compiled_of_loops(
        self,
        looped: LoopedDynamics,
        order: int,
        what: str,
        of: tuple[Any, ...],
        frames: Sequence[str | int] | None,
    ) -> Callable[..., Array]:
        """Return the call of an operation of a robot with loops: by its law, or its own."""
        if OPERATIONS[what].loops:
            return into(self._product_of_loops(looped, order, what, of))
        own: dict[str, Callable[[], Callable[..., Array]]] = {
            "inverse_dynamics": lambda: looped.compile(order),
            "drive_state": lambda: looped.compile(order, drives=True),
            "joint_motion": lambda: looped.compile_joint_motion(order),
            "motion_from_drives": lambda: looped.compile_move_drives(order),
            "inverse_kinematics": lambda: into(self._goals_of_loops(looped, order, frames, of[1])),
            "forward_dynamics": lambda: into(looped.forward_call(order)),
            "inverse_dynamics_derivatives": lambda: into(self._inverse_partials(looped, order)),
            "forward_dynamics_derivatives": lambda: into(_forward_partials(looped, order)),
        }
        return own[what]()

    def _goals_of_loops(
        self,
        looped: LoopedDynamics,
        order: int,
        frames: Sequence[str | int] | None,
        representation: Representation,
    ) -> Callable[..., Array]:
        if looped.closure.platform is not None:
            raise InputError(
                f"there is no compiled inverse kinematics of robot {self.name!r}, which a platform moves"
            )
        moved = frames or [last_body(self._tree)]
        return looped.compiled_frames.compiled(order, moved, representation)

    def _check_motion(self, looped: LoopedDynamics, rows: int, arguments: Sequence[Array]) -> None:
        n_given = 0 if looped.closure.leader is None else 2
        if len(arguments) != 1 + n_given or np.shape(arguments[0]) != (rows, self.n_coordinates):
            besides = ", pose and twists of base or platform" * bool(n_given)
            raise InputError(f"expected a motion of shape {(rows, self.n_coordinates)}{besides}")

    def _product_of_loops(
        self, looped: LoopedDynamics, order: int, what: str, of: tuple[Any, ...]
    ) -> Callable[..., Array]:
        """Return `f(q, [pose, twists])` of what follows from the motion of the coordinates alone."""
        product = None if looped.drifts else looped.product_call(what, order, *of)
        rows = order + 1 + RATES[what]

        def compute(*arguments: Array) -> Array:
            self._check_motion(looped, rows, arguments)
            if product is not None:
                table = product.function(*arguments, looped.memory)
                if table.item(product.bad) < 1.0:
                    return table[:-1]
            base = _base_among(arguments)
            if what not in PRODUCTS:
                return self._poses_of_loops(looped, arguments[0], base, of)
            whole = looped.computed(what, arguments[0], base, *of)
            return np.ascontiguousarray(whole.reshape(-1, whole.shape[-1]))

        return compute

    def _inverse_partials(self, looped: LoopedDynamics, order: int) -> Callable[..., Array]:
        """Return `f(q, [pose, twists])` of the partial derivatives of inverse dynamics."""
        quick, rows = quick_call(looped, "efforts", order), order + 3

        def compute(*arguments: Array) -> Array:
            self._check_motion(looped, rows, arguments)
            whole = quick(*arguments)
            if whole is None:
                motion = coordinate_motion(looped.closure, arguments[0], _base_among(arguments), 2)
                whole = looped_partials.inverse_dynamics_partials(looped, *motion)
                check_result(whole)
            return np.ascontiguousarray(whole.reshape(-1, whole.shape[-1]))

        return compute

    def _batches_of_loops(
        self, looped: LoopedDynamics, order: int, what: str, of: tuple[Any, ...]
    ) -> Callable[..., Array]:
        closure, operation = looped.closure, OPERATIONS[what]
        forward = operation.of_state
        told = bool(closure.joints) or what not in ("inverse_dynamics", "joint_motion")
        count = told + (0 if closure.leader is None else 2) + forward + (forward and closure.base_given)
        rows = 2 if forward else order + 1 + operation.rates

        def compute(*arrays: Array) -> Array:
            if len(arrays) != count or any(np.ndim(array) != 3 for array in arrays):
                raise InputError(f"expected {count} batches (N, rows, columns), found {len(arrays)} arrays")
            rest = list(arrays)
            samples = len(rest[0])
            q = rest.pop(0) if told else np.zeros((samples, rows, 0))
            base = None
            if closure.leader is not None:
                pose, twists = rest.pop(0), rest.pop(0)
                base = BaseMotion(pose, twists if np.shape(twists)[1] else np.zeros((samples, 1, 6)))
            if np.shape(q)[1] != rows or (forward and np.shape(rest[0])[1] != order + 1):
                raise InputError(f"expected motions of {rows} rows, found {np.shape(q)[1]}")
            result: Any
            if what in PRODUCTS:
                result = looped.computed(what, q, base, *of)
            elif operation.loops:
                return self._poses_of_loops(looped, q, base, of)
            elif forward:
                result = getattr(self, what)(q, rest[0], base, *rest[1:])
            else:
                result = getattr(self, what)(q, base)
            if isinstance(result, tuple):
                result = np.concatenate(result, axis=2)
            return np.ascontiguousarray(result.reshape(samples, -1, result.shape[-1]))

        return compute

    def _poses_of_loops(
        self,
        looped: LoopedDynamics,
        q: Array,
        base: BaseMotion | None,
        of: tuple[Any, ...],
    ) -> Array:
        joints, moving = self._joints_of_loops(looped, q, base)
        order, batch = joints.shape[-2] - 1, joints.shape[:-2]
        kernel = self._traced_kernel("forward_kinematics", order, *of)
        if kernel is None:
            raise InputError(f"robot {self.name!r} is too large to compile its kinematics of that order")
        motion = [] if moving is None else moving.arrays(order, batch)
        found: Array = (kernel.batch if batch else kernel.function)(np.ascontiguousarray(joints), *motion)
        return found


def _base_among(arguments: Sequence[Array]) -> BaseMotion | None:
    """Return the motion of base or platform that follows that of the coordinates."""
    if len(arguments) == 1:
        return None
    _, pose, twists = arguments
    return BaseMotion(pose, twists if len(twists) else np.zeros((1, 6)))


def _in_one_thread(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return a call of batches that takes `out` and, as those in several threads do, `threads`."""
    written = into(call)
    return lambda *arrays, out=None, threads=None: written(*arrays, out=out)


def _forward_partials(looped: LoopedDynamics, order: int) -> Callable[..., Array]:
    """Return `f(state, [pose, twist,] torques, [base wrench])` of a robot with loops."""
    closure = looped.closure
    n_given = 0 if closure.leader is None else 2
    count = 2 + n_given + closure.base_given
    quick = quick_call(looped, "accelerations", order)

    def compute(*arguments: Any) -> Array:
        if len(arguments) != count:
            raise InputError(f"expected {count} arguments, found {len(arguments)}")
        if (found := quick(*arguments)) is not None:
            return found.reshape(-1, found.shape[-1])
        state, *rest = arguments
        base = BaseMotion(rest.pop(0), rest.pop(0)) if n_given else None
        y, given = coordinate_motion(closure, state, base, 1)
        efforts = drive_rows(closure, rest[0], rest[1] if closure.base_given else None)
        if len(y) != 2 or len(efforts) != order + 1:
            raise InputError(f"expected a state of 2 rows and efforts of {order + 1}")
        whole = looped_partials.forward_dynamics_partials(looped, y, efforts, given)
        check_result(whole)
        return whole.reshape(-1, whole.shape[-1])

    return compute
