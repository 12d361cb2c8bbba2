"""A parallel robot whose platform only translates, in coordinates of its translation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import ConvergenceError, InputError
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot

_ITERATIONS = 30
_PRECISION = 1e-12  # of the step, in the unit of the coordinates


class DriveMotion(NamedTuple):
    """What the drives do for a motion of the platform, by derivative order."""

    positions: Array  # (order + 3, driven) link side [rad]
    forces: Array  # (order + 1, driven) [N.m]


class TranslatingPlatform:
    """Coordinates x (delta,) [m] of a platform, from its home position, along the axes of its freedoms.

    Where a platform only translates these are a flat output with constant axes: derivatives of x are
    derivatives of the twist. With fewer freedoms than drives, the forces have a part that moves nothing.
    Raises InputError for a platform that turns, and for drives that are missing or rigid.
    """

    def __init__(self, robot: ParallelRobot) -> None:
        if robot.model.dof[:3].any():
            raise InputError(
                f"the platform of robot {robot.model.name!r} can turn; only platforms that translate have "
                "such coordinates"
            )
        if robot.actuation is None or not robot.actuation.elastic.all():
            raise InputError(
                f"all drives of robot {robot.model.name!r} must have springs, linear and without friction"
            )
        self.robot = robot
        self.springs = robot.actuation
        self._directions = robot.home_pose[:3, :3] @ robot.model.dof[3:]

    @property
    def n_dof(self) -> int:
        """Number of coordinates delta."""
        return self.robot.n_dof

    def pose(self, x: Array) -> Array:
        """Return the pose (4, 4) of the platform."""
        pose = self.robot.home_pose.copy()
        pose[:3, 3] += self._directions @ x
        return pose

    def twists(self, rates: Array) -> Array:
        """Return the body-fixed twists (orders, 6) of derivatives 1, 2, ... of x, (orders, delta)."""
        return np.ascontiguousarray(rates @ self.robot.model.dof.T)

    def rates(self, twists: Array) -> Array:
        """Return derivatives of x (orders, delta) from body-fixed twists (orders, 6)."""
        return self.least_squares(self.robot.model.dof, twists.T).T

    def drives(self, motion: Array, preload: Array | None = None) -> DriveMotion:
        """Return motion and forces of the drives from x and its derivatives (order + 3, delta).

        `preload` (order + 1, driven): the forces come as near to it as the motion allows.
        """
        found = self.robot.solve(self.pose(motion[0]), self.twists(motion[1:]), preload=preload)
        return DriveMotion(found.motion, found.forces)

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the drive positions (driven,) and their derivatives by x (driven, delta)."""
        pose = self.pose(x)
        columns = []
        for unit in np.eye(self.n_dof):
            found = self.robot.solve(pose, self.twists(np.stack([unit, np.zeros_like(unit)])))
            columns.append(found.motion[1])
        return np.asarray(found.motion[0]), np.stack(columns, axis=1)

    @staticmethod
    def least_squares(matrix: Array, values: Array) -> Array:
        """Return the x for which `matrix x` is nearest to `values`."""
        return np.asarray(np.linalg.lstsq(matrix, values, rcond=None)[0], dtype=np.float64)

    def locate(self, drives: Array, start: Array) -> Array:
        """Return x (delta,) nearest to drive positions (driven,) in the least squares, from a `start`.

        Measured positions of redundant drives contradict each other. Raises ConvergenceError.
        """
        x: Array = np.array(start, dtype=np.float64)
        for _ in range(_ITERATIONS):
            positions, jacobian = self.jacobian(x)
            step = self.least_squares(jacobian, drives - positions)
            x = x + step
            if np.abs(step).max() <= _PRECISION:
                return x
        distance = float(np.abs(step).max())
        raise ConvergenceError(
            f"no platform position fits the drive positions {drives}; the last step was {distance:g} m",
            0.0,
            distance,
        )

    def acceleration(self, x: Array, velocity: Array, forces: Array) -> Array:
        """Return x'' (delta,) under forces (driven,) of the drives: `M x'' = J^T (u - u_0)`."""
        pose = self.pose(x)
        _, jacobian = self.jacobian(x)
        zero = np.zeros(self.n_dof)
        bias = self.robot.inverse_dynamics(pose, self.twists(np.stack([velocity, zero])))[0]
        needed = [
            self.robot.inverse_dynamics(pose, self.twists(np.stack([velocity, unit])))[0] - bias
            for unit in np.eye(self.n_dof)
        ]
        mass = jacobian.T @ np.stack(needed, axis=1)
        acceleration: Array = np.linalg.solve(mass, jacobian.T @ (forces - bias))
        return acceleration
