"""Exact feedback linearisation of robots whose drives are all rigid, all elastic, or all damped elastic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.checks import finite_array
from hodyn_ros.control.links import Links
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.jets import to_derivatives, to_taylor
from hodyn_ros.lie.motion import BaseMotion

_RIGID, _DAMPED, _SPRINGS = 2, 3, 4  # derivative of the links on which motors act


def relative_degree(robot: Robot) -> int:
    """Return which derivative of the link positions the motors act on: 2 rigid, 4 elastic, 3 with damping.

    Raises InputError where the joints differ: then no static feedback linearises the robot (A. De Luca,
    Decoupling and feedback linearization of robots with mixed rigid/elastic joints, Int. J. Robust Nonlinear
    Control 8, 1998).
    """
    train = robot.require_drives()
    if train.commanded.any():
        joint = train.joint_names[int(np.argmax(train.commanded))]
        raise InputError(f"joint {joint!r} has a variable stiffness; this controller holds no stiffness")
    for name, spec in zip(train.joint_names, train.specs):
        if spec.rotor is not None:
            raise InputError(
                f"the rotor of joint {name!r} turns with {spec.rotor.body!r}; only dynamic feedback "
                "linearises that, and this is static (De Luca & Lucibello, ICRA 1998)"
            )
    degrees = [_SPRINGS - 2 * drive.rigid - drive.transmission.damped for drive in train.drives]
    for name, degree in zip(train.joint_names, degrees):
        if degree != degrees[0]:
            raise InputError(
                f"joint {name!r} reacts in derivative {degree}, joint {train.joint_names[0]!r} in "
                f"{degrees[0]}; no static feedback linearises drives that are mixed"
            )
    return degrees[0]


class FeedbackLinearisation:
    """Motor efforts that give errors of the coordinates the linear dynamics of chosen poles.

        elastic:  Q, Q' from the springs, forward dynamics of order 1 gives x'', x''';
                  x'''' = x_d'''' + sum_i k_i (x_d - x)^(i); inverse dynamics of order 2 gives Q, Q', Q'';
                  tau = B (q'' + K^-1 Q'') + Q
        damped:   one order less each, and the deflection goes on by itself
        rigid:    x'' = x_d'' + sum_i k_i (x_d - x)^(i), tau = B q'' + Q

    x are the coordinates of `Links`, q the driven joints; both are the joints of a tree. Springs that are not
    linear and friction take the same way through the robot's drive train. `gains` (degree,) for all
    coordinates or (degree, k), by derivative of the error; `degree` is `relative_degree(robot)`. Spong
    (1987); De Luca & Book, Robots with flexible elements, Springer Handbook of Robotics (2016), section 11.1;
    of platforms Mueller et al. (2023), section VI-B, whose error is linear however far they turn.

    With more drives than coordinates the efforts have a part that moves nothing. On springs it is a state as
    well: what the efforts e differ by from those of least norm comes to `preload` (driven,) with the two
    `preload_poles`, `e'' = -c_1 e' - c_0 (e - preload)`.
    """

    def __init__(
        self,
        robot: Robot,
        gains: ArrayLike,
        *,
        preload_poles: Sequence[complex] | None = None,
        preload: ArrayLike | None = None,
    ) -> None:
        self.degree = relative_degree(robot)
        if robot.structure.base_prescribed:
            raise InputError(f"robot {robot.name!r} has a floating base, which no motor holds")
        self._links = Links(robot)
        self.robot = self._links.robot
        self._train = robot.require_drives()
        k, table = self._links.size, np.asarray(gains, dtype=np.float64)
        if table.shape not in ((self.degree,), (self.degree, k)) or not np.isfinite(table).all():
            raise ShapeError("gains", f"({self.degree},) or ({self.degree}, {k})", table.shape)
        self.gains = table.reshape(self.degree, -1)
        self._friction = any(drive.link_friction for drive in self._train.drives)
        self._last = self._links.home
        self._check_preload(preload_poles, preload)
        self._preload_gains = None if preload_poles is None else gains_from_poles(preload_poles, 2)
        nothing = np.zeros(self._links.n_driven)
        self._preload = nothing if preload is None else finite_array("preload", preload, nothing.shape)

    def _check_preload(self, poles: Sequence[complex] | None, preload: ArrayLike | None) -> None:
        drives, k = self._links.n_driven, self._links.size
        if drives == k and (poles is not None or preload is not None):
            raise InputError(
                f"robot {self.robot.name!r} has as many coordinates as drives, {k}; leave out preload and "
                "preload_poles, no efforts are idle"
            )
        if drives > k and (poles is None or self.degree != _SPRINGS):
            raise InputError(
                f"robot {self.robot.name!r} has {drives} drives for {k} coordinates; give the two "
                "preload_poles of the efforts that move nothing, and all drives springs"
            )

    @classmethod
    def from_poles(
        cls,
        robot: Robot,
        poles: Sequence[complex],
        preload_poles: Sequence[complex] | None = None,
        preload: ArrayLike | None = None,
    ) -> FeedbackLinearisation:
        """Choose the gains so that the error of every coordinate has these poles [1/s]."""
        gains = gains_from_poles(poles, relative_degree(robot))
        return cls(robot, gains, preload_poles=preload_poles, preload=preload)

    def efforts(self, desired: ArrayLike | BaseMotion, measured: Measurement) -> Array:
        """Return the motor efforts (n,) for a desired motion, and a measured state of drives.

        `desired` (degree + 1 or more, k) of the coordinates, or `degree` twists and the pose of a platform
        that is all of them. The coordinates are looked for from where they were at the last call.
        """
        degree, k = self.degree, self._links.size
        if isinstance(desired, BaseMotion):
            if self._links.joints_only or self.robot.n_coordinates:
                raise InputError("joints are coordinates; give their motion, and not that of a platform")
            desired = self._links.coordinates(np.empty((degree + 1, self.robot.n_coordinates)), desired)
        wanted = np.asarray(desired, dtype=np.float64)
        if wanted.ndim != 2 or len(wanted) <= degree or wanted.shape[1] != k:
            shape = f"({degree + 1}, {k}): positions and derivatives up to {degree}"
            raise ShapeError("the desired motion", shape, wanted.shape)
        motion = np.empty((degree + 1, k))
        motion[:degree] = self.link_motion(measured)
        errors = wanted[:degree] - motion[:degree]
        motion[degree] = wanted[degree] + (self.gains * errors).sum(axis=0)
        drives = self._links.drives(motion, preload=self._idle(motion, measured))
        memory = None
        if degree == _DAMPED:
            memory = self._train.deflections(measured.position, measured.motor_position)
        return self._train.feedforward(drives.motion, drives.efforts, deflection=memory).effort[0]

    def link_motion(self, measured: Measurement) -> Array:
        """Return x and its derivatives (degree, k), as far as the state determines them."""
        state = self._links.locate(np.stack([measured.position, measured.velocity]), self._last)
        self._last = state[0]
        if self.degree == _RIGID:
            return state
        torques = self._torques(measured)
        if self._friction:
            torques = torques - self._friction_rates(state, measured.velocity, torques)
        return np.concatenate([state, self._links.accelerations(state, torques)])

    def _torques(self, measured: Measurement) -> Array:
        """Return what the springs hand to the links, and its rate where nothing damps them."""
        links = np.stack([measured.position, measured.velocity])
        motors = np.stack([measured.motor_position, measured.motor_velocity])
        return self._train.link_torque(links, motors)

    def _idle(self, motion: Array, measured: Measurement) -> Array | None:
        """Return the part of the efforts (3, driven) that moves nothing; None where there is none."""
        if self._preload_gains is None:
            return None
        torques = self._torques(measured)
        idle = torques - self._links.drives(motion).efforts[: len(torques)]
        c = self._preload_gains
        return np.stack([*idle, c[0] * (self._preload - idle[0]) - c[1] * idle[1]])

    def _friction_rates(self, state: Array, velocity: Array, torques: Array) -> Array:
        """Return the friction of the links with its time derivatives, as many as there are torques."""
        velocities = velocity[None]
        if len(torques) > 1:
            resisting = self._friction_of(velocities)
            accelerations = self._links.accelerations(state, torques[:1] - resisting)
            velocities = self._links.drives(np.concatenate([state, accelerations])).motion[1:]
        return self._friction_of(velocities)

    def _friction_of(self, velocities: Array) -> Array:
        columns = [
            drive.link_friction.torque(to_taylor(column))
            for drive, column in zip(self._train.drives, velocities.T)
        ]
        return to_derivatives(np.stack(columns, axis=1))


def gains_from_poles(poles: Sequence[complex], degree: int) -> Array:
    """Return `k` (degree,) so that `e^(degree) + sum_i k_i e^(i) = 0` has these poles.

    `poles` (degree,) [1/s], with negative real parts, complex ones with their conjugates. They are the roots
    of the polynomial whose coefficients are the gains.

    >>> gains_from_poles([-1.0, -2.0], 2)
    array([2., 3.])
    """
    values = np.asarray(poles, dtype=np.complex128).ravel()
    if len(values) != degree:
        raise InputError(f"{degree} poles are needed, one for each derivative fed back, found {len(values)}")
    if not np.isfinite(values).all() or not (values.real < 0.0).all():
        raise InputError(f"all poles must be finite with negative real parts, found {list(values)}")
    coefficients = np.poly(values)
    size = np.abs(coefficients)
    if (np.abs(np.imag(coefficients)) > 1e-9 * size).any():
        raise InputError(f"complex poles must come with their conjugates, found {list(values)}")
    return np.ascontiguousarray(np.real(coefficients)[:0:-1])


def butterworth_poles(degree: int, bandwidth: float) -> Array:
    """Return poles (degree,) evenly on a half circle of radius `bandwidth` [rad/s]: quick, hardly swinging.

    >>> butterworth_poles(2, 10.0).round(3)
    array([-7.071+7.071j, -7.071-7.071j])
    """
    angles = np.pi * (2.0 * np.arange(1, degree + 1) + degree - 1.0) / (2.0 * degree)
    poles = bandwidth * np.exp(1j * angles)
    real = np.abs(poles.imag) < 1e-12 * bandwidth
    result: Array = np.where(real, poles.real, poles)
    return result
