"""Inverse kinematics in one compiled call: Newton's method from a seed, and the derivatives at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hodyn_ros.codegen.kernel import Call, Shape, straight_line
from hodyn_ros.codegen.program import (
    All,
    Compare,
    Condition,
    Copy,
    Index,
    Not,
    Program,
    Put,
    Repeat,
    Return,
    Run,
    Statement,
    View,
    When,
    arrays,
)
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.engine.newton import CLOSE, ITERATIONS_FROM_SEED
from hodyn_ros.engine.recursions.frame_goals import DAMPING, GoalCode, Goals
from hodyn_ros.engine.series.validity import ARRIVED
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import TreeModel

_LONGEST = 60_000  # operations of what takes some seconds to compile


class GoalKernel(Call):
    """Inverse kinematics of one robot at one order.

    `function(seed (1, n), poses (4 F, 4), twists (F order, 6), [base pose (4, 4), base twists (order, 6),]
    [weights (1, n),] [rates of independent joints (order, n),] out=None)` returns joint motions (order + 1,
    n). Poses and twists come one frame after the other; positions of independent joints and of joints that
    carry no frame are those of the seed.

    What compiled code does not find from the seed, or finds too near to a singular pose to vouch for, is
    asked of `checked_call`, which takes the same arrays by name, and answers or raises.
    """

    def __init__(
        self, model: TreeModel, goals: Goals, order: int, checked_call: Callable[..., Array], code: GoalCode
    ) -> None:
        self._checked_call = checked_call
        n, frames = model.n_joints, len(goals.frames)
        base: list[tuple[str, Shape]] = []
        if model.floating_base:
            base = [("the base pose", (4, 4)), ("the base twists", (order, 6))]
        weights: list[tuple[str, Shape]] = [("the weights", (1, n))] if goals.weighted else []
        rates: list[tuple[str, Shape]] = []
        if goals.independent:
            rates = [("the rates of independent joints", (order, n))]
        moved: list[tuple[str, Shape]] = [
            ("the poses", (4 * frames, 4)),
            ("the twists", (frames * order, 6)),
        ]
        super().__init__([("the seed", (1, n)), *moved, *base, *weights, *rates], (order + 1, n))
        self.compiled = compile_program(self._written(code, order, [*base[:1], *weights]))
        self._bind(self.compiled.address, judged=True)

    def _written(self, code: GoalCode, order: int, few: Sequence[tuple[str, Shape]]) -> Program:
        """Write the program, which returns zero where the result counts; `few`: what a step takes besides."""
        shapes = [shape for _, shape in self.arguments]
        inputs, out = arrays(f"a{i}" for i in range(len(shapes))), View("out")
        seed, poses, twists, *stacks = inputs
        further = [inputs[self.arguments.index(one)] for one in few]
        _, n = shapes[0]
        state, of_step = (1, n + 3), [(1, n + 3), shapes[1], *(shape for _, shape in few)]
        size, after = (order + 1) * n, order + 3
        positions, result, before = arrays(("state", "result", "before"))
        error, following = positions.at(n), positions.at(n + 2)
        step = straight_line(code.newton_step, of_step)
        rates = straight_line(code.rates, [state, *shapes[1:]])
        arrived = All([Compare(error, "<=", CLOSE), Compare(following, "<=", ARRIVED)])
        # A step from a state leaves the square of the error before it, and about that of the step after. It
        # must fall from step to step: else the readable form with its shorter steps does better.
        body: list[Statement] = [
            Copy(positions, seed, n),
            Put(positions.at(n + 1), DAMPING),
            Put(error, 1e300),
            Repeat(
                [Copy(before, error), Run(step, [positions, poses, *further, positions])],
                All([Not(arrived), Compare(error, "<", before)]),
                ITERATIONS_FROM_SEED,
            ),
            *_unless(arrived),
            Run(rates, [positions, *inputs[1:], result]),
            *_unless(Compare(result.at(size), "<", 1.0)),
        ]
        if order:
            beside, again, rounded = arrays(("beside", "again", "rounded"))
            nearby = straight_line(code.nearby, of_step)
            rounding = straight_line(code.rounded, [shapes[2]])
            difference = straight_line(code.difference, [(after, n), (after, n)])
            checked: list[Statement] = [
                Run(nearby, [positions, poses, *further, beside]),
                Run(rounding, [twists, rounded]),
                Run(rates, [beside, poses, rounded, *stacks, again]),
                Run(difference, [result, again, beside]),
                *_unless(Compare(beside, "<", 1.0)),
            ]
            body.append(When(Not(Compare(result.at(size + n), "<", 1.0)), checked))
        body += [Copy(out, result, size), Return()]
        local = {"before": 1, "state": n + 3, "beside": n + 3, "result": after * n, "again": after * n}
        local["rounded"] = max(6 * shapes[2][0], 1)
        return Program("hodyn_kernel", [*inputs, out], local, body, returns=True)

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        """Ask for what compiled code cannot do."""
        if self._call(*[array.ctypes.data for array in arrays], out.ctypes.data):
            out[...] = self._checked_call(dict(zip([name for name, _ in self.arguments], arrays)))


def goal_kernel(
    model: TreeModel, goals: Goals, order: int, checked_call: Callable[..., Array]
) -> GoalKernel | None:
    """Compile inverse kinematics; None where that takes too long, or no free joint moves what is asked."""
    code = GoalCode(model, goals, order)
    if not code.movable:
        return None
    steps = len(code.joints) * (20 + code.n_rows * (code.n_rows + 6 * (order + 1) ** 2))
    if 2 * steps > _LONGEST:
        return None
    try:
        with np.errstate(invalid="ignore"):
            return GoalKernel(model, goals, order, checked_call, code)
    except ZeroDivisionError:  # a column of the Jacobian is zero whatever the positions
        return None


def _unless(condition: Condition) -> list[Statement]:
    """Leave it to another solver where a condition does not hold."""
    return [When(Not(condition), [Return(Index.of(1))])]
