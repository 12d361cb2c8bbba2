"""Read platforms on limbs from YAML: limbs written once, and placed as often as they are built in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Ad, Array, pose
from hodyn_ros.model.description import RobotDescription, drives_of
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.loops import ROWS
from hodyn_ros.model.parallel.closure import closure_of
from hodyn_ros.model.parallel.limb import Limb
from hodyn_ros.model.parallel.mobility import check_mobility
from hodyn_ros.model.parallel.model import ParallelModel
from hodyn_ros.model.parallel.platform import Platform
from hodyn_ros.model.readers.assembly import Assembly, Link, assemble
from hodyn_ros.model.readers.robot_entries import LimbEntry, LimbFreedomEntry, LimbsFile, LimbTypeEntry
from hodyn_ros.model.readers.robot_file import (
    WORLD,
    limit_all,
    read_body,
    read_joints,
    read_limits_and_drives,
    read_load,
    single_joints,
    with_common_drive,
)
from hodyn_ros.model.readers.urdf import GRAVITY, read_urdf_assembly

_CLOSED = 1e-9  # of the length of a limb: how far it may end from its attachment


@dataclass(frozen=True, eq=False)
class _LimbType:
    """A limb in its own frame."""

    assembly: Assembly
    driven: tuple[int, ...]
    limits: dict[str, JointLimit]
    drives: dict[str, DriveSpec]


def read_limbs(root: LimbsFile, folder: Path, gravity: ArrayLike | None) -> RobotDescription:
    """Return the robot of a file in a folder; `gravity` (3,) overrides the file's. Raises ModelError."""
    body = read_body(root.platform)
    platform = Platform(body.mass, body.com, body.inertia, root.platform.origin.placement, body.name)
    if root.payload is not None:
        platform = platform.carrying(read_load(root.payload))
    types: dict[str, _LimbType] = {}
    for each in root.limb_types:
        if each.name in types:
            raise each.error(f"the limb type {each.name!r} is described twice", "name")
        types[each.name] = _limb_type(root, each, platform, folder)
    limbs, rows = [], dict[str, JointLimit]()
    drives: dict[str, DriveSpec] = {}
    for entry in root.limbs:
        if entry.type not in types:
            raise entry.error(f"there is no limb type {entry.type!r}; known: {list(types)}", "type")
        kind = types[entry.type]
        limbs.append(_limb(entry, kind, platform))
        joints = [kind.assembly.model.joint_names[joint] for joint in kind.driven]
        rows |= {f"{entry.name}_{joint}": kind.limits[joint] for joint in joints}
        drives |= {f"{entry.name}_{joint}": drive for joint, drive in kind.drives.items()}
    down = gravity if gravity is not None else root.gravity or GRAVITY
    dof = np.eye(6)[:, [ROWS.index(row) for row in root.platform.dof]]
    model = ParallelModel.build(limbs, platform, dof, down, root.name)
    driven = [model.joint_names[i] for i in model.driven]
    drives |= read_limits_and_drives(root.joints, rows)
    closure = closure_of(model, check_mobility(model))
    return RobotDescription(
        model=closure.tree,
        limits=JointLimits.of(driven, [rows[name] for name in driven]),
        drives=drives_of(driven, with_common_drive(root, drives, driven)),
        closure=closure,
    )


def _limb_type(root: LimbsFile, entry: LimbTypeEntry, platform: Platform, folder: Path) -> _LimbType:
    name = entry.name
    if bool(entry.urdf) == (entry.bodies is not None):
        raise entry.error(f"limb type {name!r} needs either bodies or a urdf")
    for joint in entry.joints:
        for key in ("type", "parent", "child"):
            if (key in joint.keys_present) == bool(entry.urdf):
                result = "is given by the URDF" if entry.urdf else "is missing"
                raise joint.error(f"the key {key!r} of joint {joint.name!r} {result}")
    if entry.bodies is None:
        assembly, rows = _urdf_limb(folder / entry.urdf, platform.name)
    else:
        # the platform stands in with some inertia: what it has counts once, for the whole robot
        links = [Link(WORLD), *map(read_body, entry.bodies)]
        if platform.name in [link.name for link in links]:
            raise entry.error(
                f"the platform {platform.name!r} is counted twice: it is described under platform, and must "
                "not be a body of a limb",
                "bodies",
            )
        links.append(Link(platform.name, 1.0, np.zeros(3), np.eye(3)))
        joints, between, couplings = read_joints(entry.joints, False)
        if couplings:
            raise entry.error(f"joint {couplings[0].joint!r} follows another; limbs have none", "joints")
        assembly = assemble(
            name, links + between, joints, gravity=GRAVITY, floating_base=False, link_word="body"
        )
        rows = {joint: JointLimit() for joint in assembly.model.joint_names}
    model = assembly.model
    if model.parents != tuple(range(-1, model.n_bodies - 1)) or model.body_names[-1] != platform.name:
        raise entry.error(
            f"limb type {name!r} must be one chain of joints from {WORLD!r} to {platform.name!r}; found the "
            f"bodies {list(model.body_names)} with the parents {list(model.parents)}"
        )
    limit_all(root, rows)
    driven = set(_driven(entry))
    return _LimbType(
        assembly,
        tuple(i for i, joint in enumerate(model.joint_names) if joint in driven),
        rows,
        read_limits_and_drives(entry.joints, rows),
    )


def _urdf_limb(path: Path, platform: str) -> tuple[Assembly, dict[str, JointLimit]]:
    """Read a limb from a URDF whose last link is the platform, without inertia there: that counts once."""
    assembly, limits = read_urdf_assembly(path)
    model = assembly.model
    if assembly.couplings:
        raise ModelError(
            f"URDF {path}: joint {assembly.couplings[0].joint!r} mimics another; limbs have none"
        )
    if platform in model.body_names and model.masses[model.body_names.index(platform)] != 0.0:
        raise ModelError(
            f"URDF {path}: the platform is counted twice: link {platform!r} has an inertia here, and the "
            "platform has its own"
        )
    return assembly, {name: limits.row(i) for i, name in enumerate(model.joint_names)}


def _driven(entry: LimbTypeEntry) -> Iterator[str]:
    """Yield the joints that are said to be driven, or have a drive."""
    for name, joint in single_joints(entry.joints):
        assert isinstance(joint, LimbFreedomEntry)
        if joint.drive is not None and joint.driven is False:
            raise joint.error(f"joint {name!r} has a drive, so it cannot have driven: false", "driven")
        if joint.driven or joint.drive is not None:
            yield name


def _limb(entry: LimbEntry, kind: _LimbType, platform: Platform) -> Limb:
    model = kind.assembly.model
    name = entry.name
    frame = _frame(entry, platform)
    end = frame @ model.placements[-1]
    attachment = platform.placement @ np.array([*entry.attachment, 1.0])
    distance = float(np.linalg.norm(end[:3, 3] - attachment[:3]))
    size = max(float(np.linalg.norm(p[:3, 3])) for p in model.placements)
    if distance > _CLOSED * size:
        raise entry.error(
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


def _frame(entry: LimbEntry, platform: Platform) -> Array:
    """Return the frame (4, 4) of a limb in the world."""
    base = np.array(entry.base)
    if (entry.align is None) == (entry.rpy is None):
        raise entry.error(f"limb {entry.name!r} needs either align or rpy")
    if entry.rpy is not None:
        return from_rpy(base, np.array(entry.rpy))
    attachment = (platform.placement @ np.array([*entry.attachment, 1.0]))[:3]
    length = float(np.linalg.norm(attachment - base))
    if length == 0.0:
        raise entry.error("base and attachment are one point, which has no direction; give rpy", "align")
    along = (attachment - base) / length
    level = np.cross((0.0, 0.0, 1.0), along)  # the second axis is horizontal
    vertical = float(np.linalg.norm(level)) < 1e-9
    level = np.array([0.0, 1.0, 0.0]) if vertical else level / np.linalg.norm(level)
    if entry.align == "x":
        columns = [along, level, np.cross(along, level)]
    else:
        columns = [level, np.cross(along, level), along]
    return pose(np.stack(columns, axis=1), base)
