"""The keys of trajectory files, and the motions that they stand for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from hodyn_ros.errors import FigureWarning, InputError
from hodyn_ros.model.keys import Entry, key
from hodyn_ros.model.readers.robot_entries import OriginEntry
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.pose_coordinates import COORDINATES
from hodyn_ros.trajectory.splines.blended import BlendedLines
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.splines.spline import WaypointSpline

PerJoint = tuple[float, ...]
Harmonics = tuple[PerJoint, ...]


class PartEntry(Entry):
    """A part of a motion, before its own keys are known."""

    closed = False
    type: Literal["fourier", "cosines", "waypoints"]


class MotionFile(Entry):
    """Any motion, before its own keys are known."""

    closed = False
    type: Literal["fourier", "cosines", "waypoints", "pose"]


class TimingEntry(Entry):
    """A time law along a path: the time as written is its parameter u, which runs with (du/dt)^2 = b(u)."""

    knots: tuple[float, ...] = key(
        "of u, from end to end: where the pieces of b begin, and the last one ends"
    )
    squared_speeds: tuple[float, ...] = key("coefficients of b, a spline of degree 5: four more than knots")
    ease: tuple[float, float] = key(
        "of u: over which it starts from rest, and stops to rest", default=(0.0, 0.0)
    )


class _Whole(Entry):
    timing: TimingEntry | None = key("a time law of its own", default=None)
    standing: Mapping[str, float] | None = key(
        "positions of joints that the motion does not move, by name [rad or m]", default=None
    )


class TrajectoryFile(_Whole):
    """A motion of joints, or of the coordinates of a base."""

    joint_names: tuple[str, ...] | None = key("one name per joint", default=None)
    coordinates: tuple[str, ...] = key(
        "of a base: what the columns of its motion are",
        minItems=1,
        items={"enum": [*COORDINATES]},
        default=COORDINATES,
    )

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        raise NotImplementedError

    def _own(self) -> dict[str, Any]:
        beside = ("type", "timing", "standing", "coordinates")
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in beside}


class FourierFile(TrajectoryFile):
    """A periodic motion."""

    type: Literal["fourier"]
    angular_frequency: float = key("of the first harmonic [rad/s]")
    sine: Harmonics = key("one row per harmonic, one column per joint [rad/s]")
    cosine: Harmonics = key("one row per harmonic, one column per joint [rad/s]")
    offsets: PerJoint = key("one number per joint [rad]")
    duration: float = key("time of the end [s], or .inf", default=math.inf)
    at_rest: bool = key("whether it rests at its ends, up to the snap", default=False)

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        return FourierSeries(**self._own())


class CosinesFile(TrajectoryFile):
    """A motion along one cosine a joint."""

    type: Literal["cosines"]
    amplitudes: PerJoint = key("one number per joint [rad]")
    angular_frequencies: PerJoint = key("one number per joint [rad/s]")
    duration: float = key("time of the end [s], or .inf", default=math.inf)

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        return Cosines(**self._own())


class PointEntry(Entry):
    """A waypoint."""

    time: float | None = key(
        "from the start of the motion [s]; left out of all points of a path", default=None
    )
    positions: PerJoint = key("one number per joint [rad or m]")
    velocities: PerJoint | None = key("one number per joint [rad/s or m/s]", default=None)
    accelerations: PerJoint | None = key("one number per joint [rad/s^2 or m/s^2]", default=None)


class WaypointsFile(TrajectoryFile):
    """A motion through waypoints."""

    type: Literal["waypoints"]
    points: tuple[PointEntry, ...] = key("the waypoints in order of time")
    interpolation: Literal["spline", "piecewise", "blend"] = key(
        "spline where left out; blend: straight lines with rounded corners", default="spline"
    )
    order: int = key("highest derivative of a spline or of corners that is continuous", default=4)
    blend: float = key("share of a step over which corners are rounded, to either side", default=0.25)
    at_rest: bool = key("whether a spline starts and ends at rest", default=True)

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        names, points = self.joint_names, self.points
        for option, ways in _WAYS.items():
            if option in self.keys_present and self.interpolation not in ways:
                raise InputError(f"{option} can be given only with interpolation: {' or '.join(ways)}")
        rows = [
            (time, point.positions, point.velocities, point.accelerations)
            for time, point in zip(_times(points), points, strict=True)
        ]
        if self.interpolation == "piecewise":
            return PiecewisePolynomial.from_joint_trajectory(names, rows)
        if self.interpolation == "blend":
            return BlendedLines.from_joint_trajectory(names, rows, blend=self.blend, order=self.order)
        spline = WaypointSpline.from_joint_trajectory(names, rows, order=self.order, at_rest=self.at_rest)
        if said := spline.said_to_swing():
            mend = "space them more evenly, or say interpolation: blend, or a lower order"
            warnings.warn(str(self.error(f"{said}; {mend}")), FigureWarning, stacklevel=3)
        return spline


# the interpolations that options go with
_WAYS = {"order": ("spline", "blend"), "at_rest": ("spline",), "blend": ("blend",)}


def _times(points: Sequence[PointEntry]) -> list[float]:
    """Return the times of points; where none is given, how far the points are along a path."""
    times = [point.time for point in points if point.time is not None]
    if times and len(times) < len(points):
        missing = next(i for i, point in enumerate(points) if point.time is None)
        raise InputError(f"points[{missing}] has no time, but others have; give all of them one, or none")
    if times or not points:
        return times
    if len({len(point.positions) for point in points}) != 1:
        raise InputError("the points have positions of different lengths")
    steps = np.linalg.norm(np.diff([point.positions for point in points], axis=0), axis=1)
    if (steps == 0.0).any():
        i = int(np.argmin(steps))
        raise InputError(
            f"points[{i}] and points[{i + 1}] are the same; leave one out, or give all points a time"
        )
    return [0.0, *np.cumsum(steps).tolist()]


class PoseFile(_Whole):
    """A motion of a platform or floating base."""

    type: Literal["pose"]
    origin: OriginEntry = key("pose in the world that the coordinates start from", default=OriginEntry())
    base: Mapping[str, Any] = key("a motion as the others, of `coordinates` in place of joints")
    joints: Mapping[str, Any] | None = key("of a robot with a floating base: as the others", default=None)


TRAJECTORIES: Mapping[str, type[TrajectoryFile]] = {
    "fourier": FourierFile,
    "cosines": CosinesFile,
    "waypoints": WaypointsFile,
}
"""The forms of a motion of joints, by type."""
