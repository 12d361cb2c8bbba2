"""Inverse dynamics of robots with couplings and loops, in one compiled call.

What `hodyn_ros.formulations.embedding` states in derivatives is traced here in Taylor coefficients. With D
the unknown velocities and I those of the coordinates, rows J of the loops and the efforts Q of the tree,

    J_D z_D' + J_I z_I' = 0        J_D^T lambda + S_D u = Q_D,   J_I^T lambda + S_I u = Q_I

are solved with one factorisation of J_D at the present pose: with `p = J_D^-T Q_D` and `T = J_D^-T S_D`, the
drives follow from `(S_I - J_I^T T) u = Q_I - J_I^T p`, and `lambda = p - T u`. What lower coefficients add to
higher ones stands on the right. Rows of a platform's pose count as rows of loops whose multipliers vanish.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_out, finite_array
from hodyn_ros.engine.applied import AppliedWrench
from hodyn_ros.engine.base import FloatingBase
from hodyn_ros.engine.block_system import BlockSystem
from hodyn_ros.engine.canonical import canonical_bodies
from hodyn_ros.engine.composite import Axes, Spatial, power
from hodyn_ros.engine.emit import kernel_text
from hodyn_ros.engine.fast_call import fast_call
from hodyn_ros.engine.kernel import Shape, Stack, traced
from hodyn_ros.engine.kernels import Setting, fits_straight_line, inverse_dynamics
from hodyn_ros.engine.literals import literal
from hodyn_ros.engine.llvm import compile_text
from hodyn_ros.engine.loop_series import (
    NOTHING,
    TARGET,
    Cluster,
    ClusterMotion,
    PlacedRow,
    open_by,
)
from hodyn_ros.engine.object_cache import ObjectCache
from hodyn_ros.engine.recursion import Recursion
from hodyn_ros.engine.vectors import Scalar, Vector, add, cross, dot, subtract
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.closure_rows import PLATFORM_ROWS, rows_of
from hodyn_ros.model.closure import Closure, LoopFrame
from hodyn_ros.motion import Frame
from hodyn_ros.se3 import Array

LoadPlaces = tuple[tuple[int, Frame], ...]  # body and frame of every applied wrench

_LARGEST = 1200  # bodies times (order + 2)^2 of what takes some seconds to compile
_ITERATIONS = 8  # of Newton's method; from a warm start two or three do
_ARRIVED = 1e-17  # squared error [rad, and of the robot's size] before what is then the last step
# what makes a result unusable, one and more together count as 1
_RIGID = 1e-9  # deviation of a pose from a rigid one
_CLOSED = 1e-8  # error of the positions before the last step of Newton's method
_FORCED = 1e-3  # by which rows that depend on others may be open
_JUMP = 0.5  # [rad] by which all joints together may turn between two calls, or they may change the branch
_FLAT = 1e-5  # length, without units, of what a column of the equations adds to those before it


What = Literal["efforts", "joints"]


def compiles(closure: Closure, order: int, what: What = "efforts") -> bool:
    """Whether there is a kernel.

    The pose of a floating base has to be given, no drive be redundant, and no joint follow a curve. Code
    grows with the bodies and order squared, and would take longer and longer to compile.
    """
    tree, platform = closure.tree, closure.platform
    whole = platform is not None and platform.body == 0 and len(platform.rows) == 6
    known = not tree.floating_base or closure.base_given or whole
    bodies = tree.n_bodies if closure.loops else 0
    determined = what == "joints" or closure.n_efforts == closure.n_coordinates
    plain = known and determined and not closure.followers
    return plain and bodies * (order + 2) ** 2 <= _LARGEST


class LoopKernel:
    """Inverse dynamics of one robot at one order.

    `function(q (order + 3, k), [pose (4, 4), twists (order + 2, 6),] wrenches (order + 1, 6)..., memory (1,
    N), out=None)` returns a matrix; `efforts` and `drives` say which rows are what. Twists are spatial. The
    memory holds positions of the leading joints, from which Newton's method starts, and the pose; both are
    replaced by those found. `result.item(bad)` below one says that the result is right; else nothing in it
    counts, and the memory is as it was. The first number of the last row grows without bounds towards
    singular poses, like the square of a condition number.

    With `what="joints"` the result is the motion of all joints of the tree up to derivative `order`, and a
    last row: `function(q (order + 1, k), [pose, twists (order, 6),] memory)`.
    """

    def __init__(
        self, closure: Closure, chosen: Array, order: int, loads: LoadPlaces = (), what: What = "efforts"
    ) -> None:
        self.closure, self.what = closure, what
        self.order = order = order if what == "efforts" else order - 2
        self._code = _LoopCode(closure, chosen, order, loads)
        self._alive: list[Any] = []
        n, k = len(closure.leading), len(closure.joints)
        given: list[tuple[str, Shape]] = []
        if closure.leader is not None:
            given = [("the pose", (4, 4)), ("the twists", (order + 2, 6))]
        wrenches: list[tuple[str, Shape]] = [
            (f"the wrench on body {body}", (order + 1, 6)) for body, _ in loads
        ]
        self.memory_size = n + (16 if given else 0)
        self.arguments = [
            ("the motion", (order + 3, k)),
            *given,
            *wrenches,
            ("memory", (1, self.memory_size)),
        ]
        told = [(order + 3, k), *[shape for _, shape in given]]
        shapes, state = [shape for _, shape in self.arguments], (1, n + 1)
        step = self._compiled(self._code.newton_step, [*told[:2], state])
        tree: _TreeCode | None = None
        base: Frame | None = "world" if closure.tree.floating_base else None
        if what == "joints":
            end = self._compiled(self._code.joints, [*shapes, state])
        elif fits_straight_line(closure.tree, order):
            end = self._compiled(self._code.efforts, [*shapes, state])
        else:  # what is known of the loops stays straight-line code, around the generic code of the tree
            kernel = inverse_dynamics(closure.tree, order, Setting(base=base, loads=loads))
            self._alive.append(kernel)
            joints = self._compiled(self._code.joint_motion, [*told, state])
            tree = _TreeCode(joints, kernel.code.address, (order + 3) * closure.tree.n_joints, kernel.result)
            end = self._compiled(self._code.efforts, [*shapes, state, kernel.result])
        text = _driver_text(len(shapes), len(told), base is not None, n, step, tree, end, self.bad)
        self._program = compile_text(text, "hodyn_kernel", None)
        address = self._program.address
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(shapes) + 1))(address)
        self.function = fast_call(address, shapes, self.result, self._converted)

    @property
    def efforts(self) -> slice:
        """Rows of the efforts by order: of a prescribed base, then of the drives."""
        return slice(0, self.order + 1)

    @property
    def drives(self) -> slice:
        """Rows of the positions of the driven joints, the last columns, and of their derivatives."""
        return slice(self.order + 1, 2 * self.order + 4)

    @property
    def bad(self) -> int:
        """Where the number is that must be below one."""
        if self.what == "joints":
            return (self.order + 3) * self.closure.tree.n_joints
        return (2 * self.order + 4) * self.closure.n_efforts

    @property
    def result(self) -> Shape:
        """Shape of the matrix that comes back."""
        if self.what == "joints":
            return self.order + 4, self.closure.tree.n_joints
        return 2 * self.order + 6, self.closure.n_efforts

    def _compiled(self, trace: Any, shapes: Sequence[Shape]) -> int:
        graph, outputs, _ = traced(trace, shapes)
        code = compile_text(kernel_text(graph, outputs, len(shapes)), "hodyn_kernel", ObjectCache.default())
        self._alive.append(code)
        return code.address

    def _converted(self, *arguments: ArrayLike, out: Array | None = None) -> Array:
        """Convert what is not an array yet, and explain what cannot be used."""
        if len(arguments) != len(self.arguments):
            names = [name for name, (_, columns) in self.arguments[:-1] if columns]
            raise InputError(
                f"expected {names}, found {len(arguments) - len(self.arguments) + len(names)} arguments"
            )
        arrays = [
            finite_array(name, values, shape) for (name, shape), values in zip(self.arguments, arguments)
        ]
        if out is None:
            out = np.empty(self.result)
        else:
            check_out(out, self.result)
        self._call(*[array.ctypes.data for array in arrays], out.ctypes.data)
        return out


class _LoopCode:
    """The computation over abstract scalars."""

    def __init__(self, closure: Closure, chosen: Array, order: int, loads: LoadPlaces) -> None:
        self.closure, self.order, self.loads = closure, order, loads
        tree, first = closure.tree, closure.first
        self.bodies = canonical_bodies(tree)
        self.spread: Array = closure.spread[first:, first:]
        # leading joints that are known: ratio of the coordinate to it
        self.known: dict[int, tuple[int, float]] = {}
        for place, joint in enumerate(closure.joints):
            column = int(np.flatnonzero(self.spread[joint])[0])
            self.known[column] = (place, float(self.spread[joint, column]))
        self.unknown = [c for c in range(len(closure.leading)) if c not in self.known]
        base = closure.platform is not None and closure.platform.body == 0 and tree.floating_base
        self.center = np.zeros(3) if not base else tree.placements[0][:3, 3].copy()
        self.clusters = _clusters(closure, chosen, self.unknown, whole_base=base)
        self.columns_of = [self._columns(cluster) for cluster in self.clusters]

    def newton_step(self, q: Stack, *others: Stack) -> Stack:
        """Improve the positions of the leading joints; returns them, and the squared error before."""
        *given, (state,) = others
        leading = self._leading(q[0], state)
        error: Scalar = 0.0
        for motion, columns in zip(self._motions(leading, given), self.columns_of):
            rows = motion.cluster.rows
            gaps = [open_by(row, motion.frame(row.a), motion.frame(row.b)) * (1.0 / row.size) for row in rows]
            error = error + dot(gaps, gaps)
            steps = BlockSystem(self._system(motion, columns)).solve([-gap for gap in gaps])
            for column, step in zip(columns, steps):
                leading[column] = leading[column] + step * float(self._scale[column])
        return [[*leading, error]]

    def joint_motion(self, q: Stack, *others: Stack) -> Stack:
        """Return positions and derivatives (order + 3, n) of all joints, from closed positions."""
        *given, (state,) = others
        leading = self._leading(q[0], state)
        _, _, rates = self._move(q, leading, given)
        return [self._positions(leading), *self._derivatives(rates, range(self.closure.tree.n_joints))]

    def joints(self, q: Stack, *others: Stack) -> Stack:
        """Return what `joint_motion` does, and what is wrong with it."""
        *given, (memory,), (state,) = others
        leading = self._leading(q[0], state)
        motions, systems, rates = self._move(q, leading, given)
        n = self.closure.tree.n_joints
        rows = [self._positions(leading), *self._derivatives(rates, range(n))]
        flat = sum(system.flatness for system in systems)
        bad = self._wrong(leading, state[-1], memory, motions, given, flat) + _overflow(rows)
        return [*rows, [bad, *[0.0] * (n - 1)]]

    def efforts(self, q: Stack, *others: Stack) -> Stack:
        """Return efforts, motion of the drives, and what is wrong with them, from closed positions.

        The efforts of the tree may be given at the end, as `hodyn_ros.engine.kernels` computes them.
        """
        closure = self.closure
        n_given, n_loads = 2 if closure.leader is not None else 0, len(self.loads)
        given, loads = others[:n_given], others[n_given : n_given + n_loads]
        (memory,), (state,), *computed = others[n_given + n_loads :]
        leading = self._leading(q[0], state)
        motions, systems, rates = self._move(q, leading, given)
        if computed:
            of_tree = [_taylor(row, k) for k, row in enumerate(computed[0])]
        else:
            of_tree = self._tree_efforts(leading, rates, given, loads)
        forces = _Forces(self, motions, systems)
        rows = self._scaled([forces.extend(row) for row in of_tree])
        positions = self._positions(leading)
        blank = [0.0] * (closure.n_efforts - len(closure.driven))
        drives = [[positions[j] for j in closure.driven], *self._derivatives(rates, closure.driven)]
        flat = sum(system.flatness for system in (*systems, forces.system))
        bad = self._wrong(leading, state[-1], memory, motions, given, flat) + _overflow(rows)
        rest = [0.0] * (closure.n_efforts - 1)
        return [*rows, *([*blank, *row] for row in drives), [bad, *rest], [flat, *rest]]

    def _move(
        self, q: Stack, leading: Sequence[Scalar], given: Sequence[Stack]
    ) -> tuple[list[ClusterMotion], list[BlockSystem], list[list[Scalar]]]:
        """Return the motion of all clusters with their equations, and the rates of all joints."""
        motions = self._motions(leading, given)
        systems = [BlockSystem(self._system(m, columns)) for m, columns in zip(motions, self.columns_of)]
        twists = [self._shifted(_taylor(twist, k)) for k, twist in enumerate(given[1])] if given else []
        rates: list[list[Scalar]] = [[] for _ in leading]
        for k in range(self.order + 2):
            for column, (place, ratio) in self.known.items():
                rates[column].append(q[k + 1][place] * (1.0 / (factorial(k) * ratio)))
            self._find_rates(motions, systems, rates, twists[k] if twists else NOTHING, k)
        return motions, systems, [self._spread(joint, rates) for joint in range(len(self.spread))]

    def _derivatives(self, rates: Sequence[Sequence[Scalar]], joints: Sequence[int]) -> Stack:
        return self._scaled([[rates[j][k] for j in joints] for k in range(self.order + 2)])

    @staticmethod
    def _scaled(coefficients: Stack) -> Stack:
        return [[float(factorial(k)) * value for value in row] for k, row in enumerate(coefficients)]

    def _wrong(
        self,
        leading: Sequence[Scalar],
        error: Scalar,
        memory: Sequence[Scalar],
        motions: Sequence[ClusterMotion],
        given: Sequence[Stack],
        flat: Scalar,
    ) -> Scalar:
        """Return a number that is one or more where the result does not count."""
        bad: Scalar = error * (1.0 / _CLOSED**2)
        if self.clusters:
            turning = self.closure.scale[self.closure.first :] == 1.0
            for column, now in enumerate(leading):
                if turning[column]:
                    bad = bad + (now - memory[column]) * (now - memory[column]) * (1.0 / _JUMP**2)
        bad = bad + flat * _FLAT**2
        for motion in motions:
            for row in motion.cluster.checked:
                gap = open_by(row, motion.frame(row.a), motion.frame(row.b)) * (1.0 / (row.size * _FORCED))
                bad = bad + gap * gap
        return bad + _distance_from_rigid(given[0]) * (1.0 / _RIGID**2) if given else bad

    @cached_property
    def _scale(self) -> Array:
        """What the leading joints are measured in: one radian, or the robot's size."""
        return self.closure.scale[self.closure.first :]

    def _leading(self, y: Sequence[Scalar], state: Sequence[Scalar]) -> list[Scalar]:
        leading = list(state[: len(self.closure.leading)])
        offsets = self.closure.offsets
        for column, (place, ratio) in self.known.items():
            leading[column] = (y[place] - float(offsets[self.closure.joints[place]])) * (1.0 / ratio)
        return leading

    def _positions(self, leading: Sequence[Scalar]) -> list[Scalar]:
        return [
            _weighted(row, leading) + float(offset) for row, offset in zip(self.spread, self.closure.offsets)
        ]

    def _spread(self, joint: int, rates: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        return [_weighted(self.spread[joint], [r[k] for r in rates]) for k in range(len(rates[0]))]

    def _motions(self, leading: Sequence[Scalar], given: Sequence[Stack]) -> list[ClusterMotion]:
        positions, center = self._positions(leading), self.center.tolist()
        place = self._place(given[0]) if given else None
        on_base = self.closure.tree.floating_base
        base, target = (place, None) if on_base else (None, place)
        return [ClusterMotion(c, self.bodies, center, positions, base, target) for c in self.clusters]

    def _place(self, pose: Stack) -> tuple[Axes, Vector]:
        x, y, z = ((pose[0][i], pose[1][i], pose[2][i]) for i in range(3))
        return (x, y, z), subtract((pose[0][3], pose[1][3], pose[2][3]), self.center.tolist())

    def _shifted(self, twist: Sequence[Scalar]) -> Spatial:
        """Return a spatial twist seen from the point of reference."""
        w: Vector = (twist[0], twist[1], twist[2])
        return w, add((twist[3], twist[4], twist[5]), cross(w, self.center.tolist()))

    def _columns(self, cluster: Cluster) -> list[int]:
        """Return the unknown leading joints of a cluster."""
        joints = {self.bodies[body].joint for body in cluster.bodies if self.bodies[body].joint >= 0}
        return [c for c in self.unknown if any(self.spread[j, c] for j in joints)]

    def _system(self, motion: ClusterMotion, columns: Sequence[int]) -> Stack:
        """Return the rows of the loops for the unknown joints, without units."""
        result = []
        for r, row in enumerate(motion.cluster.rows):
            entries = self.by_column(motion, r)
            result.append([entries.get(c, 0.0) * float(self._scale[c] / row.size) for c in columns])
        return result

    def by_column(self, motion: ClusterMotion, r: int) -> dict[int, Scalar]:
        """Return the present entries of a row by leading joint."""
        result: dict[int, Scalar] = {}
        for joint, entry in motion.entries(r).items():
            for c in np.flatnonzero(self.spread[joint]):
                result[int(c)] = result.get(int(c), 0.0) + entry * float(self.spread[joint, c])
        return result

    def _find_rates(
        self,
        motions: Sequence[ClusterMotion],
        systems: Sequence[BlockSystem],
        rates: list[list[Scalar]],
        given: Spatial,
        k: int,
    ) -> None:
        """Append coefficient k of the unknown velocities, and of the twists."""
        for c in self.unknown:
            rates[c].append(0.0)
        for motion, system, columns in zip(motions, systems, self.columns_of):
            joints = [self.bodies[body].joint for body in motion.screws]
            motion.extend({j: self._spread(j, rates) for j in joints}, given, given)
            gaps = [motion.residual(r) * (1.0 / row.size) for r, row in enumerate(motion.cluster.rows)]
            motion.withdraw()
            for c, rate in zip(columns, system.solve([-gap for gap in gaps])):
                rates[c][k] = rate * float(self._scale[c])
            motion.extend({j: self._spread(j, rates) for j in joints}, given, given)

    def _tree_efforts(
        self,
        leading: Sequence[Scalar],
        rates: Sequence[Sequence[Scalar]],
        given: Sequence[Stack],
        loads: Sequence[Stack],
    ) -> Stack:
        """Return coefficients of the efforts of the tree: the wrench on a floating base, then all joints."""
        tree, orders = self.closure.tree, range(self.order + 1)
        gravity = tree.gravity.tolist()
        base = FloatingBase(given[0], gravity, "world") if tree.floating_base else None
        acting = [AppliedWrench(body, frame) for body, frame in self.loads]
        recursion = Recursion(self.bodies, gravity, base, acting)
        recursion.start(self._positions(leading), [rate[0] for rate in rates], given[1][0] if base else ())
        torques = recursion.inverse_dynamics(
            [[(k + 1.0) * rate[k + 1] for rate in rates] for k in orders],
            [_taylor(given[1][k + 1], k + 1) for k in orders] if base else (),
            [[_taylor(load[k], k) for load in loads] for k in orders],
        )
        return [[*(recursion.base_wrench(k) if base else ()), *torques[k]] for k in orders]


class _Forces:
    """Efforts of the drives and multipliers of the loops, coefficient by coefficient."""

    def __init__(
        self, code: _LoopCode, motions: Sequence[ClusterMotion], systems: Sequence[BlockSystem]
    ) -> None:
        self.code, self.motions, self.systems = code, motions, systems
        closure = code.closure
        self.multipliers: list[list[list[Scalar]]] = [[] for _ in motions]  # by cluster and coefficient
        self.carried: list[list[dict[int, Spatial]]] = [[] for _ in motions]  # wrenches by body
        self._entries = [
            [code.by_column(motion, r) for r in range(len(motion.cluster.rows))] for motion in motions
        ]
        drives = code.spread[list(closure.driven)]
        self._sizes = np.linalg.norm(drives * code._scale, axis=1).tolist()  # what drives are measured in
        self._against = [  # T by cluster and drive
            [self._solve(c, [float(drive[column]) for column in columns]) for drive in drives]
            for c, columns in enumerate(code.columns_of)
        ]
        rows = []
        for column in sorted(code.known):
            rows.append(
                [
                    float(drive[column]) - self._along(column, [found[d] for found in self._against])
                    for d, drive in enumerate(drives)
                ]
            )
        # a platform's pose as coordinates: as rows of clusters, or of the base
        for c, motion in enumerate(motions):
            for r, row in enumerate(motion.cluster.rows):
                if row.loop < 0:
                    rows.append([found[r] for found in self._against[c]])
        if self._moves_freely:
            balances = [self._on_base([found[d] for found in self._against]) for d in range(len(drives))]
            rows += [[-balance[i] for balance in balances] for i in range(6)]
        self._weights = self._row_weights(len(rows))
        self.system = BlockSystem(
            [
                [w * x * (1.0 / size) for x, size in zip(row, self._sizes)]
                for w, row in zip(self._weights, rows)
            ]
        )

    @property
    def _moves_freely(self) -> bool:
        """Whether nothing but limbs holds the base, a platform."""
        closure = self.code.closure
        return closure.tree.floating_base and not closure.base_given

    def _row_weights(self, count: int) -> list[float]:
        code = self.code
        weights = [float(code._scale[column]) for column in sorted(code.known)]
        for motion in self.motions:
            weights += [row.size for row in motion.cluster.rows if row.loop < 0]
        if self._moves_freely:
            weights += [1.0] * 3 + [code.closure.size] * 3
        assert len(weights) == count
        return weights

    def _solve(self, cluster: int, right: Sequence[Scalar]) -> list[Scalar]:
        """Return the multipliers of a cluster's rows that balance efforts on its unknown joints."""
        code, rows = self.code, self.motions[cluster].cluster.rows
        scaled = [x * float(code._scale[c]) for x, c in zip(right, code.columns_of[cluster])]
        return [y * (1.0 / row.size) for y, row in zip(self.systems[cluster].solve_transposed(scaled), rows)]

    def _along(self, column: int, multipliers: Sequence[Sequence[Scalar]]) -> Scalar:
        """Return the effort of multipliers on a known joint."""
        result: Scalar = 0.0
        for entries, found in zip(self._entries, multipliers):
            for entry, value in zip(entries, found):
                result = result + entry.get(column, 0.0) * value
        return result

    def _on_base(self, multipliers: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Return the wrench of multipliers on the base, about the point of reference."""
        total = [0.0] * 6
        for motion, found in zip(self.motions, multipliers):
            loads = motion.loads([found], 0, 0)
            if 0 in loads and self.code.bodies[0].joint < 0:
                total = [a + b for a, b in zip(total, [*loads[0][0], *loads[0][1]])]
        return total

    def extend(self, of_tree: Sequence[Scalar]) -> list[Scalar]:
        """Return the next coefficient of all efforts, from those of the tree."""
        code, k = self.code, len(self.carried[0]) if self.carried else 0
        center, first = code.center.tolist(), code.closure.first
        wrench, torques = [*of_tree[:first], *[0.0] * (6 - first)], of_tree[first:]
        past = [
            motion.loads([*found, [0.0] * len(motion.cluster.rows)], k, 1)
            for motion, found in zip(self.motions, self.multipliers)
        ]
        left = list(torques)
        moment, force = subtract(wrench[:3], cross(center, wrench[3:])), (wrench[3], wrench[4], wrench[5])
        for motion, carried, lower in zip(self.motions, self.carried, past):
            for body, screws in motion.screws.items():
                joint = code.bodies[body].joint
                left[joint] = left[joint] - power(screws[0], lower[body])
                for i in range(1, k + 1):
                    left[joint] = left[joint] - power(screws[i], carried[k - i][body])
            if 0 in lower and code.bodies[0].joint < 0:
                moment, force = subtract(moment, lower[0][0]), subtract(force, lower[0][1])
        by_column = [_weighted(code.spread[:, c], left) for c in range(code.spread.shape[1])]
        parts = [
            self._solve(c, [by_column[column] for column in columns])
            for c, columns in enumerate(code.columns_of)
        ]
        right = [by_column[column] - self._along(column, parts) for column in sorted(code.known)]
        for motion, part in zip(self.motions, parts):
            right += [part[r] for r, row in enumerate(motion.cluster.rows) if row.loop < 0]
        if self._moves_freely:
            right += [a - b for a, b in zip([*moment, *force], self._on_base(parts))]
        sized = self.system.solve([w * x for w, x in zip(self._weights, right)])
        u = [x * (1.0 / size) for x, size in zip(sized, self._sizes)]
        for c, (motion, part) in enumerate(zip(self.motions, parts)):
            multipliers = [
                0.0 if row.loop < 0 else value - dot([against[r] for against in self._against[c]], u)
                for r, (row, value) in enumerate(zip(motion.cluster.rows, part))
            ]
            self.multipliers[c].append(multipliers)
            self.carried[c].append(motion.loads(self.multipliers[c], k, 0))
        if not code.closure.base_given:
            return u
        held = self._on_base([found[k] for found in self.multipliers])
        rest = [a - b for a, b in zip([*moment, *force], held)]
        return [*add((rest[0], rest[1], rest[2]), cross(center, rest[3:])), *rest[3:], *u]


def _clusters(closure: Closure, chosen: Array, unknown: Sequence[int], *, whole_base: bool) -> list[Cluster]:
    """Put rows together that share unknown joints."""
    tree, first = closure.tree, closure.first
    flat: list[PlacedRow] = []
    for number, loop in enumerate(closure.loops):
        for row in rows_of(loop):
            size = closure.size if row.what in ("point", "distance") else 1.0
            flat.append(PlacedRow(row, loop.a, loop.b, loop.length, size, number))
    kept = [flat[i] for i in chosen]
    rest = [row for i, row in enumerate(flat) if i not in set(chosen.tolist())]
    if closure.platform is not None and not whole_base:
        target = LoopFrame(TARGET, np.zeros(3), np.eye(3))
        origin = LoopFrame(closure.platform.body, np.zeros(3), np.eye(3))
        for name in closure.platform.rows:
            row = PLATFORM_ROWS[name]
            size = closure.size if row.what == "point" else 1.0
            kept.append(PlacedRow(row, target, origin, 0.0, size, -1))

    def path(body: int) -> list[int]:
        way = []
        while body >= 0:
            way.append(body)
            body = tree.parents[body]
        return way

    def columns(row: PlacedRow) -> set[int]:
        joints = [tree.joint_of(b) for b in set(path(row.a.body)) ^ set(path(row.b.body)) if b >= first_body]
        used = {int(c) for j in joints for c in np.flatnonzero(closure.spread[first + j, first:])}
        return used & set(unknown)

    first_body = tree.first_jointed_body
    groups: list[tuple[set[int], list[PlacedRow]]] = []
    for row in kept:
        used, together = columns(row), [row]
        for group in [group for group in groups if group[0] & used]:
            groups.remove(group)
            used, together = used | group[0], group[1] + together
        groups.append((used, together))
    result = []
    for _, rows in groups:
        loops = {row.loop for row in rows}
        paths = [path(frame.body) for row in rows for frame in (row.a, row.b)]
        common = set(paths[0]).intersection(*paths[1:])
        root = max(common, default=-1)
        bodies = sorted({body for way in paths for body in way} - set(path(root)))
        checked = tuple(row for row in rest if row.loop in loops)
        result.append(Cluster(root, tuple(bodies), tuple(rows), checked))
    return result


def _taylor(values: Sequence[Scalar], k: int) -> list[Scalar]:
    return [value * (1.0 / factorial(k)) for value in values]


def _weighted(weights: Array, values: Sequence[Scalar]) -> Scalar:
    result: Scalar = 0.0
    for weight, value in zip(weights.tolist(), values):
        if weight:
            result = result + value * weight
    return result


def _distance_from_rigid(pose: Stack) -> Scalar:
    """Return the squared distance of `R^T R` from the identity; a reflection is far from every other pose."""
    result: Scalar = 0.0
    for i in range(3):
        for j in range(i + 1):
            entry = dot([row[i] for row in pose[:3]], [row[j] for row in pose[:3]]) - float(i == j)
            result = result + entry * entry
    return result


def _overflow(values: Stack) -> Scalar:
    """Return zero, but infinity or NaN where one of the values is."""
    result: Scalar = 0.0
    for row in values:
        for value in row:
            small = value * 1e-200
            result = result + small * small
    return result


@dataclass(frozen=True)
class _TreeCode:
    """Addresses of what moves all joints, and of the efforts of the tree, with the sizes of their results."""

    joints: int
    efforts: int
    n_joints: int
    n_efforts: Shape


def _driver_text(
    n_arguments: int,
    n_told: int,
    floating: bool,
    n: int,
    step: int,
    tree: _TreeCode | None,
    end: int,
    bad: int,
) -> str:
    """Write `void @hodyn_kernel(ptr q, [ptr pose, ptr twists,] ptr load..., ptr memory, ptr out)`.

    The code at `step` improves `n` positions; that at `end` writes `out`. Positions and pose go to the
    memory, from which the next call starts, where `out[bad]` is less than one.
    """
    names = [f"ptr %a{i}" for i in range(n_arguments)]
    told, loads, memory = names[:n_told], names[n_told:-1], names[-1]

    def call(address: int, *arguments: str) -> str:
        return f"call void inttoptr (i64 {address} to ptr)({', '.join(arguments)})"

    def copy(target: str, source: str, count: int) -> str:
        size = f"i64 {8 * count}, i1 false"
        return f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {target[4:]}, ptr align 8 {source[4:]}, {size})"

    lines = [
        f"define void @hodyn_kernel({', '.join(names)}, ptr %out) {{",
        "entry:",
        f"%state = alloca double, i64 {n + 1}, align 64",
        *([f"%joints = alloca double, i64 {tree.n_joints}, align 64"] if tree else []),
        *([f"%tree = alloca double, i64 {tree.n_efforts[0] * tree.n_efforts[1]}, align 64"] if tree else []),
        copy("ptr %state", memory, n),
        f"%error_at = getelementptr double, ptr %state, i64 {n}",
        "br label %newton",
        "newton:",
        "%round = phi i64 [0, %entry], [%next, %newton]",
        call(step, *told[:2], "ptr %state", "ptr %state"),
        "%error = load double, ptr %error_at, align 8",
        "%next = add i64 %round, 1",
        f"%far = fcmp ogt double %error, {literal(_ARRIVED)}",
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
    lines += [
        call(end, *names, "ptr %state", *results, "ptr %out"),
        f"%bad_at = getelementptr double, ptr %out, i64 {bad}",
        "%bad = load double, ptr %bad_at, align 8",
        f"%good = fcmp olt double %bad, {literal(1.0)}",
        "br i1 %good, label %remember, label %done",
        "remember:",
        copy(memory, "ptr %state", n),
    ]
    if len(told) > 1:
        lines += [
            f"%pose_at = getelementptr double, {memory}, i64 {n}",
            copy("ptr %pose_at", told[1], 16),
        ]
    lines += [
        "br label %done",
        "done:",
        "ret void",
        "}",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ]
    return "\n".join(lines) + "\n"
