"""What is traced of kinematics: poses, twists and joint screws of frames, Jacobians, with derivatives.

The recursion in spatial representation (Mueller 2020, Algorithm 1) on Taylor coefficients, seen from a point
near the robot, whatever its distance from the world's origin; other representations follow by the series of
axes and origin of each frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hodyn_ros.codegen.kernel import Stack, Traceable
from hodyn_ros.engine.kernel_spec import motion_arguments
from hodyn_ros.engine.loops.loop_series import Cluster, ClusterMotion
from hodyn_ros.engine.series.canonical import canonical_bodies, inward
from hodyn_ros.engine.series.floating_base import convolve_vectors
from hodyn_ros.engine.series.spatial import NOTHING, Spatial
from hodyn_ros.engine.series.vectors import (
    ZERO,
    Scalar,
    add,
    axes_of,
    cross,
    taylor,
    times,
    to_derivatives,
    twist_about,
)
from hodyn_ros.errors import InputError
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Ad, Array, inverse
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

POSE = 16  # numbers of a pose, by rows


def frame_motion(
    model: TreeModel,
    order: int,
    frames: Sequence[Frame],
    representation: Representation,
    screws: bool = False,
) -> Traceable:
    """Trace `q (order + 1, n), ... -> (frames, 16 + 6 order)`: pose by rows, twist and its derivatives.

    With a floating base its pose (4, 4) and spatial twists (order, 6) follow q. With `screws` each row goes
    on with the screw of the joint that moves the frame's body, (order + 1, 6), zero where none does.
    """

    def trace(q: Stack, *base: Stack) -> Stack:
        moved = _Moved(model, order, q, base)
        rows = []
        for frame in frames:
            row = moved.pose(frame)
            for twist in moved.represented(frame, moved.motion.twists[frame.body], representation, order):
                row += twist
            if screws:
                for screw in moved.own_screw(frame, representation):
                    row += screw
            rows.append(row)
        return rows

    return trace, motion_arguments(order + 1, model.n_joints, model.floating_base)


def frame_jacobian(model: TreeModel, order: int, frame: Frame, representation: Representation) -> Traceable:
    """Trace `q (order + 1, n), ... -> ((order + 1) 6, m)`, arguments as of `frame_motion`.

    The m velocities are q', after the body-fixed twist of a floating base.
    """

    def trace(q: Stack, *base: Stack) -> Stack:
        moved = _Moved(model, order, q, base)
        columns: list[Stack] = []
        path = inward(model.parents, frame.body)
        nothing = [[0.0] * 6] * (order + 1)
        if model.floating_base:
            for series in moved.motion.base_screws(order):
                on_it = 0 in path
                columns.append(
                    moved.represented(frame, series, representation, order + 1) if on_it else nothing
                )
        carriers = {model.joint_of(b): b for b in range(model.first_jointed_body, model.n_bodies)}
        for joint in range(model.n_joints):
            carrier = carriers[joint]
            if carrier in path:
                series = moved.motion.screws[carrier]
                columns.append(moved.represented(frame, series, representation, order + 1))
            else:
                columns.append(nothing)
        return [[column[k][i] for column in columns] for k in range(order + 1) for i in range(6)]

    return trace, motion_arguments(order + 1, model.n_joints, model.floating_base)


def com(model: TreeModel, order: int) -> Traceable:
    """Trace `q (order + 1, n), ... -> (order + 1, 3)`, the centre of mass [m] and its derivatives."""

    def trace(q: Stack, *base: Stack) -> Stack:
        moved = _Moved(model, order, q, base)
        total = [[0.0] * 3 for _ in range(order + 1)]
        whole = total_mass(model.masses.tolist())
        for body in range(model.n_bodies):
            share = float(model.masses[body]) / whole
            if not share:
                continue
            frame = moved.motion.frame(Frame(body, _at(model.coms[body])), order)
            for k, row in enumerate(total):
                total[k] = [x + share * y for x, y in zip(row, frame.point[k])]
        total[0] = [x + c for x, c in zip(total[0], moved.center)]
        return to_derivatives(total)

    return trace, motion_arguments(order + 1, model.n_joints, model.floating_base)


def total_mass(masses: Iterable[float]) -> float:
    """Return the mass of all bodies [kg]; InputError where none has any."""
    mass = float(sum(masses))
    if not mass:
        raise InputError("no body of this robot has a mass, so there is no centre of mass")
    return mass


class _Moved:
    """All bodies of a tree in motion, seen from `center` (3,) in the world."""

    def __init__(self, model: TreeModel, order: int, q: Stack, of_base: Sequence[Stack]) -> None:
        self.model, self.order = model, order
        cluster = Cluster(-1, tuple(range(model.n_bodies)), (), ())
        base = None
        self.center: Sequence[Scalar] = model.placements[0, :3, 3].tolist()
        if of_base:
            pose = of_base[0]
            base, self.center = (axes_of(pose), ZERO), [row[3] for row in pose[:3]]
        start = [0.0] * 3 if of_base else self.center
        self.motion = ClusterMotion(cluster, canonical_bodies(model), start, q[0], base, None)
        rates = dict(enumerate(zip(*(taylor(row, k) for k, row in enumerate(q[1 : order + 1])))))
        for k in range(order):
            twist = twist_about(taylor(of_base[1][k], k), self.center) if of_base else NOTHING
            self.motion.extend(rates, twist)

    def pose(self, frame: Frame) -> list[Scalar]:
        """Return a pose by rows."""
        if frame.body < 0:
            fixed: list[Scalar] = frame.pose.ravel().tolist()
            return fixed
        moving = self.motion.frame(frame, 0)
        point = [x + c for x, c in zip(moving.point[0], self.center)]
        rows = [[*(axis[0][i] for axis in moving.axes), point[i]] for i in range(3)]
        return [value for row in [*rows, [0.0, 0.0, 0.0, 1.0]] for value in row]

    def represented(
        self, frame: Frame, screws: Sequence[Spatial], representation: Representation, count: int
    ) -> Stack:
        """Return derivatives (count, 6) of a screw, seen from the center, in a frame's representation."""
        if frame.body < 0:
            return [[0.0] * 6] * count
        angular = [screw[0] for screw in screws[:count]]
        if representation == "spatial":
            center = (self.center[0], self.center[1], self.center[2])
            result = [(w, add(screw[1], cross(center, w))) for w, screw in zip(angular, screws)]
        else:
            moving = self.motion.frame(frame, max(count - 1, 0))
            result = [
                (angular[k], add(screws[k][1], convolve_vectors(cross, angular, moving.point, k)))
                for k in range(count)
            ]
        if representation == "body_fixed":
            axes = list(zip(*moving.axes))
            w, v = ([part[i] for part in result] for i in range(2))
            result = [
                (convolve_vectors(times, axes, w, k), convolve_vectors(times, axes, v, k))
                for k in range(count)
            ]
        return to_derivatives([[*w, *v] for w, v in result])

    def own_screw(self, frame: Frame, representation: Representation) -> Stack:
        """Return derivatives (order + 1, 6) of the screw of the joint that moves a frame's body."""
        nothing = [[0.0] * 6] * self.order
        if frame.body < self.model.first_jointed_body:
            return [[0.0] * 6, *nothing]
        if representation == "body_fixed":  # constant
            place = self.model.placements[frame.body] @ frame.pose
            constant: list[float] = (Ad(inverse(place)) @ self.model.screws[frame.body]).tolist()
            return [constant, *nothing]
        return self.represented(frame, self.motion.screws[frame.body], representation, self.order + 1)


def _at(point: Sequence[float]) -> Array:
    pose: Array = np.eye(4)
    pose[:3, 3] = point
    return pose
