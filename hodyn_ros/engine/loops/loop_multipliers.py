"""Multipliers of the loops, coefficient by coefficient, and what they leave of the efforts of the tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.engine.loops.loop_motion import ClosingMotion, LoopCode
from hodyn_ros.engine.recursions.composite import Spatial, power
from hodyn_ros.engine.series.allowed import closed_directions
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.vectors import Scalar, cross, dot, subtract


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
