"""Jacobians, momentum, regressor and kinematics of robots with loops, over abstract scalars.

What the tree makes of the motion of all its joints, as the coordinates move them; see `loop_matrices`. Each
is made from a closure, its chosen rows and an order, those of frames from these and a representation besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.digits import moving_rows
from hodyn_ros.engine.kernel_spec import motion_arguments
from hodyn_ros.engine.loops.loop_matrices import Moved, ProductCode, SumsCode, distribution, sized
from hodyn_ros.engine.loops.loop_motion import Judged
from hodyn_ros.engine.matrix_kernels import BY_PARAMETER, DYNAMIC_MATRICES, JacobianLaw, times_columns
from hodyn_ros.engine.recursions import kinematics
from hodyn_ros.engine.series.series import by_order, of_orders
from hodyn_ros.engine.series.vectors import Scalar, dot
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame


class _TreeCode(ProductCode):
    """What the tree computes of the motion of its joints, as it is."""

    def __init__(self, closure: Closure, chosen: Array, order: int, traceable: Traceable) -> None:
        self._traceable = traceable
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return what the tree computes."""
        return _called(self, self._traceable, moved), 0.0


class ComCode(_TreeCode):
    """The centre of mass."""

    size, vector = (1, 3), True

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        super().__init__(closure, chosen, order, kinematics.com(closure.tree, order))


class FrameMotionCode(_TreeCode):
    """Poses and twists of frames, in one row each: 16 numbers of the pose, then twists by order."""

    stacked = False

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        frames: Sequence[Frame],
        representation: Representation,
    ) -> None:
        self.size = len(frames), kinematics.POSE + 6 * order
        super().__init__(
            closure, chosen, order, kinematics.frame_motion(closure.tree, order, frames, representation)
        )


class FromDrivesCode(ProductCode):
    """The motion of a platform and of the coordinates, of a `twin` that has drives as coordinates.

    `function(drives (order + 1, driven), [pose (4, 4), twists (order, 6),] memory)`, those of a prescribed
    base, returns a row: the pose of the platform and its spatial twists, if there is one, then the motion of
    the joints that are coordinates, (order + 1, k); and a last row. `chosen`: the rows of the twin's loops,
    whose positions the memory holds.

    Of more drives than that, the others have to agree. The twin may have six joints in place of a floating
    base, which stand before the others.
    """

    stacked = False
    judged: Judged | None = "drives"

    def __init__(self, closure: Closure, twin: Closure, chosen: Array, order: int) -> None:
        self._of_platform: Traceable | None = None
        ahead = twin.tree.n_joints - closure.tree.n_joints
        self._joints = [joint + ahead for joint in closure.joints]
        driven = [joint + ahead for joint in closure.driven]
        self._determining = [driven.index(joint) for joint in twin.joints]
        self._redundant = [i for i in range(len(driven)) if i not in self._determining]
        self._redundant_joints = [driven[i] for i in self._redundant]
        size = (order + 1) * len(closure.joints)
        if closure.platform is not None:
            body = closure.platform.body + twin.tree.n_bodies - closure.tree.n_bodies
            self._of_platform = kinematics.frame_motion(twin.tree, order, [Frame(body, np.eye(4))], "spatial")
            size += kinematics.POSE + 6 * order
        self.size = 1, size
        super().__init__(twin, chosen, order)
        name, self.finds_pose = "the motion of the drives", closure.platform is not None
        self.motion = motion_arguments(order + 1, len(driven), twin.base_prescribed, name)

    def parts(self, table: Array) -> list[Array]:
        """Return the motion of a platform, and that of the coordinates."""
        row, orders = table[0], self.terms
        parts = [] if self._of_platform is None else [platform_rows(row, orders - 1)]
        count = orders * len(self._joints)
        return [*parts, row[-count:].reshape(orders, -1)] if count else parts

    def begun(self, q: Stack, state: Sequence[Scalar]) -> list[Scalar]:
        """Return those with the drives that are coordinates of the twin."""
        return super().begun(self._coordinates(q), state)

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the row of `rows` and what is wrong, the other drives included."""
        row, (defect, *rest) = super().end(self._coordinates(q), *stacks)
        result, size = iter(row[self.size[1] :]), self.closure.size
        for drives in q:
            scale = dot(drives, drives) + size * size
            for i in self._redundant:
                gap = next(result) - drives[i]
                defect = defect + gap * gap / (scale * self.tolerances.agree**2)
        return [row[: self.size[1]], [defect, *rest]]

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the row of the platform, then those of the coordinates, and of the other drives by order."""
        row = [] if self._of_platform is None else _called(self, self._of_platform, moved)[0]
        motion = [self.positions(moved.leading), *self.derivatives(moved.rates, range(len(moved.rates)))]
        for joints in (self._joints, self._redundant_joints):
            row = [*row, *(values[joint] for values in motion for joint in joints)]
        return [row], 0.0

    def _coordinates(self, q: Stack) -> Stack:
        return [[row[i] for i in self._determining] for row in q]


def platform_rows(row: Array, order: int) -> Array:
    """Return the motion of a platform by order, from a row with its pose and twists."""
    pose, twists = row[: kinematics.POSE], row[kinematics.POSE : kinematics.POSE + 6 * order]
    return moving_rows(pose, twists.reshape(order, 6))


def _called(code: ProductCode, traceable: Traceable, moved: Moved) -> Stack:
    """Call what a tree computes of the derivatives of its motion."""
    joints = [code.positions(moved.leading), *code.derivatives(moved.rates, range(len(moved.rates)))]
    return traceable[0](joints, *(moved.leader if moved.base else ()))


class FrameJacobianCode(ProductCode):
    """What a law finds of the Jacobian of a frame, in a representation of its twist; `shape` of one order."""

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        frame: Frame,
        representation: Representation,
        *,
        law: JacobianLaw,
        shape: Sequence[str],
    ) -> None:
        self.law = law
        self.vector, self.size = sized(closure, shape)
        self._of_tree = kinematics.frame_jacobian(closure.tree, order, frame, representation)
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return what follows from the Jacobian of the tree times F."""
        of_tree = of_orders(_called(self, self._of_tree, moved), 6)
        jacobian = times_columns(of_tree, distribution(self, moved.motions, moved.base, self.terms))
        return by_order(self.law.rows(jacobian, self.terms), self.terms - 1), 0.0


dynamic_matrices = partial(SumsCode, law=DYNAMIC_MATRICES, shape=("2 m + 1", "m"))
by_parameter = partial(SumsCode, law=BY_PARAMETER, shape=("10 bodies (2 m + 1)", "m"))


class DriveJacobianCode(ProductCode):
    """What the driven joints move by the coordinates."""

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        self.size = len(closure.driven), closure.n_coordinates
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the rows of F that drives act on."""
        closure, F = self.closure, distribution(self, moved.motions, moved.base, self.terms)
        rows = [[column[closure.first + joint] for column in F] for joint in closure.driven]
        return by_order(rows, self.terms - 1), 0.0
