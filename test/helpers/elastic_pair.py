"""Two links in a vertical plane, each behind a motor with friction and a spring: equations by hand, SciPy.

Nothing here comes from the package but the robot that it is held against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import solve_ivp

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec

_BODY = "inertia: {{about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: {0}, iyz: 0, izz: {0}}}"
_FILE = f"""
name: pair
gravity: [0, 0, -9.81]
bodies:
  - {{name: upper, mass: 3.0, com: [0.2, 0, 0], {_BODY.format(0.05)}}}
  - {{name: fore, mass: 2.0, com: [0.15, 0, 0], {_BODY.format(0.02)}}}
joints:
  - {{name: shoulder, type: revolute, parent: world, child: upper, axis: [0, -1, 0],
     limits: {{lower: -3, upper: 3, velocity: 5, effort: 60}}}}
  - {{name: elbow, type: revolute, parent: upper, child: fore, axis: [0, -1, 0],
     origin: {{xyz: [0.4, 0, 0]}}, limits: {{lower: -3, upper: 3, velocity: 5, effort: 30}}}}
"""


@dataclass(frozen=True)
class ElasticPair:
    """The plant. Both joints raise their links as they turn; q = 0 is level."""

    stiffness: tuple[float, float] = (2000.0, 1200.0)
    inertia: tuple[float, float] = (0.4, 0.2)
    viscous: tuple[float, float] = (2.0, 1.0)
    coulomb: tuple[float, float] = (3.0, 1.5)
    transition: float = 0.05
    link_viscous: tuple[float, float] = (0.0, 0.0)

    def with_errors(self, stiffness: float, viscous: float, coulomb: float) -> ElasticPair:
        """Return it with figures that differ by these shares."""
        return replace(
            self,
            stiffness=tuple((1 + stiffness) * np.array(self.stiffness)),
            viscous=tuple((1 + viscous) * np.array(self.viscous)),
            coulomb=tuple((1 + coulomb) * np.array(self.coulomb)),
        )

    def robot(self, read: Callable[[str], Robot], *, rigid: bool = False) -> Robot:
        """Return the model of the package."""
        specs = [
            DriveSpec(
                np.inf if rigid else k,
                b,
                motor_friction=FrictionSpec(d, c, self.transition),
                link_friction=FrictionSpec(e, 0.0, self.transition),
            )
            for k, b, d, c, e in zip(
                self.stiffness, self.inertia, self.viscous, self.coulomb, self.link_viscous
            )
        ]
        return read(_FILE).with_drives(specs)

    @staticmethod
    def mass(q: Array) -> Array:
        """Return the mass matrix of the links."""
        c = np.cos(q[1])
        both = 0.02 + 2.0 * 0.15**2
        coupled = 2.0 * 0.4 * 0.15 * c
        first = 0.05 + 3.0 * 0.2**2 + 2.0 * 0.4**2 + both + 2.0 * coupled
        return np.array([[first, both + coupled], [both + coupled, both]])

    @staticmethod
    def bias(q: Array, v: Array) -> Array:
        """Return Coriolis, centrifugal and gravity torques."""
        h = 2.0 * 0.4 * 0.15 * np.sin(q[1])
        fore = 2.0 * 9.81 * 0.15 * np.cos(q[0] + q[1])
        upper = 9.81 * (3.0 * 0.2 + 2.0 * 0.4) * np.cos(q[0])
        return np.array([-h * (2.0 * v[0] * v[1] + v[1] ** 2) + upper + fore, h * v[0] ** 2 + fore])

    def friction(self, rate: Array) -> Array:
        """Return the friction of the motors."""
        dry = np.array(self.coulomb) * rate / np.sqrt(rate**2 + self.transition**2)
        return np.array(self.viscous) * rate + dry

    def rates(self, state: Array, effort: Array, external: Array) -> Array:
        """Return the derivative of (q, theta, q', theta')."""
        q, theta, v, w = state.reshape(4, 2)
        torque = np.array(self.stiffness) * (theta - q)
        acting = torque - np.array(self.link_viscous) * v - self.bias(q, v) + external
        links = np.linalg.solve(self.mass(q), acting)
        motors = (effort - self.friction(w) - torque) / np.array(self.inertia)
        return np.concatenate([v, w, links, motors])

    def run(
        self,
        duration: float,
        period: float,
        external: Callable[[float], Array],
        *,
        desired: Callable[[float], Array],
        tolerance: float = 1e-12,
    ) -> tuple[Array, Array]:
        """Return states (N, 8) and efforts (N, 2), each held from its sample to the next.

        Motors are held to desired positions by a feedback, and carry the weight of the links.
        """
        q = desired(0.0)
        torque = self.bias(q, np.zeros(2))
        state = np.concatenate([q, q + torque / np.array(self.stiffness), np.zeros(4)])
        states, efforts = [], []
        for i in range(round(duration / period)):
            time = i * period
            theta, w = state[2:4], state[6:8]
            effort = self.bias(desired(time), np.zeros(2)) + np.array([600.0, 300.0]) * (
                desired(time) - theta
            ) - np.array([30.0, 15.0]) * w  # fmt: skip
            states.append(state)
            efforts.append(effort)
            push = external(time + 0.5 * period)
            solved = solve_ivp(
                lambda t, x, u=effort, f=push: self.rates(x, u, f),  # type: ignore[misc]
                (0.0, period), state, method="DOP853", rtol=tolerance, atol=tolerance * 1e-2,
            )  # fmt: skip
            state = solved.y[:, -1]
        return np.array(states), np.array(efforts)
