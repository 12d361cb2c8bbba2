"""From an MJCF, and what a robot file says besides, to coordinates, driven joints and drives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.dynamics.loops.independence import choose_coordinates
from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.drive_spec import DriveChanges, DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.loops import Constraints
from hodyn_ros.model.readers.closure_reader import place_error, read_coordinates, read_coupling, read_loop
from hodyn_ros.model.readers.mjcf import MjcfModel, MjcfRobot, read_mjcf
from hodyn_ros.model.readers.mjcf_forces import in_words
from hodyn_ros.model.readers.robot_entries import MjcfFile
from hodyn_ros.model.readers.robot_file import (
    all_frames,
    carrying_payload,
    check_driven,
    limit_all,
    read_limits_and_drives,
    read_propellers,
)


def build_mjcf(file: MjcfFile, compiled: MjcfModel, gravity: ArrayLike | None = None) -> RobotDescription:
    """Return the robot of a compiled MJCF with what its file says besides; warnings as of `Robot.from_mjcf`.

    `gravity` (3,) overrides that of both. Raises ModelError.
    """
    held = {joint.name: joint.locked for joint in file.joints if joint.locked is not None}
    mjcf = _with_file(file, read_mjcf(compiled, file, held), gravity)
    if file.coordinates is None and file.driven is None and mjcf.loops and mjcf.at_rest and mjcf.actuated:
        chosen, holds = _chosen(mjcf)
        idle = {name: at for name, at in mjcf.at_rest.items() if not holds}
        if idle:
            stiff = _with_file(file, read_mjcf(compiled, file, {**held, **idle}), gravity)
            line = next(in_words("springs of joints", list(idle), _RIGID))
            mjcf = replace(stiff, ignored=(*stiff.ignored, line))
    return _build(file, mjcf)


_RIGID = ": these joints are held where their springs are at rest, as the actuators do not hold them"


def _with_file(file: MjcfFile, mjcf: MjcfRobot, gravity: ArrayLike | None) -> MjcfRobot:
    """Return what an MJCF says with the name, gravity, frames, payload, couplings and loops of its file."""
    frames = all_frames(file.frames, mjcf.assembly)
    model = carrying_payload(file, mjcf.assembly.model, frames)
    down = gravity if gravity is not None else file.gravity
    if down is not None:
        model = model.with_gravity(down)
    model = replace(model, name=file.name or model.name)
    described = replace(model, placements=model.poses(mjcf.home)) if file.loops else model
    loops = [read_loop(entry, described, frames, True) for entry in file.loops]
    couplings = [*mjcf.assembly.couplings, *map(read_coupling, file.couplings)]
    assembly = replace(mjcf.assembly, model=model, frames=frames, couplings=tuple(couplings))
    return replace(mjcf, assembly=assembly, loops=(*mjcf.loops, *loops))


def _chosen(mjcf: MjcfRobot) -> tuple[tuple[int, ...], bool]:
    """Return joints that determine the pose, those with actuators first, and whether these hold it."""
    tree, assembly = mjcf.assembly.model, mjcf.assembly
    # built to choose from: the freedom is not known yet
    constraints = Constraints(mjcf.loops, assembly.couplings, tree.joint_names)
    all_joints = Closure.build(tree, constraints, assembly.frames, mjcf.home)
    actuated = [tree.joint_index(name) for name in mjcf.actuated]
    chosen, holds = choose_coordinates(all_joints, actuated)
    redundant = len(actuated) > len(chosen)
    return chosen, holds and not (all_joints.base_prescribed and redundant)


def _build(file: MjcfFile, mjcf: MjcfRobot) -> RobotDescription:
    tree, assembly = mjcf.assembly.model, mjcf.assembly
    rows = {name: mjcf.limits.row(i) for i, name in enumerate(tree.joint_names)}
    limit_all(file, rows)
    changes = read_limits_and_drives(file.joints, rows)
    if not mjcf.actuated:
        mjcf = replace(mjcf, actuated=tuple(name for name in tree.joint_names if name in changes))
    coordinates = None if file.coordinates is None else read_coordinates(file.coordinates)
    driven, lines = file.driven, list(mjcf.ignored)
    if mjcf.loops and coordinates is None:
        chosen, holds = _chosen(mjcf)
        coordinates = [tree.joint_names[joint] for joint in chosen]
        if driven is None and holds:
            driven = mjcf.actuated
        elif driven is None and mjcf.actuated:
            arrays = [name for name in coordinates if name not in mjcf.actuated]
            if arrays:
                lines.append(
                    f"its actuators do not hold it; as driven count {', '.join(map(repr, arrays))} too "
                    "(say by `driven`, `coordinates` and `locked` joints what moves)"
                )
    closure, constraints = None, Constraints(mjcf.loops, assembly.couplings, coordinates, driven)
    if not constraints.empty:
        try:
            closure = Closure.build(tree, constraints, assembly.frames, mjcf.home)
        except ModelError as error:
            raise place_error(file, error) from error
    structure = Closure.of_tree(tree) if closure is None else closure
    drives = structure.driven
    check_driven(file, changes, [tree.joint_names[joint] for joint in drives])
    specs = _drives(mjcf, structure, file, changes)
    for line in [*lines, *_not_driven(mjcf, structure, file.mjcf_friction)]:
        warnings.warn(f"robot {tree.name!r}: {line}", FigureWarning, stacklevel=3)
    limits = JointLimits.of(tree.joint_names, [rows[name] for name in tree.joint_names])
    return RobotDescription(
        model=tree,
        limits=limits.of_joints(drives),
        drives=specs if any(spec != DriveSpec() for spec in specs) else None,
        frames=assembly.frames,
        closure=closure,
        coordinate_limits=limits.of_joints(structure.joints),
        grounded=assembly.grounded,
        propellers=read_propellers(file, assembly.frames, tree.floating_base),
    )


def _drives(
    mjcf: MjcfRobot,
    structure: Closure,
    file: MjcfFile,
    changes: Mapping[str, DriveSpec],
) -> tuple[DriveSpec, ...]:
    """Return the drives of the driven joints: springs with motors of their own, else rigid with a rotor."""
    names, frictions = mjcf.assembly.model.joint_names, mjcf.assembly.frictions
    reflected = _reflected(mjcf.rotors, structure)
    specs = []
    for joint in structure.driven:
        name = names[joint]
        spec = mjcf.springs.get(name) or DriveSpec(motor_inertia=float(reflected[joint]))
        if file.mjcf_friction:
            spec = replace(spec, link_friction=frictions[name])
        else:
            spec = replace(spec, motor_friction=FrictionSpec())
        change = changes.get(name, file.drive)
        try:
            specs.append(change.on(spec) if isinstance(change, DriveChanges) else spec)
        except ModelError as error:
            raise ModelError(f"joint {name!r}: {error}") from error
    return tuple(specs)


def _ratios(closure: Closure) -> Array:
    """Return by which ratio each joint follows each other one (n, n), zero where it does not."""
    coupling = closure.coupling_matrix[closure.first :, closure.first :]
    together = (coupling != 0.0).astype(float) @ (coupling != 0.0).T
    ratios = coupling.sum(axis=1)
    over = np.where(ratios == 0.0, np.inf, ratios)
    result: Array = together * ratios[:, None] / over[None, :]
    return result


def _reflected(rotors: Array, closure: Closure) -> Array:
    """Return rotor inertias (n,) with those of all joints that follow or lead by couplings."""
    result: Array = rotors @ _ratios(closure) ** 2
    return result


def _not_driven(mjcf: MjcfRobot, structure: Closure, friction: bool | None) -> Iterator[str]:
    """Yield a line for rotors, springs with motors and friction that act on no drive."""
    names, frictions = mjcf.assembly.model.joint_names, mjcf.assembly.frictions
    driven = structure.driven
    reached: Array = np.any(_ratios(structure)[:, list(driven)], axis=1)
    yield from in_words(
        "armatures of joints without drives,",
        [name for name, rotor, drives in zip(names, mjcf.rotors, reached) if rotor and not drives],
    )
    left = [name for name in mjcf.springs if name in names and names.index(name) not in driven]
    yield from in_words("motors on springs of joints that are not driven,", left)
    rough = [name for name in names if _rubs(mjcf, name)]
    if friction is None:
        yield from in_words(
            "friction and damping of joints",
            rough,
            " (friction=True, or mjcf_friction: true, takes them, False says nothing)",
        )
    elif friction:
        idle = [
            name for name in rough if names.index(name) not in driven and frictions[name] != FrictionSpec()
        ]
        yield from in_words("friction and damping of joints without drives,", idle)


def _rubs(mjcf: MjcfRobot, name: str) -> bool:
    spring = mjcf.springs.get(name)
    own = FrictionSpec() if spring is None else spring.motor_friction
    return mjcf.assembly.frictions[name] != FrictionSpec() or own != FrictionSpec()
