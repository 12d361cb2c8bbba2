"""One body of the engine's recursion: its series, and the wrench that its motion takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.spatial import Matrix, Spatial
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.engine.series.vectors import Scalar, Vector, add, convolve, cross, dot, scale, times


class Body:
    """One body: its constants, and the Taylor coefficients found so far."""

    def __init__(self, constants: CanonicalBody) -> None:
        self.constants = constants
        self.rotation: list[list[float]] = constants.rotation.tolist()
        self.transposed: list[list[float]] = constants.rotation.T.tolist()
        self.translation: list[float] = constants.translation.tolist()
        self.axis = [row[2] for row in self.rotation]  # of the joint, in the parent
        self.turn = Turn(0.0)  # of the joint; replaced when the recursion starts
        self.slide: list[Scalar] = []  # of the joint along z
        self.angular: list[Vector] = []  # w
        self.linear: list[Vector] = []  # a
        self.products: list[Matrix] = []  # U
        self.moment: list[Vector] = []  # transmitted by the joint, about the frame's origin
        self.force: list[Vector] = []
        # series in the parent's axes after the present turn, from which `Turn` makes those in the body's axes
        self.angular_turned: list[Vector] = []
        self.linear_turned: list[Vector] = []
        # of sliding joints: the parent's B e and w × e on the joint's axis e, and the moment about the
        # parent's side
        self.axis_field: list[Vector] = []
        self.axis_velocity: list[Vector] = []
        self.joint_moment: list[Vector] = []

    @property
    def series(self) -> list[list[Any]]:
        """Those that grow with the order."""
        motion = [self.slide, self.angular, self.linear, self.products, *self.turn.series]
        turned = [self.angular_turned, self.linear_turned, self.axis_field, self.axis_velocity]
        return [*motion, *turned, self.moment, self.force, self.joint_moment]

    @property
    def slides(self) -> bool:
        """Whether the joint moves the body's origin along its axis."""
        return self.constants.translation_gain != 0.0

    def extend_joint(self, coefficient: Scalar) -> None:
        """Append a Taylor coefficient of the joint's position."""
        self.turn.extend(self.constants.rotation_gain * coefficient)
        self.slide.append(self.constants.translation_gain * coefficient)

    def wrench(self, k: int, spin: Vector, a: Vector) -> Spatial:
        """Return coefficient k of moment and force on the body: integrals of x × (a + B x) and a + B x."""
        c = self.constants
        field = acceleration_field(self.products[k], spin)
        h: list[float] = c.first_moment.tolist()
        rows: list[list[float]] = c.second_moment.tolist()
        force = add(scale(c.mass, a), times(field, h))
        z_y = dot(field[2], rows[1]) - dot(field[1], rows[2])
        x_z = dot(field[0], rows[2]) - dot(field[2], rows[0])
        y_x = dot(field[1], rows[0]) - dot(field[0], rows[1])
        return add(cross(h, a), (z_y, x_z, y_x)), force

    def along_joint(self, moment: Vector, force: Vector) -> Scalar:
        """Project a wrench at the body's origin on its joint."""
        return self.constants.rotation_gain * moment[2] + self.constants.translation_gain * force[2]


def acceleration_field(products: Matrix, spin: Vector) -> Matrix:
    """Return `B = w'~ + U` from U and w'."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = products
    x, y, z = spin
    return ((xx, xy - z, xz + y), (xy + z, yy, yz - x), (xz - y, yz + x, zz))


def angular_products(w: Sequence[Vector], k: int) -> Matrix:
    """Return coefficient k of `U = w w^T - |w|^2 1`."""
    x, y, z = ([vector[i] for vector in w] for i in range(3))
    xx, yy, zz = (_square(series, k) for series in (x, y, z))
    xy, xz, yz = convolve(x, y, k), convolve(x, z, k), convolve(y, z, k)
    return ((-(yy + zz), xy, xz), (xy, -(xx + zz), yz), (xz, yz, -(xx + yy)))


def _square(series: Sequence[Scalar], k: int) -> Scalar:
    """Return coefficient k of a squared series, every mixed product taken once."""
    result: Scalar = 0.0
    for i in range((k + 1) // 2):
        result = result + series[i] * series[k - i]
    result = 2.0 * result
    if k % 2 == 0:
        result = result + series[k // 2] * series[k // 2]
    return result
