"""How links answer efforts of their motors along a motion, linearised about it, feedback included."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.linear_drives import DAMPING_TIME, LinearDrives, LinearSystem
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.learning.correction import basis
from hodyn_ros.simulation.model_errors import with_scaled_inertia, with_stiffness
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
    damping_time: float = DAMPING_TIME,
) -> Array:
    """Return what `size` splines of efforts at each motor do to the links, (windows, n, size, n).

    The forward dynamics linearised along the motion by `linearised_dynamics`, springs, rotors and the
    feedback of the motors around it: the state is (q, theta, q', theta') about the motion, and stands at the
    start as the efforts there hold it. Springs without damping get `damping_time` [s] times their stiffness.
    Read [rad/(N·m)]. Raises InputError for drives that have no such linearisation.
    """
    deviation = deviation or Deviation()
    nodes = np.linspace(0.0, windows.duration, int(np.ceil(windows.duration / _NODES)) + 1)
    inside = int(np.ceil(windows.duration / windows.count / _STEP))  # steps in a window
    h = windows.duration / windows.count / inside
    systems = _closed_loops(robot, gains, motion.sample(nodes, 2), deviation, damping_time)
    exact = [system.held(h) for system in systems]
    splines, late = basis(windows.duration, size), deviation.delay
    middles = h * (np.arange(inside * windows.count) + 0.5)
    weights = splines(np.clip(middles - late, 0.0, windows.duration)).reshape(windows.count, inside, size)
    places = np.round(middles / windows.duration * (len(nodes) - 1)).astype(int).reshape(weights.shape[:2])
    A, B, _ = systems[0]
    states, n = B.shape
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


def _closed_loops(
    robot: Robot, gains: MotorGains, samples: Array, deviation: Deviation, damping_time: float
) -> list[LinearSystem]:
    """Return the robot that deviates, with its feedback, about samples (N, 3, n) of the motion."""
    check_robot(robot)
    stiffness = robot.require_drives().stiffness * deviation.stiffness
    robot = with_stiffness(with_scaled_inertia(robot, deviation.inertia), stiffness)
    if deviation.payload:
        robot = robot.with_tree(Payload(deviation.payload).on_tree(robot))
    drives = LinearDrives.of_train(robot.require_drives(), damping_time)
    drives = replace(
        drives,
        inertia=drives.inertia * deviation.motor_inertia,
        viscous=drives.viscous + deviation.viscous * gains.derivative,
    )
    n, systems = gains.derivative.size, []
    for sample in samples:
        links = robot.linearised_dynamics(sample[:2], robot.inverse_dynamics(sample)[0])
        mass = np.asarray(np.linalg.inv(links.B[n:]))
        changes = mass @ links.A[n:]
        systems.append(drives.system(mass, np.eye(n), changes[:, :n], changes[:, n:]).with_feedback(gains))
    return systems
