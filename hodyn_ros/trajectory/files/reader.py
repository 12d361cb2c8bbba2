"""Read trajectories from YAML."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.files.schema import ANY_MOTION, TRAJECTORIES, Schema, pose_motion
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.pose_coordinates import COORDINATES, poses
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.splines.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.splines.spline import WaypointSpline

_PARTS = ("base", "joints")


def read_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory of joints from a YAML file.

    Its `type` is fourier, cosines or waypoints. The other keys are those of FourierSeries and Cosines, or a
    list of `points`, each with its `time`, `positions`, and optionally `velocities` and `accelerations`; see
    `config/README.md`. Raises InputError in one line that names the file and the place in it.
    """
    motion = read_motion(path)
    if motion.moves_base:
        raise InputError(
            f"{os.fspath(path)}: moves a platform or a floating base, and joints alone are meant"
        )
    return motion.trajectory


def read_motion(path: str | os.PathLike[str]) -> RobotMotion:
    """Read the motion of a robot from a YAML file: of joints, or of type pose.

    `type: pose` moves the `base`, a platform or floating base, from its `origin`, and the `joints`, if any.
    Raises InputError in one line that names the file and the place in it.
    """
    try:
        data = dict(read_document(path, choose_schema).text.data)
    except ModelError as error:
        raise InputError(str(error)) from error
    try:
        is_pose = data["type"] == "pose"
        motion = _pose_motion(data) if is_pose else RobotMotion.of_joints(_trajectory(data))
        if "standing" in data:
            motion = motion.for_joints([*(motion.joint_names or ()), *data["standing"]], data["standing"])
        return motion
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error


def choose_schema(data: dict[str, Any]) -> Schema:
    """Return the schema for what a file says that it is."""
    kind = data.get("type")
    if kind == "pose":
        kinds = (part.get("type") if isinstance(part, dict) else None for part in map(data.get, _PARTS))
        return pose_motion(*kinds)
    return TRAJECTORIES.get(kind, ANY_MOTION) if isinstance(kind, str) else ANY_MOTION


def _trajectory(data: dict[str, Any]) -> Trajectory:
    others = ("type", "standing", "source", "note")
    figures = {key: value for key, value in data.items() if key not in others}
    if data["type"] == "fourier":
        return FourierSeries(**figures)
    if data["type"] == "cosines":
        return Cosines(**figures)
    return _through_waypoints(**figures)


def _pose_motion(data: dict[str, Any]) -> RobotMotion:
    figures = dict(data["base"])
    coordinates = figures.pop("coordinates", COORDINATES)
    base, joints = _part("base", figures), None
    if "joints" in data:
        joints = _part("joints", data["joints"])
    origin = {"xyz": [0.0] * 3, "rpy": [0.0] * 3, **data.get("origin", {})}
    placement = poses(np.array([*origin["xyz"], *origin["rpy"]], dtype=np.float64))
    return RobotMotion.of_base(base, coordinates, placement, joints)


def _part(name: str, data: dict[str, Any]) -> Trajectory:
    try:
        return _trajectory(data)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _through_waypoints(
    points: list[dict[str, Any]],
    joint_names: list[str] | None = None,
    interpolation: str = "spline",
    **options: Any,
) -> Trajectory:
    order = options.get("order")
    if isinstance(order, float) and order.is_integer():  # YAML has one kind of number
        options["order"] = int(order)
    rows = [
        (point["time"], point["positions"], point.get("velocities"), point.get("accelerations"))
        for point in points
    ]
    if interpolation == "spline":
        return WaypointSpline.from_joint_trajectory(joint_names, rows, **options)
    if options:
        raise InputError(f"{' and '.join(options)} can be given only with interpolation: spline")
    return PiecewisePolynomial.from_joint_trajectory(joint_names, rows)
