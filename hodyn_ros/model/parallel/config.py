"""Read parallel robots from YAML: limbs written once, and placed as often as they are built in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Ad, Array, pose
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.parallel.closure import closure_of
from hodyn_ros.model.parallel.limb import Limb
from hodyn_ros.model.parallel.mobility import check_mobility
from hodyn_ros.model.parallel.model import ParallelModel
from hodyn_ros.model.parallel.platform import Platform
from hodyn_ros.model.parallel.urdf_limb import read_urdf_limb
from hodyn_ros.model.readers.assembly import Assembly, Link, assemble
from hodyn_ros.model.readers.config import (
    WORLD,
    RobotConfig,
    read_body,
    read_joints,
    read_limits_and_drives,
    read_load,
    read_placement,
    single_joints,
)
from hodyn_ros.model.readers.document import Section, read_document
from hodyn_ros.model.readers.schema import PARALLEL_ROBOT
from hodyn_ros.model.readers.urdf import GRAVITY
from hodyn_ros.model.readers.yaml_text import read_yaml

_CLOSED = 1e-9  # of the length of a limb: how far it may end from its attachment
_COMPONENTS = ("rx", "ry", "rz", "x", "y", "z")


@dataclass(frozen=True, eq=False)
class _LimbType:
    """A limb in its own frame."""

    assembly: Assembly
    driven: tuple[int, ...]
    limits: dict[str, JointLimit]
    drives: dict[str, DriveSpec]


def is_parallel(path: str | os.PathLike[str]) -> bool:
    """Say whether a YAML file describes a parallel robot; ModelError where it cannot be read."""
    data = read_yaml(path).data
    return isinstance(data, dict) and "limbs" in data


def read_parallel_config(path: str | os.PathLike[str], gravity: ArrayLike | None = None) -> RobotConfig:
    """Read a parallel robot from a YAML file; the form is described in `config/README.md`.

    `gravity` (3,) in the world frame, pointing down [m/s^2], overrides the file's. Raises ModelError in one
    line, with file, line, place in the file, and the unit or the nearest known key where that helps.
    """
    source = Path(path)
    document = read_document(source, lambda data: PARALLEL_ROBOT)
    root = document.root
    try:
        platform = _platform(root.section("platform"))
        if "payload" in root:
            platform = platform.carrying(read_load(root.section("payload")))
        types: dict[str, _LimbType] = {}
        for section in root.sections("limb_types"):
            if section["name"] in types:
                raise section.error(f"the limb type {section['name']!r} is described twice", "name")
            types[section["name"]] = _limb_type(section, platform, source.parent)
        limbs, rows = [], []
        springs: list[DriveSpec | None] = []
        for section in root.sections("limbs"):
            if section["type"] not in types:
                raise section.error(
                    f"there is no limb type {section['type']!r}; known: {list(types)}", "type"
                )
            kind = types[section["type"]]
            limbs.append(_limb(section, kind, platform))
            for joint in kind.driven:
                name = kind.assembly.model.joint_names[joint]
                rows.append(kind.limits[name])
                springs.append(kind.drives.get(name))
        chosen = gravity if gravity is not None else root.vector("gravity", default=GRAVITY)
        dof = np.eye(6)[:, [_COMPONENTS.index(component) for component in root["platform"]["dof"]]]
        model = ParallelModel.build(limbs, platform, dof, chosen, root["name"])
        names = [model.joint_names[i] for i in model.driven]
        drives, told = _drives(names, springs)
        limits = JointLimits.of(names, rows)
        closure = closure_of(model, check_mobility(model))
        return RobotConfig(
            model=closure.tree,
            limits=limits,
            drives=drives,
            drive_specs=told,
            source=source,
            frames={},
            assumed=tuple(document.assumed),
            closure=closure,
        )
    except ModelError as error:
        raise document.blame(error) from error


def _drives(
    names: list[str], springs: list[DriveSpec | None]
) -> tuple[Drives | None, tuple[DriveSpec, ...] | None]:
    given = [spring for spring in springs if spring is not None]
    if not given:
        return None, None
    if len(given) < len(names):
        without = names[springs.index(None)]
        raise ModelError(f"joint {without!r} has no drive, but others have; give every driven joint one")
    stiffness = np.array([spec.stiffness for spec in given])
    inertia = np.array([spec.motor_inertia for spec in given])
    return Drives(stiffness, inertia, joint_names=names), tuple(given)


def _platform(section: Section) -> Platform:
    name = section.get("name", "platform")
    body = read_body(Section(section.document, section.place, {**section.data, "name": name}))
    return Platform(body.mass, body.com, body.inertia, read_placement(section), name)


def _limb_type(section: Section, platform: Platform, folder: Path) -> _LimbType:
    name = section["name"]
    if ("urdf" in section) == ("bodies" in section):
        raise section.error(f"limb type {name!r} needs either bodies or a urdf")
    for joint in section.sections("joints"):
        for key in ("type", "parent", "child"):
            if (key in joint) == ("urdf" in section):
                found = "is given by the URDF" if key in joint else "is missing"
                raise joint.error(f"the key {key!r} of joint {joint['name']!r} {found}")
    if "urdf" in section:
        assembly, rows = read_urdf_limb(folder / section["urdf"], platform.name)
    else:
        # the platform stands in with some inertia: what it has counts once, for the whole robot
        links = [Link(WORLD), *(read_body(body) for body in section.sections("bodies"))]
        if platform.name in [link.name for link in links]:
            raise section.error(
                f"the platform {platform.name!r} is counted twice: it is described under platform, and must "
                "not be a body of a limb",
                "bodies",
            )
        links.append(Link(platform.name, 1.0, np.zeros(3), np.eye(3)))
        joints, between = read_joints(section, False)
        links += between
        assembly = assemble(name, links, joints, gravity=GRAVITY, floating_base=False, link_word="body")
        rows = {joint: JointLimit() for joint in assembly.model.joint_names}
    model = assembly.model
    if model.parents != tuple(range(-1, model.n_bodies - 1)) or model.body_names[-1] != platform.name:
        raise section.error(
            f"limb type {name!r} must be one chain of joints from {WORLD!r} to {platform.name!r}; found the "
            f"bodies {list(model.body_names)} with the parents {list(model.parents)}"
        )
    drives = read_limits_and_drives(section, rows)
    singles = list(single_joints(*section.sections("joints")))
    driven = {name for name, joint in singles if joint.get("driven", "drive" in joint)}
    for name, joint in singles:
        if name in drives and name not in driven:
            raise joint.error(f"joint {name!r} has a drive, so it cannot have driven: false", "driven")
    return _LimbType(
        assembly,
        tuple(i for i, joint in enumerate(model.joint_names) if joint in driven),
        rows,
        drives,
    )


def _limb(section: Section, kind: _LimbType, platform: Platform) -> Limb:
    model = kind.assembly.model
    name = section["name"]
    frame = _frame(section, platform)
    end = frame @ model.placements[-1]
    attachment = platform.placement @ np.array([*section.vector("attachment"), 1.0])
    distance = float(np.linalg.norm(end[:3, 3] - attachment[:3]))
    size = max(float(np.linalg.norm(p[:3, 3])) for p in model.placements)
    if distance > _CLOSED * size:
        raise section.error(
            f"limb {name!r} does not close at the reference pose: it ends {distance:.3g} m from its "
            f"attachment, {np.linalg.norm(attachment[:3] - frame[:3, 3]):.17g} m from its base",
            "attachment",
        )
    return Limb(
        screws=model.screws @ Ad(frame).T,
        placements=(frame @ model.placements)[:-1],
        masses=model.masses[:-1],
        coms=model.coms[:-1],
        inertias=model.inertias[:-1],
        driven=kind.driven,
        name=name,
        joint_names=[f"{name}_{joint}" for joint in model.joint_names],
    )


def _frame(section: Section, platform: Platform) -> Array:
    """Return the frame (4, 4) of a limb in the world."""
    base = section.vector("base")
    if ("align" in section) == ("rpy" in section):
        raise section.error(f"limb {section['name']!r} needs either align or rpy")
    if "rpy" in section:
        return from_rpy(base, section.vector("rpy"))
    attachment = (platform.placement @ np.array([*section.vector("attachment"), 1.0]))[:3]
    length = float(np.linalg.norm(attachment - base))
    if length == 0.0:
        raise section.error("base and attachment are one point, which has no direction; give rpy", "align")
    along = (attachment - base) / length
    level = np.cross((0.0, 0.0, 1.0), along)  # the second axis is horizontal
    vertical = float(np.linalg.norm(level)) < 1e-9
    level = np.array([0.0, 1.0, 0.0]) if vertical else level / np.linalg.norm(level)
    if section["align"] == "x":
        columns = [along, level, np.cross(along, level)]
    else:
        columns = [level, np.cross(along, level), along]
    return pose(np.stack(columns, axis=1), base)
