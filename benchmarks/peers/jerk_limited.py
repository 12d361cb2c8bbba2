"""Motions that are limited in jerk, as ruckig finds them, and input shaping for them, as trajectories."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from hodyn_ros.lie.jets import Array
from hodyn_ros.trajectory.base import Trajectory


class JerkLimited(Trajectory):
    """The fastest straight motion of joints (n,) between two points with limits of velocity to jerk.

    Its snap is taken for zero, which it is but where the jerk jumps; so its feedforward is computed as its
    users do.
    """

    joint_names = None
    smoothness = 4
    starts_at_rest = ends_at_rest = True

    def __init__(self, start: Array, goal: Array, velocity: Array, acceleration: Array, jerk: Array) -> None:
        ruckig = import_module("ruckig")
        self.n_joints = len(start)
        search, found = ruckig.Ruckig(self.n_joints), ruckig.Trajectory(self.n_joints)
        asked = ruckig.InputParameter(self.n_joints)
        asked.current_position, asked.target_position = start.tolist(), goal.tolist()
        asked.max_velocity, asked.max_acceleration = velocity.tolist(), acceleration.tolist()
        asked.max_jerk = jerk.tolist()
        asked.synchronization = ruckig.Synchronization.Phase
        if search.calculate(asked, found) < 0:
            raise ValueError("ruckig finds no motion")
        self.duration = float(found.duration)
        ends = [np.cumsum([0.0, *profile.t]) for profile in found.profiles[0]]
        times = np.unique(np.clip(np.concatenate(ends), 0.0, self.duration).round(12))
        self._times = times[np.append(True, np.diff(times) > 1e-9)]
        self._states = np.zeros((len(self._times), 4, self.n_joints))
        for i, (time, step) in enumerate(zip(self._times, np.diff(self._times))):
            first, last = (np.array(found.at_time(t)[:3]) for t in (time, time + step))
            self._states[i, :3] = first
            self._states[i, 3] = (last[2] - first[2]) / step
        self._states[-1, 0] = goal

    @property
    def breakpoints(self) -> Array:
        """When the jerk jumps [s]."""
        return self._times

    def _derivatives(self, times: Array, order: int) -> Array:
        at = np.clip(np.searchsorted(self._times, times, side="right") - 1, 0, len(self._times) - 1)
        since = (times - self._times[at])[:, None]
        q, velocity, acceleration, jerk = self._states[at].swapaxes(0, 1)
        result = np.zeros((max(order, 3) + 1, len(times), self.n_joints))
        result[0] = q + since * (velocity + since * (acceleration / 2.0 + since * jerk / 6.0))
        result[1] = velocity + since * (acceleration + since * jerk / 2.0)
        result[2] = acceleration + since * jerk
        result[3] = jerk
        return result[: order + 1]

    def _smoother(self, order: int) -> str:
        return f"ruckig stops at the jerk, below {order}"


class Shaped(Trajectory):
    """A motion through a ZVD shaper: a quarter, a half and a quarter of it, half a swing apart.

    `frequency` [rad/s] of the swing. Source: Singer & Seering, J. Dyn. Sys. Meas. Control 112(1), 1990.
    """

    joint_names = None
    starts_at_rest = ends_at_rest = True

    def __init__(self, motion: Trajectory, frequency: float) -> None:
        self.n_joints, self.smoothness = motion.n_joints, motion.smoothness
        self._motion, self._lag = motion, np.pi / frequency
        self.duration = motion.duration + 2.0 * self._lag

    def _derivatives(self, times: Array, order: int) -> Array:
        parts = [self._motion._held_derivatives(times - k * self._lag, order) for k in range(3)]
        return np.asarray(0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2])

    def _smoother(self, order: int) -> str:
        return self._motion._smoother(order)
