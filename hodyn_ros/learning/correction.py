"""What has been learnt along one motion: efforts of the motors over its time, as splines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError

DEGREE = 4  # efforts then have three continuous derivatives


def basis(duration: float, count: int) -> BSpline:
    """Return `count` splines of degree `DEGREE` with even knots over a duration [s], one a column."""
    inner = np.linspace(0.0, duration, count - DEGREE + 1)
    knots = np.r_[[0.0] * DEGREE, inner, [duration] * DEGREE]
    return BSpline(knots, np.eye(count), DEGREE)


def basis_size(duration: float, bandwidth: float) -> int:
    """Return how many splines there are, with two knots a period of the bandwidth [Hz]."""
    return max(1, round(2.0 * duration * bandwidth)) + DEGREE


@dataclass(frozen=True, eq=False)
class Correction:
    """Efforts of the motors [N·m or N], reflected to the links, beside the feedforward of a motion.

    `coefficients` (splines, n) over the `duration` [s] of the motion, which `basis` explains; before and
    after it the efforts are those of its ends. Raises InputError for coefficients that are none.
    """

    joint_names: tuple[str, ...]
    duration: float
    coefficients: Array

    def __post_init__(self) -> None:
        table = np.array(self.coefficients, dtype=np.float64)
        object.__setattr__(self, "joint_names", tuple(self.joint_names))
        if not 0.0 < self.duration < np.inf:
            raise InputError(f"the duration of a correction is {self.duration:g} s; it must be positive")
        if table.ndim != 2 or table.shape[1] != len(self.joint_names) or len(table) <= DEGREE:
            raise InputError(
                f"a correction of {len(self.joint_names)} joints needs coefficients of shape (splines, "
                f"{len(self.joint_names)}) with more than {DEGREE} splines, found {table.shape}"
            )
        if not np.isfinite(table).all():
            raise InputError("a correction holds coefficients that are not finite")
        table.setflags(write=False)
        object.__setattr__(self, "coefficients", table)

    @classmethod
    def none(cls, joint_names: Sequence[str], duration: float, bandwidth: float) -> Correction:
        """Return the correction that corrects nothing, with splines up to a bandwidth [Hz]."""
        size = basis_size(duration, bandwidth)
        return cls(tuple(joint_names), duration, np.zeros((size, len(joint_names))))

    @cached_property
    def _splines(self) -> BSpline:
        knots = basis(self.duration, len(self.coefficients)).t
        return BSpline(knots, self.coefficients, DEGREE)

    def at(self, phase: float, rates: Sequence[float] = (), order: int = 0) -> Array:
        """Return the efforts (order + 1, n) and their time derivatives, at a time [s] of the motion.

        `rates`: first and second time derivative of that time, 1 and 0 where the motion runs as it was
        learnt; a motion at 80 % of its speed has 0.8. Derivatives above the second are zero.

        >>> constant = Correction(("joint",), 2.0, np.full((8, 1), 3.0))
        >>> constant.at(5.0, order=1).ravel().round(9)
        array([3., 0.])
        """
        speed, change = (*rates, *(1.0, 0.0)[len(rates) :])
        result = np.zeros((order + 1, len(self.joint_names)))
        inside = 0.0 <= phase <= self.duration
        place = min(max(phase, 0.0), self.duration)
        result[0] = self._splines(place)
        if inside and order >= 1:
            first = self._splines(place, nu=1)
            result[1] = first * speed
            if order >= 2:
                result[2] = self._splines(place, nu=2) * speed**2 + first * change
        return result

    def sampled(self, times: Array, derivative: int = 0) -> Array:
        """Return efforts (N, n) at times [s] of the motion, or one of their derivatives."""
        inside = np.clip(times, 0.0, self.duration)
        values = np.asarray(self._splines(inside, nu=derivative))
        return values if derivative == 0 else np.where((times == inside)[:, None], values, 0.0)

    def plus(self, coefficients: Array) -> Correction:
        """Return the correction with others added to its coefficients."""
        return replace(self, coefficients=self.coefficients + coefficients)
