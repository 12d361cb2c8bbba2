"""The equations of drives on scalars of the tracer, to be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hodyn_ros.actuation.agonist_antagonist import AgonistAntagonist
from hodyn_ros.actuation.cam import Cam
from hodyn_ros.actuation.damped_spring import DampedSpring
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.hardening_spring import HardeningSpring
from hodyn_ros.actuation.linear_spring import LinearSpring
from hodyn_ros.actuation.transmission import Transmission
from hodyn_ros.lie.jets import Array

Scalar = Any
_COMPILED = (LinearSpring, DampedSpring, HardeningSpring, AgonistAntagonist, Cam)


class DriveCode:
    """What drives do to links and motors, joint by joint; the same as `Plant` says with arrays.

    `damping` (n,) [N.m s/rad] beside springs; the file's own counts where there is one.
    """

    def __init__(self, train: DriveTrain, damping: Array) -> None:
        self._train = train
        self._damping = damping.tolist()

    @staticmethod
    def supports(train: DriveTrain) -> bool:
        """Whether there is code for all springs; measured tables have none."""
        return all(drive.rigid or isinstance(drive.transmission, _COMPILED) for drive in train.drives)

    def __call__(
        self,
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        theta: Sequence[Scalar],
        thetad: Sequence[Scalar],
        effort: Sequence[Scalar],
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return torques on the links (n,), and accelerations of the motors that have coordinates (k,).

        `q`, `qd` (n,) of the links; `theta`, `thetad` (k,) of those motors; `effort` (motors,).
        """
        torques, accelerations = [], []
        motor = moving = 0
        for j, drive in enumerate(self._train.drives):
            count = drive.transmission.n_motors
            efforts = effort[motor : motor + count]
            motor += count
            if drive.rigid:
                torque = efforts[0] - _friction(drive.motor_friction, qd[j])
            else:
                own = slice(moving, moving + count)
                moving += count
                torque, loads = self._spring(j, q[j], qd[j], theta[own], thetad[own])
                for inertia, tau, speed, load in zip(drive.motor_inertias, efforts, thetad[own], loads):
                    rest = tau - _friction(drive.motor_friction, speed) - load
                    accelerations.append(rest * (1.0 / inertia))
            torques.append(torque - _friction(drive.link_friction, qd[j]))
        return torques, accelerations

    def _spring(
        self, j: int, q: Scalar, qd: Scalar, theta: Sequence[Scalar], thetad: Sequence[Scalar]
    ) -> tuple[Scalar, list[Scalar]]:
        """Return the torque on the link, and what each motor holds."""
        spring = self._train.drives[j].transmission
        drag = self._damping[j] * (_facing(spring, thetad) - qd)
        if isinstance(spring, (LinearSpring, DampedSpring)):
            torque = spring.stiffness * (theta[0] - q) + drag
            return torque, [torque]
        # jets of order 0
        loads = spring.loads(np.array([q], dtype=object), np.array([theta], dtype=object).T)
        held = loads.motors[:, 0].tolist()
        if isinstance(spring, AgonistAntagonist):
            return loads.link[0] + drag, [load + 0.5 * drag for load in held]
        return loads.link[0] + drag, [held[0] + drag, *held[1:]]


def _facing(spring: Transmission, motors: Sequence[Scalar]) -> Scalar:
    """Return what the link is held against: both motors of a pair, the first of a cam."""
    return 0.5 * (motors[0] + motors[1]) if isinstance(spring, AgonistAntagonist) else motors[0]


def _friction(friction: Friction, velocity: Scalar) -> Scalar:
    return friction.torque(np.array([velocity], dtype=object))[0]
