"""Inverse dynamics of robots with couplings and loops, in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from hodyn_ros.codegen.driver_end import kept_where_good
from hodyn_ros.codegen.emit import kernel_text, lane_function_text
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Call, Function, Shape, Stack, traced
from hodyn_ros.codegen.literals import literal
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.codegen.processor import lanes
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.kernels import KernelSpec, fits_straight_line, inverse_dynamics
from hodyn_ros.engine.large_trees.inverse import load_arguments
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode
from hodyn_ros.engine.loops.loop_efforts import EffortCode, solution_width
from hodyn_ros.engine.loops.loop_lanes import driver_text
from hodyn_ros.engine.loops.loop_motion import LoadPlaces, LoopCode
from hodyn_ros.engine.loops.loop_products import VECTORS, FrameMotion, FromDrivesCode, Product, product_code
from hodyn_ros.engine.series.validity import ARRIVED
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure

_LARGEST = 2000  # bodies times (order + 2)^2 of what takes some seconds to compile
_ITERATIONS = 8  # of Newton's method; from a warm start two or three do


What = Literal["efforts", "joints", "solution"]


class TooLong(Exception):
    """Code would take too long to compile."""


def compiles(closure: Closure, order: int, what: What = "efforts") -> bool:
    """Whether there is a kernel.

    The pose of a floating base has to be given, and tables be smooth enough. Code grows with the bodies and
    order squared, and would take longer and longer to compile.
    """
    tree, platform = closure.tree, closure.platform
    whole = platform is not None and (len(platform.rows) == 6 or platform.twists is not None)
    known = not tree.floating_base or closure.base_given or whole
    limits = [one.function.smoothness for one in closure.followers]
    smooth = all(limit is None or limit >= order + 2 for limit in limits)
    bodies = tree.n_bodies if closure.loops else 0
    return known and smooth and bodies * (order + 2) ** 2 <= _LARGEST


class LoopTraces(NamedTuple):
    """What a call repeats and ends with, as functions of scalars, for code in another language.

    `step(q, [pose,] state (1, n + 1))` and `end(q, [pose, twists,] others..., memory (1, n), state)`: see
    `_driver_text` for how they belong together. `bad` is the place in the result of the number that must be
    below one.
    """

    step: Callable[..., Stack]
    end: Callable[..., Stack]
    bad: int
    iterations: int = _ITERATIONS
    arrived: float = ARRIVED


class LoopFunction(Call):
    """Compiled code that begins with Newton's method, from the positions in a memory.

    `function(told..., others..., memory (1, N), out=None)`, told being the motion, and pose and twists of
    platform or base. The memory holds positions of the leading joints, from which Newton's method starts, and
    the pose; both are replaced by those found. `result.item(bad)` below one says that the result is right;
    else nothing in it counts, and the memory is as it was.
    """

    def __init__(
        self,
        code: LoopCode,
        told: Sequence[tuple[str, Shape]],
        others: Sequence[tuple[str, Shape]],
        result: Shape,
        end: Callable[..., Stack],
        tree: Function | None = None,
        *,
        limit: float = np.inf,
        finds_pose: bool = False,
    ) -> None:
        """Trace and compile; raise TooLong where `end` has more operations than a limit.

        `finds_pose`: the result begins with the pose of a platform, which the memory takes from there.
        """
        self._step, self._end, self._n_told = code.newton_step, end, len(told)
        self._n_positions = n = len(code.closure.leading)
        memory = 1, n + (16 if code.keeps_pose or finds_pose else 0)
        super().__init__([*told, *others, ("memory", memory)], result)
        self._alive: list[Any] = [tree]
        shapes, state = [shape for _, shape in self.arguments], (1, n + 1)
        known = [shape for _, shape in told]
        step = self._compiled(code.newton_step, [*known[:2], state])
        around: _TreeCode | None = None
        if tree is None:
            last = self._compiled_end(end, [*shapes, state], limit)
        else:
            joints = self._compiled(code.joint_motion, [*known, state])
            around = _TreeCode(joints, tree.code.address, tree.arguments[0][1], tree.result)
            last = self._compiled(end, [*shapes, state, tree.result])
        floating = code.closure.tree.floating_base
        counts, pose = (len(shapes), len(told), len(code.loads)), None
        if code.keeps_pose or finds_pose:
            pose = "ptr %out" if finds_pose else "ptr %a1"
        text = _driver_text(*counts, floating, n, step, around, last, self.bad, pose)
        self._program = compile_text(text, "hodyn_kernel", None)
        self._bind(self._program.address)

    @property
    def bad(self) -> int:
        """Where the number is that must be below one: by default the first of the last row."""
        return (self.result[0] - 1) * self.result[1]

    @property
    def batch_rows(self) -> slice:
        """Rows of the result that batches are of: by default all but the last."""
        return slice(0, self.result[0] - 1)

    def in_lanes(self, rows: slice, sure: float = 1.0) -> MachineCode | None:
        """Return the bare C function of `driver_text` for batches, which writes some rows of the result.

        None around the generic code of a large tree.
        """
        if self._alive[0] is not None:
            return None
        shapes, n = [shape for _, shape in self.arguments], self._n_positions
        state = 1, n + 1
        told = shapes[: min(self._n_told, 2)]
        graph, outputs, _ = traced(self._step, [*told, state])
        step = self._lane_function(graph, outputs, [*told, None], [], outputs)
        graph, outputs, (_, columns) = traced(self._end, [*shapes, state])
        stored = outputs[rows.start * columns : rows.stop * columns]
        end = self._lane_function(graph, outputs, [*shapes[:-1], None, None], stored, [outputs[self.bad]])
        limits = ARRIVED, _ITERATIONS, sure
        text = driver_text(len(shapes) - 1, self._n_told, n, step, end, lanes(), limits)
        program = compile_text(text, "hodyn_samples", None)
        self._alive.append(program)
        return program

    def _lane_function(
        self,
        graph: Graph,
        outputs: Sequence[Any],
        shapes: Sequence[Shape | None],
        stored: Sequence[Any],
        kept: Sequence[Any],
    ) -> int:
        sizes = [None if shape is None else shape[0] * shape[1] for shape in shapes]
        text = lane_function_text(graph, outputs, sizes, lanes(), stored, kept)
        code = compile_text(text, "hodyn_lanes", ObjectCache.default())
        self._alive.append(code)
        return code.address

    @property
    def traces(self) -> LoopTraces:
        """What it is made of, all in straight-line code."""
        return LoopTraces(self._step, self._end, self.bad)

    @property
    def _asked(self) -> list[str]:
        return [name for name, (_, columns) in self.arguments[:-1] if columns]

    def _check(self, out: Array) -> None:
        """Leave that to the number at `bad`."""

    def _compiled_end(self, trace: Callable[..., Stack], shapes: Sequence[Shape], limit: float) -> int:
        """Compile what a call ends with."""
        return self._compiled(trace, shapes, limit)

    def _compiled(self, trace: Callable[..., Stack], shapes: Sequence[Shape], limit: float = np.inf) -> int:
        graph, outputs, _ = traced(trace, shapes)
        if graph.count_operations(outputs) > limit:
            raise TooLong
        code = compile_text(kernel_text(graph, outputs, len(shapes)), "hodyn_kernel", ObjectCache.default())
        self._alive.append(code)
        return code.address


class LoopKernel(LoopFunction):
    """Inverse dynamics of one robot at one order.

    `function(q (order + 3, k), [pose (4, 4), twists (order + 2, 6),] wrenches (order + 1, 6)..., [preload
    (order + 1, driven),] memory (1, N), out=None)` returns a matrix; `efforts` and `drives` say which rows
    are what. Twists are spatial. Efforts of redundant drives are those of least norm, or with `preload=True`
    nearest to one. The memory holds positions of the leading joints, from which Newton's method starts, and
    the pose; both are replaced by those found. `result.item(bad)` below one says that the result is right;
    else nothing in it counts, and the memory is as it was. The first number of the last row grows without
    bounds towards singular poses, like the square of a condition number.

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
        loads: LoadPlaces = (),
        what: What = "efforts",
        *,
        preload: bool = False,
        rows: Array | None = None,
    ) -> None:
        self.closure, self.what = closure, what
        self.order = order = order - 2 if what == "joints" else order
        code = EffortCode(closure, chosen, order, loads, preload)
        told: list[tuple[str, Shape]] = [("the motion", (order + 3, len(closure.joints)))]
        if closure.leader is not None:
            told += [("the pose", (4, 4)), ("the twists", (order + 2, 6))]
        others = load_arguments(loads, order)
        if preload:
            others.append(("the preload", (order + 1, len(closure.driven))))
        if what == "joints":
            super().__init__(code, told, others, (order + 4, closure.tree.n_joints), code.joints)
            return
        result, end = (2 * order + 6, closure.n_efforts), code.efforts
        if what == "solution":
            result, end = (3 * order + 7, solution_width(closure)), code.solution
            if rows is not None and len(rows) > len(chosen):
                code.holding = LoopCode(closure, rows, order, loads)
        if fits_straight_line(closure.tree, order):
            super().__init__(code, told, others, result, end)
            return
        # what is known of the loops stays straight-line code, around the generic code of the tree
        base: BaseRepresentation | None = "spatial" if closure.tree.floating_base else None
        kernel = inverse_dynamics(closure.tree, order, KernelSpec(base=base, loads=loads))
        super().__init__(code, told, others, result, end, kernel)

    @property
    def efforts(self) -> slice:
        """Rows of the efforts by order: of a prescribed base, then of the drives."""
        return slice(0, self.order + 1)

    @property
    def batch_rows(self) -> slice:
        """Rows of the result that batches are of."""
        return self.efforts if self.what == "efforts" else super().batch_rows

    @property
    def drives(self) -> slice:
        """Rows of the positions of the driven joints, the last columns, and of their derivatives."""
        return slice(self.order + 1, 2 * self.order + 4)

    @property
    def bad(self) -> int:
        """Where the number is that must be below one."""
        after = 1 if self.what == "joints" else 2
        return (self.result[0] - after) * self.result[1]


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
        loads: LoadPlaces = (),
        prescribed: Sequence[int] | None = None,
    ) -> None:
        self.order = order
        code = AccelerationCode(closure, chosen, order, loads)
        code.prescribed = prescribed or ()
        k, moved = len(closure.joints), closure.leader is not None
        told: list[tuple[str, Shape]] = [("the state", (2, k))]
        told += [("the pose", (4, 4)), ("the twist", (1, 6))] if moved else []
        others: list[tuple[str, Shape]] = [("the efforts", (order + 1, len(closure.driven)))]
        others += [("the base wrench", (order + 1, 6))] if closure.base_given else []
        others += load_arguments(loads, order)
        result = order + 2, (k if prescribed is None else len(closure.driven)) + 6 * moved
        end = code.accelerations if prescribed is None else code.left_out
        super().__init__(code, told, others, result, end, limit=STRAIGHT_LINE_LIMIT)


class LoopProduct(LoopFunction):
    """What follows from the motion of one robot with loops, in its coordinates, up to one order.

    `function(q (order + 1, k), [pose (4, 4), twists (order, 6),] memory (1, N), out=None)` returns the rows
    of one order after the other, and a last row; kinematics of frames are a row each, else `shape` is that of
    one order.
    Coriolis matrix and momentum take one row and twist more, the regressor two. Twists are spatial.
    """

    def __init__(
        self, closure: Closure, chosen: Array, order: int, what: Product, limit: float = STRAIGHT_LINE_LIMIT
    ) -> None:
        """Trace and compile; raise TooLong beyond a limit of operations."""
        code = product_code(closure, chosen, order, what)
        told: list[tuple[str, Shape]] = [("the motion", (code.count + 1, len(closure.joints)))]
        if closure.leader is not None:
            told += [("the pose", (4, 4)), ("the twists", (code.count, 6))]
        rows, columns = code.shape
        self.shape: tuple[int, ...] = (columns,) if what in VECTORS else (rows, columns)
        orders = 1 if isinstance(what, FrameMotion) else order + 1
        result = orders * rows + 1, columns
        super().__init__(code, told, code.others, result, code.matrices, limit=limit)


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
        told: list[tuple[str, Shape]] = [("the motion of the drives", (order + 1, len(closure.driven)))]
        if twin.base_given:
            told += [("the pose", (4, 4)), ("the twists", (order, 6))]
        result = 2, code.shape[1]
        self._finds_pose = closure.platform is not None
        super().__init__(
            code,
            told,
            [],
            result,
            code.matrices,
            limit=STRAIGHT_LINE_LIMIT,
            finds_pose=self._finds_pose,
        )

    def in_lanes(self, rows: slice, sure: float = 1.0) -> MachineCode | None:
        """Return the bare C function for batches; None where a pose is found, which lanes do not remember."""
        return None if self._finds_pose else super().in_lanes(rows, sure)


@dataclass(frozen=True)
class _TreeCode:
    """Addresses of what moves all joints, and of the efforts of the tree, with the sizes of their results."""

    joints: int
    efforts: int
    motion: Shape
    result: Shape


def _driver_text(
    n_arguments: int,
    n_told: int,
    n_loads: int,
    floating: bool,
    n: int,
    step: int,
    tree: _TreeCode | None,
    end: int,
    bad: int,
    pose: str | None,
) -> str:
    """Write `void @hodyn_kernel(ptr argument..., ptr memory, ptr out)`: those told, loads, and a preload.

    The code at `step` improves `n` positions; that at `end` writes `out`. Positions, and the numbers at
    `pose` if there is one, go to the memory, from which the next call starts, if `out[bad]` is less than one.
    """
    names = [f"ptr %a{i}" for i in range(n_arguments)]
    told, loads, memory = names[:n_told], names[n_told : n_told + n_loads], names[-1]

    def call(address: int, *arguments: str) -> str:
        return f"call void inttoptr (i64 {address} to ptr)({', '.join(arguments)})"

    def copy(target: str, source: str, count: int) -> str:
        size = f"i64 {8 * count}, i1 false"
        return f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target[4:]}, ptr align 8 {source[4:]}, {size})"

    lines = [
        f"define void @hodyn_kernel({', '.join(names)}, ptr %out) {{",
        "entry:",
        f"%state = alloca double, i64 {n + 1}, align 64",
        *([f"%joints = alloca double, i64 {tree.motion[0] * tree.motion[1]}, align 64"] if tree else []),
        *([f"%tree = alloca double, i64 {tree.result[0] * tree.result[1]}, align 64"] if tree else []),
        copy("ptr %state", memory, n),
        f"%error_at = getelementptr double, ptr %state, i64 {n}",
        "br label %newton",
        "newton:",
        "%round = phi i64 [0, %entry], [%next, %newton]",
        call(step, *told[:2], "ptr %state", "ptr %state"),
        "%error = load double, ptr %error_at, align 8",
        "%next = add i64 %round, 1",
        f"%far = fcmp ogt double %error, {literal(ARRIVED)}",
        f"%early = icmp slt i64 %next, {_ITERATIONS}",
        "%again = and i1 %far, %early",
        "br i1 %again, label %newton, label %arrived",
        "arrived:",
    ]
    results: list[str] = []
    if tree:
        results = ["ptr %tree"]
        lines.append(call(tree.joints, *told, "ptr %state", "ptr %joints"))
        lines.append(call(tree.efforts, "ptr %joints", *(told[1:] if floating else ()), *loads, *results))
    lines.append(call(end, *names, "ptr %state", *results, "ptr %out"))
    remember = [copy(memory, "ptr %state", n)]
    if pose:
        remember += [f"%pose_at = getelementptr double, {memory}, i64 {n}", copy("ptr %pose_at", pose, 16)]
    lines += kept_where_good(bad, remember)
    return "\n".join(lines) + "\n"
