"""The keys of trajectory files, and the motions that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from hodyn_ros.errors import InputError
from hodyn_ros.model.keys import Entry, Key
from hodyn_ros.model.readers.robot_entries import OriginEntry
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.pose_coordinates import COORDINATES
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.splines.spline import WaypointSpline

PerJoint = tuple[float, ...]
Harmonics = tuple[tuple[float, ...], ...]
Coordinate = Annotated[str, Key(enum=[*COORDINATES])]
_DURATION = Key("time of the end [s], or .inf")
_HARMONICS = Key("one row per harmonic, one column per joint [rad/s]")
_STANDING = Key("positions of joints that the motion does not move, by name [rad or m]")


@dataclass(frozen=True, kw_only=True)
class MotionFile(Entry):
    """Any motion, before its own keys are known."""

    open: ClassVar[bool] = True
    type: Literal["fourier", "cosines", "waypoints", "pose"]


@dataclass(frozen=True, kw_only=True)
class PartEntry(MotionFile):
    """A part of a motion, before its own keys are known."""

    type: Literal["fourier", "cosines", "waypoints"]


@dataclass(frozen=True, kw_only=True)
class TrajectoryFile(Entry):
    """A motion of joints, or of the coordinates of a base."""

    joint_names: Annotated[tuple[str, ...] | None, Key("one name per joint")] = None
    standing: Annotated[Mapping[str, float] | None, _STANDING] = None
    coordinates: Annotated[
        tuple[Coordinate, ...],
        Key("of a base: what the columns of its motion are", minItems=1),
    ] = COORDINATES

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        raise NotImplementedError

    def _own(self) -> dict[str, Any]:
        beside = ("type", "standing", "coordinates")
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in beside}


@dataclass(frozen=True, kw_only=True)
class FourierFile(TrajectoryFile):
    """A periodic motion."""

    type: Literal["fourier"]
    angular_frequency: Annotated[float, Key("of the first harmonic [rad/s]")]
    sine: Annotated[Harmonics, _HARMONICS]
    cosine: Annotated[Harmonics, _HARMONICS]
    offsets: Annotated[PerJoint, Key("one number per joint [rad]")]
    duration: Annotated[float, _DURATION] = math.inf

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        return FourierSeries(**self._own())


@dataclass(frozen=True, kw_only=True)
class CosinesFile(TrajectoryFile):
    """A motion along one cosine a joint."""

    type: Literal["cosines"]
    amplitudes: Annotated[PerJoint, Key("one number per joint [rad]")]
    angular_frequencies: Annotated[PerJoint, Key("one number per joint [rad/s]")]
    duration: Annotated[float, _DURATION] = math.inf

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        return Cosines(**self._own())


@dataclass(frozen=True, kw_only=True)
class PointEntry(Entry):
    """A waypoint."""

    time: Annotated[float, Key("from the start of the motion [s]")]
    positions: Annotated[PerJoint, Key("one number per joint [rad or m]")]
    velocities: Annotated[PerJoint | None, Key("one number per joint [rad/s or m/s]")] = None
    accelerations: Annotated[PerJoint | None, Key("one number per joint [rad/s^2 or m/s^2]")] = None


@dataclass(frozen=True, kw_only=True)
class WaypointsFile(TrajectoryFile):
    """A motion through waypoints."""

    type: Literal["waypoints"]
    points: Annotated[tuple[PointEntry, ...], Key("the waypoints in order of time")]
    interpolation: Annotated[Literal["spline", "piecewise"], Key("spline where left out")] = "spline"
    order: Annotated[int, Key("highest derivative of a spline that is continuous")] = 4
    at_rest: Annotated[bool, Key("whether a spline starts and ends at rest")] = True

    def trajectory(self) -> Trajectory:
        """Return the motion; InputError where its figures cannot be."""
        rows = [(point.time, point.positions, point.velocities, point.accelerations) for point in self.points]
        if self.interpolation == "spline":
            return WaypointSpline.from_joint_trajectory(
                self.joint_names, rows, order=self.order, at_rest=self.at_rest
            )
        options = [key for key in ("order", "at_rest") if key in self.given]
        if options:
            raise InputError(f"{' and '.join(options)} can be given only with interpolation: spline")
        return PiecewisePolynomial.from_joint_trajectory(self.joint_names, rows)


@dataclass(frozen=True, kw_only=True)
class PoseFile(Entry):
    """A motion of a platform or floating base."""

    type: Literal["pose"]
    origin: Annotated[OriginEntry, Key("pose in the world that the coordinates start from")] = OriginEntry()
    base: Annotated[Mapping[str, Any], Key("a motion as the others, of `coordinates` in place of joints")]
    joints: Annotated[Mapping[str, Any] | None, Key("of a robot with a floating base: as the others")] = None
    standing: Annotated[Mapping[str, float] | None, _STANDING] = None


TRAJECTORIES: Mapping[str, type[TrajectoryFile]] = {
    "fourier": FourierFile,
    "cosines": CosinesFile,
    "waypoints": WaypointsFile,
}
"""The forms of a motion of joints, by type."""
