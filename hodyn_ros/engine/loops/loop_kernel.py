"""Laws of robots with couplings and loops, each in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hodyn_ros.codegen.emit import lane_function_text
from hodyn_ros.codegen.kernel import (
    Call,
    Function,
    Shape,
    Stack,
    straight_line,
    traced,
    uncompiled,
)
from hodyn_ros.codegen.kernel import TooLong as TooLong
from hodyn_ros.codegen.llvm import Facts, Module
from hodyn_ros.codegen.processor import lanes
from hodyn_ros.codegen.program import Code, Copy, Index, Program, Run, Statement, View, arrays
from hodyn_ros.codegen.program_llvm import CompiledProgram, compile_program
from hodyn_ros.codegen.program_numbers import run
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.engine.loops.loop_lanes import lanes_program
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.newton import newton, where_right
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.engine.series.validity import ARRIVED
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_HIGHEST_ON_LIMBS = 6  # order that is compiled for a platform on any number of limbs
_LARGEST = 2400  # bodies times (order + 2)^2 of what takes some seconds to compile: six limbs at order 6


def compiles(closure: Closure, order: int, *, on_limbs: bool = False) -> bool:
    """Whether there is a kernel; `on_limbs`: one that computes the limbs of a platform from the ground on.

    The pose of a floating base has to be given, and tables be smooth enough. Code grows with the bodies and
    order squared, and would take longer and longer to compile.
    """
    tree, platform = closure.tree, closure.platform
    whole = platform is not None and (len(platform.rows) == 6 or platform.twists is not None)
    known = not tree.floating_base or closure.base_prescribed or whole
    limits = [one.function.smoothness for one in closure.followers]
    smooth = all(limit is None or limit >= order + 2 for limit in limits)
    bodies = tree.n_bodies if closure.loops else 0
    if on_limbs and is_on_limbs(closure) and order <= _HIGHEST_ON_LIMBS:
        return True
    return known and smooth and bodies * (order + 2) ** 2 <= _LARGEST


class LoopFunction(Call):
    """Compiled code that begins with Newton's method, from the positions in a memory.

    `function(motions..., others..., memory (1, N), out=None)`, motions being that of the coordinates, and of
    platform or base. The memory holds positions of the leading joints, from which Newton's method starts, and
    the pose; both are replaced by those found. `result.item(defect_at)` below one says that the result is
    right; else nothing in it counts, and the memory is as it was. Twists are spatial.
    """

    def __init__(self, law: LoopCode, *, on_numbers: bool = False) -> None:
        """Trace and compile a law; raise TooLong where its `end` has more operations than its limit.

        `on_numbers`: compile nothing, and compute every call with the numbers that it is given.
        """
        self.law, self.on_numbers, n = law, on_numbers, law.n_positions
        memory = 1, n + (16 if law.keeps_pose or law.finds_pose else 0)
        super().__init__([*law.motion, *law.stacks, ("memory", memory)], law.result)
        self.defect_at, self.batch_rows = law.defect_at, law.batch_rows
        tree = None if on_numbers else law.generic_tree()
        # lanes neither remember a pose that is found, nor do they go around the generic code of a large tree
        self._has_lanes = law.has_lanes and tree is None and not law.finds_pose
        shapes, improved = [shape for _, shape in self.arguments], (1, n + 1)
        known = [shape for _, shape in law.motion]
        passed = arrays(f"a{i}" for i in range(len(shapes)))
        motion, remembered = passed[: len(known)], passed[-1]
        state, out = View("state"), View("out")
        step = (uncompiled if on_numbers else straight_line)(law.newton_step, [*known[:2], improved])
        local: dict[str, Index | int] = {"state": n + 1}
        around: list[Statement] = []
        results: list[View] = []
        if tree is None:
            last = (law.uncompiled_end if on_numbers else law.compiled_end)([*shapes, improved])
        else:
            joints = straight_line(law.joint_motion, [*known, improved])
            around, results = _around_tree(law, tree, joints, passed, motion, local)
            last = straight_line(law.end, [*shapes, improved, tree.result])
        remember = [Copy(remembered, state, n)]
        if law.keeps_pose or law.finds_pose:
            remember.append(Copy(remembered.at(n), out if law.finds_pose else passed[1], 16))
        self.program = Program(
            "hodyn_kernel",
            [*passed, out],
            local,
            [
                Copy(state, remembered, n),
                newton([Run(step, [*motion[:2], state, state])], state.at(n), law.iterations),
                *around,
                Run(last, [*passed, state, *results, out]),
                where_right(out.at(self.defect_at), remember),
            ],
        )
        if on_numbers:
            self.function = self._converted
            return
        self.compiled = compile_program(self.program)
        self._bind(self.compiled.address)

    def in_lanes(self, rows: slice, sure: float = 1.0) -> CompiledProgram | None:
        """Return the code of `lanes_program` for batches, which writes some rows of the result, or None."""
        if not self._has_lanes:
            return None
        law, shapes = self.law, [shape for _, shape in self.arguments]
        n, leader, known = law.n_positions, law.keeps_pose, shapes[: min(len(law.motion), 2)]
        state = 1, n + 1
        step = _lane_code(_step_in_lanes, law.newton_step, [*known, state], lanes())
        end = _lane_code(_end_in_lanes, law.end, [*shapes, state], lanes(), rows, self.defect_at, leader)
        return compile_program(
            lanes_program(len(shapes) - 1, len(known), n, step, end, lanes(), sure, keeps_pose=leader)
        )

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        """Compute one call by the compiled code, or on numbers as that does."""
        if not self.on_numbers:
            super()._compute(arrays, out)
            return
        run(self.program, [array.reshape(-1) for array in (*arrays, out)])

    @property
    def _asked(self) -> list[str]:
        return [name for name, (_, columns) in self.arguments[:-1] if columns]

    def _check(self, out: Array) -> None:
        """Leave that to the number at `defect_at`."""


def _lane_code(write: Callable[..., tuple[str, Facts]], *arguments: Any) -> Code:
    code = Module(write, *arguments).compile("hodyn_lanes")
    return Code("hodyn_lanes", code.address, alive=code)


def _step_in_lanes(trace: Callable[..., Stack], shapes: Sequence[Shape], width: int) -> tuple[str, Facts]:
    """Write a step of lanes that have not arrived; the last argument, the state, lies side by side."""
    graph, outputs, _ = traced(trace, shapes, packs=True)
    sizes = [*(a * b for a, b in shapes[:-1]), None]
    return lane_function_text(graph, outputs, sizes, width, [], outputs, (len(sizes) - 1, ARRIVED)), ()


def _end_in_lanes(
    trace: Callable[..., Stack],
    shapes: Sequence[Shape],
    width: int,
    rows: slice,
    defect_at: int,
    keeps_pose: bool,
) -> tuple[str, Facts]:
    """Write what stores rows of the result, and keeps what is wrong and a pose; memory and state are last."""
    graph, outputs, (_, columns) = traced(trace, shapes, packs=True)
    sizes = [*(a * b for a, b in shapes[:-2]), None, None]
    stored = outputs[rows.start * columns : rows.stop * columns]
    kept = [outputs[defect_at], *(graph.input(1, i) for i in range(POSE if keeps_pose else 0))]
    return lane_function_text(graph, outputs, sizes, width, stored, kept), ()


def _around_tree(
    law: LoopCode,
    tree: Function,
    joints: Code,
    passed: Sequence[View],
    motion: Sequence[View],
    local: dict[str, Index | int],
) -> tuple[list[Statement], list[View]]:
    """Return the calls that move all joints and find the efforts of the tree, and where these are."""
    (rows, columns), (_, width) = tree.arguments[0][1], tree.result
    local |= {"joints": rows * columns, "tree": tree.result[0] * width}
    moved, efforts = View("joints"), View("tree")
    base = motion[1:] if law.closure.tree.floating_base else []
    loads = passed[len(motion) : len(motion) + len(law.loads)]
    efforts_of_tree = Code("hodyn_kernel", tree.code.address, alive=tree)
    calls: list[Statement] = [
        Run(joints, [*motion, View("state"), moved]),
        Run(efforts_of_tree, [moved, *base, *loads, efforts]),
    ]
    return calls, [efforts]
