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
from hodyn_ros.codegen.sample_loop import SampleLoop, each_sample, one_by_one
from hodyn_ros.dynamics.calls.matrices import MatrixCalls
from hodyn_ros.dynamics.loops.coordinate_motion import coordinate_motions, sample_of
from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.operations import PRODUCTS, RATES
from hodyn_ros.dynamics.regressors import by_parameter
from hodyn_ros.engine.loops.loop_kernel import LoopProduct, TooLong, compiles
from hodyn_ros.engine.loops.loop_matrices import MATRICES
from hodyn_ros.engine.loops.loop_products import FrameJacobian, FrameMotion
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, adjoint_derivatives, wrenches_to_body, wrenches_to_world
from hodyn_ros.lie.representations import Representation, check_representation, convert_screws
from hodyn_ros.lie.se3 import Array, matvec
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.tree import TreeModel


class TreeMatrices(MatrixCalls):
    """The matrices of a tree, whatever its bodies weigh."""

    def __init__(self, tree: TreeModel, frames: Mapping[str, Frame]) -> None:
        self._tree, self._frames, self._looped = tree, frames, None

    @property
    def model(self) -> TreeModel:
        """The tree of bodies."""
        return self._tree

    tree = model

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Named frames besides those of the bodies."""
        return self._frames


class LoopedMatrices(LoopedMotion):
    """Matrices in the independent coordinates.

    These are in the order of the closure: the body-fixed twist of a prescribed base, joints, rows of a
    platform.
    """

    @cached_property
    def tree_matrices(self) -> TreeMatrices:
        """The matrices of the tree."""
        return TreeMatrices(self.closure.tree, self.frames)

    def computed(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any) -> Any:
        """Compute what the call of `Robot` of that name returns."""
        found = self._quickly(name, q, base, others) if name in PRODUCTS else None
        return self._carefully(name, q, base, *others) if found is None else found

    def _quickly(
        self, name: str, q: ArrayLike | None, base: BaseMotion | None, others: tuple[Any, ...]
    ) -> Array | None:
        """Compute a product that is compiled from a motion as compiled code takes it, or return None."""
        moves = type(base) is BaseMotion
        if moves != (self.closure.leader is not None) or (
            base and (base.representation != "spatial" or base.batch)
        ):
            return None
        if q is None and base:
            q = np.zeros((len(base.twists) + 1, 0))
        if type(q) is not np.ndarray or q.ndim != 2 or q.shape[1] != len(self.closure.joints):
            return None
        twists = len(q) - 1
        if base and len(base.twists) < twists:
            return None
        loop = self._product_loops.get((name, twists - RATES[name], *others))
        if loop is None:
            return None
        return self._product(loop, q, *((base.pose, base.twists[:twists]) if base else ()))

    @finite_result
    def _carefully(self, name: str, q: ArrayLike | None, base: BaseMotion | None, *others: Any) -> Any:
        count, y, given = coordinate_motions(self.closure, q, base, RATES[name])
        if count:
            return self._of_samples(name, count, y, given, others)
        order = len(y) - 1 - RATES[name]
        loop = self.product_loop(name, order, *others) if name in PRODUCTS else None
        if loop is not None:
            motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: len(y) - 1])]
            found = self._product(loop, y, *motion)
            if found is not None:
                return found
        if name not in MATRICES:
            return getattr(self, name)(y, given, *others)
        matrices = self._matrices(y, given, RATES[name])
        parts = {"mass_matrix": matrices.mass, "coriolis_matrix": matrices.coriolis}
        return parts.get(name, matrices.gravity)

    def _of_samples(
        self, name: str, count: int, y: Array, given: BaseMotion | None, others: tuple[Any, ...]
    ) -> Any:
        """Compute a batch, each sample on the branch of the one before: in lanes, or one by one."""
        if name == "dynamic_matrices":
            parts = [
                self._of_samples(what, count, y[:, : y.shape[1] - 1 + RATES[what]], given, ())
                for what in MATRICES
            ]
            return DynamicMatrices(*parts)

        def alone(i: int) -> Any:
            own = [one[i] if np.ndim(one) == 3 else one for one in others]
            return self.computed(name, np.ascontiguousarray(y[i]), sample_of(given, i), *own)

        if name == "parameter_derivatives":
            return DynamicMatrices(*map(np.array, zip(*each_sample(count, alone))))
        order = y.shape[1] - 1 - RATES[name]
        loop = self.product_loop(name, order, *others) if name in PRODUCTS else None
        if loop is None:
            if name == "com":
                return self.tree_matrices.com(*self.joint_motion_of_samples(count, y, given))
            return one_by_one(count, alone)
        columns = loop.call.shape[-1]
        motion = [] if given is None else [given.pose, given.twists[..., : y.shape[1] - 1, :]]
        found = loop.run(count, [y, *motion], self.memory, lambda i: alone(i).reshape(-1, columns))
        return found.reshape(count, order + 1, *loop.call.shape)

    def product_loop(self, name: str, order: int, *others: Any) -> SampleLoop[LoopProduct] | None:
        """Return the compiled code of what the call of that name returns, if there is any."""
        key = name, order, *others
        if key not in self._product_loops:
            what: Any = name
            if name == "jacobian":
                frame = find_frame(self.closure.tree, self.frames, others[0])
                check_representation(others[1])
                what = FrameJacobian(frame, others[1])
            if name == "forward_kinematics":
                frames = [find_frame(self.closure.tree, self.frames, one) for one in others[0]]
                what = FrameMotion(frames, others[1])
            self._product_loops[key] = None
            if compiles(self.closure, order):
                with suppress(TooLong):
                    made = LoopProduct(self.closure, self.independence.given, order, what)
                    self._product_loops[key] = SampleLoop(made)
        return self._product_loops[key]

    def _product(self, loop: SampleLoop[LoopProduct], *motion: Array) -> Array | None:
        """Compute what compiled code does, (order + 1, ...), if it can."""
        table: Array = loop.call.function(*motion, self.memory)
        return table[:-1].reshape(-1, *loop.call.shape) if table.item(loop.call.bad) < 1.0 else None

    def dynamic_matrices(self, y: Array, given: BaseMotion | None) -> DynamicMatrices:
        """Compute the matrices by order for y (order + 2, k), and the motion of platform or base."""
        order = len(y) - 2
        if any(self.product_loop(name, order) is None for name in MATRICES):
            return self._matrices(y, given, 1)
        return DynamicMatrices(
            *(self.computed(name, y[: order + 1 + RATES[name]], given) for name in MATRICES)
        )

    def compile_matrices(self, order: int) -> None:
        """Compile the matrices of one order, however long that takes."""
        for name in MATRICES:
            made = LoopProduct(self.closure, self.independence.given, order, name, float("inf"))
            self._product_loops[name, order] = SampleLoop(made)

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
            twists = base.in_representation("body_fixed").twists
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
        loop = self.product_loop("parameter_derivatives", len(y) - 2)
        if loop is not None:
            motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: len(y) - 1])]
            rows = self._product(loop, y, *motion)
            if rows is not None:
                return by_parameter(rows)
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
        loop = self.product_loop("slotine_li_regressor", len(y) - 2)
        if loop is not None:
            motion = [] if given is None else [given.pose, np.ascontiguousarray(given.twists[: len(y) - 1])]
            found = self._product(loop, y, *motion, np.ascontiguousarray(rates))
            if found is not None:
                return found
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
            rates = finite_array("the reference", joints, (orders + 1, k))[1:]
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

    def jacobian(
        self, y: Array, given: BaseMotion | None, body: str | int, representation: Representation
    ) -> Array:
        """Compute the Jacobian (order + 1, 6, coordinates) of a body or named frame, y (order + 1, k)."""

        def of_tree(q: Array, base: BaseMotion | None) -> Array:
            return self.tree_matrices.jacobian(q, base, body=body, representation=representation)

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
            adjoints = adjoint_derivatives(base.pose, base.in_representation("body_fixed").twists, order)
            given = [one[:, :6] for one in F]
            F = [
                np.concatenate([product_derivative(given, adjoints, k, np.matmul), one[:, 6:]], axis=1)
                for k, one in enumerate(F)
            ]
        columns = np.array([one[:6].T for one in F])
        twists = np.array(base.twists)[:, None, :]
        turned = convert_screws(columns, base.pose, twists, "spatial", "body_fixed")
        return [np.concatenate([turned[k].T, one[6:]]) for k, one in enumerate(F)]


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
