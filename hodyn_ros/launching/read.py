"""Launch files that are described as data, read."""

from __future__ import annotations

import runpy
from os import PathLike

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching.description import Launch


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
