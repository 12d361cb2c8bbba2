"""Efforts of the drives of a robot with couplings and loops, over abstract scalars.

What `hodyn_ros.formulations.embedding` states in derivatives is traced here in Taylor coefficients. With D
the unknown velocities and I those of the coordinates, rows J of the loops and the efforts Q of the tree,

    J_D z_D' + J_I z_I' = 0        J_D^T lambda + S_D u = Q_D,   J_I^T lambda + S_I u = Q_I

are solved with one factorisation of J_D at the present pose: with `p = J_D^-T Q_D` and `T = J_D^-T S_D`, the
drives follow from `A u = b`, `A = S_I - J_I^T T` and `b = Q_I - J_I^T p`, and `lambda = p - T u`. What lower
coefficients add to higher ones stands on the right. Rows of a platform's pose count as rows of loops whose
multipliers vanish.

Efforts of redundant drives differ from their preload by `S^T m`, where m is a velocity that the loops allow,
`J m = 0`, at every time: with its part in I it is `A^T m_I` at the present pose, and what else lower
coefficients of m add follows as those of the unknown velocities do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.codegen.kernel import Function, Stack
from hodyn_ros.engine.kernel_spec import KernelSpec, Loads, load_arguments
from hodyn_ros.engine.kernels import fits_straight_line, inverse_dynamics
from hodyn_ros.engine.loops.loop_motion import ClosingMotion, Judged, LoopCode, Velocity
from hodyn_ros.engine.loops.loop_multipliers import HoldingMultipliers, Multipliers, loop_loads
from hodyn_ros.engine.loops.loop_series import weighted
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.spatial import NOTHING
from hodyn_ros.engine.series.validity import overflow
from hodyn_ros.engine.series.vectors import Scalar, add, cross, dot, halves, taylor, to_derivatives
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure


class _Computed(NamedTuple):
    """What a motion and its efforts were computed as, and what from."""

    leading: Sequence[Scalar]  # positions
    leader: Sequence[Stack]
    rates: Sequence[Sequence[Scalar]]  # of all joints, Taylor coefficients
    forces: Forces
    of_tree: Stack  # efforts of the tree, Taylor coefficients
    efforts: Stack  # (order + 1, efforts)
    joints: Stack  # (order + 3, n)
    defect: Scalar
    singularity: Scalar


def padded(rows: Stack, width: int) -> Stack:
    """Return rows filled up with zeros."""
    return [[*row, *[0.0] * (width - len(row))] for row in rows]


class EffortCode(LoopCode):
    """Efforts from the motion of the coordinates.

    `function(q (order + 3, k), [pose (4, 4), twists (order + 2, 6),] wrenches (order + 1, 6)..., [preload
    (order + 1, driven),] memory)` returns the efforts by order, of a prescribed base, then of the drives; the
    motion of the driven joints (order + 3, driven) in its last columns; and two rows more. Efforts of
    redundant drives are those of least norm, or with `preload` nearest to one. The first number of the last
    row grows without bounds towards singular poses, like the square of a condition number.
    """

    n_last = 2
    judged: Judged | None = "efforts"
    is_held = True

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        *,
        preload: bool = False,
        from_ground: bool = True,
    ) -> None:
        super().__init__(closure, chosen, order, loads, from_ground=from_ground)
        self.preloaded = preload
        self.stacks = load_arguments(loads, order)
        if preload:
            self.stacks.append(("the preload", (order + 1, len(closure.driven))))
        self.result = 2 * order + 6, closure.n_efforts

    @property
    def batch_rows(self) -> slice:
        """Those of the efforts by order: of a prescribed base, then of the drives."""
        return slice(0, self.order + 1)

    def parts(self, table: Array) -> list[Array]:
        """Return the wrench on a prescribed base, and the efforts."""
        efforts = table[: self.order + 1]
        return [efforts[:, :6], efforts[:, 6:]] if self.closure.base_prescribed else [efforts]

    def generic_tree(self) -> Function | None:
        """Return that of the tree: what is known of the loops stays straight-line code around it."""
        tree = self.closure.tree
        if self.on_limbs or fits_straight_line(tree, self.order):
            return None
        return inverse_dynamics(tree, self.order, KernelSpec.of(tree, self.loads))

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return efforts, motion of the drives, and what is wrong with them, from closed positions.

        The efforts of the tree may be given at the end, as `hodyn_ros.engine.kernels` computes them.
        """
        result = self._computed(q, stacks)
        closure = self.closure
        blank = [0.0] * (closure.n_efforts - len(closure.driven))
        driven = ([row[j] for j in closure.driven] for row in result.joints)
        rows = [*result.efforts, *([*blank, *row] for row in driven)]
        return [*rows, *padded([[result.defect], [result.singularity]], closure.n_efforts)]

    def _computed(self, q: Stack, stacks: Sequence[Stack]) -> _Computed:
        """Compute from arguments as of `efforts`."""
        leader, rest = self.parted(stacks)
        loads, rest = rest[: len(self.loads)], list(rest[len(self.loads) :])
        preload = [taylor(row, k) for k, row in enumerate(rest.pop(0))] if self.preloaded else None
        (memory,), (state,), *computed = rest
        leading = self.leading_positions(q[0], state)
        motions, rates = self.move(q, leading, leader)
        if computed:
            of_tree = [taylor(row, k) for k, row in enumerate(computed[0])]
        else:
            of_tree = self._tree_efforts(leading, rates, leader, loads)
        forces = Forces(self, motions, preload)
        rows = to_derivatives([forces.extend(row) for row in of_tree])
        joints = [self.positions(leading), *self.derivatives(rates, range(self.closure.tree.n_joints))]
        singularity = sum(map(self.singularity_of, motions)) + forces.system.singularity
        defect = self.wrong(leading, state[-1], memory, motions, leader, singularity) + overflow(rows)
        return _Computed(leading, leader, rates, forces, of_tree, rows, joints, defect, singularity)

    def _tree_efforts(
        self,
        leading: Sequence[Scalar],
        rates: Sequence[Sequence[Scalar]],
        leader: Sequence[Stack],
        loads: Sequence[Stack],
    ) -> Stack:
        """Return coefficients of the efforts of the tree: the wrench on a floating base, then all joints."""
        tree, orders = self.closure.tree, range(self.order + 1)
        gravity = tree.gravity.tolist()
        base = FloatingBase(leader[0], gravity, "spatial") if tree.floating_base else None
        acting = [AppliedWrench(body, frame) for body, frame in self.loads]
        recursion = Recursion(self.bodies, gravity, base, acting)
        recursion.start(self.positions(leading), [rate[0] for rate in rates], leader[1][0] if base else ())
        torques = recursion.inverse_dynamics(
            [[(k + 1.0) * rate[k + 1] for rate in rates] for k in orders],
            [taylor(leader[1][k + 1], k + 1) for k in orders] if base else (),
            [[taylor(load[k], k) for load in loads] for k in orders],
        )
        return [[*(recursion.base_wrench(k) if base else ()), *torques[k]] for k in orders]


class SolutionCode(EffortCode):
    """Efforts, the motion of all joints and the loads of all loops, arguments as of `EffortCode`.

    The result has the efforts by order, the motion of all joints (order + 3, n), the loads (order + 1, 6
    loops) and the last two rows, each filled up with zeros. Loads need all independent `rows` of the loops,
    where some hold a platform in directions in which it cannot move.
    """

    batch_rows = LoopCode.batch_rows

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        *,
        preload: bool = False,
        rows: Array,
    ) -> None:
        super().__init__(closure, chosen, order, loads, preload=preload, from_ground=False)
        width = max(closure.tree.n_joints, closure.n_efforts, 6 * len(closure.loops))
        self.result = 3 * order + 7, width
        self._holding: LoopCode | None = None
        if len(rows) > len(chosen):
            self._holding = LoopCode(closure, rows, order, loads, from_ground=False)

    def parts(self, table: Array) -> list[Array]:
        """Return the wrench on a prescribed base, the efforts, and the loads of the loops."""
        loads = table[2 * self.order + 4 : 3 * self.order + 5]
        parts = [*super().parts(table[:, : self.closure.n_efforts]), loads]
        return [part for part in parts if part.size]

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return efforts, motion of all joints, loads of the loops, and what is wrong, in equal rows."""
        result = self._computed(q, stacks)
        forces: Multipliers = result.forces
        defect = result.defect
        if self._holding is not None:
            forces = holding = self._held(self._holding, result)
            defect = defect + self.too_singular(holding.singularity)
        loads = loop_loads(self, result.leading, result.leader, result.rates, forces)
        parts = [*result.efforts, *result.joints, *loads]
        defect = defect + overflow(loads)
        return padded([*parts, [defect], [result.singularity]], self.result[1])

    def _held(self, law: LoopCode, computed: _Computed) -> HoldingMultipliers:
        motions = law.motions(computed.leading, computed.leader)
        for twists in self.twists(computed.leader):
            for motion in motions:
                motion.extend({joint: computed.rates[joint] for joint in motion.joints}, *twists)
        result = HoldingMultipliers(law, motions)
        for k, (of_tree, efforts) in enumerate(zip(computed.of_tree, computed.efforts)):
            result.extend(of_tree, taylor(efforts, k))
        return result


class Forces(Multipliers):
    """Efforts of the drives and multipliers of the loops, coefficient by coefficient."""

    def __init__(self, code: LoopCode, motions: Sequence[ClosingMotion], preload: Stack | None) -> None:
        super().__init__(code, motions)
        closure = code.closure
        drives = code.coupling_matrix[list(closure.driven)]
        sizes = np.linalg.norm(drives * code.scale, axis=1)  # what drives are measured in
        redundant = closure.n_efforts > closure.n_coordinates
        self.sizes = (np.full_like(sizes, sizes.max()) if redundant else sizes).tolist()  # all weigh the same
        self._against = [  # T by cluster and drive
            [self.solve(motion, [float(drive[column]) for column in motion.columns]) for drive in drives]
            for motion in motions
        ]
        rows = []
        for column in sorted(code.known):
            rows.append(
                [
                    float(drive[column]) - self.along(column, [result[d] for result in self._against])
                    for d, drive in enumerate(drives)
                ]
            )
        # a platform's pose as coordinates: as rows of clusters, or of the base
        for c, motion in enumerate(motions):
            for r, row in enumerate(motion.cluster.rows):
                if row.loop < 0:
                    rows.append([result[r] for result in self._against[c]])
        if self.moves_freely:
            balances = [self.on_base([result[d] for result in self._against]) for d in range(len(drives))]
            rows += [[-dot(twist, balance) for balance in balances] for twist in self._allowed]
        self.weights = self._row_weights(len(rows))
        scaled = [
            [w * x * (1.0 / size) for x, size in zip(row, self.sizes)] for w, row in zip(self.weights, rows)
        ]
        self.system: BlockSystem | SharedEfforts = (
            SharedEfforts(self, scaled, preload) if redundant else BlockSystem(scaled)
        )

    @property
    def moves_freely(self) -> bool:
        """Whether nothing but limbs holds the base, a platform."""
        closure = self.code.closure
        return closure.tree.floating_base and not closure.base_prescribed

    @property
    def _allowed(self) -> list[list[float]]:
        """Twists of a base that moves freely, for each of which it is in balance."""
        return self.code.allowed.T.tolist() if self.moves_freely and self.code.allowed is not None else []

    def _row_weights(self, count: int) -> list[float]:
        code = self.code
        weights = [float(code.scale[column]) for column in sorted(code.known)]
        for motion in self.motions:
            weights += [row.size for row in motion.cluster.rows if row.loop < 0]
        weights += [1.0] * len(self._allowed)  # whose size is that of the robot
        assert len(weights) == count
        return weights

    def extend(self, of_tree: Sequence[Scalar]) -> list[Scalar]:
        """Return the next coefficient of all efforts, from those of the tree."""
        code = self.code
        joints, on_base = self.rest(of_tree)
        by_column = code.by_leading(joints)
        parts = [self.solve(motion, [by_column[c] for c in motion.columns]) for motion in self.motions]
        right = [by_column[column] - self.along(column, parts) for column in sorted(code.known)]
        for motion, part in zip(self.motions, parts):
            right += [part[r] for r, row in enumerate(motion.cluster.rows) if row.loop < 0]
        if self.moves_freely:
            rest = [a - b for a, b in zip(on_base, self.on_base(parts))]
            right += [dot(twist, rest) for twist in self._allowed]
        sized = self.system.solve([w * x for w, x in zip(self.weights, right)])
        u = [x * (1.0 / size) for x, size in zip(sized, self.sizes)]
        own = (
            code.of_limbs(f"drive {len(self.multipliers[0])}", code.closure.driven, u) if self.motions else u
        )
        self.append(
            [
                [value - dot([result[r] for result in against], own) for r, value in enumerate(part)]
                for against, part in zip(self._against, parts)
            ]
        )
        if not code.closure.base_prescribed:
            return u
        held = self.on_base([result[-1] for result in self.multipliers])
        rest = [a - b for a, b in zip(on_base, held)]
        return [*add(rest[:3], cross(code.center.tolist(), rest[3:])), *rest[3:], *u]


class SharedEfforts:
    """Efforts of redundant drives nearest to a preload, as a system with more unknowns than `rows`.

    `rows` (coordinates, drives) are those of A in the sizes and weights of `forces`.
    """

    def __init__(self, forces: Forces, rows: Stack, preload: Stack | None) -> None:
        self._forces, self._rows, self._preload = forces, rows, preload
        self._factors = Orthogonal(rows)
        self._drives = forces.code.coupling_matrix[list(forces.code.closure.driven)]
        self._velocity = Velocity(forces.code, forces.motions)  # m

    @property
    def singularity(self) -> Scalar:
        """The sum of 1 / l^2, l the length of what each row adds to those before it."""
        return sum(self._factors.inverses)

    def solve(self, right: Sequence[Scalar]) -> list[Scalar]:
        """Return the next coefficient of all efforts."""
        k, size = len(self._velocity.leading[0]), self._forces.sizes[0]
        self._velocity.extend({})
        velocity = [series[k] for series in self._velocity.leading]
        near = [size * weighted(drive, velocity) for drive in self._drives]
        if self._preload is not None:
            near = [size * u + own for u, own in zip(self._preload[k], near)]
        rest = [b - dot(row, near) for b, row in zip(right, self._rows)]
        result = [u + part for u, part in zip(near, self._factors.solve_transposed(rest))]
        if k < self._forces.code.order:
            multipliers = self._factors.solve_normal(rest)
            self._correct([w * x / size**2 for w, x in zip(self._forces.weights, multipliers)])
        return result

    def _correct(self, independent: Sequence[Scalar]) -> None:
        """Replace the last coefficient of m by that with this part in the coordinates."""
        known = sorted(self._forces.code.known)
        allowed = self._forces.code.allowed
        n = len(independent) - (0 if allowed is None else allowed.shape[1])
        base = NOTHING
        if allowed is not None:
            base = halves([weighted(row, independent[n:]) for row in allowed])
        self._velocity.withdraw()
        self._velocity.extend(dict(zip(known, independent)), independent[len(known) : n], base)
