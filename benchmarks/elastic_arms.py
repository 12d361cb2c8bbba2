"""Many arms with elastic joints at once, each on a motion of its own, under motor PD with feedforward.

Spong's model of elastic joints (J. Dyn. Sys. Meas. Control 109(4), 1987), all arms as one batch:

    M(q) q'' + h(q, q') = K (theta - q) + D (theta' - q')
    B theta'' + K (theta - q) + D (theta' - q') = tau
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.simulation.tracking_study import Loop

_PERIOD = 1e-3  # [s] of the control loop
_TURN = 1.0  # of the quickest oscillation in a step [rad]; what is quick is damped within milliseconds
_SETTLED = 100  # rounds for the equilibrium at the start, each a tenth nearer at least


@dataclass(frozen=True)
class Followed:
    """What the motors follow, at each period of the loop."""

    positions: Array  # (T, 2, n) with velocities
    efforts: Array  # (T, n)

    @classmethod
    def elastic(cls, robot: Robot, motion: Array) -> Followed:
        """Follow a motion (T, 5, n) with the springs as modelled: theta = q + Q / K, tau = Q + B theta''."""
        train, torques = robot.require_drives(), robot.inverse_dynamics(motion)
        positions = motion[:, :3] + torques[:, :3] / train.stiffness
        return cls(positions[:, :2], torques[:, 0] + train.motor_inertia * positions[:, 2])

    @classmethod
    def rigid(cls, robot: Robot, motion: Array) -> Followed:
        """Follow a motion (T, 3, n) as if the joints were stiff: theta = q, tau = Q + B q''."""
        torques = robot.inverse_dynamics(motion[:, :3])[:, 0]
        return cls(motion[:, :2], torques + robot.require_drives().motor_inertia * motion[:, 2])


def deflections(robot: Robot, followed: list[Followed], errors: Array, afterwards: float) -> list[Array]:
    """Return how springs bend (T, n) [rad] from the end of each motion on, for `afterwards` [s].

    `errors` (N,): shares by which the springs of each arm are stiffer than modelled.
    """
    train, loop = robot.require_drives(), Loop()
    gains = MotorGains.of_drives(train, loop.natural_frequency, loop.damping_ratio)
    limits = train.effort_limits(robot.limits.effort)
    stiffness = train.stiffness * (1.0 + errors[:, None])
    damping, inertia = loop.damping_time * stiffness, train.motor_inertia
    wanted = [
        np.array([one.positions[0, 0] for one in followed]),
        np.array([one.efforts[0] for one in followed]),
    ]
    theta = wanted[0].copy()
    q = theta.copy()
    for _ in range(_SETTLED):
        gravity = robot.inverse_dynamics(np.stack([q, 0.0 * q, 0.0 * q], axis=1))[:, 0]
        theta = wanted[0] + (wanted[1] - gravity) / gains.proportional
        q = theta - gravity / stiffness
    forward = robot.compile_batch(0, "forward_dynamics")
    inverses = np.linalg.inv(robot.mass_matrix(q[:1])[0]) + np.diag(1.0 / inertia)
    quickest = float(np.sqrt(np.linalg.eigvals(inverses * stiffness.max(axis=0)).real.max()))
    count = int(np.ceil(_PERIOD * quickest / _TURN))
    step = _PERIOD / count

    def rates(state: Array, effort: Array) -> Array:
        position, velocity = state
        spring = stiffness * (position[1] - position[0]) + damping * (velocity[1] - velocity[0])
        motion = np.ascontiguousarray(np.stack([position[0], velocity[0]], axis=1))
        links = forward(motion, spring[:, None], threads=1)[:, 0]
        return np.stack([velocity, np.stack([links, (effort - spring) / inertia])])

    state = np.stack([np.stack([q, theta]), np.zeros((2, *q.shape))])
    ends = np.array([len(one.efforts) - 1 for one in followed])
    total = int(ends.max()) + round(afterwards / _PERIOD)
    bent: list[list[Array]] = [[] for _ in followed]
    for tick in range(total + 1):
        at = np.minimum(tick, ends)
        for i in np.flatnonzero((tick >= ends) & (tick <= ends + round(afterwards / _PERIOD))):
            bent[i].append(state[0, 0, i] - state[0, 1, i])
        target = np.array([one.positions[k] for one, k in zip(followed, at)])
        ahead = np.array([one.efforts[k] for one, k in zip(followed, at)])
        feedback = gains.proportional * (target[:, 0] - state[0, 1]) + gains.derivative * (
            target[:, 1] - state[1, 1]
        )
        effort = np.clip(ahead + feedback, -limits, limits)
        for _ in range(count):
            first = rates(state, effort)
            second = rates(state + 0.5 * step * first, effort)
            third = rates(state + 0.5 * step * second, effort)
            fourth = rates(state + step * third, effort)
            state = state + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
    return [np.array(one) for one in bent]
