"""Multipliers of the loops, coefficient by coefficient, and what they leave of the efforts of the tree.

A cluster is seen from the body from which its branches start, as if that stood still, and so are the wrenches
of its rows. The motion of that body takes them to the world.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.loops.loop_motion import ClosingMotion, LoopCode
from hodyn_ros.engine.loops.loop_series import Cluster, ClusterMotion, MovingFrame, PlacedRow
from hodyn_ros.engine.series.allowed import closed_directions
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.canonical import inward
from hodyn_ros.engine.series.floating_base import convolve_vectors
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, combine, plus, power, scaled
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, cross, dot, subtract, to_derivatives
from hodyn_ros.lie.se3 import inverse
from hodyn_ros.model.frames import Frame


class Multipliers:
    """The multipliers of all rows by cluster and coefficient."""

    def __init__(self, code: LoopCode, motions: Sequence[ClosingMotion]) -> None:
        self.code, self.motions = code, motions
        self.multipliers: list[list[list[Scalar]]] = [[] for _ in motions]  # by cluster and coefficient
        self.carried: list[list[dict[int, Spatial]]] = [[] for _ in motions]  # wrenches by body
        self._entries = [[motion.by_column(r) for r in range(len(motion.cluster.rows))] for motion in motions]

    def solve(self, motion: ClosingMotion, right: Sequence[Scalar]) -> list[Scalar]:
        """Return the multipliers of a cluster's rows that balance efforts on its unknown joints."""
        scaled = [x * float(self.code.scale[c]) for x, c in zip(right, motion.columns)]
        result = motion.system.solve_transposed(scaled)
        return [y * (1.0 / row.size) for y, row in zip(result, motion.cluster.rows)]

    def along(self, column: int, multipliers: Sequence[Sequence[Scalar]]) -> Scalar:
        """Return the effort of multipliers on a known joint."""
        result: Scalar = 0.0
        for entries, values in zip(self._entries, multipliers):
            for entry, value in zip(entries, values):
                result = result + entry.get(column, 0.0) * value
        return result

    def on_base(self, multipliers: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Return the wrench of multipliers on the base, about the point of reference."""
        total = [0.0] * 6
        for motion, result in zip(self.motions, multipliers):
            wrench = motion.on_base(motion.loads([result], 0, 0))
            if wrench is not None:
                total = [a + b for a, b in zip(total, [*wrench[0], *wrench[1]])]
        return total

    def rest(self, of_tree: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """Return what the next multipliers and drives have to make up of the efforts of the tree.

        By joint, and on the base about the point of reference: the next coefficient, less what lower
        multipliers contribute to it.
        """
        code, k = self.code, len(self.carried[0]) if self.carried else 0
        center, first = code.center.tolist(), code.closure.first
        wrench, torques = [*of_tree[:first], *[0.0] * (6 - first)], of_tree[first:]
        known = [
            [*result, [0.0] * len(motion.cluster.rows)]
            for motion, result in zip(self.motions, self.multipliers)
        ]
        past = [motion.loads(result, k, 1) for motion, result in zip(self.motions, known)]
        left = list(torques)
        moment, force = subtract(wrench[:3], cross(center, wrench[3:])), (wrench[3], wrench[4], wrench[5])
        for motion, carried, lower in zip(self.motions, self.carried, past):
            for body, screws in motion.screws.items():
                joint = code.bodies[body].joint
                left[joint] = left[joint] - power(screws[0], lower[body])
                for i in range(1, k + 1):
                    left[joint] = left[joint] - power(screws[i], carried[k - i][body])
            on_base = motion.on_base(lower)
            if on_base is not None:
                moment, force = subtract(moment, on_base[0]), subtract(force, on_base[1])
        for motion, result in zip(self.motions, known):
            for joint, effort in motion.efforts(result, k, 1).items():
                left[joint] = left[joint] - effort
        return left, [*moment, *force]

    def append(self, values: Sequence[Sequence[Scalar]]) -> None:
        """Append the next coefficient, by cluster; multipliers of a platform's pose vanish."""
        for result, carried, motion, values_of_rows in zip(
            self.multipliers, self.carried, self.motions, values
        ):
            result.append([0.0 if row.loop < 0 else x for row, x in zip(motion.cluster.rows, values_of_rows)])
            carried.append(motion.loads(result, len(result) - 1, 0))


class HoldingMultipliers(Multipliers):
    """The multipliers of all rows where some hold a platform in directions in which it cannot move.

    They follow from the efforts on unknown joints and the wrench on the platform, as far as this has power in
    those directions; in others it is balanced by the drives.
    """

    def __init__(self, code: LoopCode, motions: Sequence[ClosingMotion]) -> None:
        super().__init__(code, motions)
        assert code.allowed is not None
        size = code.closure.size
        closed = closed_directions(code.allowed, size) * np.repeat([1.0, size], 3)[:, None]
        self._closed = closed.T.tolist()
        self._columns = [c for columns in code.columns_of for c in columns]
        rows = [(c, r) for c, motion in enumerate(motions) for r in range(len(motion.cluster.rows))]
        self._sizes = [motions[c].cluster.rows[r].size for c, r in rows]
        table = []
        for (c, r), size in zip(rows, self._sizes):
            units = [
                [float((d, i) == (c, r)) for i in range(len(m.cluster.rows))] for d, m in enumerate(motions)
            ]
            entries = [self._entries[c][r].get(column, 0.0) for column in self._columns]
            table.append([x * (1.0 / size) for x in self._measured(entries, self.on_base(units))])
        self._system = BlockSystem(table)
        self.singularity = self._system.singularity

    def _measured(self, efforts: Sequence[Scalar], on_base: Sequence[Scalar]) -> list[Scalar]:
        """Return efforts on unknown joints, and the power of a wrench on the platform, without units."""
        scale = self.code.scale
        sized = [x * float(scale[c]) for x, c in zip(efforts, self._columns)]
        return [*sized, *(dot(direction, on_base) for direction in self._closed)]

    def extend(self, of_tree: Sequence[Scalar], drives: Sequence[Scalar]) -> None:
        """Append the next coefficient, from those of the efforts of the tree and of the drives."""
        joints, on_base = self.rest(of_tree)
        for joint, effort in zip(self.code.closure.driven, drives):
            joints[joint] = joints[joint] - effort
        by_column = self.code.by_leading(joints)
        result = self._system.solve_transposed(self._measured([by_column[c] for c in self._columns], on_base))
        values = iter(x * (1.0 / size) for x, size in zip(result, self._sizes))
        self.append([[next(values) for _ in motion.cluster.rows] for motion in self.motions])


def loop_loads(
    code: LoopCode,
    leading: Sequence[Scalar],
    leader: Sequence[Stack],
    rates: Sequence[Sequence[Scalar]],
    forces: Multipliers,
) -> Stack:
    """Return by derivative order the wrench that a of each loop exerts on b, six numbers a loop.

    `rates`: Taylor coefficients of the velocities of all joints.
    """
    orders = range(code.order + 1)
    center: Vector = tuple(code.center.tolist())
    rows: list[list[Spatial]] = [[NOTHING] * len(code.closure.loops) for _ in orders]
    for motion, multipliers in zip(forces.motions, forces.multipliers):
        root = motion.cluster.root
        frame = None if root < 0 else _frame(code, leading, leader, rates, root)
        result: dict[int, list[Spatial]] = {}
        for r, row in enumerate(motion.cluster.rows):
            if not isinstance(row, PlacedRow) or row.loop < 0:
                continue
            series = result.setdefault(row.loop, [NOTHING for _ in orders])
            for k in orders:
                for i in range(k + 1):
                    series[k] = plus(series[k], scaled(multipliers[k - i][r], motion.wrench(r, i)))
        for loop, series in result.items():
            for k, (moment, force) in enumerate(series if frame is None else _in_world(frame, series)):
                rows[k][loop] = plus(rows[k][loop], (add(moment, cross(center, force)), force))
    return to_derivatives([[x for part in row for vector in part for x in vector] for row in rows])


def _frame(
    code: LoopCode,
    leading: Sequence[Scalar],
    leader: Sequence[Stack],
    rates: Sequence[Sequence[Scalar]],
    root: int,
) -> MovingFrame:
    """Return the canonical frame of a body up to the order of the code."""
    cluster = Cluster(-1, tuple(reversed(inward(code.closure.tree.parents, root))), (), ())
    motion = ClusterMotion(
        cluster, code.bodies, code.center.tolist(), code.positions(leading), *code.places(leader)
    )
    for twists in code.twists(leader)[: code.order]:
        motion.extend(dict(enumerate(rates)), *twists)
    pose = inverse(code.bodies[root].body_in_frame)
    return motion.frame(Frame(root, pose), code.order)


def _in_world(frame: MovingFrame, series: Sequence[Spatial]) -> list[Spatial]:
    """Return wrenches given in a frame in world axes, about the point of reference."""
    axes = list(zip(*frame.axes))
    result: list[Spatial] = []
    forces: list[Vector] = []
    for k in range(len(series)):
        forces.append(convolve_vectors(combine, axes, [force for _, force in series[: k + 1]], k))
        moment = convolve_vectors(combine, axes, [moment for moment, _ in series[: k + 1]], k)
        result.append((add(moment, convolve_vectors(cross, frame.point, forces, k)), forces[k]))
    return result
