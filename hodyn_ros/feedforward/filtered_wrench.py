"""A measured wrench, smoothed so that it has the time derivatives that a feedforward asks for.

The filter is a chain of N equal lags, `(omega / (s + omega))^N`: it never overshoots, and its output is the
measurement N/omega seconds late. With N = order + 1 the derivatives up to `order` are states of the filter,
hence continuous whatever the measurement does. Between two calls the measurement stands still, and the step
of the filter is exact: the distance from it obeys `(d/dt + omega)^N e = 0`, so `e(t) = exp(-omega t) p(t)`
with a polynomial p.
"""

from __future__ import annotations

from math import comb, factorial, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

# What the states of a filter can hold: its derivatives are larger by omega^order, and those of a step of
# thousands of years by (omega t)^order.
LARGEST = 1e150


class FilteredWrench:
    """The low-pass filtered wrench on one body, (6,) [N.m, N], with its derivatives up to `order`.

    `cutoff` [Hz]: where a sine comes out with 1/sqrt(2) of its amplitude. A measurement counts until the next
    one, for `timeout` seconds at most; then the wrench is taken as gone and fades through the filter, and
    `timeouts` counts that. Instants are in nanoseconds of any clock; after a jump back, time goes on from
    there. Starts from zero.
    """

    def __init__(self, order: int, cutoff: float, timeout: float) -> None:
        if order < 0 or not (np.isfinite(cutoff) and cutoff > 0.0) or not timeout > 0.0:
            raise InputError(
                f"a filter needs an order of 0 or more, a cut-off and a timeout above zero, found {order=}, "
                f"{cutoff=} Hz, {timeout=} s"
            )
        self.timeouts = 0
        self._order = order
        self._timeout = round(1e9 * timeout)
        lags = order + 1
        self._omega = 2.0 * pi * cutoff / sqrt(2.0 ** (1.0 / lags) - 1.0)
        self._powers = self._omega ** np.arange(lags)[:, None]
        orders = np.arange(lags)
        up = orders[None, :] - orders[:, None]
        self._exponents = np.maximum(up, 0)
        self._taylor = np.array([[1.0 / factorial(j) if j >= 0 else 0.0 for j in row] for row in up.tolist()])
        # derivatives of exp(t) f and of exp(-t) f by those of f, after the product rule
        self._forth = np.array([[float(comb(k, j)) for j in range(lags)] for k in range(lags)])
        self._back = self._forth * (-1.0) ** up
        self._state = np.zeros((lags, 6))  # derivatives by omega t
        self._now: int | None = None
        self._measured = np.zeros(6)
        self._measured_at: int | None = None  # None: nothing measured, or gone

    @property
    def delay(self) -> float:
        """How much later [s] than the measurement a slowly changing wrench comes out."""
        return (self._order + 1) / self._omega

    @property
    def is_measured(self) -> bool:
        """Whether a measurement counted when this was last asked."""
        return self._measured_at is not None

    def changed(self, order: int, cutoff: float, timeout: float) -> FilteredWrench:
        """Return a filter with other properties that goes on from here, with the derivatives that it has."""
        other = FilteredWrench(order, cutoff, timeout)
        common = min(order, self._order) + 1
        other._state[:common] = (self._state * self._powers)[:common] / other._powers[:common]
        other.timeouts, other._now = self.timeouts, self._now
        other._measured, other._measured_at = self._measured, self._measured_at
        return other

    def measure(self, instant: int, wrench: ArrayLike) -> None:
        """Take a measurement (6,) at an instant [ns]; InputError, and nothing changes, beyond LARGEST."""
        measured = np.array(wrench, dtype=np.float64).reshape(6)
        if not (np.abs(measured) <= LARGEST).all():
            raise InputError(f"a measured wrench has to stay below {LARGEST:g}, found {measured.tolist()}")
        self._advance(instant)
        self._measured, self._measured_at = measured, instant

    def at(self, instant: int) -> Array:
        """Return the filtered wrench and its derivatives (order + 1, 6) at an instant [ns]."""
        self._advance(instant)
        return self._state * self._powers

    def _advance(self, instant: int) -> None:
        if self._measured_at is not None:
            self._measured_at = min(self._measured_at, instant)
            if instant > self._measured_at + self._timeout:
                self._step_to(self._measured_at + self._timeout)
                self._measured, self._measured_at = np.zeros(6), None
                self.timeouts += 1
        self._step_to(instant)

    def _step_to(self, instant: int) -> None:
        last, self._now = self._now, instant
        if last is None or instant <= last:
            return
        t = 1e-9 * (instant - last) * self._omega
        self._state[0] -= self._measured
        polynomial = self._forth @ self._state
        self._state = np.exp(-t) * (self._back @ ((self._taylor * t**self._exponents) @ polynomial))
        self._state[0] += self._measured
