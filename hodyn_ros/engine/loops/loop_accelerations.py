"""Forward dynamics of robots with couplings and loops, over abstract scalars.

With `z' = F y'`, M the mass matrix of the tree and Q its efforts, `F^T M F y'' = F^T (S u - Q)` where Q is
that at `y'' = 0`. In Taylor coefficients of any order the matrix on the left is the one at the present pose:
of coefficient k of the accelerations the part that lower ones make up is found first, at which the tree is
moved by Q, less what lower multipliers of the loops contribute to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Stack
from hodyn_ros.engine.kernel_spec import Loads, load_arguments, motion_arguments
from hodyn_ros.engine.loops.loop_matrices import base_velocity, distribution, tree_at
from hodyn_ros.engine.loops.loop_motion import Judged, LoopCode
from hodyn_ros.engine.loops.loop_multipliers import Multipliers
from hodyn_ros.engine.loops.loop_series import TARGET, weighted
from hodyn_ros.engine.matrix_kernels import congruent
from hodyn_ros.engine.recursions.articulated import factorise, solve
from hodyn_ros.engine.recursions.matrices import mass_matrix
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.series import coefficient
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, minus, power
from hodyn_ros.engine.series.validity import overflow
from hodyn_ros.engine.series.vectors import (
    Scalar,
    add,
    cross,
    dot,
    from_taylor,
    halves,
    subtract,
    taylor,
    times,
    to_derivatives,
)
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class AccelerationCode(LoopCode):
    """Accelerations of the coordinates from the efforts of the drives.

    `function(state (2, k), [pose (4, 4), twist (1, 6),] efforts (order + 1, driven), [base wrench (order + 1,
    6),] wrenches (order + 1, 6)..., memory)` returns accelerations (order + 2, [6 +] k): after derivatives 1
    to order + 1 of the twist of platform or base those of the coordinates' velocities, and a last row.

    Of drives that are `prescribed`, by place among the driven joints, accelerations are given, and efforts
    found: what gives these the missing accelerations. So it is with a base whose places, -6 to -1, are among
    them; its accelerations are derivatives of the spatial twist, its efforts the wrench in the world frame.
    The result then has columns of the driven joints: accelerations, and efforts of those prescribed.
    """

    limit = STRAIGHT_LINE_LIMIT
    judged: Judged | None = "accelerations"

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        prescribed: Sequence[int] | None = None,
        *,
        from_ground: bool = True,
    ) -> None:
        super().__init__(closure, chosen, order, loads, from_ground=from_ground)
        self.prescribed, self._of_drives = prescribed or (), prescribed is not None
        k, driven, moved = len(closure.joints), len(closure.driven), closure.leader is not None
        self.motion = motion_arguments(2, k, moved, "the state")
        push = [("the base wrench", (order + 1, 6))] if closure.base_prescribed else []
        self.stacks = [("the efforts", (order + 1, driven)), *push, *load_arguments(loads, order)]
        self.result = order + 2, (driven if self._of_drives else k) + 6 * moved
        self.moved = [closure.n_base + place for place in self.prescribed]
        # efforts and accelerations of drives are judged apart, and those of a base
        first = 6 * moved
        held = [first + place for place in self.prescribed if place >= 0]
        rest = [i for i in range(first, self.result[1]) if i not in held]
        self._groups = [group for group in (list(range(first)), held, rest) if group]
        of_base = [list(range(first))] if min(self.prescribed, default=0) < 0 else []
        self.effort_parts = [i for i, group in enumerate(self._groups) if group in [held, *of_base]]

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return accelerations, or what is left out where drives are prescribed, from closed positions."""
        *arguments, memory, state = stacks
        step, rows = self.steps(q, *arguments, state)
        rows = self._left_out(step, rows) if self._of_drives else rows
        defect = self.defect(step, self.parted(stacks)[0], rows, memory, state[0])
        return [*rows, [defect, *[0.0] * (len(rows[0]) - 1)]]

    def parts(self, table: Array) -> list[Array]:
        """Return those of a base, efforts of drives that are prescribed, and the rest."""
        return [table[:-1, group] for group in self._groups]

    def _left_out(self, step: Step, rows: Stack) -> Stack:
        """Return accelerations of the driven joints, and efforts of those that are prescribed."""
        n_rows = 3 * self.closure.n_leader_arrays  # of the twist of platform or base
        result = []
        for k, (row, efforts) in enumerate(zip(rows, step.held)):
            velocities = step.velocities(k + 1)
            driven = [velocities[j] for j in self.closure.driven]
            values = [*row[:n_rows], *from_taylor(driven, k + 1)]
            for place, effort in zip(self.prescribed, from_taylor(efforts, k)):
                values[n_rows + place] = effort
            result.append(values)
        return result

    def defect(
        self, step: Step, leader: Sequence[Stack], rows: Stack, memory: Stack, state: Sequence[Scalar]
    ) -> Scalar:
        """Return a number that is one or more where accelerations by order do not count."""
        singularity = sum(map(self.singularity_of, step.motions), start=step.singularity)
        return self.wrong(step.leading, state[-1], memory[0], step.motions, leader, singularity) + overflow(
            rows
        )

    def steps(self, q: Stack, *stacks: Stack) -> tuple[Step, Stack]:
        """Return all that moves, and the accelerations, without what is wrong: no memory is asked for."""
        leader, (drives, *rest) = self.parted(stacks)
        pushes = rest.pop(0) if self.closure.base_prescribed else []
        *loads, (state,) = rest
        step = Step(self, self.leading_positions(q[0], state), q[1], leader)
        rows = []
        for k in range(self.order + 1):
            efforts = [*(taylor(pushes[k], k) if pushes else ()), *taylor(drives[k], k)]
            rows.append(step.extend(efforts, [taylor(load[k], k) for load in loads]))
        return step, to_derivatives(rows)


class Step:
    """Everything that moves, extended coefficient by coefficient of the efforts."""

    def __init__(
        self,
        code: AccelerationCode,
        leading: Sequence[Scalar],
        velocities: Sequence[Scalar],
        leader: Sequence[Stack],
    ) -> None:
        motions = code.solved_motions(leading, leader)
        self.code, self.leading, self.motions = code, leading, motions
        tree, gravity = code.closure.tree, code.closure.tree.gravity.tolist()
        self.rates: list[list[Scalar]] = [[] for _ in leading]
        for column, (place, ratio) in code.known.items():
            self.rates[column].append(velocities[place] * (1.0 / ratio))
        twist = code.shifted(leader[1][0]) if leader else NOTHING
        code.find_rates(motions, self.rates, (twist, twist), 0)
        self._move(twist)
        self.base = FloatingBase(leader[0], gravity, "spatial") if tree.floating_base else None
        self.multipliers = Multipliers(code, motions)
        self.recursion = _Recursion(
            code.bodies, gravity, self.base, [AppliedWrench(body, frame) for body, frame in code.loads]
        )
        positions = code.positions(leading)
        self.recursion.start(positions, self.velocities(0), leader[1][0] if self.base else ())
        F = distribution(code, motions, self.base, 1)
        self.columns = [[coefficient(x, 0) for x in column] for column in F]
        matrix = mass_matrix(tree_at(code, code.bodies, leading, [[0.0] for _ in positions], self.base, 1))
        present = [[coefficient(x, 0) for x in row] for row in matrix]
        mass = congruent(present, self.columns)
        self.factor = factorise(mass)
        self.held: list[list[Scalar]] = []  # efforts of the drives that are prescribed
        self._moving = [[column[self._row_of(place)] for column in self.columns] for place in code.prescribed]
        self._answers = [solve(self.factor, row) for row in self._moving]
        response = [[dot(row, answer) for answer in self._answers] for row in self._moving]
        self._response = factorise(response)
        # of joints that move no mass, and of prescribed ones whose efforts do nothing
        self.singularity: Scalar = sum(
            abs(matrix[i][i] * factor[i][i])
            for matrix, factor in ((mass, self.factor), (response, self._response))
            for i in range(len(matrix))
        )

    def extend(self, efforts: Sequence[Scalar], loads: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Return the next coefficient of the accelerations from that of efforts and loads."""
        code, k = self.code, len(self.rates[0]) - 1
        for column in code.known:
            self.rates[column].append(0.0)
        code.find_rates(self.motions, self.rates, (NOTHING, NOTHING), k + 1)
        wanted, places = list(efforts), [len(efforts) - len(code.closure.driven) + p for p in code.prescribed]
        efforts = [0.0 if i in places else effort for i, effort in enumerate(wanted)]
        applied = self.recursion.applied(loads)
        before = self.recursion.lengths()
        joints, on_base = self._unbalanced(k, [0.0] * 6, applied, efforts)
        first = code.closure.first
        if self.base is not None:
            wrench = halves(on_base)
            joints = [*(power(base_velocity(code, self.base, i, 0), wrench) for i in range(6)), *joints]
        right = [-dot(column, joints) for column in self.columns]
        result = solve(self.factor, right)
        held = self._held(k, result, self._body_fixed([wanted[place] for place in places]))
        for effort, answer in zip(held, self._answers):
            result = [x + effort * change for x, change in zip(result, answer)]
        self.held.append(self._spatial_wrench(held))
        for place, effort in zip(places, self.held[-1]):
            efforts[place] = effort
        y = [x * (1.0 / (k + 1)) for x in result]
        change = [dot(row, y) for row in zip(*self.columns)]
        for column, joint in enumerate(code.closure.leading):
            self.rates[column][k + 1] = self.rates[column][k + 1] + change[first + joint]
        twist = self._base_twist(change[:first])
        self._move(code.shifted(twist) if self.base else NOTHING)
        self.recursion.withdraw(before)
        joints, _ = self._unbalanced(k, twist, applied, efforts)
        by_leading = code.by_leading(joints)
        self.multipliers.append(
            [
                self.multipliers.solve(motion, [by_leading[column] for column in motion.columns])
                for motion in self.motions
            ]
        )
        velocities = self.velocities(k + 1)
        of_leader = [] if code.closure.leader is None else twist if self.base else self.leader_twist(-1)
        moved = [*of_leader, *(velocities[joint] for joint in code.closure.joints)]
        return [(k + 1.0) * x for x in moved]

    def _row_of(self, place: int) -> int:
        """Return which velocity of the tree is prescribed; those of a base, body-fixed, come first."""
        closure = self.code.closure
        return 6 + place if place < 0 else closure.first + closure.driven[place]

    def _held(self, k: int, accelerations: Sequence[Scalar], wanted: Sequence[Scalar]) -> list[Scalar]:
        """Return efforts that add to accelerations what those that are prescribed lack."""
        trial = [*[0.0] * self.code.closure.first, *self.velocities(k + 1)]
        missing = [
            acceleration - (k + 1.0) * trial[self._row_of(place)] - dot(row, accelerations)
            for place, row, acceleration in zip(self.code.prescribed, self._moving, wanted)
        ]
        return solve(self._response, missing)

    def _body_fixed(self, wanted: Sequence[Scalar]) -> list[Scalar]:
        """Return accelerations that are wanted, of a base those of its body-fixed twist."""
        if self.base is None or min(self.code.prescribed, default=0) >= 0:
            return list(wanted)
        w, v = wanted[:3], subtract(wanted[3:6], cross(self.base.position[0], wanted[:3]))
        columns = list(zip(*self.base.rotation[0]))
        return [*(dot(column, w) for column in columns), *(dot(column, v) for column in columns), *wanted[6:]]

    def _spatial_wrench(self, held: Sequence[Scalar]) -> list[Scalar]:
        """Return efforts that are held, a wrench on the base in the world frame, which comes first."""
        if self.base is None or min(self.code.prescribed, default=0) >= 0:
            return list(held)
        moment, force = (times(self.base.rotation[0], part) for part in (held[:3], held[3:6]))
        return [*add(moment, cross(self.base.position[0], force)), *force, *held[6:]]

    def _unbalanced(
        self, k: int, twist: Sequence[Scalar], applied: Sequence[Spatial], efforts: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return what efforts and lower multipliers leave of those of the tree, as `Multipliers.rest`."""
        code, closure = self.code, self.code.closure
        accelerations = [(k + 1.0) * rate for rate in self.velocities(k + 1)]
        joints, on_base = self.multipliers.rest(self.recursion.efforts(k, accelerations, twist, applied))
        push, drives = (efforts[:6], efforts[6:]) if closure.base_prescribed else ([], efforts)
        for joint, effort in zip(closure.driven, drives):
            joints[joint] = joints[joint] - effort
        if push:
            moment = subtract(push[:3], cross(code.center.tolist(), push[3:]))
            on_base = [a - b for a, b in zip(on_base, [*moment, *push[3:]])]
        return joints, on_base

    def velocities(self, k: int) -> list[Scalar]:
        """Return coefficient k of the velocities of all joints."""
        return [weighted(row, [rate[k] for rate in self.rates]) for row in self.code.coupling_matrix]

    def _base_twist(self, body_fixed: Sequence[Scalar]) -> list[Scalar]:
        """Return a spatial twist of the base from the body-fixed one at the present pose."""
        if self.base is None:
            return [0.0] * 6
        w, v = times(self.base.rotation[0], body_fixed[:3]), times(self.base.rotation[0], body_fixed[3:])
        return [*w, *add(v, cross(self.base.position[0], w))]

    def _move(self, twist: Spatial) -> None:
        """Extend the motion of all clusters; a platform whose pose was given moves on with its body."""
        platform = self.code.closure.platform
        for motion in self.motions:
            motion.extend(motion.joint_rates(self.rates), twist, twist)
            if len(self.rates[0]) > 1 and platform is not None and TARGET in motion.twists:
                motion.twists[TARGET][-1] = motion.twists.get(platform.body, motion.twists[TARGET])[-1]

    def leader_twist(self, k: int) -> list[Scalar]:
        """Return coefficient k of the spatial twist of platform or base."""
        leader = self.code.closure.leader
        if self.base is not None:
            return self.base.twist(k)
        angular, velocity = next(m.twists[leader][k] for m in self.motions if leader in m.twists)
        return [*angular, *velocity]


class _Recursion(Recursion):
    """Inverse dynamics one coefficient at a time, each of which can be taken back."""

    def efforts(
        self, k: int, accelerations: Sequence[Scalar], twist: Sequence[Scalar], applied: Sequence[Spatial]
    ) -> list[Scalar]:
        """Return coefficient k of the wrench on a floating base, in the world, and of all joints' efforts.

        `twist`: coefficient k + 1 of that of the base; `applied`: coefficient k of the wrenches on bodies.
        """
        for body, wrench in zip(self.bodies, applied):
            moment, force = minus(self.needed(body, k, accelerations, twist), wrench)
            body.moment.append(moment)
            body.force.append(force)
        torques: list[Scalar] = [0.0] * len(self.jointed)
        for body in reversed(self.jointed):
            torques[body.constants.joint] = self.hand_on(body, k)
        return [*(self.base_wrench(k) if self.base else ()), *torques]

    def lengths(self) -> list[int]:
        """Return how many coefficients of everything are known, for `withdraw`."""
        return [len(series) for series in self._series()]

    def withdraw(self, lengths: Sequence[int]) -> None:
        """Take back all coefficients that were found since."""
        for series, length in zip(self._series(), lengths):
            del series[length:]

    def _series(self) -> list[list[Any]]:
        """Return all series that grow."""
        of_bodies = [series for body in self.bodies for series in body.series]
        return of_bodies if self.base is None else [*of_bodies, *self.base.series]
