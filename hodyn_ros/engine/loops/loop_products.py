"""Jacobians, momentum, regressor and kinematics of robots with loops, over abstract scalars.

What the tree makes of the motion of all its joints, as the coordinates move them; see `loop_matrices`. Each
is made from a closure, its chosen rows and an order, those of frames from these and a representation besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.loops.loop_matrices import (
    MATRICES,
    Column,
    MatrixCode,
    Moved,
    ProductCode,
    part_of,
    times_columns,
)
from hodyn_ros.engine.matrix_kernels import screws_of
from hodyn_ros.engine.recursions import kinematics
from hodyn_ros.engine.recursions.composite import Composite, Rows
from hodyn_ros.engine.recursions.momentum import com_jacobian as of_com
from hodyn_ros.engine.recursions.momentum import momentum, momentum_matrix
from hodyn_ros.engine.recursions.regressor import (
    PER_BODY,
    parameter_derivatives,
    regressor,
    slotine_li_regressor,
)
from hodyn_ros.engine.series.series import Series, coefficient, of_orders
from hodyn_ros.engine.series.series_system import SeriesSystem
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

    shape, vector = (1, 3), True

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
        self.shape = len(frames), kinematics.POSE + 6 * order
        super().__init__(
            closure, chosen, order, kinematics.frame_motion(closure.tree, order, frames, representation)
        )


class FromDrivesCode(ProductCode):
    """The motion of a platform and of the coordinates, of a `twin` that has drives as coordinates.

    Of more drives than that, the others have to agree. The twin may have six joints in place of a floating
    base, which stand before the others.
    """

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
        self.shape = 1, size
        super().__init__(twin, chosen, order)

    def begun(self, q: Stack, state: Sequence[Scalar]) -> list[Scalar]:
        """Return those with the drives that are coordinates of the twin."""
        return super().begun(self._coordinates(q), state)

    def matrices(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the row of `rows` and what is wrong, the other drives included."""
        row, (defect, *rest) = super().matrices(self._coordinates(q), *stacks)
        result, size = iter(row[self.shape[1] :]), self.closure.size
        for drives in q:
            scale = dot(drives, drives) + size * size
            for i in self._redundant:
                gap = next(result) - drives[i]
                defect = defect + gap * gap / (scale * self.tolerances.agree**2)
        return [row[: self.shape[1]], [defect, *rest]]

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the row of the platform, then those of the coordinates, and of the other drives by order."""
        row = [] if self._of_platform is None else _called(self, self._of_platform, moved)[0]
        motion = [self.positions(moved.leading), *self.derivatives(moved.rates, range(len(moved.rates)))]
        for joints in (self._joints, self._redundant_joints):
            row = [*row, *(values[joint] for values in motion for joint in joints)]
        return [row], 0.0

    def _coordinates(self, q: Stack) -> Stack:
        return [[row[i] for i in self._determining] for row in q]


def _called(code: ProductCode, traceable: Traceable, moved: Moved) -> Stack:
    """Call what a tree computes of the derivatives of its motion."""
    joints = [code.positions(moved.leading), *code.derivatives(moved.rates, range(len(moved.rates)))]
    return traceable[0](joints, *(moved.leader if moved.base else ()))


class FrameJacobianCode(ProductCode):
    """The Jacobian of a frame, in a representation of its twist."""

    def __init__(
        self, closure: Closure, chosen: Array, order: int, frame: Frame, representation: Representation
    ) -> None:
        self.shape = 6, closure.n_coordinates
        self._of_tree = kinematics.frame_jacobian(closure.tree, order, frame, representation)
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the Jacobian of the tree times F."""
        of_tree = of_orders(_called(self, self._of_tree, moved), 6)
        return self.by_order(times_columns(of_tree, self.distribution(moved, self.terms))), 0.0


class CentroidalMomentumCode(ProductCode):
    """The momentum about the centre of mass."""

    shape, vector, further = (1, 6), True, 1

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the momentum of the tree."""
        return self.by_order([momentum(self.tree(moved))]), 0.0


class _OfVelocities(ProductCode):
    """What takes velocities to something, which the sums of the tree have for its own."""

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        of_tree: Callable[[Composite], Rows],
        n_rows: int,
    ) -> None:
        self.shape = n_rows, closure.n_coordinates
        self._of_tree = of_tree
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return that of the tree times F."""
        result = self._of_tree(self.tree(moved))
        return self.by_order(times_columns(result, self.distribution(moved, self.terms))), 0.0


com_jacobian = partial(_OfVelocities, of_tree=of_com, n_rows=3)
centroidal_momentum_matrix = partial(_OfVelocities, of_tree=momentum_matrix, n_rows=6)
mass_matrix, coriolis_matrix, gravity_torque = (partial(MatrixCode, part=part) for part in MATRICES)


class DriveJacobianCode(ProductCode):
    """What the driven joints move by the coordinates."""

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        self.shape = len(closure.driven), closure.n_coordinates
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the rows of F that drives act on."""
        return self.by_order(_driven(self, self.distribution(moved, self.terms))), 0.0


def _driven(code: ProductCode, F: Sequence[Column]) -> list[Column]:
    closure = code.closure
    return [[column[closure.first + joint] for column in F] for joint in closure.driven]


class SlotineLiCode(ProductCode):
    """Y in the coordinates, with `F^T Y_tree` of the velocities `F w` of the tree."""

    further = 1

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        self.shape = closure.n_coordinates, PER_BODY * closure.tree.n_bodies
        self.inputs = [("the reference", (order + 2, closure.n_coordinates))]
        self._screws = screws_of(closure.tree)
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other."""
        (reference,) = moved.inputs
        (speeds,) = of_orders(reference, 1)
        F = self.distribution(moved, self.terms + 1)
        of_tree = [dot(entries, speeds) for entries in zip(*F)]
        terms = range(self.terms)
        velocities = [Series([coefficient(x, k) for k in terms]) for x in of_tree]
        rates = [Series([(k + 1.0) * coefficient(x, k + 1) for k in terms]) for x in of_tree]
        result = slotine_li_regressor(self.tree(moved), velocities, rates, self._screws)
        columns = [[part_of(x, 0, self.terms) for x in column] for column in F]
        return self.by_order([[dot(column, row) for row in zip(*result)] for column in columns]), 0.0


class ParameterCode(ProductCode):
    """Derivatives of M, C and g by parameter: what moves a body is `F` times what moves it in the tree."""

    further = 1

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        c = closure.n_coordinates
        self.shape = PER_BODY * closure.tree.n_bodies * (2 * c + 1), c
        self._screws = screws_of(closure.tree)
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return those of M, of C and of g, one order after the other."""
        coordinates = [
            ([part_of(x, 0, self.terms) for x in column], [part_of(x, 1, self.terms) for x in column])
            for column in self.distribution(moved, self.terms + 1)
        ]
        mass, coriolis, gravity = parameter_derivatives(self.tree(moved), self._screws, coordinates)
        return self.by_order([row for matrix in (*mass, *coriolis, gravity) for row in matrix]), 0.0


class RegressorCode(ProductCode):
    """Y with `u = Y pi`: as `F^T S u = F^T Q`, and `Q = Y_tree pi`."""

    further = 2

    def __init__(self, closure: Closure, chosen: Array, order: int) -> None:
        self.shape = closure.n_efforts, PER_BODY * closure.tree.n_bodies
        self._screws = screws_of(closure.tree)
        super().__init__(closure, chosen, order)

    def rows(self, moved: Moved) -> tuple[Stack, Scalar]:
        """Return the derivatives, one order after the other, and how near the drives are to failing."""
        closure, tree, terms = self.closure, self.tree(moved), range(self.terms)
        rates = [Series([(k + 1.0) * rate[k + 1] for k in terms]) for rate in moved.rates]
        if moved.base is not None:
            twists = [[*w, *v] for w, v in zip(moved.base.angular, moved.base.velocity)]
            of_base = [Series([(k + 1.0) * twists[k + 1][i] for k in terms]) for i in range(6)]
            rates = [*of_base, *rates]
        of_tree = regressor(tree, rates, self._screws)
        F = self.distribution(moved, self.terms)
        drives = _driven(self, F)
        by_joint = np.linalg.norm(self.coupling_matrix * self.scale, axis=1)  # what they are measured in
        sizes = by_joint[list(closure.driven)].tolist()
        turns = closure.directions[:3].any(axis=0)  # of base or platform
        weights = np.where(turns, 1.0, closure.size).tolist() if closure.leader is not None else []
        of_joints = by_joint[list(closure.joints)].tolist()
        if closure.base_given:
            drives = [*([column[i] for column in F] for i in range(6)), *drives]
            sizes, weights = [*weights, *sizes], [*weights, *of_joints]
        else:
            weights = [*of_joints, *weights]
        if len(sizes) > len(weights):  # all weigh the same
            sizes = [max(sizes)] * len(sizes)
        balance = [
            [drive[h] * (weight / size) for drive, size in zip(drives, sizes)]
            for h, weight in enumerate(weights)
        ]
        system = SeriesSystem(balance, self.terms)
        columns = []
        for forces in zip(*of_tree):
            acting = [weight * dot(column, forces) for weight, column in zip(weights, F)]
            result = system.solve([[coefficient(x, k) for x in acting] for k in terms])
            columns.append([[x * (factorial(k) / s) for x, s in zip(result[k], sizes)] for k in terms])
        rows = [[column[k][i] for column in columns] for k in terms for i in range(closure.n_efforts)]
        return rows, system.singularity
