"""Batches of robots with loops in the lanes of vector registers, Newton's method and what follows it.

The samples of a block all start where the one before them was found. Each lane takes the steps that it would
take alone, and keeps what it has found while others go on: from the same start a sample rounds alike, in a
lane and on its own. Whether the branch was kept is asked of neighbouring samples, as it is of single ones.
"""

from __future__ import annotations

from math import inf

from hodyn_ros.codegen.program import (
    All,
    Code,
    Compare,
    Copy,
    For,
    Index,
    Not,
    Program,
    Put,
    Repeat,
    Return,
    Run,
    Statement,
    When,
    arrays,
    integer,
)
from hodyn_ros.engine.newton import ITERATIONS
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.engine.series.validity import ARRIVED


def lanes_program(
    n_arguments: int,
    n_known: int,
    n: int,
    step: Code,
    end: Code,
    lanes: int,
    sure: float,
    *,
    keeps_pose: bool,
) -> Program:
    """Return `int64_t hodyn_samples(double *argument, int64_t step, ..., memory, out, int64_t count)`.

    `n_arguments` without the memory, the first `n_known` of them motion and pose. The codes are of
    `lane_function_text`: `step` improves `n` positions of the lanes that have not arrived, `end` writes
    results, and keeps what must be below `sure` and, where the memory `keeps_pose`, the pose. The program
    returns how many samples count before the first block of which one does not; the memory is that of the
    last of them.
    """
    memory, out, state, before, kept = arrays(("memory", "out", "state", "before", "kept"))
    first, count, beside = integer("first"), integer("count"), Index({})
    pairs = [
        (view, integer(f"step{i}")) for i, view in enumerate(arrays(f"a{i}" for i in range(n_arguments)))
    ]
    passed, every = [x for pair in pairs for x in pair], range(lanes)
    errors = [state.at(n * lanes + lane) for lane in every]
    block: list[Statement] = [
        *(Copy(state.at(k * lanes + lane), memory.at(k)) for k in range(n) for lane in every),
        *(Put(error, inf) for error in errors),
        Repeat(
            [Run(step, [*passed[: 2 * n_known], state, beside, first, count - 1, out, state])],
            Not(All([Not(Compare(error, ">", ARRIVED)) for error in errors])),
            ITERATIONS,
        ),
    ]
    for k in range(0, n * lanes, lanes):  # each sample's memory is of the one before
        block += [Copy(before.at(k), memory.at(k // lanes)), Copy(before.at(k + 1), state.at(k), lanes - 1)]
    last = lanes - 1  # spare lanes repeat the last sample
    block += [
        Run(end, [*passed, before, beside, state, beside, first, count - 1, out, kept]),
        When(Not(All([Compare(kept.at(lane), "<", sure) for lane in every])), [Return(first)]),
        *(Copy(memory.at(k), state.at(k * lanes + last)) for k in range(n)),
        *(Copy(memory.at(n + i), kept.at((i + 1) * lanes + last)) for i in range(POSE if keeps_pose else 0)),
    ]
    local = {"state": (n + 1) * lanes, "before": n * lanes, "kept": (1 + POSE) * lanes}
    body: list[Statement] = [For(first, count, block, lanes), Return(count)]
    return Program("hodyn_samples", [*passed, memory, out, count], local, body, returns=True)
