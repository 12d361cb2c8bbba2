"""A load that a robot takes or puts down as far as its model goes, without a step of the efforts."""

from __future__ import annotations

from math import comb, factorial
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.checks import check_result
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.motion import BaseMotion


class LoadFade:
    """Blends the feedforward with one load into that with another one, over a `duration` [s] of stamps.

    `tau(t) = tau_0 + w(t) (tau_1 - tau_0)` with its time derivatives: inverse dynamics is linear in mass,
    first and second moments, so this is that of a body whose figures change with time. Springs, motors and
    limits follow from it as always. Of w, which goes from 0 to 1, as many derivatives vanish at both ends as
    efforts have. Raises InputError for rotors that turn with the links, which this does not hold for.

    Attributes:
        elapsed: Time since the first sample [s].
        stamp: Of the last sample [ns]; None before the first.
    """

    def __init__(self, before: FeedforwardModel, after: FeedforwardModel, duration: float) -> None:
        if after.rotors_turn:
            raise InputError(
                f"the rotors of robot {after.name!r} turn with the bodies that carry them, and its load is "
                "not faded; set the parameters payload_mass and its like while it stands"
            )
        self.duration, self.elapsed = duration, 0.0
        self.stamp: int | None = None
        self._before, self._after = before, after
        self._weights = _weights(after.order)

    @property
    def over(self) -> bool:
        """Whether the feedforward is that with the new load alone."""
        return self.elapsed >= self.duration

    def start_at(self, elapsed: float, stamp: int | None) -> None:
        """Go on from where another fade has been."""
        self.elapsed, self.stamp = elapsed, stamp

    def compute(
        self, stamp: int, q: Array, base: BaseMotion | None = None, wrenches: Array | None = None
    ) -> Feedforward:
        """Return the feedforward for a motion at a stamp [ns], as `FeedforwardModel.compute` does.

        A call that fails changes nothing. Where stamps go back, the fade goes on from where it was.
        """
        elapsed = self.elapsed
        if self.stamp is not None:
            elapsed += max(0.0, 1e-9 * (stamp - self.stamp))
        share = min(elapsed / self.duration, 1.0)
        powers = share ** np.arange(self._weights.shape[1])
        weight = self._weights @ powers / self.duration ** np.arange(len(self._weights))
        first, second = (model.dynamics(q, base, wrenches) for model in (self._before, self._after))
        wrench = second.base_wrench
        if wrench is not None and first.base_wrench is not None:
            wrench = _blended(weight, first.base_wrench, wrench)
        state = second._replace(efforts=_blended(weight, first.efforts, second.efforts), base_wrench=wrench)
        result = self._after.of_dynamics(state, base)
        check_result(result.efforts, result.motor_efforts, result.base_wrenches, result.thrusts, result.tilts)
        self.elapsed, self.stamp = elapsed, stamp
        return result

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON, without the models."""
        return {"duration": self.duration, "elapsed": self.elapsed, "stamp": self.stamp}


def _weights(order: int) -> Array:
    """Return the coefficients (order + 1, 2 order + 2) of w and its derivatives, of powers of t / T.

    `w = sum_i C(p + i, i) C(2 p + 1, p - i) (-u)^i u^(p + 1)` with p = order.
    """
    p = order
    w = np.zeros(2 * p + 2)
    for i in range(p + 1):
        w[p + 1 + i] = (-1) ** i * comb(p + i, i) * comb(2 * p + 1, p - i)
    rows = np.zeros((p + 1, len(w)))
    for k in range(p + 1):
        for power in range(k, len(w)):
            rows[k, power - k] = w[power] * factorial(power) / factorial(power - k)
    return rows


def _blended(weight: Array, before: Array, after: Array) -> Array:
    """Return `x_0 + w (x_1 - x_0)` by derivative orders on axis 0, by Leibniz's rule."""
    change = after - before
    result = before.copy()
    for k in range(len(before)):
        for i in range(k + 1):
            result[k] += comb(k, i) * weight[i] * change[k - i]
    return result
