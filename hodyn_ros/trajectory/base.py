"""What every trajectory offers: samples with all derivatives, and an honest word on its smoothness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.checks import whole_number


@dataclass(frozen=True, eq=False)
class Pieces:
    """A motion q(u(t)) whose columns are polynomials of u between `edges`, and so is `(du/dt)^2 = b(u)`.

    With `P_0 = q`, its time derivatives are `q^(k) = P_k` for even k and `sqrt(b) P_k` for odd k, where each
    P_k is a polynomial: `P_(k+1) = P_k'` after an even k, `b P_k' + b' P_k / 2` after an odd one.
    """

    edges: Array  # (M,) increasing; the motion is smooth between two of them
    degree: int  # of q
    derivatives: Callable[[Array, int], Array]  # u (N,), order: time derivatives (order + 1, N, n) of q
    speeds: Callable[[Array], Array]  # u (N,): du/dt (N,), positive
    times: Callable[[Array], Array]  # u (N,): when they are passed (N,) [s]
    places: Callable[[Array], Array]  # and back
    speed_degree: int = 0  # of b

    def degree_of(self, order: int) -> int:
        """Return the degree of P_k at most."""
        return max(self.degree - order, 0) + self.speed_degree * (order // 2)


# Times are forgiven this much beyond an end [s]: the resolution of a ROS stamp.
TIME_RESOLUTION = 1e-9

_DERIVATIVES = ("position", "velocity", "acceleration", "jerk", "snap")
_TORQUES = ("torque", "torque rate", "torque acceleration")


class Trajectory(ABC):
    """A motion of joints over the times from 0 to `duration`, sampled with its time derivatives.

    Positions are in rad (m for a prismatic joint), their k-th derivatives in rad/s^k. Where an end is at
    rest, the motion holds its position beyond that end; where it is not, a time beyond it is an error.

    Attributes:
        n_joints: Number of joints.
        joint_names: One name per joint, or None where the trajectory does not name them.
        duration: Time of the end [s]; infinite where the motion has none.
        smoothness: The highest derivative that is continuous everywhere, also where the motion comes from
            rest or to rest at an end; infinite where no derivative jumps. Samples of higher derivatives are
            right between the jumps.
        starts_at_rest: Whether the derivatives 1 ... `smoothness` vanish at time 0.
        ends_at_rest: Whether the derivatives 1 ... `smoothness` vanish at `duration`.
    """

    n_joints: int
    joint_names: tuple[str, ...] | None
    duration: float
    smoothness: float
    starts_at_rest: bool
    ends_at_rest: bool

    # until then a motion that starts at rest has not set off [s]
    _departure: float = 0.0

    @property
    def breakpoints(self) -> Array | None:
        """Instants (N,) [s], increasing, where a derivative of any order may jump; None: not known.

        Between two of them, and before the first and after the last one, the motion is smooth: all its
        derivatives exist. Whoever looks for peaks of the motion, or integrates along it, stops there.
        """
        return None

    @property
    def highest_frequency(self) -> float:
        """Angular frequency of the fastest oscillation [rad/s]; 0 where polynomials make the motion."""
        return 0.0

    @property
    def polynomial_degree(self) -> int | None:
        """Degree of the columns as polynomials of time between two breakpoints; None: they are none."""
        return None

    @property
    def pieces(self) -> Pieces | None:
        """The polynomials, of time or of a parameter, that the motion is made of; None: it is not."""
        degree, points = self.polynomial_degree, self.breakpoints
        if degree is None or points is None:
            return None
        return Pieces(points, degree, self._held_derivatives, np.ones_like, lambda u: u, lambda times: times)

    def sample(self, t: ArrayLike, order: int) -> Array:
        """Return the positions and their time derivatives up to `order` at the times `t` [s].

        The shape is (order+1, n) for one time, (N, order+1, n) for times of shape (N,). Raises InputError
        for a time that is not finite, or that lies beyond an end which is not at rest.
        """
        order = whole_number("order", order, 0)
        try:
            times = np.asarray(t, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"t must be one time or an array of times: {error}") from error
        if times.ndim > 1:
            raise InputError(f"t must be one time or an array of shape (N,), found {times.shape}")
        if not np.isfinite(times).all():
            raise InputError("t holds NaN or infinite times")
        values = self._held_derivatives(times.reshape(-1), order)
        return np.ascontiguousarray(values[:, 0] if times.ndim == 0 else np.moveaxis(values, 0, 1))

    def require_smoothness(self, order: int) -> None:
        """Raise InputError unless the derivatives of the motion up to `order` are continuous.

        The r-th derivative of the torque is continuous only if the motion is up to its derivative r + 2.
        """
        if self.smoothness < order:
            jumping = derivative_name(int(self.smoothness) + 1)
            raise InputError(
                f"{torque_name(order - 2)} needs a motion that is continuous up to its "
                f"{derivative_name(order)}, but the {jumping} of this {type(self).__name__} jumps; "
                f"{self._smoother(order)}"
            )

    @abstractmethod
    def _derivatives(self, times: Array, order: int) -> Array:
        """Return (order+1, N, n) at times (N,) that lie between `_departure` and `duration`."""

    @abstractmethod
    def _smoother(self, order: int) -> str:
        """Say how to get a motion whose derivatives are continuous up to `order`."""

    def _held_derivatives(self, times: Array, order: int) -> Array:
        """Return (order+1, N, n) at any finite times (N,), holding the position beyond an end at rest."""
        if not self.starts_at_rest and (times < -TIME_RESOLUTION).any():
            raise InputError(
                f"t = {times.min():g} s lies before the start of this {type(self).__name__}, which starts in "
                "motion; put an EasedStart around it"
            )
        if not self.ends_at_rest and (times > self.duration + TIME_RESOLUTION).any():
            raise InputError(
                f"t = {times.max():g} s lies beyond the end of this {type(self).__name__} at "
                f"{self.duration:g} s, which ends in motion; put an EasedStop around it"
            )
        values = self._derivatives(np.clip(times, self._departure, self.duration), order)
        if self.starts_at_rest:
            values[1:, times < self._departure] = 0.0
        if self.ends_at_rest:
            values[1:, times > self.duration] = 0.0
        return values

    def _set(self, **attributes: Any) -> None:
        """Set attributes of a frozen dataclass while it is being built."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def derivative_name(order: int) -> str:
    """Return the plain name of a derivative of the position.

    >>> derivative_name(4)
    'snap (derivative 4)'
    """
    number = f"derivative {order}"
    return f"{_DERIVATIVES[order]} ({number})" if order < len(_DERIVATIVES) else number


def torque_name(order: int) -> str:
    """Return the plain name of a derivative of the torque; below order 0 only the motion itself is meant.

    >>> torque_name(2)
    'torque acceleration (order 2)'
    """
    if order < 0:
        return "this order"
    number = f"order {order}"
    return f"{_TORQUES[order]} ({number})" if order < len(_TORQUES) else f"torque of {number}"
