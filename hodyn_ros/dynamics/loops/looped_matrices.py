"""Mass and Coriolis matrix and gravity of robots with couplings and loops, in their independent coordinates.

With `z' = F y'` and those of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, each with
time derivatives by the product rule (Mueller et al., eqs. 10 and 11, for limbs of a platform). `M_y' - 2 C_y`
is skew, as it is for the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array, finite_result
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motions, sample_of
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.matrices import DynamicMatrices, JacobianFrame
from hodyn_ros.dynamics.motion_stack import given
from hodyn_ros.engine.codegen.sample_loop import SampleLoop, each_sample, one_by_one
from hodyn_ros.engine.loops.loop_kernel import LoopMatrix, TooLong, compiles
from hodyn_ros.engine.loops.loop_matrices import Part
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, adjoint_derivatives, wrenches_to_body, wrenches_to_world
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array, matvec
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.tree import TreeModel

PARTS: dict[str, Part] = {"mass_matrix": "mass", "coriolis_matrix": "coriolis", "gravity_torque": "gravity"}
RATES = {  # derivatives of the motion beyond the order of the result
    "coriolis_matrix": 1,
    "centroidal_momentum": 1,
    "dynamic_matrices": 1,
    "parameter_derivatives": 1,
    "regressor": 2,
}


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
    def computed(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any) -> Any:
        """Compute what the call of `Robot` of that name returns."""
        count, y, given = coordinate_motions(self.closure, q, base, RATES.get(name, 0))
        if count:
            return self._of_samples(name, count, y, given, others)
        if name not in PARTS:
            return getattr(self, name)(y, given, *others)
        compiled = self.matrix(PARTS[name], y, given)
        if compiled is not None:
            return compiled
        found = self._matrices(y, given, RATES.get(name, 0))
        parts = {"mass_matrix": found.mass, "coriolis_matrix": found.coriolis}
        return parts.get(name, found.gravity)

    def _of_samples(
        self, name: str, count: int, y: Array, given: BaseMotion | None, others: Sequence[Any]
    ) -> Any:
        """Compute a batch, each sample on the branch of the one before: in lanes, or one by one."""
        if name == "com":
            return self.tree_matrices.com(*self.joint_motion_of_samples(count, y, given))
        if name == "dynamic_matrices":
            parts = [
                self._of_samples(what, count, y[:, : y.shape[1] - 1 + RATES.get(what, 0)], given, ())
                for what in PARTS
            ]
            return DynamicMatrices(*parts)

        def alone(i: int) -> Any:
            own = [one[i] if np.ndim(one) == 3 else one for one in others]
            return self.computed(name, np.ascontiguousarray(y[i]), sample_of(given, i), *own)

        if name == "parameter_derivatives":
            return DynamicMatrices(*map(np.array, zip(*each_sample(count, alone))))
        order = y.shape[1] - 1 - RATES.get(name, 0)
        loop = self._matrix_loop(PARTS[name], order) if name in PARTS else None
        if loop is None:
            return one_by_one(count, alone)
        size = self.closure.n_coordinates
        motion = [] if given is None else [given.pose, given.twists[..., : y.shape[1] - 1, :]]
        found = loop.run(count, [y, *motion], self.memory, lambda i: alone(i).reshape(-1, size))
        return found.reshape(count, order + 1, *((size,) if name == "gravity_torque" else (size, size)))

    def dynamic_matrices(self, y: Array, given: BaseMotion | None) -> DynamicMatrices:
        """Compute the matrices by order for y (order + 2, k), and the motion of platform or base."""
        compiled = [self.matrix(part, y[: len(y) - (part != "coriolis")], given) for part in PARTS.values()]
        if all(part is not None for part in compiled):
            return DynamicMatrices(*compiled)  # type: ignore[arg-type]
        return self._matrices(y, given, 1)

    def compile_matrices(self, order: int) -> None:
        """Compile the matrices of one order, however long that takes."""
        for part in PARTS.values():
            made = LoopMatrix(self.closure, self.independence.given, order, part, float("inf"))
            self._matrix_loops[part, order] = SampleLoop(made)

    def com(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute the centre of mass (order + 1, 3) in the world, y (order + 1, k)."""
        return self.tree_matrices.com(*self.joint_motion(y, given))

    def _matrices(self, y: Array, given: BaseMotion | None, rates: int) -> DynamicMatrices:
        """Compute the matrices by order for y (order + 1 + rates, k) in NumPy.

        Without a rate (`rates` 0) no Coriolis matrix, which is left empty.
        """
        order = len(y) - 1 - rates
        moved, F = self._moved(y, given)
        q, base, tree = moved.joint_motion(), moved.base_motion, self.tree_matrices
        mass, gravity = tree.mass_matrix(q[: order + 1], base), tree.gravity_torque(q[: order + 1], base)
        coriolis = tree.coriolis_matrix(q, base) if rates else np.zeros((0, *mass.shape[1:]))
        return _in_coordinates(DynamicMatrices(mass, coriolis, gravity), F)

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

    def com_jacobian(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute the Jacobian (order + 1, 3, coordinates) of the centre of mass, y (order + 1, k)."""
        return self._of_velocities(self.tree_matrices.com_jacobian, y, given)

    def centroidal_momentum_matrix(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute the matrix (order + 1, 6, coordinates) of the centroidal momentum, y (order + 1, k)."""
        return self._of_velocities(self.tree_matrices.centroidal_momentum_matrix, y, given)

    def centroidal_momentum(self, y: Array, given: BaseMotion | None) -> Array:
        """Compute the momentum (order + 1, 6) about the centre of mass, y (order + 2, k)."""
        return self.tree_matrices.centroidal_momentum(*self.joint_motion(y, given))

    def parameter_derivatives(self, y: Array, given: BaseMotion | None) -> DynamicMatrices:
        """Compute the derivatives of the matrices by every dynamic parameter, y (order + 2, k)."""
        moved, F = self._moved(y, given)
        found = self.tree_matrices.parameter_derivatives(moved.joint_motion(), moved.base_motion)
        return _in_coordinates(found, F)

    def slotine_li_regressor(
        self, y: Array, given: BaseMotion | None, reference: ArrayLike | None, twists: ArrayLike | None
    ) -> Array:
        """Compute Y with `M w' + C w + g = Y[0] @ dynamic_parameters()`, w the reference of the coordinates.

        `y` (order + 2, k); `reference` (order + 3, k), and `twists` (order + 2, 6) of base or platform.
        """
        rates = self._reference(len(y), reference, twists)
        moved, F = self._moved(y, given)
        first = self.closure.first
        speeds = np.array([product_derivative(F, rates, k, matvec) for k in range(len(y))])
        of_tree = self.tree_matrices.slotine_li_regressor(
            moved.joint_motion(),
            np.concatenate([np.zeros((1, speeds.shape[1] - first)), speeds[:, first:]]),
            moved.base_motion,
            speeds[:, :first] if first else None,
        )
        Ft = [np.swapaxes(one, 0, 1) for one in F]
        return np.array([product_derivative(Ft, of_tree, k, np.matmul) for k in range(len(y) - 1)])

    def _reference(self, orders: int, joints: ArrayLike | None, twists: ArrayLike | None) -> Array:
        """Return the velocities (orders, coordinates) of a reference by order."""
        closure, k = self.closure, len(self.closure.joints)
        rates = np.zeros((orders, 0))
        if k or joints is not None:
            rates = finite_array("the reference", given(joints), (orders + 1, k))[1:]
        if closure.leader is None:
            if twists is not None:
                raise InputError(
                    f"neither base nor platform moves robot {closure.tree.name!r} as prescribed; leave out "
                    "base_reference"
                )
            return rates
        if twists is None:
            raise InputError(
                f"base or platform of robot {closure.tree.name!r} moves as prescribed; give base_reference "
                f"({orders}, 6): body-fixed reference twists by order"
            )
        twists = finite_array("base_reference", twists, (orders, 6))
        if closure.base_given:
            return np.concatenate([twists, rates], axis=1)
        rows = np.linalg.lstsq(closure.directions, twists.T, rcond=None)[0].T
        return np.concatenate([rates, rows], axis=1)

    def _of_velocities(self, of_tree: Callable[..., Array], y: Array, given: BaseMotion | None) -> Array:
        """Compute what takes velocities of the coordinates to something from what takes those of the tree."""
        moved, F = self._moved(y, given)
        found = of_tree(moved.joint_motion(), moved.base_motion)
        return np.array([product_derivative(found, F, k, np.matmul) for k in range(len(y))])

    def _moved(self, y: Array, given: BaseMotion | None) -> tuple[LoopMotion, list[Array]]:
        """Return the motion of the tree, and F by order."""
        moved, _ = self.move(y, given)
        return moved, self._distribution(moved, len(y) - 1)

    def jacobian(self, y: Array, given: BaseMotion | None, body: str | int, frame: JacobianFrame) -> Array:
        """Compute the Jacobian (order + 1, 6, coordinates) of a body or named frame, y (order + 1, k)."""

        def of_tree(q: Array, base: BaseMotion | None) -> Array:
            return self.tree_matrices.jacobian(q, body, frame, base)

        return self._of_velocities(of_tree, y, given)

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
        loop = self._matrix_loop(part, order)
        if loop is None:
            return None
        result: Array = loop.call.function(*motion, self.memory)
        return result[:-1] if result.item(loop.call.bad) < 1.0 else None

    def _matrix_loop(self, part: Part, order: int) -> SampleLoop[LoopMatrix] | None:
        key = part, order
        if key not in self._matrix_loops:
            self._matrix_loops[key] = None
            if compiles(self.closure, order):
                with suppress(TooLong):
                    made = LoopMatrix(self.closure, self.independence.given, order, part)
                    self._matrix_loops[key] = SampleLoop(made)
        return self._matrix_loops[key]


def _in_coordinates(of_tree: DynamicMatrices, F: Sequence[Array]) -> DynamicMatrices:
    """Return `F^T M F`, `F^T (C F + M F')` and `F^T g` by order; matrices may have axes before their rows."""
    mass, coriolis, gravity = of_tree
    Ft = [one.T for one in F]

    def carried(values: Sequence[Array], product: Callable[[Array, Array], Array]) -> Array:
        return np.array([product_derivative(Ft, values, k, product) for k in range(len(values))])

    def times(values: Array, columns: Sequence[Array]) -> list[Array]:
        return [product_derivative(values, columns, k, np.matmul) for k in range(len(values))]

    turned = [a + b for a, b in zip(times(coriolis, F), times(mass, F[1:]))] if len(coriolis) else []
    empty = np.zeros((0, *mass.shape[1:-2], F[0].shape[1], F[0].shape[1]))
    return DynamicMatrices(
        carried(times(mass, F), np.matmul),
        carried(turned, np.matmul) if turned else empty,
        carried(list(gravity), matvec),
    )
