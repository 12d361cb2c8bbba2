"""Mass and Coriolis matrix and gravity of robots with couplings and loops, in their independent coordinates.

With `z' = F y'` and those of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, each with
time derivatives by the product rule (Mueller et al., eqs. 10 and 11, for limbs of a platform). `M_y' - 2 C_y`
is skew, as it is for the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motion
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.matrices import DynamicMatrices, JacobianFrame
from hodyn_ros.engine.loops.loop_kernel import LoopMatrix, TooLong, compiles
from hodyn_ros.engine.loops.loop_matrices import Part
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, adjoint_derivatives, wrenches_to_body, wrenches_to_world
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.tree import TreeModel

PARTS: dict[str, Part] = {"mass_matrix": "mass", "coriolis_matrix": "coriolis", "gravity_torque": "gravity"}


class TreeMatrices(MatrixCalls):
    """The matrices of a tree, whatever its bodies weigh."""

    def __init__(self, tree: TreeModel, frames: Mapping[str, Frame]) -> None:
        self._tree, self.frames, self._looped = tree, frames, None

    @property
    def model(self) -> TreeModel:
        """The tree of bodies."""
        return self._tree

    tree = model


class LoopedMatrices(LoopedMotion):
    """Matrices in the independent coordinates.

    These are in the order of the closure: the body-fixed twist of a prescribed base, joints, rows of a
    platform.
    """

    @cached_property
    def tree_matrices(self) -> TreeMatrices:
        """The matrices of the tree."""
        return TreeMatrices(self.closure.tree, self.frames)

    @finite_result
    def computed(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any) -> Array:
        """Compute what the call of `Robot` of that name returns."""
        rates = {"coriolis_matrix": 1, "regressor": 2}.get(name, 0)
        y, given = coordinate_motion(self.closure, q, base, rates)
        if name == "com":
            return self.tree_matrices.com(*self.joint_motion(y, given))
        if name == "jacobian":
            return self.jacobian(y, given, *others)
        if name == "regressor":
            return self.regressor(y, given)
        compiled = self.matrix(PARTS[name], y, given)
        if compiled is not None:
            return compiled
        found = self.dynamic_matrices(y, given, rates)
        parts = {"mass_matrix": found.mass, "coriolis_matrix": found.coriolis}
        return parts.get(name, found.gravity)

    def dynamic_matrices(self, y: Array, given: BaseMotion | None, rates: int) -> DynamicMatrices:
        """Compute the matrices by order for y (order + 1 + rates, k), and the motion of platform or base.

        Without a rate (`rates` 0) no Coriolis matrix, which is left empty.
        """
        order = len(y) - 1 - rates
        moved, _ = self.move(y, given)
        q, base = moved.joint_motion(), moved.base_motion
        F = self._distribution(moved, order + rates)
        Ft = [np.swapaxes(one, -1, -2) for one in F]
        tree, orders = self.tree_matrices, range(order + 1)
        mass, gravity = tree.mass_matrix(q[: order + 1], base), tree.gravity_torque(q[: order + 1], base)
        carried = [product_derivative(mass, F, k, np.matmul) for k in orders]
        result = [product_derivative(Ft, carried, k, np.matmul) for k in orders]
        held = [product_derivative(Ft, gravity, k, np.matmul) for k in orders]
        if not rates:
            return DynamicMatrices(np.array(result), np.zeros((0, *result[0].shape)), np.array(held))
        coriolis = tree.coriolis_matrix(q, base)
        turned = [
            product_derivative(coriolis, F, k, np.matmul) + product_derivative(mass, F[1:], k, np.matmul)
            for k in orders
        ]
        bent = [product_derivative(Ft, turned, k, np.matmul) for k in orders]
        return DynamicMatrices(np.array(result), np.array(bent), np.array(held))

    def regressor(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute Y (order + 1, efforts, 10 bodies), efforts being linear in parameters; y (order + 3, k).

        The wrench on a prescribed base, whose rows come first, is body-fixed. Redundant drives have least
        norm.
        """
        closure = self.closure
        moved, margins = self.move(y, given)
        self.check_held(margins[1])
        base = moved.base_motion
        of_tree = self.tree_matrices.regressor(moved.joint_motion(), base)
        if base is not None:
            twists = base.in_frame("body").twists
            pushes = wrenches_to_world(base.pose, twists, np.swapaxes(of_tree[:, :6], 1, 2))
            of_tree = np.concatenate([np.swapaxes(pushes, 1, 2), of_tree[:, 6:]], axis=1)
        reduced = np.moveaxis(np.tensordot(of_tree, closure.spread, (1, 0)), -1, 1)
        found = embedding.forces(closure, self.independence.rows, moved, reduced).efforts
        if base is None or not closure.base_given:
            return found
        pushes = wrenches_to_body(base.pose, twists, np.swapaxes(found[:, :6], 1, 2))
        return np.concatenate([np.swapaxes(pushes, 1, 2), found[:, 6:]], axis=1)

    def jacobian(self, y: Array, given: BaseMotion | None, body: str | int, frame: JacobianFrame) -> Array:
        """Compute the Jacobian (order + 1, 6, coordinates) of a body or named frame, y (order + 1, k)."""
        moved, _ = self.move(y, given)
        F = self._distribution(moved, len(y) - 1)
        of_tree = self.tree_matrices.jacobian(moved.joint_motion(), body, frame, moved.base_motion)
        return np.array([product_derivative(of_tree, F, k, np.matmul) for k in range(len(y))])

    def drive_jacobian(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute what the driven joints move by the coordinates, (order + 1, driven, coordinates)."""
        closure = self.closure
        moved, _ = self.move(y, given)
        drives = [closure.first + joint for joint in closure.driven]
        return np.array([one[drives] for one in self._distribution(moved, len(y) - 1)])

    def _distribution(self, moved: LoopMotion, order: int) -> list[Array]:
        """Return F by order, to all velocities of the tree, the twist of a base body-fixed."""
        closure = self.closure
        F = [closure.spread @ one for one in embedding.distribution(self.independence.rows, moved, order)]
        if not closure.first:
            return F
        base = moved.base_motion
        assert base is not None
        if closure.base_given:
            adjoints = adjoint_derivatives(base.pose, base.in_frame("body").twists, order)
            given = [one[:, :6] for one in F]
            F = [
                np.concatenate([product_derivative(given, adjoints, k, np.matmul), one[:, 6:]], axis=1)
                for k, one in enumerate(F)
            ]
        columns = np.array([one[:6].T for one in F])
        twists = np.array(base.twists)[:, None, :]
        turned = convert_screws(columns, base.pose, twists, "spatial", "body_fixed")
        return [np.concatenate([turned[k].T, one[6:]]) for k, one in enumerate(F)]

    def matrix(self, part: Part, y: Array, given: BaseMotion | None) -> Array | None:
        """Compute a matrix by order (order + 1, c, c), or gravity (order + 1, c), if it can be compiled.

        `y` (order + 1, k), one row more for the Coriolis matrix; `given`: with spatial twists.
        """
        order = len(y) - 1 - (part == "coriolis")
        motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: len(y) - 1])]
        result = self.matrix_rows(part, order, np.ascontiguousarray(y), *motion)
        if result is None:
            return None
        size = self.closure.n_coordinates
        return result.reshape((order + 1, size) if part == "gravity" else (order + 1, size, size))

    def matrix_rows(self, part: Part, order: int, *motion: Array) -> Array | None:
        """Compute what `LoopMatrix` returns but for its last row, if it can be compiled and found."""
        key = part, order
        if key not in self._matrix_kernels:
            self._matrix_kernels[key] = self._matrix_kernel(part, order)
        kernel = self._matrix_kernels[key]
        if kernel is None:
            return None
        result = kernel.function(*motion, self.memory)
        return result[:-1] if result.item(kernel.bad) < 1.0 else None

    def _matrix_kernel(self, part: Part, order: int) -> LoopMatrix | None:
        if not compiles(self.closure, order):
            return None
        try:
            return LoopMatrix(self.closure, self.independence.given, order, part)
        except TooLong:
            return None
