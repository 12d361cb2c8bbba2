"""How well a motion shows the parameters of a robot: the condition of the weighted base regressor."""

from __future__ import annotations

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.base_parameters import base_parameters
from hodyn_ros.identification.torque_model import Motion, TorqueModel

_ROWS = 80  # random samples, from which the base parameters are found
_STEP = 1e-6  # of differences [rad, rad/s, rad/s^2]
_POWER = 4.0  # of the norms whose limit are the largest and the smallest eigenvalue


class Visibility:
    """Base parameters of a robot, and the condition of their rows, which are weighted.

    Efforts count as shares of their limits, where a joint has one. Each column is multiplied with the size
    that its parameter may have by the file: `TorqueModel.scales`, so with masses, masses times lengths, and
    so on. The condition is then without units, and alike of rows and of parameters.
    """

    def __init__(self, robot: Robot, at_motor: bool, highest_frequency: float) -> None:
        self.model, self.at_motor = TorqueModel(robot), at_motor
        limits = robot.limits
        effort = np.where(np.isfinite(limits.effort), limits.effort, 1.0)
        speed = np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        acceleration = np.where(
            np.isfinite(limits.acceleration), limits.acceleration, speed * highest_frequency
        )
        self.weights = 1.0 / effort
        scales = self.model.scales(0.1 * effort, speed, acceleration, 1.0)
        if not at_motor:  # of motors, torque sensors behind the springs say nothing
            scales[self.model.place(0)] = 0.0
        motion = self._anywhere(speed, acceleration)
        rows = self.model.columns(motion, at_motor) * self.weights[:, None]
        base = base_parameters(rows.reshape(-1, rows.shape[2]), scales, self.model.names, self.model.units)
        self.base = base
        self.chosen = np.array([int(np.flatnonzero(row == 1.0)[0]) for row in base.combination])
        self.scales = scales[self.chosen]

    def _anywhere(self, speed: Array, acceleration: Array) -> Motion:
        limits, n = self.model.robot.limits, self.model.n
        random = np.random.default_rng(0)
        low = np.where(np.isfinite(limits.position_lower), limits.position_lower, -np.pi)
        high = np.where(np.isfinite(limits.position_upper), limits.position_upper, np.pi)
        q = random.uniform(low, high, (_ROWS, n))
        v, a = (size * random.uniform(-1.0, 1.0, (_ROWS, n)) for size in (speed, acceleration))
        return Motion(q, v, a, v, a)

    def rows(self, joints: Array) -> Array:
        """Return weighted rows (N, n, b) from positions, velocities and accelerations (N, 3, n)."""
        q, v, a = np.moveaxis(joints, 1, 0)
        columns = self.model.columns(Motion(q, v, a, v, a), self.at_motor)
        return np.asarray(columns[:, :, self.chosen] * self.weights[:, None] * self.scales)

    def condition(self, joints: Array) -> float:
        """Return the condition number of the rows at samples (N, 3, n)."""
        rows = self.rows(joints)
        values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf

    def smooth_condition(self, joints: Array) -> tuple[float, Array]:
        """Return about the logarithm of the condition, and its derivatives (N, 3, n) by the samples.

        In place of the largest and the smallest eigenvalue of the information matrix M stand norms of all,
        `log(tr M^p)^(1/p) + log(tr M^-p)^(1/p)`, half of it, so that it has derivatives where two are equal.
        Those of the rows are differences: rows are linear in accelerations, and quadratic in velocities.
        """
        rows = self.rows(joints)
        count, n, size = rows.shape
        samples = rows.reshape(-1, size)
        values, vectors = np.linalg.eigh(samples.T @ samples / count)
        if not values[-1] > 0.0:
            raise InputError("this motion shows nothing; does the robot have masses?")
        values = np.maximum(values, 1e-14 * values[-1])
        up, down = (values / values[-1]) ** _POWER, (values[0] / values) ** _POWER
        value = 0.5 * (np.log(values[-1] / values[0]) + (np.log(up.sum()) + np.log(down.sum())) / _POWER)
        slopes = 0.5 * (up / up.sum() - down / down.sum()) / values
        gradient = (2.0 / count) * (samples @ (vectors * slopes) @ vectors.T).reshape(count, n, size)
        result = np.empty_like(joints)
        for order in range(3):
            for joint in range(n):
                moved = joints.copy()
                moved[:, order, joint] += _STEP
                change = self.rows(moved) - rows
                result[:, order, joint] = np.einsum("tib,tib->t", gradient, change) / _STEP
        return float(value), result
