"""Positions and motion of all joints of a robot with couplings and loops, over abstract scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import factorial, inf
from typing import Literal

import numpy as np

from hodyn_ros.codegen.kernel import Function, Shape, Stack, straight_line, uncompiled
from hodyn_ros.codegen.program import Code
from hodyn_ros.codegen.tracer import of_part
from hodyn_ros.engine.kernel_spec import Arguments, Loads, motion_arguments
from hodyn_ros.engine.loops.limbs import is_on_limbs, limbs_of
from hodyn_ros.engine.loops.loop_series import (
    TARGET,
    Cluster,
    ClusterMotion,
    FollowerRow,
    PlacedRow,
    weighted,
)
from hodyn_ros.engine.newton import ITERATIONS
from hodyn_ros.engine.series.allowed import allowed_twists, distance_from_allowed
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.canonical import canonical_bodies, inward
from hodyn_ros.engine.series.joint_curve import beyond
from hodyn_ros.engine.series.spatial import NOTHING, Axes, Spatial
from hodyn_ros.engine.series.validity import (
    DOUBLE,
    SINGULAR_LENGTH,
    distance_from_rigid,
    following_step,
    overflow,
    unless_small,
)
from hodyn_ros.engine.series.vectors import (
    Scalar,
    Vector,
    axes_of,
    dot,
    subtract,
    taylor,
    to_derivatives,
    twist_about,
)
from hodyn_ros.formulations.closure_rows import PLATFORM_ROWS, rows_of
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.frames import Frame

# what makes a result unusable, one and more together count as 1
FORCED = 1e-3  # [rad], and of the robot's size: by which rows that depend on others may be open
JUMP = 0.5  # [rad] by which all joints together may turn between two calls, or they may change the branch


Judged = Literal["efforts", "accelerations", "joints", "drives"]


class LoopCode:
    """The law of the motion of all joints from that of the coordinates, and of what is wrong with it.

    `function(q (order + 3, k), [pose (4, 4), twists (order + 2, 6),] memory)` of its `LoopFunction` returns
    the motion of all joints of the tree (order + 3, n), and a last row. Other laws are subclasses, which say
    what they take and return: `motion` of the coordinates, and of platform or base, `stacks` besides,
    `result` its shape, and `end` what follows from closed positions.

    `from_ground`: limbs of a platform are computed from the ground on. Loads of its loops do not follow then.
    """

    tolerances = DOUBLE  # of the numbers that it is carried out with
    regroups = True  # mass on the axes of joints to where it does as much
    stacks: Arguments = []
    limit: float = inf  # operations of `end` that are compiled
    iterations = ITERATIONS
    finds_pose = False  # the result begins with the pose of a platform, which the memory takes from there
    has_lanes = True  # whether several samples are computed at a time
    steps_in_two = True  # whether a step can be made by `gaps` and `closing_step`
    n_last = 1  # rows of the result that say what is wrong; the first number of these must be below one
    judged: Judged | None = "joints"  # as what digits of results are judged, where they are
    is_held = False  # whether drives have to hold the robot
    moved: Sequence[int] = ()  # efforts whose motion is given instead
    effort_parts: Sequence[int] = ()  # of the parts of accelerations

    def __init__(
        self,
        closure: Closure,
        chosen: Array,
        order: int,
        loads: Loads = (),
        *,
        from_ground: bool = True,
    ) -> None:
        self.closure, self.order, self.loads = closure, order, loads
        self.on_limbs = from_ground and is_on_limbs(closure, loads)
        tree, first = closure.tree, closure.first
        self.motion = motion_arguments(order + 3, len(closure.joints), closure.leader is not None)
        self.result: Shape = (order + 4, tree.n_joints)
        # positions that are improved, and remembered, whether with the pose that is given
        self.n_positions, self.keeps_pose = len(closure.leading), closure.leader is not None
        self.coupling_matrix: Array = closure.coupling_matrix[first:, first:]
        # leading joints that are known: ratio of the coordinate to it
        self.known: dict[int, tuple[int, float]] = {}
        for place, joint in enumerate(closure.joints):
            column = int(np.flatnonzero(self.coupling_matrix[joint])[0])
            self.known[column] = (place, float(self.coupling_matrix[joint, column]))
        self.unknown = [c for c in range(len(closure.leading)) if c not in self.known]
        base = closure.platform is not None and closure.platform.body == 0 and tree.floating_base
        self.center = np.zeros(3) if not base else tree.placements[0][:3, 3].copy()
        # of a platform that is the base: twists that it can have, about the point of reference
        self.allowed = allowed_twists(closure.directions, tree.placements[0], closure.size) if base else None
        if self.on_limbs:
            self.bodies, self.chains, self.clusters, self._parts = limbs_of(
                closure, self.center, regroup=self.regroups
            )
        else:
            self.bodies = self.chains = canonical_bodies(tree, regroup=self.regroups)
            self.clusters = _clusters(closure, chosen, self.unknown, of_platform=not base)
            self._parts = {}
        self.columns_of = [self._columns(cluster) for cluster in self.clusters]

    @property
    def defect_at(self) -> int:
        """The place in the result of the number that must be below one."""
        rows, columns = self.result
        return (rows - self.n_last) * columns

    @property
    def batch_rows(self) -> slice:
        """The rows of the result that batches are of."""
        return slice(0, self.result[0] - 1)

    @property
    def smoothness(self) -> int:
        """The highest derivative of the motion that couplings must be smooth enough for."""
        return self.order + 2

    def parts(self, table: Array) -> list[Array]:
        """Return the parts of a result, each with the order on its first axis, whose digits are judged."""
        return [table[:-1]]

    def compiled_end(self, shapes: Sequence[Shape]) -> Code:
        """Compile `end`; raise TooLong where it has more operations than the limit."""
        return straight_line(self.end, shapes, self.limit)

    def uncompiled_end(self, shapes: Sequence[Shape]) -> Code:
        """Return `end` as it is carried out on numbers; raise TooLong where it cannot be."""
        return uncompiled(self.end, shapes)

    def generic_tree(self) -> Function | None:
        """Return code of the efforts of a tree too large for straight-line code, which `end` takes last."""
        return None

    def parted(self, stacks: Sequence[Stack]) -> tuple[Sequence[Stack], Sequence[Stack]]:
        """Return the arguments that say how platform or base moves, and those behind."""
        n_leader_arrays = self.closure.n_leader_arrays
        return stacks[:n_leader_arrays], stacks[n_leader_arrays:]

    def newton_step(self, q: Stack, *stacks: Stack) -> Stack:
        """Improve the positions of the leading joints; returns them, and `following_step`."""
        *leader, (state,) = stacks
        leading = self.begun(q, state)
        motions = self.motions(leading, leader)
        return self._closer(leading, motions, self._gaps(motions))

    def gaps(self, q: Stack, *stacks: Stack) -> Stack:
        """Return a row by how much the rows of the loops are open [m or rad]."""
        *leader, (state,) = stacks
        return [self._gaps(self.motions(self.begun(q, state), leader))]

    def closing_step(self, q: Stack, *stacks: Stack) -> Stack:
        """Return what `newton_step` does where the last argument says how far the rows are open.

        With that in more digits than all else, the positions are right to as many as they have themselves
        (F. Tisseur, "Newton's method in floating point arithmetic and iterative refinement of generalized
        eigenvalue problems", SIAM J. Matrix Anal. Appl. 22, 2001, section 2).
        """
        *leader, (state,), (gaps,) = stacks
        leading = self.begun(q, state)
        return self._closer(leading, self.motions(leading, leader), gaps)

    def _gaps(self, motions: Sequence[ClosingMotion]) -> list[Scalar]:
        return [motion.gap(row) for motion in motions for row in motion.cluster.rows]

    def _closer(
        self, leading: list[Scalar], motions: Sequence[ClosingMotion], gaps: Sequence[Scalar]
    ) -> Stack:
        """Take a step of Newton's method; returns the positions, and `following_step`."""
        error: Scalar = 0.0
        left = iter(gaps)
        for motion in motions:
            system = motion.system
            steps = system.solve([-(gap * (1.0 / row.size)) for row, gap in zip(motion.cluster.rows, left)])
            error = error + following_step(dot(steps, steps), system.singularity)
            for column, step in zip(motion.columns, steps):
                leading[column] = leading[column] + step * float(self.scale[column])
        return [[*leading, error]]

    def joint_motion(self, q: Stack, *stacks: Stack) -> Stack:
        """Return positions and derivatives (order + 3, n) of all joints, from closed positions."""
        *leader, (state,) = stacks
        leading = self.leading_positions(q[0], state)
        _, rates = self.move(q, leading, leader)
        return [self.positions(leading), *self.derivatives(rates, range(self.closure.tree.n_joints))]

    def end(self, q: Stack, *stacks: Stack) -> Stack:
        """Return what the law says at closed positions, and what is wrong: here as `joint_motion`."""
        *leader, (memory,), (state,) = stacks
        leading = self.leading_positions(q[0], state)
        motions, rates = self.move(q, leading, leader)
        n = self.closure.tree.n_joints
        rows = [self.positions(leading), *self.derivatives(rates, range(n))]
        singularity = sum(map(self.singularity_of, motions))
        defect = self.wrong(leading, state[-1], memory, motions, leader, singularity) + overflow(rows)
        return [*rows, [defect, *[0.0] * (n - 1)]]

    def move(
        self, q: Stack, leading: Sequence[Scalar], leader: Sequence[Stack]
    ) -> tuple[list[ClosingMotion], list[list[Scalar]]]:
        """Return the motion of all clusters, and the rates of all joints."""
        motions = self.solved_motions(leading, leader)
        twists = self.twists(leader)
        rates: list[list[Scalar]] = [[] for _ in leading]
        for k in range(self.order + 2):
            for column, (place, ratio) in self.known.items():
                rates[column].append(q[k + 1][place] * (1.0 / (factorial(k) * ratio)))
            self.find_rates(motions, rates, twists[k], k)
            for motion in motions:
                motion.extend(motion.joint_rates(rates), *twists[k])
        return motions, [self.joint_series(joint, rates) for joint in range(len(self.coupling_matrix))]

    def by_leading(self, efforts: Sequence[Scalar]) -> list[Scalar]:
        """Return the efforts on leading joints from those on all joints."""
        return [weighted(self.coupling_matrix[:, c], efforts) for c in range(self.coupling_matrix.shape[1])]

    def derivatives(self, rates: Sequence[Sequence[Scalar]], joints: Sequence[int]) -> Stack:
        """Return the derivatives of some joints' positions, from the first on."""
        return to_derivatives([[rates[j][k] for j in joints] for k in range(self.order + 2)])

    def wrong(
        self,
        leading: Sequence[Scalar],
        error: Scalar,
        memory: Sequence[Scalar],
        motions: Sequence[ClosingMotion],
        leader: Sequence[Stack],
        singularity: Scalar,
    ) -> Scalar:
        """Return a number that is one or more where the result does not count.

        Where it is less than a half that is `too_singular` alone, from which `singularity_of` follows.
        """
        defect: Scalar = error * (1.0 / self.tolerances.closed)
        memory = self.of_limbs("before", self.closure.leading, memory)
        if self._has_branches:
            first = self.closure.first
            turning = (self.closure.scale[first:] == 1.0) & self.closure.searched[first:]
            for column, now in enumerate(leading):
                if turning[column]:
                    defect = defect + (now - memory[column]) * (now - memory[column]) * (1.0 / JUMP**2)
        bound = self.allowed is not None and self.allowed.shape[1] < 6
        for motion in motions:
            for row in motion.cluster.checked:
                gap = motion.gap(row) * (1.0 / (row.size * (self.tolerances.held if bound else FORCED)))
                defect = defect + gap * gap
        if bound and self.allowed is not None:
            twists = [
                [x for part in self.shifted(taylor(t, k)) for x in part] for k, t in enumerate(leader[1])
            ]
            off = distance_from_allowed(self.allowed, self.closure.size, twists)
            defect = defect + off * (1.0 / self.tolerances.outside**2)
        positions = self.positions(leading) if self.closure.followers else []
        for _, of, function in self.closure.followers:
            defect = defect + beyond(function, positions[of])
        if leader:
            defect = defect + distance_from_rigid(leader[0]) * (1.0 / self.tolerances.rigid**2)
        return unless_small(defect) + self.too_singular(singularity)

    def singularity_of(self, motion: ClosingMotion) -> Scalar:
        """Return what grows without bounds where the equations of a cluster become singular.

        Of a limb whatever its size is beside that of the robot, lest that hides what drives do.
        """
        return motion.system.nearness if self.on_limbs else motion.system.singularity

    def too_singular(self, singularity: Scalar) -> Scalar:
        """Return a number that is one or more where equations are nearly singular."""
        return singularity * SINGULAR_LENGTH**2

    @property
    def _has_branches(self) -> bool:
        """Whether coordinates leave a choice of positions: not where joints follow along curves alone."""
        closure = self.closure
        follow = [follower.joint for follower in closure.followers]
        led = all(closure.leading[c] in follow for columns in self.columns_of for c in columns)
        rows = (row for cluster in self.clusters for row in cluster.rows)
        return not (led and all(isinstance(row, FollowerRow) for row in rows))

    @property
    def scale(self) -> Array:
        """What the leading joints are measured in: one radian, or the robot's size."""
        return self.closure.scale[self.closure.first :]

    def begun(self, q: Stack, state: Sequence[Scalar]) -> list[Scalar]:
        """Return the positions of the leading joints from which a step of Newton's method goes on."""
        return self.leading_positions(q[0], state)

    def leading_positions(self, y: Sequence[Scalar], state: Sequence[Scalar]) -> list[Scalar]:
        """Return those of the leading joints, known ones from the coordinates and the others as found."""
        leading = self.of_limbs("position", self.closure.leading, state)
        offsets = self.closure.offsets
        for column, (place, ratio) in self.known.items():
            leading[column] = (y[place] - float(offsets[self.closure.joints[place]])) * (1.0 / ratio)
        return leading

    def of_limbs(self, what: str, joints: Sequence[int], values: Sequence[Scalar]) -> list[Scalar]:
        """Return numbers of some joints as such of the limbs that these are of; `what`: what they are."""
        result = []
        for joint, value in zip(joints, values):
            if joint in self._parts:
                part, place = self._parts[joint]
                value = of_part(value, part, (what, place))
            result.append(value)
        return result

    def positions(self, leading: Sequence[Scalar]) -> list[Scalar]:
        """Return those of all joints."""
        return [
            weighted(row, leading) + float(offset)
            for row, offset in zip(self.coupling_matrix, self.closure.offsets)
        ]

    def joint_series(self, joint: int, rates: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Return the coefficients of a joint's velocity from those of the leading joints."""
        return [weighted(self.coupling_matrix[joint], [r[k] for r in rates]) for k in range(len(rates[0]))]

    def motions(self, leading: Sequence[Scalar], leader: Sequence[Stack]) -> list[ClosingMotion]:
        """Return all clusters at positions of the leading joints, and the pose that is given."""
        positions, places = self.positions(leading), self.places(leader)
        return [ClosingMotion(self, c, positions, *places) for c in range(len(self.clusters))]

    def solved_motions(self, leading: Sequence[Scalar], leader: Sequence[Stack]) -> list[ClosingMotion]:
        """Return the same, their equations factorised one after the other."""
        motions = self.motions(leading, leader)
        for motion in motions:
            _ = motion.system
        return motions

    def places(
        self, leader: Sequence[Stack]
    ) -> tuple[tuple[Axes, Vector] | None, tuple[Axes, Vector] | None]:
        """Return axes and position of a base, and of the pose given of a platform."""
        place = self.place(leader[0]) if leader else None
        return (place, None) if self.closure.tree.floating_base else (None, place)

    def twists(self, leader: Sequence[Stack]) -> list[tuple[Spatial, Spatial]]:
        """Return the Taylor coefficients of the twists of a base, and of the pose given of a platform."""
        if not leader:
            return [(NOTHING, NOTHING)] * (self.order + 2)
        twists = [self.shifted(taylor(twist, k)) for k, twist in enumerate(leader[1])]
        return list(zip(twists, twists))

    def place(self, pose: Stack) -> tuple[Axes, Vector]:
        """Return the axes of a pose, and its position seen from the point of reference."""
        return axes_of(pose), subtract([row[3] for row in pose[:3]], self.center.tolist())

    def shifted(self, twist: Sequence[Scalar]) -> Spatial:
        """Return a spatial twist seen from the point of reference."""
        return twist_about(twist, self.center.tolist())

    def _columns(self, cluster: Cluster) -> list[int]:
        """Return the unknown leading joints of a cluster."""
        joints = {self.bodies[body].joint for body in cluster.bodies if self.bodies[body].joint >= 0}
        joints |= {j for row in cluster.rows if isinstance(row, FollowerRow) for j in row.joints}
        return [c for c in self.unknown if any(self.coupling_matrix[j, c] for j in joints)]

    def find_rates(
        self,
        motions: Sequence[ClosingMotion],
        rates: list[list[Scalar]],
        twist: tuple[Spatial, Spatial],
        k: int,
        twists: Sequence[dict[int, list[Spatial]]] | None = None,
        of_platform: Sequence[Scalar] = (),
    ) -> None:
        """Append coefficient k of the unknown velocities; `twist`: that of the twists as of `twists`.

        Of the motion itself or, with the `twists` of bodies by cluster, of another velocity that the loops
        allow. `of_platform`: by row of a platform, where these do not vanish.
        """
        left = list(of_platform)
        for c in self.unknown:
            rates[c].append(0.0)
        for motion, of_bodies in zip(motions, twists or [motion.twists for motion in motions]):
            trial = motion.joint_rates(rates)
            motion.append(of_bodies, trial, *twist)
            gaps = [motion.residual(r, trial, of_bodies) for r in range(len(motion.cluster.rows))]
            for series in of_bodies.values():
                series.pop()
            sized = [
                ((left.pop(0) if row.loop < 0 and left else 0.0) - gap) * (1.0 / row.size)
                for row, gap in zip(motion.cluster.rows, gaps)
            ]
            for c, rate in zip(motion.columns, motion.system.solve(sized)):
                rates[c][k] = rate * float(self.scale[c])


class ClosingMotion(ClusterMotion):
    """The motion of a cluster with the equations of its unknown leading joints, `columns`."""

    def __init__(
        self,
        code: LoopCode,
        number: int,
        positions: Sequence[Scalar],
        base: tuple[Axes, Vector] | None,
        target: tuple[Axes, Vector] | None,
    ) -> None:
        self._code, self.columns = code, code.columns_of[number]
        super().__init__(code.clusters[number], code.chains, code.center.tolist(), positions, base, target)

    @cached_property
    def system(self) -> BlockSystem:
        """The rows of the loops for the unknown joints at present, without units."""
        scale, rows = self._code.scale, []
        for r, row in enumerate(self.cluster.rows):
            entries = self.by_column(r)
            rows.append([entries.get(c, 0.0) * float(scale[c] / row.size) for c in self.columns])
        return BlockSystem(rows)

    def by_column(self, r: int) -> dict[int, Scalar]:
        """Return the present entries of a row by leading joint."""
        result: dict[int, Scalar] = {}
        for joint, entry in self.entries(r).items():
            ratios = self._code.coupling_matrix[joint]
            for c in np.flatnonzero(ratios):
                result[int(c)] = result.get(int(c), 0.0) + entry * float(ratios[c])
        return result

    def joint_rates(self, leading: Sequence[Sequence[Scalar]]) -> dict[int, list[Scalar]]:
        """Return the series of the cluster's joints from those of the leading joints."""
        return {j: self._code.joint_series(j, leading) for j in self.joints}


class Velocity:
    """A velocity that the loops allow at every time, by Taylor coefficients of its part in the coordinates.

    `leading` holds those of the leading joints; the rows of the loops are as `motions` left them.
    """

    def __init__(self, code: LoopCode, motions: Sequence[ClosingMotion]) -> None:
        self._code, self._motions = code, motions
        self.leading: list[list[Scalar]] = [[] for _ in code.closure.leading]
        self._twists: list[dict[int, list[Spatial]]] = [
            {body: [] for body in motion.twists} for motion in motions
        ]

    def extend(
        self,
        known: Mapping[int, Scalar],
        rows: Sequence[Scalar] = (),
        base: Spatial = NOTHING,
        target: Spatial = NOTHING,
    ) -> None:
        """Append the next coefficient, by known column, by row of a platform and of the twist of a base.

        That twist, and the one of the pose that is given of a platform, are seen from the point of reference.
        """
        k = len(self.leading[0])
        for column in self._code.known:
            self.leading[column].append(known.get(column, 0.0))
        self._code.find_rates(self._motions, self.leading, (base, target), k, self._twists, rows)
        for motion, twists in zip(self._motions, self._twists):
            motion.append(twists, motion.joint_rates(self.leading), base, target)

    def withdraw(self) -> None:
        """Take back what the last `extend` has appended."""
        for series in self.leading:
            series.pop()
        for twists in self._twists:
            for series_of_body in twists.values():
                series_of_body.pop()


def _clusters(closure: Closure, chosen: Array, unknown: Sequence[int], of_platform: bool) -> list[Cluster]:
    """Put rows together that share unknown joints; `of_platform`: those that bring a platform to its pose."""
    tree, first = closure.tree, closure.first
    rows: list[PlacedRow | FollowerRow] = []
    for number, loop in enumerate(closure.loops):
        for row in rows_of(loop):
            size = closure.size if row.what in ("point", "distance") else 1.0
            rows.append(PlacedRow(row, loop.a, loop.b, loop.length, size, number))
    for number, follower in enumerate(closure.followers, len(closure.loops)):
        rows.append(FollowerRow(follower, float(closure.joint_sizes[follower.joint]), number))
    kept = [rows[i] for i in chosen]
    rest = [row for i, row in enumerate(rows) if i not in set(chosen.tolist())]
    if closure.platform is not None and of_platform:
        target, origin = Frame.of_body(TARGET), Frame.of_body(closure.platform.body)
        for name in closure.platform.rows:
            row = PLATFORM_ROWS[name]
            size = closure.size if row.what == "point" else 1.0
            kept.append(PlacedRow(row, target, origin, 0.0, size, -1))

    path = partial(inward, tree.parents)

    def columns(row: PlacedRow | FollowerRow) -> set[int]:
        if isinstance(row, FollowerRow):
            joints = list(row.joints)
        else:
            between = set(path(row.a.body)) ^ set(path(row.b.body))
            joints = [tree.joint_of(b) for b in between if b >= first_body]
        used = {int(c) for j in joints for c in np.flatnonzero(closure.coupling_matrix[first + j, first:])}
        return used & set(unknown)

    first_body = tree.first_jointed_body
    groups: list[tuple[set[int], list[PlacedRow | FollowerRow]]] = []
    for row in kept:
        used, together = columns(row), [row]
        for group in [group for group in groups if group[0] & used]:
            groups.remove(group)
            used, together = used | group[0], group[1] + together
        groups.append((used, together))
    result: list[Cluster] = []
    for _, rows in groups:
        loops = {row.loop for row in rows}
        between = [row for row in rows if isinstance(row, PlacedRow)]
        paths = [path(frame.body) for row in between for frame in (row.a, row.b)]
        common = set(paths[0]).intersection(*paths[1:]) if paths else set()
        root = max(common, default=-1)
        bodies = sorted({body for way in paths for body in way} - set(path(root)))
        checked = tuple(
            row for row in rest if row.loop in loops or (isinstance(row, FollowerRow) and not result)
        )
        result.append(Cluster(root, tuple(bodies), tuple(rows), checked))
    return result
