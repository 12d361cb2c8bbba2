"""Exact feedback linearisation of robots whose drives are all rigid, all elastic, or all damped elastic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.poles import gains_from_poles
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array, to_derivatives, to_taylor


def drive_train_of(robot: Robot) -> DriveTrain:
    """Return the drives of a robot; InputError where it has none."""
    if robot.drive_train is None:
        raise InputError(f"robot {robot.name!r} has no drives; describe them in its file")
    return robot.drive_train


def relative_degree(robot: Robot) -> int:
    """Return which derivative of the link positions the motors act on: 2 rigid, 4 elastic, 3 with damping.

    Raises InputError where the joints differ: then no static feedback linearises the robot (A. De Luca,
    Decoupling and feedback linearization of robots with mixed rigid/elastic joints, Int. J. Robust Nonlinear
    Control 8, 1998).
    """
    train = drive_train_of(robot)
    if train.commanded.any():
        bad = train.joint_names[int(np.argmax(train.commanded))]
        raise InputError(f"joint {bad!r} has a variable stiffness; this controller holds no stiffness")
    degrees = [4 - 2 * drive.rigid - drive.transmission.damped for drive in train.drives]
    for name, degree in zip(train.joint_names, degrees):
        if degree != degrees[0]:
            raise InputError(
                f"joint {name!r} reacts in derivative {degree}, joint {train.joint_names[0]!r} in "
                f"{degrees[0]}; no static feedback linearises drives that are mixed"
            )
    return degrees[0]


class FeedbackLinearisation:
    """Motor efforts that give the link errors the linear dynamics of chosen poles, in O(n).

        elastic:  Q, Q' from the springs, forward dynamics of order 1 gives q'', q''';
                  q'''' = q_d'''' + sum_i k_i (q_d - q)^(i); inverse dynamics of order 2 gives Q, Q', Q'';
                  tau = B (q'' + K^-1 Q'') + Q
        damped:   one order less each, and the deflection goes on by itself
        rigid:    q'' = q_d'' + sum_i k_i (q_d - q)^(i), tau = B q'' + Q

    Springs that are not linear and friction take the same way through the robot's drive train. `gains`
    (degree,) for all joints or (degree, n), by derivative of the error; `degree` is `relative_degree(robot)`.
    Spong (1987); De Luca & Book, Robots with flexible elements, Springer Handbook of Robotics (2016), section
    11.1.
    """

    def __init__(self, robot: Robot, gains: ArrayLike) -> None:
        self.degree = relative_degree(robot)
        if robot.model.floating_base:
            raise InputError(f"robot {robot.name!r} has a floating base, which no motor holds")
        self.robot = robot
        self._train = drive_train_of(robot)
        table = np.asarray(gains, dtype=np.float64)
        if table.shape not in ((self.degree,), (self.degree, robot.n_joints)) or not np.isfinite(table).all():
            raise InputError(
                f"gains must have shape ({self.degree},) or ({self.degree}, {robot.n_joints}), found "
                f"{table.shape}"
            )
        self.gains = table.reshape(self.degree, -1)
        self._friction = any(drive.link_friction for drive in self._train.drives)
        self._inverse_dynamics = robot.compile(self.degree - 2)

    @classmethod
    def from_poles(cls, robot: Robot, poles: Sequence[complex]) -> FeedbackLinearisation:
        """Choose the gains so that the error of every joint has these poles [1/s]."""
        return cls(robot, gains_from_poles(poles, relative_degree(robot)))

    def efforts(self, desired: ArrayLike, measured: Measurement) -> Array:
        """Return the motor efforts (n,) for a desired motion (degree + 1 or more, n) and a measured state."""
        wanted = np.asarray(desired, dtype=np.float64)
        if wanted.ndim != 2 or len(wanted) <= self.degree or wanted.shape[1] != self.robot.n_joints:
            raise InputError(
                f"the desired motion must have shape ({self.degree + 1}, {self.robot.n_joints}): positions "
                f"and derivatives up to {self.degree}; found {wanted.shape}"
            )
        motion = np.empty((self.degree + 1, self.robot.n_joints))
        motion[: self.degree] = self.link_motion(measured)
        errors = wanted[: self.degree] - motion[: self.degree]
        motion[self.degree] = wanted[self.degree] + (self.gains * errors).sum(axis=0)
        torques = self._inverse_dynamics(motion)
        if self.robot.actuation is not None:
            effort: Array = self.robot.actuation.feedforward(motion, torques).effort[0]
            return effort
        memory = None
        if self.degree == 3:
            memory = self._train.deflections(measured.position, measured.motor_position)
        return self._train.feedforward(motion, torques, deflection=memory).effort[0]

    def link_motion(self, measured: Measurement) -> Array:
        """Return positions and derivatives (degree, n) of the links, as far as the state determines them."""
        state = np.stack([measured.position, measured.velocity])
        if self.degree == 2:
            return state
        motors = np.stack([measured.motor_position, measured.motor_velocity])
        if self.robot.actuation is not None:
            torques = self.robot.actuation.stiffness * (motors - state)
        else:
            torques = self._train.link_torque(state, motors)
        if self._friction:
            torques = torques - self._friction_rates(state, torques)
        return np.concatenate([state, self.robot.forward_dynamics(state, torques)])

    def _friction_rates(self, state: Array, torques: Array) -> Array:
        """Return the friction of the links with its time derivatives, as many as there are torques."""
        velocities = state[1:]
        if len(torques) > 1:
            resisting = self._friction_of(velocities)
            acceleration = self.robot.forward_dynamics(state, torques[:1] - resisting)
            velocities = np.concatenate([velocities, acceleration])
        return self._friction_of(velocities)

    def _friction_of(self, velocities: Array) -> Array:
        columns = [
            drive.link_friction.torque(to_taylor(column))
            for drive, column in zip(self._train.drives, velocities.T)
        ]
        return to_derivatives(np.stack(columns, axis=1))
