"""Exact feedback linearisation of parallel robots with series elastic drives, also redundant ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.poles import gains_from_poles
from hodyn_ros.control.translating_platform import TranslatingPlatform
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.parallel.robot import ParallelRobot

_DEGREE = 4


class ParallelLinearisation:
    """Motor efforts that give the error of the platform the linear dynamics of chosen poles.

        u, u' from the springs; forward dynamics of order 1 gives x'', x''';
        x'''' = x_d'''' + sum_i k_i (x_d - x)^(i); inverse dynamics of order 2 gives u, u', u'';
        tau = B (q_a'' + K^-1 u'') + u

    Mueller et al., section VI-B. With more drives than freedoms the forces have a part that moves nothing; it
    is a state as well: what the forces e differ by from those of least norm comes to `preload` (driven,) with
    the `preload_poles`, `e'' = -c_1 e' - c_0 (e - preload)` in the null space.
    """

    def __init__(
        self,
        robot: ParallelRobot,
        poles: Sequence[complex],
        preload_poles: Sequence[complex],
        preload: ArrayLike | None = None,
    ) -> None:
        self.platform = TranslatingPlatform(robot)
        self.gains = gains_from_poles(poles, _DEGREE)[:, None]
        self._preload_gains = gains_from_poles(preload_poles, 2)
        self._preload = np.zeros(robot.n_driven) if preload is None else np.asarray(preload, dtype=float)
        if self._preload.shape != (robot.n_driven,):
            raise InputError(f"preload must have shape ({robot.n_driven},), found {self._preload.shape}")
        self._last = np.zeros(robot.n_dof)

    def efforts(self, desired: Array, measured: Measurement) -> Array:
        """Return the motor efforts (driven,) for a desired motion (5, delta) [m/s^k] and measured drives."""
        if desired.shape != (_DEGREE + 1, self.platform.n_dof):
            raise InputError(
                f"the desired motion must have shape ({_DEGREE + 1}, {self.platform.n_dof}), found "
                f"{desired.shape}"
            )
        platform, springs = self.platform, self.platform.springs
        x = platform.locate(measured.position, self._last)
        self._last = x
        _, jacobian = platform.jacobian(x)
        velocity = platform.least_squares(jacobian, measured.velocity)
        forces = springs.stiffness * np.stack(
            [measured.motor_position - measured.position, measured.motor_velocity - measured.velocity]
        )
        twist = platform.twists(velocity[None])[0]
        higher = platform.robot.forward_dynamics(platform.pose(x), twist, forces)
        motion = np.empty((_DEGREE + 1, platform.n_dof))
        motion[0], motion[1], motion[2:4] = x, velocity, platform.rates(higher)
        motion[4] = desired[4] + (self.gains * (desired[:4] - motion[:4])).sum(axis=0)
        c = self._preload_gains
        idle = forces - platform.drives(motion[:4]).forces
        bending = c[0] * (self._preload - idle[0]) - c[1] * idle[1]
        drives = platform.drives(motion, np.stack([idle[0], idle[1], bending]))
        return springs.feedforward(drives.positions, drives.forces).effort[0]
