"""The equations of motion of a robot with drives of any kind, links and motors together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain, Row
from hodyn_ros.array import Array
from hodyn_ros.checks import finite_array
from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.control.links import BaseAt, Links
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.errors import InputError
from hodyn_ros.model.drive_spec import DriveSpec

# Takes the time [s] and the exact state; returns efforts (motors,).
Law = Callable[[float, Measurement], Array]

_DIFFERENCE = 1e-6  # [rad or m, /s] for slopes of springs and friction


class Plant:
    """A robot with its drives, as a differential equation of first order.

        M(x) x'' + h(x, x') = J^T (Q_t(theta - q, theta' - q') - f_l(q'))
        B theta'' + f_m(theta') + load = tau

    and where drives say what carries their motors, with the coupling of `hodyn_ros.dynamics.rotor_coupling`.

    q are the driven joints, x the coordinates of `Links`; both are the joints of a tree. The motor of a
    rigid drive moves with its joint: its inertia and friction act there, and so does its effort. The state is
    `(x, theta, x', theta')` flat, with motors of elastic drives only; `unpack` gives them all. `damping`
    (driven,) or one for all [N.m s/rad] acts beside springs that have none of their own. Without drives, all
    are rigid, and motors without inertia. `base` is the motion of a base that is prescribed, by time [s].

    Attributes:
        armature: Inertia that motors of rigid drives add to their joints (driven,) [kg m^2].
    """

    def __init__(self, robot: Robot, damping: ArrayLike = 0.0, base: BaseAt | None = None) -> None:
        self.train = _train_of(robot)
        self._joints = np.array(self.train.motor_joints)
        rigid, inertias = ~self.train.elastic, self.train.motor_inertia
        # motors with coordinates of their own
        self._moving = np.flatnonzero(self.train.elastic[self._joints])
        self._inertia = inertias[self._moving]
        first = np.searchsorted(self._joints, np.arange(self.train.n_joints))  # the first motor of each joint
        self.armature = np.where(rigid, inertias[first], 0.0)
        self.links = Links(robot, base, self.armature)
        self.robot = self.links.robot
        own = np.array([spec.spring_damping for spec in self.train.specs])
        beside = np.broadcast_to(np.asarray(damping, dtype=np.float64), own.shape)
        wrong = ~((beside >= 0.0) & np.isfinite(beside))
        if wrong.any():
            joint = self.train.joint_names[int(wrong.argmax())]
            raise InputError(
                f"the damping beside springs must be finite and not negative, found {beside[wrong][0]:g} of "
                f"joint {joint!r}"
            )
        self.rotors = RotorCoupling.of(self.robot)
        self._beside = np.where(rigid | (own > 0.0), 0.0, beside).tolist()

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
        return self._measured(self.links.at(self._coordinates(state), time).motion, state)

    def _coordinates(self, state: Array) -> Array:
        """Return x and x' (2, k)."""
        return np.ascontiguousarray(state.reshape(2, -1)[:, : self.links.size])

    def _measured(self, joints: Array, state: Array) -> Measurement:
        motors = np.take(joints, self._joints, axis=1)
        motors[:, self._moving] = state.reshape(2, -1)[:, self.links.size :]
        return Measurement(*joints, *motors)

    def consistent_state(
        self, motion: ArrayLike, stiffness: ArrayLike | None = None, time: float = 0.0
    ) -> Array:
        """Return the state from which the robot can follow a motion (5 or more orders, k) of x at once.

        Damped springs start on their slow manifold. `stiffness` (orders - 2, driven) of commanded joints.
        """
        q = np.ascontiguousarray(motion, dtype=np.float64)
        if q.ndim != 2 or len(q) < 5:
            raise InputError(f"a consistent state needs the motion up to its snap, found shape {q.shape}")
        if self.rotors is not None:
            theta = self.rotors.feedforward(q, 1)[1].position
            return self.pack(q[0], q[1], theta[0], theta[1])
        drives = self.links.drives(q, time)
        theta = self.train.feedforward(drives.motion, drives.efforts, stiffness=stiffness).position
        return self.pack(q[0], q[1], theta[0], theta[1])

    def rates(self, state: Array, effort: Array | Law, time: float = 0.0) -> Array:
        """Return the time derivative (size,) of a state under efforts (motors,) of the motors, or a law."""
        links = self.links.at(self._coordinates(state), time)
        if callable(effort):
            effort = effort(time, self._measured(links.motion, state))
        n, half = self.train.n_joints, self.size // 2
        forces = self._forces(links.motion, state.reshape(2, -1)[:, self.links.size :], effort)
        on_links, motors = links.acceleration(forces[n : 2 * n]), forces[2 * n :]
        if self.rotors is not None:
            return np.concatenate([state[half:], self._coupled(self.rotors, state, on_links, motors)])
        return np.concatenate([state[half:], on_links, motors])

    def _coupled(self, rotors: RotorCoupling, state: Array, links: Array, motors: Array) -> Array:
        """Return accelerations of links and moving motors, from those without what couples rotors and links.

            (M  S) (q'')   (M q''_0      - gyroscopic torques)
            (S' B) (th'') = (B theta''_0 - carriers' turning  )

        and where a motor moves with its joint, its row and column are added to those of the joint.
        """
        n, half = self.links.size, self.size // 2
        motion = self._coordinates(state)
        follow = np.zeros((self.train.n_motors, half))  # from accelerations to those of all motors
        follow[:, :n] = np.eye(n) * ~self.train.elastic
        follow[self._moving, n:] = np.eye(len(self._moving))
        coupling = rotors.coupling(motion, follow @ state[half:])
        mass = np.zeros((half, half))
        mass[:n, :n] = self.links.inertia(motion[0])[0]
        mass[n:, n:] = np.diag(self._inertia)
        forces = mass @ np.concatenate([links, motors]) - follow.T @ coupling.on_motors
        forces[:n] -= coupling.on_links
        mass[:n] += coupling.inertia @ follow
        mass[:, :n] += (coupling.inertia @ follow).T
        return np.linalg.solve(mass, forces)

    def link_torque(self, measured: Measurement, effort: Array) -> Array:
        """Return what torque sensors between drives and links show (driven,); the effort of rigid drives."""
        joints, motors = np.array(measured[:2]), np.array(measured[2:])
        return self._forces(joints, motors[:, self._moving], effort)[: self.train.n_joints]

    def _forces(self, joints: Array, moving: Array, effort: Array) -> Array:
        """Return what `traced` does in one row, compiled; InputError says in words what cannot be."""
        motors = [np.ascontiguousarray(moving)] if len(self._moving) else []
        table = self._compiled(joints, *motors, effort[None])[0]
        if table[-1] != 0.0:
            q, qd = joints.tolist()
            theta, thetad = moving.tolist()
            return np.concatenate(self.traced(q, qd, theta, thetad, effort.tolist()))
        return table[:-1]

    @cached_property
    def _compiled(self) -> Callable[..., Array]:
        m, moving = self.train.n_motors, len(self._moving)

        def trace(joints: Stack, *further: Stack) -> Stack:
            theta, thetad = further[0] if moving else ([], [])
            forces = self.traced(joints[0], joints[1], theta, thetad, further[-1][0])
            return [[*itertools.chain(*forces), joints[0][0].graph.violation()]]

        shapes = [("motion of the joints", (2, self.train.n_joints)), ("efforts", (1, m))]
        if moving:
            shapes.insert(1, ("motion of the motors", (2, moving)))
        return Kernel(trace, shapes).function

    @cached_property
    def traced(self) -> Callable[[Row, Row, Row, Row, Row], tuple[list[Any], list[Any], list[Any]]]:
        """`DriveTrain.free_motion` of these drives, by which compiled code of them is found again."""
        return partial(self.train.free_motion, self._inertia, self._beside)

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
        place = np.concatenate([now.position, now.motor_position[self._moving]])
        inertia, nothing = np.concatenate([np.ones(n), self._inertia]), np.zeros(self.train.n_motors)

        def forces(places: Array, speeds: Array) -> Array:
            motion = np.array([places, speeds])
            return inertia * self._forces(motion[:, :n].copy(), motion[:, n:], nothing)[n:]

        steps, still = _DIFFERENCE * np.eye(size), np.zeros(size)
        positions = [forces(place - step, still) - forces(place + step, still) for step in steps]
        speeds = [forces(place, -step) - forces(place, step) for step in steps]
        return [np.array(rows).T / (2.0 * _DIFFERENCE) for rows in (positions, speeds)]


def _train_of(robot: Robot) -> DriveTrain:
    """Return the drives of a robot; rigid ones, whose motors have no inertia, where it has none."""
    if robot.drive_train is not None:
        return robot.drive_train
    return DriveTrain([DriveSpec(np.inf, 0.0)] * len(robot.driven_joints), robot.driven_joints)
