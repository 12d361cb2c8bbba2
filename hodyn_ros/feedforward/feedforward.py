"""A feedforward: efforts of links and motors by derivative order, and what is remarkable about them."""

from __future__ import annotations

from enum import IntFlag
from math import factorial
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array


class Status(IntFlag):
    """What is remarkable about a feedforward; zero when everything is within its limits."""

    OK = 0
    EFFORT_LIMIT_EXCEEDED = 1
    EFFORT_RATE_LIMIT_EXCEEDED = 2
    VELOCITY_LIMIT_EXCEEDED = 4
    POSITION_LIMIT_EXCEEDED = 8
    EFFORT_CLAMPED = 16
    NEAR_SINGULARITY = 32
    THRUST_LIMIT_EXCEEDED = 64
    THRUST_RATE_LIMIT_EXCEEDED = 128
    BASE_WRENCH_UNREACHED = 256


class Setpoint(NamedTuple):
    """A feedforward at one instant, (n,) each, SI units; empty (0,) where it is not known."""

    efforts: Array
    motor_positions: Array
    motor_velocities: Array
    motor_efforts: Array
    base_wrench: Array  # (6,) or (0,)
    thrusts: Array  # of propellers, (propellers,) or (0,)
    tilts: Array  # of propellers that tilt, likewise


_NO_ROWS = np.empty((0, 0))


class Feedforward(NamedTuple):
    """Efforts and motor motion with their time derivatives, by order on axis 0; no rows where not known.

    Read N for N·m and m for rad where a joint is prismatic.
    """

    efforts: Array  # (order + 1, n) link side [N·m/s^k]
    motor_positions: Array  # (0..order + 1, n) reflected to the link side [rad/s^k]
    motor_efforts: Array  # (0..order + 1, n) [N·m/s^k]
    base_wrenches: Array  # (0 or order + 1, 6) on a floating base, in the world frame [N·m/s^k, N/s^k]
    status: Status = Status.OK
    thrusts: Array = _NO_ROWS  # (0 or order + 1, propellers) [N/s^k]
    tilts: Array = _NO_ROWS  # likewise [rad/s^k]; no rows where none tilts

    def at(self, h: float) -> Setpoint:
        """Evaluate `x(h) = sum_k x^(k) h^k / k!`, h [s] after (or before) the instant of this feedforward."""
        return Setpoint(
            taylor(self.efforts, h),
            taylor(self.motor_positions, h),
            taylor(self.motor_positions[1:], h),
            taylor(self.motor_efforts, h),
            taylor(self.base_wrenches, h),
            taylor(self.thrusts, h),
            taylor(self.tilts, h),
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
