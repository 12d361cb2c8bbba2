"""Partial derivatives of inverse and forward dynamics of robots with couplings and loops.

The recursions of the engine are run on numbers that carry their derivatives; those of the joints that follow
the coordinates are `F`, by the implicit function theorem, and everything else is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np

from hodyn_ros.dynamics.loops.looped_motion import LoopedMotion
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.series.dual import Dual
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import embedding
from hodyn_ros.formulations.embedding import LoopMotion
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.se3 import Ad, Array, ad, hat
from hodyn_ros.model.loops import ROWS


def inverse_dynamics_partials(looped: LoopedMotion, y: Array, given: BaseMotion | None) -> Array:
    """Return du^(r)/dy^(k) (order + 1, order + 3, efforts, coordinates) for a motion y (order + 3, k).

    `given`: the motion of a prescribed base or of a platform, whose coordinates are small body-fixed
    displacements (k = 0), and the derivatives of the body-fixed twist; a wrench on the base is body-fixed.
    """
    closure, order = looped.closure, len(y) - 3
    columns = _Columns(looped, order + 3)
    moved, margins = looped.locate(y[0], given, len(y))
    looped.check_held(margins[1])
    state, memory = columns.closed(moved)
    code = EffortCode(closure, looped.independence.given, order, ())
    motion, base = columns.given(given, order)
    efforts = code.efforts(columns.joints(y), *motion, [memory], [state])[: order + 1]
    if closure.base_given:
        assert base is not None
        efforts = _with_body_wrench(efforts, base)
    found = np.array([[_change(x, columns.size) for x in row] for row in efforts])
    return np.moveaxis(found.reshape(order + 1, -1, order + 3, columns.count), 2, 1)


def linearised(looped: LoopedMotion, state: Array, given: BaseMotion | None, efforts: Array) -> Array:
    """Return the derivatives (2 c, 2 c + driven) of x' by x and efforts, x the coordinates and their rates.

    `state` (2, k), `given` pose and twist of base or platform, `efforts` (driven,). Those that its motion
    is part of are small body-fixed displacements, and components of its body-fixed twist.
    """
    closure = looped.closure
    if looped.independence.idle:
        raise InputError(looped.independence.idle)
    columns = _Columns(looped, 2, len(efforts))
    if columns.drifts:
        raise InputError(
            f"robot {closure.tree.name!r} is moved by some rows of the pose of a platform; "
            "linearised_dynamics is for those whose whole motion the coordinates say"
        )
    moved, _ = looped.locate(state[0], given, 3)
    closed, memory = columns.closed(moved)
    code = AccelerationCode(closure, looped.independence.given, 0, ())
    units = np.eye(columns.size)[2 * columns.count :]
    drives = [[Dual(float(u), unit) for u, unit in zip(efforts, units)]]
    motion, _ = columns.given(given, -1)
    push = [[[0.0] * 6]] if closure.base_given else []
    found = code.accelerations(columns.joints(state), *motion, drives, *push, [memory], [closed])[0]
    rates = np.eye(columns.size)[columns.count : 2 * columns.count]
    if given is not None:
        base = FloatingBase(motion[0], (0.0, 0.0, 0.0), "world")
        for twist in (motion[1][0], found[:6]):
            base.extend(twist)
        turned = [*base.angular[1], *base.velocity[1]]
        of_pose, joints = [turned[i] for i in columns.rows], found[6:]
        found = [*of_pose, *joints] if closure.base_given else [*joints, *of_pose]
        part = slice(columns.first_part, columns.first_part + len(columns.rows))
        rates[part, part] -= (ad(given.in_frame("body").twists[0]) @ closure.directions)[columns.rows]
    return np.concatenate([rates, [_change(x, columns.size) for x in found]])


class _Columns:
    """Which direction each coordinate and each of its derivatives is changed in.

    `count` coordinates: the displacement of a prescribed base (6), joints, rows of a platform; `size`: as
    many directions for each of `orders`, and some `more`.
    """

    def __init__(self, looped: LoopedMotion, orders: int, more: int = 0) -> None:
        closure = looped.closure
        self.looped, self.closure = looped, closure
        platform, n = closure.platform, len(closure.joints)
        self.rows = list(range(6)) if closure.base_given else []  # of the body-fixed displacement
        if platform is not None:
            self.rows = [ROWS.index(row) for row in platform.rows]
        # rows that leave other components of the motion to follow as the pose has it
        self.drifts = platform is not None and platform.twists is None and len(self.rows) < 6
        self.first_joint = 6 if closure.base_given else 0
        self.first_part = 0 if closure.base_given else n
        self.count = n + len(self.rows)
        self.size = orders * self.count + more
        if closure.tree.floating_base and self.drifts:
            raise InputError(
                f"robot {closure.tree.name!r} is moved by some rows of the pose of its floating base; "
                "partial derivatives are for those whose whole pose is given"
            )

    def _unit(self, order: int, coordinate: int) -> Array:
        unit = np.zeros(self.size)
        unit[order * self.count + coordinate] = 1.0
        return unit

    def joints(self, y: Array) -> list[list[Dual]]:
        """Return the motion of the joints, each number changed in its direction."""
        return [
            [Dual(x, self._unit(k, self.first_joint + j)) for j, x in enumerate(row)]
            for k, row in enumerate(y)
        ]

    def closed(self, moved: LoopMotion) -> tuple[list[Dual], list[float]]:
        """Return positions of the leading joints with their derivatives, an error of zero, and the memory."""
        closure = self.closure
        F = embedding.distribution(self.looped.independence.rows, moved, 0)[0][closure.first :].copy()
        if closure.base_given and moved.place.base is not None:
            F[:, :6] = F[:, :6] @ Ad(moved.place.base)
        changes = np.zeros((len(closure.leading) + 1, self.size))
        changes[:-1, : self.count] = F
        positions = [float(moved.place.joints[joint]) for joint in closure.leading]
        return [Dual(x, change) for x, change in zip([*positions, 0.0], changes)], positions

    def given(
        self, motion: BaseMotion | None, order: int
    ) -> tuple[list[list[list[Dual]]], FloatingBase | None]:
        """Return pose and spatial twists with their derivatives, and the series of that motion."""
        if motion is None:
            return [], None
        turns, directions = np.zeros((4, 4, self.size)), self.closure.directions
        for place in range(len(self.rows)):
            turns[:, :, self.first_part + place] = motion.pose @ _generator(directions[:, place])
        pose = [
            [Dual(float(x), change) for x, change in zip(row, changes)]
            for row, changes in zip(motion.pose, turns)
        ]
        base = FloatingBase(pose, (0.0, 0.0, 0.0), "body")
        for k, twist in enumerate(motion.in_frame("body").twists[: order + 2]):
            places = range(self.first_part, self.first_part + len(self.rows))
            changes = directions @ np.array([self._unit(k + 1, place) for place in places])
            moving = [Dual(float(x), change) for x, change in zip(twist, changes)]
            base.extend([x * (1.0 / factorial(k)) for x in moving])
        base.frame = "world"
        twists = [[x * float(factorial(k)) for x in base.twist(k)] for k in range(order + 2)]
        return [pose, twists], base


def _generator(twist: Array) -> Array:
    """Return the matrix (4, 4) of a twist."""
    result = np.zeros((4, 4))
    result[:3, :3], result[:3, 3] = hat(twist[:3]), twist[3:]
    return result


def _with_body_wrench(efforts: Sequence[Sequence[Any]], base: FloatingBase) -> list[list[Any]]:
    """Return efforts whose first six columns are the base wrench in body axes, not spatial."""
    series = [[x * (1.0 / factorial(k)) for x in row[:6]] for k, row in enumerate(efforts)]
    moments = [(row[0], row[1], row[2]) for row in series]
    forces = [(row[3], row[4], row[5]) for row in series]
    result = []
    for k, row in enumerate(efforts):
        moment, force = base.wrench_to_body(moments, forces, k)
        result.append([*(x * float(factorial(k)) for x in (*moment, *force)), *row[6:]])
    return result


def _change(x: Dual | float, size: int) -> Array:
    return x.change if isinstance(x, Dual) else np.zeros(size)


def _value(x: Dual | float) -> float:
    return float(x.value) if isinstance(x, Dual) else float(x)
