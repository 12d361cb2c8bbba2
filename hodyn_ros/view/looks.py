"""How the bodies of a robot look, by the URDF or the MJCF that describes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hodyn_ros.dynamics.read_robot import format_of, kind_of
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.model.readers.robot_entries import MjcfFile, UrdfFile
from hodyn_ros.view.geoms import read_geoms
from hodyn_ros.view.visuals import Visual, read_visuals


class Looks(NamedTuple):
    """The shapes of a robot, and what could not be shown."""

    visuals: tuple[Visual, ...]
    missing: tuple[str, ...]


def read_looks(path: Path, robot: Robot) -> Looks:
    """Return the shapes of the robot that a file describes: a URDF, an MJCF, or one that names one."""
    shown = _shown_by(path)
    if shown is None:
        return Looks((), ())
    if format_of(shown) == "mjcf":
        return Looks(tuple(read_geoms(shown, robot)), ())
    visuals, missing = read_visuals(shown, robot)
    return Looks(tuple(visuals), tuple(dict.fromkeys(missing)))


def _shown_by(path: Path) -> Path | None:
    """Return the URDF or MJCF that a file is, or that it names."""
    if format_of(path) != "yaml":
        return path
    document = read_document(path, kind_of)
    root, folder = document.root, document.path.parent
    if isinstance(root, UrdfFile):
        return folder / root.urdf
    return folder / root.mjcf if isinstance(root, MjcfFile) else None
