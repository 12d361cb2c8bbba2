"""Changes of the dynamics of robots with couplings and loops, over traced scalars.

The code of efforts and of accelerations is differentiated as it was traced. Positions of joints that follow
the coordinates change as the loops let them, by the implicit function theorem; platforms and bases by small
body-fixed displacements, and by derivatives of their body-fixed twist. Several directions are computed at a
time, in lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hodyn_ros.codegen.emit import kernel_text, lane_function_text
from hodyn_ros.codegen.kernel import STRAIGHT_LINE_LIMIT, Shape, Stack, TooLong, traced, uncompiled
from hodyn_ros.codegen.llvm import Facts, Module
from hodyn_ros.codegen.processor import lanes
from hodyn_ros.codegen.program import Code, Copy, Index, Program, Run, Statement, View, arrays
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.codegen.tracer import Graph, Split, Traced, split
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.loops.loop_accelerations import AccelerationCode, Step
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_matrices import SumsCode, base_velocity
from hodyn_ros.engine.loops.loop_motion import Judged, LoopCode, Velocity
from hodyn_ros.engine.loops.loop_series import ClusterMotion
from hodyn_ros.engine.matrix_kernels import DYNAMIC_MATRICES
from hodyn_ros.engine.second_partials import changed
from hodyn_ros.engine.series.dual import Dual, value_of
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import NOTHING, plus, scaled
from hodyn_ros.engine.series.vectors import Scalar, cross, dot, from_taylor, halves, taylor, to_derivatives
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

Differentiated = Literal["efforts", "accelerations", "matrices"]


class Changing(LoopCode):
    """A law whose results are derivatives of those of another; what changes of bases is body-fixed."""

    limit = STRAIGHT_LINE_LIMIT
    judged: Judged | None = None
    n_last = 1
    batch_rows = LoopCode.batch_rows
    generic_tree = LoopCode.generic_tree


class PartialCode(Changing):
    """Partial derivatives of inverse or forward dynamics at one order, or of M, C and g.

    Arguments are those of the law that is differentiated. `changes` of a result are by order (order + 1,
    rows, directions). Rows are those of the efforts, or of the accelerations of the coordinates and then of
    the drives, or the entries of the matrices; directions are those of the motion that is taken, by
    derivative, and behind those of a state the efforts by derivative.

    On numbers the same code is computed on numbers that carry their derivatives (`Dual`).
    """

    has_lanes = False  # lanes are directions

    def _lay_out(self, orders: int, rows: int, directions: int) -> None:
        self.orders, self.extent = orders, (rows, directions)
        self.n_parts = -(-directions // lanes())
        self.result = self.n_parts * rows + 1, lanes()

    def changes(self, table: Array) -> Array:
        """Return the changes (..., order + 1, rows, directions) that results, or their `batch_rows`, hold."""
        (rows, directions), batch = self.extent, table.shape[:-2]
        result = table[..., : self.n_parts * rows, :]
        parts: Array = result.reshape(*batch, self.n_parts, rows, -1).swapaxes(-3, -2)
        return parts.reshape(*batch, self.orders, rows // self.orders, -1)[..., :directions]

    def uncompiled_end(self, shapes: Sequence[Shape]) -> Code:
        """Return what computes all directions at once."""
        return uncompiled(self._with_duals, shapes)

    def _with_duals(self, *stacks: Stack) -> Stack:
        """Return the result of a call as compiled code lays it out, in all directions at once."""
        (rows, directions), width = self.extent, lanes()
        *result, wrong = self.end(*stacks, [list(np.eye(directions))])
        changes = np.zeros((rows, self.n_parts * width))
        changes[:, :directions] = [x for row in result for x in row]
        parts: Stack = changes.reshape(rows, self.n_parts, width).swapaxes(0, 1).reshape(-1, width).tolist()
        return [*parts, [wrong[0]] * width]

    def compiled_end(self, shapes: Sequence[Shape]) -> Code:
        """Compile what changes nothing once, and what follows from changes in all directions."""
        (rows, directions), width = self.extent, lanes()
        parts = _Parts(self.end, (*shapes, (1, directions)), rows)
        once = Module(parts.still, self.limit)
        operations, n, n_wrong = once.facts
        if operations > self.limit:
            raise TooLong
        still, each = once.compile("hodyn_kernel"), Module(parts.moving, width).compile("hodyn_lanes")
        units = _side_by_side(directions, width)
        passed, out, nothing = arrays(f"a{i}" for i in range(len(shapes))), View("out"), Index({})
        fixed, changed, size = View("kept"), View("changes"), rows * width
        body: list[Statement] = [
            Run(Code("hodyn_kernel", still.address, alive=still), [*passed, fixed]),
            Copy(out.at(self.n_parts * size), fixed.at(n), n_wrong),
        ]
        in_lanes = Code("hodyn_lanes", each.address, alive=each)
        for part in range(self.n_parts):
            unit = View("units").at(part * directions * width)
            body += [
                Run(in_lanes, [fixed, nothing, unit, nothing, nothing, nothing, out, changed]),
                Copy(out.at(part * size), changed, size),
            ]
        local = {"kept": n + n_wrong, "changes": size}
        whole = compile_program(Program("hodyn_kernel", [*passed, out], local, body, {"units": units}))
        return Code("hodyn_kernel", whole.address, alive=whole)


@dataclass(frozen=True, eq=False)
class _Parts:
    """A trace whose last argument are directions, taken apart: what follows from them, and all else.

    The first `rows` numbers of its result follow from them.
    """

    trace: Callable[..., Stack]
    shapes: tuple[Shape, ...]
    rows: int

    @cached_property
    def _whole(self) -> tuple[Graph, list[Any]]:
        graph, outputs, _ = traced(self.trace, self.shapes)
        return graph, outputs

    @cached_property
    def _split(self) -> Split:
        return split(*self._whole, len(self.shapes) - 1)

    def still(self, limit: float) -> tuple[str, Facts]:
        """Write what directions do not change, then what is no change; nothing beyond a limit of operations.

        Facts are the operations of the whole trace, and how many numbers there are of the two.
        """
        graph, outputs = self._whole
        operations, rest = graph.count_operations(outputs), outputs[self.rows :]
        if operations > limit:
            return "", (operations, 0, 0)
        kept = self._split.kept
        text = kernel_text(graph, [*kept, *rest], len(self.shapes) - 1)
        return text, (operations, len(kept), len(rest))

    def moving(self, width: int) -> tuple[str, Facts]:
        """Write the changes, in so many directions at a time."""
        changes = self._split.outputs[: self.rows]
        return lane_function_text(self._split.graph, changes, [0, None], width, [], changes), ()


class MotionChange:
    """A motion that changes: `q`, `leader` pose and spatial twists with their series `base`, and `state`.

    `change`: how the coordinates and their derivatives change. Of `traced` scalars changes are noted
    `by_node`. Numbers come to carry theirs, and `change` has arrays of those in all directions.
    """

    def __init__(
        self, code: LoopCode, q: Stack, leader: Sequence[Stack], state: Stack, change: Stack
    ) -> None:
        closure = code.closure
        first, n = closure.n_base, len(closure.joints)
        self._joints = [row[first : first + n] for row in change]
        self._rows = [row[:6] if first else row[n:] for row in change]
        self.traced, self._directions = isinstance(state[0][0], Traced), np.shape(change[0][0])
        self._ways: list[list[float]] = closure.directions.tolist()
        self.by_node: dict[int, Scalar] = {}
        self.q = self.add(q, self._joints)
        self.base: FloatingBase | None = None
        self.leader, self._follows = list(leader), False
        leading, still = code.leading_positions(q[0], state[0]), None
        if leader:
            still = _series(leader)
            if isinstance(code, AccelerationCode) and closure.drifts:
                self._follows = True
                still = _as_it_moves(code, leading, q[1], leader[0], still)
        self.state = [self._closed(code, leading, state[0], still)]
        if still is not None:
            self._move(code, leader[0], still)

    def efforts(self, code: EffortCode, loads: Sequence[Stack], memory: Stack) -> Stack:
        """Return what `EffortCode.end` does, the wrench on a prescribed base body-fixed."""
        table = EffortCode.end(code, self.q, *self.leader, *loads, memory, self.state)
        if not code.closure.base_prescribed or self.base is None:
            return table
        orders = code.order + 1
        wrenches = self.base.wrenches_to_body([row[:6] for row in table[:orders]])
        return [*([*wrench, *row[6:]] for wrench, row in zip(wrenches, table)), *table[orders:]]

    def moving(self, step: Step) -> FloatingBase | None:
        """Return the motion of platform or base up to its twist, which accelerations extend."""
        if self.base is None:
            return None
        now, base = step.leader_twist(0), self.base
        if self._follows:  # what of the twist is no coordinate changes with the pose
            base = FloatingBase(self.leader[0], (0.0, 0.0, 0.0), "spatial")
            base.extend(now)
        else:
            base.remember(*halves(now))
        return base

    def add(self, values: Stack, changes: Stack) -> Stack:
        """Let scalars change; returns what is to be computed with in their place."""
        if not self.traced:
            return [[Dual(x, change) for x, change in zip(row, new)] for row, new in zip(values, changes)]
        for row, new in zip(values, changes):
            self.by_node.update((x.number, -change if x.negative else change) for x, change in zip(row, new))
        return values

    def of(self, table: Stack) -> Stack:
        """Return how results change."""
        if not self.traced:
            still = np.zeros(self._directions)
            return [[x.change + still if isinstance(x, Dual) else still for x in row] for row in table]
        return changed(table, self.by_node)

    def _turned(self, row: Sequence[Scalar]) -> list[Scalar]:
        """Return the change of platform or base from that of its rows, body-fixed."""
        return [dot(way, row) for way in self._ways]

    def _move(self, code: LoopCode, pose: Stack, still: FloatingBase) -> None:
        """Change the pose and the body-fixed twists of a platform or base.

        It is displaced, unless its pose follows from the joints.
        """
        turn, *rates = [self._turned(row) for row in self._rows]
        if self._follows:
            leading = code.leading_positions(self.q[0], self.state[0])
            pose = _pose_of_leader(code, code.motions(leading, [pose]))
        else:
            turned = [[*cross(row[:3], turn[:3]), dot(row[:3], turn[3:])] for row in pose[:3]]
            pose = [*self.add(pose[:3], turned), pose[3]]
        base = FloatingBase(pose, (0.0, 0.0, 0.0), "body_fixed")
        for k, rate in enumerate(rates):
            twist = [*still.angular[k], *still.velocity[k]]
            base.extend(self.add([twist], [taylor(rate, k)])[0])
        base.frame, self.base = "spatial", base
        self.leader = [pose, to_derivatives([base.twist(k) for k in range(len(rates))])]

    def _closed(
        self,
        code: LoopCode,
        leading: Sequence[Scalar],
        state: Sequence[Scalar],
        still: FloatingBase | None,
    ) -> list[Scalar]:
        """Let the joints that are not coordinates follow; returns their positions."""
        motions = code.solved_motions(leading, [] if still is None else [still.pose])
        known = {
            column: self._joints[0][place] * (1.0 / ratio) for column, (place, ratio) in code.known.items()
        }
        twist = NOTHING
        if still is not None:
            for i, x in enumerate(self._turned(self._rows[0])):
                twist = plus(twist, scaled(x, base_velocity(code, still, i, 0)))
        velocity = Velocity(code, motions)
        velocity.extend(known, (), twist, twist)
        result = list(state)
        changes = [velocity.leading[c][0] for c in code.unknown]
        moved = self.add([[state[c] for c in code.unknown]], [changes])[0]
        for c, x in zip(code.unknown, moved):
            result[c] = x
        return result


def _series(leader: Sequence[Stack]) -> FloatingBase:
    """Return the series of a motion from a pose and spatial twists."""
    base = FloatingBase(leader[0], (0.0, 0.0, 0.0), "spatial")
    for k, row in enumerate(leader[1]):
        base.extend(taylor(row, k))
    return base


def _as_it_moves(
    code: AccelerationCode,
    leading: Sequence[Scalar],
    velocities: Sequence[Scalar],
    pose: Stack,
    base: FloatingBase,
) -> FloatingBase:
    """Return pose and twist that a platform has where components of those given do not count."""
    step = Step(code, leading, velocities, [pose, [base.twist(0)]])
    return _series([_pose_of_leader(code, step.motions), [step.leader_twist(0)]])


def _pose_of_leader(code: LoopCode, motions: Sequence[ClusterMotion]) -> Stack:
    """Return the pose of a platform as its joints have it."""
    leader = code.closure.leader
    assert leader is not None
    motion = next(motion for motion in motions if leader in motion.twists)
    on_body = motion.frame(Frame.of_body(leader))
    columns = [*(axis[0] for axis in on_body.axes), on_body.point[0]]
    return [*([column[i] for column in columns] for i in range(3)), [0.0, 0.0, 0.0, 1.0]]


class EffortPartials(PartialCode, EffortCode):
    """Those of the efforts."""

    def __init__(self, closure: Closure, chosen: Array, order: int, loads: Loads = ()) -> None:
        super().__init__(closure, chosen, order, loads, from_ground=False)
        self._lay_out(order + 1, (order + 1) * closure.n_efforts, (order + 3) * closure.n_coordinates)

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the changes from spatial twists, what is wrong, and how near to a singular pose it is."""
        leader, (*loads, memory, state, (units,)) = self.parted(stacks)
        changed = MotionChange(self, q, leader, state, _rows(units, self.closure.n_coordinates))
        *_, defect, singularity = table = changed.efforts(self, loads, memory)
        return [*changed.of(table[: self.order + 1]), [value_of(row[0]) for row in (defect, singularity)]]


class MatrixPartials(PartialCode, SumsCode):
    """Those of M, C and g."""

    def __init__(self, closure: Closure, chosen: Array, order: int, loads: Loads = ()) -> None:
        super().__init__(closure, chosen, order, DYNAMIC_MATRICES, ("2 m + 1", "m"))
        rows, columns = self.size
        self._lay_out(order + 1, (order + 1) * rows * columns, (self.count + 1) * closure.n_coordinates)

    @property
    def smoothness(self) -> int:
        """One derivative more than the matrices take, as what follows a curve changes along it."""
        return self.terms + 1

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the changes from spatial twists, and what is wrong."""
        leader, (memory, state, (units,)) = self.parted(stacks)
        changed = MotionChange(self, q, leader, state, _rows(units, self.closure.n_coordinates))
        table = super().end(changed.q, *changed.leader, memory, changed.state)
        return [*changed.of(table[:-1]), [value_of(table[-1][0])]]


class AccelerationPartials(PartialCode, AccelerationCode):
    """Those of the accelerations of the coordinates, and then of the drives."""

    def __init__(self, closure: Closure, chosen: Array, order: int, loads: Loads = ()) -> None:
        super().__init__(closure, chosen, order, loads, from_ground=False)
        c, e = closure.n_coordinates, closure.n_efforts
        self._lay_out(order + 1, (order + 1) * (c + len(closure.driven)), 2 * c + (order + 1) * e)

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return the changes of accelerations from spatial twists, and what is wrong.

        Changes of the wrench on a base are body-fixed, as those of its motion are.
        """
        closure, c, first = self.closure, self.closure.n_coordinates, self.closure.n_base
        leader, (*arguments, memory, state, (units,)) = self.parted(stacks)
        changed = MotionChange(self, q, leader, state, _rows(units[: 2 * c], c))
        pushed = _rows(units[2 * c :], closure.n_efforts)
        if first and not changed.traced:
            base = _series(leader)
            for k, row in enumerate(self.steps(q, *leader, *arguments, state)[1], 1):
                base.extend(taylor(row[:6], k))
            arguments[1] = changed.add(arguments[1], base.wrenches_to_world(pushed))
        arguments[0] = changed.add(arguments[0], [row[first:] for row in pushed])
        step, result = self.steps(changed.q, *changed.leader, *arguments, changed.state)
        table = self._table(step, result, changed.moving(step))
        if first and changed.traced and changed.base is not None:
            changed.add(arguments[1], changed.base.wrenches_to_world(pushed))
        defect = self.defect(step, changed.leader, result, memory, changed.state[0])
        return [*changed.of(table), [value_of(defect)]]

    def _table(self, step: Step, result: Stack, base: FloatingBase | None) -> Stack:
        """Return accelerations of the coordinates, and of the driven joints, by order."""
        rates = [from_taylor(step.velocities(k), k) for k in range(1, self.order + 2)]
        drives = [[row[j] for j in self.closure.driven] for row in rates]
        if base is None:
            return [[*a, *b] for a, b in zip(result, drives)]
        rows = []
        for k, (row, driven) in enumerate(zip(result, drives), 1):
            base.extend(taylor(row[:6], k))
            twist = from_taylor([*base.angular[k], *base.velocity[k]], k)
            of_rows = [dot(way, twist) for way in self.closure.directions.T.tolist()]
            parts = (of_rows, row[6:]) if self.closure.base_prescribed else (row[6:], of_rows)
            rows.append([*parts[0], *parts[1], *driven])
        return rows


PARTIALS: dict[Differentiated, Callable[..., PartialCode]] = {
    "efforts": EffortPartials,
    "accelerations": AccelerationPartials,
    "matrices": MatrixPartials,
}


def _side_by_side(directions: int, width: int) -> Array:
    """Return unit vectors (parts, directions, width), those of a part side by side, as code loads them."""
    parts = -(-directions // width)
    units = np.zeros((parts * width, directions))
    units[:directions] = np.eye(directions)
    space = np.empty(units.size + 8)
    start = -space.ctypes.data % 64 // 8
    result = space[start : start + units.size].reshape(parts, directions, width)
    result[:] = units.reshape(parts, width, directions).swapaxes(1, 2)
    return result


def _rows(values: Sequence[Scalar], columns: int) -> Stack:
    return [list(values[i : i + columns]) for i in range(0, len(values), columns)]
