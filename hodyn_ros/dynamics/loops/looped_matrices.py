"""Mass and Coriolis matrix and gravity of robots with couplings and loops, in their independent coordinates.

With `z' = F y'` and those of the tree, `M_y = F^T M F`, `C_y = F^T (C F + M F')` and `g_y = F^T g`, each with
time derivatives by the product rule (Mueller et al., eqs. 10 and 11, for limbs of a platform). `M_y' - 2 C_y`
is skew, as it is for the tree.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.matrices import DynamicMatrices, JacobianFrame
from hodyn_ros.dynamics.matrix_calls import MatrixCalls
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion, adjoint_derivatives, wrenches_to_body, wrenches_to_world
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.tree import TreeModel


class TreeMatrices(MatrixCalls):
    """The matrices of a tree, whatever its bodies weigh."""

    def __init__(self, model: TreeModel, frames: Mapping[str, Frame]) -> None:
        self.model = model
        self.frames = frames

    def _accelerations(self, state: Array, torques: Array, base: BaseMotion | None) -> Array:
        raise NotImplementedError


def looped_matrices(
    looped: LoopedDynamics, tree: TreeMatrices, y: Array, given: BaseMotion | None, rates: int
) -> DynamicMatrices:
    """Compute the matrices by order for a motion y (order + 1 + rates, k), and that of platform or base.

    Without a rate (`rates` 0) no Coriolis matrix, which is left empty. Coordinates are in the order of the
    closure: the body-fixed twist of a prescribed base, joints, rows of a platform.
    """
    order = len(y) - 1 - rates
    moved, _ = looped.move(y, given)
    q, base = moved.joint_motion(), moved.base_motion
    F = _distribution(looped, moved, order + rates)
    Ft = [np.swapaxes(one, -1, -2) for one in F]
    mass, gravity = tree.mass_matrix(q[: order + 1], base), tree.gravity_torque(q[: order + 1], base)
    orders = range(order + 1)
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


def looped_regressor(looped: LoopedDynamics, tree: TreeMatrices, y: Array, given: BaseMotion | None) -> Array:
    """Compute Y (order + 1, efforts, 10 bodies) for y (order + 3, k): efforts are linear in the parameters.

    The wrench on a prescribed base, whose rows come first, is body-fixed. Redundant drives have least norm.
    """
    closure = looped.closure
    moved, margins = looped.move(y, given)
    looped.check_held(margins[1])
    base = moved.base_motion
    of_tree = tree.regressor(moved.joint_motion(), base)
    if base is not None:
        twists = base.in_frame("body").twists
        pushes = wrenches_to_world(base.pose, twists, np.swapaxes(of_tree[:, :6], 1, 2))
        of_tree = np.concatenate([np.swapaxes(pushes, 1, 2), of_tree[:, 6:]], axis=1)
    reduced = np.moveaxis(np.tensordot(of_tree, closure.spread, (1, 0)), -1, 1)
    found = embedding.forces(closure, looped.independence.rows, moved, reduced).efforts
    if base is None or not closure.base_given:
        return found
    pushes = wrenches_to_body(base.pose, twists, np.swapaxes(found[:, :6], 1, 2))
    return np.concatenate([np.swapaxes(pushes, 1, 2), found[:, 6:]], axis=1)


def looped_jacobian(
    looped: LoopedDynamics,
    tree: TreeMatrices,
    y: Array,
    given: BaseMotion | None,
    body: str | int,
    frame: JacobianFrame,
) -> Array:
    """Compute the Jacobian (order + 1, 6, coordinates) of a body or named frame, for y (order + 1, k)."""
    moved, _ = looped.move(y, given)
    F = _distribution(looped, moved, len(y) - 1)
    of_tree = tree.jacobian(moved.joint_motion(), body, frame, moved.base_motion)
    return np.array([product_derivative(of_tree, F, k, np.matmul) for k in range(len(y))])


def looped_drive_jacobian(looped: LoopedDynamics, y: Array, given: BaseMotion | None) -> Array:
    """Compute the derivatives of the driven joints by the coordinates, (order + 1, driven, coordinates)."""
    closure = looped.closure
    moved, _ = looped.move(y, given)
    drives = [closure.first + joint for joint in closure.driven]
    return np.array([one[drives] for one in _distribution(looped, moved, len(y) - 1)])


def _distribution(looped: LoopedDynamics, moved: LoopMotion, order: int) -> list[Array]:
    """Return F by order, from the coordinates to all velocities of the tree, twists of a base body-fixed."""
    closure = looped.closure
    F = [closure.spread @ one for one in embedding.distribution(looped.independence.rows, moved, order)]
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
