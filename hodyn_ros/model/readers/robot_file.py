"""Read trees with their drives, limits, couplings and loops from YAML, inline or with a URDF."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.array import Array
from hodyn_ros.errors import FigureWarning, ModelError, nearest
from hodyn_ros.lie import se3
from hodyn_ros.model.composite_joints import FREEDOMS, CompositeJoint, coupled, of_kind
from hodyn_ros.model.description import RobotDescription, drives_of
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.keys import Entry
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.model.loops import Coupling
from hodyn_ros.model.propeller import Propeller
from hodyn_ros.model.readers.assembly import (
    MOVING_KINDS,
    Assembly,
    Joint,
    Link,
    assemble,
    carrying,
    hold_followers,
    locked,
    unfold,
)
from hodyn_ros.model.readers.closure_reader import KEYS, read_closure, read_coupling
from hodyn_ros.model.readers.robot_entries import (
    BodyEntry,
    FrameEntry,
    FreedomEntry,
    InertiaEntry,
    InlineFile,
    JointEntry,
    LimbsFile,
    LoadEntry,
    MjcfFile,
    OriginEntry,
    PropellerEntry,
    TreeFile,
    UrdfFile,
    UrdfJointEntry,
)
from hodyn_ros.model.readers.urdf import GRAVITY, read_urdf_assembly
from hodyn_ros.model.tree import TreeModel

WORLD = "world"
_ROUNDING = 1e-12  # share of the largest moment
_Z = (0.0, 0.0, 1.0)


def read_tree(root: TreeFile, folder: Path, gravity: ArrayLike | None) -> RobotDescription:
    """Return the robot of a file in a folder; `gravity` (3,) overrides the file's. Raises ModelError."""
    down = gravity if gravity is not None else root.gravity or GRAVITY
    held, couplings = hold_followers(_locked_in(root.joints), [read_coupling(x) for x in root.couplings])
    if isinstance(root, UrdfFile):
        assembly, rows = _urdf_assembly(root, folder / root.urdf, down, held)
    else:
        assert isinstance(root, InlineFile)
        assembly = _inline_assembly(root, down, held)
        rows = {name: JointLimit() for name in assembly.model.joint_names}
    limit_all(root, rows)
    drives = read_limits_and_drives(root.joints, rows, held)
    frames = all_frames(root.frames, assembly)
    model = carrying_payload(root, assembly.model, frames)
    with_drives = [name for name in model.joint_names if name in drives]
    closure = read_closure(root, model, frames, [*assembly.couplings, *couplings], with_drives)
    moved = driven = model.joint_names
    if closure is not None:
        moved = tuple(model.joint_names[j] for j in closure.joints)
        driven = tuple(model.joint_names[j] for j in closure.driven)
        check_driven(root, with_drives, driven)
    drives = _with_urdf_friction(root, assembly, with_common_drive(root, drives, driven))
    return RobotDescription(
        model=model,
        limits=JointLimits.of(driven, [rows[name] for name in driven]),
        coordinate_limits=JointLimits.of(moved, [rows[name] for name in moved]),
        drives=drives_of(driven, drives),
        closure=closure,
        frames=frames,
        grounded=assembly.grounded,
        propellers=read_propellers(root, frames, root.floating_base),
    )


def check_driven(root: TreeFile, with_drives: Collection[str], driven: Collection[str]) -> None:
    """Reject drives of joints that are not driven."""
    for name, joint in single_joints(root.joints):
        if name in with_drives and name not in driven:
            raise joint.error(f"joint {name!r} has a drive, but is not among `driven`", "drive")


def _locked_in(joints: Iterable[JointEntry | UrdfJointEntry]) -> dict[str, float]:
    """Return the positions of locked joints, by name."""
    return {name: x.locked for name, x in single_joints(joints) if x.locked is not None}


def _urdf_assembly(
    root: UrdfFile, path: Path, gravity: ArrayLike, held: Mapping[str, float]
) -> tuple[Assembly, dict[str, JointLimit]]:
    described = read_described(root.bodies)
    assembly, limits = read_urdf_assembly(path, root.floating_base, held, described)
    model = replace(assembly.model.with_gravity(gravity), name=root.name or assembly.model.name)
    return replace(assembly, model=model), {name: limits.row(i) for i, name in enumerate(model.joint_names)}


def _inline_assembly(root: InlineFile, gravity: ArrayLike, held: Mapping[str, float]) -> Assembly:
    links = [read_body(body) for body in root.bodies]
    joints, between, couplings = read_joints(root.joints, root.floating_base, held)
    if not root.floating_base:
        carried = {joint.child for joint in joints}
        for body in root.bodies:
            if body.name not in carried:
                raise body.error(
                    f"no joint carries body {body.name!r}; give it a joint with parent: {WORLD}, or set "
                    "floating_base: true"
                )
        links = [Link(WORLD), *links]
    assembly = assemble(
        root.name,
        links + between,
        joints,
        gravity=gravity,
        floating_base=root.floating_base,
        link_word="body",
        any_rank=bool(couplings) or any(key in root.keys_present for key in KEYS),
    )
    return replace(assembly, couplings=tuple(couplings))


def read_described(bodies: Iterable[BodyEntry]) -> dict[str, Link]:
    """Return by name the bodies that another file has otherwise."""
    links: dict[str, Link] = {}
    for body in bodies:
        if body.name in links:
            raise body.error(f"body {body.name!r} is described twice", "name")
        links[body.name] = read_body(body)
    return links


def read_body(body: BodyEntry) -> Link:
    """Return a rigid body."""
    name, mass = body.name, body.mass
    if name == WORLD:
        raise body.error(f"the name {WORLD!r} is taken by the ground", "name")
    if mass == 0.0:
        if body.com is not None or body.inertia is not None:
            raise body.error(f"body {name!r} has no mass, so it can have neither com nor inertia", "mass")
        return Link(name)
    if body.com is None or body.inertia is None:
        key = "com" if body.com is None else "inertia"
        raise body.error(f"body {name!r} has a mass, so it needs {key!r} as well")
    com = np.array(body.com)
    return Link(name, mass, com, _about_the_com(body.inertia, name, mass, com))


def _about_the_com(entry: InertiaEntry, name: str, mass: float, com: Array) -> Array:
    """Return an inertia (3, 3) about the centre of mass."""
    inertia = entry.matrix
    if entry.about == "origin":
        inertia = inertia + mass * (se3.hat(com) @ se3.hat(com))
        moments = np.linalg.eigvalsh(inertia)
        if moments[0] <= 0.0:
            raise entry.error(
                f"the inertia of {name!r} is not positive definite once moved from the origin to the centre "
                f"of mass (principal moments {np.array2string(moments, precision=6)} kg m^2); figures about "
                "the centre of mass already need about: com"
            )
    return inertia


def read_joints(
    entries: Sequence[JointEntry], floating_base: bool, held: Mapping[str, float] | None = None
) -> tuple[list[Joint], list[Link], list[Coupling]]:
    """Return all joints, rows of joints as several, the links between these, and which joints follow.

    `held`: positions of joints that are fixed, by default those that are locked.
    """
    held = _locked_in(entries) if held is None else held
    joints: list[Joint] = []
    links: list[Link] = []
    couplings: list[Coupling] = []
    for entry in entries:
        if entry.type in FREEDOMS:
            composite = _composite(entry)
            parts, between = unfold(_placed(entry, floating_base, np.zeros(3)), composite)
            follows = coupled(entry.name, composite)
        else:
            parts, between, follows = [_single_joint(entry, floating_base)], [], []
        limits = {name: x.limits or JointLimit() for name, x in single_joints([entry])}
        at, follows = hold_followers({name: held[name] for name in limits if name in held}, follows)
        for part in parts:
            if part.name in at:
                part = locked(part, at[part.name], limits.get(part.name, JointLimit()))
            joints.append(part)
        links += between
        couplings += follows
    return joints, links, couplings


def single_joints(
    joints: Iterable[JointEntry | UrdfJointEntry],
) -> Iterator[tuple[str, FreedomEntry]]:
    """Yield name and entry of joints of one degree of freedom, of others as far as the file says more."""
    for joint in joints:
        if isinstance(joint, UrdfJointEntry) or joint.type not in FREEDOMS:
            yield joint.name, joint
        else:
            for key, freedom in (joint.freedoms or {}).items():
                yield f"{joint.name}_{key}", freedom


def _composite(entry: JointEntry) -> CompositeJoint:
    name, kind = entry.name, entry.type
    for key in ("pitch", "limits", "drive", "driven", "locked"):
        if key in entry.keys_present:
            raise entry.error(
                f"joint {name!r} is a row of joints; give those that have {key!r} under freedoms",
                key,
            )
    if entry.dh is not None and entry.dh.convention == "standard":
        raise entry.error(f"joint {name!r} is {kind}; give its place by origin, or by modified dh", "dh")
    try:
        composite = of_kind(kind, entry.axis, entry.axis_b, entry.radii)
    except ModelError as error:
        raise entry.error(f"joint {name!r}: {error}") from error
    free = [freedom for freedom in composite.names if freedom not in {x.joint for x in composite.couplings}]
    if not set(entry.freedoms or {}) <= set(free):
        raise entry.error(
            f"joint {name!r} is {kind}, with the degrees of freedom {', '.join(free)}", "freedoms"
        )
    return composite


def _placed(entry: JointEntry, floating_base: bool, axis: Array) -> Joint:
    name, parent = entry.name, entry.parent
    if floating_base and parent == WORLD:
        raise entry.error(
            f"joint {name!r} hangs on the world, but the base floats (floating_base: true)", "parent"
        )
    if entry.child == WORLD:
        raise entry.error(f"the world cannot be moved by joint {name!r}", "child")
    if entry.dh is not None and entry.origin is not None:
        raise entry.error("give either origin or dh, not both", "dh")
    placement, point = (entry.origin or OriginEntry()).placement, np.zeros(3)
    if entry.dh is not None:
        placement, joint = entry.dh.placements
        if entry.dh.convention == "standard":
            if entry.axis is not None:
                raise entry.error(
                    f"joint {name!r} moves along or about the z axis of its parent; leave the axis out",
                    "axis",
                )
            in_child = se3.inverse(placement) @ joint
            axis, point = in_child[:3, 2], in_child[:3, 3]
    return Joint(name, entry.type, parent, entry.child, placement, axis, entry.pitch or 0.0, point)


def _single_joint(entry: JointEntry, floating_base: bool) -> Joint:
    name, kind = entry.name, entry.type
    joint = _placed(entry, floating_base, np.array(entry.axis or _Z))
    for key in ("axis_b", "freedoms", "radii"):
        if key in entry.keys_present:
            raise entry.error(f"joint {name!r} is {kind}, so it cannot have {key!r}", key)
    if kind not in MOVING_KINDS:
        for key in ("axis", "limits", "drive", "locked"):
            if key in entry.keys_present:
                raise entry.error(f"joint {name!r} is fixed, so it cannot have {key!r}", key)
    elif entry.axis is None and entry.dh is None:
        raise entry.error(f"joint {name!r} needs an axis, in the frame of its child, such as [0, 0, 1]")
    if (kind == "helical") != (entry.pitch is not None):
        raise entry.error(
            f"a pitch [m/rad] is needed by helical joints and no others (joint {name!r} is {kind})"
        )
    if not joint.axis.any():
        raise entry.error(f"the axis of joint {name!r} is zero, which has no direction", "axis")
    return joint


def limit_all(root: TreeFile | LimbsFile, rows: dict[str, JointLimit]) -> None:
    """Write the limits that a file gives of all joints into `rows`."""
    if root.limits is not None:
        rows.update({name: _limit(root, root.limits, row) for name, row in rows.items()})


def with_common_drive(
    root: TreeFile | LimbsFile, drives: dict[str, DriveSpec], driven: Sequence[str]
) -> dict[str, DriveSpec]:
    """Return drives by joint, with that which a file gives of all driven joints where one has none."""
    if root.drive is None:
        return drives
    if without := [name for name in driven if name not in drives]:
        _warn_of_odd_figures(without[0], root.drive)
    return {name: drives.get(name, root.drive) for name in driven}


def read_limits_and_drives(
    joints: Iterable[JointEntry | UrdfJointEntry], rows: dict[str, JointLimit], held: Collection[str] = ()
) -> dict[str, DriveSpec]:
    """Write the limits of single joints into `rows`, and return the drives by joint.

    Those of joints that are locked, or `held` by such, do not count.
    """
    drives: dict[str, DriveSpec] = {}
    seen: set[str] = set()
    for name, entry in single_joints(joints):
        fixed = isinstance(entry, JointEntry) and entry.type == "fixed"
        if fixed or entry.locked is not None or name in held:
            continue
        if name not in rows:
            known = nearest(name, list(rows))
            raise entry.error(f"there is no joint {name!r} that can have limits or a drive; {known}", "name")
        if name in seen:
            raise entry.error(f"joint {name!r} is given twice", "name")
        seen.add(name)
        if entry.limits is not None:
            rows[name] = _limit(entry, entry.limits, rows[name])
        if entry.drive is not None:
            drives[name] = entry.drive
            _warn_of_odd_figures(name, entry.drive)
    return drives


def _limit(entry: Entry, limits: JointLimit, known: JointLimit) -> JointLimit:
    """Return known limits of a joint, with those that are given in their place."""
    changed = {key: getattr(limits, key) for key in limits.keys_present if hasattr(limits, key)}
    if isinstance(entry, JointEntry) and entry.type == "continuous" and changed.keys() & {"lower", "upper"}:
        raise limits.error(f"joint {entry.name!r} is continuous, so it has neither lower nor upper")
    return replace(known, **changed)


def _warn_of_odd_figures(joint: str, drive: DriveSpec) -> None:
    doubts = drive.doubts(joint)
    if "motor_inertia" in drive.keys_present:
        doubts += drive.reflection_doubts(joint)
    for doubt in doubts:
        warnings.warn(str(drive.error(doubt)), FigureWarning, stacklevel=6)


def _with_urdf_friction(
    root: TreeFile, assembly: Assembly, drives: dict[str, DriveSpec]
) -> dict[str, DriveSpec]:
    """Return drives with the friction of a URDF where they have none of their own; warn if not asked for."""
    wanted = root.urdf_friction if isinstance(root, UrdfFile) else False
    if wanted and not drives:
        raise root.error("urdf_friction needs drives: friction acts in them", "urdf_friction")
    entries = dict(single_joints(root.joints))
    for name in drives:
        friction = assembly.frictions.get(name, FrictionSpec())
        if "link_friction" in drives[name].keys_present or friction == FrictionSpec():
            continue
        if wanted:
            drives[name] = replace(drives[name], link_friction=friction)
        elif wanted is None:
            reason = (
                f"joint {name!r}: the URDF's damping {friction.viscous:g} and friction {friction.coulomb:g} "
                "do not count; write urdf_friction: true to take them for those of the links, or false"
            )
            warnings.warn(str(entries.get(name, root).error(reason)), FigureWarning, stacklevel=5)
    return drives


def carrying_payload(root: TreeFile, model: TreeModel, frames: Mapping[str, Frame]) -> TreeModel:
    """Return a model with the payload of its file."""
    load = root.payload
    if load is None:
        return model
    name = load.body or model.body_names[-1]
    if name not in frames or frames[name].body < 0:
        raise load.error(
            f"there is no body or frame {name!r} that could carry; known: {list(frames)}", "body"
        )
    return carrying(model, read_load(load), frames[name])


def read_load(load: LoadEntry) -> Link:
    """Return what a robot carries: a point at the origin of the frame, unless the file says more."""
    mass, com = load.mass, np.array(load.com)
    if load.inertia is None:
        return Link("payload", mass, com)
    if mass == 0.0:
        raise load.error("a payload without mass has no inertia", "mass")
    inertia = _about_the_com(load.inertia, "payload", mass, com)
    moments = np.linalg.eigvalsh(inertia)
    if moments[0] < 0.0 or moments[0] + moments[1] < (1.0 - _ROUNDING) * moments[2]:
        raise load.error(
            f"the payload has the principal moments {np.array2string(moments, precision=6)} kg m^2, which no "
            "body has: none is negative, and none is greater than the sum of the other two",
            "inertia",
        )
    return Link("payload", mass, com, inertia)


def all_frames(entries: Iterable[FrameEntry], assembly: Assembly) -> Mapping[str, Frame]:
    """Return the frames of an assembly by name, with those of its file."""
    frames: dict[str, Frame] = dict(assembly.frames)
    frames.setdefault(WORLD, Frame(-1, np.eye(4)))
    for entry in entries:
        if entry.name in frames:
            raise entry.error(f"the name {entry.name!r} is taken", "name")
        if entry.body not in frames:
            raise entry.error(f"there is no body or frame {entry.body!r}; known: {list(frames)}", "body")
        body, pose = frames[entry.body]
        frames[entry.name] = Frame(body, pose @ entry.origin.placement)
    return MappingProxyType(frames)


def read_propellers(
    root: TreeFile, frames: Mapping[str, Frame], floating_base: bool
) -> tuple[Propeller, ...]:
    """Return the propellers of a file, whose base floats."""
    if root.propellers and not floating_base:
        how = "give it a free joint" if isinstance(root, MjcfFile) else "set floating_base: true"
        raise root.error(f"propellers carry a base that floats; {how}", "propellers")
    return tuple(_propeller(entry, frames) for entry in root.propellers)


def _propeller(entry: PropellerEntry, frames: Mapping[str, Frame]) -> Propeller:
    on_base = [name for name, frame in frames.items() if frame.body == 0]
    if entry.frame and entry.frame not in on_base:
        raise entry.error(f"there is no frame {entry.frame!r} on the base; known: {on_base}", "frame")
    carrier = frames[entry.frame].pose if entry.frame else np.eye(4)
    try:
        return Propeller(
            entry.name,
            carrier @ entry.origin.placement,
            entry.drag,
            replace(entry.limits),  # which the text of the file is no part of
            tilts=entry.tilts,
            coefficient=entry.coefficient,
        )
    except ModelError as error:
        raise entry.error(str(error)) from error
