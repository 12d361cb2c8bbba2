"""`hodyn run`: what a launch file starts, without `launch`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from hodyn_ros.errors import InputError
from hodyn_ros.launching.read import read_launch
from hodyn_ros.launching.supervisor import supervise
from hodyn_ros.ros_presence import require_ros


def run_launch(file: str, arguments: Sequence[str], console: Console) -> bool:
    """Start what a launch file starts, with arguments `name:=value`, until all has ended.

    Returns whether nothing ended that others needed. Raises InputError for wrong arguments, and
    RosMissingError.
    """
    processes = read_launch(file).start(_arguments(arguments))
    require_ros("hodyn run")
    return supervise(
        processes, lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True)
    )


def show_arguments(file: str, console: Console) -> None:
    """Print the arguments of a launch file."""
    for argument in read_launch(file).arguments:
        offered = f" One of {', '.join(argument.offered)}." if argument.offered else ""
        default = argument.default_text or "''"
        console.print(f"{argument.name}:={default}", markup=False, highlight=False, style="bold")
        console.print(f"    {argument.description}{offered}", markup=False, highlight=False)


def _arguments(texts: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for text in texts:
        name, separator, value = text.partition(":=")
        if not (separator and name):
            raise InputError(f"{text!r} is no argument; give name:=value")
        arguments[name] = value
    return arguments
