"""Read trajectories from YAML."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from hodyn_ros.errors import InputError, ModelError
from hodyn_ros.model.keys import Entry
from hodyn_ros.model.readers.document import Document, read_document
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.files.entries import TRAJECTORIES, MotionFile, PartEntry, PoseFile, TrajectoryFile
from hodyn_ros.trajectory.pose_coordinates import poses
from hodyn_ros.trajectory.robot_motion import RobotMotion
from hodyn_ros.trajectory.timed import timed


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
    document = motion_document(path)
    root = document.root
    try:
        if isinstance(root, PoseFile):
            motion = _pose_motion(document, root)
        else:
            assert isinstance(root, TrajectoryFile)
            motion = RobotMotion.of_joints(_of_joints(root).trajectory())
        if root.standing is not None:
            motion = motion.for_joints([*(motion.joint_names or ()), *root.standing], root.standing)
        if root.timing is not None:  # last, so that who times the path anew finds it
            law = root.timing
            along = timed(motion.trajectory, law.knots, law.squared_speeds, law.ease)
            motion = replace(motion, trajectory=along)
        return motion
    except ModelError as error:
        raise InputError(str(error)) from error
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error


def motion_document(path: str | os.PathLike[str]) -> Document[Entry]:
    """Read the file of a motion. Raises InputError in one line that names the file and the place in it."""
    try:
        return read_document(path, _kind_of)
    except ModelError as error:
        raise InputError(str(error)) from error


def _kind_of(data: dict[str, Any]) -> type[Entry]:
    kind = str(data.get("type"))
    return PoseFile if kind == "pose" else TRAJECTORIES.get(kind, MotionFile)


def _kind_of_part(data: dict[str, Any]) -> type[Entry]:
    return TRAJECTORIES.get(str(data.get("type")), PartEntry)


def _pose_motion(document: Document[Entry], root: PoseFile) -> RobotMotion:
    base = document.part(_kind_of_part, "base")
    assert isinstance(base, TrajectoryFile)
    for key in ("joint_names", "standing"):
        if key in base.keys_present:
            raise base.error("a base has no joints; its coordinates are named by `coordinates`", key)
    if "timing" in base.keys_present:
        raise base.error("base and joints have one timing; put it beside `base`", "timing")
    joints = None
    if root.joints is not None:
        part = document.part(_kind_of_part, "joints")
        assert isinstance(part, TrajectoryFile)
        if "timing" in part.keys_present:
            raise part.error("base and joints have one timing; put it beside `joints`", "timing")
        joints = _named_trajectory("joints", _of_joints(part))
    placement = poses(np.array([*root.origin.xyz, *root.origin.rpy], dtype=np.float64))
    return RobotMotion.of_base(_named_trajectory("base", base), base.coordinates, placement, joints)


def _of_joints(entry: TrajectoryFile) -> TrajectoryFile:
    if "coordinates" in entry.keys_present:
        raise entry.error("joints are named by `joint_names`; coordinates are of a base", "coordinates")
    return entry


def _named_trajectory(name: str, entry: TrajectoryFile) -> Trajectory:
    try:
        return entry.trajectory()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
