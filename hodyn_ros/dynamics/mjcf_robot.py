"""From what an MJCF says to coordinates, driven joints and drives, where it does not name them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from hodyn_ros.dynamics.loops.independence import choose_coordinates
from hodyn_ros.errors import FigureWarning
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, Coordinate
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.readers.mjcf import MjcfRobot, in_words


def build_mjcf(
    mjcf: MjcfRobot,
    coordinates: Sequence[Coordinate] | None = None,
    driven: Sequence[str | int] | None = None,
    friction: bool | None = None,
) -> RobotDescription:
    """Choose what an MJCF leaves open; arguments and warnings as of `Robot.from_mjcf`."""
    tree, couplings = mjcf.assembly.model, mjcf.assembly.couplings
    closure = None
    lines = list(mjcf.ignored)
    if mjcf.loops and coordinates is None:
        # built to choose from: the freedom is not known yet
        all_joints = Closure.build(
            tree, mjcf.loops, couplings, tree.joint_names, frames=mjcf.assembly.frames, start=mjcf.home
        )
        actuated = [tree.joint_index(name) for name in mjcf.actuated]
        chosen, held = choose_coordinates(all_joints, actuated)
        coordinates = [tree.joint_names[joint] for joint in chosen]
        redundant = len(actuated) > len(chosen)
        if driven is None and held and not (all_joints.base_given and redundant):
            driven = mjcf.actuated
        elif driven is None and mjcf.actuated and not held:
            others = [name for name in coordinates if name not in mjcf.actuated]
            lines.append(f"its actuators do not hold it; as driven count {', '.join(map(repr, others))} too")
    if mjcf.loops or couplings or coordinates is not None or driven is not None:
        closure = Closure.build(
            tree, mjcf.loops, couplings, coordinates, driven, mjcf.assembly.frames, start=mjcf.home
        )
    joints = range(tree.n_joints) if closure is None else closure.joints
    drives = range(tree.n_joints) if closure is None else closure.driven
    specs = _drives(mjcf, closure, drives, bool(friction))
    for line in [*lines, *_not_driven(mjcf, closure, drives, friction)]:
        warnings.warn(f"robot {tree.name!r}: {line}", FigureWarning, stacklevel=3)
    return RobotDescription(
        model=tree,
        limits=mjcf.limits.of_joints(drives),
        drives=specs if any(spec != DriveSpec() for spec in specs) else None,
        frames=mjcf.assembly.frames,
        closure=closure,
        coordinate_limits=mjcf.limits.of_joints(joints),
    )


def _drives(
    mjcf: MjcfRobot, closure: Closure | None, driven: Sequence[int], friction: bool
) -> tuple[DriveSpec, ...]:
    names, frictions = mjcf.assembly.model.joint_names, mjcf.assembly.frictions
    reflected = mjcf.rotors if closure is None else _reflected(mjcf.rotors, closure)
    return tuple(
        DriveSpec(
            motor_inertia=float(reflected[joint]),
            link_friction=frictions[names[joint]] if friction else FrictionSpec(),
        )
        for joint in driven
    )


def _ratios(closure: Closure) -> Array:
    """Return by which ratio each joint follows each other one (n, n), zero where it does not."""
    spread = closure.spread[closure.first :, closure.first :]
    together = (spread != 0.0).astype(float) @ (spread != 0.0).T
    ratios = spread.sum(axis=1)
    over = np.where(ratios == 0.0, np.inf, ratios)
    result: Array = together * ratios[:, None] / over[None, :]
    return result


def _reflected(rotors: Array, closure: Closure) -> Array:
    """Return rotor inertias (n,) with those of all joints that follow or lead by couplings."""
    result: Array = rotors @ _ratios(closure) ** 2
    return result


def _not_driven(
    mjcf: MjcfRobot, closure: Closure | None, driven: Sequence[int], friction: bool | None
) -> Iterator[str]:
    """Yield a line for rotors and friction that act on no drive."""
    names, frictions = mjcf.assembly.model.joint_names, mjcf.assembly.frictions
    if closure is not None:
        reached: Array = np.any(_ratios(closure)[:, list(driven)], axis=1)
        yield from in_words(
            "armatures of joints without drives,",
            [name for name, rotor, drives in zip(names, mjcf.rotors, reached) if rotor and not drives],
        )
    rough = [name for i, name in enumerate(names) if frictions[name] != FrictionSpec()]
    if friction is None:
        yield from in_words(
            "friction and damping of joints", rough, " (friction=True takes them, False says nothing)"
        )
    elif friction:
        idle = [name for name in rough if names.index(name) not in driven]
        yield from in_words("friction and damping of joints without drives,", idle)
