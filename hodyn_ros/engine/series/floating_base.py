"""The motion of a floating base as Taylor series, between world and body representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hodyn_ros.engine.series.spatial import Matrix, Spatial
from hodyn_ros.engine.series.vectors import (
    Scalar,
    Vector,
    add,
    cross,
    from_taylor,
    halves,
    scale,
    subtract,
    taylor,
    times,
)
from hodyn_ros.lie.motion import BaseRepresentation


class FloatingBase:
    """Pose, twist and weight of a floating base by Taylor coefficient.

    `angular` and `velocity` are the body-fixed twist; twists go in and come out in the representation
    `frame`. The pose follows from the twist: R' = R w~, p' = R v.
    """

    def __init__(
        self, pose: Sequence[Sequence[Scalar]], gravity: Sequence[Scalar], frame: BaseRepresentation
    ) -> None:
        self.frame = frame
        self.down: Vector = (gravity[0], gravity[1], gravity[2])
        self.rotation: list[Matrix] = [_matrix(pose)]
        self.position: list[Vector] = [(pose[0][3], pose[1][3], pose[2][3])]
        self.angular: list[Vector] = []
        self.velocity: list[Vector] = []
        self.world_angular: list[Vector] = []  # of a twist given in the world frame, and the velocity of the
        self.world_velocity: list[Vector] = []  # base's origin in world axes

    @property
    def series(self) -> list[list[Any]]:
        """Those that grow with the order."""
        of_twist = [self.angular, self.velocity, self.world_angular, self.world_velocity]
        return [self.rotation, self.position, *of_twist]

    @property
    def pose(self) -> list[list[Scalar]]:
        """The present pose (4, 4)."""
        return [*([*row, x] for row, x in zip(self.rotation[0], self.position[0])), [0.0, 0.0, 0.0, 1.0]]

    def extend(self, twist: Sequence[Scalar]) -> None:
        """Append a coefficient of the twist and find the pose one coefficient further."""
        k = len(self.angular)
        w, v = halves(twist)
        if self.frame == "spatial":
            self.remember(w, v)
            w = self._to_body(self.world_angular, k)
            v = self._to_body(self.world_velocity, k)
        self._append(w, v)

    def remember(self, w: Vector, v: Vector) -> None:
        """Append a coefficient of a twist that is given in the world frame; its pose is known as far."""
        self.world_angular.append(w)
        k = len(self.world_velocity)
        self.world_velocity.append(add(v, convolve_vectors(cross, self.world_angular, self.position, k)))

    def extend_from_acceleration(self, k: int, spin: Vector, a: Vector) -> None:
        """Append twist coefficient k + 1 from coefficient k of w' and of the acceleration against gravity."""
        rate = add(a, subtract(self._weight(k), convolve_vectors(cross, self.angular, self.velocity, k)))
        self._append(scale(1.0 / (k + 1), spin), scale(1.0 / (k + 1), rate))

    def acceleration(self, k: int) -> Vector:
        """Return coefficient k of the acceleration of the base's origin against gravity, in its axes."""
        centripetal = convolve_vectors(cross, self.angular, self.velocity, k)
        return subtract(add(scale(k + 1.0, self.velocity[k + 1]), centripetal), self._weight(k))

    def twist(self, k: int) -> list[Scalar]:
        """Return coefficient k of the twist in the representation `frame`."""
        if self.frame == "body_fixed":
            return [*self.angular[k], *self.velocity[k]]
        angular = [self._to_world(self.angular, i) for i in range(k + 1)]
        lever = convolve_vectors(cross, self.position, angular, k)
        return [*angular[k], *add(self._to_world(self.velocity, k), lever)]

    def in_world_axes(self, k: int) -> Spatial:
        """Return coefficient k of the angular velocity and of the velocity of the origin, in world axes."""
        return self._to_world(self.angular, k), self._to_world(self.velocity, k)

    def wrench_to_world(self, moments: Sequence[Vector], forces: Sequence[Vector], k: int) -> list[Scalar]:
        """Return coefficient k of a wrench on the base in the world frame, about the world origin."""
        world_forces = [self._to_world(forces, i) for i in range(k + 1)]
        lever = convolve_vectors(cross, self.position, world_forces, k)
        return [*add(self._to_world(moments, k), lever), *world_forces[k]]

    def wrench_to_body(self, moments: Sequence[Vector], forces: Sequence[Vector], k: int) -> Spatial:
        """Return coefficient k of a wrench given in the world frame, about the base's origin, in its axes."""
        moved = [
            subtract(moments[i], convolve_vectors(cross, self.position, forces, i)) for i in range(k + 1)
        ]
        return self._to_body(moved, k), self._to_body(forces, k)

    def wrenches_to_world(self, wrenches: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """Return body-fixed wrenches by derivative, as they are in the world."""
        moments, forces = zip(*(halves(taylor(row, k)) for k, row in enumerate(wrenches)))
        return [from_taylor(self.wrench_to_world(moments, forces, k), k) for k in range(len(moments))]

    def wrenches_to_body(self, wrenches: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """Return wrenches in the world by derivative, as they are body-fixed."""
        moments, forces = zip(*(halves(taylor(row, k)) for k, row in enumerate(wrenches)))
        turned = [self.wrench_to_body(moments, forces, k) for k in range(len(moments))]
        return [from_taylor([*moment, *force], k) for k, (moment, force) in enumerate(turned)]

    def _append(self, w: Vector, v: Vector) -> None:
        self.angular.append(w)
        self.velocity.append(v)
        k = len(self.angular) - 1
        rows = [  # of R' = R w~: row × w
            scale(1.0 / (k + 1), convolve_vectors(cross, [m[i] for m in self.rotation], self.angular, k))
            for i in range(3)
        ]
        self.position.append(scale(1.0 / (k + 1), self._to_world(self.velocity, k)))
        self.rotation.append((rows[0], rows[1], rows[2]))

    def _weight(self, k: int) -> Vector:
        return times(_transposed(self.rotation[k]), self.down)

    def _to_world(self, series: Sequence[Vector], k: int) -> Vector:
        return convolve_vectors(times, self.rotation, series, k)

    def _to_body(self, series: Sequence[Vector], k: int) -> Vector:
        return convolve_vectors(times, [_transposed(m) for m in self.rotation[: k + 1]], series, k)


def convolve_vectors(
    product: Callable[[Any, Any], Vector], a: Sequence[Any], b: Sequence[Any], k: int
) -> Vector:
    """Return coefficient k of a product of two series that yields vectors."""
    result: Vector = product(a[0], b[k])
    for i in range(1, k + 1):
        result = add(result, product(a[i], b[k - i]))
    return result


def _matrix(rows: Sequence[Sequence[Scalar]]) -> Matrix:
    first, second, third = ((row[0], row[1], row[2]) for row in rows[:3])
    return first, second, third


def _transposed(m: Matrix) -> Matrix:
    return _matrix(list(zip(*m)))
