"""Forward and hybrid dynamics of any order in body frames: articulated bodies on Taylor coefficients.

The articulated inertia does not depend on the order (Ali et al., Lemma 2): it is computed once, and every
order adds one pass outward for the biases, one inward for the articulated wrenches, and one outward that
solves for the accelerations (Ali et al., Algorithms 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.canonical import CanonicalBody
from hodyn_ros.engine.recursion import Body, Recursion
from hodyn_ros.engine.vectors import ZERO, Scalar, Vector, add, cross, dot, scale, times

Spatial = tuple[Vector, Vector]  # (spin, a) of a motion, (moment, force) of a wrench
Block = list[list[Scalar]]


class ArticulatedInertia:
    """An inertia `(moment, force) = [[angular, mixed], [mixed^T, linear]] (spin, a)`, symmetric."""

    def __init__(self, angular: Block, mixed: Block, linear: Block) -> None:
        self.angular, self.mixed, self.linear = angular, mixed, linear

    @classmethod
    def of_body(cls, body: CanonicalBody) -> ArticulatedInertia:
        """Return the inertia of a rigid body about its frame's origin."""
        second = body.second_moment.tolist()
        trace = second[0][0] + second[1][1] + second[2][2]
        x, y, z = body.first_moment.tolist()
        angular = [[(trace if i == j else 0.0) - second[i][j] for j in range(3)] for i in range(3)]
        linear = [[body.mass if i == j else 0.0 for j in range(3)] for i in range(3)]
        return cls(angular, [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], linear)

    def column(self, i: int) -> Spatial:
        """Return the wrench that a unit of motion i (3 to 5: linear) needs."""
        if i < 3:
            return _column(self.angular, i), (self.mixed[i][0], self.mixed[i][1], self.mixed[i][2])
        return _column(self.mixed, i - 3), _column(self.linear, i - 3)

    def times(self, motion: Spatial) -> Spatial:
        """Return the wrench that a motion needs."""
        spin, a = motion
        moment = add(times(self.angular, spin), times(self.mixed, a))
        return moment, add(times(_transposed(self.mixed), spin), times(self.linear, a))

    def plus(self, other: ArticulatedInertia) -> ArticulatedInertia:
        """Add the inertia of a body that moves along."""
        return ArticulatedInertia(
            *(
                [[x + y for x, y in zip(row, other_row)] for row, other_row in zip(mine, others)]
                for mine, others in (
                    (self.angular, other.angular),
                    (self.mixed, other.mixed),
                    (self.linear, other.linear),
                )
            )
        )

    def without(self, wrench: Spatial, inverse: Scalar) -> ArticulatedInertia:
        """Subtract `wrench inverse wrench^T`: what a joint that is free to move does not pass on."""
        moment, force = wrench
        scaled_moment, scaled_force = scale(inverse, moment), scale(inverse, force)
        return ArticulatedInertia(
            _minus_outer(self.angular, scaled_moment, moment),
            _minus_outer(self.mixed, scaled_moment, force),
            _minus_outer(self.linear, scaled_force, force),
        )

    def seen_from_parent(self, body: Body) -> ArticulatedInertia:
        """Express the inertia about the parent's origin, in the parent's axes."""
        angular, mixed, linear = (_rotated(block, body) for block in (self.angular, self.mixed, self.linear))
        r = present_translation(body)
        columns = [cross(r, _column(linear, j)) for j in range(3)]  # r~ M
        mixed = [[mixed[i][j] + columns[j][i] for j in range(3)] for i in range(3)]
        return ArticulatedInertia(_moved(angular, mixed, columns, r), mixed, linear)


def _column(block: Block, j: int) -> Vector:
    return (block[0][j], block[1][j], block[2][j])


def _transposed(block: Block) -> Block:
    return [[block[j][i] for j in range(3)] for i in range(3)]


def _minus_outer(block: Block, a: Vector, b: Vector) -> Block:
    return [[block[i][j] - a[i] * b[j] for j in range(3)] for i in range(3)]


def _rotated(block: Block, body: Body) -> Block:
    """Return `R block R^T`."""
    half = _transposed([list(outward(body, _column(block, j))) for j in range(3)])  # R block
    return [list(outward(body, row)) for row in half]


def _moved(angular: Block, moved_mixed: Block, lever: Block | list[Vector], r: Vector) -> Block:
    """Return `A + r~ H^T - H' r~` with `H' = H + r~ M`, `lever[j]` column j of `r~ M`."""
    mixed = [[moved_mixed[i][j] - lever[j][i] for j in range(3)] for i in range(3)]
    first = [cross(r, row) for row in mixed]  # column j of r~ H^T: r × (row j of H)
    second = [cross(row, r) for row in moved_mixed]  # row i of H' r~
    return [[angular[i][j] + first[j][i] - second[i][j] for j in range(3)] for i in range(3)]


def outward(body: Body, x: Sequence[Scalar]) -> Vector:
    """Turn a vector from a body's axes to its parent's."""
    return times(body.rotation, body.turn.outward(x))


def inward(body: Body, x: Sequence[Scalar]) -> Vector:
    """Turn a vector from the parent's axes to the body's."""
    return body.turn.inward(times(body.transposed, x))


def present_translation(body: Body) -> Vector:
    """Return the present position of a body's origin in its parent."""
    return (
        add(body.translation, scale(body.slide[0], body.axis)) if body.slides else add(body.translation, ZERO)
    )


def wrench_at_parent(body: Body, wrench: Spatial) -> Spatial:
    """Move a wrench to the parent's origin and axes, at the present pose."""
    moment, force = outward(body, wrench[0]), outward(body, wrench[1])
    return add(moment, cross(present_translation(body), force)), force


def motion_from_parent(body: Body, motion: Spatial) -> Spatial:
    """Move a motion of the parent to the body's origin and axes, at the present pose."""
    spin, a = motion
    return inward(body, spin), inward(body, add(a, cross(spin, present_translation(body))))


def _plus(a: Spatial, b: Spatial) -> Spatial:
    return add(a[0], b[0]), add(a[1], b[1])


class ArticulatedRecursion(Recursion):
    """Forward dynamics on one robot, coefficient by coefficient.

    `armature` is what each joint's drive adds to the inertia about its own axis [kg m^2 or kg].
    """

    def __init__(
        self,
        bodies: Sequence[CanonicalBody],
        gravity: Sequence[float],
        armature: Sequence[Scalar] | None = None,
    ) -> None:
        super().__init__(bodies, gravity)
        self.armature = list(armature) if armature is not None else [0.0] * self.n_joints
        self.inertias: list[ArticulatedInertia] = []
        self.columns: list[Spatial] = []  # articulated inertia times the joint's screw
        self.inverses: list[Scalar] = []  # of the inertia about the joint

    def articulate(self) -> None:
        """Compute the articulated inertias at the present pose; once, after `start`."""
        self.inertias = [ArticulatedInertia.of_body(body.constants) for body in self.bodies]
        self.columns = [(ZERO, ZERO)] * len(self.bodies)
        self.inverses = [0.0] * len(self.bodies)
        for j in reversed(range(len(self.bodies))):
            body, inertia = self.bodies[j], self.inertias[j]
            c = body.constants
            angular, linear = inertia.column(2), inertia.column(5)
            column = tuple(
                add(scale(c.rotation_gain, x), scale(c.translation_gain, y)) for x, y in zip(angular, linear)
            )
            self.columns[j] = column[0], column[1]
            self.inverses[j] = 1.0 / (body.along_joint(*self.columns[j]) + self.armature[c.joint])
            if c.parent >= 0:
                passed = inertia.without(self.columns[j], self.inverses[j])
                self.inertias[c.parent] = self.inertias[c.parent].plus(passed.seen_from_parent(body))

    def forward_dynamics(self, k: int, torques: Sequence[Scalar]) -> list[Scalar]:
        """Return Taylor coefficient k of the joint accelerations, given that of the joint torques."""
        self.multiply_velocities(k)
        carried, biases, wrenches = self._biases(k)
        drives: list[Scalar] = [0.0] * len(self.bodies)
        for j in reversed(range(len(self.bodies))):
            body = self.bodies[j]
            c = body.constants
            wrenches[j] = _plus(wrenches[j], self.inertias[j].times(biases[j]))
            drives[j] = torques[c.joint] - body.along_joint(*wrenches[j])
            if c.parent >= 0:
                moment, force = self.columns[j]
                push = self.inverses[j] * drives[j]
                passed = _plus(wrenches[j], (scale(push, moment), scale(push, force)))
                wrenches[c.parent] = _plus(wrenches[c.parent], wrench_at_parent(body, passed))
        return self._solve(k, carried, wrenches, drives)

    def _biases(self, k: int) -> tuple[list[Spatial], list[Spatial], list[Spatial]]:
        """Return what bodies move, and what wrenches they need, without any acceleration coefficient k.

        First the carried (w, a), then the motion (spin, a) with the change of the turn, then the wrenches
        with those that lower coefficients of the children leave behind.
        """
        carried: list[Spatial] = []
        biases: list[Spatial] = []
        wrenches: list[Spatial] = []
        for body in self.bodies:
            at_root = body.constants.parent < 0
            w, a = self.carry(body, k, *(self.above(body, k) if at_root else (ZERO, ZERO)))
            carried.append((w, a))
            spin = scale(k + 1.0, add(w, body.turn.inward_change([*body.angular_turned, w], k + 1)))
            biases.append((spin, add(a, body.turn.inward_change([*body.linear_turned, a], k))))
            wrenches.append(body.wrench(k, ZERO, ZERO))
        for body in self.bodies:
            if k > 0 and body.constants.parent >= 0:
                parent = body.constants.parent
                wrenches[parent] = _plus(wrenches[parent], self.transmit(body, k, ZERO, ZERO))
        return carried, biases, wrenches

    def _solve(
        self, k: int, carried: Sequence[Spatial], wrenches: Sequence[Spatial], drives: Sequence[Scalar]
    ) -> list[Scalar]:
        accelerations: list[Scalar] = [0.0] * self.n_joints
        for j, body in enumerate(self.bodies):
            c = body.constants
            w, a = carried[j]
            moment, force = wrenches[j]
            acceleration = drives[j]
            if c.parent >= 0:
                parent = self.bodies[c.parent]
                above = scale(k + 1.0, parent.angular[k + 1]), parent.linear[k]
                spin, linear = motion_from_parent(body, above)
                acceleration = acceleration - dot(self.columns[j][0], spin) - dot(self.columns[j][1], linear)
                w, a = add(w, scale(1.0 / (k + 1), spin)), add(a, linear)
                moment, force = _plus((moment, force), self.inertias[j].times((spin, linear)))
            acceleration = self.inverses[j] * acceleration
            accelerations[c.joint] = acceleration
            self.accelerate(body, k, w, a, acceleration)
            column_moment, column_force = self.columns[j]
            body.moment.append(add(moment, scale(acceleration, column_moment)))
            body.force.append(add(force, scale(acceleration, column_force)))
            if body.slides and c.parent >= 0:
                self.transmit(
                    body, k, body.moment[k], body.force[k]
                )  # completes the moments behind the slide
        return accelerations
