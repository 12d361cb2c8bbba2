"""How gently torques have to bend so that springs which are not quite as modelled hardly swing.

A feedforward that believes a stiffness wrong by the share e leaves the force `e Q(t)` of a torque Q at each
spring. Where the second derivative of Q steps by S, that starts a swing of the torque `e S / w^2`, w its
angular frequency. A motor that is free to move never swings slower against its spring than `w^2 = K / B`,
with its inertia B, whatever the links and the payload weigh (Spong, J. Dyn. Sys. Meas. Control 109(4), 1987).
So torques that are to swing by no more than a share of their limits have limits of their second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.trajectory.robot_motion import RobotMotion

_PLACES = 33  # of a path, at which a payload is compared


@dataclass(frozen=True)
class Uncertainty:
    """What may be wrong of a model, and how much may be left swinging for it.

    Raises InputError for what cannot be.
    """

    stiffness: float = 0.0  # share by which springs may be stiffer or softer, below 1
    payload: float = 0.0  # [kg] that may be carried without being modelled
    swing: float = 1.5e-3  # share of each torque limit that a spring may swing by, to first order

    def __post_init__(self) -> None:
        if not 0.0 <= self.stiffness < 1.0:
            raise InputError(
                f"an error of the stiffness of {100.0 * self.stiffness:g} % cannot be planned for; say "
                "0 % or more, below 100 %"
            )
        if not 0.0 <= self.payload < np.inf:
            raise InputError(f"an error of the payload of {self.payload:g} kg cannot be; say 0 kg or more")
        if not 0.0 < self.swing < np.inf:
            raise InputError(f"the share that may swing must be positive and finite, found {self.swing:g}")

    def torque_accelerations(self, robot: Robot, path: RobotMotion | Array) -> Array:
        """Return how fast torque rates may change (n,) [N·m/s² or N/s²], infinite at rigid joints.

        A payload counts along a path, or for moves of single joints from a place (n,) [rad or m].
        Raises InputError for a robot without springs, or whose joints have no limits of torque.
        """
        train = robot.drive_train
        if train is None or not train.elastic.any():
            raise InputError(
                f"robot {robot.name!r} has no elastic drives, so nothing swings; give `stiffness` in its file"
            )
        if any(spec.spring_table or spec.variable_stiffness for spec in train.specs):
            raise InputError("springs with a table, or of variable stiffness, have no stiffness to be wrong")
        effort = train.effort_limits(robot.limits.effort)[: len(train.joint_names)]
        unlimited = train.elastic & ~np.isfinite(effort)
        if unlimited.any():
            name = train.joint_names[int(unlimited.argmax())]
            raise InputError(
                f"joint {name!r} has no limit of torque to measure its swing by; give its `effort`"
            )
        wrong = self.stiffness + self._share_of_payload(robot, path)
        with np.errstate(divide="ignore", invalid="ignore"):
            softest = (1.0 - self.stiffness) * train.stiffness / train.motor_inertia
            bends = self.swing * effort * softest / wrong
        return np.where(train.elastic & (wrong > 0.0), bends, np.inf)

    def _share_of_payload(self, robot: Robot, path: RobotMotion | Array) -> Array:
        """Return by which share (n,) the payload raises the torques that accelerate a robot."""
        if not self.payload:
            return np.zeros(len(robot.driven_joints))
        carrying = robot.with_tree(Payload(self.payload).on_tree(robot))
        if not isinstance(path, RobotMotion):
            return _share_at(robot, carrying, path)
        places = np.linspace(path.trajectory._departure, path.trajectory.duration, _PLACES)
        light, heavy = (
            PathDynamics.of(LimitSet(each), path, places).torques[1][:, 0, : len(robot.driven_joints)]
            for each in (robot, carrying)
        )
        most = np.abs(light).max(axis=0)
        added = np.abs(heavy - light).max(axis=0)
        return np.asarray(np.divide(added, most, out=np.zeros_like(most), where=most > 0.0))


def _share_at(robot: Robot, carrying: Robot, place: Array) -> Array:
    """Return by which share (n,) inertias of single joints are larger for a robot that carries something."""
    if not robot.is_arm:
        raise InputError(
            f"robot {robot.name!r} has loops or moves its base: how much a payload counts depends on the "
            "path, which a stream does not know; leave out payload_error"
        )
    light, heavy = (np.diag(each.mass_matrix(place[None])[0]) for each in (robot, carrying))
    return np.asarray(heavy / light - 1.0)
