"""The reference of the launch files, from the arguments that they declare."""

from __future__ import annotations

import ast
from pathlib import Path

from hodyn_ros.launching import Argument, read_launch
from reference.tables import code, plain, table


def launch_arguments(path: Path) -> tuple[Argument, ...]:
    """Return the arguments of a launch file, in its order."""
    return read_launch(path).arguments


def launch_page(folder: Path) -> str:
    """Return the page on all launch files of a folder."""
    parts = [
        "# Launch files",
        "Generated from `launch/`. Arguments are given as `name:=value`; with `--show-args` after the file's "
        "name, `ros2 launch` and `hodyn run` print them.",
    ]
    for path in sorted(folder.glob("*.launch.py")):
        lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        commands = [line for line in lines if line.startswith(("ros2 ", "hodyn "))]
        text = "\n".join(line for line in lines if line not in commands)
        parts += [f"## {path.name}", *map(plain, text.strip().split("\n\n"))]
        if commands:
            parts.append("\n".join(["```bash", *commands, "```"]))
        rows = []
        for argument in launch_arguments(path):
            choices = f" One of {', '.join(map(code, argument.offered))}." if argument.offered else ""
            meaning = plain(argument.description) + choices
            # a shipped file by its name, not by its place on this machine
            default = argument.default_text
            default = Path(default).name if default.startswith("/") else default
            rows.append([code(argument.name), code(default), meaning])
        parts.append(table(["argument", "default", "meaning"], rows))
    return "\n\n".join(parts) + "\n"
