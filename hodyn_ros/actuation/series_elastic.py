"""Series elastic drives: from the torques of the links to what the motors have to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.compiled_motors import CompiledMotors, MotorMotion
from hodyn_ros.errors import InputError
from hodyn_ros.lie.se3 import Array


class SeriesElastic:
    """Springs between motors and links, joint by joint; an infinite stiffness is a rigid drive.

        Q = K (theta - q),   theta = q + K^-1 Q,   tau = B theta'' + Q = B (q'' + K^-1 Q'') + Q

    Mueller (2020), section I; Spong's model of elastic joints: the rotor's kinetic energy is that of its own
    rotation.

    `stiffness` (n,) K [N.m/rad or N/m], positive, `inf` for a rigid joint; `motor_inertia` (n,) B [kg m^2 or
    kg], reflected to the link side, not negative. A scalar serves all joints.

    >>> drive = SeriesElastic(stiffness=[100.0], motor_inertia=[0.5])
    >>> q = np.zeros((5, 1)); torques = np.array([[10.0], [0.0], [200.0]])
    >>> motor = drive.feedforward(q, torques)
    >>> motor.position[0], motor.effort[0]
    (array([0.1]), array([11.]))
    """

    def __init__(self, stiffness: ArrayLike, motor_inertia: ArrayLike) -> None:
        self.stiffness, self.motor_inertia = _drive_arrays(stiffness, motor_inertia)
        self.compliance: Array = 1.0 / self.stiffness  # exactly zero for a rigid joint
        self.compliance.setflags(write=False)
        self.elastic = np.isfinite(self.stiffness)  # (n,) mask
        self._all_rigid = not self.elastic.any()
        self._compiled = CompiledMotors(self.motors, batches=False)

    @property
    def n_joints(self) -> int:
        """Number of joints; 1 also for drives given as scalars, which fit any number."""
        return len(self.stiffness)

    def motor_position(self, q: Array, torques: Array) -> Array:
        """Return `theta = q + K^-1 Q` with derivatives (..., order + 1, n).

        `q` (..., at least order + 1, n) link motion; `torques` (..., order + 1, n) link torques by order.
        """
        q, torques = _real(q, torques)
        self._match(q, torques)
        return q[..., : torques.shape[-2], :] + self.compliance * torques

    def feedforward(self, q: Array, torques: Array) -> MotorMotion:
        """Return motor positions and efforts with their derivatives, exactly matching a desired link motion.

        `q` (..., order + 3, n) link motion and its derivatives, `torques` (..., order + 1, n) those of the
        inverse dynamics. Positions come up to derivative `order`, efforts up to `order - 2`: the motor effort
        of an elastic joint holds the second derivative of the link torque. Where all joints are rigid the
        efforts reach `order`. Raises InputError when the order does not suffice.
        """
        return self._compiled(q, torques) or self.motors(*_real(q, torques))

    def motors(self, q: Array, torques: Array) -> MotorMotion:
        """Compute what `feedforward` does from arrays alone, which may hold scalars of the tracer."""
        self._match(q, torques)
        if self._all_rigid:
            effort = self.motor_inertia * q[..., 2:, :][..., : torques.shape[-2], :] + torques
            return MotorMotion(q[..., : torques.shape[-2], :], effort)
        if torques.shape[-2] < 3:
            raise InputError(
                "the motor effort of an elastic joint needs the torque and its first two derivatives, found "
                f"{torques.shape[-2]} orders; compute the inverse dynamics at order 2 or higher"
            )
        position = q[..., : torques.shape[-2], :] + self.compliance * torques
        effort = self.motor_inertia * position[..., 2:, :] + torques[..., :-2, :]
        return MotorMotion(position, effort)

    def link_torque(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """Return the spring torque `K (theta - q)` (..., n).

        It is zero for rigid joints, whose torque is not determined by positions.
        """
        deflection = np.asarray(theta, dtype=float) - np.asarray(q, dtype=float)
        return np.where(self.elastic, self.stiffness, 0.0) * deflection

    def _match(self, q: Array, torques: Array) -> None:
        if q.ndim < 2 or torques.ndim != q.ndim or q.shape[-1] != torques.shape[-1]:
            raise InputError(
                "link motion and torques must have shapes (..., order + 3, n) and (..., order + 1, n), "
                f"found {q.shape} and {torques.shape}"
            )
        if q.shape[-1] != self.n_joints and self.n_joints != 1:
            raise InputError(f"the drives have {self.n_joints} joints, the motion has {q.shape[-1]}")
        if q.shape[-2] < torques.shape[-2] + 2:
            raise InputError(
                f"torques of {torques.shape[-2]} orders need {torques.shape[-2] + 2} orders of motion, "
                f"found {q.shape[-2]}"
            )


def _real(q: Array, torques: Array) -> tuple[Array, Array]:
    return np.asarray(q, dtype=float), np.asarray(torques, dtype=float)


def _drive_arrays(stiffness: ArrayLike, motor_inertia: ArrayLike) -> tuple[Array, Array]:
    try:
        K, B = np.broadcast_arrays(np.atleast_1d(stiffness), np.atleast_1d(motor_inertia))
        K, B = np.array(K, dtype=float), np.array(B, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"stiffness and motor_inertia must be numbers, one per joint or one for all: {error}"
        ) from None
    if K.ndim != 1:
        raise InputError(
            f"stiffness and motor_inertia must be vectors, one value per joint, found shape {K.shape}"
        )
    for joint, (stiff, inertia) in enumerate(zip(K, B)):
        if not stiff > 0.0:
            raise InputError(
                f"the stiffness of joint {joint} is {stiff}; it must be positive, or inf for a rigid joint"
            )
        if not 0.0 <= inertia < np.inf:
            raise InputError(
                f"the motor inertia of joint {joint} is {inertia}; it must be finite and not negative"
            )
    K.setflags(write=False)
    B.setflags(write=False)
    return K, B
