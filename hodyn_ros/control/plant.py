"""The equations of motion of a robot with drives of any kind, links and motors together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.agonist_antagonist import AgonistAntagonist
from hodyn_ros.actuation.cam import Cam
from hodyn_ros.actuation.damped_spring import DampedSpring
from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.hardening_spring import HardeningSpring
from hodyn_ros.actuation.linear_spring import LinearSpring
from hodyn_ros.actuation.transmission import Transmission
from hodyn_ros.checks import finite_array
from hodyn_ros.control.feedback_linearisation import drive_train_of
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array


class Plant:
    """A robot on the ground with its drives, as a differential equation of first order.

        M(q) q'' + h(q, q') + f_l(q') = Q_t(theta - q, theta' - q'),   B theta'' + f_m(theta') + load = tau

    The motor of a rigid joint moves with its link: its inertia and friction act there, and so does its
    effort. The state is `(q, q', theta, theta')` flat, with motors of elastic joints only; `unpack` gives
    them all. `damping` (n,) or one for all [N.m s/rad] acts beside springs that have none of their own.

    Attributes:
        damping: All damping of the springs (n,), that of the robot's file included [N.m s/rad].
        armature: Inertia that motors of rigid joints add to their links (n,) [kg m^2].
    """

    def __init__(self, robot: Robot, damping: ArrayLike = 0.0) -> None:
        if robot.model.floating_base:
            raise InputError(f"robot {robot.name!r} has a floating base; only robots on the ground do")
        self.robot = robot
        self.train = drive_train_of(robot)
        drives = self.train.drives
        joints = np.array(self.train.motor_joints)
        self.rigid = ~self.train.elastic
        self._moving = np.flatnonzero(self.train.elastic[joints])  # motors with coordinates of their own
        inertias = np.array([inertia for drive in drives for inertia in drive.motor_inertias])
        self._inverse_inertia = 1.0 / inertias[self._moving]
        first = np.searchsorted(joints, np.arange(len(drives)))
        self._first = first  # the motor of a joint, or its first one
        self.armature = np.where(self.rigid, inertias[first], 0.0)
        self._link_friction = _FrictionTable([drive.link_friction for drive in drives])
        self._motor_friction = _FrictionTable([drives[j].motor_friction for j in joints])
        springs = [drive.transmission for drive in drives]
        self._stiffness, self._third, own = np.array([_figures(spring) for spring in springs]).T
        beside = np.broadcast_to(np.asarray(damping, dtype=np.float64), own.shape)
        if not ((beside >= 0.0) & np.isfinite(beside)).all():
            raise InputError(f"the damping beside springs must be finite and not negative, found {beside}")
        self.damping = np.where(self.rigid, 0.0, np.where(own > 0.0, own, beside))
        self._others = [
            (j, spring, np.flatnonzero(joints == j))
            for j, spring in enumerate(springs)
            if self.train.elastic[j] and not isinstance(spring, (LinearSpring, DampedSpring, HardeningSpring))
        ]
        # the motor that faces the link: the first of a cam, both of a pair
        self._facing = (joints == np.arange(len(drives))[:, None]) * 1.0
        for j, spring, motors in self._others:
            if isinstance(spring, AgonistAntagonist):
                self._facing[j, motors] = 0.5
            elif isinstance(spring, Cam):
                self._facing[j, motors] = 1.0, 0.0
        self._joints = joints

    @property
    def size(self) -> int:
        """Length of a state."""
        return 2 * (self.robot.n_joints + len(self._moving))

    def pack(
        self,
        position: ArrayLike,
        velocity: ArrayLike,
        motor_position: ArrayLike,
        motor_velocity: ArrayLike,
    ) -> Array:
        """Return the state (size,) from links (n,) and motors (motors,), without those of rigid joints."""
        n, m = self.robot.n_joints, self.train.n_motors
        q, qd = finite_array("position", position, (n,)), finite_array("velocity", velocity, (n,))
        theta = finite_array("motor_position", motor_position, (m,))
        thetad = finite_array("motor_velocity", motor_velocity, (m,))
        return np.concatenate([q, qd, theta[self._moving], thetad[self._moving]])

    def unpack(self, state: Array) -> Measurement:
        """Return positions and velocities of links and of all motors."""
        n, k = self.robot.n_joints, len(self._moving)
        q, qd = state[:n], state[n : 2 * n]
        theta, thetad = q[self._joints], qd[self._joints]
        theta[self._moving], thetad[self._moving] = state[2 * n : 2 * n + k], state[2 * n + k :]
        return Measurement(q, qd, theta, thetad)

    def consistent_state(self, motion: ArrayLike, stiffness: ArrayLike | None = None) -> Array:
        """Return the state from which the robot can follow a link motion (5 or more orders, n) at once.

        Damped springs start on their slow manifold. `stiffness` (orders - 2, n) of commanded joints.
        """
        q = np.ascontiguousarray(motion, dtype=np.float64)
        if q.ndim != 2 or len(q) < 5:
            raise InputError(f"a consistent state needs the motion up to its snap, found shape {q.shape}")
        torques = self.robot.inverse_dynamics(q)
        theta = self.train.feedforward(q, torques, stiffness=stiffness).position
        return self.pack(q[0], q[1], theta[0], theta[1])

    def rates(self, state: Array, effort: Array) -> Array:
        """Return the time derivative (size,) of a state under efforts (motors,) of the motors."""
        measured = self.unpack(state)
        qd, thetad = measured.velocity, measured.motor_velocity
        torque, loads = self._transmitted(measured)
        own = effort - self._motor_friction(thetad)
        on_links = np.where(self.rigid, own[self._first], torque) - self._link_friction(qd)
        acceleration = self._link_acceleration(measured.position, qd, on_links)
        motor_acceleration = (own - loads)[self._moving] * self._inverse_inertia
        return np.concatenate([qd, acceleration, thetad[self._moving], motor_acceleration])

    def link_torque(self, state: Array, effort: Array) -> Array:
        """Return what a torque sensor between drive and link shows (n,); at rigid joints the motor effort."""
        return np.where(self.rigid, effort[self._first], self._transmitted(self.unpack(state))[0])

    def _transmitted(self, measured: Measurement) -> tuple[Array, Array]:
        """Return the torques of the springs on the links (n,), and what the motors hold (motors,)."""
        q, qd, theta, thetad = measured
        delta = self._facing @ theta - q
        torque = (self._stiffness + self._third * delta**2) * delta
        drag = self.damping * (self._facing @ thetad - qd)
        loads = torque[self._joints]
        for j, spring, motors in self._others:
            found = spring.loads(q[None, j], theta[motors][:, None])
            torque[j], loads[motors] = found.link[0], found.motors[:, 0]
        return torque + drag, loads + drag @ self._facing

    def _link_acceleration(self, q: Array, qd: Array, torque: Array) -> Array:
        if not self.armature.any():
            acceleration: Array = self.robot.forward_dynamics(np.stack([q, qd]), torque[None])[0]
            return acceleration
        n = len(q)
        motions = np.zeros((n + 2, 3, n))
        motions[:, 0] = q
        motions[:n, 2] = np.eye(n)
        motions[n + 1, 1] = qd
        torques = self.robot.inverse_dynamics(motions)[:, 0]
        mass = torques[:n] - torques[n] + np.diag(self.armature)
        return np.asarray(np.linalg.solve(mass, torque - torques[n + 1]))


def _figures(spring: Transmission) -> tuple[float, float, float]:
    """Return K1, K3, D of springs `K1 delta + K3 delta^3 + D delta'`; zero for those of another form."""
    if isinstance(spring, LinearSpring):
        return spring.stiffness, 0.0, 0.0
    if isinstance(spring, DampedSpring):
        return spring.stiffness, 0.0, spring.damping
    if isinstance(spring, HardeningSpring):
        return spring.stiffness, spring.cubic_stiffness, 0.0
    return 0.0, 0.0, 0.0


class _FrictionTable:
    """The friction of many joints at once, without derivatives."""

    def __init__(self, frictions: Sequence[Friction]) -> None:
        self._viscous = np.array([friction.viscous for friction in frictions])
        self._coulomb = np.array([friction.coulomb for friction in frictions])
        self._square = np.array([friction.transition for friction in frictions]) ** 2

    def __call__(self, velocity: Array) -> Array:
        smooth = velocity / np.sqrt(velocity**2 + self._square)
        return np.asarray(self._viscous * velocity + self._coulomb * smooth)
