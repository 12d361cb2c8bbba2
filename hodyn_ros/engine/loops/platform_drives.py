"""The motion of a platform on limbs from that of its drives, over abstract scalars.

Newton's method goes on for all limbs and the platform at once: a step of each limb towards the platform,
then one of the platform by what is missing of the drives' positions. Then follow the orders: with coefficient
k of the platform's twist at zero, the limbs say what coefficient k of the drives' rates would be, and
`J_IK V_k` is the rest (`J_IK` of Mueller et al., eq. 9), with the same factors at every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.engine.loops.loop_motion import JUMP, ClosingMotion, Judged, LoopCode
from hodyn_ros.engine.loops.loop_multipliers import Multipliers
from hodyn_ros.engine.loops.loop_products import platform_rows
from hodyn_ros.engine.newton import ITERATIONS_FROM_DRIVES
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.spatial import NOTHING
from hodyn_ros.engine.series.validity import following_step, overflow, unless_small
from hodyn_ros.engine.series.vectors import (
    Scalar,
    Vector,
    add,
    cross,
    dot,
    from_taylor,
    halves,
    scale,
    subtract,
    taylor,
)
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_TERMS = 10  # of the series of sine and cosine


class PlatformCode(LoopCode):
    """The motion of the platform, up to derivative `order` of its pose.

    `function(drives (order + 1, driven), memory (1, N + 16))` returns a row (1, 17 + 6 order): the pose by
    rows, the spatial twist and its derivatives, and what must be below one. Positions are those of all
    joints, and the pose (4, 4) by rows, from which the platform is found again.
    """

    iterations = ITERATIONS_FROM_DRIVES
    has_lanes = False  # lanes hold limbs of one sample
    steps_in_two = False
    judged: Judged | None = "drives"

    def __init__(self, closure: Closure, order: int) -> None:
        super().__init__(closure, np.zeros(0, dtype=int), order)
        self.motion = [("the motion of the drives", (order + 1, len(closure.driven)))]
        self.result = 1, 17 + 6 * order
        self.n_positions, self.keeps_pose = len(closure.leading) + POSE, False
        assert self.allowed is not None
        self._basis = self.allowed  # twists that the platform can have, about the point of reference
        self._reach = float(closure.joint_sizes[list(closure.driven)].max())  # what drives are measured in
        self._drives = [closure.leading.index(joint) for joint in closure.driven]

    @property
    def defect_at(self) -> int:
        """The last place of the row."""
        return self.result[1] - 1

    @property
    def batch_rows(self) -> slice:
        """The row."""
        return slice(0, 1)

    def parts(self, table: Array) -> list[Array]:
        """Return the motion of the platform."""
        return [platform_rows(table[0], self.order)]

    def newton_step(self, drives: Stack, *stacks: Stack) -> Stack:
        """Improve the positions; returns them, and the square of about the step after this one."""
        ((state,),) = stacks
        n = len(self.closure.leading)
        leading, motions, error = self._follow(state)
        factors = self._factors(motions)
        step = factors.solve([x - leading[c] for x, c in zip(drives[0], self._drives)])
        error = error + following_step(dot(step, step), self._nearness(factors))
        middle = self.center.tolist()
        seen = [x - (middle[i // 4] if i % 4 == 3 else 0.0) for i, x in enumerate(state[n : n + 12])]
        pose = moved_pose(seen, self._twist(step))
        world = [x + (middle[i // 4] if i % 4 == 3 else 0.0) for i, x in enumerate(pose)]
        return [[*leading, *world, 0.0, 0.0, 0.0, 1.0, error]]

    def end(self, drives: Stack, *stacks: Stack) -> Stack:
        """Return a row: the pose, twists by order, and what is wrong with them."""
        ((before,), (now,)), n = stacks, len(self.closure.leading)
        leading, _, _ = self._follow(now)  # to where the platform has gone last
        pose = _rows(now[n : n + 16])
        motions = self.solved_motions(leading, [pose])
        factors = self._factors(motions)
        rates: list[list[Scalar]] = [[] for _ in leading]
        apart: Scalar = 0.0
        twists = []
        for k in range(self.order):
            self.find_rates(motions, rates, (NOTHING, NOTHING), k)
            own = taylor(drives[k + 1], k)
            missing = [rate - rates[c].pop() for rate, c in zip(own, self._drives)]
            motion, rest = factors.solve_with_rest(missing)
            if len(own) > len(motion):
                apart = apart + dot(rest, rest) / (dot(own, own) + self.closure.size**2)
            twist = halves(self._twist(motion))
            twists.append(twist)
            for series in rates:
                del series[k:]
            self.find_rates(motions, rates, (twist, twist), k)
            for one in motions:
                one.extend(one.joint_rates(rates), twist, twist)
        apart = apart * (1.0 / self.tolerances.agree**2)
        for x, c in zip(drives[0], self._drives):
            gap = (x - leading[c]) * (1.0 / (self.tolerances.agree * self.closure.size))
            apart = apart + gap * gap
        for i in range(11):  # of a turn by an angle: 8 sin^2(angle / 2)
            if i % 4 != 3:
                turned = now[n + i] - before[n + i]
                apart = apart + turned * turned * (0.5 / JUMP**2)
        middle = self.center.tolist()
        about_world = [[*w, *subtract(v, cross(w, middle))] for w, v in twists]
        in_world = [from_taylor(twist, k) for k, twist in enumerate(about_world)]
        singularity = sum(map(self.singularity_of, motions), self._nearness(factors))
        wrong = self.wrong(leading, now[-1], before, motions, (pose, in_world), singularity)
        row = [*(x for line in pose for x in line), *(x for twist in in_world for x in twist)]
        return [[*row, wrong + unless_small(apart) + overflow([row])]]

    def _follow(self, state: Sequence[Scalar]) -> tuple[list[Scalar], list[ClosingMotion], Scalar]:
        """Let each limb take a step; returns positions after it, motions before it, and `following_step`."""
        n = len(self.closure.leading)
        begun = self.of_limbs("position", self.closure.leading, state[:n])
        motions = self.motions(begun, [_rows(state[n : n + 16])])
        ((*leading, error),) = self._closer(begun, motions, self._gaps(motions))
        return leading, motions, error

    def _factors(self, motions: Sequence[ClosingMotion]) -> Orthogonal:
        """Factorise `J_IK` from the wrenches against unit forces of the drives."""
        multipliers = Multipliers(self, motions)
        rows = []
        for drive in self._drives:
            against = [
                multipliers.solve(motion, [float(column == drive) for column in motion.columns])
                if drive in motion.columns
                else [0.0] * len(motion.columns)
                for motion in motions
            ]
            rows.append([-x for x in multipliers.on_base(against)])
        return Orthogonal([[dot(column, row) for row in rows] for column in self._basis.T.tolist()])

    def _nearness(self, factors: Orthogonal) -> Scalar:
        """Return the sum of 1 / l^2, l what each column of `J_IK` adds to those before, without units."""
        return sum(factors.inverses[1:], start=factors.inverses[0]) * self._reach**2

    def _twist(self, motion: Sequence[Scalar]) -> list[Scalar]:
        """Return the twist (6,) about the point of reference from its components in the basis."""
        return [dot(row, motion) for row in self._basis.tolist()]


def _rows(pose: Sequence[Scalar]) -> Stack:
    return [list(pose[i : i + 4]) for i in range(0, 16, 4)]


def moved_pose(pose: Sequence[Scalar], twist: Sequence[Scalar]) -> list[Scalar]:
    """Return a pose (12,) by rows after a motion by a twist, `exp(twist) pose`, both seen from one point.

    Right for turns of less than a radian. What rounding has left of a rotation goes no further.
    """
    w, v = halves(twist)
    x, terms = -dot(w, w), range(_TERMS)
    # sin(t) / t, (1 - cos(t)) / t^2 and (t - sin(t)) / t^3 of the angle t
    first, second, third = (
        _polynomial(x, [1.0 / factorial(2 * i + shift) for i in terms]) for shift in (1, 2, 3)
    )

    def turned(point: Vector, a: Scalar, b: Scalar) -> Vector:
        around = cross(w, point)
        return add(point, add(scale(a, around), scale(b, cross(w, around))))

    a, b, c = (turned((pose[i], pose[4 + i], pose[8 + i]), first, second) for i in range(3))
    place = add(turned((pose[3], pose[7], pose[11]), first, second), turned(v, second, third))
    columns = (a, b, c)
    # R (3 - R^T R) / 2 is a rotation but for the square of the error of R
    gaps = [[0.5 * (float(i == j) - dot(p, q)) for j, q in enumerate(columns)] for i, p in enumerate(columns)]
    right = [
        add(column, add(add(scale(gap[0], a), scale(gap[1], b)), scale(gap[2], c)))
        for column, gap in zip(columns, gaps)
    ]
    return [value for i in range(3) for value in (*(column[i] for column in right), place[i])]


def _polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    result: Scalar = 0.0
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result
