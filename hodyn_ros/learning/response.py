"""How links answer efforts of their motors along a motion, linearised about it, feedback included."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.learning.correction import basis
from hodyn_ros.trajectory.base import Trajectory

_NODES = 0.02  # [s] at most between two linearisations
_STEP = 4e-3  # [s] at most for which efforts count as held; between them the solution is exact


@dataclass(frozen=True)
class Deviation:
    """One way in which a robot may differ from its model; factors of all joints or of each."""

    stiffness: float | Array = 1.0
    inertia: float | Array = 1.0  # of the bodies
    motor_inertia: float | Array = 1.0
    payload: float = 0.0  # [kg] at the origin of the last body
    viscous: float | Array = 0.0  # friction of the motors, as a share of the derivative gain
    delay: float = 0.0  # [s] by which efforts come late


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of time over which errors count as their means."""

    duration: float  # [s]
    count: int

    @property
    def edges(self) -> Array:
        """The times [s] between them (count + 1,)."""
        return np.linspace(0.0, self.duration, self.count + 1)

    def means(self, times: Array, values: Array) -> tuple[Array, Array]:
        """Return means (count, n) and numbers of samples (count, n); nan is none, and no mean is 0."""
        places = np.floor(times / self.duration * self.count).astype(int)
        chosen = (places >= 0) & (places < self.count)
        places, values = places[chosen], values[chosen]
        there = np.isfinite(values)
        totals, counts = np.zeros((2, self.count, values.shape[1]))
        np.add.at(totals, places, np.where(there, values, 0.0))
        np.add.at(counts, places, there.astype(float))
        return totals / np.maximum(counts, 1.0), counts


def response(
    robot: Robot,
    gains: MotorGains,
    motion: Trajectory,
    size: int,
    windows: Windows,
    deviation: Deviation | None = None,
    damping_time: float = 2e-4,
) -> Array:
    """Return what `size` splines of efforts at each motor do to the links, (windows, n, size, n).

    The forward dynamics linearised along the motion by `linearised_dynamics`, springs, rotors and the
    feedback of the motors around it: the state is (q, theta, q', theta') about the motion, and stands at the
    start as the efforts there hold it. Springs without damping get `damping_time` [s] times their stiffness.
    Read [rad/(N·m)]. Raises InputError for drives that have no such linearisation.
    """
    plant = _Plant.of(robot, gains, deviation or Deviation(), damping_time)
    nodes = np.linspace(0.0, windows.duration, int(np.ceil(windows.duration / _NODES)) + 1)
    inside = int(np.ceil(windows.duration / windows.count / _STEP))  # steps in a window
    h = windows.duration / windows.count / inside
    matrices = [plant.matrices(sample) for sample in motion.sample(nodes, 2)]
    exact = [_exact(A, B, h) for A, B in matrices]
    splines, late, n = basis(windows.duration, size), plant.deviation.delay, plant.n
    middles = h * (np.arange(inside * windows.count) + 0.5)
    weights = splines(np.clip(middles - late, 0.0, windows.duration)).reshape(windows.count, inside, size)
    places = np.round(middles / windows.duration * (len(nodes) - 1)).astype(int).reshape(weights.shape[:2])
    A, B = matrices[0]
    states = len(A)
    X = np.multiply.outer(np.linalg.solve(A, -B), splines(0.0)).transpose(0, 2, 1).copy()
    result = np.empty((windows.count, n, size, n))
    for i in range(windows.count):
        active = np.flatnonzero(weights[i].any(axis=0))
        # how the state goes through the window, and beside it what each active spline adds
        Y = np.hstack([np.eye(states), np.zeros((states, len(active) * n))])
        total = np.zeros((n, Y.shape[1]))
        for k in range(inside):
            phi, gamma = exact[places[i, k]]
            before = Y[:n]
            Y = phi @ Y
            Y[:, states:] += np.kron(weights[i, k, active], gamma)
            total += 0.5 * (before + Y[:n])
        columns = X.reshape(states, -1)
        seen = (total[:, :states] @ columns).reshape(n, size, n)
        seen[:, active] += total[:, states:].reshape(n, len(active), n)
        result[i] = seen / inside
        X = (Y[:, :states] @ columns).reshape(states, size, n)
        X[:, active] += Y[:, states:].reshape(states, len(active), n)
    return result


def check_robot(robot: Robot) -> None:
    """Raise InputError for a robot whose response is not computed here."""
    train = robot.require_drives()
    if not robot.is_arm:
        raise InputError(
            f"robot {robot.name!r} has loops or a base that moves; learning is for arms and trees on the "
            "ground"
        )
    for name, spec in zip(train.joint_names, train.specs):
        if spec.spring_table or spec.variable_stiffness:
            raise InputError(
                f"joint {name!r} has a spring that is not linear; learning needs linear ones, or rigid drives"
            )


@dataclass(frozen=True, eq=False)
class _Plant:
    robot: Robot
    gains: MotorGains
    stiffness: Array  # (n,) zero where rigid
    damping: Array
    inertia: Array  # of motors
    viscous: Array
    elastic: NDArray[np.intp]  # places of the joints with springs
    deviation: Deviation

    @classmethod
    def of(cls, robot: Robot, gains: MotorGains, deviation: Deviation, damping_time: float) -> _Plant:
        check_robot(robot)
        train = robot.require_drives()
        tree, n = robot.tree, train.n_joints
        factors = np.broadcast_to(np.asarray(deviation.inertia, dtype=np.float64), (tree.n_bodies,))
        tree = replace(tree, masses=tree.masses * factors, inertias=tree.inertias * factors[:, None, None])
        if deviation.payload:
            tree = Payload(deviation.payload).on_tree(robot.with_tree(tree))
        soft = np.flatnonzero(train.elastic)
        stiffness = np.where(train.elastic, train.stiffness, 0.0) * np.ones(n) * deviation.stiffness
        own = np.array([spec.spring_damping for spec in train.specs], dtype=np.float64)
        damping = np.where(own > 0.0, own, stiffness * damping_time) * train.elastic
        viscous = np.array([getattr(spec.motor_friction, "viscous", 0.0) for spec in train.specs])
        viscous = viscous + deviation.viscous * gains.derivative
        inertia = train.motor_inertia * deviation.motor_inertia
        return cls(robot.with_tree(tree), gains, stiffness, damping, inertia, viscous, soft, deviation)

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.stiffness)

    def matrices(self, motion: Array) -> tuple[Array, Array]:
        """Return A and B of the closed loop about a sample (3, n) of the motion."""
        n, soft = self.n, self.elastic
        efforts = self.robot.inverse_dynamics(motion)[0]
        links = self.robot.linearised_dynamics(motion[:2], efforts)
        mass = np.linalg.inv(links.B[n:])
        by_position, by_velocity = mass @ links.A[n:, :n], mass @ links.A[n:, n:]
        rigid = np.ones(n, dtype=bool)
        rigid[soft] = False
        held = np.where(rigid, self.gains.proportional, 0.0)
        slowed = np.where(rigid, self.gains.derivative + self.viscous, 0.0)
        heavy = mass + np.diag(np.where(rigid, self.inertia, 0.0))
        k, d, m = self.stiffness[soft], self.damping[soft], len(soft)
        # rows: accelerations of links, then of motors, before masses are divided out
        by_q = np.zeros((n + m, n + m))
        by_v = np.zeros((n + m, n + m))
        by_q[:n, :n] = by_position - np.diag(self.stiffness + held)
        by_v[:n, :n] = by_velocity - np.diag(self.damping + slowed)
        by_q[soft, n + np.arange(m)] = by_q[n + np.arange(m), soft] = k
        by_v[soft, n + np.arange(m)] = by_v[n + np.arange(m), soft] = d
        by_q[n:, n:] = -np.diag(k + self.gains.proportional[soft])
        by_v[n:, n:] = -np.diag(d + self.gains.derivative[soft] + self.viscous[soft])
        masses = np.zeros((n + m, n + m))
        masses[:n, :n], masses[n:, n:] = heavy, np.diag(self.inertia[soft])
        push = np.zeros((n + m, n))
        push[:n] = np.diag(rigid.astype(float))
        push[n + np.arange(m), soft] = 1.0
        A = np.block(
            [[np.zeros((n + m, n + m)), np.eye(n + m)], [np.linalg.solve(masses, np.hstack([by_q, by_v]))]]
        )
        B = np.vstack([np.zeros((n + m, n)), np.linalg.solve(masses, push)])
        return A, B


def _exact(A: Array, B: Array, h: float) -> tuple[Array, Array]:
    """Return state transition and effect of an effort that is held for `h` [s]."""
    states, inputs = B.shape
    whole = np.zeros((states + inputs, states + inputs))
    whole[:states, :states], whole[:states, states:] = A, B
    exponential = expm(h * whole)
    return exponential[:states, :states], exponential[:states, states:]
