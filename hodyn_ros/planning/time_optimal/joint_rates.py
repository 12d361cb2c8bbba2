"""Time derivatives of motion and torque of one joint along a path, with their slopes by speed, compiled.

What holds of one joint at one instant holds of all, of any robot: there is one piece of code for each order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Any

from hodyn_ros.codegen.kernel import LaneKernel, Stack
from hodyn_ros.codegen.object_cache import KEPT
from hodyn_ros.planning.time_optimal.chain_rule import SPEEDS, chain_rule_entries, chain_rule_slopes


def described(order: int) -> int:
    """Return how many numbers say of a joint what it needs at an instant of a path.

    Derivatives by u of its position to `order`, and to `order - 2` of G, A1 and A2 of `path_dynamics`.
    """
    return (order + 1) + 3 * (order - 1)


def torque_factors(a1: Sequence[Any], a2: Sequence[Any]) -> list[list[Any]]:
    """Return what the derivatives of y count in those by u of a torque, one row of five for each of these.

    `d^m (A1 b' + A2 b) / du^m`, by Leibniz, from the derivatives of A1 and A2.
    """
    rows: list[list[Any]] = []
    for m in range(len(a1)):
        row: list[Any] = [0.0] * SPEEDS
        for i in range(m + 1):
            row[i] = row[i] + comb(m, i) * a2[m - i]
            row[i + 1] = row[i + 1] + comb(m, i) * a1[m - i]
        rows.append(row)
    return rows


@lru_cache(maxsize=KEPT)
def joint_rates(order: int, slopes: bool) -> LaneKernel:
    """Return code from y (1, 5) and what describes a joint to its rates.

    Rates (1, 2 order): of the motion to `order`, of the torque to `order - 2`. With slopes five rows more,
    their derivatives by y.
    """

    def trace(speeds: Stack, path: Stack) -> Stack:
        y, numbers = speeds[0], path[0]
        motion = numbers[: order + 1]
        constant, a1, a2 = (numbers[order + 1 + k * (order - 1) :][: order - 1] for k in range(3))
        factors = torque_factors(a1, a2)
        torques = [rest + _dot(row, y) for rest, row in zip(constant, factors)]
        rule = chain_rule_entries(y, order)

        def product(rule: dict[tuple[int, int], Any], values: list[Any]) -> list[Any]:
            rows = range(len(values))
            return [_dot([rule.get((k, m), 0.0) for m in rows], values) for k in rows]

        rows = [product(rule, motion) + product(rule, torques)]
        if slopes:
            bends = chain_rule_slopes(y, order)
            for i in range(SPEEDS):
                bend = {(k, m): value for (j, k, m), value in bends.items() if j == i}
                through = product(rule, [row[i] for row in factors])
                of_torques = [a + b for a, b in zip(product(bend, torques), through)]
                rows.append(product(bend, motion) + of_torques)
        return rows

    return LaneKernel(trace, [("speeds", (1, SPEEDS)), ("path", (1, described(order)))])


def _dot(a: list[Any], b: list[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b)), 0.0)
