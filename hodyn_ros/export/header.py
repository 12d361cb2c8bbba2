"""The header of an exported robot, which C++ reads as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.export.c_function import CODES, CFunction
from hodyn_ros.export.c_text import comment_block
from hodyn_ros.export.small.stack import TARGETS
from hodyn_ros.export.small.turns import ERROR, LARGEST
from hodyn_ros.model.tree import JointKind, TreeModel


def header_lines(
    robot: Robot,
    order: int,
    prefix: str,
    functions: Sequence[CFunction],
    memory: Sequence[str],
    title: Sequence[str],
    small: Small | None = None,
) -> list[str]:
    """Write the header; `title` are the paragraphs that the comment at its top starts with.

    `memory`: the members of the struct, where there is one; `small`: what is said for small processors.
    """
    macro = prefix.upper()
    looped, fails = robot.closure is not None, any(function.fails for function in functions)
    figures = {
        "ORDER": order,
        "JOINTS": robot.n_coordinates,
        **({"DRIVEN": len(robot.driven_joints)} if looped else {}),
        "FLOATING_BASE": int(robot.tree.floating_base),
        "HAS_MOTORS": int(any(function.name == "motor_feedforward" for function in functions)),
        **({} if small is None else {"STACK": small.stack, "TOLERANCE": small.tolerance}),
    }
    lines = [
        *comment_block([*title, *_conventions(robot, fails, small)]),
        f"#ifndef {macro}_H",
        f"#define {macro}_H",
        "",
        *[f"#define {macro}_{name} {value}" for name, value in figures.items()],
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *[f"extern const char *const {names}[{count}];" for names, count in name_arrays(robot, prefix)],
        "",
    ]
    if fails:
        lines += ["enum {", *[f"  {macro}_{code} = {i}," for i, code in enumerate(CODES[:-1])]]
        lines += [f"  {macro}_{CODES[-1]} = {len(CODES) - 1}", "};", ""]
    if memory:
        lines += [
            "typedef struct {",
            *[f"  {line}" for line in memory],
            f"}} {prefix}_memory;",
            "",
            *comment_block([_ABOUT_HOME if looped else _ABOUT_START]),
            f"void {prefix}_home({prefix}_memory *memory);",
            "",
        ]
    for function in functions:
        lines += [*comment_block(function.about), f"{function.prototype};", ""]
    return [
        *lines,
        *comment_block([_ABOUT_SELF_TEST.format(rounding=_ROUNDING if small is None else _SMALL_ROUNDING)]),
        f"double {prefix}_self_test(void);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif /* {macro}_H */",
    ]


def name_arrays(robot: Robot, prefix: str) -> list[tuple[str, int]]:
    """Return names and lengths of the arrays of joint names."""
    arrays = [(f"{prefix}_joint_names", robot.n_coordinates)] if robot.n_coordinates else []
    if robot.closure is not None:
        arrays.append((f"{prefix}_driven_names", len(robot.driven_joints)))
    return arrays


_ABOUT_SELF_TEST = (
    "Make fixed calls and return the largest error against expected numbers, relative to the largest number "
    "of the same call and order. Rounding leaves {rounding}. Infinite where a result is not finite, or a "
    "code is another one."
)
_ROUNDING = "about 1e-14"
_SMALL_ROUNDING = "less than TOLERANCE (with the prefix)"
_ABOUT_START = "Put a memory to its start. To be called before the first call."
_ABOUT_HOME = (
    "Put a memory to where the robot is described, on its branch. To be called before the first call; a "
    "robot that stands elsewhere is led there in steps of less than half a radian."
)
_CONSTANT = "The functions take the same steps whatever the numbers: no branch depends on them"
_EXCEPT = ", except within sin and cos of math.h"
_REST = (
    "They allocate nothing, keep no state but the memory that they are given, and may run in several threads "
    "at once, each with a memory of its own."
)
_ABOUT_WIDE = (
    "In the last step of Newton's method it is computed with twice the digits how far loops are open: with "
    "double, if DOUBLE (with the prefix) is 1, as by default where the compiler says that an ARM has it; "
    "else with pairs of float, several operations for one, which -ffast-math would spoil."
)


class Small(NamedTuple):
    """What the header says for a small processor: bytes of stack, and the error that passes the self-test.

    `wide`: whether some numbers have twice the digits of the others.
    """

    target: str
    stack: int
    tolerance: float
    wide: bool

    @property
    def about(self) -> list[str]:
        """Paragraphs of the comment at the top."""
        flags = TARGETS[self.target].flags
        built = f", compiled with {flags} -O2 or other optimisations" if flags else ""
        return [
            "",
            f"For {self.target}{built}: numbers are float. Sines and cosines are written out, and right to "
            f"{ERROR:g} for angles up to {LARGEST:g} rad. No function allocates memory, recurs, or calls "
            "anything of a library but sqrtf, fabsf and floorf. Calls take at most STACK (with the prefix) "
            "bytes of stack: what calls save, and twice what the functions declare, as compilers keep "
            "constants, too, and begin early with what is needed late. The self-test takes more.",
            *([_ABOUT_WIDE] if self.wide else []),
        ]


def _conventions(robot: Robot, fails: bool, small: Small | None) -> list[str]:
    gravity = ", ".join(repr(float(g)) for g in robot.gravity)
    lines = ["", f"Gravity ({gravity}) m/s^2 in the world frame."]
    if robot.closure is None:
        lines += ["Joints, in the order of every array:", *_joints(robot.tree, robot.joint_names)]
    else:
        if robot.n_coordinates:
            lines += ["Joints, in the order of q:", *_joints(robot.tree, robot.joint_names)]
        lines += ["Driven joints, in the order of tau and motion:", *_joints(robot.tree, robot.driven_joints)]
    lines += ["", "Derivative k of joint j stands at [k * joints + j], in the joint's unit per s^k.", ""]
    constant = _CONSTANT if small else f"{_CONSTANT}{_EXCEPT}"
    about_small = small.about if small else []
    if not fails:
        return [
            *lines,
            f"{constant}. They allocate nothing, keep no state, and may run in several threads at once. "
            "They do not check the numbers: NaN and infinity go through to the results.",
            *about_small,
        ]
    return [
        *lines,
        f"{constant}, and but for what follows. {_REST}",
        *_about_codes(robot, small),
        *about_small,
    ]


def _about_codes(robot: Robot, small: Small | None) -> list[str]:
    steps = "nine" if small and small.wide else "eight"
    lines = [
        "Functions that can fail return OK or FAILED, with the prefix of all macros here. Where they fail, "
        "NaN and infinity among the numbers included, they leave results and memory as they were."
    ]
    if robot.closure is not None:
        lines.append(
            "NEAR_SINGULAR says that the result is right, but near a pose where the coordinates do not "
            "determine the motion, or the drives do not hold the robot. Newton's method ends when it has "
            f"arrived, after {steps} steps at most; compile with CONSTANT_TIME (with the prefix) defined as "
            f"1, and it always takes {steps}. It fails where a loop cannot be closed, at singular poses, and "
            "where all joints together are more than half a radian from those of the last success."
        )
    return lines


def _joints(tree: TreeModel, names: Sequence[str]) -> list[str]:
    kinds = dict(zip(tree.joint_names, tree.kinds[-tree.n_joints :]))
    return [
        f"  {j} {joint} ({'m, N' if kinds[joint] is JointKind.PRISMATIC else 'rad, N.m'})"
        for j, joint in enumerate(names)
    ]
