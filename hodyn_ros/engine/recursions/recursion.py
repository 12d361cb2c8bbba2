"""The one recursion of the engine: Newton-Euler in body frames on Taylor coefficients, over abstract scalars.

A series x(t) = sum_k x_k t^k is the list of its coefficients, x_k = x^(k) / k!, so that products are plain
convolutions. Scalars know `+ - * /` and answer to `numpy.cos` and `numpy.sin`: floats and NumPy arrays (a
batch) give numbers, the tracer's scalars give straight-line code.

Every body carries its angular velocity w and the acceleration a of its origin, in its own axes, gravity
counting as acceleration of the ground. Its points accelerate by a + B x with B = w'~ + U and
`U = w w^T - |w|^2 1`, so that force and moment are linear in B and in the first and second moments of its
mass: U is the only product of motions besides the turn of the joint. It is the Newton-Euler equation of
Kumar & Mueller (2021), eqs. 4, 11 and 19, with half the operations of its twist form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from hodyn_ros.engine.series.applied import AppliedWrench
from hodyn_ros.engine.series.body import Body, acceleration_field, angular_products
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import NOTHING, Spatial, minus, plus
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.engine.series.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    from_taylor,
    scale,
    taylor,
    times,
    to_derivatives,
)

Direction = Literal["outward", "inward"]


class Recursion:
    """The recursion on one robot, coefficient by coefficient.

    `start` takes positions and velocities; the passes for k = 0, 1, ... then follow in turn. A floating base
    brings its own motion; `loads` are the wrenches that the environment applies.
    """

    def __init__(
        self,
        bodies: Sequence[CanonicalBody],
        gravity: Sequence[float],
        base: FloatingBase | None = None,
        loads: Sequence[AppliedWrench] = (),
    ) -> None:
        self.bodies = [Body(constants) for constants in bodies]
        self.jointed = [body for body in self.bodies if body.constants.joint >= 0]
        self.ground: Vector = (-float(gravity[0]), -float(gravity[1]), -float(gravity[2]))
        self.base = base
        self.loads = tuple(loads)

    def way(self, direction: Direction) -> Iterable[Body]:
        """Return the bodies with joints: outward, parents before children, or inward."""
        return self.jointed if direction == "outward" else reversed(self.jointed)

    def torques(
        self,
        q: Sequence[Sequence[Scalar]],
        twists: Sequence[Sequence[Scalar]] = (),
        loads: Sequence[Sequence[Sequence[Scalar]]] = (),
    ) -> list[list[Scalar]]:
        """Return the torques (order + 1, n) from a motion q (order + 3, n), all by derivative.

        `twists` (order + 2, 6) of a floating base, `loads` (order + 1, 6) each.
        """
        orders = range(len(q) - 2)
        self.start(q[0], q[1], twists[0] if self.base else ())
        coefficients = self.inverse_dynamics(
            [taylor(q[k + 2], k) for k in orders],
            [taylor(twists[k + 1], k + 1) for k in orders] if self.base else (),
            [[taylor(load[k], k) for load in loads] for k in orders],
        )
        return to_derivatives(coefficients)

    def start(
        self, positions: Sequence[Scalar], velocities: Sequence[Scalar], twist: Sequence[Scalar] = ()
    ) -> None:
        """Take positions and velocities of the joints and, of a floating base, the present twist."""
        if self.base is not None:
            self.base.extend(twist)
            self.bodies[0].angular.append(self.base.angular[0])
        for body in self.way("outward"):
            joint = body.constants.joint
            self.start_joint(body, positions[joint], velocities[joint])

    def start_joint(self, body: Body, position: Scalar, velocity: Scalar) -> None:
        """Take position and velocity of one joint, its parent having been started."""
        c = body.constants
        body.turn = Turn(c.rotation_gain * position + c.offset)
        body.slide.append(c.translation_gain * position)
        body.extend_joint(velocity)
        above = ZERO if c.parent < 0 else self.bodies[c.parent].angular[0]
        turned = body.turn.inward(times(body.transposed, above))
        body.angular_turned.append(turned)
        body.angular.append(add(turned, (0.0, 0.0, c.rotation_gain * velocity)))

    def inverse_dynamics(
        self,
        accelerations: Sequence[Sequence[Scalar]],
        twists: Sequence[Sequence[Scalar]] = (),
        loads: Sequence[Sequence[Sequence[Scalar]]] = (),
    ) -> list[list[Scalar]]:
        """Return the Taylor coefficients k = 0, 1, ... of the joint torques from those of the accelerations.

        `twists[k]` is coefficient k + 1 of a floating base's twist, `loads[k]` coefficient k of every applied
        wrench. Body by body with all orders at once, so that few numbers are alive at a time.
        """
        orders = range(len(accelerations))
        for body in [*(self.bodies[:1] if self.base else ()), *self.way("outward")]:
            for k in orders:
                moment, force = self.needed(body, k, accelerations[k], twists[k] if twists else ())
                body.moment.append(moment)
                body.force.append(force)
        for k in orders if self.loads else ():
            for body, wrench in zip(self.bodies, self.applied(loads[k])):
                body.moment[k], body.force[k] = minus((body.moment[k], body.force[k]), wrench)
        torques: list[list[Scalar]] = [[0.0] * len(self.jointed) for _ in orders]
        for body in self.way("inward"):
            for k in orders:
                torques[k][body.constants.joint] = self.hand_on(body, k)
        return torques

    def needed(self, body: Body, k: int, accelerations: Sequence[Scalar], twist: Sequence[Scalar]) -> Spatial:
        """Extend the motion of a body, and return coefficient k of the wrench that it needs by itself.

        From coefficient k of the accelerations of all joints, and k + 1 of a floating base's twist.
        """
        if body.constants.joint < 0:
            self.multiply_velocities(body, k)
            self.move_base(k, twist)
        else:
            self.move(body, k, accelerations[body.constants.joint])
        return body.wrench(k, scale(k + 1.0, body.angular[k + 1]), body.linear[k])

    def hand_on(self, body: Body, k: int) -> Scalar:
        """Return coefficient k of a joint's torque, and add what it passes on to its parent's wrench."""
        torque = body.along_joint(body.moment[k], body.force[k])
        if body.constants.parent >= 0:
            parent = self.bodies[body.constants.parent]
            passed = self.transmit(body, k, body.moment[k], body.force[k])
            parent.moment[k], parent.force[k] = plus((parent.moment[k], parent.force[k]), passed)
        return torque

    def move(self, body: Body, k: int, acceleration: Scalar) -> None:
        """Extend the motion of a body, given coefficient k of the acceleration of its joint."""
        self.multiply_velocities(body, k)
        w, a = self.above(body, k)
        self.accelerate(body, k, *self.carry(body, k, w, a), acceleration)

    def move_base(self, k: int, twist: Sequence[Scalar]) -> None:
        """Take coefficient k + 1 of the twist of a floating base."""
        assert self.base is not None
        self.base.extend(twist)
        self.bodies[0].angular.append(self.base.angular[k + 1])
        self.bodies[0].linear.append(self.base.acceleration(k))

    def base_wrench(self, k: int) -> list[Scalar]:
        """Return coefficient k of the wrench that moves a floating base, in the world frame."""
        assert self.base is not None
        return self.base.wrench_to_world(self.bodies[0].moment, self.bodies[0].force, k)

    def base_result(self, k: int) -> list[Scalar]:
        """Return derivative k of the wrench that moves a floating base, in the world; nothing without one."""
        return from_taylor(self.base_wrench(k), k) if self.base else []

    def applied(self, loads: Sequence[Sequence[Scalar]]) -> list[Spatial]:
        """Return the next coefficient of what the environment applies to every body, in its axes."""
        result: list[Spatial] = [NOTHING] * len(self.bodies)
        for load, values in zip(self.loads, loads):
            result[load.body] = plus(result[load.body], load.extend(self.bodies, self.base, values))
        return result

    def multiply_velocities(self, body: Body, k: int) -> None:
        """Extend the products of velocities that the accelerations of order k need in a body."""
        body.products.append(angular_products(body.angular, k))
        if body.slides and body.constants.parent >= 0:
            body.axis_velocity.append(cross(self.bodies[body.constants.parent].angular[k], body.axis))

    def above(self, body: Body, k: int) -> Spatial:
        """Return coefficient k + 1 of w and k of a of a body's parent or, at the root, of the ground."""
        parent = body.constants.parent
        if parent < 0:
            return ZERO, self.ground if k == 0 else ZERO
        return self.bodies[parent].angular[k + 1], self.bodies[parent].linear[k]

    def carry(self, body: Body, k: int, w: Vector, a: Vector) -> Spatial:
        """Carry coefficient k + 1 of the parent's w and k of its a to the body, turned to the present angle.

        Includes what the product of velocities and the joint's slide add to a; leaves out the change of the
        turn.
        """
        parent = body.constants.parent
        if parent >= 0:
            field = acceleration_field(self.bodies[parent].products[k], scale(k + 1.0, w))
            a = add(a, times(field, body.translation))
            if body.slides:
                fields = [*body.axis_field[:k], times(field, body.axis)]
                for i in range(k + 1):
                    a = add(a, scale(body.slide[k - i], fields[i]))
                    a = add(a, scale(2.0 * (k - i + 1) * body.slide[k - i + 1], body.axis_velocity[i]))
        turn = body.turn
        return turn.inward(times(body.transposed, w)), turn.inward(times(body.transposed, a))

    def accelerate(self, body: Body, k: int, w: Vector, a: Vector, acceleration: Scalar) -> None:
        """Extend the motion of a body from the carried motion `w`, `a` and its joint's acceleration."""
        c = body.constants
        body.angular_turned.append(w)
        body.linear_turned.append(a)
        if body.slides and c.parent >= 0:
            parent = self.bodies[c.parent]
            field = acceleration_field(parent.products[k], scale(k + 1.0, parent.angular[k + 1]))
            body.axis_field.append(times(field, body.axis))
        w = add(w, body.turn.inward_change(body.angular_turned, k + 1))
        a = add(a, body.turn.inward_change(body.linear_turned, k))
        rate = acceleration * (1.0 / (k + 1))
        body.angular.append(add(w, (0.0, 0.0, c.rotation_gain * rate)))
        body.linear.append(add(a, (0.0, 0.0, c.translation_gain * acceleration)))
        body.extend_joint(rate * (1.0 / (k + 2)))

    def transmit(self, body: Body, k: int, moment: Vector, force: Vector) -> Spatial:
        """Return coefficient k of what a joint passes to the parent, about the parent's origin, in its axes.

        `moment`, `force` are coefficient k at the body's origin; the lower ones are taken from the body.
        """
        if body.slides:
            forces = [*body.force[:k], force]
            for i in range(k + 1):
                lever = body.slide[k - i]
                moment = add(moment, (-lever * forces[i][1], lever * forces[i][0], 0.0))
            body.joint_moment[k:] = [moment]
            moments: Sequence[Vector] = body.joint_moment
        else:
            moments = body.moment
        turn = body.turn
        moment = times(body.rotation, turn.outward(add(moment, turn.outward_change(moments, k))))
        force = times(body.rotation, turn.outward(add(force, turn.outward_change(body.force, k))))
        return add(moment, cross(body.translation, force)), force
