"""The centre of mass of a robot and its momentum about it, with their time derivatives."""

from __future__ import annotations

from hodyn_ros.dynamics.matrices import body_jacobians
from hodyn_ros.dynamics.motion_stack import MotionStack, in_place
from hodyn_ros.formulations import dynamic_matrices
from hodyn_ros.model.tree import TreeModel
from hodyn_ros.se3 import Array


def com(model: TreeModel, stack: MotionStack) -> Array:
    """Return the centre of mass (order + 1, 3) in the world [m]."""
    return in_place(dynamic_matrices.com_positions(body_jacobians(model, stack), stack.order), stack.batch)


def com_jacobian(model: TreeModel, stack: MotionStack) -> Array:
    """Return the Jacobian (order + 1, 3, m) of the centre of mass in world axes."""
    return in_place(dynamic_matrices.com_jacobians(body_jacobians(model, stack), stack.order), stack.batch)


def centroidal_momentum(model: TreeModel, stack: MotionStack) -> Array:
    """Return the momentum (order + 1, 6) about the centre of mass in world axes, angular part first."""
    bodies = body_jacobians(model, stack)
    return in_place(dynamic_matrices.centroidal_momenta(bodies, stack.order), stack.batch)


def centroidal_momentum_matrix(model: TreeModel, stack: MotionStack) -> Array:
    """Return the matrix (order + 1, 6, m) that takes velocities to the centroidal momentum."""
    bodies = body_jacobians(model, stack)
    return in_place(dynamic_matrices.centroidal_matrices(bodies, stack.order), stack.batch)
