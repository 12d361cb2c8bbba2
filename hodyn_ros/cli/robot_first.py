"""The order of arguments, which is one in all commands: the robot, then its motion or recording."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TypeVar

from hodyn_ros import share
from hodyn_ros.errors import HodynError, InputError

_Result = TypeVar("_Result")

_ROBOT_KEYS = frozenset({"urdf", "mjcf", "bodies", "joints", "limbs"})


def robot_first(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Let a command say that its first two arguments look swapped, where that is why it fails.

    Only then, and only where the second is the file of a robot and the first is not: whoever writes them in
    the order that some commands had before learns the new one, and a right call reads no file twice.
    """
    names = list(inspect.signature(command).parameters)[:2]

    @functools.wraps(command)
    def named(*arguments: object, **options: object) -> _Result:
        try:
            return command(*arguments, **options)
        except (HodynError, OSError) as error:
            first, second = (_first_file(options.get(name)) for name in names)
            if describes_robot(second) and not describes_robot(first):
                raise InputError(
                    f"these two look swapped: {second} is the file of a robot, which comes first: "
                    f"hodyn {command.__name__.split('_')[0]} {second} {first}"
                ) from error
            raise

    return named


def _first_file(argument: object) -> str:
    """Return the file of an argument, or the first one of several."""
    files = argument if isinstance(argument, list) else [argument]
    return str(files[0] or "")


def describes_robot(file: str) -> bool:
    """Say whether a file, or a shipped one, is meant to be a robot: URDF, MJCF or YAML, right or not."""
    from hodyn_ros.dynamics.read_robot import format_of  # takes a moment
    from hodyn_ros.model.readers.yaml_text import read_yaml

    try:
        path = share.find("config", file)
        if format_of(path) != "yaml":
            return True
        if path.suffix.lower() not in (".yaml", ".yml"):
            return False
        data = read_yaml(path).data
    except (HodynError, OSError):
        return False
    # a motion says its `type`; columns of a recording and other YAML have neither
    return isinstance(data, dict) and "type" not in data and not _ROBOT_KEYS.isdisjoint(data)
