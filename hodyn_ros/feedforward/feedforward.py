"""A feedforward: efforts of links and motors by derivative order, and what is remarkable about them."""

from __future__ import annotations

from enum import IntFlag
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError


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


def error_bound(next_derivative: ArrayLike, order: int, h: float) -> Array:
    """Bound the error of a Taylor series up to `order` at a distance `h` [s], either way.

    `next_derivative` (n,) is the largest magnitude of the derivative of order `order + 1` between the instant
    of the series and the one that it is evaluated at [x/s^(order+1)]. Lagrange's form of the remainder,
    `max |x^(r+1)| |h|^(r+1) / (r+1)!`. The step at a new message is the error of the series before it, so the
    same bound holds for that. Raises InputError for a negative order.

    >>> error_bound([600.0, 0.0], 2, 0.01)
    array([0.0001, 0.    ])
    """
    if order < 0:
        raise InputError(f"the order of a series must be 0 or higher, found {order}")
    largest = np.abs(np.asarray(next_derivative, dtype=np.float64))
    return np.asarray(largest * abs(h) ** (order + 1) / factorial(order + 1))


def motor_effort_series(feedforward: Feedforward) -> Array:
    """Return motor efforts (orders, n) with as many derivatives as there are of the link efforts.

    A feedforward of an elastic joint holds two derivatives fewer of the motor efforts than of the link
    efforts. Motor efforts are link efforts and what accelerates the motor and overcomes its friction; the
    derivatives that are missing are those of the link efforts, as if the rest stood still. Efforts that have
    been clamped, whose derivatives are zero, come out as they are.
    """
    known = feedforward.motor_efforts
    if not len(known) or feedforward.status & Status.EFFORT_CLAMPED:
        return known
    return np.concatenate([known, feedforward.efforts[len(known) :]])
