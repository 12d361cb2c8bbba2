"""What is used of every limit along a path, and how that changes with the speed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.planning.limit_set import POWERS, LimitSet, Place
from hodyn_ros.planning.motion_evaluator import MotionEvaluator
from hodyn_ros.planning.time_optimal.chain_rule import SPEEDS
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics

_LINEAR = 1e-9  # relative miss up to which a drive is taken for linear
_ONE_THREAD = 200_000  # products at a time: OpenBLAS wakes other threads for more, at many times the cost
_STEP = 1e-4  # of differences, beside the size of what is changed


class PathUsage:
    """The relative quantities (N, columns) of the limits that speed has to do with, at N instants of a path.

    Where drives are linear, so is every quantity in the time derivatives of motion and torque of its joint,
    and the weights are found once; else at each call, by central differences. The power of a motor is the
    product of two such quantities, the second of which stands behind all columns. Where a path limits a speed
    of its own, `pace`, that is the last column.

    Attributes:
        columns: Those of the limits, joint by joint.
        channel: Of the joint of each of them.
        offset: The quantities (columns and more,) where nothing moves and no torque acts.
        linear_weights: Their slopes (rates, columns and more) by the rates of that joint; None where drives
            are not linear.
    """

    def __init__(self, demand: LimitSet) -> None:
        self.demand = demand
        self.order = max(demand.order, 2)
        self._driven = len(demand.subject.joint_names)
        self._coordinates = len(demand.subject.robot.joint_names)
        separate = demand.subject.joint_names != demand.subject.robot.joint_names
        self._efforts = self._driven + demand.subject.extra
        self._channels = self._efforts + (self._coordinates if separate else 0)
        self._first = self._efforts if separate else 0  # of the coordinates
        columns = np.flatnonzero(demand.timed)
        channel = np.array([self._channel(demand.places[c]) for c in columns])
        order = np.argsort(channel, kind="stable")
        self.columns = columns[order]
        self._set_parts([demand.places[c] for c in self.columns])
        self.channel = np.concatenate([channel[order], channel[order][self._powers]])
        zero = np.zeros((self._channels, 1, 2 * self.order))
        self.offset = self._parts(zero)[0]
        self.linear_weights: Array | None = self._differences(zero, np.ones_like(zero))[0]
        trial = np.random.default_rng(0).normal(size=(self._channels, 3, 2 * self.order))
        usage, linear = self._parts(trial), self.offset + self._linear(trial, self.linear_weights)
        if not np.abs(usage - linear).max() <= _LINEAR * max(1.0, float(np.abs(usage).max())):
            self.linear_weights = None

    def of_columns(self, some: NDArray[np.bool_]) -> PathUsage:
        """Return the same of some columns alone; of all, where one is a product of others or not linear."""
        if self.linear_weights is None or len(self._powers):
            return self
        chosen = copy(self)
        chosen.__dict__.pop("_own", None)
        chosen.columns, chosen.channel, chosen.offset = (
            each[some] for each in (self.columns, self.channel, self.offset)
        )
        chosen.linear_weights = self.linear_weights[:, some]
        return chosen

    def values(self, path: PathDynamics, y: Array) -> Array:
        """Return the relative quantities (N, columns) at speeds y (N, 5)."""
        rates = path.rates(y)
        if self.linear_weights is None:
            parts = self._parts(rates)
        else:
            parts = self.offset + self._linear(rates, self.linear_weights)
        values = self._multiplied(parts)[0]
        return np.hstack([values, path.pace.T * _root(y)]) if len(path.pace) else values

    def with_integrals(self, path: PathDynamics, y: Array) -> tuple[Array, Array]:
        """Return the same, and their integrals over time, up to a constant; NaN where they are none."""
        rates = path.rates(y)
        if self.linear_weights is None:
            values, integrals = self._parts(rates), self._integrals(rates)
        else:
            values = self.offset + self._linear(rates, self.linear_weights)
            integrals = self._linear(rates, self._integral_weights(self.linear_weights))
        known = np.where(self._has_integral, integrals[:, : len(self.columns)], np.nan)
        return self._multiplied(values)[0], known

    def with_gradient(self, path: PathDynamics, y: Array) -> tuple[Array, Array]:
        """Return the same, and the derivatives (N, 5, columns) by y."""
        series = path.rates_with_slopes(y)
        if self.linear_weights is not None:
            by_order = series.reshape(len(series), -1, 2 * self.order)
            both = self._linear(by_order, self.linear_weights).reshape(len(y), 1 + SPEEDS, -1)
            return self._with_pace(path, y, *self._multiplied(self.offset + both[:, 0], both[:, 1:]))
        rates, slopes = series[:, :, 0], series[:, :, 1:]
        sizes = np.abs(rates)
        weights = self._differences(rates, np.maximum(sizes, sizes.mean(axis=1, keepdims=True)) + 1e-9)
        gradient = np.einsum("cnir,nrc->nic", slopes[self.channel], weights)
        return self._with_pace(path, y, *self._multiplied(self._parts(rates), gradient))

    def _with_pace(self, path: PathDynamics, y: Array, values: Array, gradient: Array) -> tuple[Array, Array]:
        """Return quantities and slopes, behind them those of the speed that a path limits beside."""
        if not len(path.pace):
            return values, gradient
        root, slopes = _root(y), np.zeros((len(y), SPEEDS, len(path.pace)))
        slopes[:, 0] = 0.5 * path.pace.T / root
        return np.hstack([values, path.pace.T * root]), np.concatenate([gradient, slopes], axis=2)

    def _set_parts(self, places: list[Place]) -> None:
        self._powers = np.array([i for i, place in enumerate(places) if place.stack == POWERS], dtype=np.intp)
        motors = [places[i].number for i in self._powers]
        for i, motor in zip(self._powers, motors):
            places[i] = Place("motor_positions", 1, motor)
        self._places = places + [Place("motor_efforts", 0, motor) for motor in motors]
        self._has_integral = np.array([place.derivative > 0 for place in places])
        self._has_integral[self._powers] = False
        scale = np.ones((2, len(self._places)))
        scale[0] = 0.0
        scale[:, : len(self.columns)] = self.demand.scale[:, self.columns]
        self._centre, self._span = scale

    def _multiplied(self, parts: Array, slopes: Array | None = None) -> tuple[Array, Array]:
        """Return the quantities (N, columns) and slopes (N, 5, columns) of parts with their slopes."""
        count, powers = len(self.columns), self._powers
        values, factors = parts[:, :count], parts[:, count:]
        gradient = np.zeros((0, 0, count)) if slopes is None else slopes[:, :, :count]
        if len(powers):
            if slopes is not None:
                rises = slopes[:, :, count:] * values[:, None, powers]
                gradient[:, :, powers] = gradient[:, :, powers] * factors[:, None] + rises
            values[:, powers] *= factors
        return values, gradient

    def _linear(self, rates: Array, weights: Array) -> Array:
        """Return the quantities (N, columns), less their offset, from rates (channels, N, 2 order)."""
        result = np.empty((rates.shape[1], weights.shape[1]))
        for channel, own in self._own:
            some = weights[:, own]
            rows = max(1, _ONE_THREAD // some.size)
            for first in range(0, len(result), rows):
                part = slice(first, first + rows)
                np.matmul(rates[channel, part], some, out=result[part, own])
        return result

    @cached_property
    def _own(self) -> list[tuple[int, slice]]:
        """Channels with the columns that follow from them."""
        starts = np.flatnonzero(np.diff(self.channel, prepend=-1)).tolist()
        ends = [*starts[1:], len(self.channel)]
        return [(int(self.channel[start]), slice(start, end)) for start, end in zip(starts, ends)]

    def _parts(self, rates: Array) -> Array:
        """Return the quantities (N, columns), and second factors behind them."""
        return np.asarray((self._values(self._places, rates) - self._centre) / self._span)

    def _integrals(self, rates: Array) -> Array:
        """Return integrals of the same over time, up to a constant; anything where these are none of them."""
        lower = [place._replace(derivative=max(place.derivative - 1, 0)) for place in self._places]
        return np.asarray(self._values(lower, rates) / self._span)

    def _integral_weights(self, weights: Array) -> Array:
        """Return the weights of the integrals: what followed from a rate follows from the one before."""
        earlier = np.zeros_like(weights)
        for first, last in ((0, self.order), (self.order + 1, 2 * self.order - 1)):
            earlier[first:last] = weights[first + 1 : last + 1]
        return earlier

    def _values(self, places: list[Place], rates: Array) -> Array:
        return self.demand.values(places, *self._arrays(rates))

    def _arrays(self, rates: Array) -> tuple[Array, Array, Array]:
        """Return coordinates, motion and efforts as `LimitSet.values` takes them."""
        by_time = rates.transpose(1, 2, 0)
        motion, torques = by_time[:, : self.order + 1], by_time[:, self.order + 1 :]
        coordinates = motion[:, :, self._first : self._first + self._coordinates]
        return (
            np.ascontiguousarray(coordinates),
            np.ascontiguousarray(motion[:, :, : self._driven]),
            np.ascontiguousarray(torques[:, :, : self._efforts]),
        )

    def _differences(self, rates: Array, sizes: Array) -> Array:
        """Return the derivatives (N, rates, columns) of each column by the rates of its own joint."""
        steps = _STEP * sizes
        rows = np.arange(rates.shape[2])
        moved = np.broadcast_to(rates, (2, len(rows), *rates.shape)).copy()
        moved[0, rows, :, :, rows] += steps.transpose(2, 0, 1)
        moved[1, rows, :, :, rows] -= steps.transpose(2, 0, 1)
        # all of them at once: as instants of one path
        parts = self._parts(moved.transpose(2, 0, 1, 3, 4).reshape(len(rates), -1, len(rows)))
        upper, lower = parts.reshape(2, len(rows), rates.shape[1], -1)
        return np.asarray(((upper - lower) / (2.0 * steps[self.channel].T)).swapaxes(0, 1))

    def _channel(self, place: Place) -> int:
        """Return the channel of the joint that a quantity belongs to."""
        if place.stack == "coordinates":
            return self._first + place.number
        train = self.demand.subject.train
        if place.stack in ("motor_positions", "motor_efforts", POWERS) and train is not None:
            return train.motor_joints[place.number]
        return place.number


class CautiousUsage(PathUsage):
    """The same, where Coulomb friction of a motor turns over so slowly that stations do not miss it.

    At a reversal it asks for a torque rate of `c v_s^2 v' / (v^2 + v_s^2)^(3/2)`. A motor that passes the
    transition v_s in less time than stations are apart would be seen at rest by chance alone, and the whole
    motion slowed down in the end for what nobody has looked at. With k c and k v_s that rate is as high, and
    nowhere lower; the larger of both counts.
    """

    def __init__(self, demand: LimitSet, wider: Sequence[float]) -> None:
        """Take k (joints,), 1 or more each."""
        specs = [
            replace(spec, motor_friction=_wider(spec.motor_friction, k))
            for spec, k in zip(demand.subject.robot.require_drives().specs, wider, strict=True)
        ]
        self._wide = copy(demand)
        self._wide.subject = MotionEvaluator(demand.subject.robot.with_drives(specs))
        super().__init__(demand)

    def _values(self, places: list[Place], rates: Array) -> Array:
        values = super()._values(places, rates)
        some = [i for i, place in enumerate(places) if place.stack == "motor_efforts" and place.derivative]
        wide = self._wide.values([places[i] for i in some], *self._arrays(rates))
        values[:, some] = np.where(np.abs(wide) > np.abs(values[:, some]), wide, values[:, some])
        return values


def cautious(usage: PathUsage, lasts: float) -> PathUsage:
    """Return the usage in whose torque rates friction takes so long [s] at least to turn over."""
    demand = usage.demand
    train = demand.subject.train
    if train is None:
        return usage
    wider = np.ones(len(train.specs))
    for column, place in zip(demand.columns, demand.places):
        if column.quantity == "motor torque rate":
            joint = train.motor_joints[place.number]
            friction, effort = train.specs[joint].motor_friction, demand.subject.limits.effort[joint]
            turned = friction.coulomb + (friction.load * effort if friction.load else 0.0)
            if turned:  # from c to no friction at the rate that is allowed
                wider[joint] = max(wider[joint], column.upper * lasts / turned)
    return CautiousUsage(demand, wider.tolist()) if (wider > 1.0).any() else usage


def _wider(friction: FrictionSpec, k: float) -> FrictionSpec:
    return replace(
        friction, coulomb=k * friction.coulomb, load=k * friction.load, transition=k * friction.transition
    )


def _root(y: Array) -> Array:
    """Return du/dt (N, 1), never zero."""
    return np.asarray(np.sqrt(np.maximum(y[:, :1], 1e-300)))
