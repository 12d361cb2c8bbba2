"""The motion of a platform from that of its drives, in one compiled call.

Newton's method goes on for all limbs and the platform at once: a step of each limb towards the platform,
limbs of one build side by side, then one of the platform by what is missing of the drives' positions. Then
follow the orders: with coefficient k of the platform's twist at zero, the limbs say what coefficient k of the
drives' rates would be, and `J_IK V_k` is the rest (`J_IK` of Mueller et al., eq. 9), with the same factors at
every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hodyn_ros.codegen.codes import side_by_side, straight_line
from hodyn_ros.codegen.kernel import Call, Shape, Stack
from hodyn_ros.codegen.program import Code, Copy, Run, Statement, View, arrays
from hodyn_ros.codegen.program_numbers import traced_by
from hodyn_ros.engine.limbs.kernel import JUMP, RIGID, LimbCall
from hodyn_ros.engine.limbs.limb_code import POSE, drive_rates, newton_step_of_drives
from hodyn_ros.engine.limbs.platform_code import center, moved_pose, nearness
from hodyn_ros.engine.loops.loop_kernel import LoopTraces
from hodyn_ros.engine.newton import ITERATIONS_FROM_DRIVES, newton, where_right
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.validity import (
    CLOSED,
    DOUBLE,
    SINGULAR_LENGTH,
    Tolerances,
    distance_from_rigid,
    following_step,
    overflow,
    unless_small,
)
from hodyn_ros.engine.series.vectors import Scalar, cross, dot, from_taylor, halves, subtract, taylor
from hodyn_ros.model.parallel.model import ParallelModel


class DirectKinematics(LimbCall):
    """The motion of one platform on limbs up to derivative `order` of its pose.

    `function(drives (order + 1, driven), memory (1, N + 16), out=None)` returns a row (1, 17 + 6 order): the
    pose by rows, the spatial twist and its derivatives, and a number at `defect_at`. Memory and `defect_at`
    as of `ParallelKernel`: the platform's pose is found from that in the memory.
    """

    def __init__(self, model: ParallelModel, order: int) -> None:
        LimbCall.__init__(self, model, order)
        n_memory = model.n_joints + 16
        drives, memory = (order + 1, model.n_driven), (1, n_memory)
        Call.__init__(
            self, [("the motion of the drives", drives), ("the memory", memory)], (1, 17 + 6 * order)
        )
        self._compile(drives, memory)

    @property
    def defect_at(self) -> int:
        """Where the number is that must be below one."""
        return self.result[1] - 1

    @property
    def batch_rows(self) -> slice:
        """Rows of the result that batches are of: the only one."""
        return slice(0, 1)

    @property
    def n_positions(self) -> int:
        """Number of positions that `traces` remember: of all joints, and three rows of the pose."""
        return self.model.n_joints + POSE

    def positions(self, memory: list[float]) -> list[float]:
        """Return the positions that `traces` start from, of a memory: the pose is seen from the center."""
        n = self.model.n_joints
        return [*memory[:n], *self._begin([memory])[0][:POSE]]

    def traces(self, tolerances: Tolerances = DOUBLE) -> LoopTraces:
        """Return what it does, one limb after the other; there is no code with other tolerances."""
        assert tolerances is DOUBLE
        step = traced_by(self._step, self.n_positions + 1)
        end = traced_by(self._after, self.result[1])
        return LoopTraces(step, end, self.defect_at, ITERATIONS_FROM_DRIVES)

    def _compile(self, drives: Shape, memory: Shape) -> None:
        """Write and compile the program."""
        model, order, groups = self.model, self.order, self.groups
        pose, twist = (1, POSE * self.widest + 1), (1, 6 * self.widest + 1)
        solved = (1, twist[1] + self._factors_size + 1)
        states = [(1, len(group) * self._state_size(group)) for group in groups]
        limbs = [self.group(g, f"state{g}", self._state_size(group)) for g, group in enumerate(groups)]
        of_limbs = [group.states for group in limbs]
        local = {"pose": pose[1]} | {view.buffer: size for view, (_, size) in zip(of_limbs, states)}
        led_by, remembered, at, out = arrays(("drives", "memory", "pose", "out"))
        shapes = [
            [(1, len(self.limbs[group[0]].numbers)), (1, POSE), (1, self._state_size(group))]
            for group in groups
        ]

        def of_group(g: int, trace: Callable[..., Stack], *more: Shape) -> Code:
            numbers, platform, state = shapes[g]
            limb = self.limbs[groups[g][0]]
            return side_by_side(partial(trace, limb, model.length), [numbers, platform, *more, state])

        steps = [
            group.run(of_group(g, newton_step_of_drives), at, group.states, group.states)
            for g, group in enumerate(limbs)
        ]
        move = Run(straight_line(self._move, [drives, pose, *states]), [led_by, at, *of_limbs, at])
        error = at.at(pose[1] - 1)
        body: list[Statement] = [*steps]  # to where the platform has gone last
        twists: list[View] = []
        for k in range(max(order, 1)):
            rates = [View(f"rates{g}_{k}") for g in range(len(groups))]
            sizes = [(1, len(group) * self._rates_size(group, k)) for group in groups]
            for g, group in enumerate(limbs):
                code = of_group(g, drive_rates, *[(1, 6)] * k)
                body.append(group.run(code, at, *twists, group.states, rates[g]))
            solve = straight_line(partial(self._solve, k), [drives, *[solved] * (k > 0), *sizes])
            result = View(f"twist{k}")
            body.append(Run(solve, [led_by, *twists[:1], *rates, result]))
            twists.append(result)
            local |= {view.buffer: size for view, (_, size) in zip(rates, sizes)}
            local[result.buffer] = twist[1] if k else solved[1]
        end = straight_line(self._end, [drives, memory, pose, *states, solved, *[twist] * (len(twists) - 1)])
        remember = [copy for group in limbs for copy in group.remember(remembered)]
        remember.append(Copy(remembered.at(model.n_joints), out, 16))
        body.append(Run(end, [led_by, remembered, at, *of_limbs, *twists, out]))
        whole: list[Statement] = [
            Run(straight_line(self._begin, [memory]), [remembered, at]),
            *(copy for group in limbs for copy in group.recall(remembered)),
            newton([*steps, move], error, ITERATIONS_FROM_DRIVES),
            *body,
            where_right(out.at(self.defect_at), remember),
        ]
        self._finish([led_by, remembered, out], local, whole)
        # the same from positions that are given, and to those after a step
        positions, n = View("positions"), model.n_joints
        given = [copy for group in limbs for copy in group.recall(positions)]
        given += [Copy(at.at(i * POSE), positions.at(n), POSE) for i in range(self.widest)]
        given.append(Copy(error, positions.at(self.n_positions)))
        left = [copy for group in limbs for copy in group.remember(out)]
        left += [Copy(out.at(n), at, POSE), Copy(out.at(self.n_positions), error)]
        self._step = self._program([led_by, positions, out], local, [*given, *steps, move, *left])
        before = View("before")  # positions as well: all of a memory that counts
        given.append(Copy(remembered, before, self.n_positions))
        local = local | {remembered.buffer: memory[1]}
        self._after = self._program([led_by, before, positions, out], local, [*given, *body])

    def _state_size(self, group: Sequence[int]) -> int:
        limb = self.limbs[group[0]]
        return len(limb.chain) + 1 + 6 * len(limb.driven)

    def _rates_size(self, group: Sequence[int], k: int) -> int:
        driven = len(self.limbs[group[0]].driven)
        return driven if k else 1 + 6 * driven

    @property
    def _factors_size(self) -> int:
        delta, n = self.model.delta, self.model.n_driven
        return delta * (n + 1) + delta * (delta - 1) // 2

    def _of_limbs(self, stacks: Sequence[Stack]) -> list[Sequence[Scalar]]:
        """Return the part of each limb of what the groups of limbs have computed."""
        parts: dict[int, Sequence[Scalar]] = {}
        for group, stack in zip(self.groups, stacks):
            size = len(stack[0]) // len(group)
            parts |= {limb: stack[0][i * size : (i + 1) * size] for i, limb in enumerate(group)}
        return [parts[limb] for limb in sorted(parts)]

    def _begin(self, memory: Stack) -> Stack:
        """Return the pose in the memory, seen from the center, once for every limb."""
        pose = memory[0][self.model.n_joints :]
        middle = center(self.model).tolist()
        seen = [value - (middle[i // 4] if i % 4 == 3 else 0.0) for i, value in enumerate(pose[:POSE])]
        return [[*(seen * self.widest), 0.0]]

    def _move(self, drives: Stack, pose: Stack, *states: Stack) -> Stack:
        """Move the platform by what is missing of the drives' positions; last `following_step`."""
        square: Scalar = 0.0
        missing: list[Scalar] = []
        rows: list[Sequence[Scalar]] = []
        for limb, state in zip(self.limbs, self._of_limbs(states)):
            n = len(limb.chain)
            square = square + state[n]
            for i, drive in enumerate(limb.driven):
                missing.append(drives[0][len(missing)] - state[drive])
                rows.append(state[n + 1 + 6 * i : n + 7 + 6 * i])
        factors = Orthogonal(self._jacobian(rows))
        step = factors.solve(missing)
        error = following_step(square + dot(step, step), nearness(factors.inverses, self.reach))
        return [[*(moved_pose(pose[0][:POSE], self._twist(step)) * self.widest), error]]

    def _jacobian(self, rows: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """Return the columns of `J_IK` from the wrenches against the drives."""
        return [[dot(column, row) for row in rows] for column in self.basis.T.tolist()]

    def _twist(self, motion: Sequence[Scalar]) -> list[Scalar]:
        """Return the twist (6,) about the center from its components in the basis."""
        return [dot(row, motion) for row in self.basis.tolist()]

    def _solve(self, k: int, drives: Stack, *stacks: Stack) -> Stack:
        """Return coefficient k of the twist for every limb, then how far redundant drives disagree, squared.

        For k = 0 the factors of `J_IK` follow, and how near limbs and drives are to a singular pose.
        """
        n, delta = self.model.n_driven, self.model.delta
        more: list[Scalar] = []
        known: list[Scalar] = [0.0] * n
        if k:
            numbers = stacks[0][0][6 * self.widest + 1 : 6 * self.widest + 1 + self._factors_size]
            factors = Orthogonal.from_numbers(numbers, n, delta)
            known = [rate for part in self._of_limbs(stacks[1:]) for rate in part]
        else:
            parts = self._of_limbs(stacks)
            rows = [part[1 + 6 * i : 7 + 6 * i] for part in parts for i in range(len(part) // 6)]
            factors = Orthogonal(self._jacobian(rows))
            singularity = nearness(factors.inverses, self.reach)
            more = [*factors.numbers, sum((part[0] for part in parts), singularity)]
        if k >= self.order:
            return [[*([0.0] * (6 * self.widest)), 0.0, *more]]
        rates = taylor(drives[k + 1], k)
        motion, rest = factors.solve_with_rest([rate - part for rate, part in zip(rates, known)])
        apart: Scalar = 0.0
        if n > delta:
            size = dot(rates, rates) + self.model.size**2
            apart = dot(rest, rest) / size
        return [[*(self._twist(motion) * self.widest), apart, *more]]

    def _end(self, drives: Stack, memory: Stack, pose: Stack, *stacks: Stack) -> Stack:
        """Return the result."""
        states, twists = stacks[: len(self.groups)], stacks[len(self.groups) :]
        before, now = memory[0][self.model.n_joints :], pose[0][:POSE]
        defect = pose[0][-1] * (1.0 / CLOSED)
        missing = iter(drives[0])
        apart: Scalar = 0.0
        for l, state in enumerate(self._of_limbs(states)):
            defect = defect + self.moved_joints(l, state, memory[0]) * (1.0 / JUMP**2)
            for drive in self.limbs[l].driven:
                gap = next(missing) - state[drive]
                apart = apart + gap * gap
        defect = defect + apart * (1.0 / (DOUBLE.agree * self.model.size) ** 2)
        for stack in twists:
            defect = defect + stack[0][6 * self.widest] * (1.0 / DOUBLE.agree**2)
        for i in range(11):  # of a turn by an angle: 8 sin^2(angle / 2)
            if i % 4 != 3:
                defect = defect + (now[i] - before[i]) * (now[i] - before[i]) * (0.5 / JUMP**2)
        middle = center(self.model).tolist()
        matrix = [[*now[4 * i : 4 * i + 3], now[4 * i + 3] + middle[i]] for i in range(3)]
        defect = defect + distance_from_rigid(matrix) * (1.0 / RIGID**2)
        row = [*(value for line in matrix for value in line), 0.0, 0.0, 0.0, 1.0]
        for k, stack in enumerate(twists[: self.order]):
            w, v = halves(stack[0])
            row += from_taylor([*w, *subtract(v, cross(w, middle))], k)
        return [[*row, unless_small(defect) + twists[0][0][-1] * SINGULAR_LENGTH**2 + overflow([row])]]
