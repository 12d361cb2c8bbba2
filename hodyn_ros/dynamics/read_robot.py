"""Files of robots, in whatever format: URDF, MJCF, and YAML of trees and of platforms on limbs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.loops.closing import assembled
from hodyn_ros.dynamics.mjcf_robot import build_mjcf
from hodyn_ros.errors import FigureWarning, InputError, ModelError
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.keys import Entry
from hodyn_ros.model.loops import Constraints, Coordinate
from hodyn_ros.model.parallel.limbs_file import read_limbs
from hodyn_ros.model.readers.changes import check_joints, merged
from hodyn_ros.model.readers.document import document_of
from hodyn_ros.model.readers.mjcf import OWN_KEYS, MjcfModel
from hodyn_ros.model.readers.mjcf_file import is_mjcf
from hodyn_ros.model.readers.robot_entries import InlineFile, LimbsFile, MjcfFile, TreeFile, UrdfFile
from hodyn_ros.model.readers.robot_file import read_tree
from hodyn_ros.model.readers.urdf import URDF_SUFFIXES, read_urdf_assembly
from hodyn_ros.model.readers.yaml_text import YamlText, parse_yaml, read_yaml
from hodyn_ros.model.tree import JointKind

_TURNS = 20.0  # [rad] beyond which a joint turns more often than those of arms do
_DEGREES = 720.0  # beyond which a limit means none

Format = Literal["urdf", "mjcf", "yaml"]


def format_of(path: Path) -> Format:
    """Return the format of a robot's file: a URDF or MJCF by suffix and outermost element, else YAML."""
    if is_mjcf(path):
        return "mjcf"
    return "urdf" if path.suffix.lower() in URDF_SUFFIXES else "yaml"


def require_silent_about_base(path: Path) -> None:
    """Raise InputError for a file that says itself whether the base floats: any but a URDF."""
    form = format_of(path)
    if form != "urdf":
        said = "MJCF says itself whether a base floats: by a free joint in"
        if form == "yaml":
            said = "a robot's YAML file says itself whether its base floats: set it in"
        raise InputError(f"{said} '{path.name}'")


def read_robot(
    path: str | os.PathLike[str],
    gravity: ArrayLike | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RobotDescription:
    """Read a robot of any format, as `config/README.md` and `docs/mjcf.md` describe them.

    `gravity` (3,) in the world frame, pointing down [m/s^2], overrides the file's, whose default is (0, 0,
    -9.81). `changes`: keys of robot files with what they hold, in place of those of the file; joints and
    bodies are changed by name. Bodies and joints come depth first, the joints of one body in the order of the
    file. Raises ModelError in one line, with file, line, place in the file, and the unit or the nearest known
    key where that helps.
    """
    form = format_of(Path(path))
    if form == "yaml":
        text = read_yaml(path)
    elif form == "urdf" and not changes:
        read = read_urdf_robot(path)
        return read if gravity is None else read.with_gravity(gravity)
    else:
        text = YamlText(os.fspath(path), {form: Path(path).name}, {})
    return _robot_of(text if not changes else _changed(text, changes), gravity)


def read_yaml_robot(path: str | os.PathLike[str], gravity: ArrayLike | None = None) -> RobotDescription:
    """Read a YAML file; arguments and errors as of `read_robot`."""
    return _robot_of(read_yaml(path), gravity)


def _robot_of(text: YamlText, gravity: ArrayLike | None) -> RobotDescription:
    document = document_of(text, kind_of)
    root, source = document.root, text.path
    folder = document.path.parent
    try:
        if isinstance(root, LimbsFile):
            read = read_limbs(root, folder, gravity)
        elif isinstance(root, MjcfFile):
            mjcf = MjcfModel.compiled(folder / root.mjcf)
            root = _with_own_keys(text, root, mjcf)
            read = build_mjcf(root, mjcf, gravity)
        else:
            read = read_tree(root, folder, gravity)
            if read.closure is not None and read.closure.start is not None:
                read = replace(read, closure=assembled(read.closure))
        read = replace(read, assumed=document.assumed, uncertainty=replace(root.uncertainty), source=source)
        _warn_of_degrees(read)
        if root.uncertainty.keys_present:
            _warn_of_no_limits(read, root.uncertainty)
        return read
    except ModelError as error:
        named = str(error).startswith((f"{source}:", f"MJCF {source}:"))
        raise error if named else ModelError(f"{source}: {error}") from error


def _changed(text: YamlText, changes: Mapping[str, Any]) -> YamlText:
    """Return the data of a robot file with others in their place."""
    if not isinstance(text.data, dict):
        return text
    if kind_of(text.data) is InlineFile:
        check_joints(text.data, changes)
    return replace(text, data=merged(text.data, changes))


def _with_own_keys(text: YamlText, root: MjcfFile, mjcf: MjcfModel) -> MjcfFile:
    """Return a file with the keys that hodyn_ros wrote into its MJCF, below its own."""
    if not mjcf.own_keys:
        return root
    own = parse_yaml(mjcf.own_keys, f"{mjcf.source}: <text name={OWN_KEYS!r}>")
    if not isinstance(own.data, dict):
        raise own.error((), "must hold keys and values")
    document = document_of(replace(own, path=text.path, data=merged(own.data, text.data)), kind_of)
    assert isinstance(document.root, MjcfFile)
    return document.root


def read_urdf_robot(
    path_or_xml: str | os.PathLike[str], floating_base: bool = False, mimic: bool = True
) -> RobotDescription:
    """Read a URDF, or the text of one; arguments and errors as of `Robot.from_urdf`."""
    assembly, limits = read_urdf_assembly(path_or_xml, floating_base, mimic=mimic)
    read = RobotDescription(assembly.model, limits, frames=assembly.frames, grounded=assembly.grounded)
    if assembly.couplings:
        closure = Closure.build(assembly.model, Constraints(couplings=assembly.couplings))
        read = replace(read, limits=limits.of_joints(closure.driven), closure=closure)
    _warn_of_degrees(read)
    return read


def read_mjcf_robot(
    path_or_xml: str | os.PathLike[str],
    root: str | None = None,
    keyframe: str | None = None,
    coordinates: Sequence[Coordinate] | None = None,
    driven: Sequence[str | int] | None = None,
    friction: bool | None = None,
) -> RobotDescription:
    """Read an MJCF, or the text of one; arguments, errors and warnings as of `Robot.from_mjcf`."""
    mjcf = MjcfModel.compiled(path_or_xml)
    inputs: dict[str, Any] = {
        "root": root,
        "keyframe": keyframe,
        "coordinates": coordinates,
        "driven": driven,
        "mjcf_friction": friction,
    }
    try:
        file = _with_own_keys(YamlText(mjcf.source, {"mjcf": "."}, {}), MjcfFile(), mjcf)
        file = replace(file, **{key: value for key, value in inputs.items() if value is not None})
        read = build_mjcf(file, mjcf)
        return replace(read, uncertainty=replace(file.uncertainty), source=mjcf.source)
    except ModelError as error:
        named = str(error).startswith(f"{mjcf.source}:")
        raise error if named else ModelError(f"{mjcf.source}: {error}") from error


def _warn_of_degrees(read: RobotDescription) -> None:
    """Warn of positions of a revolute joint that are many turns, but no more than degrees may be."""
    model = read.model
    for i, joint in enumerate(read.driven):
        row = read.limits.row(i)
        most = max((abs(end) for end in (row.lower, row.upper) if np.isfinite(end)), default=0.0)
        revolute = model.kinds[model.first_jointed_body + joint] is JointKind.REVOLUTE
        if revolute and _TURNS < most <= _DEGREES:
            said = (
                f"joint {model.joint_names[joint]!r} may turn to {most:g} rad, {most / (2.0 * np.pi):.0f} "
                f"turns; limits are in rad, and {most:g} degrees are {np.radians(most):.4g}"
            )
            warnings.warn(
                f"{read.source}: {said}" if read.source else said,
                FigureWarning,
                stacklevel=5,
            )


def _warn_of_no_limits(read: RobotDescription, stated: Entry) -> None:
    """Warn of driven joints whose efforts are held against nothing, although their uncertainty is stated."""
    model = read.model
    own = (
        [np.inf] * len(read.driven) if read.drives is None else [drive.limits.torque for drive in read.drives]
    )
    names = [
        repr(model.joint_names[joint])
        for joint, *most in zip(read.driven, own, read.limits.effort)
        if not np.isfinite(most).any()
    ]
    if names:
        said = (
            f"joints {', '.join(names[:3])}{', ...' if names[3:] else ''} have no effort limit, of which a "
        )
        said += "share may be unexplained: the guard does not hold their efforts against their motion"
        warnings.warn(str(stated.error(said)), FigureWarning, stacklevel=5)


def kind_of(data: dict[str, Any]) -> type[TreeFile | LimbsFile]:
    """Return what a robot's YAML data are: with limbs, with a URDF or an MJCF, or a tree by themselves."""
    if "limbs" in data:
        return LimbsFile
    return UrdfFile if "urdf" in data else MjcfFile if "mjcf" in data else InlineFile
