"""What a motion demands of a robot, column by column beside the limit that it has to keep."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hodyn_ros.actuation.compiled_motors import MotorMotion
from hodyn_ros.actuation.propellers import UNREACHED
from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.peaks import Samples
from hodyn_ros.trajectory.robot_motion import MotionSample, RobotMotion

# A limit that is met to rounding holds.
ROUNDING = 1e-9
POWERS = "motor_powers"  # the stack that is a product of others


class Column(NamedTuple):
    """One limit of one joint or motor."""

    quantity: str
    joint: str  # or motor
    unit: str
    lower: float
    upper: float
    order: int  # highest derivative of the motion that the quantity follows from


class Place(NamedTuple):
    """Where a quantity stands in what is computed from samples of a motion."""

    stack: str  # an attribute of _Computed
    derivative: int
    number: int  # of joint or motor


class LimitSet:
    """All finite limits of a robot, and the quantities that have to keep them, from samples of a motion.

    Positions of the joints up to their jerks; torques of the links with their rates; speeds, torques and
    torque rates of the motors, and their mechanical power; deflections of the springs; thrusts and tilts of
    propellers with their rates, and the wrench on the base that these cannot give, which has to be none. The
    limits of a drive are its own; where its file gives none, those of its joint count for the motor as well.
    Damped springs are taken on their slow manifold. Of a robot with loops its driven joints count, and
    coordinates that nothing drives.

    A quantity is *relative* to its limits when -1 and 1 are its bounds. One with a single bound, or with a
    range that has no width, has the distance beyond it instead [in its unit].
    """

    def __init__(
        self,
        robot: Robot,
        shares: Mapping[str, float] | None = None,
        without: Collection[str] = (),
        torque_accelerations: Array | None = None,
    ) -> None:
        """Take the limits of a robot, `without` some quantities.

        Of those named in `shares`, by quantity, that share only. `torque_accelerations` (n,) [N·m/s²] are
        limits beside those of the robot, of the second derivatives of its torques.
        """
        self.subject = MotionEvaluator(robot)
        self._shares, self._without = dict(shares or {}), without
        self._torque_accelerations = torque_accelerations
        self.columns: list[Column] = []
        self.places: list[Place] = []
        self._gather()
        if not self.columns:
            raise InputError(
                f"robot {self.subject.name!r} has no limits; give its joints `limits` in the robot file"
            )
        self._require_known(self._shares)
        self.lower = np.array([column.lower for column in self.columns])
        self.upper = np.array([column.upper for column in self.columns])
        self.order = max(self.subject.least_order, *(column.order for column in self.columns))
        # positions do not change with the speed of a motion
        self.timed = np.array([column.quantity != "position" for column in self.columns])
        bounded = np.isfinite(self.lower) & np.isfinite(self.upper)
        self._wide = bounded & (self.lower < self.upper)
        self.one_sided = ~bounded
        has_upper = np.isfinite(self.upper)
        single = np.where(has_upper, self.upper, self.lower)
        with np.errstate(invalid="ignore"):
            middle, half = 0.5 * (self.upper + self.lower), 0.5 * (self.upper - self.lower)
        self._centre = np.where(bounded, middle, single)
        self._span = np.where(self._wide, half, np.where(bounded | has_upper, 1.0, -1.0))
        self.scale = np.stack([self._centre, self._span])  # relative = (quantity - scale[0]) / scale[1]

    def fitted(self, motion: RobotMotion) -> RobotMotion:
        """Return the motion with the joints of the robot; InputError unless every quantity is bounded."""
        fitted = self.subject.fitted(motion)
        # the highest derivative may jump, as long as it stays finite
        fitted.trajectory.require_smoothness(self.order - 1)
        return fitted

    def relative(self, sample: MotionSample) -> Samples:
        """Return the relative quantities (N, columns) at N samples of a motion up to `order`.

        With their integrals over time, where these are quantities themselves. Raises SampleError.
        """
        computed = _Computed(self.subject, sample.joints, *self.subject.evaluate(sample))
        values = computed.of(self.places)
        integrals = np.full(values.shape, np.nan)
        for column, place in enumerate(self.places):
            if place.derivative:
                stack = getattr(computed, place.stack)
                integrals[:, column] = stack[:, place.derivative - 1, place.number] / self._span[column]
        return Samples((values - self._centre) / self._span, integrals)

    def of_derivatives(self, coordinates: Array, motion: Array, efforts: Array) -> Array:
        """Return the relative quantities (N, columns), as `relative` does, from what is computed already.

        `coordinates` (N, order + 1, n) of the robot, `motion` (N, order + 1, driven) of its driven joints and
        `efforts` (N, order - 1, driven + extra) as of the `MotionEvaluator`, by time derivative.
        """
        return np.asarray(
            (self.values(self.places, coordinates, motion, efforts) - self._centre) / self._span
        )

    def values(self, places: Sequence[Place], coordinates: Array, motion: Array, efforts: Array) -> Array:
        """Return quantities (N, places) in their units, from the same."""
        return _Computed(self.subject, coordinates, motion, efforts).of(places)

    def absolute(self, relative: Array) -> Array:
        """Return quantities (..., columns) in their units."""
        return np.asarray(self._centre + self._span * relative)

    def usage(self, sizes: Array) -> Array:
        """Return by which share limits are used (..., columns), from sizes of relative quantities.

        At most one where all hold. Of a position, measured from the middle of its range; with one bound only,
        or a range without a width, zero while it holds.
        """
        return np.asarray(np.where(self._wide, sizes, np.where(sizes > 0.0, 1.0 + sizes, 0.0)))

    def margins(self, values: Array) -> Array:
        """Return the distances (..., columns) to the nearer limit, negative beyond it, in the units."""
        return np.asarray(np.minimum(self.upper - values, values - self.lower))

    def position_beyond(self, sizes: Array) -> int | None:
        """Return the column of the position that is farthest beyond its limit, None where all hold.

        `sizes` (columns,) of relative quantities. No speed of a motion changes its positions.
        """
        usage = np.where(self.timed, 0.0, self.usage(sizes))
        worst = int(np.argmax(usage))
        return worst if usage[worst] > 1.0 + ROUNDING else None

    def _gather(self) -> None:
        subject, limits, train = self.subject, self.subject.limits, self.subject.train
        prismatic = subject.prismatic
        for j, name in enumerate(subject.joint_names):
            self._add_motion("motion", j, name, prismatic[j], limits)
            force = "N" if prismatic[j] else "N·m"
            self._symmetric("torque", name, force, limits.effort[j], 2, Place("efforts", 0, j))
            rate = limits.effort_rate[j]
            self._symmetric("torque rate", name, f"{force}/s", rate, 3, Place("efforts", 1, j))
            if self._torque_accelerations is not None:
                bend, place = self._torque_accelerations[j], Place("efforts", 2, j)
                self._symmetric("torque acceleration", name, f"{force}/s²", bend, 4, place)
        for j, name in enumerate(subject.robot.joint_names):
            if name not in subject.joint_names:  # a coordinate that nothing drives
                self._add_motion(
                    "coordinates", j, name, subject.slides(name), subject.robot.coordinate_limits
                )
        self._add_propellers(len(subject.joint_names))
        if train is None:
            return
        lost = 2 if train.elastic.any() else 0  # rows are as long as those of the joint that has fewest
        for m, (joint, name) in enumerate(zip(train.motor_joints, train.motor_names)):
            length, force = ("m", "N") if prismatic[joint] else ("rad", "N·m")
            own = train.drives[joint].limits
            # a motor that presses a spring has nothing in common with the joint's limits
            shared = train.motor_joints.index(joint) == m
            speed = _first_finite(own.speed, limits.velocity[joint] if shared else np.inf)
            torque = _first_finite(own.torque, limits.effort[joint] if shared else np.inf)
            rate = _first_finite(own.torque_rate, limits.effort_rate[joint] if shared else np.inf)
            if train.elastic[joint]:
                self._symmetric("motor speed", name, f"{length}/s", speed, 3, Place("motor_positions", 1, m))
            else:
                self._symmetric("motor speed", name, f"{length}/s", own.speed, 1, Place("motion", 1, joint))
            efforts = (("motor torque", force, torque), ("motor torque rate", f"{force}/s", rate))
            for k, (quantity, unit, bound) in enumerate(efforts):
                self._symmetric(quantity, name, unit, bound, 2 + k + lost, Place("motor_efforts", k, m))
            self._symmetric("motor power", name, "W", own.power, 2 + lost, Place(POWERS, 0, m))
        for j, (name, drive) in enumerate(zip(subject.joint_names, train.drives)):
            length = "m" if prismatic[j] else "rad"
            if not drive.rigid:
                self._symmetric(
                    "deflection", name, length, drive.limits.deflection, 2, Place("deflections", 0, j)
                )

    def _add_motion(self, stack: str, j: int, name: str, slides: bool, limits: JointLimits) -> None:
        """Add the limits of joint j that its motion has to keep."""
        length = "m" if slides else "rad"
        lower, upper = float(limits.position_lower[j]), float(limits.position_upper[j])
        self._add(Column("position", name, length, lower, upper, 0), Place(stack, 0, j))
        rates = (("velocity", "s", limits.velocity), ("acceleration", "s²", limits.acceleration))
        for order, (quantity, per, bounds) in enumerate((*rates, ("jerk", "s³", limits.jerk)), start=1):
            self._symmetric(quantity, name, f"{length}/{per}", bounds[j], order, Place(stack, order, j))

    def _add_propellers(self, first: int) -> None:
        """Add the limits of the propellers, whose efforts stand behind those of `first` joints."""
        propellers = self.subject.propellers
        if propellers is None:
            return
        count = len(propellers.names)
        for i, propeller in enumerate(propellers.propellers, start=first):
            name, limits = propeller.name, propeller.limits
            most = limits.most * self._shares.get("thrust", 1.0)
            self._add(Column("thrust", name, "N", limits.least, most, 2), Place("efforts", 0, i))
            self._symmetric("thrust rate", name, "N/s", limits.rate, 3, Place("efforts", 1, i))
            self._symmetric("tilt", name, "rad", limits.tilt, 2, Place("efforts", 0, i + count))
            self._symmetric("tilt rate", name, "rad/s", limits.tilt_rate, 3, Place("efforts", 1, i + count))
        if not propellers.reaches_all:
            for k, axis in enumerate(("x", "y", "z") * 2):
                what, unit = ("moment", "N·m") if k < 3 else ("force", "N")
                place = Place("efforts", 0, first + 2 * count + k)
                self._symmetric(f"{what} that propellers leave", axis, unit, UNREACHED, 2, place)

    def _symmetric(
        self, quantity: str, joint: str, unit: str, bound: float, order: int, place: Place
    ) -> None:
        bound = float(bound) * self._shares.get(quantity, 1.0)
        self._add(Column(quantity, joint, unit, -bound, bound, order), place)

    def _require_known(self, shares: Mapping[str, float]) -> None:
        known = [
            name for name in dict.fromkeys(column.quantity for column in self.columns) if name != "position"
        ]
        for name, share in shares.items():
            if not 0.0 < share <= 1.0:
                raise InputError(
                    f"the share of the limit of {name!r} must be above 0 and at most 1, found {share:g}"
                )
            if name not in known:
                raise InputError(
                    f"robot {self.subject.name!r} has no limit of {name!r}; it has those of "
                    f"{', '.join(known)}"
                )

    def _add(self, column: Column, place: Place) -> None:
        bounded = np.isfinite(column.lower) or np.isfinite(column.upper)
        if bounded and column.quantity not in self._without:
            self.columns.append(column)
            self.places.append(place)


class _Computed:
    """Motion, efforts and motors at N instants (N, derivatives, n); each is computed when first asked for."""

    def __init__(self, subject: MotionEvaluator, coordinates: Array, motion: Array, efforts: Array) -> None:
        self.subject = subject
        self.coordinates = coordinates
        self.motion, self.efforts = motion, efforts

    def of(self, places: Sequence[Place]) -> Array:
        """Return quantities (N, places)."""
        first, columns, parts = 0, {}, []
        used: dict[str, int] = {}
        for place in places:
            used[place.stack] = max(used.get(place.stack, 0), place.derivative + 1)
        for name, derivatives in used.items():
            stack = getattr(self, name)[:, :derivatives]
            columns[name] = first, stack.shape[2]
            width = stack.shape[1] * stack.shape[2]
            first += width
            parts.append(stack.reshape(len(stack), width))
        chosen = [columns[p.stack][0] + p.derivative * columns[p.stack][1] + p.number for p in places]
        return np.concatenate(parts, axis=1).take(chosen, axis=1)

    @property
    def motor_positions(self) -> Array:
        return self._motors.position

    @property
    def motor_efforts(self) -> Array:
        return self._motors.effort

    @property
    def motor_powers(self) -> Array:
        return self.motor_positions[:, 1:2] * self.motor_efforts[:, :1]

    @cached_property
    def deflections(self) -> Array:
        train = self.subject.robot.require_drives()
        return train.deflections(self.motion[:, 0], self.motor_positions[:, 0])[:, None]

    @cached_property
    def _motors(self) -> MotorMotion:
        torques = self.efforts[:, :, : self.motion.shape[-1]]
        return self.subject.robot.require_drives().feedforward(self.motion, torques)


def _first_finite(own: float, shared: float) -> float:
    return own if np.isfinite(own) else float(shared)
