"""Inverse dynamics of robots with couplings and loops, in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, NamedTuple

from hodyn_ros.codegen.emit import lane_function_text
from hodyn_ros.codegen.kernel import (
    STRAIGHT_LINE_LIMIT,
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
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads, load_arguments, motion_arguments
from hodyn_ros.engine.kernels import fits_straight_line, inverse_dynamics
from hodyn_ros.engine.loops.limbs import is_on_limbs
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode
from hodyn_ros.engine.loops.loop_efforts import EffortCode, solution_width
from hodyn_ros.engine.loops.loop_lanes import lanes_program
from hodyn_ros.engine.loops.loop_matrices import ProductCode
from hodyn_ros.engine.loops.loop_motion import LoopCode
from hodyn_ros.engine.loops.loop_products import FromDrivesCode
from hodyn_ros.engine.loops.platform_drives import PlatformCode
from hodyn_ros.engine.newton import ITERATIONS, ITERATIONS_FROM_DRIVES, newton, where_right
from hodyn_ros.engine.recursions.kinematics import POSE
from hodyn_ros.engine.series.validity import ARRIVED, DOUBLE, Tolerances
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_HIGHEST_ON_LIMBS = 6  # order that is compiled for a platform on any number of limbs
_LARGEST = 2400  # bodies times (order + 2)^2 of what takes some seconds to compile: six limbs at order 6

What = Literal["efforts", "joints", "solution"]


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


class LoopTraces(NamedTuple):
    """What a call repeats and ends with, as functions of scalars, for code in another language.

    `step(q, [pose,] state (1, n + 1))` and `end(q, [pose, twists,] others..., memory (1, n), state)`: see
    `LoopFunction` for how they belong together. `defect_at` is the place in the result of the number that
    must be below one. `gaps(q, [pose,] state)` and `closing_step(q, [pose,] state, gaps)` make a step in two.
    """

    step: Callable[..., Stack]
    end: Callable[..., Stack]
    defect_at: int
    iterations: int = ITERATIONS
    gaps: Callable[..., Stack] | None = None
    closing_step: Callable[..., Stack] | None = None


class LoopFunction(Call):
    """Compiled code that begins with Newton's method, from the positions in a memory.

    `function(motions..., others..., memory (1, N), out=None)`, motions being that of the coordinates, and of
    platform or base. The memory holds positions of the leading joints, from which Newton's method starts, and
    the pose; both are replaced by those found. `result.item(defect_at)` below one says that the result is
    right; else nothing in it counts, and the memory is as it was.
    """

    def __init__(
        self,
        code: LoopCode,
        motions: Sequence[tuple[str, Shape]],
        stacks: Sequence[tuple[str, Shape]],
        result: Shape,
        end: Callable[..., Stack],
        tree: Function | None = None,
        *,
        limit: float = STRAIGHT_LINE_LIMIT,
        finds_pose: bool = False,
        positions: int | None = None,
        iterations: int = ITERATIONS,
        on_numbers: bool = False,
        defect_at: int | None = None,
        batch_rows: slice | None = None,
        has_lanes: bool = True,
    ) -> None:
        """Trace and compile; raise TooLong where `end` has more operations than a limit.

        `finds_pose`: the result begins with the pose of a platform, which the memory takes from there.
        `positions`: how many `code` improves and the memory holds, by default those of the leading joints.
        `on_numbers`: compile nothing, and compute every call with the numbers that it is given. `defect_at`:
        where the number is that must be below one, by default the first of the last row; `batch_rows`: rows
        of the result that batches are of, by default all but that; `has_lanes`: whether several samples are
        computed at a time.
        """
        self._code, self._step, self._end, self._n_motion = code, code.newton_step, end, len(motions)
        self._n_positions = n = positions or len(code.closure.leading)
        # that is given of platform or base
        self._keeps_pose = keeps_pose = code.closure.leader is not None and positions is None
        self._iterations = iterations
        memory = 1, n + (16 if keeps_pose or finds_pose else 0)
        super().__init__([*motions, *stacks, ("memory", memory)], result)
        rows, columns = result
        self.defect_at = (rows - 1) * columns if defect_at is None else defect_at
        self.batch_rows = slice(0, rows - 1) if batch_rows is None else batch_rows
        # lanes neither remember a pose that is found, nor do they go around the generic code of a large tree
        self.on_numbers, self._has_lanes = on_numbers, has_lanes and tree is None and not finds_pose
        shapes, improved = [shape for _, shape in self.arguments], (1, n + 1)
        known = [shape for _, shape in motions]
        passed = arrays(f"a{i}" for i in range(len(shapes)))
        motion, remembered = passed[: len(motions)], passed[-1]
        state, out = View("state"), View("out")
        make = uncompiled if on_numbers else straight_line
        step = make(code.newton_step, [*known[:2], improved])
        local: dict[str, Index | int] = {"state": n + 1}
        around: list[Statement] = []
        results: list[View] = []
        if on_numbers:
            last = uncompiled(end, [*shapes, improved])
        elif tree is None:
            last = self._compiled_end(end, [*shapes, improved], limit)
        else:
            joints = straight_line(code.joint_motion, [*known, improved])
            around, results = _around_tree(code, tree, joints, passed, motion, local)
            last = straight_line(end, [*shapes, improved, tree.result])
        remember = [Copy(remembered, state, n)]
        if keeps_pose or finds_pose:
            remember.append(Copy(remembered.at(n), out if finds_pose else passed[1], 16))
        self.program = Program(
            "hodyn_kernel",
            [*passed, out],
            local,
            [
                Copy(state, remembered, n),
                newton([Run(step, [*motion[:2], state, state])], state.at(n), iterations),
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
        shapes, n, leader = [shape for _, shape in self.arguments], self._n_positions, self._keeps_pose
        state, known = (1, n + 1), shapes[: min(self._n_motion, 2)]
        step = _lane_code(_step_in_lanes, self._step, [*known, state], lanes())
        end = _lane_code(_end_in_lanes, self._end, [*shapes, state], lanes(), rows, self.defect_at, leader)
        return compile_program(
            lanes_program(len(shapes) - 1, len(known), n, step, end, lanes(), sure, keeps_pose=leader)
        )

    def _compute(self, arrays: Sequence[Array], out: Array) -> None:
        """Compute one call by the compiled code, or on numbers as that does."""
        if not self.on_numbers:
            super()._compute(arrays, out)
            return
        run(self.program, [array.reshape(-1) for array in (*arrays, out)])

    def traces(self, tolerances: Tolerances = DOUBLE) -> LoopTraces:
        """Return what it is made of, all in straight-line code, for numbers of a kind."""
        code, within = self._code, partial(partial, self._within, tolerances)
        step, end, gaps, closing = map(within, (self._step, self._end, code.gaps, code.closing_step))
        return LoopTraces(step, end, self.defect_at, self._iterations, gaps, closing)

    def _within(self, tolerances: Tolerances, trace: Callable[..., Stack], *stacks: Stack) -> Stack:
        """Trace for numbers of a kind."""
        before, self._code.tolerances = self._code.tolerances, tolerances
        try:
            return trace(*stacks)
        finally:
            self._code.tolerances = before

    @property
    def _asked(self) -> list[str]:
        return [name for name, (_, columns) in self.arguments[:-1] if columns]

    def _check(self, out: Array) -> None:
        """Leave that to the number at `defect_at`."""

    def _compiled_end(self, trace: Callable[..., Stack], shapes: Sequence[Shape], limit: float) -> Code:
        """Compile what a call ends with."""
        return straight_line(trace, shapes, limit)


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
    code: LoopCode,
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
    base = motion[1:] if code.closure.tree.floating_base else []
    loads = passed[len(motion) : len(motion) + len(code.loads)]
    efforts_of_tree = Code("hodyn_kernel", tree.code.address, alive=tree)
    calls: list[Statement] = [
        Run(joints, [*motion, View("state"), moved]),
        Run(efforts_of_tree, [moved, *base, *loads, efforts]),
    ]
    return calls, [efforts]


class LoopKernel(LoopFunction):
    """Inverse dynamics of one robot at one order.

    `function(q (order + 3, k), [pose (4, 4), twists (order + 2, 6),] wrenches (order + 1, 6)..., [preload
    (order + 1, driven),] memory (1, N), out=None)` returns a matrix; `efforts` and `drives` say which rows
    are what. Twists are spatial. Efforts of redundant drives are those of least norm, or with `preload=True`
    nearest to one. The memory holds positions of the leading joints, from which Newton's method starts, and
    the pose; both are replaced by those found. `result.item(defect_at)` below one says that the result is
    right; else nothing in it counts, and the memory is as it was. The first number of the last row grows
    without bounds towards singular poses, like the square of a condition number.

    With `what="joints"` the result is the motion of all joints of the tree up to derivative `order`, and a
    last row: `function(q (order + 1, k), [pose, twists (order, 6),] memory)`. With `what="solution"` it is
    the efforts, the motion of all joints (order + 3, n), the loads of all loops (order + 1, 6 loops), and the
    last two rows, each filled up with zeros. Loads need all independent `rows` of the loops, where some hold
    a platform in directions in which it cannot move.
    """

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        what: What = "efforts",
        *,
        preload: bool = False,
        rows: Array | None = None,
        on_numbers: bool = False,
    ) -> None:
        self.order = order = order - 2 if what == "joints" else order
        on_limbs = what != "solution" and is_on_limbs(closure, loads)
        code = EffortCode(closure, chosen, order, loads, preload, on_limbs=on_limbs)
        motion = motion_arguments(order + 3, len(closure.joints), closure.leader is not None)
        stacks = load_arguments(loads, order)
        if preload:
            stacks.append(("the preload", (order + 1, len(closure.driven))))
        if what == "joints":
            result = order + 4, closure.tree.n_joints
            super().__init__(code, motion, stacks, result, code.joints, limit=inf, on_numbers=on_numbers)
            return
        batch_rows: slice | None = self.efforts
        result, end = (2 * order + 6, closure.n_efforts), code.efforts
        if what == "solution":
            result, end, batch_rows = (3 * order + 7, solution_width(closure)), code.solution, None
            if rows is not None and len(rows) > len(chosen):
                code.holding = LoopCode(closure, rows, order, loads)
        kernel = None
        if not (on_numbers or on_limbs or fits_straight_line(closure.tree, order)):
            # what is known of the loops stays straight-line code, around the generic code of the tree
            kernel = inverse_dynamics(closure.tree, order, KernelSpec.of(closure.tree, loads))
        super().__init__(
            code,
            motion,
            stacks,
            result,
            end,
            kernel,
            limit=inf,
            on_numbers=on_numbers,
            defect_at=(result[0] - 2) * result[1],
            batch_rows=batch_rows,
        )

    @property
    def efforts(self) -> slice:
        """Rows of the efforts by order: of a prescribed base, then of the drives."""
        return slice(0, self.order + 1)

    @property
    def drives(self) -> slice:
        """Rows of the positions of the driven joints, the last columns, and of their derivatives."""
        return slice(self.order + 1, 2 * self.order + 4)


class LoopAccelerations(LoopFunction):
    """Forward dynamics of one robot at one order.

    `function(state (2, k), [pose (4, 4), twist (1, 6),] efforts (order + 1, driven), [base wrench (order + 1,
    6),] wrenches (order + 1, 6)..., memory (1, N), out=None)` returns accelerations (order + 2, [6 +] k):
    after derivatives 1 to order + 1 of the spatial twist of platform or base those of the coordinates'
    velocities, and a last row.

    Where drives are `prescribed`, by place among the driven joints, their accelerations are given in place of
    efforts, and the result has columns of the driven joints: accelerations, and efforts of those prescribed.
    Places -6 to -1 are those of a base: given are derivatives of its spatial twist, found is the wrench.
    """

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        prescribed: Sequence[int] | None = None,
        *,
        on_numbers: bool = False,
    ) -> None:
        self.order = order
        code = AccelerationCode(closure, chosen, order, loads, on_limbs=is_on_limbs(closure, loads))
        code.prescribed = prescribed or ()
        k, moved = len(closure.joints), closure.leader is not None
        motion = motion_arguments(2, k, moved, "the state")
        stacks: list[tuple[str, Shape]] = [("the efforts", (order + 1, len(closure.driven)))]
        stacks += [("the base wrench", (order + 1, 6))] if closure.base_prescribed else []
        stacks += load_arguments(loads, order)
        result = order + 2, (k if prescribed is None else len(closure.driven)) + 6 * moved
        end = code.accelerations if prescribed is None else code.left_out
        super().__init__(code, motion, stacks, result, end, on_numbers=on_numbers)


class LoopProduct(LoopFunction):
    """What follows from the motion of one robot with loops, in its coordinates, up to one order.

    `function(q (order + 1, k), [pose (4, 4), twists (order, 6),] memory (1, N), out=None)` returns the rows
    of one order after the other, and a last row; kinematics of frames are a row each, else `shape` is that of
    one order.
    Coriolis matrix and momentum take one row and twist more, the regressor two. Twists are spatial.
    """

    def __init__(
        self, code: ProductCode, limit: float = STRAIGHT_LINE_LIMIT, *, on_numbers: bool = False
    ) -> None:
        """Trace and compile; raise TooLong beyond a limit of operations."""
        closure, (rows, columns) = code.closure, code.shape
        motion = motion_arguments(code.count + 1, len(closure.joints), closure.leader is not None)
        self.shape: tuple[int, ...] = (columns,) if code.vector else (rows, columns)
        result = (code.terms if code.stacked else 1) * rows + 1, columns
        super().__init__(code, motion, code.inputs, result, code.matrices, limit=limit, on_numbers=on_numbers)


class LoopFromDrives(LoopFunction):
    """The motion of one robot with loops from that of its drives, up to one order.

    `function(drives (order + 1, driven), [pose (4, 4), twists (order, 6),] memory (1, N), out=None)`, those
    of a prescribed base, returns a row: the pose of the platform and its spatial twists, if there is one,
    then the motion of the joints that are coordinates, (order + 1, k); and a last row. `twin`: the robot with
    drives as coordinates, whose positions the memory holds.
    """

    def __init__(self, closure: Closure, twin: Closure, chosen: Array, order: int) -> None:
        """Trace and compile; raise TooLong. `chosen`: the rows of the twin's loops."""
        code = FromDrivesCode(closure, twin, chosen, order)
        driven = len(closure.driven)
        motion = motion_arguments(order + 1, driven, twin.base_prescribed, "the motion of the drives")
        result, poses = (2, code.shape[1]), closure.platform is not None
        super().__init__(code, motion, [], result, code.matrices, finds_pose=poses)


class PlatformFromDrives(LoopFunction):
    """The motion of a platform on limbs from that of its drives, up to derivative `order` of its pose.

    `function(drives (order + 1, driven), memory (1, N + 16), out=None)` returns a row (1, 17 + 6 order): the
    pose by rows, the spatial twist and its derivatives, and a number at `defect_at`. The memory is that of
    `LoopKernel`: the platform is found from where it was.
    """

    def __init__(self, closure: Closure, order: int) -> None:
        code, size = PlatformCode(closure, order), 17 + 6 * order
        super().__init__(
            code,
            [("the motion of the drives", (order + 1, len(closure.driven)))],
            [],
            (1, size),
            code.end,
            limit=inf,
            positions=len(closure.leading) + 16,
            iterations=ITERATIONS_FROM_DRIVES,
            defect_at=size - 1,
            batch_rows=slice(0, 1),
            has_lanes=False,  # lanes hold limbs of one sample
        )

    def traces(self, tolerances: Tolerances = DOUBLE) -> LoopTraces:
        """Return what it is made of; steps are not made in two."""
        return super().traces(tolerances)._replace(gaps=None, closing_step=None)
