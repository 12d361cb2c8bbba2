"""Joint motions from motions of frames, over abstract scalars: Newton's step, then rates order by order.

What `hodyn_ros.dynamics.kinematics` does in readable form, in straight-line code (Mueller 2020, Algorithm 2):
`S_0 q'_k = V_k - (what lower coefficients leave behind)` with one factorisation of the Jacobian S_0 for all
orders. Where joints are more than rows, `W q' = S^T l`, and the multipliers l are found along with the rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import Stack
from hodyn_ros.digits import FEWEST
from hodyn_ros.engine.loops.loop_series import Cluster, ClusterMotion, MovingFrame
from hodyn_ros.engine.recursions.articulated import factorise, solve
from hodyn_ros.engine.series.canonical import canonical_bodies, inward
from hodyn_ros.engine.series.floating_base import FloatingBase, convolve_vectors
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, power
from hodyn_ros.engine.series.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    axes_of,
    cross,
    dot,
    from_taylor,
    halves,
    scale,
    subtract,
    taylor,
    twist_about,
)
from hodyn_ros.lie.representations import Representation
from hodyn_ros.model.closure import NO_LENGTH
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import JointKind, TreeModel

# of the first step, per square of the error, so that none is longer than 1.6 rad; then a quarter, and so on
DAMPING = 0.1
TOLERANCE = 1e-12  # [rad], and of the unit of length
ACCURACY = 10.0**-FEWEST  # share of a derivative that may be wrong
ROUNDING = 4.0 * float(np.finfo(float).eps)
SAFETY = 10.0
SINGULAR = 1e6  # condition number
INCONSISTENT = 1e-8  # share of a twist that fewer joints than rows may leave undone


@dataclass(frozen=True, eq=False)
class Goals:
    """What is to be moved, and how: `rows[f]` are those of the hybrid twist of frame f that count.

    `independent` joints follow motions of their own; `weighted` says that weights of the joints are given.
    """

    frames: tuple[Frame, ...]
    rows: tuple[slice, ...]
    representation: Representation = "spatial"
    independent: tuple[int, ...] = ()
    weighted: bool = False


@dataclass(frozen=True, eq=False)
class Equations:
    """The rows of the Jacobian that count, lengths in their unit, columns divided by `roots`, and factors."""

    rows: list[list[Scalar]]
    roots: list[Scalar]
    redundant: bool
    factors: Orthogonal

    @classmethod
    def of(
        cls, columns: Sequence[Sequence[Scalar]], roots: Sequence[Scalar], *, redundant: bool
    ) -> Equations:
        """Factorise a Jacobian by its columns; `roots` are those of weights where these matter.

        Where the solution is determined they do not, and columns of one size keep its digits.
        """
        roots = list(roots) if redundant else [np.sqrt(dot(column, column)) for column in columns]
        scaled = [[x / root for x in column] for column, root in zip(columns, roots)]
        rows = [list(row) for row in zip(*scaled)]
        return cls(rows, roots, redundant, Orthogonal(rows if redundant else scaled))

    def solve(
        self, right: Sequence[Scalar], known: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """Return a coefficient of the rates times `roots`, its multipliers, and what of the rows is left.

        `known`: what multipliers of lower coefficients leave behind, `W q' = S^T l` differentiated. There are
        multipliers of redundant joints only, and what is left where there are more rows than joints.
        """
        if not self.redundant:
            result = self.factors.solve(right)
            left = self.rows if len(self.rows) > len(result) else []
            return result, [], [b - dot(row, result) for b, row in zip(right, left)]
        rest = [b - dot(row, known) for b, row in zip(right, self.rows)]
        multipliers = self.factors.solve_normal(rest)
        return [a + b for a, b in zip(known, self.factors.solve_transposed(rest))], multipliers, []

    @property
    def condition_square(self) -> Scalar:
        """The square of a bound on the condition number, in the norm of Frobenius."""
        size: Scalar = 0.0
        for row in self.rows:
            size = size + dot(row, row)
        return size * self.factors.inverse_square


class GoalCode:
    """Inverse kinematics of one robot with goals for some frames, up to derivative `order`.

    Arguments of the traces are `state` (1, n + 3): positions, the square of the error before the last step,
    and the damping; `targets` (4 F, 4): poses; `twists` (F order, 6), one frame after the other; then, as far
    as they apply, pose (4, 4) and spatial twists (order, 6) of a floating base, weights (1, n), and rates of
    independent joints (order, n).
    """

    def __init__(self, model: TreeModel, goals: Goals, order: int) -> None:
        self.model, self.goals, self.order = model, goals, order
        self.paths = [set(inward(model.parents, frame.body)) for frame in goals.frames]
        self.bodies = tuple(sorted(set().union(*self.paths)))
        self.joints = [model.joint_of(b) for b in self.bodies if b >= model.first_jointed_body]
        self.movable = [j for j in self.joints if j not in goals.independent]
        self.carrier = {model.joint_of(b): b for b in self.bodies if b >= model.first_jointed_body}
        self.n_rows = sum(rows.stop - rows.start for rows in goals.rows)
        self.redundant = len(self.movable) > self.n_rows
        self.unit = self._length_unit()
        self.canonical = canonical_bodies(model)

    def newton_step(self, state: Stack, targets: Stack, *stacks: Stack) -> Stack:
        """Return the state after one step of Levenberg and Marquardt's method; `stacks`: pose, weights.

        The damping goes with the square of the error, so that it ends as Newton's method.
        """
        n = self.model.n_joints
        q, damping = state[0][:n], state[0][n + 1]
        pose, weights = self._split(stacks)
        moving = MovingGoals(self, q, pose)
        error = moving.error(targets)
        square = dot(error, error)
        roots = self._roots(weights, normed=True)
        step = damped_step(moving.jacobian(roots), error, damping * square)
        moved = list(q)
        for j, x, root in zip(self.movable, step, roots):
            moved[j] = moved[j] + x / root
        length = dot(step, step)
        # a step as much longer than the error as this one has the length s^3 / error the next time
        following = length * length * length * (1.0 / (square + 1e-200))
        return [[*moved, square, 0.25 * damping, following]]

    def rates(self, state: Stack, targets: Stack, twists: Stack, *stacks: Stack) -> Stack:
        """Return the joint motion (order + 1, n) and two rows that begin with numbers to be below one.

        The first says that the motion is right; the second that rounding cannot have spoilt it by more than
        `ACCURACY`, whatever the motion, the bound on the condition number following the order.
        """
        n, order = self.model.n_joints, self.order
        pose, base_twists, weights, inputs = self._split_all(stacks)
        q = state[0][:n]
        moving = MovingGoals(self, q, pose)
        defect = moving.apart(targets)
        rounding: Scalar = 0.0
        motions = [list(q)]
        if order:
            wanted = moving.wanted(targets, twists)
            equations = self._equations(moving, weights)
            result, lost = self._solve(moving, equations, wanted, base_twists, inputs)
            motions += result
            square = equations.condition_square
            defect = defect + lost + square * (1.0 / SINGULAR**2)
            rounding = (ROUNDING / ACCURACY) ** 2 * square
            for _ in range(order):
                rounding = rounding * square
        return [*motions, [defect, *[0.0] * (n - 1)], [rounding, *[0.0] * (n - 1)]]

    def nearby(self, state: Stack, targets: Stack, *stacks: Stack) -> Stack:
        """Return a state (1, n + 3) that rounding of the targets cannot tell from the one given.

        It lies in the direction that the Jacobian feels least; `stacks`: pose, weights.
        """
        n = self.model.n_joints
        pose, weights = self._split(stacks)
        equations = self._equations(MovingGoals(self, state[0][:n], pose), weights)
        size: Scalar = 1.0
        for f in range(len(self.goals.frames)):
            for row in targets[4 * f : 4 * f + 3]:
                size = size + row[3] * row[3] * (1.0 / self.unit**2)
        width = len(equations.rows) if equations.redundant else len(self.movable)
        x: list[Scalar] = [1.0 - 0.1 * i for i in range(width)]
        for _ in range(3):  # of the inverse power method
            x = _normed(equations.factors.solve_normal(x))
        if equations.redundant:
            x = _normed([dot(column, x) for column in zip(*equations.rows)])
        felt = [dot(row, x) for row in equations.rows]
        change = ROUNDING * np.sqrt(size / dot(felt, felt))
        moved = list(state[0][:n])
        for j, value, root in zip(self.movable, x, equations.roots):
            moved[j] = moved[j] + change * value / root
        return [[*moved, 0.0, 0.0, 0.0]]

    @staticmethod
    def rounded(twists: Stack) -> Stack:
        """Return twists that differ by their rounding."""
        return [
            [x * (1.0 + ROUNDING * (1 if (6 * i + j) % 2 else -1)) for j, x in enumerate(row)]
            for i, row in enumerate(twists)
        ]

    def difference(self, result: Stack, nearby: Stack) -> Stack:
        """Return a number below one where two motions agree to `ACCURACY`."""
        n, total = self.model.n_joints, 0.0
        for a, b in zip(result[1 : self.order + 1], nearby[1 : self.order + 1]):
            apart = largest([x - y for x, y in zip(a, b)]) * (SAFETY / ACCURACY)
            share = apart / (largest(a) + 1e-200)
            total = total + share * share
        return [[total, *[0.0] * (n - 1)]]

    def _split(self, stacks: Sequence[Stack]) -> tuple[Stack | None, list[Scalar] | None]:
        rest = list(stacks)
        pose = rest.pop(0) if self.model.floating_base else None
        return pose, rest.pop(0)[0] if self.goals.weighted else None

    def _split_all(
        self, stacks: Sequence[Stack]
    ) -> tuple[Stack | None, Stack, list[Scalar] | None, Stack | None]:
        rest = list(stacks)
        pose, twists = (rest.pop(0), rest.pop(0)) if self.model.floating_base else (None, [])
        weights = rest.pop(0)[0] if self.goals.weighted else None
        return pose, twists, weights, rest.pop(0) if self.goals.independent else None

    def _length_unit(self) -> float:
        """Return the longest way from a turning joint to a frame, at the zero configuration [m]; else 1."""
        ways, far = [0.0], 0.0
        for frame, path in zip(self.goals.frames, self.paths):
            if frame.body < 0:
                continue
            point = self.model.placements[frame.body] @ frame.pose[:, 3]
            far = max(far, float(np.abs(point[:3]).max()))
            for body in path:
                turns = body >= self.model.first_jointed_body and self.model.screws[body, :3].any()
                if turns:
                    omega, v = self.model.screws[body, :3], self.model.screws[body, 3:]
                    ways.append(float(np.linalg.norm(point[:3] - np.cross(omega, v))))
        return max(ways) if max(ways) > NO_LENGTH * far else 1.0

    def _roots(self, weights: Sequence[Scalar] | None, *, normed: bool = False) -> list[Scalar]:
        """Return what the columns of the Jacobian are divided by, for the norm that weights give.

        `normed`: so that the mean of the weights is one, and so that joints that slide are as joints that
        turn where all are determined.
        """
        if weights is not None:
            chosen = [weights[j] for j in self.movable]
            total = sum(chosen[1:], start=chosen[0])
            mean = total * (1.0 / len(chosen)) if normed else 1.0
            return [np.sqrt(w / mean) for w in chosen]
        if not normed or self.redundant:
            return [1.0] * len(self.movable)
        kinds = [self.model.kinds[self.carrier[j]] for j in self.movable]
        return [1.0 / self.unit if kind is JointKind.PRISMATIC else 1.0 for kind in kinds]

    def _equations(self, moving: MovingGoals, weights: Sequence[Scalar] | None) -> Equations:
        columns = list(zip(*moving.jacobian([1.0] * len(self.movable))))
        return Equations.of(columns, self._roots(weights), redundant=self.redundant)

    def _solve(
        self,
        moving: MovingGoals,
        equations: Equations,
        wanted: Sequence[Sequence[Spatial]],
        base_twists: Stack,
        inputs: Stack | None,
    ) -> tuple[Stack, Scalar]:
        """Return the derivatives (order, n) of the positions, and a number to be below one.

        The last one says that joints fewer than rows can follow.
        """
        rates: dict[int, list[Scalar]] = {j: [] for j in self.joints}
        wrenches: list[list[Spatial]] = [[] for _ in wanted]  # the multipliers, as wrenches at the center
        result, lost = [], 0.0
        for k in range(self.order):
            for j in self.joints:
                free = inputs is None or j in self.movable
                rates[j].append(0.0 if inputs is None or free else inputs[k][j] * (1.0 / factorial(k)))
            base = twist_about(taylor(base_twists[k], k), moving.center) if base_twists else NOTHING
            right = moving.asked(wanted, rates, base, k)
            known = moving.known(equations, wrenches, k) if self.redundant else []
            values, multipliers, missing = equations.solve(right, known)
            if self.redundant:
                moving.append_wrenches(wrenches, multipliers, k)
            if missing:
                lost = lost + moving.lost(missing, right, wanted, k)
            for j, x, root in zip(self.movable, values, equations.roots):
                rates[j][k] = x / root
            moving.bodies.extend(rates, base)
            result.append(
                from_taylor([rates[j][k] if j in rates else 0.0 for j in range(self.model.n_joints)], k)
            )
        return result, lost


class MovingGoals:
    """The bodies at positions q, seen from a point in the world, and the frames they carry to their goals.

    `bodies` go on coefficient by coefficient; the frames are known at the start.
    """

    def __init__(self, code: GoalCode, q: Sequence[Scalar], pose: Stack | None) -> None:
        self._code, self._goals, self._unit = code, code.goals, code.unit
        cluster = Cluster(-1, code.bodies, (), ())
        start: list[Scalar] = code.model.placements[0, :3, 3].tolist()
        place = None if pose is None else (axes_of(pose), ZERO)
        self.center = start if pose is None else [row[3] for row in pose[:3]]
        self.bodies = ClusterMotion(
            cluster, code.canonical, start if pose is None else [0.0] * 3, q, place, None
        )
        self.frames = [self.bodies.frame(frame, 0) for frame in self._goals.frames]

    def error(self, targets: Stack) -> list[Scalar]:
        """Return what the frames are away from their targets, in the rows that count, without units."""
        result: list[Scalar] = []
        for f, (frame, rows) in enumerate(zip(self.frames, self._goals.rows)):
            turn, shift = _missing(frame, targets[4 * f : 4 * f + 4], self.center)
            result += [*turn, *scale(1.0 / self._unit, shift)][rows]
        return result

    def apart(self, targets: Stack) -> Scalar:
        """Return a number that is one or more where frames are not at their targets."""
        defect: Scalar = 0.0
        for f, (frame, rows) in enumerate(zip(self.frames, self._goals.rows)):
            defect = defect + _distance(frame, targets[4 * f : 4 * f + 4], self.center, rows, self._unit)
        return defect

    def jacobian(self, roots: Sequence[Scalar]) -> list[list[Scalar]]:
        """Return the rows of the Jacobian at the start that count, its columns divided by `roots`."""
        result: list[list[Scalar]] = []
        for frame, rows, path in zip(self.frames, self._goals.rows, self._code.paths):
            columns = []
            for j, root in zip(self._code.movable, roots):
                column: list[Scalar] = [0.0] * 6
                if self._code.carrier[j] in path:
                    w, v = self.bodies.screws[self._code.carrier[j]][0]
                    column = [*w, *scale(1.0 / self._unit, add(v, cross(w, frame.point[0])))]
                columns.append([x / root for x in column])
            result += [list(row) for row in list(zip(*columns))[rows]]
        return result

    def wanted(self, targets: Stack, twists: Stack) -> list[list[Spatial]]:
        """Return by frame the Taylor coefficients of its hybrid twist."""
        result, order = [], self._code.order
        for f in range(len(self.frames)):
            pose = [[*row[:3], row[3] - c] for row, c in zip(targets[4 * f :], self.center)]
            goal = FloatingBase(pose, ZERO, "body_fixed")
            series: list[Spatial] = []
            for k in range(order):
                values = taylor(twists[f * order + k], k)
                w, v = halves(values)
                if self._goals.representation == "spatial":
                    goal.world_angular.append(w)
                    lever = convolve_vectors(cross, goal.world_angular, goal.position, k)
                    v = add(twist_about(values, self.center)[1], lever)
                    goal.position.append(scale(1.0 / (k + 1), v))
                elif self._goals.representation == "body_fixed":
                    goal.extend(values)
                    w, v = goal.in_world_axes(k)
                series.append((w, v))
            result.append(series)
        return result

    def asked(
        self, wanted: Sequence[Sequence[Spatial]], rates: dict[int, list[Scalar]], base: Spatial, k: int
    ) -> list[Scalar]:
        """Return coefficient k of the twists wanted, without what happens if the rates sought are zero."""
        self.bodies.append(self.bodies.twists, rates, base)
        right: list[Scalar] = []
        for f, (place, rows) in enumerate(zip(self._goals.frames, self._goals.rows)):
            twists = self.bodies.twists[place.body]
            w, v = wanted[f][k]
            w = subtract(w, twists[k][0])
            # the origin is known up to coefficient k: it moves with twists up to the one before
            origin = self.bodies.frame(place, k).point
            lever = convolve_vectors(cross, [twist[0] for twist in twists], origin, k)
            v = subtract(v, add(twists[k][1], lever))
            right += [*w, *scale(1.0 / self._unit, v)][rows]
        self.bodies.withdraw()
        return right

    def lost(
        self, missing: Sequence[Scalar], right: Sequence[Scalar], wanted: Sequence[Sequence[Spatial]], k: int
    ) -> Scalar:
        """Return a number that is one or more where joints fewer than rows cannot follow coefficient k.

        `missing` is what they leave undone of what was asked of them, `right`.
        """
        size = dot(right, right)
        for series, rows in zip(wanted, self._goals.rows):
            asked = [*series[k][0], *scale(1.0 / self._unit, series[k][1])][rows]
            size = size + dot(asked, asked)
        return dot(missing, missing) / (size + 1e-200) * (1.0 / INCONSISTENT**2)

    def append_wrenches(
        self, wrenches: Sequence[list[Spatial]], multipliers: Sequence[Scalar], k: int
    ) -> None:
        """Append coefficient k of the multipliers as wrenches on the frames, about the center."""
        first = 0
        for frame, rows, series in zip(self.frames, self._goals.rows, wrenches):
            count = rows.stop - rows.start
            values: list[Scalar] = [0.0] * 6
            values[rows] = multipliers[first : first + count]
            first += count
            f: Vector = scale(1.0 / self._unit, values[3:])
            moment = add((values[0], values[1], values[2]), cross(frame.point[0], f))
            if k:
                moment = add(moment, _levers(frame, series, k))
            series.append((moment, f))

    def known(self, equations: Equations, wrenches: Sequence[Sequence[Spatial]], k: int) -> list[Scalar]:
        """Return coefficient k of `S^T l` without the multipliers still to be found, divided by `roots`."""
        code, known = self._code, [0.0] * len(self._code.movable)
        for frame, path, series in zip(self.frames, code.paths, wrenches) if k else ():
            lever = (_levers(frame, series, k), ZERO)
            for i, j in enumerate(code.movable):
                if code.carrier[j] not in path:
                    continue
                screws = self.bodies.screws[code.carrier[j]]
                total = power(screws[0], lever)
                for m in range(1, k + 1):
                    total = total + power(screws[m], series[k - m])
                known[i] = known[i] + total / equations.roots[i]
        return known


def _levers(frame: MovingFrame, series: Sequence[Spatial], k: int) -> Vector:
    """Return coefficient k of the moment of forces at the moving origin, without the last force."""
    result = cross(frame.point[1], series[k - 1][1])
    for i in range(2, k + 1):
        result = add(result, cross(frame.point[i], series[k - i][1]))
    return result


def _missing(frame: MovingFrame, target: Stack, center: Sequence[Scalar]) -> Spatial:
    """Return turn and shift to a target: `2 sin(angle / 2)` about the axis [rad], and the distance [m]."""
    axes, goal = [series[0] for series in frame.axes], axes_of(target)
    twice = add(add(cross(axes[0], goal[0]), cross(axes[1], goal[1])), cross(axes[2], goal[2]))
    trace = dot(axes[0], goal[0]) + dot(axes[1], goal[1]) + dot(axes[2], goal[2])
    turn = scale(1.0 / np.sqrt(1.0 + trace), twice)
    shift = subtract([row[3] - c for row, c in zip(target, center)], frame.point[0])
    return turn, shift


def _distance(
    frame: MovingFrame, target: Stack, center: Sequence[Scalar], rows: slice, unit: float
) -> Scalar:
    """Return the square of the distance to a target, the tolerance being one, and more for no pose."""
    axes, goal = [series[0] for series in frame.axes], axes_of(target)
    turned: Scalar = 0.0
    for i in range(3):
        apart = subtract(axes[i], goal[i])
        turned = turned + dot(apart, apart)
    shift = subtract([row[3] - c for row, c in zip(target, center)], frame.point[0])
    point = [row[3] * (1.0 / unit) for row in target[:3]]
    far = 1.0 + dot(point, point)
    square: Scalar = 0.0
    if rows.start == 0:
        square = 0.5 * turned
    if rows.stop == 6:
        square = square + dot(shift, shift) * (1.0 / unit**2)
    x, y, z, one = target[3]
    return square / (far * TOLERANCE**2) + 1e20 * (x * x + y * y + z * z + (one - 1.0) * (one - 1.0))


def damped_step(rows: Stack, error: Sequence[Scalar], damping: Scalar) -> list[Scalar]:
    """Return the x that makes `|A x - b|^2 + damping |x|^2` least, by the smaller of its normal equations."""
    columns = [list(column) for column in zip(*rows)]
    if len(columns) >= len(rows):
        multipliers = solve(factorise(_plus_diagonal(_gram(rows), damping)), error)
        return [dot(column, multipliers) for column in columns]
    damped = _plus_diagonal(_gram(columns), damping)
    return solve(factorise(damped), [dot(column, error) for column in columns])


def _gram(rows: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    return [[dot(a, b) for b in rows] for a in rows]


def _plus_diagonal(matrix: list[list[Scalar]], value: Scalar) -> list[list[Scalar]]:
    return [[x + value if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _normed(x: Sequence[Scalar]) -> list[Scalar]:
    factor = 1.0 / np.sqrt(dot(x, x))
    return [factor * value for value in x]


def largest(values: Sequence[Scalar]) -> Scalar:
    """Return the largest size of some numbers."""
    result: Scalar = 0.0
    for value in values:
        if isinstance(value, float) and value == 0.0:
            continue
        size = abs(value)
        result = 0.5 * (result + size + abs(result - size))
    return result
