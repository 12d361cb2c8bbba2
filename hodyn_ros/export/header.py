"""The header of an exported robot, which C++ reads as well."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.export.c_text import comment_block
from hodyn_ros.export.interface import Interface
from hodyn_ros.export.motors import Motors
from hodyn_ros.model.tree import JointKind


def header_lines(interface: Interface, title: Sequence[str]) -> list[str]:
    """Write the header; `title` are the paragraphs that the comment at its top starts with."""
    n, name, macro = interface.model.n_joints, interface.name, interface.macro
    lines = [
        *comment_block([*title, *_conventions(interface)]),
        f"#ifndef {macro}_H",
        f"#define {macro}_H",
        "",
        f"#define {macro}_ORDER {interface.order}",
        f"#define {macro}_JOINTS {n}",
        f"#define {macro}_FLOATING_BASE {int(interface.model.floating_base)}",
        f"#define {macro}_HAS_MOTORS {int(interface.motors is not None)}",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"extern const char *const {name}_joint_names[{n}];",
        "",
        *comment_block(_about_inverse_dynamics(interface)),
        f"void {name}_inverse_dynamics({interface.parameters});",
        "",
    ]
    if interface.motors is not None:
        lines += [
            *comment_block(_about_motors(interface.motors)),
            f"void {name}_motor_feedforward({interface.motors.parameters});",
            "",
        ]
    return [
        *lines,
        *comment_block([_ABOUT_SELF_TEST]),
        f"double {name}_self_test(void);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif /* {macro}_H */",
    ]


_ABOUT_SELF_TEST = (
    "Compute fixed motions and return the largest error against expected numbers, relative to the largest "
    "number of the same motion and order. Rounding leaves about 1e-14. Infinite where a result is not finite."
)


def _conventions(interface: Interface) -> list[str]:
    model = interface.model
    kinds = model.kinds[-model.n_joints :]
    gravity = ", ".join(repr(float(g)) for g in model.gravity)
    return [
        "",
        f"Gravity ({gravity}) m/s^2 in the world frame. Joints, in the order of every array:",
        *[
            f"  {j} {joint} ({'m, N' if kind is JointKind.PRISMATIC else 'rad, N.m'})"
            for j, (joint, kind) in enumerate(zip(model.joint_names, kinds))
        ],
        "",
        "Derivative k of joint j stands at [k * joints + j], in the joint's unit per s^k.",
        "",
        "The functions take the same steps whatever the numbers: no branch depends on them, except within "
        "sin and cos of math.h. They allocate nothing, keep no state, and may run in several threads at "
        "once. They do not check the numbers: NaN and infinity go through to the results.",
    ]


def _about_inverse_dynamics(interface: Interface) -> list[str]:
    order = interface.order
    lines = [
        f"q: positions and their derivatives up to order {order + 2}.",
        f"tau: joint torques (forces) on the link side and their derivatives up to order {order}.",
    ]
    if interface.model.floating_base:
        lines += [
            "pose: homogeneous matrix of the base in the world, row by row [m].",
            "twists: spatial twist of the base (wx wy wz vx vy vz), in world axes at the world origin "
            f"[rad/s, m/s], and its derivatives up to order {order + 1}.",
            "base_wrench: wrench (mx my mz fx fy fz) that has to act on the base, in world axes about the "
            f"world origin [N.m, N], and its derivatives up to order {order}.",
        ]
    return lines


def _about_motors(motors: Motors) -> list[str]:
    return [
        "q and tau: as taken and given by the inverse dynamics.",
        "position: of the motors, reflected to the link side, with derivatives (velocity, ...) up to order "
        f"{motors.order}: q + tau / stiffness.",
        "effort: of the motors, reflected to the link side, with derivatives up to order "
        f"{motors.effort_rows - 1}: motor inertia * theta'' + tau. Friction is not in it.",
    ]
