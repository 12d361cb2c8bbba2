"""A linkage as a shared object, which `hodyn_ros/LinkageTransmission` of ros2_control loads."""

from __future__ import annotations

from pathlib import Path

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_source import c_source
from hodyn_ros.export.c_text import number, string, vector
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.model.closure import Closure

TABLE = Path(__file__).parents[1] / "linkage_table.h"


_HOME = "home_joints", "home_actuators"


def closure_of_linkage(robot: Robot) -> Closure:
    """Return the loops of a robot that is a linkage; InputError for any other.

    Its coordinates are joints, its base is fixed, and it has as many drives as coordinates.
    """
    closure = robot.closure
    if closure is None:
        raise InputError(f"robot {robot.name!r} has no couplings or loops; a transmission has some")
    if closure.leader is not None:
        raise InputError(
            f"robot {robot.name!r} moves a base or a platform; a transmission moves joints. Let a file hold "
            "the linkage alone, on a fixed base, and name the joints that it moves as coordinates"
        )
    if len(closure.driven) != closure.n_coordinates:
        raise InputError(
            f"robot {robot.name!r} has {len(closure.driven)} drives and {closure.n_coordinates} coordinates; "
            "a transmission takes as many of both"
        )
    return closure


def linkage_sources(robot: Robot, name: str | None, origin: str, digest: str) -> dict[str, str]:
    """Return the texts of the files that make a shared object, by their names; the header is first.

    `digest`: SHA-256 of the robot's file. Raises InputError for robots that are no linkage.
    """
    closure = closure_of_linkage(robot)
    request = ExportRequest(0, name, ("drive_jacobian", "motion_from_drives"))
    code = c_source(robot, request, origin)
    return {
        f"{code.name}.h": code.header,
        f"{code.name}.c": code.source,
        TABLE.name: TABLE.read_text(encoding="ascii"),
        f"{code.name}_linkage.c": "\n".join(_table(robot, closure, code.name, digest)) + "\n",
    }


def _table(robot: Robot, closure: Closure, name: str, digest: str) -> list[str]:
    n, macro = closure.n_coordinates, name.upper()
    vectors = {name: closure.home[list(of)] for name, of in zip(_HOME, (closure.joints, closure.driven))}
    if robot.drive_train is not None:
        vectors["inertia"] = robot.drive_train.motor_inertia
    figures = [
        *("HODYN_LINKAGE_ABI", "sizeof(hodyn_linkage)", string(robot.name), string(digest), str(n)),
        *(f"{name}_joint_names", f"{name}_driven_names", *_HOME, "inertia" if "inertia" in vectors else "0"),
        *(f"sizeof({name}_memory)", "home", "to_actuators", "to_joints", f"{name}_self_test"),
    ]
    return [
        f"/* The table of linkage_table.h for linkage {name}, written by `hodyn export --lang linkage`. */",
        '#include "linkage_table.h"',
        f'#include "{name}.h"',
        "",
        *(line for vector_ in vectors.items() for line in vector(*vector_)),
        "",
        *("static void home(void *memory)", "{", f"  {name}_home(({name}_memory *)memory);", "}", ""),
        "static int to_actuators(void *memory, const double *joints, double *actuators, double *jacobian)",
        "{",
        f"  {name}_memory *const own = ({name}_memory *)memory;",
        f"  const int code = {name}_drive_jacobian(own, joints, jacobian);",
        f"  if (code != {macro}_FAILED) {{",
        *[f"    actuators[{i}] = {_position(closure, joint)};" for i, joint in enumerate(closure.driven)],
        "  }",
        "  return code;",
        "}",
        "",
        "static int to_joints(void *memory, const double *actuators, double *joints, double *jacobian)",
        "{",
        f"  {name}_memory next = *({name}_memory *)memory;",
        f"  double found[{n}];",
        "  int i;",
        f"  int code = {name}_motion_from_drives(&next, actuators, found);",
        f"  if (code != {macro}_FAILED) {{",
        f"    code = {name}_drive_jacobian(&next, found, jacobian);",
        "  }",
        f"  if (code != {macro}_FAILED) {{",
        f"    *({name}_memory *)memory = next;",
        f"    for (i = 0; i < {n}; ++i) {{",
        "      joints[i] = found[i];",
        "    }",
        "  }",
        "  return code;",
        "}",
        "",
        "static const hodyn_linkage table = {",
        *[f"  {figure}," for figure in figures],
        "};",
        "",
        *("const hodyn_linkage *hodyn_linkage_table(void)", "{", "  return &table;", "}"),
    ]


def _position(closure: Closure, joint: int) -> str:
    """Write the position of a joint from those that the memory holds."""
    terms = [
        f"{number(factor)} * own->leading[{column}]"
        for column, factor in enumerate(closure.coupling_matrix[joint].tolist())
        if factor
    ]
    return " + ".join([*terms, *([number(offset)] if (offset := float(closure.offsets[joint])) else [])])
