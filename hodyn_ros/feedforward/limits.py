"""The limits that a feedforward is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.model.drive_spec import DriveLimits
from hodyn_ros.model.limits import JointLimits

_STATUS = [Status(bits) for bits in range(16)]  # to look up: making one takes a microsecond


def _own(values: Sequence[float], shared: Array) -> Array:
    """Return the limits that drives have of their own, and those of their joints where they have none."""
    return np.where(np.isfinite(values), values, shared) if len(values) else shared


def _beyond(rows: Stack, upper: Array, lower: Array | None = None) -> Any:
    """Return by how much numbers exceed their limits, times two and summed, as an expression to compile."""
    total: Any = 0.0
    for row in rows:
        for x, high, low in zip(row, upper.tolist(), (-upper if lower is None else lower).tolist()):
            for limit, margin in ((high, high - x), (low, x - low)):
                if np.isfinite(limit):
                    total = total + (abs(margin) - margin)
    return total


def limit_status(excess: Sequence[float]) -> Status:
    """Return the bits of what `FeedforwardLimits.excess` has found."""
    effort, rate, velocity, position = excess
    return _STATUS[(effort > 0.0) + 2 * (rate > 0.0) + 4 * (velocity > 0.0) + 8 * (position > 0.0)]


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
        self._excess: Kept[tuple[int, ...], Callable[..., Array]] = Kept()  # by the numbers of rows

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

    def status(self, q: Array, efforts: Array, motor_positions: Array, motor_efforts: Array) -> Status:
        """Return the limit bits; a consumer commands link or motor efforts, so both count.

        Arrays as in `Feedforward`, (orders, n) each, with the motion `q` (2 or more, n).
        """
        stacks = (q, efforts, motor_positions, motor_efforts)
        rows = tuple(map(len, stacks))
        excess = self._excess.get(rows)
        if excess is None:
            excess = self._excess[rows] = self._compiled(rows)
        return limit_status(excess(*stacks)[0].tolist())

    def excess(self, q: Stack, efforts: Stack, motor_positions: Stack, motor_efforts: Stack) -> list[Any]:
        """Return by how much all limits are exceeded together, to compile: one number for each bit."""
        effort = _beyond(efforts[:1], self.effort) + _beyond(motor_efforts[:1], self.motor_effort)
        rate = _beyond(efforts[1:2], self._effort_rate)
        rate = rate + _beyond(motor_efforts[1:2], self._motor_effort_rate)
        velocity = _beyond(q[1:2], self._velocity) + _beyond(motor_positions[1:2], self._motor_velocity)
        return [effort, rate, velocity, _beyond(q[:1], self._upper, self._lower)]

    def _compiled(self, rows: Sequence[int]) -> Callable[..., Array]:
        n = len(self.effort)
        names = ("motion", "efforts", "motor positions", "motor efforts")
        arguments = [(name, (count, n)) for name, count in zip(names, rows)]
        bare = copy(self)
        bare._excess = Kept()  # else a cycle with what is compiled here would keep its machine code
        return Kernel(lambda *stacks: [bare.excess(*stacks)], arguments).function
