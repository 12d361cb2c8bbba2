"""The feedforward of a robot: efforts of links and motors by derivative order, held against the limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntFlag
from math import factorial
from typing import NamedTuple, Protocol

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.drive_spec import DriveLimits
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.motion import BaseMotion
from hodyn_ros.se3 import Array


class Status(IntFlag):
    """What is remarkable about a feedforward; zero when everything is within its limits."""

    OK = 0
    EFFORT_LIMIT_EXCEEDED = 1
    EFFORT_RATE_LIMIT_EXCEEDED = 2
    VELOCITY_LIMIT_EXCEEDED = 4
    POSITION_LIMIT_EXCEEDED = 8
    EFFORT_CLAMPED = 16
    NEAR_SINGULARITY = 32


class Setpoint(NamedTuple):
    """A feedforward at one instant, (n,) each, SI units; empty (0,) where it is not known."""

    efforts: Array
    motor_positions: Array
    motor_velocities: Array
    motor_efforts: Array
    base_wrench: Array  # (6,) or (0,)


class Feedforward(NamedTuple):
    """Efforts and motor motion with their time derivatives, by order on axis 0; no rows where not known.

    Read N for N·m and m for rad where a joint is prismatic.
    """

    efforts: Array  # (order + 1, n) link side [N·m/s^k]
    motor_positions: Array  # (0..order + 1, n) reflected to the link side [rad/s^k]
    motor_efforts: Array  # (0..order + 1, n) [N·m/s^k]
    base_wrenches: Array  # (0 or order + 1, 6) on a floating base, in the world frame [N·m/s^k, N/s^k]
    status: Status = Status.OK

    def at(self, h: float) -> Setpoint:
        """Evaluate `x(h) = sum_k x^(k) h^k / k!`, h [s] after (or before) the instant of this feedforward."""
        return Setpoint(
            taylor(self.efforts, h),
            taylor(self.motor_positions, h),
            taylor(self.motor_positions[1:], h),
            taylor(self.motor_efforts, h),
            taylor(self.base_wrenches, h),
        )


def taylor(derivatives: Array, h: float) -> Array:
    """Evaluate a Taylor series given by derivatives (orders, n) at a distance h; (0,) without orders.

    >>> taylor(np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 2.0]]), 0.5)
    array([2.75, 0.25])
    """
    if not len(derivatives):
        return np.empty(0)
    weights = np.array([h**k / factorial(k) for k in range(len(derivatives))])
    return weights @ derivatives


class DrivenRobot(Protocol):
    """What a law needs to know about a robot of any kind."""

    @property
    def limits(self) -> JointLimits:
        """Limits of the joints that have efforts."""

    @property
    def actuation(self) -> SeriesElastic | None:
        """Their drives, where all of these are plain."""

    @property
    def drive_train(self) -> DriveTrain | None:
        """Their drives of any kind."""


class Law(ABC):
    """From a desired motion to the feedforward: inverse dynamics, then the drives, then the limits.

    `order` of the efforts; `clamp` holds efforts within the limits of the robot. `motor_*` come out as far as
    the drives of the robot and the order allow: motor positions to `order`, motor efforts to `order - 2` (to
    `order` when all drives are rigid); without drives, or for an elastic joint at an order below 2, they have
    no rows.

    `name` is that of the robot; `joint_names` are those of the efforts, `motion_joints` those of the motion;
    `moves_base` says whether a motion has to come with one of a floating base or of a platform.
    """

    moves_base: bool

    def __init__(
        self,
        robot: DrivenRobot,
        name: str,
        joint_names: Sequence[str],
        motion_joints: Sequence[str],
        order: int,
        clamp: bool,
    ) -> None:
        if order < 0:
            raise InputError(f"the order must be 0 or higher, found {order}")
        self.name = name
        self.joint_names = tuple(joint_names)
        self.motion_joints = tuple(motion_joints)
        self.order = order
        self.clamp = clamp
        self.has_drives = robot.drive_train is not None
        self._actuation = robot.actuation
        self._limits = _Limits.of(robot.limits, robot.drive_train)
        self._drive_train = robot.drive_train if robot.actuation is None else None
        n = len(self.joint_names)
        if self._drive_train is not None and self._drive_train.n_motors != n:
            raise InputError(
                f"robot {name!r} has {self._drive_train.n_motors} motors for {n} joints, and a feedforward "
                "holds one motor per joint; use robot.drive_train instead"
            )

    @property
    def motion_orders(self) -> int:
        """Number of orders of the motion that is needed, positions included: order + 3."""
        return self.order + 3

    @abstractmethod
    def __call__(self, q: Array, base: BaseMotion | None = None) -> Feedforward:
        """Return the feedforward for a motion.

        `q` (order + 3, joints of the motion) contiguous float64, finite; `base` the motion of a floating base
        or of a platform with order + 2 twists.
        """

    @abstractmethod
    def warm_up(self) -> None:
        """Compute once, so that whatever is prepared at the first call is ready."""

    def _finished(
        self, q: Array, efforts: Array, base_wrenches: Array, status: Status = Status.OK
    ) -> Feedforward:
        """Add the motors to motion (order + 3, n) and efforts (order + 1, n), and hold them to the limits."""
        motor_positions, motor_efforts = self._motors(q, efforts)
        feedforward = Feedforward(efforts, motor_positions, motor_efforts, base_wrenches, status)
        if self._limits is None:
            return feedforward
        status |= self._limits.status(q, feedforward)
        if self.clamp and status & Status.EFFORT_LIMIT_EXCEEDED:
            efforts = _clamped(efforts, self._limits.effort)
            motor_efforts = _clamped(motor_efforts, self._limits.motor_effort)
            status |= Status.EFFORT_CLAMPED
        return Feedforward(efforts, motor_positions, motor_efforts, base_wrenches, status)

    def _motors(self, q: Array, efforts: Array) -> tuple[Array, Array]:
        nothing = np.empty((0, len(self.joint_names)))
        if self._actuation is None:
            if self._drive_train is None:
                return nothing, nothing
            return self._drive_train.feedforward(q, efforts)
        if self.order < 2 and self._actuation.elastic.any():
            return self._actuation.motor_position(q, efforts), nothing
        motor = self._actuation.feedforward(q, efforts)
        return motor.position, motor.effort


class FeedforwardLaw(Law):
    """The law of arms and trees: a motion of the joints, and of the base where it floats."""

    def __init__(self, robot: Robot, order: int, clamp: bool = False) -> None:
        super().__init__(robot, robot.model.name, robot.joint_names, robot.joint_names, order, clamp)
        self.robot = robot
        self.moves_base = robot.model.floating_base
        self._inverse_dynamics = _inverse_dynamics(robot, order)

    def __call__(self, q: Array, base: BaseMotion | None = None) -> Feedforward:
        """Return the feedforward for a motion (order + 3, n)."""
        efforts, base_wrenches = self._inverse_dynamics(q, base)
        return self._finished(q, efforts, base_wrenches)

    def warm_up(self) -> None:
        """Compute once at the zero configuration."""
        base = None
        if self.moves_base:
            base = BaseMotion(np.eye(4), np.zeros((self.order + 2, 6)))
        self(np.zeros((self.motion_orders, self.robot.n_joints)), base)


def _inverse_dynamics(robot: Robot, order: int) -> Callable[[Array, BaseMotion | None], tuple[Array, Array]]:
    no_base = np.empty((0, 6))
    if robot.model.floating_base:

        def floating(q: Array, base: BaseMotion | None) -> tuple[Array, Array]:
            wrenches, efforts = robot.inverse_dynamics(q, base)
            return efforts, wrenches

        return floating

    compiled = robot.compile(order)

    def grounded(q: Array, base: BaseMotion | None) -> tuple[Array, Array]:
        if base is not None:
            raise InputError(f"robot {robot.model.name!r} stands on the ground; a base motion does not apply")
        return compiled(q), no_base

    return grounded


def _clamped(efforts: Array, limit: Array) -> Array:
    """Hold efforts (orders, n) at ±limit; a joint that is held stands still, so its derivatives are zero."""
    if not len(efforts):
        return efforts
    held = np.abs(efforts[0]) > limit
    result = np.where(held, 0.0, efforts)
    result[0] = np.clip(efforts[0], -limit, limit)
    return result


def _own(values: Sequence[float], shared: Array) -> Array:
    """Return the limits that drives have of their own, and those of their joints where they have none."""
    return np.where(np.isfinite(values), values, shared) if len(values) else shared


class _Limits:
    """The limits of a robot that has at least one, ready for a check of microseconds."""

    def __init__(self, limits: JointLimits, drives: Sequence[DriveLimits]) -> None:
        self.effort = limits.effort
        self._effort_rate = limits.effort_rate
        self._velocity = limits.velocity
        self.motor_effort = _own([drive.torque for drive in drives], limits.effort)
        self._motor_effort_rate = _own([drive.torque_rate for drive in drives], limits.effort_rate)
        self._motor_velocity = _own([drive.speed for drive in drives], limits.velocity)
        self._lower = limits.position_lower
        self._upper = limits.position_upper

    @classmethod
    def of(cls, limits: JointLimits | None, train: DriveTrain | None) -> _Limits | None:
        if limits is None:
            return None
        drives = [] if train is None else [drive.limits for drive in train.drives]
        found = cls(limits, drives)
        arrays = (
            found.motor_effort,
            found._motor_effort_rate,
            found._motor_velocity,
            limits.position_lower,
            limits.position_upper,
            limits.velocity,
            limits.effort,
            limits.effort_rate,
        )
        return found if any(np.isfinite(array).any() for array in arrays) else None

    def status(self, q: Array, feedforward: Feedforward) -> Status:
        """Return the limit bits; a consumer commands link or motor efforts, so both count."""
        motor_positions = feedforward.motor_positions
        status = Status.OK
        for efforts, limit, rate in (
            (feedforward.efforts, self.effort, self._effort_rate),
            (feedforward.motor_efforts, self.motor_effort, self._motor_effort_rate),
        ):
            if len(efforts) > 0 and (np.abs(efforts[0]) > limit).any():
                status |= Status.EFFORT_LIMIT_EXCEEDED
            if len(efforts) > 1 and (np.abs(efforts[1]) > rate).any():
                status |= Status.EFFORT_RATE_LIMIT_EXCEEDED
        if (np.abs(q[1]) > self._velocity).any() or (
            len(motor_positions) > 1 and (np.abs(motor_positions[1]) > self._motor_velocity).any()
        ):
            status |= Status.VELOCITY_LIMIT_EXCEEDED
        if (q[0] < self._lower).any() or (q[0] > self._upper).any():
            status |= Status.POSITION_LIMIT_EXCEEDED
        return status
