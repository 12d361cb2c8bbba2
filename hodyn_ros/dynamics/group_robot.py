"""Robots with spherical, planar, free and other joints of one to six degrees of freedom, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, finite_result, real_array
from hodyn_ros.dynamics import matrices, partials
from hodyn_ros.dynamics.matrices import DynamicMatrices, MatrixDerivatives, by_parameter, parameter_rows
from hodyn_ros.dynamics.partials import LinearisedDynamics
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.formulations import dynamic_matrices as published
from hodyn_ros.formulations import parameters
from hodyn_ros.formulations.body_jacobians import BodyJacobians, JointMotion
from hodyn_ros.formulations.state_derivatives import assemble, respond
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.representations import Representation, check_representation
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.lie.se3 import Array, exp, log
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.joint_tree import JointTree

_IN_GROUP = 1e-9  # by which the pose of a joint may leave its group


class GroupRobot:
    """A tree of rigid bodies whose joints move in subgroups of SE(3), with matrices of any order.

    Where `Robot` takes a stack q, calls here take a `motion`: the poses that the joints have reached, and the
    group velocities of all joints (m of them) with their derivatives. They return as many orders as it
    determines, the order on axis 0, as the calls of the same names on `Robot`; forces are dual to the
    velocities. A floating base is a body on a `free` joint. In NumPy, by the formulas of Garofalo et al.
    (2013). Raises InputError saying what was expected and found.
    """

    def __init__(self, tree: JointTree) -> None:
        if not isinstance(tree, JointTree):
            raise InputError(f"tree must be a JointTree, as JointTree.build makes one; found {tree!r}")
        self.tree = tree

    @finite_result
    def motion(self, poses: ArrayLike, velocities: ArrayLike) -> JointMotion:
        """Check a motion: joint poses (bodies, 4, 4) and group velocities by order (orders, m).

        `tree.joint_poses` makes poses from coordinates. The pose of a joint must lie in its group.
        """
        m = self.tree.n_velocities
        values = finite_array("the joint poses", poses, (self.tree.n_bodies, 4, 4))
        rigid = [
            rigid_pose(f"the pose of the joint of body {name!r}", value)
            for name, value in zip(self.tree.body_names, values)
        ]
        for name, subspace, pose in zip(self.tree.body_names, self.tree.subspaces, rigid):
            if not _in_group(subspace, pose):
                raise InputError(f"the pose of the joint of body {name!r} cannot be reached by that joint")
        rates = real_array("the velocities", velocities, f"(orders, {m})")
        if rates.ndim != 2 or rates.shape[1] != m:
            raise ShapeError("the velocities", f"(orders, {m})", rates.shape)
        check_finite("the velocities", rates)
        return JointMotion(rigid, list(rates))

    def mass_matrix(self, motion: JointMotion) -> Array:
        """Compute the mass matrix, (order, m) velocities -> (order + 1, m, m)."""
        return self._by_law(published.mass_matrices, motion, 0)

    def coriolis_matrix(self, motion: JointMotion) -> Array:
        """Compute the Coriolis matrix, (order + 1, m) velocities -> (order + 1, m, m); `M' - 2 C` is skew."""
        return self._by_law(published.coriolis_matrices, motion, 1)

    def gravity_torque(self, motion: JointMotion) -> Array:
        """Compute what holds the robot against gravity, (order, m) velocities -> (order + 1, m)."""
        return self._by_law(published.gravity_forces, motion, 0)

    def dynamic_matrices(self, motion: JointMotion) -> DynamicMatrices:
        """Compute mass, Coriolis and gravity in one go, from (order + 1, m) velocities."""
        return matrices.in_parts(self._by_law(matrices.rows, motion, 1))

    @finite_result
    def inverse_dynamics(self, motion: JointMotion) -> Array:
        """Compute the forces of all joints and their derivatives, (order + 2, m) -> (order + 1, m)."""
        bodies, order = self._bodies(motion, 2)
        mass, coriolis, gravity = matrices.in_parts(matrices.by_order(matrices.rows, bodies, order))
        return np.stack(
            [
                product_derivative(mass, motion.velocities[1:], r)
                + product_derivative(coriolis, motion.velocities, r)
                + gravity[r]
                for r in range(order + 1)
            ]
        )

    @finite_result
    def coefficient_matrices(self, motion: JointMotion) -> Array:
        """Compute P with `Q^(r) - g^(r) = sum_k P[r, k] w^(k-1)` from (order + 1, m) velocities."""
        return matrices.coefficient_matrices(self.dynamic_matrices(motion))

    @finite_result
    def matrix_derivatives(self, motion: JointMotion) -> MatrixDerivatives:
        """Compute derivatives of M, C and g by displacement and velocity, from (order + 1, m) velocities."""
        return matrices.matrix_derivatives(*self._bodies(motion, 1))

    def jacobian(
        self, motion: JointMotion, body: str | int, representation: Representation = "spatial"
    ) -> Array:
        """Compute the Jacobian of a body, (order, m) velocities -> (order + 1, 6, m)."""
        check_representation(representation)
        place = Frame(self.tree.body_index(body), np.eye(4))
        return self._by_law(matrices.jacobian, motion, 0, place, representation)

    def com(self, motion: JointMotion) -> Array:
        """Compute the centre of mass in the world [m], (order, m) velocities -> (order + 1, 3)."""
        return self._by_law(published.com_positions, motion, 0)

    def com_jacobian(self, motion: JointMotion) -> Array:
        """Compute the Jacobian of the centre of mass, (order, m) velocities -> (order + 1, 3, m)."""
        return self._by_law(published.com_jacobians, motion, 0)

    def centroidal_momentum(self, motion: JointMotion) -> Array:
        """Compute the momentum about the centre of mass, (order + 1, m) velocities -> (order + 1, 6)."""
        return self._by_law(published.centroidal_momenta, motion, 1)

    def dynamic_parameters(self) -> Array:
        """Return the parameters (10 bodies,), as `Robot.dynamic_parameters`."""
        return parameters.dynamic_parameters(self.tree)

    def regressor(self, motion: JointMotion) -> Array:
        """Compute Y with `Q^(r) = Y[r] @ dynamic_parameters()` from (order + 2, m) velocities."""
        return self._by_law(parameters.regressors, motion, 2)

    @finite_result
    def slotine_li_regressor(self, motion: JointMotion, reference: ArrayLike) -> Array:
        """Compute Y with `M w_r' + C w_r + g = Y[0] @ dynamic_parameters()` and its derivatives.

        `motion` with (order + 1, m) velocities, `reference` (order + 2, m) velocities w_r by order.
        """
        bodies, order = self._bodies(motion, 1)
        rates = finite_array("the reference", reference, (order + 2, self.tree.n_velocities))
        return matrices.by_order(parameters.slotine_li_regressors, bodies, order, list(rates))

    def parameter_derivatives(self, motion: JointMotion) -> DynamicMatrices:
        """Compute the derivatives of M, C and g by every parameter from (order + 1, m) velocities."""
        return by_parameter(self._by_law(parameter_rows, motion, 1), self.tree.n_bodies)

    @finite_result
    def inverse_dynamics_derivatives(self, motion: JointMotion) -> Array:
        """Compute dQ^(r)/dx^(k), (order + 2, m) velocities -> (order + 1, order + 3, m, m).

        x^(0) are small displacements in the groups, along the screws of the moved bodies; x^(k) is derivative
        k - 1 of the velocities.
        """
        bodies, order = self._bodies(motion, 2)
        series = partials.closed_form_series(bodies, order)
        return assemble(series, partials.joint_brackets(self.tree, motion.velocities))

    @finite_result
    def linearised_dynamics(self, motion: JointMotion) -> LinearisedDynamics:
        """Linearise the dynamics at a motion, (2, m) velocities: the velocity and the acceleration.

        `dx' = A dx + B du` with x the small displacements in the groups, then the velocities, and u the
        forces on all m velocities. A (2 m, 2 m), B (2 m, m).
        """
        response = respond(self.inverse_dynamics_derivatives(motion)[:1, :3], ())[0]
        (bracket,) = partials.joint_brackets(self.tree, motion.velocities[:1])
        return partials.linearised(response[0], response[1], response[2], bracket)

    @finite_result
    def _by_law(
        self, law: Callable[..., Sequence[Array]], motion: JointMotion, rates: int, *of: Any
    ) -> Array:
        """Return what a published formula gives of a motion of `rates` velocities more than its order."""
        return matrices.by_order(law, *self._bodies(motion, rates), *of)

    def _bodies(self, motion: JointMotion, rates: int) -> tuple[BodyJacobians, int]:
        if not isinstance(motion, JointMotion):
            raise InputError(
                f"motion must be a JointMotion, as made by GroupRobot.motion; found {type(motion).__name__}"
            )
        if motion.order < rates:
            raise InputError(
                f"this needs {rates} velocities (the velocity and its derivatives), found {motion.order}"
            )
        return BodyJacobians(self.tree, motion), motion.order - rates


def _in_group(subspace: Array, pose: Array) -> bool:
    """Say whether a joint with screws (6, dof) reaches a pose (4, 4), by however many turns.

    The logarithm knows turns up to pi. Where a joint turns about one direction only and advances by turning,
    the advance says how far it has turned; that is taken back before the logarithm.
    """
    size = max(1.0, float(np.abs(pose[:3, 3]).max()))
    for way in (np.zeros(6), _advanced(subspace, pose)):
        displacement = log(pose @ exp(-way))
        inside = subspace @ np.linalg.lstsq(subspace, displacement, rcond=None)[0]
        if np.abs(displacement - inside).max() <= _IN_GROUP * size:
            return True
    return False


def _advanced(subspace: Array, pose: Array) -> Array:
    """Return the displacement (6,) of a joint with a pitch that goes as far along its axis as a pose."""
    directions, sizes, _ = np.linalg.svd(subspace[:3])
    if sizes[0] == 0.0 or (sizes[1:] > _IN_GROUP * sizes[0]).any():
        return np.zeros(6)
    axis = directions[:, 0]
    turn = subspace @ (np.linalg.pinv(subspace[:3]) @ axis)
    pitch = float(axis @ turn[3:])
    if abs(pitch) <= _IN_GROUP * float(np.abs(turn).max()):
        return np.zeros(6)
    advanced: Array = turn * (float(axis @ pose[:3, 3]) / pitch)
    return advanced
