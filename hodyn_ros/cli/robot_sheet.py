"""What a robot file says, read as a whole: joints, limits, drives, masses, frames, and what is assumed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from math import isfinite

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.mobility import drawn_only
from hodyn_ros.dynamics.read_robot import format_of
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import FigureWarning
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.model.limits import JointLimits
from hodyn_ros.model.propeller import Propeller
from hodyn_ros.model.readers.document import AssumedFigure
from hodyn_ros.model.readers.robot_file import WORLD
from hodyn_ros.tables import number

_URDF_NOTES: tuple[str, ...] = (
    "A URDF says nothing about drives, rates of torques or gravity (taken as 9.81 m/s^2 down); a YAML file "
    "beside it does, see config/README.md. By itself its damping, friction, transmissions and soft limits "
    "(safety_controller) do not count.",
)


@dataclass(frozen=True)
class Block:
    """A table: `texts` are the columns that hold words."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Sheet:
    """All that is shown of a robot."""

    summary: str
    blocks: tuple[Block, ...]
    assumed: tuple[str, ...]  # a line for each figure that the file marks so
    notes: tuple[str, ...]


def read_sheet(choice: RobotChoice) -> Sheet:
    """Read a robot of any kind, from YAML, URDF or MJCF. Raises ModelError naming file and place."""
    form = format_of(choice.path)
    with warnings.catch_warnings(record=form == "mjcf") as said:
        robot = choice.description()
    notes = tuple(str(each.message) for each in said or () if issubclass(each.category, FigureWarning))
    if form == "urdf" and not choice.settings:
        notes = _URDF_NOTES
    return _sheet(robot, (*_left_out(robot, form), *notes))


def _left_out(robot: RobotDescription, form: str) -> Iterator[str]:
    """Say that nothing has a mass, or what has one and stands on the ground, so that it does not count."""
    if fault := drawn_only(robot.model):
        yield f"No command computes with it: {fault}."
    if robot.grounded:
        bodies = ", ".join(f"{name} ({number(mass)} kg)" for name, mass in robot.grounded.items())
        hint = {
            "urdf": "; with --floating-base the base floats",
            "yaml": "" if robot.model.floating_base else "; with floating_base: true the base floats",
        }.get(form, "")
        yield f"Fixed to the world, so that it does not count: {bodies}{hint}."


def _sheet(robot: RobotDescription, notes: tuple[str, ...]) -> Sheet:
    model, closure, limits, drives = robot.model, robot.closure, robot.limits, robot.drives
    first = model.first_jointed_body
    kinds = [model.kinds[first + i].value for i in range(model.n_joints)]
    parents = [
        "world" if parent < 0 else model.body_names[parent]
        for parent in (model.parents[first + i] for i in range(model.n_joints))
    ]
    where = "floating base" if model.floating_base else "fixed base"
    if closure is not None and closure.platform is not None:
        where = f"moved by its platform {model.body_names[closure.platform.body]!r}"
    fixed = sum(robot.grounded.values())
    left_out = f", {number(fixed)} kg more are fixed to the world and do not count" if fixed else ""
    summary = (
        f"{model.name}: {model.n_joints} joints, {model.n_bodies} bodies of {number(model.masses.sum())} kg"
        f"{left_out}; {where}, gravity {_vector(model.gravity)} m/s^2"
    )
    joints = Block(
        "Joints",
        ("joint", "type", "from", "to"),
        tuple(zip(model.joint_names, kinds, parents, model.body_names[first:], strict=True)),
        (0, 1, 2, 3),
    )
    bodies = Block(
        "Bodies",
        ("body", "mass [kg]", "centre of mass in its frame [m]", "moments of inertia [kg m^2]"),
        tuple(
            (name, number(mass), _vector(com) if mass else "", _moments(inertia) if mass else "")
            for name, mass, com, inertia in zip(
                model.body_names, model.masses, model.coms, model.inertias, strict=True
            )
        ),
        (0, 2, 3),
    )
    driven = [model.joint_names[j] for j in robot.driven]
    ties = () if closure is None else _ties(closure)
    own = [name for name in sorted(robot.frames) if name not in (*model.body_names, WORLD)]
    notes = (*((f"Named frames besides the bodies: {', '.join(own)}.",) if own else ()), *notes)
    return Sheet(
        summary,
        (
            joints,
            *ties,
            *_limits(driven, [kinds[j] for j in robot.driven], limits),
            *_drives(driven, [kinds[j] for j in robot.driven], drives),
            *_propellers(robot.propellers),
            bodies,
        ),
        tuple(map(_assumed, robot.assumed)),
        (*notes, *_missing(limits, drives)),
    )


def _ties(closure: Closure) -> tuple[Block, ...]:
    """Return what couples joints and closes loops, and which joints are coordinates or driven."""
    names, bodies = closure.tree.joint_names, ("world", *closure.tree.body_names)
    rows = []
    for joint, name in enumerate(names):
        ratios = closure.coupling_matrix[closure.first + joint, closure.first :]
        follows = [
            f"{number(ratios[c])} {names[closure.leading[c]]}"
            for c in np.flatnonzero(ratios)
            if joint not in closure.leading
        ]
        follows += [f"a curve over {names[one.of]}" for one in closure.followers if one.joint == joint]
        coordinate = "yes" if joint in closure.joints else ""
        rows.append((name, coordinate, "yes" if joint in closure.driven else "", " + ".join(follows)))
    head, platform = "joint", closure.platform
    if platform is not None:
        head = "joint or row"
        body = closure.tree.body_names[platform.body]
        rows = [(f"{body}.{row}", "yes", "", "") for row in platform.rows] + rows
    blocks = [Block("Coordinates", (head, "coordinate", "driven", "follows"), tuple(rows), (0, 1, 2, 3))]
    if closure.loops:
        loops = [
            (loop.name, loop.kind, bodies[loop.a.body + 1], bodies[loop.b.body + 1]) for loop in closure.loops
        ]
        blocks.append(Block("Loops", ("loop", "kind", "from", "to"), tuple(loops), (0, 1, 2, 3)))
    return tuple(blocks)


def _limits(names: Sequence[str], kinds: Sequence[str], limits: JointLimits) -> Iterator[Block]:
    angle, force = _units(kinds)
    if _limited(limits):
        rows = [limits.row(i) for i in range(len(names))]
        yield Block(
            f"Limits [{angle}, s, {force}]; empty: none",
            ("joint", "from", "to", "speed", "accel.", "jerk", "effort", "effort rate"),
            tuple(
                (
                    name,
                    *map(number, (row.lower, row.upper, row.velocity, row.acceleration, row.jerk)),
                    *map(number, (row.effort, row.effort_rate)),
                )
                for name, row in zip(names, rows, strict=True)
            ),
        )


def _drives(
    names: Sequence[str], kinds: Sequence[str], drives: Sequence[DriveSpec] | None
) -> Iterator[Block]:
    angle, force = _units(kinds)
    if drives is not None:
        yield Block(
            f"Drives, on the side of the link [{force}, {angle}, kg, m, s]",
            ("joint", "spring", "stiffness", "motor inertia", "gear", "friction", "motor torque"),
            tuple(
                (
                    name,
                    _spring(spec),
                    number(spec.stiffness),
                    number(spec.motor_inertia),
                    "" if spec.gear_ratio == 1.0 else number(spec.gear_ratio),
                    _friction(spec),
                    number(spec.torque_limit),
                )
                for name, spec in zip(names, drives, strict=True)
            ),
            (0, 1, 5),
        )


def _propellers(propellers: Sequence[Propeller]) -> Iterator[Block]:
    if propellers:
        yield Block(
            "Propellers [m, N, rad, s]; empty: none",
            (
                "propeller",
                "place on the base",
                "axis",
                "drag",
                "thrust from",
                "to",
                "rate",
                "tilt",
                "tilt rate",
            ),
            tuple(
                (one.name, _vector(one.pose[:3, 3]), _vector(one.pose[:3, 2]), number(one.drag))
                + tuple(map(number, astuple(one.limits)[: None if one.tilts else 3]))
                + (() if one.tilts else ("fixed", ""))
                for one in propellers
            ),
            (0, 1, 2),
        )


def _assumed(figure: AssumedFigure) -> str:
    why = f" ({figure.source})" if figure.source else ""
    return f"{figure.place} = {_value(figure.value)}{why}"


def _missing(limits: JointLimits, drives: Sequence[DriveSpec] | None) -> Iterator[str]:
    if not _limited(limits):
        yield "No limits: nothing is checked against them, and nothing held within them."
    if drives is None:
        yield "No drives: efforts of the joints are known, but neither motors nor springs."


def _limited(limits: JointLimits) -> bool:
    return any(np.isfinite(getattr(limits, entry.name)).any() for entry in fields(limits))


def _spring(spec: DriveSpec) -> str:
    if spec.variable_stiffness is not None:
        return f"variable, {spec.variable_stiffness.kind.replace('_', '-')}"
    if not isfinite(spec.stiffness):
        return "rigid"
    if spec.spring_table is not None:
        return "tabulated"
    if spec.cubic_stiffness:
        return f"hardening, {number(spec.cubic_stiffness)} cubed"
    return f"damped, {number(spec.spring_damping)} s" if spec.spring_damping else "linear"


def _friction(spec: DriveSpec) -> str:
    parts, usual = [], asdict(FrictionSpec())
    for where, friction in (("motor", spec.motor_friction), ("link", spec.link_friction)):
        said = [f"{number(value)} {key}" for key, value in asdict(friction).items() if value != usual[key]]
        if friction != FrictionSpec(transition=friction.transition):
            parts.append(f"{where} {', '.join(said)}")
    return "; ".join(parts)


def _units(kinds: Sequence[str]) -> tuple[str, str]:
    if all(kind == "prismatic" for kind in kinds):
        return "m", "N"
    if "prismatic" in kinds:
        return "rad or m", "N·m or N"
    return "rad", "N·m"


def _vector(values: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in np.where(values == 0.0, 0.0, values))


def _moments(inertia: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in np.linalg.eigvalsh(inertia))


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(each)}" for key, each in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, (list, tuple)) else str(value)
