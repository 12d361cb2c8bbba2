"""Whether a spline keeps the limits of a robot, everywhere between its knots.

Position to jerk by their hulls: the control points of each derivative lie within its limits. Torques, their
rates and what motors do are smooth over a span: a polynomial through five samples of each, whose Bernstein
coefficients bound it, and twice what it misses at a sixth and a seventh sample beside.
"""

from __future__ import annotations

from math import comb

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.motion_evaluator import MotionEvaluator, SampleError
from hodyn_ros.planning.streams.stream_config import StreamConfig
from hodyn_ros.planning.streams.stream_coordinates import StreamCoordinates
from hodyn_ros.planning.streams.uniform_spline import DEGREE, weights
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty

_NODES = np.array([0.0, 0.14644661, 0.5, 0.85355339, 1.0])  # Chebyshev's, ends included
_CHECKS = np.array([0.3, 0.7])
_MOTION = ("position", "velocity", "acceleration", "jerk")
_GAP = 1e-9  # of a span: derivative 5 jumps at its ends
HOLDS = 1.0 + 1e-9  # usage of limits that hold: to rounding


_POWERS = range(len(_NODES))
# from values at the nodes to Bernstein coefficients, and to values at the checks
_TO_HULL = np.linalg.inv(
    np.column_stack([comb(_POWERS[-1], k) * _NODES**k * _NODES[::-1] ** (_POWERS[-1] - k) for k in _POWERS])
)
_TO_CHECKS = np.vander(_CHECKS, len(_NODES)) @ np.linalg.inv(np.vander(_NODES))
_TO_HULL_AND_CHECKS = np.concatenate([_TO_HULL, _TO_CHECKS])
_PLACES = len(_NODES) + len(_CHECKS)  # in a span at which efforts are computed
_TOGETHER = 128  # spans
_CONTROLS = np.arange(DEGREE + 1)


def torque_accelerations(robot: Robot, place: Array, config: StreamConfig) -> Array | None:
    """Return the limits (n,) [N·m/s²] of what a stream is to swing for; None where nothing is asked for."""
    if not config.stiffness_error and not config.payload_error:
        return None
    return Uncertainty(config.stiffness_error, config.payload_error).torque_accelerations(robot, place)


class SpanLimits:
    """The limits of a robot, for splines of its coordinates with control points `spacing` [s] apart.

    `torque_accelerations` (n,) [N·m/s²] are limits beside those of the robot. With loops, the motion of the
    driven joints is bounded as torques are, and has to be found from the samples: that takes longer.
    """

    def __init__(self, robot: Robot, spacing: float, torque_accelerations: Array | None = None) -> None:
        self.robot, self.coordinates = robot, StreamCoordinates.of(robot)
        self._spacing = spacing
        limits = self.coordinates.limits
        self._lower, self._upper = limits.position_lower, limits.position_upper
        self._bounds = _of_differences(limits, spacing)
        self._orders = max(
            (k + 1 for k, each in enumerate(self._bounds) if np.isfinite(each).any()), default=0
        )
        self._set = _limit_set(robot, torque_accelerations)
        self._subject = MotionEvaluator(robot)
        self._joints = robot.positions  # of loops, near the first span
        order = 2 if self._set is None else self._set.order
        inside = np.concatenate([_NODES, _CHECKS]) * (1.0 - 2.0 * _GAP) + _GAP
        self._weights = weights(inside, spacing, order).reshape(-1, DEGREE + 1)

    def usage(self, controls: Array) -> tuple[float, str]:
        """Return by which share the most used limit is used along control points (c, n), and which one.

        At most `HOLDS` where all hold. Where the motion itself is beyond a limit, torques are not looked at,
        nor what comes behind the first ones that are.
        """
        if not np.isfinite(controls).all():
            return np.inf, "range of numbers"
        worst, words = self._of_motion(controls)
        if worst > HOLDS or (self._set is None and self.robot.closure is None):
            return worst, words
        if self._joints is not None:
            self.robot.reset(self._joints)
        for first in range(0, len(controls) - DEGREE, _TOGETHER):
            some = controls[first : first + _TOGETHER + DEGREE]
            try:
                worst, words = max((worst, words), self._of_efforts(some, remember=first == 0))
            except SampleError as error:
                return np.inf, f"reach of the loops ({error})"
            if worst > HOLDS:
                break
        return worst, words

    def _of_motion(self, controls: Array) -> tuple[float, str]:
        names = self.coordinates.names
        over = np.maximum(controls - self._upper, self._lower - controls).max(axis=0)
        joint = int(np.argmax(over))
        if over[joint] > 1e-9:
            return 1.0 + float(over[joint]), f"position of {names[joint]!r}"
        worst, words = 0.0, ""
        differences = controls
        for order, bound in enumerate(self._bounds[: self._orders], start=1):
            differences = np.diff(differences, axis=0)
            shares = np.abs(differences).max(axis=0) / bound
            joint = int(np.argmax(shares))
            if shares[joint] > worst:
                worst, words = float(shares[joint]), f"{_MOTION[order]} of {names[joint]!r}"
        return worst, words

    def _of_efforts(self, controls: Array, remember: bool) -> tuple[float, str]:
        count, n = len(controls) - DEGREE, controls.shape[1]
        spans = controls.take(np.arange(count)[:, None] + _CONTROLS, axis=0)  # (spans, 6, n)
        origin = spans[:, :1]
        by_place = (self._weights @ (spans - origin)).reshape(count, _PLACES, -1, n)
        by_place[:, :, 0] += origin
        sample = self.coordinates.sample(by_place.reshape(count * _PLACES, -1, n), "spatial")
        if remember and self._joints is not None:
            self._subject.approach(sample)
            self._joints = self.robot.positions
        evaluated = self._subject.evaluate(sample)
        if self._set is None:  # loops close, and nothing else is asked for
            return 0.0, ""
        values = self._set.of_derivatives(sample.joints, *evaluated).reshape(count, _PLACES, -1)
        return self._worst(self._set, values)

    def _worst(self, limits: LimitSet, values: Array) -> tuple[float, str]:
        """Return the largest use of a limit, and which one, of quantities (spans, places, columns)."""
        coefficients = _TO_HULL_AND_CHECKS @ values[:, : len(_NODES)]  # (spans, coefficients, columns)
        missed = np.abs(values[:, len(_NODES) :] - coefficients[:, len(_NODES) :]).max(axis=1)
        hull = coefficients[:, : len(_NODES)]
        hull = np.where(limits.one_sided, hull, np.abs(hull)) if limits.one_sided.any() else np.abs(hull)
        sizes = limits.usage((hull.max(axis=1) + 2.0 * missed).max(axis=0))
        if not np.isfinite(sizes).all():
            return np.inf, "range of numbers"
        worst = int(np.argmax(sizes))
        column = limits.columns[worst]
        return float(sizes[worst]), f"{column.quantity} of {column.joint!r}"


def _of_differences(limits: JointLimits, spacing: float) -> tuple[Array, ...]:
    rates = (limits.velocity, limits.acceleration, limits.jerk)
    return tuple(rate * spacing**order for order, rate in enumerate(rates, start=1))


def _limit_set(robot: Robot, torque_accelerations: Array | None) -> LimitSet | None:
    without = _MOTION if robot.closure is None else ()  # coordinates keep theirs by their hulls
    try:
        return LimitSet(robot, without=without, torque_accelerations=torque_accelerations)
    except InputError:  # nothing else is limited
        return None
