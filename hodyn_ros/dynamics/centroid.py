"""The centre of mass of a robot and its momentum about it, with their time derivatives."""

from __future__ import annotations

from hodyn_ros.dynamics.motion_stack import in_place
from hodyn_ros.formulations import dynamic_matrices as published
from hodyn_ros.formulations.body_jacobians import BodyJacobians
from hodyn_ros.lie.se3 import Array


def com(bodies: BodyJacobians, order: int) -> Array:
    """Return the centre of mass (order + 1, 3) in the world [m]."""
    return in_place(published.com_positions(bodies, order), bodies.batch)


def com_jacobian(bodies: BodyJacobians, order: int) -> Array:
    """Return the Jacobian (order + 1, 3, m) of the centre of mass in world axes."""
    return in_place(published.com_jacobians(bodies, order), bodies.batch)


def centroidal_momentum(bodies: BodyJacobians, order: int) -> Array:
    """Return the momentum (order + 1, 6) about the centre of mass in world axes, angular part first."""
    return in_place(published.centroidal_momenta(bodies, order), bodies.batch)


def centroidal_momentum_matrix(bodies: BodyJacobians, order: int) -> Array:
    """Return the matrix (order + 1, 6, m) that takes velocities to the centroidal momentum."""
    return in_place(published.centroidal_matrices(bodies, order), bodies.batch)
