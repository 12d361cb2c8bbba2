"""The equations of motion of a parallel robot with series elastic drives."""

from __future__ import annotations

import numpy as np

from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.platform_coordinates import PlatformCoordinates
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot


class ParallelPlant:
    """Platform and motors: `M x'' + c = J^T u`, `u = K (theta - q_a)`, `B theta'' = tau - u`.

    The state is `(x, x', theta, theta')` flat, with the `PlatformCoordinates` x.
    """

    def __init__(self, robot: ParallelRobot) -> None:
        self.platform = PlatformCoordinates(robot)
        self.robot = robot

    @property
    def size(self) -> int:
        """Length of a state."""
        return 2 * (self.robot.n_dof + self.robot.n_driven)

    def consistent_state(self, motion: Array) -> Array:
        """Return the state from which the robot can follow x with derivatives (5, delta) at once."""
        drives = self.platform.drives(motion)
        theta = self.platform.springs.motor_position(drives.positions, drives.forces)
        return np.concatenate([motion[0], motion[1], theta[0], theta[1]])

    def split(self, state: Array) -> tuple[Array, Array, Array, Array]:
        """Return x, x' (delta,) and theta, theta' (driven,)."""
        d, n = self.robot.n_dof, self.robot.n_driven
        return state[:d], state[d : 2 * d], state[2 * d : 2 * d + n], state[2 * d + n :]

    def unpack(self, state: Array) -> Measurement:
        """Return what exact sensors at the drives show."""
        x, velocity, theta, speed = self.split(state)
        positions, jacobian = self.platform.jacobian(x)
        return Measurement(positions, jacobian @ velocity, theta, speed)

    def rates(self, state: Array, effort: Array) -> Array:
        """Return the time derivative (size,) of a state under motor efforts (driven,)."""
        x, velocity, theta, speed = self.split(state)
        springs = self.platform.springs
        positions, _ = self.platform.jacobian(x)
        forces = springs.stiffness * (theta - positions)
        acceleration = self.platform.acceleration(x, velocity, forces)
        return np.concatenate([velocity, acceleration, speed, (effort - forces) / springs.motor_inertia])
