"""Forward and hybrid dynamics of any order in body frames: articulated bodies on Taylor coefficients.

The articulated inertia does not depend on the order (Ali et al., Lemma 2): it is computed once, and every
order adds one pass outward for the biases, one inward for the articulated wrenches, and one outward that
solves for the accelerations (Ali et al., Algorithms 3 and 4).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, minus, plus, power, scaled
from hodyn_ros.engine.series.validity import unless_lost
from hodyn_ros.engine.series.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    dot,
    from_taylor,
    halves,
    scale,
    subtract,
    taylor,
    times,
)

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

    def rows(self) -> list[list[Scalar]]:
        """Return the 6×6 matrix."""
        mixed = _transposed(self.mixed)
        return [
            *[[*self.angular[i], *self.mixed[i]] for i in range(3)],
            *[[*mixed[i], *self.linear[i]] for i in range(3)],
        ]

    def plus(self, other: ArticulatedInertia) -> ArticulatedInertia:
        """Add the inertia of a body that moves along."""
        return ArticulatedInertia(
            *(
                [[x + y for x, y in zip(row, other_row)] for row, other_row in zip(mine, stacks)]
                for mine, stacks in (
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


def _screw(body: Body) -> Spatial:
    """Return the motion of a body by its joint."""
    return (0.0, 0.0, body.constants.rotation_gain), (0.0, 0.0, body.constants.translation_gain)


def motion_from_parent(body: Body, motion: Spatial) -> Spatial:
    """Move a motion of the parent to the body's origin and axes, at the present pose."""
    spin, a = motion
    return inward(body, spin), inward(body, add(a, cross(spin, present_translation(body))))


@dataclass
class ArticulatedState:
    """What the articulated recursion knows of a body beyond its motion."""

    inertia: ArticulatedInertia
    column: Spatial = NOTHING  # the inertia times the joint's screw
    inverse: Scalar = 0.0  # of the inertia about the joint; zero where the motion is prescribed
    loss: Scalar = 0.0  # by how much rounding has grown in inertias of bodies without mass that it carries
    # of the order at hand:
    carried: Spatial = NOTHING  # (w, a) from the parent, without its accelerations
    motion: Spatial = NOTHING  # (spin, a) with the change of the turn and prescribed accelerations
    wrench: Spatial = NOTHING  # needed without the accelerations to be found
    drive: Scalar = 0.0  # what is left of the torque


class ArticulatedRecursion(Recursion):
    """Forward and hybrid dynamics on one robot, coefficient by coefficient.

    `prescribed` names the joints whose motion is given instead of their torque; `base_prescribed` says the
    same of a floating base. `armature` is what each joint's drive adds to the inertia about its own axis [kg
    m^2 or kg].
    """

    def __init__(
        self,
        bodies: Sequence[CanonicalBody],
        gravity: Sequence[float],
        base: FloatingBase | None = None,
        loads: Sequence[AppliedWrench] = (),
        *,
        prescribed: Collection[int] = (),
        base_prescribed: bool = False,
        armature: Sequence[float] | None = None,
    ) -> None:
        super().__init__(bodies, gravity, base, loads)
        self.prescribed = frozenset(prescribed)
        self.base_prescribed = base_prescribed
        self.armature = [0.0] * len(self.jointed) if armature is None else list(armature)
        self.states = [ArticulatedState(ArticulatedInertia.of_body(constants)) for constants in bodies]
        self.base_wrenches: list[Spatial] = []  # given in the world frame
        self.base_factor: list[list[Scalar]] = []
        # of joints around bodies without mass: their inertia by what joints beyond leave of it, which have
        # made its rounding grow
        self.loss: Scalar = 0.0

    def solution(
        self,
        state: Sequence[Sequence[Scalar]],
        inputs: Sequence[Sequence[Scalar]],
        twist: Sequence[Scalar] = (),
        base_inputs: Sequence[Sequence[Scalar]] = (),
        loads: Sequence[Sequence[Sequence[Scalar]]] = (),
    ) -> list[list[Scalar]]:
        """Return by Taylor coefficient what is not given at the joints, from what is given by derivative.

        `state` (2, n) and `inputs` (order + 1, n); `twist` of a floating base, and `base_inputs` (order + 1,
        6): its wrenches or, prescribed, the derivatives of that twist; `loads` (order + 1, 6) each.
        """
        self.start(state[0], state[1], twist)
        self.articulate()
        rows = []
        for k, row in enumerate(inputs):
            of_base = taylor(base_inputs[k], k + self.base_prescribed) if self.base else ()
            applied = [taylor(load[k], k) for load in loads]
            rows.append(self.hybrid_dynamics(k, taylor(row, k), of_base, applied))
        return rows

    def base_result(self, k: int) -> list[Scalar]:
        """Return what is not given of a base: derivative k + 1 of its twist, or k of its wrench."""
        if self.base is None or self.base_prescribed:
            return super().base_result(k)
        return from_taylor(self.base.twist(k + 1), k + 1)

    def articulate(self) -> None:
        """Compute the articulated inertias at the present pose; once, after `start`."""
        for body in self.way("inward"):
            self.articulate_joint(body)
        if self.base is not None and not self.base_prescribed:
            self.base_factor = factorise(self.states[0].inertia.rows())

    @property
    def lost(self) -> Scalar:
        """Zero; at a singular pose of bodies without mass not finite."""
        return 0.0 if isinstance(self.loss, float) else unless_lost(1.0 / self.loss)

    def articulate_joint(self, body: Body) -> None:
        """Find the inertia about a joint, its children done, and add to the parent's what it passes on."""
        c, state = body.constants, self.state_of(body)
        passed = state.inertia
        if c.joint not in self.prescribed:
            moment, force = (
                add(scale(c.rotation_gain, x), scale(c.translation_gain, y))
                for x, y in zip(passed.column(2), passed.column(5))
            )
            state.column = moment, force
            state.inverse = 1.0 / (body.along_joint(moment, force) + self.armature[c.joint])
            if c.light:
                whole = self.inertia_of(body, _screw(body)) + self.armature[c.joint]
                loss = whole * state.inverse * (state.loss or 1.0)
                self.loss = self.loss + loss
                if c.parent >= 0:
                    self.states[c.parent].loss = self.states[c.parent].loss + loss
            passed = passed.without(state.column, state.inverse)
        if c.parent >= 0:
            parent = self.states[c.parent]
            parent.inertia = parent.inertia.plus(passed.seen_from_parent(body))

    def inertia_of(self, body: Body, motion: Spatial) -> Scalar:
        """Return the inertia that a motion of a body meets; one without mass takes along what it carries."""
        state = self.state_of(body)
        if not body.constants.light:
            return power(motion, state.inertia.times(motion))
        result = power(motion, ArticulatedInertia.of_body(body.constants).times(motion))
        for child in self.jointed:
            if child.constants.parent >= 0 and self.bodies[child.constants.parent] is body:
                result = result + self.inertia_of(child, motion_from_parent(child, motion))
        return result

    def state_of(self, body: Body) -> ArticulatedState:
        """Return what belongs to a body with a joint."""
        return self.states[len(self.bodies) - len(self.jointed) + body.constants.joint]

    def hybrid_dynamics(
        self,
        k: int,
        inputs: Sequence[Scalar],
        base_inputs: Sequence[Scalar] = (),
        loads: Sequence[Sequence[Scalar]] = (),
    ) -> list[Scalar]:
        """Return Taylor coefficient k of what is not given at the joints.

        `inputs` holds coefficient k of the acceleration of prescribed joints and of the torque of the others;
        returned are the torques of the former, the accelerations of the latter. `base_inputs` is coefficient
        k + 1 of a prescribed base's twist or coefficient k of the base wrench in the world frame. `loads` as
        in inverse dynamics.
        """
        if self.base is not None:
            self.multiply_velocities(self.bodies[0], k)
            self.states[0].wrench = self.bodies[0].wrench(k, ZERO, ZERO)
            if self.base_prescribed:
                self.move_base(k, base_inputs)
        if k == 0:  # all that is found follows from these
            inputs = [x + self.lost for x in inputs]
        for body in self.way("outward"):
            self.bias(body, k, inputs[body.constants.joint])
        for state, wrench in zip(self.states, self.applied(loads)):
            state.wrench = minus(state.wrench, wrench)
        for body in self.way("inward"):
            self.gather(body, inputs[body.constants.joint])
        if self.base is not None:
            self.release_base(k, self.states[0].wrench, base_inputs)
        return [self.solve_joint(body, k, inputs[body.constants.joint]) for body in self.way("outward")]

    def bias(self, body: Body, k: int, imposed: Scalar) -> None:
        """Find how a body moves, and what wrench it needs, without the accelerations still to be found.

        Includes the wrench that lower coefficients of the body leave behind at the parent.
        """
        c, state = body.constants, self.state_of(body)
        self.multiply_velocities(body, k)
        w, a = state.carried = self.carry(body, k, *(self.above(body, k) if c.parent < 0 else NOTHING))
        spin = scale(k + 1.0, add(w, body.turn.inward_change([*body.angular_turned, w], k + 1)))
        a = add(a, body.turn.inward_change([*body.linear_turned, a], k))
        if c.joint in self.prescribed:
            spin = add(spin, (0.0, 0.0, c.rotation_gain * imposed))
            a = add(a, (0.0, 0.0, c.translation_gain * imposed))
        state.motion = spin, a
        state.wrench = body.wrench(k, ZERO, ZERO)
        if k > 0 and c.parent >= 0:
            parent = self.states[c.parent]
            parent.wrench = plus(parent.wrench, self.transmit(body, k, ZERO, ZERO))

    def gather(self, body: Body, imposed: Scalar) -> None:
        """Add up what a body and all beyond need without the parent's acceleration, and pass it on."""
        c, state = body.constants, self.state_of(body)
        state.wrench = plus(state.wrench, state.inertia.times(state.motion))
        passed = state.wrench
        if c.joint not in self.prescribed:
            state.drive = imposed - body.along_joint(*state.wrench)
            push = state.inverse * state.drive
            passed = plus(passed, scaled(push, state.column))
        if c.parent >= 0:
            parent = self.states[c.parent]
            parent.wrench = plus(parent.wrench, wrench_at_parent(body, passed))

    def release_base(self, k: int, bias: Spatial, inputs: Sequence[Scalar]) -> None:
        """Find the acceleration of the base under a given wrench, or the wrench of its given motion."""
        assert self.base is not None
        base = self.bodies[0]
        if not self.base_prescribed:
            self.base_wrenches.append(halves(inputs))
            moments, forces = zip(*self.base_wrenches)
            moment, force = self.base.wrench_to_body(moments, forces, k)
            missing = [*subtract(moment, bias[0]), *subtract(force, bias[1])]
            spin, a = halves(solve(self.base_factor, missing))
            self.base.extend_from_acceleration(k, spin, a)
            base.angular.append(self.base.angular[k + 1])
            base.linear.append(a)
        motion = scale(k + 1.0, base.angular[k + 1]), base.linear[k]
        moment, force = plus(bias, self.states[0].inertia.times(motion))
        base.moment.append(moment)
        base.force.append(force)

    def solve_joint(self, body: Body, k: int, imposed: Scalar) -> Scalar:
        """Return the acceleration of a joint, or the torque of a prescribed one; the parent is done."""
        c, state = body.constants, self.state_of(body)
        w, a = state.carried
        moment, force = state.wrench
        drive = state.drive
        if c.parent >= 0:
            parent = self.bodies[c.parent]
            above = scale(k + 1.0, parent.angular[k + 1]), parent.linear[k]
            spin, linear = motion_from_parent(body, above)
            drive = drive - dot(state.column[0], spin) - dot(state.column[1], linear)
            w, a = add(w, scale(1.0 / (k + 1), spin)), add(a, linear)
            moment, force = plus((moment, force), state.inertia.times((spin, linear)))
        if c.joint in self.prescribed:
            acceleration = imposed
            result = body.along_joint(moment, force) + self.armature[c.joint] * acceleration
        else:
            acceleration = result = state.inverse * drive
            moment = add(moment, scale(acceleration, state.column[0]))
            force = add(force, scale(acceleration, state.column[1]))
        self.accelerate(body, k, w, a, acceleration)
        body.moment.append(moment)
        body.force.append(force)
        if body.slides and c.parent >= 0:
            self.transmit(body, k, moment, force)  # completes the moments behind the slide
        return result


def factorise(matrix: Sequence[Sequence[Scalar]], lost: Scalar = 0.0) -> list[list[Scalar]]:
    """Factorise a symmetric positive definite matrix as `L D L^T`, with D^-1 on the result's diagonal.

    Where what is `lost` is not finite, neither is that.
    """
    n = len(matrix)
    factor: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    pivots: list[Scalar] = []
    for j in range(n):
        pivot = matrix[j][j]
        for i in range(j):
            pivot = pivot - factor[j][i] * factor[j][i] * pivots[i]
        pivots.append(pivot)
        factor[j][j] = (1.0 + lost) / pivot
        for i in range(j + 1, n):
            entry = matrix[i][j]
            for m in range(j):
                entry = entry - factor[i][m] * factor[j][m] * pivots[m]
            factor[i][j] = entry * factor[j][j]
    return factor


def solve(factor: Sequence[Sequence[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
    """Solve `L D L^T x = right` with a result of `factorise`."""
    x = list(right)
    n = len(x)
    for i in range(n):
        for j in range(i):
            x[i] = x[i] - factor[i][j] * x[j]
    for i in reversed(range(n)):
        x[i] = factor[i][i] * x[i]
        for j in range(i + 1, n):
            x[i] = x[i] - factor[j][i] * x[j]
    return x
