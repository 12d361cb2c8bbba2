"""Exact feedback linearisation of parallel robots with series elastic drives, also redundant ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.platform_coordinates import PlatformCoordinates
from hodyn_ros.control.poles import gains_from_poles
from hodyn_ros.errors import InputError
from hodyn_ros.jets import Array
from hodyn_ros.motion import BaseMotion
from hodyn_ros.parallel.robot import ParallelRobot

_DEGREE = 4


class ParallelLinearisation:
    """Motor efforts that give the error of the platform the linear dynamics of chosen poles.

        u, u' from the springs; forward dynamics of order 1 gives x'', x''';
        x'''' = x_d'''' + sum_i k_i (x_d - x)^(i); inverse dynamics of order 2 gives u, u', u'';
        tau = B (q_a'' + K^-1 u'') + u

    Mueller et al., section VI-B, in the `PlatformCoordinates` x, in which the error is linear however far the
    platform turns. With more drives than freedoms the forces have a part that moves nothing; it is a state as
    well: what the forces e differ by from those of least norm comes to `preload` (driven,) with the
    `preload_poles`, `e'' = -c_1 e' - c_0 (e - preload)` in the null space.
    """

    def __init__(
        self,
        robot: ParallelRobot,
        poles: Sequence[complex],
        preload_poles: Sequence[complex] | None = None,
        preload: ArrayLike | None = None,
    ) -> None:
        self.platform = PlatformCoordinates(robot)
        self.gains = gains_from_poles(poles, _DEGREE)[:, None]
        idle = robot.n_driven - robot.n_dof
        if idle and preload_poles is None:
            raise InputError(
                f"robot {robot.name!r} has {robot.n_driven} drives for {robot.n_dof} freedoms; give "
                "the two preload_poles of the forces that move nothing"
            )
        if not idle and (preload_poles is not None or preload is not None):
            raise InputError(
                f"robot {robot.name!r} has as many freedoms as drives, {robot.n_dof}; leave out "
                "preload and preload_poles, no forces are idle"
            )
        self._preload_gains = None if preload_poles is None else gains_from_poles(preload_poles, 2)
        self._preload = np.zeros(robot.n_driven) if preload is None else np.asarray(preload, dtype=float)
        if self._preload.shape != (robot.n_driven,):
            raise InputError(f"preload must have shape ({robot.n_driven},), found {self._preload.shape}")
        self._last = np.zeros(robot.n_dof)

    def efforts(self, desired: Array | BaseMotion, measured: Measurement) -> Array:
        """Return the motor efforts (driven,) for a desired motion and measured drives.

        `desired`: x_d and its derivatives (5, delta), or pose and four twists of the platform. The platform
        is looked for from where it was at the last call.
        """
        platform, springs = self.platform, self.platform.springs
        wanted = platform.motion(desired) if isinstance(desired, BaseMotion) else np.asarray(desired)
        if wanted.shape != (_DEGREE + 1, platform.n_dof):
            raise InputError(
                f"the desired motion must have shape ({_DEGREE + 1}, {platform.n_dof}), or a pose and "
                f"{_DEGREE} twists; found {wanted.shape}"
            )
        x = platform.locate(measured.position, self._last)
        self._last = x
        _, jacobian = platform.jacobian(x)
        velocity = platform.least_squares(jacobian, measured.velocity)
        forces = springs.stiffness * np.stack(
            [measured.motor_position - measured.position, measured.motor_velocity - measured.velocity]
        )
        twist = platform.twists(np.stack([x, velocity]))
        higher = platform.robot.forward_dynamics(platform.pose(x), twist[0], forces)
        motion = np.empty((_DEGREE + 1, platform.n_dof))
        motion[0], motion[1:4] = x, platform.rates(x, np.concatenate([twist, higher]))
        motion[4] = wanted[4] + (self.gains * (wanted[:4] - motion[:4])).sum(axis=0)
        drives = platform.drives(motion, self._idle(motion[:4], forces))
        return springs.feedforward(drives.positions, drives.forces).effort[0]

    def _idle(self, motion: Array, forces: Array) -> Array | None:
        """Return the part of the forces (3, driven) that moves nothing; None where there is none."""
        if self._preload_gains is None:
            return None
        idle = forces - self.platform.drives(motion).forces
        c = self._preload_gains
        return np.stack([*idle, c[0] * (self._preload - idle[0]) - c[1] * idle[1]])
