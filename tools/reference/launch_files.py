"""The reference of the launch files, from the arguments that they declare.

`launch` comes with a ROS 2 and not from PyPI. Launch files are therefore run with stand-ins for it, which
start nothing and note the arguments.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference.stand_ins import stand_ins
from reference.tables import code, plain, table

_PACKAGES = ("launch", "launch_ros", "ament_index_python")


@dataclass(frozen=True)
class Argument:
    """An argument of a launch file."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...]


def launch_arguments(path: Path) -> list[Argument]:
    """Return the arguments of a launch file, in its order, but those of other launch files it includes."""
    replaced: dict[str, dict[str, Any]] = {
        "launch": {"LaunchDescription": list},
        "launch.actions": {"DeclareLaunchArgument": _declare},
    }
    with stand_ins(*_PACKAGES, replaced=replaced, forget="hodyn_ros.launching"):
        description = runpy.run_path(str(path))["generate_launch_description"]()
    return list(_declared(description))


def _declared(description: list[Any]) -> Iterator[Argument]:
    """Yield the arguments of a launch description, and of those in it."""
    for entity in description:
        if isinstance(entity, Argument):
            yield entity
        elif isinstance(entity, list):
            yield from _declared(entity)


def _declare(
    name: str,
    *,
    default_value: object = "",
    description: str = "",
    choices: list[str] | None = None,
    **_: Any,
) -> Argument:
    return Argument(name, str(default_value), description, tuple(choices or ()))


def launch_page(folder: Path) -> str:
    """Return the page on all launch files of a folder."""
    parts = [
        "# Launch files",
        "Generated from `launch/`. Arguments are given as `name:=value`; with `--show-args` after the file's "
        "name, `ros2 launch` prints them, also those of launch files that are included.",
    ]
    for path in sorted(folder.glob("*.launch.py")):
        lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        commands = [line for line in lines if line.startswith("ros2 ")]
        text = "\n".join(line for line in lines if line not in commands)
        parts += [f"## {path.name}", *map(plain, text.strip().split("\n\n"))]
        if commands:
            parts.append("\n".join(["```bash", *commands, "```"]))
        rows = []
        for argument in launch_arguments(path):
            choices = f" One of {', '.join(map(code, argument.choices))}." if argument.choices else ""
            meaning = plain(argument.description) + choices
            # a shipped file by its name, not by its place on this machine
            default = Path(argument.default).name if argument.default.startswith("/") else argument.default
            rows.append([code(argument.name), code(default), meaning])
        parts.append(table(["argument", "default", "meaning"], rows))
    return "\n\n".join(parts) + "\n"
