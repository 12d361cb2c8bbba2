"""The drive of one joint: motors, friction, gear and a transmission of any kind."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.springs.damped_spring import DampedSpring
from hodyn_ros.actuation.springs.hardening_spring import HardeningSpring
from hodyn_ros.actuation.springs.linear_spring import LinearSpring
from hodyn_ros.actuation.springs.tabulated_spring import TabulatedSpring
from hodyn_ros.actuation.springs.variable_stiffness import AgonistAntagonist, Cam
from hodyn_ros.actuation.transmission import Loads, Transmission
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import derivative
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec


class MotorJets(NamedTuple):
    """What the motors of one joint do, as jets; reflected to the link side."""

    positions: Array  # (motors, orders, ...) [rad]
    efforts: Array  # (motors, orders, ...) [N.m]


@dataclass(frozen=True)
class JointDrive:
    """One joint's drive.

        Q_t = Q + f_l(q'),   theta from Q_t by the transmission,   tau = B theta'' + f_m(theta', load) + load

    with the torque `Q_t` that the transmission hands to the link, and the load that it leaves each motor.
    The rotor turns `gear_ratio` times as far, with that much less torque; its inertia counts here reflected
    to the link side, as in Spong's model.
    """

    transmission: Transmission
    motor_inertias: tuple[float, ...]  # B of each motor, reflected [kg m^2]
    motor_friction: Friction = field(default_factory=Friction)
    link_friction: Friction = field(default_factory=Friction)
    gear_ratio: float = 1.0
    torque_constant: float | None = None  # [N.m/A] of the rotor
    limits: DriveLimits = field(default_factory=DriveLimits)

    def __post_init__(self) -> None:
        wanted = self.transmission.n_motors
        if len(self.motor_inertias) != wanted:
            raise InputError(f"{wanted} motor inertias are needed, found {len(self.motor_inertias)}")
        rigid = isinstance(self.transmission, Rigid)
        for inertia in self.motor_inertias:
            if not (0.0 <= inertia < np.inf if rigid else 0.0 < inertia < np.inf):
                raise InputError(f"the motor inertia is {inertia:g} kg m^2; it must be positive and finite")

    @property
    def rigid(self) -> bool:
        """Whether the motor moves with the link."""
        return isinstance(self.transmission, Rigid)

    @property
    def linear_spring(self) -> bool:
        """Whether it is rigid or a linear spring, and the link has no friction: `theta = q + Q / K`."""
        return isinstance(self.transmission, (Rigid, LinearSpring)) and not self.link_friction

    @property
    def linear(self) -> bool:
        """Whether it is rigid or a linear spring, and nothing rubs."""
        return self.linear_spring and not self.motor_friction

    def motors(
        self, q: Array, torque: Array, stiffness: Array | None = None, deflection: Array | None = None
    ) -> MotorJets:
        """Return what the motors do for a link motion.

        `q` (K+3, ...), `torque` (K+1, ...) jets of position and torque of the link; `stiffness` (K+1, ...)
        where the transmission is commanded; `deflection` (...) that a damped spring has at this instant, by
        default that of the slow manifold. Positions have K+1 orders or more, efforts K-1 or more.
        """
        transmitted = self.transmitted(q, torque)
        if deflection is not None and isinstance(self.transmission, DampedSpring):
            delta = self.transmission.from_deflection(transmitted, deflection)
            theta = (q[: len(delta)] + delta)[None]
            loads = transmitted[None]
        else:
            theta = self.transmission.motor_positions(q, transmitted, stiffness)
            loads = transmitted[None]
            if self.transmission.n_motors > 1:
                loads = self.transmission.loads(q[: theta.shape[1]], theta).motors
        efforts = [self._effort(*pair) for pair in zip(self.motor_inertias, theta, loads)]
        return MotorJets(theta, np.stack(efforts))

    def transmitted(self, q: Array, torque: Array) -> Array:
        """Return the jet (K+1, ...) of the torque that the transmission hands to the link."""
        if not self.link_friction:
            return torque
        return torque + self.link_friction.torque(derivative(q)[: len(torque)])

    def forces(
        self, q: Array, theta: Array, effort: Array, beside: float = 0.0
    ) -> tuple[Array, Array, list[Array]]:
        """Return what goes to the link, what moves the link, and what accelerates each motor.

        `q` (2, ...) and `theta` (motors, 2, ...) positions and velocities, `effort` (motors, ...) of the
        motors; `beside` [N.m s/rad] damps the deflection besides the transmission. What goes to a link is
        what a torque sensor there shows: the transmitted torque, or the effort of a rigid drive, whose motor
        moves with its link and is accelerated by nothing else. What a rigid gear carries follows from its
        acceleration: InputError where its friction is by load.
        """
        lost = self.link_friction.torque(q[1:])[0]
        if self.rigid:
            if self.motor_friction.load > 0.0:
                raise InputError(
                    "friction by load of a rigid drive is not simulated, as its load follows from its "
                    "acceleration; give it a stiffness"
                )
            return effort[0], effort[0] - self.motor_friction.torque(theta[0][1:])[0] - lost, [0.0 * lost]
        spring = self.transmission
        loads, drag = spring.loads(q, theta), beside * spring.deflection(q, theta)[1]
        torque = loads.link[0] + drag
        held = [load[0] + share * drag for load, share in zip(loads.motors, spring.facing)]
        left = [
            tau - load - self.motor_friction.torque(motor[1:], np.stack([load]))[0]
            for tau, motor, load in zip(effort, theta, held)
        ]
        return torque, torque - lost, left

    def current(self, effort: Array) -> Array:
        """Return the motor current [A] for an effort [N.m] reflected to the link side."""
        if self.torque_constant is None:
            raise InputError("the motor current needs the torque constant of the drive")
        return np.asarray(effort) / (self.gear_ratio * self.torque_constant)

    def motor_effort(self, q: Array, theta: Array, torque: Array) -> Array:
        """Return the jet (K+1, ...) of the effort of the one motor, where both sides of it are known to move.

        `q` and `theta` (K+3, ...), `torque` (K+1, ...) jets of both positions, and of the torque of the link.
        """
        return self._effort(self.motor_inertias[0], theta, self.transmitted(q, torque))

    def _effort(self, inertia: float, theta: Array, load: Array) -> Array:
        acceleration = derivative(theta, 2)
        count = min(len(acceleration), len(load))
        effort = inertia * acceleration[:count] + load[:count]
        if self.motor_friction and count:
            effort = effort + self.motor_friction.torque(derivative(theta)[:count], load[:count])
        return effort


def joint_drive(spec: DriveSpec) -> JointDrive:
    """Build the drive of a joint from its figures. Raises InputError for figures that cannot be."""
    inertias: tuple[float, ...] = (spec.motor_inertia,)
    variable = spec.variable_stiffness
    if variable is not None and variable.kind == "agonist_antagonist":
        inertias = (spec.motor_inertia, spec.motor_inertia)
    elif variable is not None:
        inertias = (spec.motor_inertia, variable.motor_inertia)
    return JointDrive(
        _transmission(spec),
        inertias,
        _friction(spec.motor_friction),
        _friction(spec.link_friction),
        spec.gear_ratio,
        spec.torque_constant,
        replace(spec.limits, torque=spec.torque_limit),
    )


def _transmission(spec: DriveSpec) -> Transmission:
    variable = spec.variable_stiffness
    if variable is not None and variable.kind == "agonist_antagonist":
        return AgonistAntagonist(variable.spring)
    if variable is not None:
        return Cam(variable.spring, variable.curvature)
    if np.isinf(spec.stiffness):
        return Rigid()
    if spec.spring_table is not None:
        return TabulatedSpring(*spec.spring_table)
    if spec.cubic_stiffness > 0.0:
        return HardeningSpring(spec.stiffness, spec.cubic_stiffness)
    if spec.spring_damping > 0.0:
        return DampedSpring(spec.stiffness, spec.spring_damping)
    return LinearSpring(spec.stiffness)


def _friction(spec: FrictionSpec) -> Friction:
    return Friction(**{each.name: getattr(spec, each.name) for each in fields(Friction)})


@dataclass(frozen=True)
class Rigid(Transmission):
    """No spring: `theta = q`."""

    gained: ClassVar[int] = 2

    def motor_positions(self, q: Array, torque: Array, stiffness: Array | None = None) -> Array:
        """Return `theta = q`, two orders further than the torque."""
        return q[None, : len(torque) + self.gained]

    def loads(self, q: Array, theta: Array) -> Loads:
        """Reject: positions do not determine the torque of a rigid drive."""
        raise InputError("the torque of a rigid drive does not follow from positions")
