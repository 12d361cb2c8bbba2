"""Files of robots, in whatever format: URDF, MJCF, and YAML of trees and of platforms on limbs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from hodyn_ros.dynamics.loops.closing import assembled
from hodyn_ros.dynamics.mjcf_robot import build_mjcf
from hodyn_ros.errors import ModelError
from hodyn_ros.model.closure import Closure, Coordinate
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.parallel.limbs_file import read_limbs
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.model.readers.mjcf import read_mjcf
from hodyn_ros.model.readers.mjcf_file import is_mjcf
from hodyn_ros.model.readers.robot_entries import InlineFile, LimbsFile, TreeFile, UrdfFile
from hodyn_ros.model.readers.robot_file import read_tree
from hodyn_ros.model.readers.urdf import URDF_SUFFIXES, read_urdf_assembly

Format = Literal["urdf", "mjcf", "yaml"]


def format_of(path: Path) -> Format:
    """Return the format of a robot's file: a URDF or MJCF by suffix and outermost element, else YAML."""
    if is_mjcf(path):
        return "mjcf"
    return "urdf" if path.suffix.lower() in URDF_SUFFIXES else "yaml"


def read_robot(path: str | os.PathLike[str], gravity: ArrayLike | None = None) -> RobotDescription:
    """Read a robot of any format, as `config/README.md` and `docs/mjcf.md` describe them.

    `gravity` (3,) in the world frame, pointing down [m/s^2], overrides the file's, whose default is (0, 0,
    -9.81). Bodies and joints come depth first, the joints of one body in the order of the file. Raises
    ModelError in one line, with file, line, place in the file, and the unit or the nearest known key where
    that helps.
    """
    form = format_of(Path(path))
    if form == "yaml":
        return read_yaml_robot(path, gravity)
    read = read_urdf_robot(path) if form == "urdf" else read_mjcf_robot(path)
    return read if gravity is None else read.with_gravity(gravity)


def read_yaml_robot(path: str | os.PathLike[str], gravity: ArrayLike | None = None) -> RobotDescription:
    """Read a YAML file; arguments and errors as of `read_robot`."""
    document = read_document(path, kind_of)
    root, source = document.root, document.text.path
    try:
        if isinstance(root, LimbsFile):
            read = read_limbs(root, document.path.parent, gravity)
        else:
            read = read_tree(root, document.path.parent, gravity)
            if read.closure is not None and read.closure.start is not None:
                read = replace(read, closure=assembled(read.closure))
        return replace(read, assumed=document.assumed, uncertainty=replace(root.uncertainty), source=source)
    except ModelError as error:
        named = str(error).startswith(f"{source}:")
        raise error if named else ModelError(f"{source}: {error}") from error


def read_urdf_robot(
    path_or_xml: str | os.PathLike[str], floating_base: bool = False, mimic: bool = True
) -> RobotDescription:
    """Read a URDF, or the text of one; arguments and errors as of `Robot.from_urdf`."""
    assembly, limits = read_urdf_assembly(path_or_xml, floating_base, mimic="follow" if mimic else "ignore")
    read = RobotDescription(assembly.model, limits, frames=assembly.frames)
    if not assembly.couplings:
        return read
    closure = Closure.build(assembly.model, couplings=assembly.couplings)
    return replace(read, limits=limits.of_joints(closure.driven), closure=closure)


def read_mjcf_robot(
    path_or_xml: str | os.PathLike[str],
    root: str | None = None,
    keyframe: str | None = None,
    coordinates: Sequence[Coordinate] | None = None,
    driven: Sequence[str | int] | None = None,
    friction: bool | None = None,
) -> RobotDescription:
    """Read an MJCF, or the text of one; arguments, errors and warnings as of `Robot.from_mjcf`."""
    mjcf = read_mjcf(path_or_xml, root, keyframe)
    try:
        return replace(build_mjcf(mjcf, coordinates, driven, friction), source=mjcf.source)
    except ModelError as error:
        raise ModelError(f"{mjcf.source}: {error}") from error


def kind_of(data: dict[str, Any]) -> type[TreeFile | LimbsFile]:
    """Return what a robot's YAML data are: with limbs, with a URDF, or a tree by themselves."""
    return LimbsFile if "limbs" in data else UrdfFile if "urdf" in data else InlineFile
