"""What a robot needs along a path at any speed: coefficients of its torques, once for many instants.

Along a path q(u) with the squared speed `b = (du/dt)^2`, the efforts of any robot whose motion the path fixes
are

    tau = A1 b' + A2 b + G,    A1 = M q_u / 2,   A2 = M q_uu + C q_u,   G of gravity,

linear in b and b'. Source: Bobrow, Dubowsky & Gibson, IJRR 4(3), 1985; with b as the unknown Verscheure et
al., IEEE TAC 54(10), 2009. Their derivatives by u follow from the inverse dynamics, with time derivatives, of
three motions along the path: two of constant speed, and one with b growing evenly.

What holds of one joint at one instant holds of all, of any robot: there is one piece of code for each order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import LaneKernel, Stack
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.time_optimal.chain_rule import (
    SPEEDS,
    chain_rule,
    chain_rule_entries,
    chain_rule_slopes,
)
from hodyn_ros.planning.time_optimal.frame_speed import Pace
from hodyn_ros.trajectory.robot_motion import RobotMotion


@dataclass(frozen=True, eq=False)
class PathDynamics:
    """Motion and efforts at N instants of a path, as functions of the speed; channels are joints.

    Channels: the driven joints, what propellers do, then, where that is not the same, the coordinates of the
    robot. `rows` (channels, N, numbers) are their derivatives by u, and those of G, A1 and A2.
    """

    demand: LimitSet
    rows: Array
    pace: Array  # (paces, N) share of a speed that is used at du/dt = 1, of those that are limited beside

    @classmethod
    def of(cls, demand: LimitSet, path: RobotMotion, u: Array, pace: Pace | None = None) -> PathDynamics:
        """Evaluate a path that is fitted to the robot at u (N,), increasing, and the limit of a speed."""
        order = max(demand.order, 2)
        columns = path.trajectory.sample(u, order)
        laws = _laws(path.trajectory.duration, order)
        evaluated = []
        for rule in laws.rules:
            sample = path.of_columns(rule @ columns, representation="spatial")
            evaluated.append((sample.joints, *demand.subject.evaluate(sample)))
        coordinates, motion, _ = evaluated[0]
        torques = np.concatenate([each for _, _, each in evaluated], axis=1)
        channels = torques.shape[-1]
        # where coordinates are not what is driven, they come behind, with a motion alone
        separate = demand.subject.joint_names != demand.subject.robot.joint_names
        extra = coordinates.shape[-1] if separate else 0
        rows = np.zeros((channels + extra, len(u), described(order)))
        for channel in range(channels):
            np.matmul(torques[:, :, channel], laws.to_torques.T, out=rows[channel, :, order + 1 :])
        for first, stack in ((0, motion), (channels, coordinates[:, :, :extra])):
            for channel in range(stack.shape[-1]):
                of_time = stack[:, :, channel]
                np.matmul(of_time, laws.to_motion.T, out=rows[first + channel, :, : order + 1])
        return cls(demand, rows, np.empty((0, len(u))) if pace is None else pace.at(u)[None])

    def joined(self, other: PathDynamics, order: NDArray[np.intp]) -> PathDynamics:
        """Return the same with the instants of another, in an order of both."""
        rows = np.concatenate([self.rows, other.rows], axis=1).take(order, axis=1)
        return PathDynamics(self.demand, rows, np.hstack([self.pace, other.pace])[:, order])

    def chosen(self, which: NDArray[np.intp]) -> PathDynamics:
        """Return the same at some of the instants."""
        return PathDynamics(self.demand, self.rows.take(which, axis=1), self.pace[:, which])

    @property
    def order(self) -> int:
        """Highest time derivative of the motion that limits ask for."""
        return max(self.demand.order, 2)

    @property
    def motion(self) -> Array:
        """Derivatives (N, order + 1, channels) of the motion by u."""
        return self.rows[:, :, : self.order + 1].transpose(1, 2, 0)

    @property
    def torques(self) -> tuple[Array, Array, Array]:
        """Derivatives (N, order - 1, channels) of G, A1 and A2 by u."""
        by_kind = self.rows[:, :, self.order + 1 :].reshape(*self.rows.shape[:2], 3, self.order - 1)
        constant, a1, a2 = by_kind.transpose(2, 1, 3, 0)
        return constant, a1, a2

    @cached_property
    def _results(self) -> dict[bool, Array]:
        return {}

    def rates(self, y: Array) -> Array:
        """Return time derivatives (channels, N, 2 order): of the motion, then of the torques, at y (N, 5).

        They stay until the next call.
        """
        return self._computed(y, slopes=False)[:, :, 0]

    def rates_with_slopes(self, y: Array) -> Array:
        """Return the rates (channels, N, 6, 2 order) and, behind them, their derivatives by y.

        They stay until the next call.
        """
        return self._computed(y, slopes=True)

    def _computed(self, y: Array, slopes: bool) -> Array:
        channels, count, numbers = self.rows.shape
        kernel = joint_rates(self.order, slopes)
        if slopes not in self._results:  # a new one each time costs more than what is computed
            self._results[slopes] = np.empty((channels * count, *kernel.result))
        speeds = np.concatenate([y] * channels)[:, None]
        rates = kernel.batch(speeds, self.rows.reshape(-1, 1, numbers), out=self._results[slopes], threads=1)
        return rates.reshape(channels, count, *kernel.result)


class _Laws(NamedTuple):
    """Three laws of time that the inverse dynamics are evaluated for, and what follows from these by u.

    Their speeds are of usual size for a path: two constant ones, and one with b growing evenly.
    """

    rules: tuple[Array, ...]  # (order + 1, order + 1) each: from derivatives by u to those by time
    to_motion: Array  # (order + 1, order + 1): back, from the first of them
    to_torques: Array  # (3 (order - 1), 3 (order - 1)): from torques of all to G, A1 and A2 by u


@lru_cache(maxsize=KEPT)
def _laws(duration: float, order: int) -> _Laws:
    b, count = (0.25 * duration) ** 2, order - 1
    slope = 4.0 * b / duration
    speeds = np.array([[b, 0.0, 0, 0, 0], [2.0 * b, 0, 0, 0, 0], [b, slope, 0, 0, 0]])
    rules = tuple(chain_rule(speeds, order))
    by_u = [np.linalg.inv(rule) for rule in rules]
    slow, fast, rising = (
        np.hstack([by_u[k][:count, :count] if k == law else np.zeros((count, count)) for k in range(3)])
        for law in range(3)
    )
    a2 = (fast - slow) / b
    constant = slow - b * a2
    # the derivatives m of A1 slope + A2 (b + slope (u - u0)) are those of the torques less G
    lower = np.zeros_like(a2)
    lower[1:] = np.arange(1, count)[:, None] * a2[:-1]
    a1 = (rising - constant - b * a2) / slope - lower
    return _Laws(rules, by_u[0], np.vstack([constant, a1, a2]))


def described(order: int) -> int:
    """Return how many numbers say of a joint what it needs at an instant of a path.

    Derivatives by u of its position to `order`, and to `order - 2` of G, A1 and A2 of `path_dynamics`.
    """
    return (order + 1) + 3 * (order - 1)


def torque_factors(a1: Sequence[Any], a2: Sequence[Any]) -> list[list[Any]]:
    """Return what the derivatives of y count in those by u of a torque, one row of five for each of these.

    `d^m (A1 b' + A2 b) / du^m`, by Leibniz, from the derivatives of A1 and A2.
    """
    rows: list[list[Any]] = []
    for m in range(len(a1)):
        row: list[Any] = [0.0] * SPEEDS
        for i in range(m + 1):
            row[i] = row[i] + comb(m, i) * a2[m - i]
            row[i + 1] = row[i + 1] + comb(m, i) * a1[m - i]
        rows.append(row)
    return rows


@lru_cache(maxsize=KEPT)
def joint_rates(order: int, slopes: bool) -> LaneKernel:
    """Return code from y (1, 5) and what describes a joint to its rates.

    Rates (1, 2 order): of the motion to `order`, of the torque to `order - 2`. With slopes five rows more,
    their derivatives by y.
    """

    def trace(speeds: Stack, path: Stack) -> Stack:
        y, numbers = speeds[0], path[0]
        motion = numbers[: order + 1]
        constant, a1, a2 = (numbers[order + 1 + k * (order - 1) :][: order - 1] for k in range(3))
        factors = torque_factors(a1, a2)
        torques = [rest + _dot(row, y) for rest, row in zip(constant, factors)]
        rule = chain_rule_entries(y, order)

        def product(rule: dict[tuple[int, int], Any], values: list[Any]) -> list[Any]:
            rows = range(len(values))
            return [_dot([rule.get((k, m), 0.0) for m in rows], values) for k in rows]

        rows = [product(rule, motion) + product(rule, torques)]
        if slopes:
            bends = chain_rule_slopes(y, order)
            for i in range(SPEEDS):
                bend = {(k, m): value for (j, k, m), value in bends.items() if j == i}
                through = product(rule, [row[i] for row in factors])
                of_torques = [a + b for a, b in zip(product(bend, torques), through)]
                rows.append(product(bend, motion) + of_torques)
        return rows

    return LaneKernel(trace, [("speeds", (1, SPEEDS)), ("path", (1, described(order)))])


def _dot(a: list[Any], b: list[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b)), 0.0)
