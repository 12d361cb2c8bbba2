"""The fastest callable that there is for a call of `Robot`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import DTypeLike

from hodyn_ros.dynamics.calls.description import call_of
from hodyn_ros.dynamics.calls.kinematics import KinematicCalls
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.motion_stack import check_order, whole_order
from hodyn_ros.dynamics.operations import COMPILED, OPERATIONS, Kind
from hodyn_ros.errors import InputError
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
        return self._dynamics.compiled(what, order, of)

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
        return self._dynamics.compiled_batch(what, order, of, call_of(self, OPERATIONS[what]), kind)

    def _checked_order(
        self, order: int, what: str, frames: Sequence[str | int] | None, representation: str
    ) -> int:
        order = whole_order(order)
        check_order(order, "the order is")
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
