"""Several joints with drives of one kind at a time: the same as `JointDrive`, joint by joint, but faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuation.damped_spring import DampedSpring
from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.joint_drive import JointDrive
from hodyn_ros.actuation.linear_spring import LinearSpring
from hodyn_ros.actuation.rigid import Rigid
from hodyn_ros.jets import Array, derivative, multiply, power, to_derivatives, to_taylor


class GroupMotion(NamedTuple):
    """What the motors of a group do, as jets; one motor per joint."""

    positions: Array  # (orders, ..., g)
    efforts: Array  # (orders, ..., g)


class JointGroup:
    """Joints that are all rigid, or all have linear springs, or all damped ones, with any friction."""

    def __init__(self, joints: Sequence[int], drives: Sequence[JointDrive]) -> None:
        self.joints = list(joints)
        chosen = [drives[j] for j in joints]
        self._rigid = chosen[0].rigid
        springs = [drive.transmission for drive in chosen]
        self._stiffness = np.array([getattr(spring, "stiffness", np.inf) for spring in springs])
        damping = [getattr(spring, "damping", 0.0) for spring in springs]
        self._memory = np.array(damping) / self._stiffness
        self._inertia = np.array([drive.motor_inertias[0] for drive in chosen])
        self._motor_friction = _Frictions([drive.motor_friction for drive in chosen])
        self._link_friction = _Frictions([drive.link_friction for drive in chosen])

    @classmethod
    def groups(cls, drives: Sequence[JointDrive]) -> tuple[JointGroup, ...]:
        """Return the groups of drives that can be computed together; the others are in none."""
        kinds = Rigid, LinearSpring, DampedSpring
        alike = [[j for j, drive in enumerate(drives) if type(drive.transmission) is kind] for kind in kinds]
        return tuple(cls(joints, drives) for joints in alike if joints)

    def motors(self, q: Array, torque: Array) -> GroupMotion:
        """Return what the motors do for motion (K+3, ..., g) and torque (K+1, ..., g) of the links, as jets.

        Damped springs are on their slow manifold.
        """
        count = len(torque)
        transmitted = self._link_friction.added(torque, derivative(q)[:count])
        theta = q[: count + 2] if self._rigid else q[:count] + self._deflection(transmitted)
        acceleration = derivative(theta, 2)[:count]
        effort = self._inertia * acceleration + transmitted[: len(acceleration)]
        return GroupMotion(theta, self._motor_friction.added(effort, derivative(theta)[: len(effort)]))

    def _deflection(self, torque: Array) -> Array:
        if not self._memory.any():
            return torque / self._stiffness
        rates = to_derivatives(torque) / self._stiffness
        for k in range(len(rates) - 2, -1, -1):
            rates[k] -= self._memory * rates[k + 1]
        return to_taylor(rates)


class _Frictions:
    """The friction of several joints."""

    def __init__(self, frictions: Sequence[Friction]) -> None:
        self._any = any(bool(friction) for friction in frictions)
        self._viscous = np.array([friction.viscous for friction in frictions])
        self._sliding = np.flatnonzero([friction.coulomb > 0.0 for friction in frictions])
        self._coulomb = np.array([friction.coulomb for friction in frictions])[self._sliding]
        self._square = np.array([friction.transition for friction in frictions])[self._sliding] ** 2

    def added(self, torque: Array, velocity: Array) -> Array:
        """Return the jet of a torque (K+1, ..., g) and the friction at a velocity (K+1, ..., g)."""
        if not self._any or not len(torque):
            return torque
        result: Array = self._viscous * velocity
        if len(self._sliding):
            sliding = velocity[..., self._sliding]
            square = multiply(sliding, sliding)
            square[0] += self._square
            result[..., self._sliding] += self._coulomb * multiply(sliding, power(square, -0.5))
        return torque + result
