"""A parallel robot in coordinates of its platform: exponential ones, from the home pose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hodyn_ros.errors import ConvergenceError, InputError
from hodyn_ros.exponential import body_twists, coordinate_rates, differential
from hodyn_ros.jets import Array
from hodyn_ros.motion import BaseMotion
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.se3 import exp, inverse, log

_ITERATIONS = 30
_PRECISION = 1e-12  # of the step, in the unit of the coordinates


class DriveMotion(NamedTuple):
    """What the drives do for a motion of the platform, by derivative order."""

    positions: Array  # (order + 3, driven) link side [rad or m]
    forces: Array  # (order + 1, driven) [N.m or N]


class PlatformCoordinates:
    """Coordinates x (delta,) of a platform, `C = C_home exp(P x)` with the columns of `platform_dof` in P.

    These twists form a Lie algebra, so that x reaches every pose of the platform up to a full turn, and is a
    flat output of it. Where the platform only translates, x are the distances [m] from the home pose. With
    fewer freedoms than drives, the forces have a part that moves nothing. Raises InputError for drives that
    are missing or rigid.
    """

    def __init__(self, robot: ParallelRobot) -> None:
        if robot.actuation is None or not robot.actuation.elastic.all():
            raise InputError(
                f"all drives of robot {robot.name!r} must have springs, linear and without friction"
            )
        self.robot = robot
        self.springs = robot.actuation
        self._dof = robot.model.dof
        self._inverse_dof = np.linalg.pinv(robot.model.dof)

    @property
    def n_dof(self) -> int:
        """Number of coordinates delta."""
        return self.robot.n_dof

    def pose(self, x: Array) -> Array:
        """Return the pose (4, 4) of the platform in the world."""
        place: Array = self.robot.home_pose @ exp(self._dof @ x)
        return place

    def twists(self, motion: Array) -> Array:
        """Return the body-fixed twists (orders, 6) of x and its derivatives (orders + 1, delta)."""
        return body_twists(motion @ self._dof.T)

    def rates(self, x: Array, twists: Array) -> Array:
        """Return x', x'', ... (orders, delta) from body-fixed twists (orders, 6)."""
        found: Array = coordinate_rates(self._dof @ x, twists) @ self._inverse_dof.T
        return found

    def motion(self, platform: BaseMotion) -> Array:
        """Return x and its derivatives (orders + 1, delta) from pose and twists of the platform.

        For poses within half a turn of the home pose, where x is unique.
        """
        x = self._inverse_dof @ log(inverse(self.robot.home_pose) @ platform.pose)
        return np.concatenate([x[None], self.rates(x, platform.in_frame("body").twists)])

    def drives(self, motion: Array, preload: Array | None = None) -> DriveMotion:
        """Return motion and forces of the drives from x and its derivatives (order + 3, delta).

        `preload` (order + 1, driven): the forces come as near to it as the motion allows.
        """
        found = self.robot.solve(self.pose(motion[0]), self.twists(motion), preload=preload)
        return DriveMotion(found.motion, found.forces)

    def jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the drive positions (driven,) and their derivatives by x (driven, delta)."""
        pose, motions = self.pose(x), np.zeros((self.n_dof, 2, 6))
        motions[:, 0] = self._directions(x).T
        found = [self.robot.solve(pose, twists).motion for twists in motions]
        return found[0][0], np.stack([motion[1] for motion in found], axis=1)

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
            f"no pose of the platform fits the drive positions {drives}; the last step was {distance:g} m or "
            "rad",
            0.0,
            distance,
        )

    def acceleration(self, x: Array, velocity: Array, forces: Array) -> Array:
        """Return x'' (delta,) under forces (driven,) of the drives: `M x'' = J^T (u - u_0)`."""
        pose, (_, jacobian) = self.pose(x), self.jacobian(x)
        twists = self.twists(np.stack([x, velocity, np.zeros(self.n_dof)]))
        bias = self.robot.inverse_dynamics(pose, twists)[0]
        needed = [
            self.robot.inverse_dynamics(pose, np.stack([twists[0], twists[1] + direction]))[0] - bias
            for direction in self._directions(x).T
        ]
        mass = jacobian.T @ np.stack(needed, axis=1)
        acceleration: Array = np.linalg.solve(mass, jacobian.T @ (forces - bias))
        return acceleration

    def _directions(self, x: Array) -> Array:
        """Return the body-fixed twists (6, delta) of unit rates of x."""
        directions: Array = differential(self._dof @ x) @ self._dof
        return directions
