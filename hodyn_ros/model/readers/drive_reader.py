"""Read the drive of a joint from a robot's YAML file."""

from __future__ import annotations

from dataclasses import fields

from hodyn_ros.errors import ModelError
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec, VariableStiffnessSpec
from hodyn_ros.model.readers.document import Section

_PLAIN = ("spring_damping", "cubic_stiffness", "gear_ratio", "torque_constant")


def read_drive(section: Section, joint: str) -> DriveSpec:
    """Return the figures of a `drive` mapping; ModelError names file, line and joint."""
    if ("motor_inertia" in section) == ("rotor_inertia" in section):
        raise section.error(
            f"joint {joint!r}: give either motor_inertia [kg m^2], reflected to the link side, or "
            "rotor_inertia [kg m^2], that of the rotor itself, with gear_ratio"
        )
    figures: dict[str, object] = {key: section.number(key) for key in _PLAIN if key in section}
    for key in ("motor_friction", "link_friction"):
        if key in section:
            friction = section.section(key)
            given = {name: friction.number(name) for name in _names(FrictionSpec) if name in friction}
            figures[key] = FrictionSpec(**given)
    try:
        if "spring_table" in section:
            table = section.section("spring_table")
            figures["spring_table"] = tuple(tuple(map(float, table[key])) for key in ("torque", "deflection"))
        if "variable_stiffness" in section:
            figures["variable_stiffness"] = _variable_stiffness(section.section("variable_stiffness"))
        if "limits" in section:
            limits = section.section("limits")
            bounds = {
                name: limits.number(name, infinite=True) for name in _names(DriveLimits) if name in limits
            }
            figures["limits"] = DriveLimits(**bounds)
        stiffness = section.number("stiffness", infinite=True)
        return DriveSpec(stiffness, _motor_inertia(section), **figures)  # type: ignore[arg-type]
    except ModelError as error:
        if str(error).startswith(f"{section.document.path}:"):
            raise
        raise section.error(f"joint {joint!r}: {error}") from error


def _motor_inertia(section: Section) -> float:
    """Return the inertia reflected to the link side, the rotor being `gear_ratio` times as fast."""
    if "motor_inertia" in section:
        return section.number("motor_inertia")
    if "gear_ratio" not in section:
        raise section.error(
            "a rotor_inertia needs the gear_ratio; for a direct drive write 1", "rotor_inertia"
        )
    return section.number("gear_ratio") ** 2 * section.number("rotor_inertia")


def _variable_stiffness(section: Section) -> VariableStiffnessSpec:
    kind = section["type"]
    own = {key: section.number(key) for key in ("curvature", "motor_inertia") if key in section}
    if kind == "cam" and len(own) < 2:
        raise section.error("a cam needs its curvature and the motor_inertia of the second motor")
    if kind != "cam" and own:
        raise section.error(
            f"{next(iter(own))} belongs to a cam; both motors of an antagonist pair are alike"
        )
    return VariableStiffnessSpec(kind, section.number("spring"), **own)


def _names(kind: type[FrictionSpec] | type[DriveLimits]) -> list[str]:
    return [entry.name for entry in fields(kind)]
