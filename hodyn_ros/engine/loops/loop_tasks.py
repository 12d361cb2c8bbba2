"""Inverse kinematics of robots with loops for several frames, or with more coordinates than components.

One step of Newton's method closes the loops and moves the frames: the loops say how all joints follow the
coordinates, and the coordinates take the step that is least in the norm of their weights. Derivatives follow
order by order as those of trees (Mueller 2020, Algorithm 2, see `frame_goals`), with the Jacobians in the
coordinates, `J F`, in place of those of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Stack
from hodyn_ros.engine.loops.loop_motion import ClosingMotion, LoopCode, Velocity
from hodyn_ros.engine.loops.loop_series import moved
from hodyn_ros.engine.recursions.frame_goals import (
    ACCURACY,
    DAMPING,
    ROUNDING,
    Equations,
    GoalCode,
    Goals,
    MovingGoals,
    damped_step,
    largest,
)
from hodyn_ros.engine.series.floating_base import convolve_vectors
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, plus
from hodyn_ros.engine.series.validity import CLOSED, distance_from_rigid, overflow
from hodyn_ros.engine.series.vectors import Scalar, add, cross, dot, scale, taylor, twist_about
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_RIGID = 1e-10  # deviation of a pose from a rigid one

_CLOSED = 1e-8  # error of loops and frames before the last step of Newton's method


class TaskCode(LoopCode):
    """The motion of the coordinates, `derivatives` of them, that moves frames as given.

    `function(q (derivatives + 2, k), targets (4 F, 4), twists (F derivatives, 6), memory)` returns the motion
    (derivatives + 1, k) of the joints that are coordinates, and a last row. `q`: the motion of coordinates
    that are not `movable`, and the weights of all; `targets`, poses, and twists stand below those of a
    prescribed base, whose twists are spatial. The memory is that of the robot.
    """

    limit = STRAIGHT_LINE_LIMIT

    def __init__(
        self, closure: Closure, chosen: Array, derivatives: int, goals: Goals, movable: Sequence[int]
    ) -> None:
        super().__init__(closure, chosen, derivatives - 2, from_ground=False)
        frames, k = len(goals.frames) + closure.base_prescribed, len(closure.joints)
        self.motion = [
            ("what is held, and weights", (derivatives + 2, k)),
            ("the poses", (4 * frames, 4)),
            ("the twists", (frames * derivatives, 6)),
        ]
        self.result = derivatives + 2, k
        self.derivatives_asked = derivatives
        self._movable = movable
        self._tree = GoalCode(closure.tree, goals, derivatives)
        self._tree.unit = closure.size
        self._redundant = len(movable) > self._tree.n_rows

    def newton_step(self, q: Stack, *stacks: Stack) -> Stack:
        """Move the leading joints nearer to closed loops, and to frames at their targets.

        Returns their positions, and the square of the squared error before, which is about that of the next
        step. Damped as Levenberg and Marquardt do, with the
        square of the error.
        """
        targets, (state,) = stacks
        place, poses = self._split(targets)
        leading = self._positions(q, state)
        motions = self.solved_motions(leading, place)
        closing, error = [0.0] * len(leading), 0.0
        for motion in motions:
            gaps = [motion.gap(row) * (1.0 / row.size) for row in motion.cluster.rows]
            error = error + dot(gaps, gaps)
            for column, step in zip(motion.columns, motion.system.solve([-gap for gap in gaps])):
                closing[column] = step * float(self.scale[column])
        moving = MovingGoals(self._tree, self.positions(leading), place[0] if place else None)
        apart = moving.error(poses)
        error = error + dot(apart, apart)
        values = self._along(moving, [[x] for x in closing])
        rest = [a - b for a, b in zip(apart, values)]
        velocities = self._velocities(motions)
        columns_of_frames = [self._along(moving, velocity.leading) for velocity in velocities]
        weights = self._weights(q)
        mean = sum(weights[1:], start=weights[0]) * (1.0 / len(weights))
        roots = [np.sqrt(w / mean) for w in weights]
        rows = [[x / root for x, root in zip(row, roots)] for row in zip(*columns_of_frames)]
        steps = damped_step(rows, rest, DAMPING * dot(apart, apart))
        result = [a + b for a, b in zip(leading, closing)]
        for velocity, step, root in zip(velocities, steps, roots):
            for column, series in enumerate(velocity.leading):
                result[column] = result[column] + series[0] * (step / root)
        return [[*result, error * error]]

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the motion of the coordinates (derivatives + 1, k), and a row that says what is wrong."""
        targets, target_twists, (memory,), (state,) = stacks
        place, poses = self._split(targets)
        count = self.derivatives_asked
        of_base = target_twists[:count] if place else []
        twists = target_twists[len(of_base) :]
        leading = self._positions(q, state)
        motions = self.solved_motions(leading, place)
        moving = MovingGoals(self._tree, self.positions(leading), place[0] if place else None)
        leader = [*place, of_base] if place else []
        defect = moving.apart(poses)
        for f in range(len(moving.frames)):
            defect = defect + distance_from_rigid(poses[4 * f : 4 * f + 4]) * (1.0 / _RIGID**2)
        rates: list[list[Scalar]] = [[] for _ in leading]
        if count:
            wanted = moving.wanted(poses, twists)
            defect = defect + self._find_all_rates(q, motions, moving, wanted, leader, rates)
        of_joints = [self.joint_series(joint, rates) for joint in range(len(self.coupling_matrix))]
        positions, joints = self.positions(leading), self.closure.joints
        rows = [[positions[j] for j in joints], *(self.derivatives(of_joints, joints) if count else [])]
        singularity = sum(motion.system.singularity for motion in motions)
        error = state[-1] * (CLOSED / _CLOSED**4)
        defect = defect + self.wrong(leading, error, memory, motions, leader, singularity) + overflow(rows)
        return [*rows, [defect, *[0.0] * (len(joints) - 1)]]

    def _find_all_rates(
        self,
        q: Stack,
        motions: Sequence[ClosingMotion],
        moving: MovingGoals,
        wanted: Sequence[Sequence[Spatial]],
        leader: Sequence[Stack],
        rates: list[list[Scalar]],
    ) -> Scalar:
        """Append all coefficients of the velocities of the leading joints; return what is wrong with them."""
        velocities = self._velocities(motions)
        table = [self._along(moving, velocity.leading) for velocity in velocities]
        weighted = [np.sqrt(w) for w in self._weights(q)]
        equations = Equations.of(table, weighted, redundant=self._redundant)
        roots, jacobians = equations.roots, list[Stack]()  # of higher orders, columns
        multipliers: list[list[Scalar]] = []
        defect = self._rounding_of_rates(motions, table)
        base_twists = self.twists(leader)
        for k in range(self.derivatives_asked):
            for column, (place, ratio) in self.known.items():
                free = place in self._movable
                rates[column].append(0.0 if free else q[k + 1][place] * (1.0 / (factorial(k) * ratio)))
            self.find_rates(motions, rates, base_twists[k], k)
            of_base = twist_about(taylor(leader[1][k], k), moving.center) if leader else NOTHING
            right = moving.asked(wanted, self._of_tree(rates), of_base, k)
            known: list[Scalar] = [0.0] * len(roots)
            for matrix, earlier in zip(jacobians, reversed(multipliers)):
                known = [x + dot(column, earlier) for x, column in zip(known, matrix)]
            result, following, missing = equations.solve(right, known)
            multipliers.append(following)
            if missing:
                defect = defect + moving.lost(missing, right, wanted, k)
            for velocity, x, root in zip(velocities, result, roots):
                for column, series in enumerate(velocity.leading):
                    rates[column][k] = rates[column][k] + series[0] * (x / root)
            for motion in motions:
                motion.extend(motion.joint_rates(rates), *base_twists[k])
            moving.bodies.extend(self._of_tree(rates), of_base)
            if self._redundant and k + 1 < self.derivatives_asked:
                for velocity in velocities:
                    velocity.extend({})
                table = [self._along(moving, velocity.leading) for velocity in velocities]
                jacobians.append([[x / root for x in column] for column, root in zip(table, roots)])
        return defect

    def _split(self, targets: Stack) -> tuple[list[Stack], Stack]:
        """Return the pose of a prescribed base, if there is one, and those of the frames."""
        return ([targets[:4]], targets[4:]) if self.closure.base_prescribed else ([], targets)

    def _positions(self, q: Stack, state: Sequence[Scalar]) -> list[Scalar]:
        """Return those of the leading joints: of coordinates that are not movable as given."""
        held_positions, result = self.leading_positions(q[0], state), list(state[: len(self.closure.leading)])
        held = [column for column, (place, _) in self.known.items() if place not in self._movable]
        return [held_positions[c] if c in held else x for c, x in enumerate(result)]

    def _weights(self, q: Stack) -> list[Scalar]:
        return [q[self.derivatives_asked + 1][place] for place in self._movable]

    def _velocities(self, motions: Sequence[ClosingMotion]) -> list[Velocity]:
        """Return the velocities in which one movable coordinate has speed one, and the others have none."""
        result = []
        columns = {place: (column, ratio) for column, (place, ratio) in self.known.items()}
        for place in self._movable:
            column, ratio = columns[place]
            result.append(Velocity(self, motions))
            result[-1].extend({column: 1.0 / ratio})
        return result

    def _of_tree(self, leading: Sequence[Sequence[Scalar]]) -> dict[int, list[Scalar]]:
        """Return the series of the joints that carry the frames from those of the leading joints."""
        return {joint: self.joint_series(joint, leading) for joint in self._tree.joints}

    def _along(self, moving: MovingGoals, leading: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Return the last coefficient of the frames' hybrid twists, the joints moving as leading ones do.

        Only rows that count, lengths in the robot's size; a base stays.
        """
        rates, result, goals = self._of_tree(leading), [], self._tree.goals
        k, screws = len(leading[0]) - 1, moving.bodies.screws
        for f, (frame, rows) in enumerate(zip(goals.frames, goals.rows)):
            twists: list[Spatial] = []
            for m in range(k + 1):
                twist = NOTHING
                for body in self._tree.paths[f]:
                    if body in screws:
                        joint = self.closure.tree.joint_of(body)
                        twist = plus(twist, moved(screws[body], rates[joint], m))
                twists.append(twist)
            origin = moving.bodies.frame(frame, k).point if k else moving.frames[f].point
            lever = convolve_vectors(cross, [twist[0] for twist in twists], origin, k)
            w, v = twists[k]
            result += [*w, *scale(1.0 / self.closure.size, add(v, lever))][rows]
        return result

    def _rounding_of_rates(
        self, motions: Sequence[ClosingMotion], table: Sequence[Sequence[Scalar]]
    ) -> Scalar:
        """Return a number that is one or more where rounding may have spoilt a derivative by `ACCURACY`.

        A bound on the condition number of the Jacobian, its columns given, follows the order.
        """
        robot = self.closure
        sizes = robot.joint_sizes
        sized = [
            [x * float(sizes[robot.joints[i]]) for x in column] for i, column in zip(self._movable, table)
        ]
        whole: Scalar = 0.0
        for column in sized:
            whole = whole + dot(column, column)
        gain: Scalar = 1.0
        for i, velocity in zip(self._movable, self._velocities(motions)):
            of_leading = sizes[list(robot.leading)]
            along = [
                series[0] * float(sizes[robot.joints[i]] / size)
                for series, size in zip(velocity.leading, of_leading)
            ]
            gain = largest([gain, dot(along, along)])
        independent = [list(row) for row in zip(*sized)] if self._redundant else sized
        square = largest([whole * gain, 1.0]) * Orthogonal(independent).inverse_square
        rounding = (ROUNDING / ACCURACY) ** 2 * square
        for _ in range(self.derivatives_asked):
            rounding = rounding * square
        return rounding
