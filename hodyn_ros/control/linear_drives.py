"""Drives about an instant: linear springs, motors and the links that they move, as one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, expm

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains

DAMPING_TIME = 2e-4  # [s] of springs whose damping nobody says, damping over stiffness; assumed


class LinearSystem(NamedTuple):
    """How a state z = (y, y') goes on under efforts of the motors u (n,): `z' = A z + B u`."""

    A: Array  # (2 m, 2 m)
    B: Array  # (2 m, n)
    motors: Array  # (n, m) T, the positions of the motors are `T y`

    def with_feedback(self, gains: MotorGains) -> LinearSystem:
        """Return the system whose efforts come beside feedback on the motors."""
        return self._replace(A=self.A + self.B @ self.feedback(gains))

    def feedback(self, gains: MotorGains) -> Array:
        """Return what gives the efforts of feedback from the state (n, 2 m)."""
        return -np.hstack([gain[:, None] * self.motors for gain in (gains.proportional, gains.derivative)])

    def held(self, time: float) -> tuple[Array, Array]:
        """Return what a time [s] makes of the state, and of efforts that are held meanwhile."""
        states, efforts = self.B.shape
        whole = np.block([[self.A, self.B], [np.zeros((efforts, states + efforts))]])
        exponential = expm(time * whole)
        return exponential[:states, :states], exponential[:states, states:]


@dataclass(frozen=True, eq=False)
class LinearDrives:
    """A motor for each driven joint, behind a linear spring or rigid; (n,) each, reflected to the links."""

    stiffness: Array  # infinite where rigid [N.m/rad or N/m]
    damping: Array  # of the springs, beside them [N.m s/rad or N s/m]
    inertia: Array  # of the motors [kg m^2 or kg]
    viscous: Array  # friction of the motors [N.m s/rad or N s/m]

    @classmethod
    def of_train(cls, train: DriveTrain, damping_time: float = DAMPING_TIME) -> LinearDrives:
        """Return drives as they are without deflection; springs without damping get K `damping_time` [s]."""
        own = np.array([spec.spring_damping for spec in train.specs])
        viscous = np.array([spec.motor_friction.viscous for spec in train.specs])
        damping = np.where(own > 0.0, own, train.damping(damping_time))
        return cls(train.stiffness, damping, train.motor_inertia, viscous)

    def system(
        self, mass: Array, jacobian: Array, by_position: Array | float = 0.0, by_velocity: Array | float = 0.0
    ) -> LinearSystem:
        """Return the drives with links `M x'' = F x + G x' + J^T tau`, M and J (driven, k) as of `Links`.

        With y = (x, positions of the motors behind springs), positions T y of all motors and bends E y of the
        springs, the inertia B, stiffness K, damping D and viscous friction V of the drives:

            (M + T^T B T) y'' = (F - E^T K E) y + (G - E^T D E - T^T V T) y' + T^T u

        where M, F and G act on x. Raises LinAlgError where coordinates move no mass.
        """
        soft, k = np.isfinite(self.stiffness), len(mass)
        motors = np.hstack([np.where(soft[:, None], 0.0, jacobian), np.eye(len(soft))[:, soft]])
        bends = motors[soft]
        bends[:, :k] -= jacobian[soft]

        def squared(rows: Array, weights: Array) -> Array:
            return np.asarray(rows.T @ (weights[:, None] * rows))

        inertia = squared(motors, self.inertia)
        by_place = -squared(bends, self.stiffness[soft])
        by_rate = -squared(bends, self.damping[soft]) - squared(motors, self.viscous)
        for whole, of_links in ((inertia, mass), (by_place, by_position), (by_rate, by_velocity)):
            whole[:k, :k] += of_links
        accelerations = cho_solve(cho_factor(inertia), np.hstack([by_place, by_rate, motors.T]))
        m = len(inertia)
        A = np.vstack([np.eye(m, 2 * m, m), accelerations[:, : 2 * m]])
        return LinearSystem(A, np.vstack([np.zeros_like(motors.T), accelerations[:, 2 * m :]]), motors)
