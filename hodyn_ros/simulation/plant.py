"""The equations of motion of a robot with drives of any kind, links and motors together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.agonist_antagonist import AgonistAntagonist
from hodyn_ros.actuation.cam import Cam
from hodyn_ros.actuation.damped_spring import DampedSpring
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.hardening_spring import HardeningSpring
from hodyn_ros.actuation.linear_spring import LinearSpring
from hodyn_ros.actuation.transmission import Transmission
from hodyn_ros.checks import finite_array
from hodyn_ros.control.links import BaseAt, Links, LinkState
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.lie.jets import Array
from hodyn_ros.model.drive_spec import DriveSpec

_DIFFERENCE = 1e-6  # [rad or m, /s] for slopes of springs and friction


class Plant:
    """A robot with its drives, as a differential equation of first order.

        M(x) x'' + h(x, x') = J^T (Q_t(theta - q, theta' - q') - f_l(q'))
        B theta'' + f_m(theta') + load = tau

    q are the driven joints, x the coordinates of `Links`; both are the joints of a tree. The motor of a
    rigid drive moves with its joint: its inertia and friction act there, and so does its effort. The state is
    `(x, theta, x', theta')` flat, with motors of elastic drives only; `unpack` gives them all. `damping`
    (driven,) or one for all [N.m s/rad] acts beside springs that have none of their own. Without drives, all
    are rigid, and motors without inertia. `base` is the motion of a base that is prescribed, by time [s].

    Attributes:
        damping: All damping of the springs (driven,), that of the robot's file included [N.m s/rad].
        armature: Inertia that motors of rigid drives add to their joints (driven,) [kg m^2].
    """

    def __init__(self, robot: Robot, damping: ArrayLike = 0.0, base: BaseAt | None = None) -> None:
        self.train = _train_of(robot)
        drives = self.train.drives
        joints = np.array(self.train.motor_joints)
        self.rigid = ~self.train.elastic
        self._moving = np.flatnonzero(self.train.elastic[joints])  # motors with coordinates of their own
        inertias = np.array([inertia for drive in drives for inertia in drive.motor_inertias])
        self._inertia = inertias[self._moving]
        first = np.searchsorted(joints, np.arange(len(drives)))
        self._first = first  # the motor of a joint, or its first one
        self.armature = np.where(self.rigid, inertias[first], 0.0)
        self.links = Links(robot, base, self.armature)
        self.robot = self.links.robot
        self._link_friction = _FrictionTable([drive.link_friction for drive in drives])
        self._motor_friction = _FrictionTable([drives[j].motor_friction for j in joints])
        springs = [drive.transmission for drive in drives]
        self._stiffness, self._third, own = np.array([_figures(spring) for spring in springs]).T
        beside = np.broadcast_to(np.asarray(damping, dtype=np.float64), own.shape)
        wrong = ~((beside >= 0.0) & np.isfinite(beside))
        if wrong.any():
            joint = self.train.joint_names[int(wrong.argmax())]
            raise InputError(
                f"the damping beside springs must be finite and not negative, found {beside[wrong][0]:g} of "
                f"joint {joint!r}"
            )
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
        return 2 * (self.links.size + len(self._moving))

    def pack(
        self,
        position: ArrayLike,
        velocity: ArrayLike,
        motor_position: ArrayLike,
        motor_velocity: ArrayLike,
    ) -> Array:
        """Return the state (size,) from coordinates (k,) and motors (motors,); rigid drives have none."""
        k, m = self.links.size, self.train.n_motors
        x, rate = finite_array("position", position, (k,)), finite_array("velocity", velocity, (k,))
        theta = finite_array("motor_position", motor_position, (m,))
        thetad = finite_array("motor_velocity", motor_velocity, (m,))
        return np.concatenate([x, theta[self._moving], rate, thetad[self._moving]])

    def coordinates(self, state: Array) -> tuple[Array, Array]:
        """Return the coordinates x and their rates (k,) in a state."""
        k, half = self.links.size, self.size // 2
        return state[:k], state[half : half + k]

    def unpack(self, state: Array, time: float = 0.0) -> Measurement:
        """Return positions and velocities of the driven joints and of all motors."""
        return self._measured(state, self.links.at(*self.coordinates(state), time))

    def _measured(self, state: Array, links: LinkState) -> Measurement:
        k, half = self.links.size, self.size // 2
        q, qd = links.position, links.velocity
        return Measurement(q, qd, self._motors(q, state[k:half]), self._motors(qd, state[half + k :]))

    def consistent_state(
        self, motion: ArrayLike, stiffness: ArrayLike | None = None, time: float = 0.0
    ) -> Array:
        """Return the state from which the robot can follow a motion (5 or more orders, k) of x at once.

        Damped springs start on their slow manifold. `stiffness` (orders - 2, driven) of commanded joints.
        """
        q = np.ascontiguousarray(motion, dtype=np.float64)
        if q.ndim != 2 or len(q) < 5:
            raise InputError(f"a consistent state needs the motion up to its snap, found shape {q.shape}")
        drives = self.links.drives(q, time)
        theta = self.train.feedforward(drives.motion, drives.efforts, stiffness=stiffness).position
        return self.pack(q[0], q[1], theta[0], theta[1])

    def rates(self, state: Array, effort: Array, time: float = 0.0) -> Array:
        """Return the time derivative (size,) of a state under efforts (motors,) of the motors."""
        half = self.size // 2
        links = self.links.at(*self.coordinates(state), time)
        on_links, on_motors = self._forces(self._measured(state, links), effort)
        return np.concatenate([state[half:], links.acceleration(on_links), on_motors / self._inertia])

    def link_torque(self, measured: Measurement, effort: Array) -> Array:
        """Return what torque sensors between drives and links show (driven,); the effort of rigid drives."""
        return np.where(self.rigid, effort[self._first], self._transmitted(measured)[0])

    def holding(self, position: ArrayLike, time: float = 0.0) -> Array:
        """Return the efforts (motors,) that hold the robot still at coordinates (k,)."""
        at_rest = np.zeros((5, self.links.size))
        at_rest[0] = position
        drives = self.links.drives(at_rest, time)
        efforts: Array = self.train.feedforward(drives.motion, drives.efforts).effort[0]
        return efforts

    def quickest(self, state: Array, time: float = 0.0) -> tuple[float, float]:
        """Return the highest angular frequency of the springs, and rate of decay of what damps [rad/s, 1/s].

        Where the robot is, and as if it stood, where friction is steepest.
        """
        x, _ = self.coordinates(state)
        mass, jacobian = self.links.inertia(x, time)
        try:
            root = np.linalg.inv(np.linalg.cholesky(mass))
        except np.linalg.LinAlgError:
            raise InputError(
                f"robot {self.robot.name!r} has coordinates that move no mass; give its bodies some, and its "
                "rigid drives motors with inertia"
            ) from None
        n = self.train.n_joints
        scaled = np.zeros((self.size // 2, n + len(self._moving)))
        scaled[: len(x), :n] = root @ jacobian.T
        scaled[len(x) :, n:] = np.diag(self._inertia**-0.5)
        stiffness, damping = (
            max(0.0, float(np.linalg.eigvalsh(scaled @ slope @ scaled.T)[-1]))
            for slope in self._slopes(self.unpack(state, time))
        )
        return float(np.sqrt(stiffness)), damping

    def _slopes(self, now: Measurement) -> list[Array]:
        """Return how forces on driven joints and moving motors fall with their positions and speeds."""
        n, size = self.train.n_joints, self.train.n_joints + len(self._moving)
        steps = _DIFFERENCE * np.concatenate([np.eye(size), -np.eye(size)])
        place = np.concatenate([now.position, now.motor_position[self._moving]])
        found = []
        for share in (1.0, 0.0):
            places, speeds = place + share * steps, (1.0 - share) * steps
            links = places[:, :n], speeds[:, :n]
            motors = [self._motors(part[:, :n], part[:, n:]) for part in (places, speeds)]
            forces = self._forces(Measurement(*links, *motors), np.zeros(self.train.n_motors))
            ends = np.concatenate(forces, axis=1)
            found.append((ends[size:] - ends[:size]).T / (2.0 * _DIFFERENCE))
        return found

    def _motors(self, links: Array, moving: Array) -> Array:
        """Return what all motors do (..., motors), from their joints or moving by themselves."""
        motors = links[..., self._joints]
        motors[..., self._moving] = moving
        return motors

    def _forces(self, measured: Measurement, effort: Array) -> tuple[Array, Array]:
        """Return what pushes driven joints (..., driven), and the motors that move by themselves."""
        torque, loads = self._transmitted(measured)
        own = effort - self._motor_friction(measured.motor_velocity)
        on_links = np.where(self.rigid, own[..., self._first], torque)
        return on_links - self._link_friction(measured.velocity), (own - loads)[..., self._moving]

    def _transmitted(self, measured: Measurement) -> tuple[Array, Array]:
        """Return the torques of the springs on the links (..., driven), and what the motors hold."""
        q, qd, theta, thetad = measured
        delta = theta @ self._facing.T - q
        torque = (self._stiffness + self._third * delta**2) * delta
        drag = self.damping * (thetad @ self._facing.T - qd)
        loads = torque[..., self._joints]
        for j, spring, motors in self._others:
            found = spring.loads(q[None, ..., j], np.moveaxis(theta[..., motors], -1, 0)[:, None])
            torque[..., j], loads[..., motors] = found.link[0], np.moveaxis(found.motors[:, 0], 0, -1)
        return torque + drag, loads + drag @ self._facing


def _train_of(robot: Robot) -> DriveTrain:
    """Return the drives of a robot; rigid ones, whose motors have no inertia, where it has none."""
    if robot.drive_train is not None:
        return robot.drive_train
    return DriveTrain([DriveSpec(np.inf, 0.0)] * len(robot.driven_joints), robot.driven_joints)


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
