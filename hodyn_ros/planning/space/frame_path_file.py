"""Files of paths in space: `type: frame_path`, which `hodyn plan` makes a motion of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.frames import to_rpy
from hodyn_ros.model.keys import Entry, key
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.planning.space.frame_path import FramePath, Waypoint
from hodyn_ros.planning.space.joint_path import JointPath, joint_path, start_pose
from hodyn_ros.planning.time_optimal.planner import FrameSpeed
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.pose_coordinates import poses

KIND = "frame_path"
_Vector = tuple[float, float, float]


class FrameWaypointEntry(Entry):
    """Where a line or an arc leads to."""

    position: _Vector | None = key("in the world [m]; left out: where the path is", default=None)
    rpy: _Vector | None = key(
        "orientation there, about the fixed axes x, y, z [rad]; left out: as before", default=None
    )
    through: _Vector | None = key("a point of an arc on the way [m]; left out: a line", default=None)
    relative: bool = key(
        "whether positions count from the waypoint before, along the world's axes", default=False
    )
    blend: float | None = key("from which distance on the corner is rounded [m]", default=None, above=0)


class FramePathFile(Entry):
    """A path of a frame in space."""

    type: Literal["frame_path"]
    frame: str | None = key("body or named frame that is led; of a platform that itself", default=None)
    start: Mapping[str, float] | None = key(
        "positions of the joints at the beginning, by name [rad or m]; of a platform left out: its home",
        default=None,
    )
    points: tuple[FrameWaypointEntry, ...] = key("where the path leads", minItems=1)
    blend: float = key("from which distance on corners are rounded [m]", default=0.02, above=0)
    speed: float | None = key(
        "highest speed of the frame [m/s]; left out: none but the joints'", default=None, above=0
    )
    task: Literal["pose", "position"] = key("position: the orientation is left free", default="pose")


def is_frame_path(path: str | os.PathLike[str]) -> bool:
    """Say whether a YAML file is one of these."""
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False  # whoever reads it says what is wrong
    return isinstance(data, dict) and data.get("type") == KIND


def read_frame_path(path: str | os.PathLike[str], robot: Robot) -> tuple[JointPath, FrameSpeed | None]:
    """Return the path of a robot's joints that a file asks for, and the limit of the frame's speed.

    Raises InputError in one line that names the file and what is wrong with it or on its path.
    """
    try:
        root = read_document(path, lambda data: FramePathFile).root
        return _path_of(root, robot)
    except ModelError as error:
        raise InputError(str(error)) from error
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error


def _path_of(root: FramePathFile, robot: Robot) -> tuple[JointPath, FrameSpeed | None]:
    start = _start(root, robot)
    frame = root.frame or robot.platform
    if frame is None:
        raise InputError("frame is missing: the body or named frame that is led")
    pose = start_pose(robot, frame, start)
    waypoints, place = [], pose[:3, 3]
    for entry in root.points:
        offset = place if entry.relative else np.zeros(3)
        through = None if entry.through is None else offset + entry.through
        place = place if entry.position is None else offset + entry.position
        rotation = None if entry.rpy is None else poses(np.array([0.0, 0.0, 0.0, *entry.rpy]))[:3, :3]
        waypoints.append(Waypoint(place, rotation, through, entry.blend))
    path = FramePath(pose, waypoints, root.blend)
    led = joint_path(robot, path, frame, start, task=root.task)
    return led, None if root.speed is None else FrameSpeed(frame, root.speed, path.speeds)


def _start(root: FramePathFile, robot: Robot) -> Array:
    names, positions = robot.joint_names, root.start or {}
    unknown = [name for name in positions if name not in names]
    missing = [name for name in names if name not in positions]
    if unknown or missing:
        raise InputError(
            f"start has to name all joints of the robot, {', '.join(names) or 'none'}; "
            + (f"{unknown[0]!r} is none of them" if unknown else f"{missing[0]!r} is missing")
        )
    return np.array([positions[name] for name in names], dtype=np.float64)


def path_text(path: JointPath, note: str) -> str:
    """Return the path of the joints as the text of a trajectory file, whose times are the way u [m]."""
    motion = path.motion
    spline = motion.trajectory
    assert isinstance(spline, WaypointSpline)
    rows = zip(spline.times, spline.positions, spline.velocities or (), spline.accelerations or ())
    points = []
    for time, position, velocity, acceleration in rows:
        point: dict[str, Any] = {"time": float(time), "positions": position.tolist()}
        if velocity is not None and acceleration is not None:
            point |= {"velocities": np.asarray(velocity).tolist()}
            point |= {"accelerations": np.asarray(acceleration).tolist()}
        points.append(point)
    columns: dict[str, Any] = {"type": "waypoints", "order": 4, "at_rest": False}
    data: dict[str, Any]
    if motion.moves_base:
        origin = {"xyz": motion.origin[:3, 3].tolist(), "rpy": to_rpy(motion.origin[:3, :3]).tolist()}
        base = {**columns, "coordinates": list(motion.coordinates), "points": points}
        data = {"type": "pose", "note": note, "origin": origin, "base": base}
    else:
        data = {**columns, "note": note, "joint_names": list(motion.joint_names or ()), "points": points}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
