"""What a robot needs along a path at any speed: coefficients of its torques, once for many instants.

Along a path q(u) with the squared speed `b = (du/dt)^2`, the efforts of any robot whose motion the path fixes
are

    tau = A1 b' + A2 b + G,    A1 = M q_u / 2,   A2 = M q_uu + C q_u,   G of gravity,

linear in b and b'. Source: Bobrow, Dubowsky & Gibson, IJRR 4(3), 1985; with b as the unknown Verscheure et
al., IEEE TAC 54(10), 2009. Their derivatives by u follow from the inverse dynamics, with time derivatives, of
three motions along the path: two of constant speed, and one with b growing evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.time_optimal.chain_rule import chain_rule
from hodyn_ros.planning.time_optimal.joint_rates import described, joint_rates
from hodyn_ros.trajectory.robot_motion import RobotMotion


@dataclass(frozen=True, eq=False)
class PathDynamics:
    """Motion and efforts at N instants of a path, as functions of the speed; channels are joints.

    Channels: the driven joints, what propellers do, then, where that is not the same, the coordinates of the
    robot. `rows` (channels, N, numbers) are their derivatives by u, and those of G, A1 and A2.
    """

    demand: LimitSet
    rows: Array
    pace: Array | None = None  # (N,) share of a speed that is used at du/dt = 1, where one is limited beside

    @classmethod
    def of(cls, demand: LimitSet, path: RobotMotion, u: Array) -> PathDynamics:
        """Evaluate a path that is fitted to the robot at u (N,), increasing."""
        order = max(demand.order, 2)
        columns = path.trajectory.sample(u, order)
        laws = _laws(path.trajectory.duration)
        evaluated = []
        for y in laws:
            rule = chain_rule(y[None], order)[0]
            sample = path.of_columns(rule @ columns, representation="spatial")
            evaluated.append((sample.joints, *demand.subject.evaluate(sample)))
        inverse = np.linalg.inv(chain_rule(laws[0][None], order)[0])
        coordinates, motion = (inverse @ evaluated[0][i] for i in (0, 1))
        # the derivatives by u of the torques of the three motions
        slow, fast, rising = (
            np.linalg.inv(chain_rule(y[None], order)[0])[: order - 1, : order - 1] @ torques
            for y, (_, _, torques) in zip(laws, evaluated)
        )
        b, slope = laws[0][0], laws[2][1]
        a2 = (fast - slow) / (laws[1][0] - b)
        constant = slow - b * a2
        rest = rising - constant  # = D^m (A1 slope + A2 (b + slope (u - u0)))
        lower = np.zeros_like(a2)
        lower[:, 1:] = a2[:, :-1] * np.arange(1, order - 1)[:, None]
        a1 = (rest - b * a2) / slope - lower
        driven, channels = motion.shape[-1], a1.shape[-1]
        # where coordinates are not what is driven, they come behind, with a motion alone
        separate = demand.subject.joint_names != demand.subject.robot.joint_names
        extra = coordinates.shape[-1] if separate else 0
        rows = np.zeros((channels + extra, len(u), described(order)))
        rows[:driven, :, : order + 1] = motion.transpose(2, 0, 1)
        for k, stack in enumerate((constant, a1, a2)):
            first = order + 1 + k * (order - 1)
            rows[:channels, :, first : first + order - 1] = stack.transpose(2, 0, 1)
        if separate:
            rows[channels:, :, : order + 1] = coordinates.transpose(2, 0, 1)
        return cls(demand, rows)

    def chosen(self, which: NDArray[np.intp]) -> PathDynamics:
        """Return the same at some of the instants."""
        pace = None if self.pace is None else self.pace[which]
        return PathDynamics(self.demand, self.rows[:, which], pace)

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
        speeds = np.tile(y, (channels, 1))[:, None]
        rates = kernel.batch(speeds, self.rows.reshape(-1, 1, numbers), out=self._results[slopes], threads=1)
        return rates.reshape(channels, count, *kernel.result)


def _laws(duration: float) -> Array:
    """Return b, b', ... (3, 5) of two constant speeds and of one that grows, of usual size for a path."""
    b = (0.25 * duration) ** 2
    return np.array([[b, 0.0, 0, 0, 0], [2.0 * b, 0, 0, 0, 0], [b, 4.0 * b / duration, 0, 0, 0]])
