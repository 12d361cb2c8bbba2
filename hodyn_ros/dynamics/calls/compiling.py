"""The fastest callable that there is for a call of `Robot`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hodyn_ros.checks import into
from hodyn_ros.codegen.kernel import Call, Function
from hodyn_ros.dynamics.calls.kinematics import KinematicCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls, too_large
from hodyn_ros.dynamics.loops.coordinate_motion import batch_size
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.motion_stack import check_order
from hodyn_ros.dynamics.operations import COMPILED, OPERATIONS, Kind
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

        `f(q)` takes an array and returns one; `f(q, out=array)` writes it there. `what` is an operation of
        `hodyn_ros.dynamics.operations`, whose table docs/operations.md shows: what each takes, for which
        robots it is there, and the shape of what it returns, of which the rows of all orders come one after
        the other. `frames`: of "forward_kinematics" bodies and named frames, by default all bodies; of
        "inverse_kinematics" and "jacobian" by default the last body. `representation`: that of their twists.

        A robot with loops goes on from the positions of its last success. One that is moved by a platform
        takes no q where no joint is a coordinate, in "inverse_dynamics", "drive_state" and "joint_motion".
        "motion_from_drives" takes no base but a prescribed one. "inverse_kinematics" of a robot with loops
        finds the joints that are coordinates, and is not there where a platform moves it; errors are those
        of the call of that name.

        With a floating base q is followed by its pose (4, 4) and as many twists (order + 2 or less, 6) as q
        has rows beyond the first, in the world frame, those of matrices, regressors and partial derivatives
        body-fixed; forward dynamics takes its twist (1, 6) and the wrench on it (order + 1, 6) instead. Six
        columns of the base then stand before those of the joints: the wrench on it, or the derivatives of its
        twist. Robots with loops take all twists in the world frame, the wrench on a base whose motion else is
        prescribed after the torques, and motions of platforms as those of bases; matrices are in the
        coordinates.

        For C-contiguous float64 arrays everything is checked in compiled code; others are converted or
        rejected with InputError. Compiling takes a fraction of a second; the next process finds the machine
        code on disk.
        """
        order = self._checked_order(order, what, frames, representation)
        of = OPERATIONS[what].of_frames(frames, self._tree.body_names, representation)
        self._check_offered(what, OPERATIONS[what].compiled)
        if self._looped is None:
            return self._code_of_tree(order, what, of).function
        if OPERATIONS[what].loops:
            return into(self._looped.compile_product(what, order, *of))
        return into(OPERATIONS[what].make_loops_call(self._looped, order, *of))

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
        of = OPERATIONS[what].of_frames(frames, self._tree.body_names, representation)
        self._check_offered(what, OPERATIONS[what].batched)
        if self._looped is not None:
            if kind != np.float64:
                raise InputError(f"robot {self.name!r} has loops, which batches of float64 are for")
            if OPERATIONS[what].takes == "drives":
                return _in_one_thread(self._looped.compile_drives_of_samples(order))
            return _in_one_thread(self._batches_of_loops(self._looped, order, what, of))
        kernel = self._code_of_tree(order, what, of)
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
                    result = f"{getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}"
                    raise InputError(
                        f"{name} must be a C-contiguous {kind.name} array of shape {expected}, found {result}"
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

    def _check_offered(self, what: str, robots: Collection[Kind]) -> None:
        if "tree" not in robots:
            self._need_loops(what)
        if "loops" not in robots:
            self._need_tree(what)

    def _code_of_tree(self, order: int, what: str, of: tuple[Any, ...]) -> Call:
        """Return the code of an operation of a tree."""
        operation = OPERATIONS[what]
        kernel: Call | None
        if operation.kernel:
            kernel = self._kernel(what, order, KernelSpec.of(self.model))
        elif operation.takes == "poses":
            kernel = self._inverse_kinematics.compiled(order, *of)
        else:
            kernel = self._traced_kernel(what, order, *of)
        if kernel is None:
            raise too_large(self.model, what, order)
        return kernel

    def _batches_of_loops(
        self, looped: LoopedDynamics, order: int, what: str, of: tuple[Any, ...]
    ) -> Callable[..., Array]:
        closure, operation = looped.closure, OPERATIONS[what]
        forward = operation.takes == "state"
        takes_q = bool(closure.joints) or not operation.q_left_out
        count = takes_q + closure.n_given + forward + (forward and closure.base_given)
        rows = 2 if forward else order + 1 + operation.rates

        def compute(*arrays: Array) -> Array:
            rest, samples = list(arrays), batch_size(arrays, count)
            q = rest.pop(0) if takes_q else np.zeros((samples, rows, 0))
            base = None
            if closure.leader is not None:
                pose, twists = rest.pop(0), rest.pop(0)
                base = BaseMotion(pose, twists if np.shape(twists)[1] else np.zeros((samples, 1, 6)))
            if np.shape(q)[1] != rows or (forward and np.shape(rest[0])[1] != order + 1):
                raise InputError(f"expected motions of {rows} rows, found {np.shape(q)[1]}")
            result: Any
            if operation.loops:
                result = looped.computed(what, q, base, *of)
            else:
                result = operation.call_of(self)(q, *rest[:forward], base, *rest[forward:])
            if isinstance(result, tuple):
                result = np.concatenate(result, axis=2)
            return np.ascontiguousarray(result.reshape(samples, -1, result.shape[-1]))

        return compute


def _in_one_thread(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return a call of batches that takes `out` and, as those in several threads do, `threads`."""
    written = into(call)
    return lambda *arrays, out=None, threads=None: written(*arrays, out=out)
