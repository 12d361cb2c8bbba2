"""Read trajectories from YAML."""

from __future__ import annotations

import os
from typing import Any

from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.document import read_document
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.harmonic import Cosines, FourierSeries
from hodyn_ros.trajectory.piecewise import PiecewisePolynomial
from hodyn_ros.trajectory.schema import ANY_TRAJECTORY, TRAJECTORIES, Schema
from hodyn_ros.trajectory.spline import WaypointSpline


def read_trajectory(path: str | os.PathLike[str]) -> Trajectory:
    """Read a trajectory from a YAML file.

    Its `type` is fourier, cosines or waypoints. The other keys are those of FourierSeries and Cosines, or a
    list of `points`, each with its `time`, `positions`, and optionally `velocities` and `accelerations`; see
    `config/README.md`. Raises InputError in one line that names the file and the place in it.
    """
    try:
        data = dict(read_document(path, _choose_schema).text.data)
    except ModelError as error:
        raise InputError(str(error)) from error
    kind = data.pop("type")
    figures = {key: value for key, value in data.items() if key not in ("source", "note")}
    try:
        if kind == "fourier":
            return FourierSeries(**figures)
        if kind == "cosines":
            return Cosines(**figures)
        return _through_waypoints(**figures)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error


def _choose_schema(data: dict[str, Any]) -> Schema:
    kind = data.get("type")
    return TRAJECTORIES.get(kind, ANY_TRAJECTORY) if isinstance(kind, str) else ANY_TRAJECTORY


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
