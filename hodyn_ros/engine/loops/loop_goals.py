"""Inverse kinematics of robots with couplings and loops, in one compiled call.

All joints of a robot whose body moves as given are those of a twin, whose coordinates are components of the
pose of that body in place of the joints that move it. So Newton's method and the derivatives are those of
`LoopCode`. Poses and twists that the rows chosen leave open are compared at the end, and the result counts
where a bound on the condition number says that no derivative can have lost more digits than
`hodyn_ros.dynamics.kinematics.rate_accuracy` allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.codegen.kernel import Shape, Stack
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.engine.loops.loop_matrices import distribution
from hodyn_ros.engine.loops.loop_motion import LoopCode, taylor
from hodyn_ros.engine.loops.loop_series import NOTHING, TARGET, ClusterMotion, MovingFrame
from hodyn_ros.engine.recursions.composite import Axes, Spatial, plus, scaled
from hodyn_ros.engine.recursions.frame_goals import ACCURACY, ROUNDING, TOLERANCE, largest
from hodyn_ros.engine.series.block_system import BlockSystem
from hodyn_ros.engine.series.floating_base import FloatingBase, convolve_vectors
from hodyn_ros.engine.series.orthogonal import Orthogonal
from hodyn_ros.engine.series.series import coefficient
from hodyn_ros.engine.series.validity import distance_from_rigid, overflow
from hodyn_ros.engine.series.vectors import ZERO, Scalar, Vector, add, cross, dot, scale, subtract
from hodyn_ros.formulations.closure_rows import PLATFORM_ROWS
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, PlatformRows
from hodyn_ros.model.frames import Frame

_AGREE = 1e-10  # share of a twist that rows which are not chosen may leave undone


@dataclass(frozen=True, eq=False)
class LoopGoal:
    """A frame that is to move as given: `part` of its hybrid twist counts, and `rows` of that are chosen.

    There are as many rows as coordinates move the frame; those `held` are the other ones, by joint.
    """

    frame: Frame
    part: slice
    rows: tuple[str, ...]
    held: tuple[int, ...]
    representation: Representation = "spatial"

    @property
    def overdetermined(self) -> bool:
        """Whether rows were left out."""
        return len(self.rows) < self.part.stop - self.part.start


class LoopGoalCode(LoopCode):
    """The motion of the coordinates, `order` derivatives, from that of a frame.

    Poses are that of a prescribed base, if there is one, above that of the frame, and so are twists: those of
    a base are spatial.
    """

    def __init__(self, closure: Closure, chosen: Array, order: int, goal: LoopGoal) -> None:
        frame = goal.frame
        twin = replace(closure, joints=goal.held, platform=PlatformRows(frame.body, goal.rows))
        self._origin = frame
        super().__init__(twin, chosen, order - 2, (), origin=self._origin)
        self._robot, self._goal = LoopCode(closure, chosen, 0, ()), goal
        rows = [row for cluster in self.clusters for row in cluster.rows]
        squares = all(len(c.rows) == len(of) for c, of in zip(self.clusters, self.columns_of))
        if not squares or len(rows) != len(self.unknown):
            raise ZeroDivisionError("the rows chosen do not determine the motion")

    @property
    def keeps_pose(self) -> bool:
        """Whether the memory holds the pose given of a prescribed base."""
        return self._robot.keeps_pose

    def places(self, given: Sequence[Stack]) -> tuple[tuple[Axes, Vector] | None, tuple[Axes, Vector] | None]:
        """Return axes and position of a prescribed base, and of the frame."""
        base = self.place(given[0][:4]) if len(given[0]) > 4 else None
        return base, self.place(given[0][-4:])

    def twists(self, given: Sequence[Stack]) -> list[tuple[Spatial, Spatial]]:
        """Return the Taylor coefficients of the twists of a prescribed base, and of the frame."""
        count = self.order + 2
        wanted = spatial_twists(given[0][-4:], given[1][-count:] if count else [], self._goal.representation)
        of_base: list[Spatial] = [NOTHING] * count
        if len(given[0]) > 4:
            of_base = [self.shifted(taylor(twist, k)) for k, twist in enumerate(given[1][:count])]
        return list(zip(of_base, (self.shifted([*w, *v]) for w, v in wanted)))

    def coordinates(self, q: Stack, *others: Stack) -> Stack:
        """Return the motion of the coordinates (order + 1, k), and a row that says what is wrong with it."""
        *given, (memory,), (state,) = others
        leading = self.leading_positions(q[0], state)
        motions, systems, rates = self.move(q, leading, given)
        positions, joints = self.positions(leading), self._robot.closure.joints
        rows = [[positions[j] for j in joints], *self.derivatives(rates, joints)]
        of_robot = self._robot.motions(leading, [given[0][:4]] if len(given[0]) > 4 else [])
        own = [
            BlockSystem(self._robot.system(motion, columns))
            for motion, columns in zip(of_robot, self._robot.columns_of)
        ]
        singularity = sum(system.singularity for system in (*systems, *own))
        defect = self.wrong(leading, state[-1], memory, motions, given, singularity) + overflow(rows)
        moving = next(m for m in motions if any(row.loop < 0 for row in m.cluster.rows))
        defect = defect + self._apart(moving, given[0][-4:])
        if self.order + 2:
            F = distribution(self._robot, of_robot, own, None, 1)
            present = [[coefficient(x, 0) for x in column[self.closure.first :]] for column in F]
            square = self._condition_square(moving, present)
            rounding = (ROUNDING / ACCURACY) ** 2 * square
            for _ in range(self.order + 2):
                rounding = rounding * square
            defect = defect + rounding
        return [*rows, [defect, *[0.0] * (len(joints) - 1)]]

    def _apart(self, moving: ClusterMotion, pose: Stack) -> Scalar:
        """Return a number that is one or more where the frame is elsewhere, or moves otherwise."""
        goal, size, count = self._goal, self.closure.size, self.order + 2
        found = moving.frame(self._origin, count)
        wanted = moving.frame(Frame.of_body(TARGET), count)
        apart: Scalar = 0.0
        if goal.part.start == 0:
            for a, b in zip(found.axes, wanted.axes):
                turned = subtract(a[0], b[0])
                apart = apart + 0.5 * dot(turned, turned)
        if goal.part.stop == 6:
            shift = subtract(found.point[0], wanted.point[0])
            apart = apart + dot(shift, shift) * (1.0 / size**2)
        far = 1.0 + dot(wanted.point[0], wanted.point[0]) * (1.0 / size**2)
        last = dot(pose[3][:3], pose[3][:3]) + (pose[3][3] - 1.0) * (pose[3][3] - 1.0)
        defect = apart / (far * TOLERANCE**2) + (distance_from_rigid(pose) + last) * 1e20
        if not goal.overdetermined:
            return defect
        sizes: list[Scalar] = []
        for k in range(count):
            asked = self._hybrid(moving.twists[TARGET], wanted, k)
            missing = [a - b for a, b in zip(asked, self._hybrid(moving.twists[goal.frame.body], found, k))]
            # an order may be zero: its rounding is that of the products of lower ones in it
            products = sum(a * b for a, b in zip(sizes, reversed(sizes)))
            sizes.append(np.sqrt(dot(asked, asked)) + products)
            defect = defect + dot(missing, missing) / (sizes[k] * sizes[k] + 1e-200) * (1.0 / _AGREE**2)
        return defect

    def _hybrid(self, twists: Sequence[Spatial], frame: MovingFrame, k: int) -> list[Scalar]:
        """Return the part that counts of coefficient k of a twist at the moving origin, lengths in sizes."""
        lever = convolve_vectors(cross, [twist[0] for twist in twists[: k + 1]], frame.point, k)
        shift = scale(1.0 / self.closure.size, add(twists[k][1], lever))
        return [*twists[k][0], *shift][self._goal.part]

    def _condition_square(self, moving: ClusterMotion, F: Sequence[Sequence[Scalar]]) -> Scalar:
        """Return the square of a bound on the condition number of the frame, as NumPy code measures it.

        `F`: the velocities of all joints by those of the coordinates.
        """
        robot, goal = self._robot.closure, self._goal
        tree, frame = robot.tree, moving.frame(self._origin)
        turning = tree.screws[tree.first_jointed_body :, :3].any(axis=1)
        of_joints = np.where(turning, 1.0, robot.size)
        columns, gain = [], 1.0
        for joint, column in zip(robot.joints, F):
            sized = [x * float(of_joints[joint] / of_joints[j]) for j, x in enumerate(column)]
            along = [sized[j] for j in robot.leading]
            gain = largest([gain, dot(along, along)])
            if joint in goal.held:
                continue
            twist, body = NOTHING, goal.frame.body
            while body >= tree.first_jointed_body:
                j = tree.joint_of(body)
                twist = plus(twist, scaled(sized[j] * float(of_joints[j]), moving.screws[body][0]))
                body = tree.parents[body]
            columns.append(self._hybrid([twist], frame, 0))
        whole: Scalar = 0.0
        for column in columns:
            whole = whole + dot(column, column)
        return largest([whole * gain, 1.0]) * Orthogonal(columns).inverse_square


def spatial_twists(pose: Stack, twists: Stack, representation: Representation) -> list[Spatial]:
    """Return the Taylor coefficients of the spatial twist of a frame at a pose from its derivatives."""
    frame = FloatingBase(pose, ZERO, "body_fixed")
    result: list[Spatial] = []
    angular, position = [], frame.position
    for k, twist in enumerate(twists):
        values = taylor(twist, k)
        w: Vector = (values[0], values[1], values[2])
        v: Vector = (values[3], values[4], values[5])
        if representation == "body_fixed":
            frame.extend(values)
            w, v = frame.in_world_axes(k)
        elif representation == "hybrid":
            position.append(scale(1.0 / (k + 1), v))
        angular.append(w)
        if representation != "spatial":
            v = add(v, convolve_vectors(cross, position, angular, k))
        result.append((w, v))
    return result


class GoalMotion(LoopFunction):
    """The motion of the coordinates of one robot from that of a frame, up to one derivative.

    `function(held (order + 1, held), poses (4, 4), twists (order, 6), memory (1, N), out=None)` returns the
    motion (order + 1, k) of the joints that are coordinates, and a last row. With a prescribed base its pose
    stands above that of the frame, (8, 4), and so do its spatial twists. The memory is that of the robot.
    """

    def __init__(self, closure: Closure, chosen: Array, order: int, goal: LoopGoal) -> None:
        code = LoopGoalCode(closure, chosen, order, goal)
        self.held = goal.held
        bodies = 2 if closure.base_given else 1
        motion: list[tuple[str, Shape]] = [
            ("the motion of what is held", (order + 1, len(goal.held))),
            ("the poses", (4 * bodies, 4)),
            ("the twists", (order * bodies, 6)),
        ]
        super().__init__(code, motion, [], (order + 2, len(closure.joints)), code.coordinates)


def part_rows(part: slice) -> tuple[str, ...]:
    """Return the rows of a platform that prescribe a part of a hybrid twist."""
    return tuple(PLATFORM_ROWS)[part]
