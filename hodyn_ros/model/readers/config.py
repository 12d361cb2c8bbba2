"""Read robots with their drives and limits from YAML."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.lie import se3
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.composite_joints import FREEDOMS, of_kind
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.drives import Drives
from hodyn_ros.model.frames import from_modified_dh, from_rpy
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.readers.assembly import (
    MOVING_KINDS,
    Assembly,
    Frame,
    Joint,
    Link,
    assemble,
    carrying,
    locked,
    unfold,
)
from hodyn_ros.model.readers.closure_reader import KEYS, read_closure
from hodyn_ros.model.readers.document import AssumedFigure, Section, read_document
from hodyn_ros.model.readers.drive_reader import read_drive
from hodyn_ros.model.readers.schema import INLINE_ROBOT, URDF_ROBOT
from hodyn_ros.model.readers.urdf import GRAVITY, read_urdf_assembly
from hodyn_ros.model.tree import Array, TreeModel

WORLD = "world"
_ROUNDING = 1e-12  # share of the largest moment

__all__ = ["AssumedFigure", "RobotConfig", "read_config"]


@dataclass(frozen=True, eq=False)
class RobotConfig:
    """A robot as its YAML file describes it."""

    model: TreeModel
    limits: JointLimits
    drives: Drives | None  # None when the file gives no joint a drive
    drive_specs: tuple[DriveSpec, ...] | None  # all that the file says about them
    source: Path  # the file it was read from
    frames: Mapping[str, Frame]  # bodies, links merged into them, and the frames that the file adds, by name
    assumed: tuple[AssumedFigure, ...]  # figures that the file marks as assumed
    closure: Closure | None = None  # with one, limits and drives are of its driven joints
    coordinate_limits: JointLimits | None = None


def read_config(path: str | os.PathLike[str], gravity: ArrayLike | None = None) -> RobotConfig:
    """Read a robot from a YAML file.

    The form of the file is described in `config/README.md`. `gravity` (3,) in the world frame, pointing down
    [m/s^2], overrides the file's, whose default is (0, 0, -9.81). Bodies and joints come depth first, the
    joints of one body in the order of the file. Raises ModelError in one line, with file, line, place in the
    file, and the unit or the nearest known key where that helps.
    """
    source = Path(path)
    document = read_document(source, lambda data: URDF_ROBOT if "urdf" in data else INLINE_ROBOT)
    root = document.root
    floating_base = bool(root.get("floating_base", False))
    chosen = gravity if gravity is not None else root.vector("gravity", default=GRAVITY)
    try:
        if "urdf" in root:
            held = {
                joint["name"]: joint.number("locked")
                for joint in root.sections("joints")
                if "locked" in joint
            }
            assembly, limits = read_urdf_assembly(source.parent / root["urdf"], floating_base, held, "follow")
            name = root.get("name", assembly.model.name)
            model = replace(assembly.model.with_gravity(chosen), name=name)
            rows = {name: limits.row(i) for i, name in enumerate(model.joint_names)}
        else:
            assembly = _inline_assembly(root, floating_base, chosen)
            model = assembly.model
            rows = {name: JointLimit() for name in model.joint_names}
        drives = _with_urdf_friction(root, assembly, read_limits_and_drives(root, rows))
        frames = _all_frames(root, assembly)
        model = _carrying_payload(root, model, frames)
        with_drives = [name for name in model.joint_names if name in drives]
        closure = read_closure(root, model, frames, assembly.couplings, with_drives)
        moved = driven = model.joint_names
        if closure is not None:
            moved = tuple(model.joint_names[j] for j in closure.joints)
            driven = tuple(model.joint_names[j] for j in closure.driven)
            _check_driven(root, driven, with_drives)
        return RobotConfig(
            model=model,
            limits=JointLimits.of(driven, [rows[name] for name in driven]),
            coordinate_limits=JointLimits.of(moved, [rows[name] for name in moved]),
            drives=_all_drives(driven, drives),
            drive_specs=tuple(drives[name] for name in driven) if drives else None,
            closure=closure,
            source=source,
            frames=frames,
            assumed=tuple(document.assumed),
        )
    except ModelError as error:
        raise document.blame(error) from error


def _inline_assembly(root: Section, floating_base: bool, gravity: ArrayLike) -> Assembly:
    links = [read_body(body) for body in root.sections("bodies")]
    joints, between = read_joints(root, floating_base)
    if not floating_base:
        carried = {joint.child for joint in joints}
        for body, link in zip(root.sections("bodies"), links, strict=True):
            if link.name not in carried:
                raise body.error(
                    f"no joint carries body {link.name!r}; give it a joint with parent: {WORLD}, or set "
                    "floating_base: true"
                )
        links = [Link(WORLD), *links]
    links += between
    return assemble(
        root["name"],
        links,
        joints,
        gravity=gravity,
        floating_base=floating_base,
        link_word="body",
        any_rank=any(key in root for key in KEYS),
    )


def read_body(section: Section) -> Link:
    """Read a rigid body."""
    name = section["name"]
    if name == WORLD:
        raise section.error(f"the name {WORLD!r} is taken by the ground", "name")
    mass = section.number("mass")
    if mass == 0.0 and ("com" in section or "inertia" in section):
        raise section.error(f"body {name!r} has no mass, so it can have neither com nor inertia", "mass")
    if mass == 0.0:
        return Link(name)
    for key in ("com", "inertia"):
        if key not in section:
            raise section.error(f"body {name!r} has a mass, so it needs {key!r} as well")
    com = section.vector("com")
    return Link(name, mass, com, _inertia(section, mass, com))


def _inertia(section: Section, mass: float, com: Array) -> Array:
    """Read an inertia (3, 3) about the centre of mass."""
    given = section.section("inertia")
    xx, xy, xz, yy, yz, zz = (given.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if given["about"] == "origin":
        inertia = inertia + mass * (se3.hat(com) @ se3.hat(com))
        moments = np.linalg.eigvalsh(inertia)
        if moments[0] <= 0.0:
            raise given.error(
                f"the inertia of {section.get('name', 'payload')!r} is not positive definite once moved from "
                "the origin to the centre of mass (principal moments "
                f"{np.array2string(moments, precision=6)} kg m^2); figures about the centre of "
                "mass already need about: com"
            )
    return inertia


def read_joints(root: Section, floating_base: bool) -> tuple[list[Joint], list[Link]]:
    """Read all joints, those of several degrees of freedom as several, and the links between these."""
    joints: list[Joint] = []
    links: list[Link] = []
    for section in root.sections("joints"):
        if section["type"] not in FREEDOMS:
            joints.append(_held(section, _read_joint(section, floating_base)))
            continue
        parts, between = _read_composite(section, floating_base)
        held = dict(single_joints(section))
        joints += [_held(held[part.name], part) if part.name in held else part for part in parts]
        links += between
    return joints, links


def single_joints(*joints: Section) -> Iterator[tuple[str, Section]]:
    """Yield name and section of joints of one degree of freedom, of others as far as the file says more."""
    for joint in joints:
        if joint.get("type") not in FREEDOMS:
            yield joint["name"], joint
        elif "freedoms" in joint:
            freedoms = joint.section("freedoms")
            for key in freedoms.data:
                if key in FREEDOMS[joint["type"]]:
                    yield f"{joint['name']}_{key}", freedoms.section(key)


def _read_composite(section: Section, floating_base: bool) -> tuple[list[Joint], list[Link]]:
    name, kind = section["name"], section["type"]
    for key in ("pitch", "limits", "drive", "driven", "locked"):
        if key in section:
            raise section.error(
                f"joint {name!r} has several degrees of freedom; give those that have {key!r} under freedoms",
                key,
            )
    for key in section.get("freedoms", {}):
        if key not in (*FREEDOMS[kind], "source", "note"):
            known = ", ".join(FREEDOMS[kind])
            raise section.error(f"joint {name!r} is {kind}, with the degrees of freedom {known}", "freedoms")
    axes = [section.vector(key) if key in section else None for key in ("axis", "axis_b")]
    try:
        composite = of_kind(kind, *axes)
    except ModelError as error:
        raise section.error(f"joint {name!r}: {error}") from error
    return unfold(_placed(section, floating_base, np.zeros(3)), composite)


def _held(section: Section, joint: Joint) -> Joint:
    """Return a joint, fixed where its section locks it."""
    if "locked" not in section:
        return joint
    limit = _limit(section, JointLimit()) if "limits" in section else JointLimit()
    return locked(joint, section.number("locked"), limit)


def _placed(section: Section, floating_base: bool, axis: Array) -> Joint:
    name, parent = section["name"], section["parent"]
    if floating_base and parent == WORLD:
        raise section.error(
            f"joint {name!r} hangs on the world, but the base floats (floating_base: true)", "parent"
        )
    if section["child"] == WORLD:
        raise section.error(f"the world cannot be moved by joint {name!r}", "child")
    return Joint(name, section["type"], parent, section["child"], read_placement(section), axis)


def _read_joint(section: Section, floating_base: bool) -> Joint:
    name, kind = section["name"], section["type"]
    joint = _placed(section, floating_base, section.vector("axis", default=(0.0, 0.0, 1.0)))
    for key in ("axis_b", "freedoms"):
        if key in section:
            raise section.error(f"joint {name!r} is {kind}, so it cannot have {key!r}", key)
    if kind not in MOVING_KINDS:
        for key in ("axis", "limits", "drive", "locked"):
            if key in section:
                raise section.error(f"joint {name!r} is fixed, so it cannot have {key!r}", key)
    elif "axis" not in section:
        raise section.error(
            f"joint {name!r} needs an axis, in the frame of its child; for dh write [0, 0, 1]"
        )
    if (kind == "helical") != ("pitch" in section):
        raise section.error(
            f"a pitch [m/rad] is needed by helical joints and no others (joint {name!r} is {kind})"
        )
    if not joint.axis.any():
        raise section.error(f"the axis of joint {name!r} is zero, which has no direction", "axis")
    return replace(joint, pitch=section.number("pitch")) if kind == "helical" else joint


def read_placement(section: Section) -> Array:
    """Read the pose (4, 4) that a section gives as `origin` or `dh`."""
    if "dh" in section:
        if "origin" in section:
            raise section.error("give either origin or dh, not both", "dh")
        dh = section.section("dh")
        return from_modified_dh(dh.number("a"), dh.number("alpha"), dh.number("d"))
    if "origin" not in section:
        return np.eye(4)
    origin = section.section("origin")
    return from_rpy(origin.vector("xyz", default=(0, 0, 0)), origin.vector("rpy", default=(0, 0, 0)))


def read_limits_and_drives(root: Section, rows: dict[str, JointLimit]) -> dict[str, DriveSpec]:
    """Write the limits of the file into `rows`, and return the drives by joint."""
    drives: dict[str, DriveSpec] = {}
    seen: set[str] = set()
    for name, joint in single_joints(*root.sections("joints")):
        if joint.get("type") == "fixed" or "locked" in joint:
            continue
        if name not in rows:
            raise joint.error(f"the URDF has no moving joint {name!r}; it has {list(rows)}", "name")
        if name in seen:
            raise joint.error(f"joint {name!r} is given twice", "name")
        seen.add(name)
        if "limits" in joint:
            rows[name] = _limit(joint, rows[name])
        if "drive" in joint:
            drive = joint.section("drive")
            drives[name] = read_drive(drive, name)
            doubts = drives[name].doubts(name)
            if "rotor_inertia" not in drive:
                doubts += drives[name].reflection_doubts(name)
            for doubt in doubts:
                warnings.warn(str(drive.error(doubt)), FigureWarning, stacklevel=3)
    return drives


def _limit(joint: Section, known: JointLimit) -> JointLimit:
    """Return the limits of a joint, those of its section in place of known ones."""
    limits = joint.section("limits")
    given = {key: limits.number(key, infinite=True) for key in JointLimit._fields if key in limits}
    if joint.get("type") == "continuous" and ("lower" in given or "upper" in given):
        raise limits.error(f"joint {joint['name']!r} is continuous, so it has neither lower nor upper")
    return known._replace(**given)


def _with_urdf_friction(
    root: Section, assembly: Assembly, drives: dict[str, DriveSpec]
) -> dict[str, DriveSpec]:
    """Return drives with the friction of a URDF where they have none of their own; warn if not asked for."""
    wanted = root.get("urdf_friction")
    if wanted and not drives:
        raise root.error("urdf_friction needs drives: friction acts in them", "urdf_friction")
    for name, joint in single_joints(*root.sections("joints")):
        friction = assembly.frictions.get(name, FrictionSpec())
        if name not in drives or "link_friction" in joint["drive"] or friction == FrictionSpec():
            continue
        if wanted:
            drives[name] = replace(drives[name], link_friction=friction)
        elif wanted is None:
            reason = (
                f"joint {name!r}: the URDF's damping {friction.viscous:g} and friction {friction.coulomb:g} "
                "do not count; write urdf_friction: true to take them for those of the links, or false"
            )
            warnings.warn(str(joint.error(reason)), FigureWarning, stacklevel=3)
    return drives


def _carrying_payload(root: Section, model: TreeModel, frames: Mapping[str, Frame]) -> TreeModel:
    if "payload" not in root:
        return model
    section = root.section("payload")
    name = section.get("body", model.body_names[-1])
    if name not in frames or frames[name].body < 0:
        raise section.error(
            f"there is no body or frame {name!r} that could carry; known: {list(frames)}", "body"
        )
    return carrying(model, read_load(section), frames[name])


def read_load(section: Section) -> Link:
    """Read what a robot carries: a point at the origin of the frame, unless the section says more."""
    mass, com = section.number("mass"), section.vector("com", default=(0, 0, 0))
    if "inertia" not in section:
        return Link("payload", mass, com)
    if mass == 0.0:
        raise section.error("a payload without mass has no inertia", "mass")
    inertia = _inertia(section, mass, com)
    moments = np.linalg.eigvalsh(inertia)
    if moments[0] < 0.0 or moments[0] + moments[1] < (1.0 - _ROUNDING) * moments[2]:
        raise section.error(
            f"the payload has the principal moments {np.array2string(moments, precision=6)} kg m^2, which no "
            "body has: none is negative, and none is greater than the sum of the other two",
            "inertia",
        )
    return Link("payload", mass, com, inertia)


def _check_driven(root: Section, driven: Sequence[str], with_drives: Sequence[str]) -> None:
    for name, joint in single_joints(*root.sections("joints")):
        if name in with_drives and name not in driven:
            raise joint.error(f"joint {name!r} has a drive, but is not among `driven`", "drive")


def _all_drives(joint_names: Sequence[str], drives: Mapping[str, DriveSpec]) -> Drives | None:
    if not drives:
        return None
    missing = [name for name in joint_names if name not in drives]
    if missing:
        raise ModelError(
            f"joint {missing[0]!r} has no drive, but others have; give every joint one "
            "(drive: {motor_inertia: 0, stiffness: rigid} where the motor does not count)"
        )
    specs = [drives[name] for name in joint_names]
    stiffness = np.array([spec.stiffness for spec in specs])
    return Drives(stiffness, np.array([spec.motor_inertia for spec in specs]), joint_names=joint_names)


def _all_frames(root: Section, assembly: Assembly) -> Mapping[str, Frame]:
    frames: dict[str, Frame] = dict(assembly.frames)
    frames.setdefault(WORLD, Frame(-1, np.eye(4)))
    for section in root.sections("frames"):
        name, carrier = section["name"], section["body"]
        if name in frames:
            raise section.error(f"the name {name!r} is taken", "name")
        if carrier not in frames:
            raise section.error(f"there is no body or frame {carrier!r}; known: {list(frames)}", "body")
        body, pose = frames[carrier]
        frames[name] = Frame(body, pose @ read_placement(section))
    return MappingProxyType(frames)
