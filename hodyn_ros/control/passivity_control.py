"""Passivity-based regulation of elastic joints: to a link position, and there as soft as asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.dynamics.results import DriveState
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, InputError

_ITERATIONS = 50
_PRECISION = 1e-13


class Regulation(NamedTuple):
    """The answer of the regulator at one instant, (n,) each."""

    effort: Array  # of the motors [N.m]
    gravity: Array  # the part that holds the links [N.m]


class PassivityRegulator:
    """Regulation of the links by motor positions, passive for any gains: `Q` comes to `g(q_d)`, q to `q_d`.

        u = Kp (theta_d - theta) - Kd theta' + g(q~(theta)),   theta_d = q_d + K^-1 g(q_d)
        tau = B B_d^-1 u + (1 - B B_d^-1) Q

    `q~(theta)` is where the links rest under gravity when the motors stand at theta, found by iteration, and
    Q the measured torque of the springs. Feeding it back makes the motors appear to have the inertia `B_d`.
    At rest the links are exactly where they should be, and yield to forces with `(K^-1 + Kp^-1)^-1`.
    Albu-Schaeffer, Ott, Hirzinger, A unified passivity-based control framework for position, torque and
    impedance control of flexible joint robots, Int. J. Robotics Research 26 (2007), sections 3 and 4.

    q are the driven joints, as many as the coordinates of `Links`; of a tree these are the joints.
    `stiffness` Kp [N.m/rad] and `damping` Kd [N.m s/rad], (n,) or one for all, positive; `motor_inertia` B_d
    [kg m^2], by default the real one. The drives have to be linear springs or rigid, without friction.
    """

    def __init__(
        self, robot: Robot, stiffness: ArrayLike, damping: ArrayLike, motor_inertia: ArrayLike | None = None
    ) -> None:
        train = robot.drive_train
        if train is None or not train.linear:
            raise InputError(
                f"robot {robot.name!r} needs drives that are linear springs or rigid, without friction"
            )
        self._links = Links(robot)
        self.robot = self._links.robot
        if self._links.size != self._links.n_driven:
            raise InputError(f"robot {robot.name!r} has more drives than coordinates, which is not regulated")
        self._train, self._last = train, self._links.home
        self.stiffness = self._positive("stiffness", stiffness)
        self.damping = self._positive("damping", damping)
        own = self._train.motor_inertia
        wanted = own if motor_inertia is None else self._positive("motor_inertia", motor_inertia)
        with np.errstate(invalid="ignore"):
            ratio = np.where(self._train.elastic, own / wanted, 1.0)
        self._ratio: Array = ratio

    def regulate(self, goal: ArrayLike, measured: Measurement) -> Regulation:
        """Return the motor efforts towards coordinates `goal` (n,). Raises ConvergenceError."""
        there = self._at_rest(np.asarray(goal, dtype=np.float64))
        theta = np.asarray(measured.motor_position, dtype=np.float64)
        motor_goal = there.motion[0] + there.efforts[0] / self._train.stiffness
        gravity = self._gravity(self.resting_links(theta))
        wanted = self.stiffness * (motor_goal - theta) - self.damping * measured.motor_velocity + gravity
        spring = self._train.link_torque(measured.position[None], theta[None])[0]
        return Regulation(self._ratio * wanted + (1.0 - self._ratio) * spring, gravity)

    def resting_links(self, motor_position: ArrayLike) -> Array:
        """Return the driven joints (n,) in equilibrium with gravity: `K (theta - q) = g(q)`.

        By fixed-point iteration, a contraction where the springs are stiffer than gravity. Raises
        ConvergenceError where they are not.
        """
        theta = np.asarray(motor_position, dtype=np.float64)
        q = theta
        for _ in range(_ITERATIONS):
            last, q = q, theta - self._gravity(q) / self._train.stiffness
            if np.abs(q - last).max() <= _PRECISION * max(1.0, float(np.abs(q).max())):
                return np.asarray(q)
        moved = float(np.abs(q - last).max())
        raise ConvergenceError(
            f"no rest of the links was found for these motor positions, the last step was {moved:g} rad; the "
            "springs are too soft for gravity",
            moved,
            0.0,
        )

    def _gravity(self, q: Array) -> Array:
        self._last = self._links.locate(q[None], self._last)[0]
        efforts: Array = self._at_rest(self._last).efforts[0]
        return efforts

    def _at_rest(self, x: Array) -> DriveState:
        return self._links.drives(np.stack([x, 0.0 * x, 0.0 * x]))

    def _positive(self, name: str, values: ArrayLike) -> Array:
        n = self._links.n_driven
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), (n,)).copy()
        wrong_joints = np.flatnonzero(~((array > 0.0) & np.isfinite(array)))
        if len(wrong_joints):
            joint = self.robot.driven_joints[int(wrong_joints[0])]
            raise InputError(
                f"the {name} of joint {joint!r} is {array[wrong_joints[0]]:g}; it must be positive"
            )
        return array
