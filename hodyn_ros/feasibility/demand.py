"""What a motion demands of a robot, column by column beside the limit that it has to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feasibility.subject import Subject, subject_of
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion


class Column(NamedTuple):
    """One limit of one joint or motor."""

    quantity: str
    joint: str  # or motor
    unit: str
    lower: float
    upper: float
    order: int  # highest derivative of the motion that the quantity follows from


class Demand:
    """All finite limits of a robot, and the quantities that have to keep them, from samples of a motion.

    Positions and velocities of the joints; torques of the links with their rates; speeds, torques and torque
    rates of the motors; deflections of the springs. The limits of a drive are its own; where its file gives
    none, those of its joint count for the motor as well. Damped springs are taken on their slow manifold.
    Of a parallel robot the driven joints count. Nothing limits the wrench on a floating base.
    """

    def __init__(self, robot: Robot | ParallelRobot) -> None:
        self.subject = subject_of(robot)
        self.columns: list[Column] = []
        self._sources: list[Callable[[_Samples], Array]] = []
        self._gather()
        if not self.columns:
            raise InputError(
                f"robot {self.subject.name!r} has no limits; give its joints `limits` in the robot file"
            )
        self.lower = np.array([column.lower for column in self.columns])
        self.upper = np.array([column.upper for column in self.columns])
        self.order = max(self.subject.least_order, *(column.order for column in self.columns))
        # positions do not change with the speed of a motion
        self.timed = np.array([column.quantity != "position" for column in self.columns])

    def require(self, motion: RobotMotion) -> None:
        """Raise InputError unless every quantity is bounded along the motion, which fits the robot."""
        self.subject.require(motion)
        # the highest derivative may jump, as long as it stays finite
        motion.trajectory.require_smoothness(self.order - 1)

    def values(self, sample: MotionSample) -> Array:
        """Return the quantities (N, columns) at N samples of a motion up to `order`. Raises SampleError."""
        samples = _Samples(self.subject, sample)
        return np.stack([source(samples) for source in self._sources], axis=1)

    def usage(self, values: Array) -> Array:
        """Return by which share limits are used (N, columns): at most one where all hold.

        Of a position, measured from the middle of its range; with one bound only, or a range without a width,
        zero while it holds.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            middle, half = 0.5 * (self.upper + self.lower), 0.5 * (self.upper - self.lower)
            shares = np.abs(values - middle) / half
        no_width = ~np.isfinite(half) | (half == 0.0)
        if no_width.any():
            beyond = np.maximum(values - self.upper, self.lower - values)[:, no_width]
            shares[:, no_width] = np.where(beyond > 0.0, 1.0 + beyond, 0.0)
        return np.asarray(shares)

    def margins(self, values: Array) -> Array:
        """Return the distances (N, columns) to the nearer limit, negative beyond it, in the units."""
        return np.asarray(np.minimum(self.upper - values, values - self.lower))

    def _gather(self) -> None:
        subject, limits, train = self.subject, self.subject.limits, self.subject.train
        prismatic = subject.prismatic
        for j, name in enumerate(subject.joint_names):
            length, force = ("m", "N") if prismatic[j] else ("rad", "N·m")
            lower, upper = float(limits.position_lower[j]), float(limits.position_upper[j])
            self._add("position", name, length, lower, upper, 0, _position(j))
            self._symmetric("velocity", name, f"{length}/s", limits.velocity[j], 1, _velocity(j))
            self._symmetric("torque", name, force, limits.effort[j], 2, _torque(j, 0))
            self._symmetric("torque rate", name, f"{force}/s", limits.effort_rate[j], 3, _torque(j, 1))
        if train is None:
            return
        lost = 2 if train.elastic.any() else 0  # rows are as long as those of the joint that has fewest
        for m, (joint, name) in enumerate(zip(train.motor_joints, train.motor_names)):
            length, force = ("m", "N") if prismatic[joint] else ("rad", "N·m")
            own = train.drives[joint].limits
            # a motor that presses a spring has nothing in common with the joint's limits
            shared = train.motor_joints.index(joint) == m
            speed = _first_finite(own.speed, limits.velocity[joint] if shared else np.inf)
            torque = _first_finite(own.torque, limits.effort[joint] if shared else np.inf)
            rate = _first_finite(own.torque_rate, limits.effort_rate[joint] if shared else np.inf)
            if train.elastic[joint]:
                self._symmetric("motor speed", name, f"{length}/s", speed, 3, _motor(m, 0, 1))
            else:
                self._symmetric("motor speed", name, f"{length}/s", own.speed, 1, _velocity(joint))
            self._symmetric("motor torque", name, force, torque, 2 + lost, _motor(m, 1, 0))
            self._symmetric("motor torque rate", name, f"{force}/s", rate, 3 + lost, _motor(m, 1, 1))
        for j, (name, drive) in enumerate(zip(subject.joint_names, train.drives)):
            length = "m" if prismatic[j] else "rad"
            if not drive.rigid:
                self._symmetric("deflection", name, length, drive.limits.deflection, 2, _deflection(j))

    def _symmetric(
        self,
        quantity: str,
        joint: str,
        unit: str,
        bound: float,
        order: int,
        source: Callable[[_Samples], Array],
    ) -> None:
        self._add(quantity, joint, unit, -float(bound), float(bound), order, source)

    def _add(
        self,
        quantity: str,
        joint: str,
        unit: str,
        lower: float,
        upper: float,
        order: int,
        source: Callable[[_Samples], Array],
    ) -> None:
        if np.isfinite(lower) or np.isfinite(upper):
            self.columns.append(Column(quantity, joint, unit, lower, upper, order))
            self._sources.append(source)


class _Samples:
    """Motion, torques and motors at N instants; the motors are computed when they are first asked for."""

    def __init__(self, subject: Subject, sample: MotionSample) -> None:
        self.subject = subject
        self.motion, self.torques = subject.evaluate(sample)
        self._motors: tuple[Array, Array] | None = None

    @property
    def motors(self) -> tuple[Array, Array]:
        if self._motors is None:
            plain, train = self.subject.actuation, self.subject.train
            if plain is not None and (self.torques.shape[1] > 2 or not plain.elastic.any()):
                self._motors = plain.feedforward(self.motion, self.torques)
            elif train is not None:
                self._motors = train.feedforward(self.motion, self.torques)
            else:
                raise InputError(f"robot {self.subject.name!r} has no drives")
        return self._motors


def _position(j: int) -> Callable[[_Samples], Array]:
    return lambda samples: samples.motion[:, 0, j]


def _velocity(j: int) -> Callable[[_Samples], Array]:
    return lambda samples: samples.motion[:, 1, j]


def _torque(j: int, order: int) -> Callable[[_Samples], Array]:
    return lambda samples: samples.torques[:, order, j]


def _motor(m: int, which: int, order: int) -> Callable[[_Samples], Array]:
    return lambda samples: samples.motors[which][:, order, m]


def _deflection(j: int) -> Callable[[_Samples], Array]:
    def deflection(samples: _Samples) -> Array:
        train = samples.subject.train
        if train is None:
            raise InputError(f"robot {samples.subject.name!r} has no drives")
        return train.deflections(samples.motion[:, 0], samples.motors[0][:, 0])[:, j]

    return deflection


def _first_finite(own: float, shared: float) -> float:
    return own if np.isfinite(own) else float(shared)
