"""The keys of trajectory files, and the motions that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

from hodyn_ros.errors import InputError
from hodyn_ros.model.keys import Entry, key
from hodyn_ros.model.readers.robot_entries import OriginEntry
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.pose_coordinates import COORDINATES
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


class _Standing(Entry):
    standing: Mapping[str, float] | None = key(
        "positions of joints that the motion does not move, by name [rad or m]", default=None
    )


class TrajectoryFile(_Standing):
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
        beside = ("type", "standing", "coordinates")
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in beside}


class FourierFile(TrajectoryFile):
    """A periodic motion."""

    type: Literal["fourier"]
    angular_frequency: float = key("of the first harmonic [rad/s]")
    sine: Harmonics = key("one row per harmonic, one column per joint [rad/s]")
    cosine: Harmonics = key("one row per harmonic, one column per joint [rad/s]")
    offsets: PerJoint = key("one number per joint [rad]")
    duration: float = key("time of the end [s], or .inf", default=math.inf)

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

    time: float = key("from the start of the motion [s]")
    positions: PerJoint = key("one number per joint [rad or m]")
    velocities: PerJoint | None = key("one number per joint [rad/s or m/s]", default=None)
    accelerations: PerJoint | None = key("one number per joint [rad/s^2 or m/s^2]", default=None)


class WaypointsFile(TrajectoryFile):
    """A motion through waypoints."""

    type: Literal["waypoints"]
    points: tuple[PointEntry, ...] = key("the waypoints in order of time")
    interpolation: Literal["spline", "piecewise"] = key("spline where left out", default="spline")
    order: int = key("highest derivative of a spline that is continuous", default=4)
    at_rest: bool = key("whether a spline starts and ends at rest", default=True)

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        names = self.joint_names
        rows = [(point.time, point.positions, point.velocities, point.accelerations) for point in self.points]
        if self.interpolation == "spline":
            options = {"order": self.order, "at_rest": self.at_rest}
            return WaypointSpline.from_joint_trajectory(names, rows, **options)
        for option in ("order", "at_rest"):
            if option in self.given:
                raise InputError(f"{option} can be given only with interpolation: spline")
        return PiecewisePolynomial.from_joint_trajectory(names, rows)


class PoseFile(_Standing):
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
