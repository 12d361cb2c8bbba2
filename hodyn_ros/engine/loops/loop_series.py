"""Bodies between which loops close, by Taylor coefficients over abstract scalars, and the rows of the loops.

Loops that share no unknown joint have nothing to do with each other. Those that do are one cluster, seen from
the body from which all its branches start, whose own motion does not matter: screws and twists in spatial
representation, `V_j = V_p + S_j q_j'` and `S_j' = ad_{V_p} S_j` (Mueller 2020, Algorithm 1), and the rows of
`hodyn_ros.formulations.closure_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.engine.series.canonical import CanonicalBody, inward
from hodyn_ros.engine.series.floating_base import convolve_vectors
from hodyn_ros.engine.series.joint_curve import curve, slopes
from hodyn_ros.engine.series.spatial import (
    NOTHING,
    Axes,
    Spatial,
    bracket,
    combine,
    minus,
    plus,
    power,
    scaled,
)
from hodyn_ros.engine.series.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    convolve,
    cross,
    dot,
    halves,
    scale,
    subtract,
    times,
)
from hodyn_ros.formulations.closure_rows import Row
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Follower
from hodyn_ros.model.frames import Frame

UNITS: Axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
TARGET = -2  # in the place of a body: the pose that is given of a platform


@dataclass(frozen=True, eq=False)
class PlacedRow:
    """A row between frames on two bodies, -1 being the ground or the body that a cluster is seen from."""

    row: Row
    a: Frame
    b: Frame
    length: float  # [m] of a rod, else zero
    size: float  # what it is measured in: the robot's size, or one radian
    loop: int  # number of its loop


@dataclass(frozen=True, eq=False)
class FollowerRow:
    """The row of a joint that follows another one along a curve, `q_j' - f'(q_i) q_i' = 0`."""

    follower: Follower
    size: float  # what the joint is measured in
    loop: int

    @property
    def joints(self) -> tuple[int, int]:
        """Both joints."""
        return self.follower.joint, self.follower.of


class Observer(NamedTuple):
    """Where a limb of a platform is seen from: `frame` (4, 4), and its end in the frame of the platform."""

    frame: Any
    attachment: Any


@dataclass(frozen=True, eq=False)
class Cluster:
    """Bodies on the way between the ends of some loops, from `root` outward, and the rows of these loops."""

    root: int
    bodies: tuple[int, ...]
    rows: tuple[PlacedRow | FollowerRow, ...]
    checked: tuple[PlacedRow | FollowerRow, ...]  # rows that depend on the others
    observer: Observer | None = None


class MovingFrame:
    """A frame fixed to a body, by Taylor coefficients of its point and axes."""

    def __init__(self, axes: Axes, point: Vector) -> None:
        self.axes = [[axis] for axis in axes]
        self.point = [point]

    def extend(self, twists: Sequence[Spatial]) -> None:
        """Go one coefficient further with the twist of the body up to the one before."""
        k = len(self.point) - 1
        step = 1.0 / (k + 1)
        for series in self.axes:
            series.append(scale(step, _turned(twists, series, k)))
        self.point.append(scale(step, add(twists[k][1], _turned(twists, self.point, k))))


class ClusterMotion:
    """The motion of the bodies of a cluster; `rates[j]` are coefficients of the velocity of joint j.

    `base`: axes and position of body 0 and the coefficients of its twist, where it is moved as given;
    `target`: those of the pose given of a platform. All are seen from the point of reference. `places`: axes
    and position of each body at present; `screws` of joints and their `screw_rates`, `twists` of bodies.
    """

    def __init__(
        self,
        cluster: Cluster,
        bodies: Sequence[CanonicalBody],
        center: Sequence[float],
        positions: Sequence[Scalar],
        base: tuple[Axes, Vector] | None,
        target: tuple[Axes, Vector] | None,
    ) -> None:
        self.cluster = cluster
        self._bodies = bodies
        self.positions = positions
        self._rates: Mapping[int, Sequence[Scalar]] = {}
        self._frame: tuple[Axes, Vector] | None = None
        if cluster.observer is not None:
            assert base is not None
            self._frame, attachment = (_axes_and_point(pose) for pose in cluster.observer)
            target = _seen(self._frame, _composed(base, attachment))
            base, center = None, [0.0, 0.0, 0.0]
        self._center = np.asarray(center)
        self.places: dict[int, tuple[Axes, Vector]] = {-1: (UNITS, ZERO)}
        if cluster.root >= 0:
            self.places[cluster.root] = (UNITS, ZERO)
        elif base is not None:
            self.places[0] = base
        self.screws: dict[int, list[Spatial]] = {}
        self.screw_rates: dict[int, list[Spatial]] = {}
        self.twists: dict[int, list[Spatial]] = {body: [] for body in self.places}
        for j in cluster.bodies:
            body = bodies[j]
            if body.joint < 0:
                continue
            axes, place = self.places[body.parent]
            shift = body.translation - self._center if body.parent < 0 else body.translation
            place = add(place, combine(axes, shift.tolist()))
            x, y, z = (combine(axes, column) for column in body.rotation.T.tolist())
            lever = scale(body.rotation_gain, cross(place, z))
            self.screws[j] = [(scale(body.rotation_gain, z), add(lever, scale(body.translation_gain, z)))]
            c, s = _turn(body, positions[body.joint])
            axes = (add(scale(c, x), scale(s, y)), subtract(scale(c, y), scale(s, x)), z)
            along = scale(body.translation_gain * positions[body.joint], z)
            self.places[j] = (axes, add(place, along))
            self.twists[j], self.screw_rates[j] = [], []
        if target is not None:
            self.places[TARGET] = target
            self.twists[TARGET] = []
        self._frames: dict[tuple[int, bytes], MovingFrame] = {}
        self._wrenches: list[list[Spatial]] = [[] for _ in cluster.rows]
        parents = [body.parent for body in bodies]
        self._supports: list[tuple[set[int], set[int]]] = []  # of rows between bodies
        for row in cluster.rows:
            ends = () if isinstance(row, FollowerRow) else (row.a.body, row.b.body)
            of_a, of_b = (set(inward(parents, end, cluster.root)) for end in ends) if ends else (set(), set())
            if cluster.observer is not None:
                of_a = {TARGET}
            self._supports.append((of_a, of_b))
        joints = [bodies[body].joint for body in self.screws]
        joints += [
            j for row in (*cluster.rows, *cluster.checked) if isinstance(row, FollowerRow) for j in row.joints
        ]
        self.joints = tuple(dict.fromkeys(joints))  # whose velocities count

    def frame(self, on_body: Frame, k: int = 0) -> MovingFrame:
        """Return a frame of a loop up to coefficient k at least; twists up to k - 1 are needed."""
        key = on_body.body, on_body.pose.tobytes()
        body = self._known(on_body.body)
        if key not in self._frames:
            axes, place = self.places[body]
            local = on_body.pose.copy()
            if on_body.body >= 0:
                local = self._bodies[on_body.body].body_in_frame @ local
            elif on_body.body == -1:
                local[:3, 3] -= self._center
            x, y, z = (combine(axes, column) for column in _clean(local[:3, :3]).T.tolist())
            self._frames[key] = MovingFrame((x, y, z), add(place, combine(axes, local[:3, 3].tolist())))
        frame, twists = self._frames[key], self.twists[body]
        while len(frame.point) <= k:
            frame.extend(twists)
        return frame

    def _known(self, body: int) -> int:
        return -1 if body == self.cluster.root else body

    def extend(
        self,
        rates: Mapping[int, Sequence[Scalar]],
        base_twist: Spatial = NOTHING,
        target_twist: Spatial = NOTHING,
    ) -> None:
        """Append the next coefficient of all twists, and of the screws the one after it."""
        self._rates = rates
        k = len(self.twists[-1])
        self.append(self.twists, rates, base_twist, target_twist)
        for body, screws in self.screws.items():
            above = self.twists[self._above(body)]
            rate = bracket(above[k], screws[0])
            for i in range(1, k + 1):
                rate = plus(rate, bracket(above[k - i], screws[i]))
            self.screw_rates[body].append(rate)
            screws.append(scaled(1.0 / (k + 1), rate))

    def base_screws(self, order: int) -> list[list[Spatial]]:
        """Return the screws of the body-fixed twist of a floating base up to a coefficient.

        Twists up to the one before are needed.
        """
        base, orders = self.frame(Frame.of_body(0), order), range(order + 1)
        turns = [
            [(axis[k], convolve_vectors(cross, base.point, axis, k)) for k in orders] for axis in base.axes
        ]
        return [*turns, *([(ZERO, axis[k]) for k in orders] for axis in base.axes)]

    def append(
        self,
        twists: Mapping[int, list[Spatial]],
        rates: Mapping[int, Sequence[Scalar]],
        base_twist: Spatial = NOTHING,
        target_twist: Spatial = NOTHING,
    ) -> None:
        """Append the next coefficient to the twists of all bodies, whether they are those of the motion."""
        k = len(twists[-1])
        if self._frame is not None:
            target_twist = _twist_seen(self._frame, base_twist)
        for body, series in twists.items():
            if body == TARGET:
                series.append(target_twist)
            elif body == 0 and self._bodies[0].joint < 0 and self.cluster.root < 0:
                series.append(base_twist)
            elif body not in self.screws:
                series.append(NOTHING)
            else:
                own = moved(self.screws[body], rates[self._bodies[body].joint], k)
                series.append(plus(twists[self._above(body)][k], own))

    def _above(self, body: int) -> int:
        parent = self._bodies[body].parent
        return -1 if parent < 0 or parent == self.cluster.root else parent

    def withdraw(self) -> None:
        """Take back what the last `append` has added to the twists of the motion."""
        for twists in self.twists.values():
            twists.pop()

    def gap(self, row: PlacedRow | FollowerRow) -> Scalar:
        """Return by how much a row is open [m or rad]."""
        if isinstance(row, FollowerRow):
            joint, of, function = row.follower
            return self.positions[joint] - curve(function, self.positions[of], 1)[0]
        if row.row.what == "twist":
            return self._apart(row.a, row.b)[row.row.i]
        return open_by(row, self.frame(row.a), self.frame(row.b))

    def _apart(self, a: Frame, b: Frame) -> list[Scalar]:
        """Return the small twist (6,) that brings one frame to another."""
        of_a, of_b = self.frame(a), self.frame(b)
        turned: Vector = ZERO
        for (p, *_), (q, *_) in zip(of_a.axes, of_b.axes):
            turned = add(turned, cross(p, q))
        turned = scale(0.5, turned)
        shift = subtract(of_b.point[0], of_a.point[0])
        return [*turned, *add(shift, cross(of_b.point[0], turned))]

    def wrench(self, row: int, k: int) -> Spatial:
        """Return coefficient k of the wrench of a row between bodies; twists up to k - 1 are needed."""
        series = self._wrenches[row]
        while len(series) <= k:
            placed = self.cluster.rows[row]
            assert isinstance(placed, PlacedRow)
            m = len(series)
            if placed.row.what == "twist":
                series.append(halves([float(m == 0 and i == placed.row.i) for i in range(6)]))
                continue
            series.append(_wrench(placed, self.frame(placed.a, m), self.frame(placed.b, m), m))
        return series[k]

    def slopes(self, row: int, k: int) -> list[Scalar]:
        """Return the coefficients up to k of `f'(q_i)` of a follower's row."""
        placed = self.cluster.rows[row]
        assert isinstance(placed, FollowerRow)
        of = placed.follower.of
        motion = [self.positions[of], *(rate / (i + 1.0) for i, rate in enumerate(self._rates.get(of, ())))]
        return slopes(placed.follower.function, motion[: k + 1])

    def residual(
        self, row: int, rates: Mapping[int, Sequence[Scalar]], twists: Mapping[int, Sequence[Spatial]]
    ) -> Scalar:
        """Return coefficient k of a row's rate, k being that of the last rates and twists."""
        k = len(twists[-1]) - 1
        placed = self.cluster.rows[row]
        if isinstance(placed, FollowerRow):
            joint, of = placed.joints
            return rates[joint][k] - convolve(self.slopes(row, k), rates[of], k)
        a, b = twists[self._known(placed.a.body)], twists[self._known(placed.b.body)]
        result: Scalar = 0.0
        for i in range(k + 1):
            result = result + power(minus(b[k - i], a[k - i]), self.wrench(row, i))
        return result

    def entries(self, row: int, k: int = 0) -> dict[int, Scalar]:
        """Return coefficient k of a row of the Jacobian, by joint."""
        result: dict[int, Scalar] = {}
        placed = self.cluster.rows[row]
        if isinstance(placed, FollowerRow):
            joint, of = placed.joints
            return {joint: 0.0 if k else 1.0, of: -self.slopes(row, k)[k]}
        of_a, of_b = self._supports[row]
        for body in of_a ^ of_b:
            if body not in self.screws:
                continue
            value: Scalar = 0.0
            for i in range(k + 1):
                value = value + power(self.screws[body][k - i], self.wrench(row, i))
            result[self._bodies[body].joint] = value if body in of_b else -value
        return result

    def loads(self, multipliers: Sequence[Sequence[Scalar]], k: int, least: int) -> dict[int, Spatial]:
        """Return by body coefficient k of the wrench that all loops exert on what a joint carries.

        `multipliers[i]` (rows,) by coefficient; products with coefficients of wrenches from `least` on.
        """
        result = dict.fromkeys(self.twists, NOTHING)
        for row, placed in enumerate(self.cluster.rows):
            if isinstance(placed, FollowerRow):
                continue
            total = NOTHING
            for i in range(least, k + 1):
                total = plus(total, scaled(multipliers[k - i][row], self.wrench(row, i)))
            of_a, of_b = self._supports[row]
            for body in of_b - of_a:
                result[body] = plus(result[body], total)
            for body in of_a - of_b:
                result[body] = plus(result[body], scaled(-1.0, total))
        return result

    def on_base(self, loads: Mapping[int, Spatial]) -> Spatial | None:
        """Return the wrench on the base among `loads`, about the point of reference, if there is one."""
        if self._frame is None:
            return loads.get(0) if self._bodies[0].joint < 0 else None
        axes, point = self._frame
        moment, force = (combine(axes, part) for part in loads[TARGET])
        return add(moment, cross(point, force)), force

    def efforts(self, multipliers: Sequence[Sequence[Scalar]], k: int, least: int) -> dict[int, Scalar]:
        """Return by joint coefficient k of the effort of the followers' rows, as `loads` those of loops."""
        result: dict[int, Scalar] = {}
        for row, placed in enumerate(self.cluster.rows):
            if isinstance(placed, FollowerRow):
                for i in range(least, k + 1):
                    for joint, entry in self.entries(row, i).items():
                        result[joint] = result.get(joint, 0.0) + entry * multipliers[k - i][row]
        return result


def moved(screws: Sequence[Spatial], rates: Sequence[Scalar], k: int) -> Spatial:
    """Return coefficient k of a screw times a velocity."""
    result = NOTHING
    for i in range(k, -1, -1):
        result = plus(result, scaled(rates[k - i], screws[i]))
    return result


def open_by(placed: PlacedRow, a: MovingFrame, b: MovingFrame) -> Scalar:
    """Return by how much a row is open [m or rad]."""
    row, apart = placed.row, subtract(b.point[0], a.point[0])
    A, B = ([series[0] for series in frame.axes] for frame in (a, b))
    if row.what == "point":
        return dot(A[row.i], apart)
    if row.what == "turn":
        j, k = (row.i + 1) % 3, (row.i + 2) % 3
        return 0.5 * (dot(A[k], B[j]) - dot(A[j], B[k]))
    if row.what == "normal":
        return dot(A[row.i], B[row.j])
    if row.what == "distance":
        return (dot(apart, apart) - placed.length**2) * (0.5 / placed.length)
    return 0.0


def _wrench(placed: PlacedRow, a: MovingFrame, b: MovingFrame, k: int) -> Spatial:
    row = placed.row
    if row.what == "point":
        axis = a.axes[row.i]
        return convolve_vectors(cross, b.point, axis, k), axis[k]
    if row.what == "turn":
        m, n = (row.i + 1) % 3, (row.i + 2) % 3
        couple = subtract(
            convolve_vectors(cross, b.axes[m], a.axes[n], k), convolve_vectors(cross, b.axes[n], a.axes[m], k)
        )
        return scale(0.5, couple), ZERO
    if row.what == "normal":
        return convolve_vectors(cross, b.axes[row.j], a.axes[row.i], k), ZERO
    if row.what == "distance":
        apart = [subtract(q, p) for p, q in zip(a.point[: k + 1], b.point)]
        factor = 1.0 / placed.length
        return scale(factor, convolve_vectors(cross, a.point, apart, k)), scale(factor, apart[k])
    return b.axes[2][k], ZERO


def _axes_and_point(pose: Any) -> tuple[Axes, Vector]:
    rows = pose.tolist()
    x, y, z, point = ((rows[0][i], rows[1][i], rows[2][i]) for i in range(4))
    return (x, y, z), point


def _composed(a: tuple[Axes, Vector], b: tuple[Axes, Vector]) -> tuple[Axes, Vector]:
    x, y, z = (combine(a[0], axis) for axis in b[0])
    return (x, y, z), add(a[1], combine(a[0], b[1]))


def _seen(frame: tuple[Axes, Vector], pose: tuple[Axes, Vector]) -> tuple[Axes, Vector]:
    x, y, z = (times(frame[0], axis) for axis in pose[0])
    return (x, y, z), times(frame[0], subtract(pose[1], frame[1]))


def _twist_seen(frame: tuple[Axes, Vector], twist: Spatial) -> Spatial:
    w, v = twist
    return times(frame[0], w), times(frame[0], subtract(v, cross(frame[1], w)))


def _turned(twists: Sequence[Spatial], series: Sequence[Vector], k: int) -> Vector:
    return convolve_vectors(cross, [twist[0] for twist in twists[: k + 1]], series, k)


def _turn(body: CanonicalBody, position: Scalar) -> tuple[Scalar, Scalar]:
    angle = body.rotation_gain * position + body.offset
    return np.cos(angle), np.sin(angle)


def _clean(matrix: Any) -> Any:
    """Return a rotation with entries that miss 0 or 1 by rounding alone set right."""
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < 4e-15, nearest, matrix)


def weighted(weights: Array, values: Sequence[Scalar]) -> Scalar:
    """Return the sum of values times weights, most of which are zero."""
    result: Scalar = 0.0
    for weight, value in zip(weights.tolist(), values):
        if weight:
            result = result + value * weight
    return result
