"""What a launch file starts, as data: `ros2 launch` and `hodyn run` start the same from it."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching.processes import Argument, Process, Values, refuse_twice

if TYPE_CHECKING:
    from launch import LaunchDescription


@dataclass(frozen=True)
class Launch:
    """What a launch file starts: `processes` makes a list of it from the values of `arguments`.

    A launch file keeps it as `LAUNCH`, and has `generate_launch_description = LAUNCH.description`.
    """

    arguments: tuple[Argument, ...]
    processes: Callable[[Values], Iterable[Process]]

    def values(self, arguments: Mapping[str, str], within: str = "/") -> Values:
        """Return the values of all arguments; `namespace` is absolute, and lies in the namespace `within`.

        Raises InputError for an argument that there is not, or a value that is not taken.
        """
        names = [argument.name for argument in self.arguments]
        for name in arguments:
            if name not in names:
                raise InputError(f"there is no argument {name!r}; there are: {', '.join(names)}")
        values: dict[str, Any] = {
            each.name: each.value(arguments.get(each.name, each.default_text)) for each in self.arguments
        }
        if "namespace" in values:
            values["namespace"] = joined(within, values["namespace"])
        return values

    def start(
        self,
        arguments: Mapping[str, str],
        within: str = "/",
        started: Callable[[str], bool] = lambda name: False,
    ) -> list[Process]:
        """Return what is to be started. Raises InputError for arguments with which nothing can be.

        `started` says of the full name of a node whether it has been started before.
        """
        processes = list(self.processes(self.values(arguments, within)))
        refuse_twice(processes, started)
        return processes

    def description(self) -> LaunchDescription:
        """Return the same for `ros2 launch`, which has to be installed."""
        from hodyn_ros.launching.ros2_launch import description  # what it needs is not on PyPI

        return description(self.arguments, self.start)


def joined(outer: str, inner: str) -> str:
    """Return the absolute name of the namespace `inner` in `outer`; one that begins with / stands alone."""
    parts = inner.split("/") if inner.startswith("/") else [*outer.split("/"), *inner.split("/")]
    return "/" + "/".join(filter(None, parts))


def read_launch(file: str | PathLike[str]) -> Launch:
    """Return what a launch file starts; `file` is a path, or the name of a shipped one.

    Raises InputError for a file that cannot be read, or that is written for `ros2 launch` alone.
    """
    path = share.find("launch", file)
    if path.suffix != ".py":
        raise InputError(f"{path} is for ros2 launch alone; only launch files in Python can be read here")
    try:
        launch = runpy.run_path(str(path)).get("LAUNCH")
    except ModuleNotFoundError as error:
        raise InputError(f"{path} needs {error.name}, which is not installed") from None
    except SyntaxError as error:
        raise InputError(f"{path} is not Python: {error}") from None
    if not isinstance(launch, Launch):
        raise InputError(
            f"{path} has no LAUNCH of hodyn_ros.launching and is for ros2 launch alone; "
            "docs/launch.md shows how to write one for both"
        )
    return launch
