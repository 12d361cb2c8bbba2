"""A motion at another speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.trajectory.base import Pieces, Trajectory
from hodyn_ros.trajectory.checks import real_number


@dataclass(frozen=True, eq=False)
class ScaledTime(Trajectory):
    """The motion `q(speed t)`: the same path, each k-th derivative times `speed^k`.

    >>> from hodyn_ros.trajectory import WaypointSpline
    >>> slow = ScaledTime(WaypointSpline([0.0, 1.0], [[0.0], [1.0]]), 0.5)
    >>> slow.duration, slow.sample(1.0, 0)[0].round(6)
    (2.0, array([0.5]))
    """

    motion: Trajectory
    speed: float

    def __post_init__(self) -> None:
        speed = real_number("speed", self.speed, positive=True)
        motion = self.motion
        self._set(
            speed=speed,
            joint_names=motion.joint_names,
            n_joints=motion.n_joints,
            duration=motion.duration / speed,
            smoothness=motion.smoothness,
            starts_at_rest=motion.starts_at_rest,
            ends_at_rest=motion.ends_at_rest,
            _departure=motion._departure / speed,
        )

    @property
    def breakpoints(self) -> Array | None:
        """Those of the motion, at this speed."""
        points = self.motion.breakpoints
        return None if points is None else points / self.speed

    @property
    def highest_frequency(self) -> float:
        """That of the motion, at this speed [rad/s]."""
        return self.motion.highest_frequency * self.speed

    @property
    def polynomial_degree(self) -> int | None:
        """That of the motion."""
        return self.motion.polynomial_degree

    @property
    def pieces(self) -> Pieces | None:
        """Those of the motion, passed at this speed."""
        inner, speed = self.motion.pieces, self.speed
        if inner is None:
            return None
        return replace(
            inner,
            derivatives=lambda u, order: inner.derivatives(u, order) * self._powers(order),
            speeds=lambda u: inner.speeds(u) * speed,
            times=lambda u: inner.times(u) / speed,
            places=lambda times: inner.places(times * speed),
        )

    def _derivatives(self, times: Array, order: int) -> Array:
        inside = np.clip(times * self.speed, self.motion._departure, self.motion.duration)
        return self.motion._derivatives(inside, order) * self._powers(order)

    def _powers(self, order: int) -> Array:
        return np.asarray(self.speed ** np.arange(order + 1.0))[:, None, None]

    def _smoother(self, order: int) -> str:
        return self.motion._smoother(order)
