"""How far a feedforward reaches beyond its own instant, and how wrong it can be there."""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward, Status


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
