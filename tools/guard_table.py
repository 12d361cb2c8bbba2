"""Write what the guards in Python and in C++ share, and the words of the latter for C.

    tools/guard_table.py > ros2_control/guard/table.hpp
    tools/guard_table.py --c > ros2_control/guard/guard_words.h

States, faults, obstacles and progress with their names and sentences are those of
`hodyn_ros/guard/reasons.py`, the figures of a guard with their defaults and ranges those of
`guard_config.py`, and thresholds the constants at the top of the files there.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from textwrap import wrap
from types import ModuleType
from typing import Any

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard import (
    command_guard,
    commanded_motion,
    effort_check,
    effort_limiter,
    feedforward_stream,
    guard_checks,
    guard_time,
    link_swing,
    measured_motion,
    reasons,
    transitions,
)
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, Rejoin
from hodyn_ros.guard.reasons import Fault, Obstacle, Progress, State
from hodyn_ros.model.keys import said_of

_MODULES = (
    *(command_guard, commanded_motion, effort_check, effort_limiter, feedforward_stream),
    *(guard_checks, guard_time, link_swing, measured_motion, reasons, transitions),
)
_CAUSES: tuple[type[Enum], ...] = (Fault, Obstacle, Progress)
# What C++ has besides: a controller of ros2_control finds efforts on its interfaces.
_FOUND = "kFound,  // what `CommandGuard::found` has been set to"
_WIDTH = 117

_HEAD = """\
// What the guards in Python and in C++ share: tools/guard_table.py writes it from hodyn_ros/guard.
//
// Read m and N for rad and N.m where a joint is prismatic.

#pragma once

#include <math.h>

namespace hodyn_ros::guard
{
constexpr double kInfinite = static_cast<double>(INFINITY);
"""

_C_HEAD = """\
/* States, causes and figures of the guard for guard.h: tools/guard_table.py --c writes it.
 *
 * Read m and N for rad and N.m where a joint is prismatic. */
#ifndef HODYN_GUARD_WORDS_H
#define HODYN_GUARD_WORDS_H
"""

_RANGE = """\
// Return the first figure that is not within its range, null where all are.
inline const Figure * out_of_range(const Config & config)
{
  for (const Figure & figure : kFigures) {
    const double value = config.*figure.value;
    const bool bounded = figure.least != -kInfinite;
    if (bounded && !(figure.least <= value && value <= figure.most && value < kInfinite)) {
      return &figure;
    }
  }
  return nullptr;
}
"""


def guard_table() -> str:
    """Return the text of `ros2_control/guard/table.hpp`."""
    parts: list[list[str]] = [
        [_HEAD],
        _enum(State),
        [*_enum_of_causes(), f"constexpr int kFaults = {len(Fault)};  // the first of the causes", ""],
        *(_enum(kind) for kind in (End, FirstEffort, Rejoin)),
        _status(),
        _names("State", [state.value for state in State]),
        _names("Cause", [cause.value for kind in _CAUSES for cause in kind]),
        _sentences(),
        _config(),
        [_RANGE],
        *map(_constants, _MODULES),
    ]
    lines = [line for part in parts for line in part]
    return "\n".join(lines).rstrip("\n") + "\n}  // namespace hodyn_ros::guard\n"


def guard_words() -> str:
    """Return the text of `ros2_control/guard/guard_words.h`."""
    figures = [one for one in fields(GuardConfig) if isinstance(one.default, float)]
    said = _comments(inspect.getsource(GuardConfig))
    lines = [_C_HEAD]
    for kind in (State, End, FirstEffort, Rejoin):
        lines += _c_enum(kind.__name__, _first_line(kind), [kind])
    lines += _c_enum("Cause", "Why a guard is in its state. The first HODYN_FAULTS are faults.", _CAUSES)
    lines += [f"#define HODYN_FAULTS {len(Fault)}", ""]
    bits = [f"  HODYN_STATUS_{bit.name} = {bit.value}," for bit in Status if bit]
    lines += ["/* Bits of the status of a feedforward. */", "enum {", *bits, "};", ""]
    lines += ["/* Places of the figures of a configuration. */", "enum {"]
    for one in figures:
        lines += _c_comment(said_of(one).get("description", "") or said.get(one.name, ""), "  ")
        lines.append(f"  HODYN_FIGURE_{one.name.upper()},")
    return "\n".join([*lines, "  HODYN_FIGURES", "};", "", "#endif"]) + "\n"


def _c_enum(prefix: str, text: str, kinds: Sequence[type[Enum]]) -> list[str]:
    lines = [*_c_comment(text), "enum {"]
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", prefix).upper()
    for kind in kinds:
        comments = _comments(inspect.getsource(kind))
        for member in kind:
            lines += _c_comment(comments.get(member.name, ""), "  ")
            lines.append(f"  HODYN_{prefix}_{member.name},")
    if kinds[0] is FirstEffort:
        lines += [*_c_comment("what hodyn_guard_found has said", "  "), f"  HODYN_{prefix}_FOUND,"]
    return [*lines, "};", ""]


def _c_comment(text: str, indent: str = "") -> list[str]:
    lines = wrap(text, _WIDTH - len(indent) - 3)
    first = [f"{indent}/* {line}" if i == 0 else f"{indent} * {line}" for i, line in enumerate(lines)]
    return [*first[:-1], f"{first[-1]} */"] if first else []


def _symbol(name: str) -> str:
    """Return the name of a constant in C++."""
    return "k" + name.strip("_").title().replace("_", "")


def _comment(text: str, indent: str = "") -> list[str]:
    return [f"{indent}// {line}" for line in wrap(text, _WIDTH - len(indent))]


def _comments(source: str) -> dict[str, str]:
    """Return what stands behind assignments of one line, by their names."""
    found = re.finditer(r"^ *(\w+)(?:: [^=\n]+)? = [^#\n]*# (.+)$", source, re.MULTILINE)
    return {match[1]: match[2] for match in found}


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").splitlines()[0].replace("; see `command_guard`", "")


def _enum(kind: type[Enum]) -> list[str]:
    said = _comments(inspect.getsource(kind))
    members = [
        f"  {_symbol(member.name)}," + (f"  // {said[member.name]}" if member.name in said else "")
        for member in kind
    ]
    more = [f"  {_FOUND}"] if kind is FirstEffort else []
    head = [*_comment(_first_line(kind)), f"enum class {kind.__name__} : int {{"]
    return [*head, *members, *more, "};", ""]


def _enum_of_causes() -> list[str]:
    members = [
        line
        for kind in _CAUSES
        for line in (
            *_comment(_first_line(kind).split(";")[0].rstrip("."), "  "),
            *(f"  {_symbol(member.name)}," for member in kind),
        )
    ]
    return ["// Why a guard is in its state.", "enum class Cause : int {", *members, "};"]


def _status() -> list[str]:
    bits = [f"  {_symbol(bit.name or '')} = {bit.value}," for bit in Status if bit]
    names = [f'  {{{_symbol(bit.name or "")}, "{bit.name}"}},' for bit in Status if bit]
    return [
        "// Bits of the status of a feedforward, as in FeedforwardTorque.msg.",
        *["enum Status : unsigned {", *bits, "};", ""],
        *["struct StatusName", "{", "  Status bit;", "  const char * name;", "};"],
        *["constexpr StatusName kStatusNames[] = {", *names, "};", ""],
    ]


def _names(kind: str, names: list[str]) -> list[str]:
    return [
        f"inline const char * name_of({kind} value)",
        "{",
        "  static const char * const names[] = {",
        *(f"    {_text(name)}," for name in names),
        "  };",
        "  return names[static_cast<int>(value)];",
        *["}", ""],
    ]


def _sentences() -> list[str]:
    lines = [
        "// What follows the name of a cause, if anything, with places for the fields of a reason.",
        "inline const char * sentence_of(Cause value)",
        *["{", "  static const char * const sentences[] = {"],
    ]
    for cause in (cause for kind in _CAUSES for cause in kind):
        pieces = wrap(reasons.SENTENCES.get(cause, ""), 100, drop_whitespace=False) or [""]
        lines += [*(f"    {_text(piece)}" for piece in pieces[:-1]), f"    {_text(pieces[-1])},"]
    return [*lines, "  };", "  return sentences[static_cast<int>(value)];", "}", ""]


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _config() -> list[str]:
    source = inspect.getsource(GuardConfig)
    said, lines, figures = _comments(source), [], []
    for entry in fields(GuardConfig):
        schema, default = said_of(entry), entry.default
        assert default is not MISSING, entry.name
        lines += _comment(schema.get("description", "") or said.get(entry.name, ""), "  ")
        lines.append(f"  {_type(default)} {entry.name} = {_value(default)};")
        if isinstance(default, float):
            least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
            figures.append(
                f'  {{"{entry.name}", &Config::{entry.name}, {_value(float(least))}, {_value(float(most))}}},'
            )
    return [
        "// What a guard allows.",
        *["struct Config", "{", *lines, "};", ""],
        "// A figure of it, and its range; without bounds where it has none.",
        *["struct Figure", "{", "  const char * name;", "  double Config::* value;", "  double least, most;"],
        *["};", "constexpr Figure kFigures[] = {", *figures, "};", ""],
    ]


def _type(default: Any) -> str:
    if isinstance(default, Status):
        return "unsigned"
    if isinstance(default, Enum):
        return type(default).__name__
    return {bool: "bool", float: "double"}[type(default)]


def _value(value: Any) -> str:
    if isinstance(value, Status):
        return " | ".join(_symbol(bit.name or "") for bit in Status if bit and bit in value)
    if isinstance(value, _CAUSES):
        return f"Cause::{_symbol(value.name)}"
    if isinstance(value, Enum):
        return f"{type(value).__name__}::{_symbol(value.name)}"
    if isinstance(value, bool):
        return str(value).lower()
    number = float(value)
    if math.isinf(number):
        return "kInfinite" if number > 0.0 else "-kInfinite"
    return repr(number)


def _constants(module: ModuleType) -> list[str]:
    """Write the numbers at the top of a file, and its lists of causes."""
    source, lines = inspect.getsource(module), list[str]()
    said = _comments(source)
    for name in _assigned(source):
        value = getattr(module, name)
        if isinstance(value, (int, float)) and not isinstance(value, Enum):
            lines += _comment(said.get(name, ""))
            lines.append(f"constexpr double {_symbol(name)} = {_value(value)};")
        elif isinstance(value, tuple) and value and all(isinstance(one, _CAUSES) for one in value):
            causes = wrap(", ".join(map(_value, value)) + ",", _WIDTH)
            lines += [f"constexpr Cause {_symbol(name)}[] = {{", *(f"  {line}" for line in causes), "};"]
    if not lines:
        return []
    space = module.__name__.rpartition(".")[2]
    return [f"namespace {space}", "{", *lines, f"}}  // namespace {space}", ""]


def _assigned(source: str) -> Iterator[str]:
    """Yield the names of constants at the top of a file."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if re.fullmatch(r"_?[A-Z][A-Z_0-9]*", name):
                yield name


if __name__ == "__main__":
    sys.stdout.write(guard_words() if "--c" in sys.argv else guard_table())
