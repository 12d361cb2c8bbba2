"""The limits that a feedforward is held to: those of the joints, and those that drives have of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.control.feedforward import Feedforward, Status
from hodyn_ros.model.drive_spec import DriveLimits
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.se3 import Array


def clamped(efforts: Array, limit: Array) -> Array:
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


class FeedforwardLimits:
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
        self._ranges: dict[tuple[int, ...], tuple[Array, Array]] = {}  # by the numbers of rows

    @classmethod
    def of(cls, limits: JointLimits | None, train: DriveTrain | None) -> FeedforwardLimits | None:
        """Return the limits of a robot, None where it has none."""
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
        if self._keeps_all(q, feedforward):
            return Status.OK
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

    def _keeps_all(self, q: Array, feedforward: Feedforward) -> bool:
        """Say whether no limit is exceeded, in one comparison: the usual case, and several times as fast."""
        stacks = (
            feedforward.efforts[:2],
            feedforward.motor_efforts[:2],
            feedforward.motor_positions[1:2],
            q[:2],
        )
        rows = tuple(map(len, stacks))
        if rows not in self._ranges:
            self._ranges[rows] = self._range(rows)
        low, high = self._ranges[rows]
        values = np.concatenate(stacks)
        return not ((values < low) | (values > high)).any()

    def _range(self, rows: tuple[int, ...]) -> tuple[Array, Array]:
        """Return what the stacked values may be, from and to, for so many rows of each."""
        highest = (
            (self.effort, self._effort_rate),
            (self.motor_effort, self._motor_effort_rate),
            (self._motor_velocity,),
            (self._upper, self._velocity),
        )
        high = np.array([row for limits, count in zip(highest, rows) for row in limits[:count]])
        low = -high
        low[-2] = self._lower
        return low, high
